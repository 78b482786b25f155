"""The text of a literal that may hold HTML, as the descriptions of feeds do.

The compiled core drops tags and decodes character references. It builds no tree, because only the
words are wanted, and takes linear time on any input.

Source: the HTML standard, sections 13.2.5 (tokenization) and 15.3 (elements that a browser shows
as blocks).
"""

from __future__ import annotations

_BLOCK_NAMES = """
    address article aside blockquote body caption dd details dialog div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main menu nav ol
    optgroup option p pre section select summary table tbody td tfoot th thead title tr ul
"""
BLOCKS = set(_BLOCK_NAMES.split())
"""The elements whose edges become an empty line. No label is found across it."""

_LINKS = (
    "Continue reading|Keep reading|Read more|Read the full|Read the rest|Weiterlesen|Lire la suite"
    "|Leer más|Seguir leyendo|Continua a leggere|Leggi tutto|Lees verder|Leia mais|Click to share"
    "|Share on |Share this"
)
_POSTS = "The post|Der Beitrag|L’article|La entrada|L'articolo|Het bericht|O post"  # noqa: RUF001
_APPEARED = (
    "appeared first on|erschien zuerst auf|est apparu en premier sur|se publicó primero en"
    "|proviene da|verscheen eerst op|apareceu primeiro em"
)
LINKS = (
    rf"(?m)(?:{_LINKS})(?:.{{0,180}}(?:[^.\s]|\.\.))?[^\S\n]{{0,10}}$"
    rf"|(?:{_POSTS}) .{{0,100}} (?:{_APPEARED}) .{{0,80}}$"
)
"""Finds the links and share buttons that feeds add to a text, each to the end of its line.

The line is short. Behind a link it is no sentence.
"""

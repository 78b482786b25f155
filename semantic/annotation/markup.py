"""Text extraction from literals that may contain HTML, such as feed descriptions.

The compiled core drops tags and decodes character references. It builds no tree, because it needs
only the words, and takes linear time on any input.

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
"""The elements whose edges become an empty line. Labels never match across one."""

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
"""Pattern for links and share buttons that feeds add to a text, each up to the end of its line.

The rest of the line must be short and, after a link, must not end like a sentence.
"""

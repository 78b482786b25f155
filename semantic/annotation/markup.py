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
BLOCKS = _BLOCK_NAMES.split()
"""The elements whose edges become an empty line. No label is found across it."""

ADDED = [
    *((link, "") for link in (
        "Continue reading", "Keep reading", "Read more", "Read the full", "Read the rest",
        "Weiterlesen", "Lire la suite", "Leer más", "Seguir leyendo", "Continua a leggere",
        "Leggi tutto", "Lees verder", "Leia mais", "Click to share", "Share on ", "Share this",
    )),
    ("The post ", " appeared first on "),
    ("Der Beitrag ", " erschien zuerst auf "),
    ("L’article ", " est apparu en premier sur "),  # noqa: RUF001
    ("La entrada ", " se publicó primero en "),
    ("L'articolo ", " proviene da "),
    ("Het bericht ", " verscheen eerst op "),
    ("O post ", " apareceu primeiro em "),
]  # fmt: skip
"""How lines begin that feeds add to the text of an item, and what else these lines contain."""

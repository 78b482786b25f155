"""Short plain texts of feed items."""

from __future__ import annotations

import re
from html import unescape

from pyoxigraph import Literal

from semantic.publication import Publication
from semantic.vocabulary import RSS

SUMMARY_CHARACTERS = 300
"""Maximum length of a summary."""
_READ_CHARACTERS = 20_000
"""Maximum length of the part of a description that is searched for text."""
_DESCRIPTION = RSS["description"]
_TAG = re.compile(r"<[^<>]{0,2000}>")


def summary_of(publication: Publication) -> str | None:
    """Return the description of a feed item as plain text; ``None`` if it has none.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> html = Literal("<p>Rain &amp; <b>sun</b></p>")
    >>> summary_of(Publication.of("p", [(NamedNode("urn:item"), RSS["description"], html)]))
    'Rain & sun'
    """
    for _, property_, value in publication.given:
        if property_ == _DESCRIPTION and isinstance(value, Literal):
            text = unescape(_TAG.sub(" ", value.value[:_READ_CHARACTERS]))
            words = " ".join(text.replace("\0", "\ufffd").split())
            if len(words) > SUMMARY_CHARACTERS:
                words = f"{words[: SUMMARY_CHARACTERS - 1].rstrip()}…"
            return words or None
    return None

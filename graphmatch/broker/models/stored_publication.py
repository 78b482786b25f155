"""Publications of the log, as questions are asked of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from semantic.publication import Publication
from semantic.reading import SplitBy, read_publications


@dataclass(frozen=True, slots=True)
class Stored:
    """A publication that arrived earlier.

    Parameters
    ----------
    id
        Its id when it was matched.
    text
        Its triples, in N-Triples.
    received
        Time of arrival, with its time zone.
    title, link
        Title and link, if it is a feed item.
    """

    id: str
    text: bytes
    received: datetime
    title: str | None = None
    link: str | None = None

    def read(self) -> Publication:
        """Return the publication."""
        (found,) = read_publications(self.text, split_by=SplitBy.DOCUMENT, format="nt")
        return found.with_id(self.id)

"""Publications of the log, as backtests and explanations use them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from semantic.publication import Publication
from semantic.reading import SplitBy, read_publications


class Result(BaseModel):
    """Base class of results; the docstrings of attributes describe them in the API's schema."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class PublicationRef(Result):
    """A publication in the log."""

    seq: int
    """Number in the log."""
    id: str
    url: str
    """Address of the publication in the API."""


@dataclass(frozen=True, slots=True)
class StoredPublication:
    """A publication that arrived earlier.

    Parameters
    ----------
    id
        Id of the publication when it was matched.
    text
        Triples in N-Triples.
    received
        Time of arrival, with its time zone.
    title, link
        Title and link of a feed item.
    seq, url
        Number in the log, and address in the API.
    """

    id: str
    text: bytes
    received: datetime
    title: str | None = None
    link: str | None = None
    seq: int = 0
    url: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of this publication in results."""
        names = ("seq", "id", "url", "title", "link")
        return {name: getattr(self, name) for name in names} | {"received_at": self.received}

    def read(self) -> Publication:
        """Return the parsed publication."""
        (publication,) = read_publications(self.text, split_by=SplitBy.DOCUMENT, format="nt")
        return publication.with_id(self.id)

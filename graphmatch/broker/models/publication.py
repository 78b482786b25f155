"""Publications in requests and answers."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

from pydantic import Base64Bytes, ConfigDict, Field

from graphmatch.broker.models.base import Answer, Model, Time
from graphmatch.broker.models.match import MatchedPublication
from graphmatch.broker.models.stored_publication import PublicationRef
from semantic.errors import Problem

LINE_TYPES = ("application/x-ndjson", "application/jsonl", "application/ndjson")
"""Media types of bodies with one JSON object on each line."""
EVENT_TYPE = "application/cloudevents+json"
BATCH_TYPE = "application/cloudevents-batch+json"
PART_TYPES = frozenset({*LINE_TYPES, EVENT_TYPE, BATCH_TYPE})
"""Media types of bodies whose parts are documents."""
DETECTED_TYPES = (
    "application/atom+xml",
    "application/feed+json",
    "application/json",
    "application/octet-stream",
    "application/rdf+xml",
    "application/rss+xml",
    "application/xml",
    "text/plain",
    "text/xml",
    "",
)
"""Media types of documents whose syntax is detected from the content."""
Data: TypeAlias = str | dict[str, Any] | list[Any]
"""A document as text, or JSON-LD."""


class PublishOptions(Model):
    """The query of a request that publishes.

    `id` is the id of a publication that has none, and the base of relative IRIs. `split_by` says
    how the body is split into publications.
    """

    id: str | None = Field(None, max_length=2000)
    split_by: Literal["auto", "document", "graph", "item", "subject", "component"] = "auto"


class PublicationLine(Model):
    """A line of `application/x-ndjson`.

    `data` is a document as text, or JSON-LD. `format` is the media type of the document, and `id`
    the id of the publication if the data has none.
    """

    id: str | None = Field(None, max_length=2000)
    data: Data
    format: str | None = None

    def document(self) -> tuple[bytes, str | None, str | None]:
        """Return the document, its format, and the id of a publication that has none."""
        return _encoded(self.data), self.format, self.id


class CloudEvent(Model):
    """A CloudEvent in structured mode (CloudEvents 1.0). Extension attributes are ignored.

    `data` is a document as text, or JSON-LD, and `datacontenttype` its media type. `id` is the id
    of the publication if it is an IRI. Otherwise the id is `source`, `#` and `id`.
    """

    model_config = ConfigDict(extra="ignore")

    specversion: Literal["1.0"]
    id: str = Field(min_length=1, max_length=1000)
    source: str = Field(min_length=1, max_length=900)
    type: str = Field(min_length=1, examples=["org.example.offer"])
    datacontenttype: str = "application/json"
    data: Data | None = None
    data_base64: Base64Bytes | None = None

    def document(self) -> tuple[bytes, str | None, str | None]:
        """Return the document, its format, and the id of a publication that has none."""
        data = self.data_base64 if self.data is None else _encoded(self.data)
        id = self.id if ":" in self.id else f"{self.source}#{self.id}"
        return data or b"", self.datacontenttype, id


def _encoded(data: Data) -> bytes:
    return (data if isinstance(data, str) else json.dumps(data)).encode()


class PublishReceipt(Answer):
    """Publications that are stored and will be matched.

    `problems` are the parts of the body that were refused.
    """

    publications: list[PublicationRef]
    problems: list[Problem]


class PublicationView(MatchedPublication, Answer):
    """A publication, without its triples.

    `source` is `http`, the address of a feed, or a topic of Kafka. `matched_at` is `null` until
    the publication is matched.
    """

    source: str
    received_at: Time
    matched_at: Time | None = None
    problem: str | None = None

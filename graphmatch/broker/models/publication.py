"""Publications in requests and answers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Base64Bytes, ConfigDict, Field

from graphmatch.broker.models.base import Answer, Model, Time
from graphmatch.broker.models.stored_publication import PublicationRef
from semantic.errors import Problem


class PublishOptions(Model):
    """The query of a request that publishes.

    Attributes
    ----------
    id
        Id of a publication that has none.
    split_by
        How the body is split into publications.
    base
        Base of relative IRIs. The default is the id.
    """

    id: str | None = Field(None, max_length=2000)
    split_by: Literal["auto", "document", "graph", "item", "subject", "component"] = "auto"
    base: str | None = Field(None, max_length=2000)


class PublicationLine(Model):
    """A line of `application/x-ndjson`.

    Attributes
    ----------
    id
        Id of the publication, if the data has none.
    data
        A document as text, or JSON-LD.
    format
        Media type of the document.
    """

    id: str | None = Field(None, max_length=2000)
    data: str | dict[str, Any] | list[Any]
    format: str | None = None


class CloudEvent(Model):
    """A CloudEvent in structured mode (CloudEvents 1.0). Extension attributes are ignored.

    Attributes
    ----------
    id
        Id of the publication if it is an IRI. Otherwise the id is `source`, `#` and `id`.
    datacontenttype
        Media type of the document.
    data
        A document as text, or JSON-LD.
    """

    model_config = ConfigDict(extra="ignore")

    specversion: Literal["1.0"]
    id: str = Field(min_length=1, max_length=1000)
    source: str = Field(min_length=1, max_length=900)
    type: str = Field(min_length=1, examples=["org.example.offer"])
    datacontenttype: str = "application/json"
    data: Any = None
    data_base64: Base64Bytes | None = None


class PublishReceipt(Answer):
    """Publications that are stored and will be matched.

    Attributes
    ----------
    problems
        Parts of the body that were refused.
    """

    publications: list[PublicationRef]
    problems: list[Problem]


class PublicationView(PublicationRef, Answer):
    """A publication, without its triples.

    Attributes
    ----------
    source
        `http`, the address of a feed, or a topic of Kafka.
    matched_at
        `null` until the publication is matched.
    """

    title: str | None = None
    link: str | None = None
    summary: str | None = None
    source: str
    received_at: Time
    matched_at: Time | None = None
    problem: str | None = None

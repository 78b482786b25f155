"""Matches in answers, events and messages."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from graphmatch.broker.models.base import EXAMPLE_ID, Answer, Page, Time
from graphmatch.broker.models.stored_publication import PublicationRef


class MatchedPublication(PublicationRef):
    """The publication of a match."""

    title: str | None = None
    link: str | None = None
    summary: str | None = None


class MatchView(Answer):
    """A match. Answers, events and messages of webhooks have the same fields.

    `seq` is the number of the match, and the id of its event. `solutions` are bindings with terms
    in N-Triples; those of CONSTRUCT are an object with the lines of `graph`. `truncated` says that
    some of them are missing, and `url` is the address of the match with all stored ones.
    `sources` are those of the publication and its copies: `http`, addresses of feeds, Kafka topics.
    `generation` is that of the subscription, and `ontology_version` has hexadecimal digits. Only
    messages with `include_reasons` have `reasons`, the matching triples and filters.
    """

    seq: int = Field(examples=[41])
    subscription: str = Field(examples=[EXAMPLE_ID])
    generation: int
    publication: MatchedPublication
    sources: list[str] = Field([], examples=[["https://example.org/feed"]])
    matched_at: Time
    solutions: list[dict[str, Any]] | dict[str, Any] = Field(
        examples=[[{"offer": "<urn:example:offer:1>"}]]
    )
    truncated: bool
    ontology_version: str = Field("", examples=["9f86d081884c7d65"])
    url: str
    reasons: list[dict[str, Any]] | None = None


class MatchesPage(Page):
    """A page of matches, oldest first.

    `last` is the number of the last match of this page, for `since`.
    """

    matches: list[MatchView]
    last: int

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

    Attributes
    ----------
    seq
        Number of the match, and id of its event.
    generation
        Generation of the subscription.
    solutions
        Bindings with terms in N-Triples. CONSTRUCT has an object with the lines of `graph`.
    truncated
        Whether solutions are missing.
    ontology_version
        Version of the ontology, in hexadecimal digits.
    url
        Address of the match with all stored solutions.
    reasons
        The matching triples and filters. Only messages with `include_reasons` have them.
    """

    seq: int = Field(examples=[41])
    subscription: str = Field(examples=[EXAMPLE_ID])
    generation: int
    publication: MatchedPublication
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

    Attributes
    ----------
    last
        Number of the last match of this page, for `since`.
    """

    matches: list[MatchView]
    last: int

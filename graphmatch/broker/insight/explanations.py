"""Reasons why a subscription matches a stored publication, or the first condition that fails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pyoxigraph import NamedNode

from graphmatch.broker.models.stored_publication import Result, StoredPublication
from graphmatch.broker.service.backtester import Backtester
from semantic.terms import compact

_IRI = re.compile(r'<([^<>"\\\s]*)>')


class Reasons(Result):
    """The object that ``graphmatch explain --json`` writes (docs/reference/command.md)."""

    subscription: str
    publication: str
    matches: bool = False
    plan: tuple[str, ...] = ()
    evidence: tuple[dict[str, Any], ...] = ()
    calls: tuple[str, ...] = ()
    failure: str | None = None
    """The first failed condition; null for a match."""
    held: tuple[dict[str, Any], ...] = ()
    """Evidence of the conditions before the failed one."""
    nearest: tuple[dict[str, Any], ...] = ()
    """The triples that come closest to the failed condition."""


def reasons(
    backtester: Backtester, subscription: str, query: str, publication: StoredPublication
) -> Reasons:
    """Return why a subscription matches a publication, or which condition fails first.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from graphmatch import Engine
    >>> line = b'<urn:1> <http://purl.org/dc/elements/1.1/subject> "Food" .'
    >>> stored = StoredPublication("urn:1", line, datetime(2026, 1, 1, tzinfo=UTC))
    >>> query = 'ASK { ?x dc:subject "food" }'
    >>> result = reasons(Backtester(Engine()), "alice", query, stored)
    >>> result.matches, result.failure
    (False, 'no triple matches ?x dc:subject "food"')
    >>> result.nearest[0]["but"]
    'the strings differ only in upper and lower case'
    """
    with backtester.subscribed([(subscription, query)]) as (engine, refused):
        if subscription in refused:  # The current ontology lacks a unit or class of the query.
            what = refused[subscription].what
            failure = f"{what}: the subscription matches nothing with the current ontology"
            return Reasons(subscription=subscription, publication=publication.id, failure=failure)
        backtester.at(publication)
        explanation = engine.explain(subscription, publication.read())
        return Reasons.model_validate(explanation.as_json())


def readable(original: Reasons, prefixes: Mapping[str, str]) -> Reasons:
    """Return reasons for readers: IRIs have prefixes, and the publication is “the item”."""

    def shorten(iri: re.Match[str]) -> str:
        with suppress(ValueError):  # It is not an IRI but text in a literal.
            return compact(NamedNode(iri[1]), prefixes)
        return iri[0]

    text = original.model_dump_json().replace(f"<{original.publication}>", "the item")
    return Reasons.model_validate_json(_IRI.sub(shorten, text))

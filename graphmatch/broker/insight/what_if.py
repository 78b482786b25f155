"""The effects of another ontology on the matches of stored publications."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeAlias

from graphmatch.broker.insight.backtest import NEWEST, Scan, Scanned
from graphmatch.broker.models.stored_publication import PublicationRef, Result, StoredPublication
from graphmatch.broker.service.backtester import Timer
from graphmatch.engine import Engine
from semantic.clock import utc_now
from semantic.errors import Problem
from semantic.ontology.ontology import Ontology
from semantic.reading import SplitBy

_Refs: TypeAlias = list[PublicationRef]
LISTED = 200
"""Maximum number of subscriptions, and of problems, in a result."""


class ChangedSubscription(Result):
    """A subscription that gains or loses publications."""

    subscription: str
    name: str
    gained: int
    lost: int
    newest_gained: list[PublicationRef]
    newest_lost: list[PublicationRef]


class Difference(Scanned):
    """The effects of another ontology on the publications that both ontologies matched."""

    matches_before: int
    matches_after: int
    changed: int
    """Number of subscriptions that gain or lose publications."""
    subscriptions: list[ChangedSubscription]
    """The subscriptions with the most changes come first."""
    problems: list[Problem]
    """Problems of the new ontology, such as subscriptions that become unusable."""


def what_if(
    engine: Engine,
    ontology: Ontology,
    publications: Iterable[StoredPublication],
    rows: Callable[[Sequence[str]], Mapping[str, Mapping[Any, Any]]],
    *,
    limit_seconds: float,
    timer: Timer = perf_counter,
) -> Difference:
    """Return which subscriptions would gain or lose publications if the ontology were replaced.

    A copy of the engine matches the publications, replaces its ontology with
    `Engine.replace_ontology`, and matches them again. Cost: a snapshot of the engine, memory for
    the texts of the publications, and the time to match them twice.

    Parameters
    ----------
    publications
        Publications, the newest first.
    rows
        Returns rows with the id and name of the subscriptions to list, by their ids in the engine.
    limit_seconds
        Time limit. Half of it is for matching with the old ontology. Publications that are not
        evaluated with the new ontology in time are not counted.
    """
    now = [utc_now()]
    problems: list[Problem] = []
    begin = timer()
    copy = engine.copy(clock=lambda: now[0], on_problem=problems.append)

    def matches(publication: StoredPublication) -> frozenset[str]:
        now[0] = publication.received
        reports = copy.filter(publication.text, "nt", SplitBy.DOCUMENT, name=publication.id)
        return frozenset(id for report in reports for id in report.subscriptions)

    first = Scan(publications, begin + limit_seconds / 2, timer)
    before = [(publication, matches(publication)) for publication in first]
    problems.clear()
    copy.replace_ontology(ontology)
    second = Scan((publication for publication, _ in before), begin + limit_seconds, timer)
    gained, lost = defaultdict[str, _Refs](list), defaultdict[str, _Refs](list)
    matches_before = matches_after = 0
    for publication, (_, old) in zip(second, before, strict=False):
        new = matches(publication)
        matches_before, matches_after = matches_before + len(old), matches_after + len(new)
        for id in new ^ old:
            (lost if id in old else gained)[id].append(PublicationRef(**publication.fields))
    order = sorted({*gained, *lost}, key=lambda id: (-len(gained[id]) - len(lost[id]), id))
    named = rows(order)
    return Difference(
        scanned=second.scanned,
        complete=first.complete and second.complete,
        matches_before=matches_before,
        matches_after=matches_after,
        changed=len(order),
        subscriptions=[
            ChangedSubscription(
                subscription=named[id]["id"],
                name=named[id]["name"],
                gained=len(gained[id]),
                lost=len(lost[id]),
                newest_gained=gained[id][:NEWEST],
                newest_lost=lost[id][:NEWEST],
            )
            for id in [id for id in order if id in named][:LISTED]
        ],
        problems=problems[:LISTED],
    )

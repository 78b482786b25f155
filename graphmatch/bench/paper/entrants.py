"""Who is measured: the algorithms of the papers, the engine, and what it is measured beside.

An algorithm on attributes is given conjunctions and events that are read already, and what is timed
is which conjunctions an event matches. An algorithm on graphs, and the engine (`graphmatch`), are
given subscriptions and publications; what is timed is the report, solutions included where it
makes them. `core` is the engine on publications that it has been given before, without reading ids:
it is the engine's counterpart of an algorithm on attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from inspect import signature
from pkgutil import resolve_name
from typing import Any

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.bench.paper.entrant import Entrant, Numbers, Weighed
from graphmatch.bench.paper.workloads.flat import FlatWorkload
from graphmatch.bench.peers.columns import ScanPeer
from graphmatch.bench.peers.engine import take_in
from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.workload import Workload
from graphmatch.engine import Engine
from graphmatch.matcher import Matcher, MatchReport
from graphmatch.published import MATCHERS
from graphmatch.published.base import Conjunction, Event, FlatMatcher, Tally
from graphmatch.subscription import Subscription, SubscriptionParser
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication

OURS: Mapping[str, str] = {
    "graphmatch": "the engine: publications in, reports out",
    "core": "the engine's core: publications that are prepared, and a report that is not read",
    "scan": "a compiled scan over columns",
}
"""What is measured beside the algorithms of `MATCHERS`, and what it is."""

_OF_ATTRIBUTES = frozenset({"index"})
"""Options that are attributes, given as IRIs."""


class FlatEntrant(Entrant):
    """An algorithm on attributes."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.class_: type[FlatMatcher] = resolve_name(MATCHERS[name])
        self._options = {
            name: list(map(NamedNode, value)) if name in _OF_ATTRIBUTES else value
            for name, value in options.items()
        }
        self.exact = self.class_.capabilities.exact

    def given(self, workload: Workload) -> tuple[Ontology, list[Conjunction]]:
        """Return the taxonomy, and conjunctions."""
        assert isinstance(workload, FlatWorkload)
        return workload.ontology(), workload.conjunctions

    def build(self, given: tuple[Ontology, list[Conjunction]]) -> None:
        """Add them one by one; they are numbered as they come."""
        ontology, conjunctions = given
        self._matcher = self.class_(ontology, **self._options)
        for conjunction in conjunctions:
            self._matcher.add(conjunction)

    def event(self, workload: Workload, number: int) -> Event:
        """Return the event."""
        assert isinstance(workload, FlatWorkload)
        return workload.event(number)

    def match(self, event: Event) -> tuple[list[int], Tally]:
        """Say which conjunctions it matches."""
        tally = Tally()
        return list(self._matcher.matched(event, tally)), tally

    def numbers(self, found: tuple[list[int], Tally]) -> Numbers:
        """Return the numbers."""
        return np.array(found[0], np.int64)

    def counters(self, found: tuple[list[int], Tally]) -> Mapping[str, int]:
        """Return the tally."""
        return asdict(found[1])

    def nbytes(self) -> int | None:
        """Return what the index says."""
        return self._matcher.nbytes if isinstance(self._matcher, Weighed) else None

    def forget(self, ids: Iterable[str]) -> bool:
        """Unsubscribe one by one."""
        for id in ids:
            self._matcher.unsubscribe(id)
        return True


class GraphEntrant(Entrant):
    """An algorithm on graphs."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._class: type[Matcher] = resolve_name(MATCHERS[name])
        self._options = options
        self.exact = self._class.capabilities.exact

    def given(self, workload: Workload) -> tuple[Ontology, list[Subscription]]:
        """Return the ontology, and subscriptions."""
        parser = SubscriptionParser()
        texts = enumerate(workload.texts())
        return workload.ontology(), [parser.parse(str(number), text) for number, text in texts]

    def build(self, given: tuple[Ontology, list[Subscription]]) -> None:
        """Subscribe one by one."""
        ontology, subscriptions = given
        made: Any = self._class
        self._matcher: Matcher = made(ontology, **self._options)
        for subscription in subscriptions:
            self._matcher.subscribe(subscription)

    def event(self, workload: Workload, number: int) -> Publication:
        """Return the publication."""
        return workload.publication(number)

    def match(self, event: Publication) -> MatchReport:
        """Match it."""
        return self._matcher.match(event)

    def numbers(self, found: MatchReport) -> Numbers:
        """Return the ids as numbers."""
        return np.array([int(id) for id in found.subscriptions], np.int64)

    def counters(self, found: MatchReport) -> Mapping[str, int]:
        """Return the report's counters."""
        return found.counters._asdict()

    def nbytes(self) -> int | None:
        """Return what the index says."""
        return self._matcher.nbytes if isinstance(self._matcher, Weighed) else None

    def forget(self, ids: Iterable[str]) -> bool:
        """Unsubscribe one by one."""
        for id in ids:
            self._matcher.unsubscribe(id)
        return True


class EngineEntrant(Entrant):
    """The engine, by `Engine.subscribe_many` and `Engine.match`.

    Parameters
    ----------
    core
        Whether publications are prepared, by matching them once, and ids are not read.
    """

    def __init__(self, *, core: bool = False) -> None:
        self._core = core

    def given(self, workload: Workload) -> tuple[Ontology, list[tuple[str, str]]]:
        """Return the ontology, and ids with texts."""
        return workload.ontology(), [(str(n), text) for n, text in enumerate(workload.texts())]

    def build(self, given: tuple[Ontology, list[tuple[str, str]]]) -> None:
        """Subscribe all at once."""
        ontology, subscriptions = given
        self._engine = Engine(ontology)
        take_in(self._engine, subscriptions)

    def event(self, workload: Workload, number: int) -> Publication:
        """Return the publication."""
        publication = workload.publication(number)
        if self._core:
            len(self._engine.match(publication))
        return publication

    def match(self, event: Publication) -> MatchReport:
        """Match it, and say which subscriptions match."""
        report = self._engine.match(event)
        if not self._core:
            list(report.subscriptions)
        return report

    def numbers(self, found: MatchReport) -> Numbers:
        """Return the ids as numbers."""
        return np.array([int(id) for id in found.subscriptions], np.int64)

    def counters(self, found: MatchReport) -> Mapping[str, int]:
        """Return the report's counters."""
        return found.counters._asdict()

    def forget(self, ids: Iterable[str]) -> bool:
        """Unsubscribe one by one."""
        for id in ids:
            self._engine.unsubscribe(id)
        return True


class ScanEntrant(Entrant):
    """A compiled scan over columns: `graphmatch.bench.peers.columns.ScanPeer`."""

    def __init__(self) -> None:
        self._peer: Peer = ScanPeer()

    def given(self, workload: Workload) -> Any:
        """Return the columns."""
        return self._peer.given(workload)

    def build(self, given: Any) -> None:
        """Take them in."""
        self._peer.build(given)

    def event(self, workload: Workload, number: int) -> Any:
        """Return its integers."""
        return self._peer.event(workload, number, None, "integers")

    def match(self, event: Any) -> Any:
        """Scan."""
        return self._peer.match(event, "integers")[0]

    def numbers(self, found: Any) -> Numbers:
        """Return the rows."""
        return self._peer.numbers(found)

    def counters(self, found: Any) -> Mapping[str, int]:  # noqa: ARG002 - it looks at all
        """Return nothing."""
        return {}

    def nbytes(self) -> int | None:
        """Return the size of the arrays."""
        return self._peer.reported_bytes()


def entrant(name: str, options: Mapping[str, Any], workload: type[Workload]) -> Entrant | str:
    """Make an entrant, or say why it cannot be measured on a workload.

    Raises
    ------
    KeyError
        For a name that is neither in `MATCHERS` nor in `OURS`.

    Examples
    --------
    >>> from graphmatch.bench.paper.workloads import workload_class
    >>> entrant("rein", {}, workload_class("trees"))
    'it knows no Below, Equal'
    """
    if name not in MATCHERS:
        ours: dict[str, Callable[[], Entrant]] = {
            "graphmatch": EngineEntrant,
            "core": partial(EngineEntrant, core=True),
            "scan": ScanEntrant,
        }
        return ours[name]()
    class_: type[Matcher] = resolve_name(MATCHERS[name])
    unknown = options.keys() - signature(class_).parameters.keys()
    if unknown:
        return f"it has no option {', '.join(sorted(unknown))}"
    if not issubclass(class_, FlatMatcher):
        return GraphEntrant(name, options)
    if not issubclass(workload, FlatWorkload):
        return "it knows no graphs"
    missing = workload.kinds - class_.kinds
    if missing:
        return f"it knows no {', '.join(sorted(kind.__name__ for kind in missing))}"
    return FlatEntrant(name, options)

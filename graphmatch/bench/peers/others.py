"""CLIPS, one query a subscription on pyoxigraph's store, and the published algorithms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Quad, Store

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.attributes import AttributeWorkload
from graphmatch.bench.workloads.concepts import ConceptWorkload
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.bench.workloads.workload import UNBOUNDED, Rows, Workload


class ClipsPeer(Peer):
    """CLIPS, which is Rete: a rule for each subscription, facts for an event.

    A triple is a fact whose first field is its property, for CLIPS files facts and patterns under
    that field first; a row of intervals is one pattern with a slot for each column. Which rules
    have something to do after an event's facts are asserted is read from the agenda: none is run.
    """

    name: ClassVar = "clips"
    forms: ClassVar = dict.fromkeys(("graph", "attributes", "concepts"), ("facts",))
    requires: ClassVar = "clips"
    most: ClassVar = 10_000

    def given(self, workload: Workload) -> list[str]:
        """Return what is to be built: a template, where there are columns, and the rules."""
        if isinstance(workload, GraphWorkload):
            return _rules(_of_triples(row) for row in workload.patterns.tolist())
        assert isinstance(workload, AttributeWorkload | ConceptWorkload)
        slots = " ".join(f"(slot v{place})" for place in range(len(workload.rows.low)))
        return [f"(deftemplate event {slots})", *_rules(_of_intervals(workload.rows))]

    def build(self, given: list[str]) -> None:
        """Build one after the other."""
        import clips  # type: ignore[import-untyped]

        self._environment: Any = clips.Environment()
        for construct in given:
            self._environment.build(construct)

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> str:  # noqa: ARG002
        """Return the facts, in CLIPS's own syntax."""
        if isinstance(workload, GraphWorkload):
            edges = workload.graph(number, serial).tolist()
            return " ".join(f"(p{p} n{s} n{o})" for s, p, o in edges)
        assert isinstance(workload, AttributeWorkload | ConceptWorkload)
        values = enumerate(workload.rows.values[number].tolist())
        return f"(event {' '.join(f'(v{place} {value})' for place, value in values)})"

    def match(self, event: str, form: str) -> list[list[str]]:  # noqa: ARG002 - there is one
        """Assert the facts, read the agenda, and retract them."""
        self._environment.load_facts(event)
        found = list({activation.name for activation in self._environment.activations()})
        self._environment.reset()
        return [found]

    def numbers(self, answer: list[str]) -> NDArray[np.int64]:
        """Return the rules' numbers."""
        return np.array([int(name[1:]) for name in answer], np.int64)


def _rules(patterns: Iterable[str]) -> list[str]:
    return [f"(defrule r{number} {pattern} =>)" for number, pattern in enumerate(patterns)]


def _of_triples(patterns: list[list[int]]) -> str:
    """Write triple patterns, those with the fewest variables (negative numbers) first."""
    ordered = sorted(patterns, key=lambda pattern: (pattern[0] < 0) + (pattern[2] < 0))
    return " ".join(f"(p{p} {_node(s)} {_node(o)})" for s, p, o in ordered)


def _node(name: int) -> str:
    return f"?x{-name}" if name < 0 else f"n{name}"


def _of_intervals(rows: Rows) -> Iterator[str]:
    """Write each row as a pattern of the template."""
    for low, high in zip(rows.low.T.tolist(), rows.high.T.tolist(), strict=True):
        slots = (
            f"(v{place} {first})"
            if first == last
            else f"(v{place} ?x{place}&:(<= {first} ?x{place} {last}))"
            for place, (first, last) in enumerate(zip(low, high, strict=True))
            if (first, last) != UNBOUNDED
        )
        yield f"(event {' '.join(slots)})"


class PyoxigraphPeer(Peer):
    """One ASK a subscription, on a store with the publication and what follows from it."""

    name: ClassVar = "pyoxigraph"
    forms: ClassVar = dict.fromkeys(("graph", "attributes", "concepts", "keywords"), ("store",))
    most: ClassVar = 10_000

    @classmethod
    def takes(cls, parameters: Any) -> bool:
        """Say whether there are no topics, which are found in texts."""
        return not parameters.get("topics")

    def given(self, workload: Workload) -> list[str]:
        """Return the texts as ASK: a query may stop at its first solution."""
        return [f"ASK {text[text.index('{') :]}" for text in workload.texts()]

    def build(self, given: list[str]) -> None:
        """Keep the texts."""
        self._queries = list(given)

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> list[Store]:  # noqa: ARG002
        """Return a store for each publication, filled."""
        several = workload.publications(number, serial)
        if serial is None and len(several) == 1:
            several = [workload.materialised(number)]
        stores = []
        for publication in several:
            stores.append(Store())
            for subject, predicate, object_ in publication.triples:
                assert not isinstance(subject, Literal)
                assert isinstance(predicate, NamedNode)
                stores[-1].add(Quad(subject, predicate, object_))
        return stores

    def match(self, event: list[Store], form: str) -> list[list[int]]:  # noqa: ARG002 - there is one
        """Ask every query."""
        queries = enumerate(self._queries)
        return [[n for n, query in queries for store in event if store.query(query)]]


class PublishedPeer(Peer):
    """A published algorithm on attributes, given conjunctions and events that are read already."""

    forms: ClassVar = dict.fromkeys(("ranges", "trees", "equalities"), ("values",))

    def __init__(self, name: str) -> None:
        from graphmatch.bench.paper.entrants import FlatEntrant

        self._entrant = FlatEntrant(name, {})

    def given(self, workload: Workload) -> Any:
        """Return the taxonomy, and conjunctions."""
        return self._entrant.given(workload)

    def build(self, given: Any) -> None:
        """Add them one by one."""
        self._entrant.build(given)

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> Any:  # noqa: ARG002
        """Return the event."""
        return self._entrant.event(workload, number)

    def match(self, event: Any, form: str) -> list[Any]:  # noqa: ARG002 - there is one
        """Return the conjunctions that it matches."""
        return [self._entrant.match(event)[0]]

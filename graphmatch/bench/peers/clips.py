"""CLIPS, which is Rete: a rule for each subscription, facts for an event.

A triple is a fact whose first field is its property, for CLIPS files facts and patterns under that
field first; a row of intervals is one pattern with a slot for each column. Which rules have
something to do after an event's facts are asserted is read from the agenda: none is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.attributes import AttributeWorkload
from graphmatch.bench.workloads.concepts import ConceptWorkload
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.bench.workloads.workload import UNBOUNDED, Rows, Workload


class ClipsPeer(Peer):
    """One environment of clipspy."""

    name: ClassVar = "clips"
    workloads: ClassVar = frozenset({"graph", "attributes", "concepts"})
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
        self.add(given)

    def add(self, constructs: Sequence[str]) -> None:
        """Build more."""
        for construct in constructs:
            self._environment.build(construct)

    def event(self, workload: Workload, number: int) -> str:
        """Return the facts, in CLIPS's own syntax."""
        if isinstance(workload, GraphWorkload):
            edges = workload.graph(number).tolist()
            return " ".join(f"(p{p} n{s} n{o})" for s, p, o in edges)
        assert isinstance(workload, AttributeWorkload | ConceptWorkload)
        values = enumerate(workload.rows.values[number].tolist())
        return f"(event {' '.join(f'(v{place} {value})' for place, value in values)})"

    def match(self, event: str) -> list[str]:
        """Assert the facts, read the agenda, and retract them."""
        self._environment.load_facts(event)
        found = list({activation.name for activation in self._environment.activations()})
        self._environment.reset()
        return found

    def numbers(self, found: list[str]) -> NDArray[np.int64]:
        """Return the rules' numbers."""
        return np.array([int(name[1:]) for name in found], np.int64)


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

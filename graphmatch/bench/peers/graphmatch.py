"""The engine itself, by its public way in: SPARQL texts and publications."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.workload import Workload
from graphmatch.engine import Engine
from graphmatch.matcher import MatchReport
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication

Given: TypeAlias = tuple[Ontology, list[tuple[str, str]]]


class GraphMatchPeer(Peer):
    """`graphmatch.Engine`, with the workload's ontology."""

    name: ClassVar = "graphmatch"
    workloads: ClassVar = frozenset({"graph", "attributes", "concepts", "keywords"})
    most: ClassVar = 100_000

    def given(self, workload: Workload) -> Given:
        """Return the ontology, and ids with texts."""
        return workload.ontology(), [(str(n), text) for n, text in enumerate(workload.texts())]

    def build(self, given: Given) -> None:
        """Subscribe all."""
        ontology, subscriptions = given
        self.engine = Engine(ontology)
        for id, text in subscriptions:
            self.engine.subscribe(id, text)

    def event(self, workload: Workload, number: int) -> Publication:
        """Return the publication."""
        return workload.publication(number)

    def match(self, event: Publication) -> MatchReport:
        """Match it."""
        return self.engine.match(event)

    def numbers(self, found: MatchReport) -> NDArray[np.int64]:
        """Return the ids as numbers."""
        return np.array([int(match.subscription) for match in found], np.int64)

    def counters(self, found: MatchReport) -> Mapping[str, int]:
        """Return the report's counters."""
        return asdict(found.counters)

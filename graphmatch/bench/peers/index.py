"""The engine's index alone: what is left of matching when a publication is read and enriched.

Other engines' events are numbers already; here, too, they are. What is timed is the way from a
publication's ids to the numbers of the subscriptions that it matches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.graphmatch import Given, take_in
from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.workload import Workload
from graphmatch.engine import Engine
from graphmatch.index.encoding import Encoded
from graphmatch.index.index import IndexCounters

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of subscriptions, and what finding them took."""

    numbers: NDArray[np.int32]
    counters: IndexCounters


class IndexPeer(Peer):
    """`graphmatch.index.index.Index`, given what `Standing.enrich` gives."""

    name: ClassVar = "index"
    workloads: ClassVar = frozenset({"graph", "attributes", "concepts"})

    def given(self, workload: Workload) -> Given:
        """Return the ontology, and ids with texts."""
        return workload.ontology(), [(str(n), text) for n, text in enumerate(workload.texts())]

    def build(self, given: Given) -> None:
        """Subscribe all."""
        ontology, subscriptions = given
        engine = Engine(ontology)
        take_in(engine, subscriptions)
        self._standing = engine.standing

    def event(self, workload: Workload, number: int) -> Encoded:
        """Return the publication, enriched, as ids."""
        enriched = self._standing.enrich(workload.publication(number), _NOW).publication
        index = self._standing.index
        return index.encoded(enriched.numbered(), enriched.attributes)

    def match(self, event: Encoded) -> Numbers:
        """Find rows, and whose they are."""
        found, counters = self._standing.index.find(event)
        numbers, _ = self._standing.store.owners(found.rows)
        return Numbers(numbers, counters)

    def numbers(self, found: Numbers) -> NDArray[np.int64]:
        """Return the ids as numbers."""
        return np.array(list(map(int, self._standing.store.names(found.numbers))), np.int64)

    def counters(self, found: Numbers) -> Mapping[str, int]:
        """Return the index's counters."""
        return asdict(found.counters)

"""One ASK a subscription, on a store with the publication: what one would do without an index.

The store is filled beforehand. Where there is an ontology, what it says of the publication is in
the store, too.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Quad, Store

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.workload import Workload


class PyoxigraphPeer(Peer):
    """`pyoxigraph.Store.query`, once for each subscription."""

    name: ClassVar = "pyoxigraph"
    workloads: ClassVar = frozenset({"graph", "attributes", "concepts", "keywords"})
    most: ClassVar = 10_000

    def given(self, workload: Workload) -> list[str]:
        """Return the texts as ASK: a query may stop at its first solution."""
        return [f"ASK {text[text.index('{') :]}" for text in workload.texts()]

    def build(self, given: list[str]) -> None:
        """Keep the texts."""
        self._queries = list(given)

    def event(self, workload: Workload, number: int) -> Store:
        """Return a store with the publication."""
        store = Store()
        for subject, predicate, object_ in workload.materialised(number).triples:
            assert not isinstance(subject, Literal)
            assert isinstance(predicate, NamedNode)
            store.add(Quad(subject, predicate, object_))
        return store

    def match(self, event: Store) -> list[int]:
        """Ask every query."""
        return [number for number, query in enumerate(self._queries) if event.query(query)]

    def numbers(self, found: list[int]) -> NDArray[np.int64]:
        """Return them as an array."""
        return np.array(found, np.int64)

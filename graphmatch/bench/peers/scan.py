"""A compiled scan over columns of intervals: the floor for attributes.

Rows are looked at in blocks that fit into a processor's cache. Of each block the rows that the
first column's interval lets through are noted, of these those that the second one does, and so on
until none are left. The columns that let the fewest through, in a sample, come first. Cost:
linear in the rows.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.attributes import AttributeWorkload
from graphmatch.bench.workloads.concepts import ConceptWorkload
from graphmatch.bench.workloads.workload import Rows, Workload

SAMPLED_EVENTS, SAMPLED_ROWS = 20, 5000


class ScanPeer(Peer):
    """A loop over columns, compiled by numba."""

    name: ClassVar = "scan"
    workloads: ClassVar = frozenset({"attributes", "concepts"})

    def given(self, workload: Workload) -> Rows:
        """Return the columns."""
        assert isinstance(workload, AttributeWorkload | ConceptWorkload)
        return workload.rows

    def build(self, given: Rows) -> None:
        """Copy the columns, the most selective first."""
        low, high = given.low[:, :SAMPLED_ROWS, None], given.high[:, :SAMPLED_ROWS, None]
        values = given.values[:SAMPLED_EVENTS].T[:, None, :]
        self._order = np.argsort(((low <= values) & (values <= high)).mean(axis=(1, 2)))
        self._low = np.ascontiguousarray(given.low[self._order])
        self._high = np.ascontiguousarray(given.high[self._order])
        self._found = np.empty(given.low.shape[1], np.int32)

    def event(self, workload: Workload, number: int) -> NDArray[np.int32]:
        """Return its numbers, in the order of the columns."""
        assert isinstance(workload, AttributeWorkload | ConceptWorkload)
        values: NDArray[np.int32] = workload.rows.values[number][self._order]
        return values

    def match(self, event: NDArray[np.int32]) -> NDArray[np.int32]:
        """Scan."""
        from graphmatch.bench.peers.kernels import scan

        count = scan(self._low, self._high, event, self._found)
        return self._found[:count].copy()

    def numbers(self, found: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return them as they are."""
        return found.astype(np.int64)

    def reported_bytes(self) -> int:
        """Return the size of the arrays."""
        return self._low.nbytes + self._high.nbytes + self._found.nbytes

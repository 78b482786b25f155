"""G-ToPSS as printed, compiled, so that a ratio speaks of the algorithm and not of the language.

Petrovic, Liu, Jacobsen: "G-ToPSS: Fast Filtering of Graph-based Metadata", WWW 2005, section 4.
`graphmatch.published.gtopss` is the same algorithm in plain Python, where its parts are explained,
with what it does otherwise than the paper; that holds here, too: the order of joins is constants,
then edges with one star, then those with two, and every candidate's count is put back to 0.

Vertices and labels are the workload's numbers. The merged graph G_M is two levels of hash tables
in flat arrays, binding tables are chains of rows, and ``edgeCount`` is an array. The solutions of
each subscription are computed in full, as the join gives them, but only ids are handed out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.graph import NAMES, VARIABLES, GraphWorkload
from graphmatch.bench.workloads.workload import Workload

Ids: TypeAlias = NDArray[np.int32]
Keys: TypeAlias = NDArray[np.int64]

_SPAN = NAMES + VARIABLES


@dataclass(frozen=True, slots=True)
class Found:
    """What matching a publication gives.

    Parameters
    ----------
    subscriptions
        Those that matched.
    candidates
        How many of them had an edge that was hit.
    joins
        Natural joins of two binding tables.
    """

    subscriptions: Ids
    candidates: int
    joins: int


class GToPSSPeer(Peer):
    """The merged graph, compiled."""

    name: ClassVar = "gtopss"
    workloads: ClassVar = frozenset({"graph"})

    def given(self, workload: Workload) -> Ids:
        """Return the triple patterns."""
        assert isinstance(workload, GraphWorkload)
        return workload.patterns

    def build(self, given: Ids) -> None:
        """Merge the subscriptions into one graph (Algorithm Insert)."""
        vertices = np.where(given < 0, NAMES - 1 - given, given).astype(np.int64)
        pairs = vertices[:, :, 0] * _SPAN + vertices[:, :, 2]
        codes = pairs * 2**16 + given[:, :, 1]
        edges, of = np.unique(codes, return_inverse=True)
        of = of.reshape(codes.shape).astype(np.int32)
        self._first, self._second = _two_levels(edges >> 16, (edges & 0xFFFF).astype(np.int32))
        self._ends = np.stack([_star((edges >> 16) // _SPAN), _star((edges >> 16) % _SPAN)], axis=1)
        self._head = np.full(edges.size, -1, np.int32)
        flat = of.ravel()
        order = np.argsort(flat, kind="stable")
        self._of_edge = (order // of.shape[1]).astype(np.uint32)
        self._begin = np.searchsorted(flat[order], np.arange(edges.size + 1)).astype(np.int64)
        stars = (self._ends > 0).sum(axis=1)[of]
        self._edges = np.take_along_axis(of, np.argsort(stars, axis=1, kind="stable"), axis=1)
        self._counts = np.zeros(len(given), np.uint16)
        self._subset = np.empty(len(given), np.int32)
        self._found = np.empty(len(given), np.int32)

    def event(self, workload: Workload, number: int) -> Ids:
        """Return the triples."""
        assert isinstance(workload, GraphWorkload)
        return workload.graph(number)

    def match(self, event: Ids) -> Found:
        """Match a publication (Algorithm match)."""
        from graphmatch.bench.peers import kernels

        rows = kernels.bind(event, self._first, self._second, NAMES, VARIABLES, self._head)
        size = kernels.count_edges(rows, self._begin, self._of_edge, self._counts, self._subset)
        matched, joins = kernels.join_all(
            self._subset[:size],
            self._edges,
            self._counts,
            self._ends,
            rows,
            self._head,
            event,
            self._found,
        )
        kernels.clear(rows, self._head)
        return Found(self._found[:matched].copy(), int(size), int(joins))

    def numbers(self, found: Found) -> NDArray[np.int64]:
        """Return them as they are."""
        return found.subscriptions.astype(np.int64)

    def counters(self, found: Found) -> Mapping[str, int]:
        """Return candidates and joins, as `graphmatch.matcher.Counters` names them."""
        return {"candidates": found.candidates, "joins": found.joins}

    def reported_bytes(self) -> int:
        """Return the size of the arrays."""
        return sum(array.nbytes for array in vars(self).values())


def _two_levels(pairs: Keys, labels: Ids) -> tuple[Keys, Ids]:
    """Make the hash tables: pairs of vertices, and for each of them labels.

    Tables have a power of two of places, the first level more than twice as many as it needs. A
    pair with one label has a table of one place.
    """
    from graphmatch.bench.peers import kernels

    distinct, of, count = np.unique(pairs, return_inverse=True, return_counts=True)
    size = 2 ** np.ceil(np.log2(count)).astype(np.int64)
    size[count > 1] *= 2
    begin = np.cumsum(size) - size
    first = np.full((2 ** int(2 * distinct.size).bit_length(), 3), kernels.EMPTY, np.int64)
    kernels.fill_first(distinct, begin, size, first)
    second = np.full((int(size.sum()), 2), kernels.EMPTY, np.int32)
    kernels.fill_second(labels, of.astype(np.int64), begin, size, second)
    return first, second


def _star(vertices: Keys) -> Ids:
    """Return the number of the star that a vertex is; 0 for a constant."""
    return np.maximum(vertices - NAMES + 1, 0).astype(np.int32)

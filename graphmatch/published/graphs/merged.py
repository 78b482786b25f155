"""G-ToPSS's merged graph in numbers, with compiled loops: its data structure, and both stages.

Petrovic, Liu, Jacobsen: "G-ToPSS: Fast Filtering of Graph-based Metadata", WWW 2005, section 4;
`graphmatch.published.gtopss` has the notes. Two levels of hash tables lead from a pair of vertices
and a label to an edge of G_M. An edge has its subscriptions, and a binding table, which is a chain
of rows. Stage 1 fills the tables and counts, and `graphs.joins` is stage 2.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.graphs.joins import EMPTY, Joined, Joins
from graphmatch.published.graphs.lists import Lists, View
from graphmatch.published.graphs.matcher import Tally
from graphmatch.published.graphs.numbers import Ids
from graphmatch.published.graphs.tables import (
    BITS,
    Keys,
    Pool,
    PoolView,
    Table,
    TableView,
    find,
    joined,
    put,
    take,
)
from graphmatch.published.jit import at, kernel

Counts: TypeAlias = NDArray[np.uint16] | Ids

_Levels: TypeAlias = tuple[TableView, TableView]
_Pools: TypeAlias = tuple[PoolView, PoolView]

_TOGETHER = 4096
"""How many edges room is made for at a time: most of many are there already."""

_MOST = 65_535
"""How many rows can be counted in 16 bits."""


class MergedGraph:
    """The graph G_M, in numbers: 0 and more are constants and labels, -1 is ``*1``.

    Examples
    --------
    >>> merged = MergedGraph()
    >>> merged.insert(np.array([0, 0]), np.array([[7, 0, -1], [-1, 1, 8]], np.int32))
    >>> published = np.array([[7, 0, 5], [5, 1, 8]], np.int32)
    >>> [(number, rows.tolist()) for number, rows in merged.match(published, Tally())]
    [(0, [[5]])]
    """

    def __init__(self) -> None:
        self._first, self._second = Table(), Table()
        self._pairs, self._edges = Pool(), Pool()
        self._labels: Ids = np.zeros(0, np.int32)
        """How many labels each pair has."""
        self._subscriptions = Lists()
        """Of each edge: E.subs."""
        self._joins = Joins()
        self._counts: Counts = np.zeros(0, np.uint16)
        """Of each subscription: edgeCount."""
        self._stars: Counter[int] = Counter()
        """How many subscriptions have each number of stars."""

    def __len__(self) -> int:
        return self._edges.taken

    @property
    def nbytes(self) -> int:
        """How large all arrays are."""
        parts = (self._first, self._second, self._pairs, self._edges, self._subscriptions)
        arrays = self._labels.nbytes + self._counts.nbytes
        return sum(part.nbytes for part in parts) + self._joins.nbytes + arrays

    def insert(self, subscriptions: Ids, edges: Ids) -> None:
        """Insert subscriptions that are not there.

        Parameters
        ----------
        subscriptions
            Shape ``(edges,)``: whose edges they are; those of one stand together, in the order of
            joining.
        edges
            Shape ``(edges, 3)``: start, label, end.
        """
        merged = np.empty(len(edges), np.int32)
        pairs = _pairs(edges)
        for begin in range(0, len(edges), _TOGETHER):
            some = slice(begin, min(begin + _TOGETHER, len(edges)))
            self._reserve(some.stop - begin)
            levels = self._first.view, self._second.view
            pools = self._pairs.view, self._edges.view
            _insert(pairs[some], edges[some, 1], levels, pools, self._labels, merged[some])
        self._subscriptions.extend(merged, subscriptions)
        stars = np.maximum(-edges[:, ::2], 0)
        self._joins.insert(subscriptions, merged, stars)
        last = int(subscriptions.max())
        if last >= self._counts.size:
            self._counts = np.zeros(max(last + 1, 2 * self._counts.size), np.uint16)
        begins = np.flatnonzero(np.diff(subscriptions, prepend=-1))
        self._stars.update(np.maximum.reduceat(stars.max(axis=1), begins).tolist())

    def _reserve(self, edges: int) -> None:
        """Make room for so many edges more."""
        self._pairs.reserve(edges)
        self._edges.reserve(edges)
        self._first.reserve(self._pairs.taken + edges)
        self._second.reserve(self._edges.taken + edges)
        more = self._pairs.most - self._labels.size
        if more:
            self._labels = np.concatenate([self._labels, np.zeros(more, np.int32)])

    def remove(self, subscription: int, edges: Ids) -> None:
        """Take a subscription with these edges out."""
        for pair, label in zip(_pairs(edges).tolist(), edges[:, 1].tolist(), strict=True):
            of_pair = self._first[pair]
            key = joined(of_pair, label)
            edge = self._second[key]
            self._subscriptions.discard(edge, subscription)
            if not self._subscriptions[edge].size:
                self._second.discard(key)
                self._edges.give(edge)
                self._labels[of_pair] -= 1
                if not self._labels[of_pair]:
                    self._first.discard(pair)
                    self._pairs.give(of_pair)
        self._joins.remove(subscription)
        stars = max(0, -int(edges.min()))
        self._stars[stars] -= 1
        if not self._stars[stars]:
            del self._stars[stars]

    def match(self, triples: Ids, tally: Tally) -> Joined:
        """Return the subscriptions that a publication matches, and the rows of their joins.

        Parameters
        ----------
        triples
            Shape ``(edges, 3)``; none is negative.
        """
        stars = max(self._stars, default=0)
        rows = np.empty((len(triples) * (stars + 1) ** 2, 3), np.int32)
        levels = self._first.view, self._second.view
        hits, probes, hit = _match_edges(triples, levels, stars, self._joins.head, rows)
        subset = np.empty(self._counts.size, np.int32)
        size = self._joins.edges.view[1]
        view = self._subscriptions.view
        counts = self._counts if hits <= _MOST else np.zeros(self._counts.size, np.int32)
        candidates, often = _count(rows[:hits], view, counts, size, subset)
        found = self._joins.join(subset[:often], rows[:hits], triples)
        tally.probes, tally.gates, tally.candidates = probes, hit, candidates
        tally.joins = self._joins.made
        return found


def _pairs(edges: Ids) -> Keys:
    """Return the keys of the first level: constants are even there, and stars odd."""
    ends = edges[:, ::2].astype(np.int64)
    codes = np.where(ends < 0, -2 * ends - 1, 2 * ends)
    pairs: Keys = codes[:, 0] << BITS | codes[:, 1]
    return pairs


@kernel
def _insert(
    pairs: Keys, labels: Ids, levels: _Levels, pools: _Pools, labels_of: Ids, merged: Ids
) -> None:
    """Find each edge in G_M, or make it (Algorithm Insert, lines 1 to 10)."""
    first, second = levels
    free_pairs, free_edges = pools
    for k in range(pairs.size):
        of_pair = find(pairs[k], *first)
        if of_pair == EMPTY:
            of_pair = take(*free_pairs)
            put(pairs[k], of_pair, *first)
        key = joined(of_pair, labels[k])
        edge = find(key, *second)
        if edge == EMPTY:
            edge = take(*free_edges)
            put(key, edge, *second)
            labels_of[of_pair] += 1
        merged[k] = edge


@kernel
def _match_edges(
    triples: Ids, levels: _Levels, stars: int, head: Ids, rows: Ids
) -> tuple[int, int, int]:
    """Fill the binding tables: the first stage (Algorithm match, lines 1 to 10).

    Each edge is tried with its own vertices and with all stars, as the completed graph has them.
    Returns how many rows there are, how many pairs were looked up, and how many tables have rows.
    """
    first, second = levels
    count = probes = hit = 0
    for number in range(triples.shape[0]):
        start, label, end = triples[number, 0], triples[number, 1], triples[number, 2]
        for i in range(stars + 1):
            v = 2 * i - 1 if i > 0 else 2 * start
            for j in range(stars + 1):
                if i == j and i > 0 and start != end:
                    continue
                probes += 1
                w = 2 * j - 1 if j > 0 else 2 * end
                of_pair = find(joined(v, w), *first)
                if of_pair == EMPTY:
                    continue
                edge = find(joined(of_pair, label), *second)
                if edge == EMPTY:
                    continue
                hit += head[at(edge)] == EMPTY
                rows[count, 0] = edge
                rows[count, 1] = number
                rows[count, 2] = head[at(edge)]
                head[at(edge)] = count
                count += 1
    return count, probes, hit


@kernel
def _count(rows: Ids, of: View, counts: Counts, size: Ids, subset: Ids) -> tuple[int, int]:
    """Count each row for the subscriptions that have its edge, and put those counted into SubSet.

    Counts are put back to 0. Returns how many were counted, and how many of them often enough:
    these are in `subset` (line 13).
    """
    begin, length, numbers = of
    counted = often = 0
    for row in range(rows.shape[0]):
        edge = rows[row, 0]
        for place in range(begin[edge], begin[edge] + length[edge]):
            subscription = numbers[at(place)]
            count = counts[at(subscription)]
            counts[at(subscription)] = count + 1
            if count == 0:
                subset[counted] = subscription
                counted += 1
    for place in range(counted):
        subscription = subset[place]
        if counts[at(subscription)] >= size[at(subscription)]:
            subset[often] = subscription
            often += 1
        counts[at(subscription)] = 0
    return counted, often

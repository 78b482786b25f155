"""Natural joins of binding tables, compiled (G-ToPSS, section 4.2).

The binding table of an edge holds the edges of a publication that it can stand for. Joining the
tables of all edges of a subscription on the stars that they share gives what its stars can be bound
to: the solutions, but for what is tested on them. An edge without a star has no columns; its table
is empty, or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.graphs.lists import Lists, Places, View
from graphmatch.published.graphs.numbers import Ids
from graphmatch.published.jit import at, kernel, part

EMPTY = -1

Tables: TypeAlias = NDArray[np.int32]

_Bindings: TypeAlias = tuple[Ids, Ids]
"""The rows of all binding tables, and the last one of each."""

_Out: TypeAlias = tuple[Ids, Places, Ids]


@dataclass(frozen=True, slots=True)
class Joined:
    """What joins gave.

    Parameters
    ----------
    subscriptions
        Those with rows.
    ends
        Where the rows of each end.
    rows
        Shape ``(rows, stars)``: the vertex that each star is bound to; `EMPTY` for stars that a
        subscription does not have.
    """

    subscriptions: Ids
    ends: Places
    rows: Ids

    def __iter__(self) -> Iterator[tuple[int, Ids]]:
        """Yield each subscription with its rows."""
        begin = 0
        for number, end in zip(self.subscriptions.tolist(), self.ends.tolist(), strict=True):
            yield number, self.rows[begin:end]
            begin = end


class Joins:
    """Which edges each subscription has, and which stars each edge.

    Edges may be of one subscription, or of several that share them.

    Attributes
    ----------
    edges
        Subscription to its edges, in the order of joining.
    head
        The last row of each edge's binding table; `EMPTY` between publications.
    made
        How many joins were made for the last publication.
    room
        How many rows a join may have; it grows where that is not enough.

    Examples
    --------
    >>> joins = Joins()
    >>> joins.insert(np.array([0, 0]), np.array([5, 6]), np.array([[0, 1], [1, 2]]))
    >>> triples = np.array([[7, 0, 8], [8, 0, 9], [5, 0, 6]], np.int32)
    >>> rows = joins.bind([(5, 0), (6, 1), (6, 2)])
    >>> [(number, found.tolist()) for number, found in joins.join(np.array([0]), rows, triples)]
    [(0, [[8, 9]])]
    >>> joins.made
    1
    """

    def __init__(self) -> None:
        self.edges = Lists()
        self.head: Ids = np.full(16, EMPTY, np.int32)
        self.made = 0
        self.room = 256
        self._stars: Ids = np.zeros((16, 2), np.int32)
        self._most = 0
        self._free: list[int] = []
        self._next = 0

    @property
    def nbytes(self) -> int:
        """How large the arrays are."""
        return self.edges.nbytes + self.head.nbytes + self._stars.nbytes

    def insert(self, subscriptions: Ids, edges: Ids, stars: Ids) -> None:
        """Give subscriptions their edges, in the order of joining.

        Parameters
        ----------
        subscriptions, edges
            Shape ``(edges,)``: which has which.
        stars
            Shape ``(edges, 2)``: those of each edge, 0 for a constant.
        """
        self.edges.extend(subscriptions, edges)
        last = int(edges.max())
        if last >= self.head.size:
            more = max(last + 1, 2 * self.head.size) - self.head.size
            self.head = np.concatenate([self.head, np.full(more, EMPTY, np.int32)])
            self._stars = np.concatenate([self._stars, np.zeros((more, 2), np.int32)])
        self._stars[edges] = stars
        self._most = max(self._most, int(stars.max()))

    def remove(self, subscription: int) -> None:
        """Forget a subscription; its edges are others', too."""
        self.edges.clear(subscription)

    def insert_own(self, subscription: int, stars: Ids) -> list[int]:
        """Give a subscription edges that no other has, and return their numbers."""
        edges: list[int] = []
        for _ in stars:
            edges.append(self._free.pop() if self._free else self._next)
            self._next = max(self._next, edges[-1] + 1)
        self.insert(np.full(len(edges), subscription), np.array(edges), stars)
        return edges

    def remove_own(self, subscription: int) -> list[int]:
        """Forget a subscription and its edges, and return their numbers; they are used again."""
        edges: list[int] = self.edges[subscription].tolist()
        self._free += edges
        self.remove(subscription)
        return edges

    def bind(self, found: list[tuple[int, int]]) -> Ids:
        """Fill binding tables: pairs of an edge and one of the publication's edges.

        Returns
        -------
        rows
            Shape ``(rows, 3)``: the edge, the publication's edge, and the row before it in the same
            table.
        """
        rows = np.full((len(found), 3), EMPTY, np.int32)
        if found:
            rows[:, :2] = found
            _chain(rows, self.head)
        return rows

    def join(self, candidates: Ids, rows: Ids, triples: Ids) -> Joined:
        """Join the binding tables of each candidate, and empty all tables.

        Parameters
        ----------
        candidates
            Subscriptions, each once.
        rows
            As `bind` returns them.
        triples
            The publication, shape ``(edges, 3)``.
        """
        several: list[Joined] = []
        self.made = first = 0
        given = candidates.astype(np.int32)
        while first < given.size:
            tables = np.empty((2, self.room, self._most + 1), np.int32)
            ids, ends = np.empty(given.size, np.int32), np.empty(given.size, np.int64)
            out = ids, ends, np.empty((self.room, self._most), np.int32)
            bindings = rows, self.head
            first, count, made = _join(
                given, first, self.edges.view, self._stars, bindings, triples, tables, out
            )
            self.made += made
            if count:
                several.append(Joined(ids[:count], ends[:count], out[2][: ends[count - 1]]))
            elif first < given.size:
                self.room *= 2
        self.head[rows[:, 0]] = EMPTY
        if len(several) == 1:
            return several[0]
        return _together(several, self._most)


def _together(several: list[Joined], most: int) -> Joined:
    if not several:
        return Joined(np.empty(0, np.int32), np.empty(0, np.int64), np.empty((0, most), np.int32))
    before = np.cumsum([0, *(len(joined.rows) for joined in several[:-1])])
    return Joined(
        np.concatenate([joined.subscriptions for joined in several]),
        np.concatenate([joined.ends + more for joined, more in zip(several, before, strict=True)]),
        np.concatenate([joined.rows for joined in several]),
    )


@kernel
def _chain(rows: Ids, head: Ids) -> None:
    """Chain the rows of each table."""
    for row in range(rows.shape[0]):
        edge = rows[row, 0]
        rows[row, 2] = head[edge]
        head[edge] = row


@part
def _is_hit(subscription: int, edges: View, head: Ids) -> bool:
    """Say whether each edge has a row in its table."""
    begin, size, edge_of = edges
    for place in range(begin[subscription], begin[subscription] + size[subscription]):
        if head[edge_of[at(place)]] == EMPTY:
            return False
    return True


@part
def _step(
    edge: int, side: int, length: int, stars: Ids, bindings: _Bindings, triples: Ids, tables: Tables
) -> int:
    """Join what there is with one more table; return how many rows that gives.

    It is `EMPTY` where there is no room for them. What there was is on one side of `tables`, and
    what is joined on the other.
    """
    rows, head = bindings
    i, j = stars[edge, 0], stars[edge, 1]
    joined = 0
    for row in range(length):
        v, w = tables[side, row, i], tables[side, row, j]
        binding = head[edge]
        while binding != EMPTY:
            start, end = triples[rows[binding, 1], 0], triples[rows[binding, 1], 2]
            binding = rows[binding, 2]
            if i > 0 and v != EMPTY and v != start:
                continue
            if j > 0 and w != EMPTY and w != end:
                continue
            if i == j and start != end:
                continue
            if joined == tables.shape[1]:
                return EMPTY
            for star in range(1, tables.shape[2]):
                tables[1 - side, joined, star] = tables[side, row, star]
            if i > 0:
                tables[1 - side, joined, i] = start
            if j > 0:
                tables[1 - side, joined, j] = end
            joined += 1
    return joined


@kernel
def _join(
    candidates: Ids,
    first: int,
    edges: View,
    stars: Ids,
    bindings: _Bindings,
    triples: Ids,
    tables: Tables,
    out: _Out,
) -> tuple[int, int, int]:
    """Join the tables of candidates from the first on, as far as there is room.

    `tables` has shape ``(2, room, stars + 1)``; its column 0 is not used. Returns the first
    candidate that is left, how many subscriptions are in `out`, and how many joins were made.
    """
    begin, size, edge_of = edges
    found, ends, solutions = out
    width = tables.shape[2]
    count = used = made = 0
    for candidate in range(first, candidates.size):
        subscription = candidates[candidate]
        if not _is_hit(subscription, edges, bindings[1]):
            continue
        side, length, before = 0, 1, made
        for star in range(width):
            tables[0, 0, star] = EMPTY
        start = begin[subscription]
        for place in range(start, start + size[subscription]):
            edge = edge_of[at(place)]
            if place > start:
                made += 1
            if stars[edge, 0] == 0 and stars[edge, 1] == 0:
                continue
            length = _step(edge, side, length, stars, bindings, triples, tables)
            side = 1 - side
            if length <= 0:
                break
        if length == EMPTY or used + length > solutions.shape[0]:
            return candidate, count, before
        if length == 0:
            continue
        for row in range(length):
            for star in range(1, width):
                solutions[used + row, star - 1] = tables[side, row, star]
        used += length
        found[count] = subscription
        ends[count] = used
        count += 1
    return candidates.size, count, made

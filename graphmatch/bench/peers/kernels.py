"""Compiled loops of the peers `scan` and `gtopss`.

Every function gets flat arrays; the peers check what goes in. Importing this module imports numba;
with ``NUMBA_DISABLE_JIT=1`` the functions run as plain Python.
"""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
Keys: TypeAlias = NDArray[np.int64]
Places: TypeAlias = NDArray[np.uint32]
Counts: TypeAlias = NDArray[np.uint16]

BLOCK = 4096
"""How many rows of a column are looked at before the next column: they fit into a cache."""

EMPTY = -1


@numba.njit(cache=True)
def scan(low: Ids, high: Ids, values: Ids, found: Ids) -> int:
    """Note the rows all of whose intervals have the values in them; return how many.

    `low` and `high` have shape ``(columns, rows)``, `found` has room for all rows.
    """
    columns, rows = low.shape
    count = 0
    left = np.empty(BLOCK, np.int32)
    for start in range(0, rows, BLOCK):
        end = min(start + BLOCK, rows)
        value, lows, highs = values[0], low[0], high[0]
        alive = 0
        for row in range(start, end):
            left[alive] = row
            alive += (lows[row] <= value) & (value <= highs[row])
        for column in range(1, columns):
            if alive == 0:
                break
            value, lows, highs = values[column], low[column], high[column]
            kept = 0
            for place in range(alive):
                row = left[place]
                left[kept] = row
                kept += (lows[row] <= value) & (value <= highs[row])
            alive = kept
        for place in range(alive):
            found[count] = left[place]
            count += 1
    return count


@numba.njit(cache=True)
def slot(key: int, mask: int) -> int:
    """Return where a key's search in a table of ``mask + 1`` places begins."""
    mixed = np.int64(key) ^ np.int64(key >> 15)
    mixed = (mixed & 0x7FFFFFFF) * 0x2545F491
    return int((mixed ^ (mixed >> 17)) & mask)


@numba.njit(cache=True)
def fill_first(pairs: Keys, begin: Keys, size: Keys, table: Keys) -> None:
    """Put pairs of vertices into the first level's table.

    `table` has shape ``(places, 3)``, a power of two of them: the pair, where its second level
    begins, and how many places that has. A place is free where the pair is `EMPTY`.
    """
    mask = table.shape[0] - 1
    for number in range(pairs.size):
        place = slot(pairs[number], mask)
        while table[place, 0] != EMPTY:
            place = (place + 1) & mask
        table[place, 0] = pairs[number]
        table[place, 1] = begin[number]
        table[place, 2] = size[number]


@numba.njit(cache=True)
def fill_second(labels: Ids, of: Keys, begin: Keys, size: Keys, table: Ids) -> None:
    """Put edges into the second level's tables, which lie one after the other.

    `table` has shape ``(places, 2)``: the label and the edge's number. Edge *e* has the label
    ``labels[e]``, and the pair of vertices ``of[e]``.
    """
    for edge in range(labels.size):
        pair = of[edge]
        mask = size[pair] - 1
        place = slot(labels[edge], mask)
        while table[begin[pair] + place, 0] != EMPTY:
            place = (place + 1) & mask
        table[begin[pair] + place, 0] = labels[edge]
        table[begin[pair] + place, 1] = edge


@numba.njit(cache=True)
def find_edge(pair: int, label: int, first: Keys, second: Ids) -> int:
    """Return an edge's number, or `EMPTY`: two look-ups, as printed."""
    mask = first.shape[0] - 1
    place = slot(pair, mask)
    while first[place, 0] != pair:
        if first[place, 0] == EMPTY:
            return EMPTY
        place = (place + 1) & mask
    begin, mask = first[place, 1], first[place, 2] - 1
    place = slot(label, mask)
    for _ in range(mask + 1):
        found = second[begin + place, 0]
        if found == label:
            return int(second[begin + place, 1])
        if found == EMPTY:
            return EMPTY
        place = (place + 1) & mask
    return EMPTY


@numba.njit(cache=True)
def bind(triples: Ids, first: Keys, second: Ids, names: int, stars: int, head: Ids) -> Ids:
    """Put a publication's edges into binding tables: the first stage, lines 1 to 10.

    `head` has the last row of each edge's binding table, `EMPTY` where there is none. Returns the
    rows, shape ``(rows, 3)``: the edge of G_M, the publication's edge, and the row before it.
    """
    rows = np.empty((triples.shape[0] * (stars + 1) * (stars + 1), 3), np.int32)
    count = 0
    span = names + stars
    for number in range(triples.shape[0]):
        start, label, end = triples[number]
        for i in range(stars + 1):
            for j in range(stars + 1):
                if i == j and i > 0 and start != end:
                    continue
                v = start if i == 0 else names + i - 1
                w = end if j == 0 else names + j - 1
                edge = find_edge(v * span + w, label, first, second)
                if edge != EMPTY:
                    rows[count, 0] = edge
                    rows[count, 1] = number
                    rows[count, 2] = head[edge]
                    head[edge] = count
                    count += 1
    return rows[:count]


@numba.njit(cache=True)
def count_edges(rows: Ids, begin: Keys, of_edge: Places, counts: Counts, subset: Ids) -> int:
    """Count each row for the subscriptions that have its edge; note these, and return how many.

    Indexes without a sign are not looked at for being negative: that is most of the time here.
    """
    size = 0
    for row in range(rows.shape[0]):
        edge = rows[row, 0]
        for subscription in of_edge[begin[edge] : begin[edge + 1]]:
            count = counts[subscription]
            counts[subscription] = count + 1
            if count == 0:
                subset[size] = subscription
                size += 1
    return size


@numba.njit(cache=True)
def join_all(
    subset: Ids,
    edges: Ids,
    counts: Counts,
    ends: Ids,
    rows: Ids,
    head: Ids,
    triples: Ids,
    found: Ids,
) -> tuple[int, int]:
    """Join the binding tables of each subscription: the second stage, lines 12 to 20.

    `edges` has shape ``(subscriptions, edges)``, `ends` has shape ``(edges of G_M, 2)``: the
    star at each end, 0 for a constant. Counts are put back to 0. Returns how many subscriptions
    are in `found`, and how many joins were made.
    """
    most = max(triples.shape[0], 1) ** 2
    table, other = np.empty((most, 3), np.int32), np.empty((most, 3), np.int32)
    matched = joins = 0
    for subscription in subset:
        hit = counts[subscription] >= edges.shape[1]
        counts[subscription] = 0
        if not hit:
            continue
        for column in range(edges.shape[1]):
            hit = hit and head[edges[subscription, column]] != EMPTY
        if not hit:
            continue
        size = 1
        table[0, :] = EMPTY
        for column in range(edges.shape[1]):
            edge = edges[subscription, column]
            if column > 0:
                joins += 1
            i, j = ends[edge, 0], ends[edge, 1]
            if i == 0 and j == 0:
                continue
            joined = 0
            for row in range(size):
                at = head[edge]
                while at != EMPTY:
                    v, w = triples[rows[at, 1], 0], triples[rows[at, 1], 2]
                    at = rows[at, 2]
                    if i > 0 and table[row, i] != EMPTY and table[row, i] != v:
                        continue
                    if j > 0 and table[row, j] != EMPTY and table[row, j] != w:
                        continue
                    if i == j and v != w:
                        continue
                    other[joined, :] = table[row, :]
                    if i > 0:
                        other[joined, i] = v
                    if j > 0:
                        other[joined, j] = w
                    joined += 1
            table, other = other, table
            size = joined
            if size == 0:
                break
        if size > 0:
            found[matched] = subscription
            matched += 1
    return matched, joins


@numba.njit(cache=True)
def clear(rows: Ids, head: Ids) -> None:
    """Empty the binding tables that have rows."""
    for row in range(rows.shape[0]):
        head[rows[row, 0]] = EMPTY

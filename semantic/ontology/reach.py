"""Whether one node of an acyclic graph is above another: two indexes that give the same answers.

`ExactReach` is one bit for every pair of nodes, so that an answer is one look-up; it is for up to
a few thousand nodes. `SearchedReach` is for more: a bit for each node and each of the widest
nodes; the depth; and for each node two intervals of the numbers that a walk gives out, one
that holds only descendants and one that holds all of them (GRAIL, Yildirim et al., PVLDB 3(1),
2010; FERRARI, Seufert et al., ICDE 2013). What these leave open is searched from both ends.

Cost: `ExactReach` n²/8 bytes; `SearchedReach` 48 bytes a node, 16 MB of bits, and 12 bytes a node
and thread while it answers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from semantic.ontology.rows import Ids, Rows

BIT_BYTES = 16 * 1024 * 1024
"""How much memory `SearchedReach` spends on the widest nodes."""

MOST_WORDS = 16
"""Of how many words of 64 bits a node's row has at most: more would not answer more."""


THREAD_PAIRS, MOST_THREADS = 50_000, 8
"""So many pairs are worth a thread, and so many threads are used at most."""


class Reach(Protocol):
    """What an index answers."""

    def is_above(self, low: int, high: int) -> bool:
        """Whether `high` is `low` or above it."""
        ...

    def are_above(self, pairs: Ids) -> NDArray[np.bool_]:
        """Answer for pairs, shape ``(2, n)``: the lower ones first."""
        ...


class ExactReach:
    """One bit a pair of nodes.

    Parameters
    ----------
    parents
        The links upwards, without cycles.
    order
        All nodes, each after its parents.
    """

    def __init__(self, parents: Rows, order: Sequence[int]) -> None:
        self._bits = [0] * len(parents)
        for node in order:
            bits = 1 << node
            for parent in parents[node]:
                bits |= self._bits[parent]
            self._bits[node] = bits
        self._table: NDArray[np.uint8] | None = None

    def is_above(self, low: int, high: int) -> bool:
        """Whether `high` is `low` or above it."""
        return bool(self._bits[low] >> high & 1)

    def are_above(self, pairs: Ids) -> NDArray[np.bool_]:
        """Answer for pairs, shape ``(2, n)``: the lower ones first."""
        if self._table is None:
            width = (len(self._bits) + 7) // 8
            raw = b"".join(bits.to_bytes(width, "little") for bits in self._bits)
            self._table = np.frombuffer(raw, np.uint8).reshape(len(self._bits), width)
        low, high = pairs
        found: NDArray[np.bool_] = (self._table[low, high >> 3] >> (high & 7) & 1).astype(np.bool_)
        return found


class SearchedReach:
    """Labels, and a search for what they leave open; compiled.

    Parameters
    ----------
    parents, children
        The links, upwards and downwards, without cycles.
    order
        All nodes, each after its parents.
    depth
        The longest way to each node from a top.
    """

    def __init__(self, parents: Rows, children: Rows, order: Ids, depth: Ids) -> None:
        from semantic.ontology import kernels

        size = len(parents)
        records = np.full((size, 12), -1, np.int32)
        records[:, kernels.DEPTH] = depth
        records[:, kernels.UP], records[:, kernels.UPS] = parents.start[:-1], parents.degrees
        records[:, kernels.DOWN], records[:, kernels.DOWNS] = children.start[:-1], children.degrees
        tops = parents.empty()
        kernels.label(children.start, children.ids, tops, records, kernels.POST, 1)
        kernels.label(children.start, children.ids, tops, records, kernels.BACK_POST, -1)
        words = min(MOST_WORDS, BIT_BYTES // 8 // max(size, 1), size // 64)
        if words:
            shares = kernels.share(order, parents.ids, records)
            widest = np.argpartition(shares, -words * 64)[-words * 64 :]
            records[widest, kernels.RANK] = np.arange(widest.size)
            del shares, widest  # before more is allocated
        self._bits = np.zeros((size, words), np.uint64)
        kernels.mark(order, parents.ids, records, self._bits)
        self._parents, self._children, self._records = parents, children, records
        self._decide, self._reaches = kernels.decide, kernels.reaches

    def is_above(self, low: int, high: int) -> bool:
        """Whether `high` is `low` or above it."""
        known: int = 1 if low == high else self._decide(self._records, self._bits, low, high)
        if known < 0:  # only now the space for a search
            return bool(self.are_above(np.array([[low], [high]], np.int32))[0])
        return known == 1

    def are_above(self, pairs: Ids) -> NDArray[np.bool_]:
        """Answer for pairs, shape ``(2, n)``: the lower ones first."""
        count = pairs.shape[1]
        threads = min(os.cpu_count() or 1, MOST_THREADS, count // THREAD_PAIRS + 1)
        asked = np.ascontiguousarray(pairs, np.int32)
        found = np.empty(count, np.bool_)
        parts = [slice(n * count // threads, (n + 1) * count // threads) for n in range(threads)]
        if threads == 1:
            self._answer(asked, found)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda part: self._answer(asked[:, part], found[part]), parts))
        return found

    def _answer(self, pairs: Ids, found: NDArray[np.bool_]) -> None:
        scratch = np.zeros((3, len(self._parents)), np.int32)  # pages are touched when used
        self._reaches(
            self._parents.ids,
            self._children.ids,
            self._records,
            self._bits,
            scratch,
            np.ascontiguousarray(pairs),
            found,
        )

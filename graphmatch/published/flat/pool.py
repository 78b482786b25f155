"""Rows of numbers that are taken and given back: nodes and lists of trees, for compiled loops.

A row has a number from 1; 0 stands for none. The first number of a free row is the next free one.
Compiled loops cannot make arrays, so room is reserved before they take anything.

A `Pool` of nodes is one with as many columns as a node has fields. `Chains` are lists in blocks of
14 numbers, each as large as a line of a processor's cache.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.jit import kernel, part

Cells: TypeAlias = NDArray[np.int32]
Free: TypeAlias = NDArray[np.int64]

NEXT, SIZE, FIRST = 0, 1, 2
"""The columns of a block: the block after it, how many numbers it has, and the first of them."""
BLOCK = 16


class Pool:
    """Rows of equal width.

    Parameters
    ----------
    width
        How many numbers a row has.

    Attributes
    ----------
    rows
        Shape ``(rows, width)``; row 0 is not in use.
    free
        Shape ``(2,)``: the first free row, and how many there are.

    Examples
    --------
    >>> pool = Pool(2)
    >>> first, second = pool.take(), pool.take()
    >>> pool.rows[second].tolist(), len(pool)
    ([0, 0], 2)
    >>> pool.give(first)
    >>> pool.take() == first
    True
    """

    def __init__(self, width: int) -> None:
        self.rows: Cells = np.zeros((1, width), np.int32)
        self.free: Free = np.zeros(2, np.int64)

    def __len__(self) -> int:
        """Return how many rows are in use."""
        return int(self.rows.shape[0] - 1 - self.free[1])

    @property
    def nbytes(self) -> int:
        """How large the arrays are."""
        return self.rows.nbytes + self.free.nbytes

    def reserve(self, count: int) -> None:
        """See to it that some rows are free."""
        if self.free[1] >= count:
            return
        old, width = self.rows.shape
        more = max(old, count)
        rows = np.zeros((old + more, width), np.int32)
        rows[:old] = self.rows
        rows[old:, 0] = np.arange(old + 1, old + more + 1)
        rows[-1, 0] = self.free[0]
        self.free[:] = old, self.free[1] + more
        self.rows = rows

    def take(self) -> int:
        """Return the number of a row that was free; it has zeros."""
        self.reserve(1)
        return int(_take(self.rows, self.free))

    def give(self, row: int) -> None:
        """Give a row back."""
        _give(self.rows, self.free, row)


class Chains(Pool):
    """Many lists of numbers, without an order.

    A list is known by its first block, which changes; 0 is an empty one.

    Examples
    --------
    >>> chains = Chains()
    >>> numbers = chains.put(chains.put(0, 7), 8)
    >>> chains.of(numbers)
    [7, 8]
    >>> chains.of(chains.drop(numbers, 7))
    [8]
    """

    def __init__(self) -> None:
        super().__init__(BLOCK)

    def put(self, head: int, number: int) -> int:
        """Put a number into a list, and return its first block."""
        self.reserve(1)
        return int(_put(self.rows, self.free, head, number))

    def drop(self, head: int, number: int) -> int:
        """Take a number out of a list, and return its first block."""
        return int(_drop(self.rows, self.free, head, number))

    def of(self, head: int) -> list[int]:
        """Return the numbers of a list."""
        numbers: list[int] = []
        while head:
            block = self.rows[head]
            numbers += block[FIRST : FIRST + block[SIZE]].tolist()
            head = int(block[NEXT])
        return numbers


@part
def take(rows: Cells, free: Free) -> int:
    """Return the number of a row that was free, with zeros in it; there has to be one."""
    row = free[0]
    free[0] = rows[row, 0]
    free[1] -= 1
    for column in range(rows.shape[1]):
        rows[row, column] = 0
    return int(row)


@part
def give(rows: Cells, free: Free, row: int) -> None:
    """Give a row back."""
    rows[row, 0] = free[0]
    free[0] = row
    free[1] += 1


@part
def put(blocks: Cells, free: Free, head: int, number: int) -> int:
    """Put a number into a list, and return its first block; a row has to be free."""
    if head == 0 or blocks[head, SIZE] == BLOCK - FIRST:
        block = take(blocks, free)
        blocks[block, NEXT] = head
        head = block
    blocks[head, FIRST + blocks[head, SIZE]] = number
    blocks[head, SIZE] += 1
    return head


@part
def drop(blocks: Cells, free: Free, head: int, number: int) -> int:
    """Take a number out of a list: the last of the first block comes into its place."""
    last = blocks[head, FIRST + blocks[head, SIZE] - 1]
    block = head
    while block:
        for place in range(FIRST, FIRST + blocks[block, SIZE]):
            if blocks[block, place] == number:
                blocks[block, place] = last
                blocks[head, SIZE] -= 1
                rest = int(blocks[head, NEXT]) if blocks[head, SIZE] == 0 else head
                if rest != head:
                    give(blocks, free, head)
                return rest
        block = blocks[block, NEXT]
    return head


@kernel
def _take(rows: Cells, free: Free) -> int:
    return take(rows, free)


@kernel
def _give(rows: Cells, free: Free, row: int) -> None:
    give(rows, free, row)


@kernel
def _put(blocks: Cells, free: Free, head: int, number: int) -> int:
    return put(blocks, free, head, number)


@kernel
def _drop(blocks: Cells, free: Free, head: int, number: int) -> int:
    return drop(blocks, free, head, number)

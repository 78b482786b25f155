"""The exclusive and the inclusive method of DEXIN, as loops over slots and columns.

Fan, Liu, Tang: "DEXIN: A fast content-based multi-attribute event matching algorithm using dynamic
exclusive and inclusive methods", Future Generation Computer Systems 2017, section 3.3. What is
decided where the paper leaves it open is told by `graphmatch.published.dexin`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.flat.buckets import Arrays, Numbers, Places, Values
from graphmatch.published.jit import kernel, part

Marks: TypeAlias = NDArray[np.bool_]


@kernel
def outside(lows: Places, highs: Places, alpha: int, beta: int) -> int:
    """Return how many entries there are in the slots from alpha on, and in those up to beta."""
    total = 0
    for slot in range(max(alpha, 0), lows.size):
        total += lows[slot]
    for slot in range(min(beta + 1, highs.size)):
        total += highs[slot]
    return total


@part
def _first(values: Values, start: int, end: int, value: float, above: bool) -> tuple[int, int]:
    """Return where the first end is that is above a value, or not below it; and the comparisons."""
    steps = 0
    while start < end:
        middle = (start + end) // 2
        steps += 1
        if values[middle] < value or (above and values[middle] == value):
            start = middle + 1
        else:
            end = middle
    return start, steps


@kernel
def exclude(
    lows: Arrays, highs: Arrays, starts: tuple[int, int], value: float, left: Marks
) -> tuple[int, int]:
    """Take out what a value is outside of (algorithm 1): entries walked over, ends compared."""
    walked, compared = 0, 0
    alpha, beta = starts
    begin, size, numbers, values = lows
    for slot in range(max(alpha, 0), size.size):
        start, end = begin[slot], begin[slot] + size[slot]
        if slot == alpha:  # from the first end above the value on
            start, steps = _first(values, start, end, value, True)
            compared += steps
        for place in range(start, end):
            left[numbers[place]] = False
        walked += end - start
    begin, size, numbers, values = highs
    for slot in range(min(beta + 1, size.size)):
        start, end = begin[slot], begin[slot] + size[slot]
        if slot == beta:  # to the last end below the value
            end, steps = _first(values, start, end, value, False)
            compared += steps
        for place in range(start, end):
            left[numbers[place]] = False
        walked += end - start
    return walked, compared


@kernel
def collect(left: Marks, survivors: Numbers) -> int:
    """Write down the numbers that are left: how many."""
    count = 0
    for number in range(left.size):  # without a branch: as fast however many are left
        survivors[count] = number
        count += left[number]
    return count


@kernel
def include(ends: Values, value: float, survivors: Numbers, count: int) -> int:
    """Keep those whose constraint holds, or who have none (algorithm 2): how many."""
    kept = 0
    for place in range(count):
        number = survivors[place]
        low, high = ends[number, 0], ends[number, 1]
        survivors[kept] = number
        kept += low != low or (low <= value and value <= high)
    return kept

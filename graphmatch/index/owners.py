"""Who has a row: the subscriptions of each row, which usually is one.

One owner stands in the row's own place. Several stand together in a block of a power of two, which
is exchanged for a larger or smaller one; free blocks are chained in the array itself. Each owner
knows its position (`graphmatch.index.records`), so that it leaves at once, however many there are.

Cost: 4 bytes a row, and 4 to 16 an owner where there are several.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.runs import Array, Ids, roomy
from semantic.jit import kernel, part

NOBODY = -1
_SIZE, _ROOM, _HEAD = range(3)
"""What a block begins with: how many owners it has, and its room (it holds 2**room)."""
_ROOMS = 31
_SMALLEST = 16


class Owned(NamedTuple):
    """Owners as arrays.

    Parameters
    ----------
    one
        By row: its owner, -1 for none; below that, -2 less where its block begins.
    blocks
        All blocks.
    free
        The first free block of each room, or -1.
    end
        One element: where the last block ends.
    """

    one: Ids
    blocks: Ids
    free: Ids
    end: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, in use or not."""
        return sum(array.nbytes for array in self)

    def with_room(self, rows: int, places: int) -> Owned:
        """Return the owners, to write on, with room for the rows below and more in blocks."""
        end = int(self.end[0]) + places
        if rows <= self.one.size and end <= self.blocks.size and self.end.flags.writeable:
            return self
        return Owned(
            roomy(self.one, rows, NOBODY),
            roomy(self.blocks, end),
            roomy(self.free, 0),
            roomy(self.end, 0),
        )

    def of(self, rows: Ids) -> tuple[Ids, Ids]:
        """Return the owners of rows, and for each of them its row's place among these."""
        numbers, which = np.empty(len(rows) + 16, np.int32), np.empty(len(rows) + 16, np.int32)
        needed = gather(self, rows, numbers, which)
        if needed > len(numbers):
            numbers, which = np.empty(needed, np.int32), np.empty(needed, np.int32)
            gather(self, rows, numbers, which)
        return numbers[:needed], which[:needed]

    def arrays(self) -> dict[str, Array]:
        """Return all that is to be saved."""
        return {**self._asdict(), "blocks": self.blocks[: int(self.end[0])]}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> Owned:
        """Return the owners that gave these arrays, which may be read-only."""
        return cls(*(np.asarray(arrays[name]) for name in cls._fields))


def nobody() -> Owned:
    """Return the owners of no rows."""
    return Owned(
        np.full(_SMALLEST, NOBODY, np.int32),
        np.zeros(_SMALLEST, np.int32),
        np.full(_ROOMS, -1, np.int32),
        np.zeros(1, np.int64),
    )


@kernel
def gather(owned: Owned, rows: Ids, numbers: Ids, which: Ids) -> int:
    """Write the owners of rows, as far as there is room; return how many there are."""
    count = 0
    for n in range(rows.size):
        row = rows[n]
        one = owned.one[row] if 0 <= row < owned.one.size else NOBODY
        if one >= 0:
            if count < numbers.size:
                numbers[count], which[count] = one, n
            count += 1
        elif one < NOBODY:
            start = -2 - int(one)
            size = int(owned.blocks[start + _SIZE])
            for place in range(start + _HEAD, start + _HEAD + size):
                if count < numbers.size:
                    numbers[count], which[count] = owned.blocks[place], n
                count += 1
    return count


@part
def _block(owned: Owned, room: int) -> int:
    """Return where an empty block begins, or -1 if there is no place for one."""
    start = int(owned.free[room])
    if start >= 0:
        owned.free[room] = owned.blocks[start]
    else:
        start = int(owned.end[0])
        if start + _HEAD + (1 << room) > owned.blocks.size:
            return -1
        owned.end[0] = start + _HEAD + (1 << room)
    owned.blocks[start + _SIZE], owned.blocks[start + _ROOM] = 0, room
    return start


@part
def _free(owned: Owned, start: int) -> None:
    room = owned.blocks[start + _ROOM]
    owned.blocks[start] = owned.free[room]
    owned.free[room] = start


@part
def _moved(owned: Owned, start: int, room: int) -> int:
    """Exchange a block for one of another room; return where that begins, or -1."""
    other = _block(owned, room)
    if other >= 0:
        size = int(owned.blocks[start + _SIZE])
        owned.blocks[other + _SIZE] = size
        for n in range(_HEAD, _HEAD + size):
            owned.blocks[other + n] = owned.blocks[start + n]
        _free(owned, start)
    return other


@part
def link(owned: Owned, row: int, number: int) -> int:
    """Give a row one more owner; return its position, or -1 if blocks need more place first."""
    one = int(owned.one[row])
    if one == NOBODY:
        owned.one[row] = number
        return 0
    if one >= 0:
        start = _block(owned, 1)
        if start < 0:
            return -1
        owned.blocks[start + _SIZE], owned.blocks[start + _HEAD] = 1, one
    else:
        start = -2 - one
        room = int(owned.blocks[start + _ROOM])
        if owned.blocks[start + _SIZE] == 1 << room:
            start = _moved(owned, start, room + 1)
            if start < 0:
                return -1
    owned.one[row] = -2 - start
    size = int(owned.blocks[start + _SIZE])
    owned.blocks[start + _HEAD + size] = number
    owned.blocks[start + _SIZE] = size + 1
    return size


@part
def unlink(owned: Owned, row: int, position: int) -> int:
    """Take an owner from a row; return the one that has its position now, or -1."""
    one = int(owned.one[row])
    if one >= 0:
        owned.one[row] = NOBODY
        return -1
    start = -2 - one
    last = int(owned.blocks[start + _SIZE]) - 1
    moved = -1
    if position != last:
        moved = int(owned.blocks[start + _HEAD + last])
        owned.blocks[start + _HEAD + position] = moved
    owned.blocks[start + _SIZE] = last
    room = int(owned.blocks[start + _ROOM])
    if last == 1:
        owned.one[row] = owned.blocks[start + _HEAD]
        _free(owned, start)
    elif 4 * last <= 1 << room:
        smaller = _moved(owned, start, room - 1)
        if smaller >= 0:
            owned.one[row] = -2 - smaller
    return moved

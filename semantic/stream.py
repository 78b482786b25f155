"""Bytes from files, pipes and memory, taken as they come."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from stat import S_ISREG
from typing import Protocol, runtime_checkable

PIECE = 1 << 16
"""How many bytes are asked for at once."""


@runtime_checkable
class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, fewer only at the end."""


def may_wait(stream: Readable) -> bool:
    """Whether reading may have to wait for somebody: of all but files and bytes in memory.

    Examples
    --------
    >>> may_wait(io.BytesIO(b"abc"))
    False
    """
    if isinstance(stream, io.BytesIO):
        return False
    try:
        number = stream.fileno() if isinstance(stream, io.IOBase) else -1
        return number < 0 or not S_ISREG(os.fstat(number).st_mode)
    except (OSError, AttributeError, ValueError):  # it is no file of the system, or closed
        return True


def pieces(stream: Readable) -> Iterator[bytes]:
    """Yield a stream's bytes; of a pipe what has arrived, without waiting for more.

    Examples
    --------
    >>> list(pieces(io.BytesIO(b"abc")))
    [b'abc']
    """
    read = stream.read1 if isinstance(stream, io.BufferedIOBase) else stream.read
    while piece := read(PIECE):
        yield piece


class Pieces(io.RawIOBase):
    """A stream of the pieces of an iterator.

    Examples
    --------
    >>> Pieces(iter([b"ab", b"c"])).read()
    b'abc'
    """

    def __init__(self, pieces: Iterator[bytes], name: str = "<stream>") -> None:
        self.name = name
        self._pieces = pieces
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Return that this stream can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer from the piece that is begun, or else the next one."""
        if not self._ready:
            self._ready = memoryview(next(self._pieces, b""))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

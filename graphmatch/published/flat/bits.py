"""Lists of numbers in bit arrays, one list for each key, all of one length.

CTPS's indexes are such tables: of the nodes of a tree, of strings, of cells (sections 4.1 and
4.2). A key that no number has left goes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from bitarray import bitarray
from bitarray.util import zeros

Key = TypeVar("Key", bound=Hashable)

_ENTRY = 180
"""About how many bytes a bit array has beside its bits, with its entry in a table (an estimate)."""


def no_bits(length: int) -> bitarray:
    """Return a bit array without a number; the first bits of a byte are the lower ones."""
    return zeros(length, "little")


class BitLists(Generic[Key]):
    """A table of bit arrays.

    Parameters
    ----------
    length
        How many numbers there may be.

    Attributes
    ----------
    of
        Key to its list: CTPS's ``hashTable`` with each node's ``sid``.
    all
        The numbers of all lists: CTPS's ``SID``. A number is under one key.

    Examples
    --------
    >>> lists = BitLists[str](8)
    >>> lists.add("computer", 1)
    >>> lists.add("product", 2)
    >>> sid = bitarray("11110000", "little")
    >>> lists.keep(sid, ["laptop", "computer"])
    >>> sid
    bitarray('11010000')
    >>> lists.discard("computer", 1)
    >>> len(lists), lists.all
    (1, bitarray('00100000'))
    """

    def __init__(self, length: int) -> None:
        self.of: dict[Key, bitarray] = {}
        self.all = no_bits(length)

    def __len__(self) -> int:
        return len(self.of)

    @property
    def nbytes(self) -> int:
        """How large the arrays are; what is around them is estimated."""
        return sum(bits.nbytes + _ENTRY for bits in (self.all, *self.of.values()))

    def resize(self, length: int) -> None:
        """Make all arrays longer."""
        for bits in (self.all, *self.of.values()):
            bits.extend(no_bits(length - len(bits)))

    def add(self, key: Key, number: int) -> None:
        """Put a number into a key's list (Algorithm 3, insertTreeConstraint)."""
        bits = self.of.get(key)
        if bits is None:
            bits = self.of[key] = no_bits(len(self.all))
        bits[number] = self.all[number] = 1

    def discard(self, key: Key, number: int) -> None:
        """Take a number out of a key's list, if it is there."""
        bits = self.of.get(key)
        if bits is not None:
            bits[number] = self.all[number] = 0
            if not bits.any():
                del self.of[key]

    def mark(self, found: bitarray, keys: Iterable[Key]) -> None:
        """Put the numbers that are under some keys to those found."""
        for key in keys:
            bits = self.of.get(key)
            if bits is not None:
                found |= bits

    def keep(self, sid: bitarray, keys: Iterable[Key]) -> None:
        """Leave of the numbers here only those under one of some keys (Algorithm 7, treeMatch)."""
        left = ~self.all
        self.mark(left, keys)
        sid &= left

"""Arrays that grow by a share of their length, so that an element costs the same however many.

And the distinct rows of arrays.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


_ODD = np.uint64(0x9E3779B97F4A7C15)
_LINE = 64
"""Bytes of a line of memory."""


def aligned(shape: tuple[int, ...], dtype: np.dtype[_Scalar]) -> NDArray[_Scalar]:
    """Return an array of zeros that begins where a line of memory does.

    Then what is as long as a line, or half as long, is in one.

    Examples
    --------
    >>> aligned((3, 2), np.dtype(np.int32)).ctypes.data % 64
    0
    """
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + _LINE, np.uint8)
    begin = -raw.ctypes.data % _LINE
    return raw[begin : begin + size].view(dtype).reshape(shape)


def grown(array: NDArray[_Scalar], size: int, more: float = 1.0) -> NDArray[_Scalar]:
    """Return an array of at least so many elements that begins with the given ones.

    The new elements are 0, unless the caller sets them.

    Parameters
    ----------
    more
        How much longer it is at the least, as a share of its length.

    Examples
    --------
    >>> len(grown(np.arange(3), 4)), len(grown(np.arange(3), 2))
    (6, 3)
    """
    if size <= len(array):
        return array
    least = len(array) + math.ceil(more * len(array))
    new = aligned((max(size, least), *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    return new


def distinct(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return the distinct rows, and which of them each is.

    Examples
    --------
    >>> some, which = distinct(np.array([[4, 5], [4, 6], [4, 5]]))
    >>> some[which].tolist()
    [[4, 5], [4, 6], [4, 5]]
    """
    if (rows == rows[0]).all():
        return rows[:1], np.zeros(len(rows), np.intp)
    hashes = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        hashes = (hashes ^ column.astype(np.uint64)) * _ODD
        hashes ^= hashes >> np.uint64(29)
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    if (rows == rows[first[inverse]]).all():
        return rows[first], inverse
    some, inverse = np.unique(rows, axis=0, return_inverse=True)
    return some, inverse.ravel()

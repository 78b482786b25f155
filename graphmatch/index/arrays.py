"""Arrays that grow by a share of their length, so that an element costs the same however many."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


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

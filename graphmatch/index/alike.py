"""Which rows ask the same: of those that come together, by hashes of what they ask.

Hashes only say where to look: what is taken for equal has been compared.

Cost: a sort of the hashes.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.contents import Hashes
from graphmatch.index.shapes import Asked

_ODD = np.uint64(0x9E3779B97F4A7C15)
_OTHER_ODD = np.uint64(0xC2B2AE3D27D4EB4F)


def hashes_of(ask: Hashable, asked: Asked) -> NDArray[np.uint64]:
    """Return hashes of what rows of one program ask, whatever table they are in.

    Parameters
    ----------
    ask
        What all of them have in common.
    """
    leaves = asked.lows.view(np.uint64) * _ODD ^ asked.highs.view(np.uint64) * _OTHER_ODD
    leaves ^= asked.ids.astype(np.uint64) * _ODD ^ asked.keys.view(np.uint64) * _OTHER_ODD
    leaves ^= leaves >> np.uint64(32)
    seed = hash(ask) & 0xFFFFFFFFFFFFFFFF
    hashes = np.full(len(leaves), seed, np.uint64)
    for leaf in leaves.T:
        hashes = (hashes ^ leaf) * _ODD
        hashes ^= hashes >> np.uint64(29)
    return hashes


def short(hashes: NDArray[np.uint64]) -> Hashes:
    """Return hashes of half the length."""
    return (hashes >> np.uint64(32)).astype(np.uint32)


def alike(hashes: NDArray[np.uint64], asked: Asked) -> NDArray[np.intp]:
    """Return for each row the first one that asks the same."""
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    first_of = first[inverse]
    same = ((asked.keys == asked.keys[first_of]) & (asked.ids == asked.ids[first_of])).all(axis=1)
    same &= equal(asked.lows, asked.lows[first_of]) & equal(asked.highs, asked.highs[first_of])
    return np.where(same, first_of, np.arange(len(first_of)))


def equal(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether rows are equal; not a number is equal to itself."""
    same: NDArray[np.bool_] = ((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=1)
    return same

"""How loops are compiled.

Numba counts references to arrays wherever one is passed on, in loops too; the loops here make no
arrays, and without the counting they are two to three times as fast. A small function is compiled
into those that call it only if it is not cached by itself. Importing this module imports numba;
with ``NUMBA_DISABLE_JIT=1`` the functions run as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

_MISSING = 'the algorithms of papers need numba: pip install "graphmatch[papers]"'

try:
    import numba
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(_MISSING, name="numba") from error

_Function = TypeVar("_Function", bound=Callable[..., Any])

_PLAIN: dict[str, Any] = {"_nrt": False}
_CACHED: dict[str, Any] = {"cache": True, "nogil": True, **_PLAIN}


def kernel(function: _Function) -> _Function:
    """Compile a function that Python calls: it takes arrays and scalars, and makes no arrays."""
    compiled: _Function = numba.njit(**_CACHED)(function)
    return compiled


def part(function: _Function) -> _Function:
    """Compile a function that kernels are made of."""
    compiled: _Function = numba.njit(**_PLAIN)(function)
    return compiled


@part
def at(place: int) -> int:
    """Return a place in an array as a number that cannot be negative.

    Otherwise each look-up tests whether it counts from the end: that takes half the time of a join.
    """
    return np.uint64(place)  # type: ignore[return-value]

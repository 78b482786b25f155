"""How loops over arrays are compiled, where numba is installed (the extra ``papers``).

Without it the very same functions run as plain Python, some hundred times as slow.

Numba counts references to arrays wherever one is passed on, in loops too; the loops here make no
arrays, and without the counting they are two to three times as fast. A small function is compiled
into those that call it only if it is not cached by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

_NUMBA: Any = import_module("numba") if find_spec("numba") else None

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a function that Python calls: it takes arrays and scalars, and makes no arrays."""
    return _compiled(function, cache=True, nogil=True)


def part(function: _Function) -> _Function:
    """Compile a function that kernels are made of."""
    return _compiled(function)


def _compiled(function: _Function, **options: Any) -> _Function:
    if _NUMBA is None:
        return function
    options["_nrt"] = False
    compiled: _Function = _NUMBA.njit(**options)(function)
    return compiled


@part
def at(place: int) -> int:
    """Return a place in an array as a number that cannot be negative.

    Otherwise each look-up tests whether it counts from the end: that takes half the time of a join.
    """
    return np.uint64(place)  # type: ignore[return-value]

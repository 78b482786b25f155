"""Compilation of loops over arrays, if numba is installed (the extra ``papers``).

Without it the same functions run as plain Python, about a hundred times slower.

Numba counts references to arrays wherever one is passed on, in loops too. A function that makes no
arrays is two to three times as fast without the counting, which numba's option ``_nrt`` turns off.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

_NUMBA: Any = import_module("numba") if find_spec("numba") else None

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Return a function compiled by numba, or unchanged if numba is not installed.

    It must take only arrays and scalars, and create no arrays. Compiled code is cached on disk.
    """
    if _NUMBA is None:
        return function
    compiled: _Function = _NUMBA.njit(cache=True, nogil=True, _nrt=False)(function)
    return compiled

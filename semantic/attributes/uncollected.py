"""Python's search for circles of objects, put off while very many terms are made.

Terms are in no circles, but each counts as a container: making 400,000 takes three times as long
with the search as without, and longer the more objects there are.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Put off the search, and go on with it afterwards where it went on before.

    Examples
    --------
    >>> before = gc.isenabled()
    >>> with uncollected():
    ...     gc.isenabled()
    False
    >>> gc.isenabled() == before
    True
    """
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()

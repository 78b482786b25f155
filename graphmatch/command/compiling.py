"""A line for who waits while loops are compiled, once on a machine.

Numba keeps what it compiled in a cache; where that is empty, the first publication takes half a
minute. Numba says when it really compiles, so the line comes then and only then.

Source: numba's events, https://numba.readthedocs.io/en/stable/developer/event_api.html.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

from numba.core import event

from graphmatch.command.console import CommandConsole

_Parameters = ParamSpec("_Parameters")

COMPILING = "compiling the index's loops, once on this machine: about half a minute …"


class _Once(event.Listener):
    """Says it when the first loop is compiled."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, _: Any) -> None:
        """Say it, unless it was said."""
        if not self._said:
            self._said = True
            CommandConsole(stderr=True).print(COMPILING)

    def on_end(self, _: Any) -> None:
        """Say nothing."""


@contextmanager
def telling() -> Iterator[None]:
    """Say on standard error that loops are compiled, if any are."""
    with event.install_listener("numba:compile", _Once()):
        yield


def told(run: Callable[_Parameters, int]) -> Callable[_Parameters, int]:
    """Make a command say that loops are compiled, if any are."""

    @wraps(run)
    def telling_run(*given: _Parameters.args, **named: _Parameters.kwargs) -> int:
        with telling():
            return run(*given, **named)

    return telling_run

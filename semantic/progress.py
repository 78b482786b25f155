"""Progress of long calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Progress(NamedTuple):
    """The progress of a long call; ``str()`` formats it for people.

    Parameters
    ----------
    what
        The units: ``"ontology files"`` or ``"subscriptions"``.
    done
        The number of units that are done.
    total
        The number of all units; ``None`` if it is unknown.

    Examples
    --------
    >>> print(Progress("subscriptions", 8192, 10_000), Progress("subscriptions", 8192), sep=", ")
    8,192 of 10,000 subscriptions, 8,192 subscriptions
    """

    what: str
    done: int
    total: int | None = None

    def __str__(self) -> str:
        """Return the counts and the units."""
        of = "" if self.total is None else f" of {self.total:,}"
        return f"{self.done:,}{of} {self.what}"


OnProgress: TypeAlias = Callable[[Progress], None]
"""Callback that receives the progress of a call, in the thread of the call."""


def ignore(_: object) -> None:
    """Do nothing: the default callback."""

"""The clock of queries: ``NOW()`` is what whoever evaluates says, not the machine's time.

A query that says ``NOW()`` has to give the same answer when it is asked again, in a test or on
another day's archive.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]
"""Returns the time, with its zone."""


def utc_now() -> datetime:
    """Return the machine's time."""
    return datetime.now(UTC)


def moment(now: datetime) -> tuple[float, int]:
    """Return a time as seconds since the beginning of 1970 in UTC, and the minutes of its zone.

    Examples
    --------
    >>> moment(datetime(1970, 1, 2, tzinfo=UTC))
    (86400.0, 0)
    """
    zone = None if now.tzinfo is UTC else now.utcoffset()
    return now.timestamp(), zone // timedelta(minutes=1) if zone else 0


def now_text(now: datetime) -> str:
    """Return a time as an ``xsd:dateTime`` is written.

    Examples
    --------
    >>> now_text(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    return now.isoformat().replace("+00:00", "Z")

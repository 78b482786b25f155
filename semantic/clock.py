"""Clock of queries: ``NOW()`` is the time that the caller sets, not the machine's time.

A query with ``NOW()`` must give the same answer when it is repeated, in a test or on an archive of
another day.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]
"""A function that returns the time with its zone."""


def utc_now() -> datetime:
    """Return the machine's time in UTC."""
    return datetime.now(UTC)


def moment(now: datetime) -> tuple[float, int]:
    """Return a time as seconds since the beginning of 1970 in UTC, and its zone in minutes.

    Examples
    --------
    >>> moment(datetime(1970, 1, 2, tzinfo=UTC))
    (86400.0, 0)
    """
    zone = None if now.tzinfo is UTC else now.utcoffset()
    return now.timestamp(), zone // timedelta(minutes=1) if zone else 0


def now_text(now: datetime) -> str:
    """Write a time as ``xsd:dateTime``.

    Examples
    --------
    >>> now_text(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    return now.isoformat().replace("+00:00", "Z")

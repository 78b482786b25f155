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

_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND, _MINUTE = timedelta(microseconds=1), timedelta(minutes=1)


def utc_now() -> datetime:
    """Return the machine's current time in UTC."""
    return datetime.now(UTC)


def moment(now: datetime) -> tuple[int, int | None]:
    """Return a time as microseconds since 1970-01-01 in UTC, and its UTC offset in minutes.

    For a time without a zone, the microseconds count from 1970-01-01 without a zone, and the offset
    is ``None``.

    Examples
    --------
    >>> moment(datetime(1970, 1, 2, tzinfo=UTC))
    (86400000000, 0)
    """
    zone = now.utcoffset()
    if zone is None:
        return (now - _BEGIN.replace(tzinfo=None)) // _MICROSECOND, None
    return (now - _BEGIN) // _MICROSECOND, zone // _MINUTE


def now_text(now: datetime) -> str:
    """Return a time in the lexical form of ``xsd:dateTime``.

    Examples
    --------
    >>> now_text(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    return now.isoformat().replace("+00:00", "Z")

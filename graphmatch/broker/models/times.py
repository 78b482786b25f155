"""Times in the store: milliseconds since 1970, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def millis(time: datetime) -> int:
    """Return a time in milliseconds since 1970."""
    return int(time.timestamp() * 1000)


def time_of(value: int) -> datetime:
    """Return the time of a number of milliseconds since 1970."""
    return datetime.fromtimestamp(value / 1000, UTC)

"""Times of the store: milliseconds since 1970, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def millis(time: datetime) -> int:
    """Return a time as the store has it."""
    return int(time.timestamp() * 1000)


def time_of(value: int) -> datetime:
    """Return a time of the store."""
    return datetime.fromtimestamp(value / 1000, UTC)

"""Attempts to deliver: claimed deliveries, results, the retry schedule, and circuit breakers.

Standard Webhooks recommends ten attempts over 75 hours. Each wait is a little longer or shorter at
random, so that deliveries that failed together are not retried together. A circuit breaker stops
sending to a host that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from random import Random
from typing import NamedTuple

RETRY_SCHEDULE = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    *(timedelta(hours=hours) for hours in (2, 5, 10, 14, 20, 24)),
)
"""Wait after the first attempt, the second, and so on. The tenth attempt is the last."""
JITTER = 0.1
"""Maximum random change of a wait, as a fraction of it."""
GIVEN_UP = sum(RETRY_SCHEDULE, timedelta())
"""Maximum time that a delivery waits for a host in back-off."""
LONGEST_RETRY_AFTER = timedelta(days=1)
"""Maximum time of a ``Retry-After`` header; longer ones are shortened to it."""
FAILURES = 5
"""Number of failures in a row that opens a breaker."""
OPEN_SECONDS, OPEN_SECONDS_MOST = 60.0, 3600.0
"""Time that a breaker is open at first, and the maximum, unless the host asks for more.

It doubles after each failed probe.
"""
_LONGEST = max(timedelta(seconds=OPEN_SECONDS_MOST), LONGEST_RETRY_AFTER)
"""A later end was written while the clock was wrong."""


class ClaimedDelivery(NamedTuple):
    """A claimed row of the outbox: a message to send.

    Parameters
    ----------
    id, subscription, kind, host, attempt, callback
        Columns of the table. ``attempt`` is the number of attempts so far. ``callback`` is set for
        deliveries of the WebSub hub.
    created_at, claimed_until
        Milliseconds since 1970.
    """

    id: int
    subscription: int
    kind: str
    host: str
    attempt: int
    callback: int | None
    created_at: int
    claimed_until: int


class RetryDecision(Enum):
    """Decision about a delivery after an attempt."""

    DELIVERED = "delivered"  # The receiver accepted it.
    RETRY = "retry"  # The receiver may accept it later.
    GONE = "gone"  # The receiver wants no more deliveries, so the subscription is paused.
    REFUSED = "refused"  # It cannot be delivered, now or later.


@dataclass(slots=True)
class AttemptResult:
    """The result of one attempt.

    Parameters
    ----------
    decision
        Decision about the delivery.
    reason
        Short text that the subscriber may see. It contains no secrets.
    status
        Status of HTTP or SMTP; ``None`` if there was no answer.
    seconds
        Duration of the attempt.
    retry_after
        Wait that the receiver asks for.
    host_failed
        Whether the host failed, so that other messages to it must wait. It did not answer, or it
        answered 429 or 5xx. A 404 does not count.
    """

    decision: RetryDecision
    reason: str
    status: int | None = None
    seconds: float = 0.0
    retry_after: timedelta | None = None
    host_failed: bool = False


def next_try(tries: int, result: AttemptResult, now: datetime, random: Random) -> datetime | None:
    """Return the time of the next attempt, or ``None`` after the last one.

    Parameters
    ----------
    tries
        Number of attempts, including that of `result`.

    Examples
    --------
    >>> from datetime import UTC
    >>> now = datetime(2026, 1, 1, tzinfo=UTC)
    >>> failed = AttemptResult(RetryDecision.RETRY, "503", 503)
    >>> next_try(2, failed, now, Random(1)).isoformat(timespec="seconds")
    '2026-01-01T00:04:38+00:00'
    >>> next_try(10, failed, now, Random(1))
    """
    if result.decision is not RetryDecision.RETRY or tries > len(RETRY_SCHEDULE):
        return None
    wait = RETRY_SCHEDULE[tries - 1] * random.uniform(1 - JITTER, 1 + JITTER)
    return now + max(wait, result.retry_after or timedelta())


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """The circuit breaker of one host; the store keeps both fields.

    Parameters
    ----------
    failures
        Number of failures in a row.
    open_until
        Time of the next probe, if the breaker is open.

    Examples
    --------
    >>> from datetime import UTC
    >>> now = datetime(2026, 1, 1, tzinfo=UTC)
    >>> failed = AttemptResult(RetryDecision.RETRY, "", host_failed=True)
    >>> breaker = CircuitBreaker()
    >>> for _ in range(FAILURES):
    ...     breaker = breaker.after(failed, now)
    >>> breaker.is_open(now), breaker.open_until.isoformat()
    (True, '2026-01-01T00:01:00+00:00')
    >>> later = now + timedelta(minutes=1)
    >>> breaker.is_open(later)
    False
    """

    failures: int = 0
    open_until: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """Whether requests are not allowed."""
        return self.open_until is not None and timedelta(0) < self.open_until - now <= _LONGEST

    def after(self, result: AttemptResult, now: datetime) -> CircuitBreaker:
        """Return the breaker after an attempt; an attempt that sent nothing changes nothing."""
        if result.decision is RetryDecision.REFUSED and result.status is None:
            return self
        if not result.host_failed:
            return CircuitBreaker()
        failures = self.failures + 1
        if failures < FAILURES:
            return CircuitBreaker(failures)
        doubled = OPEN_SECONDS * 2.0 ** min(failures - FAILURES, 32)
        pause = timedelta(seconds=min(doubled, OPEN_SECONDS_MOST))
        return CircuitBreaker(failures, now + max(pause, result.retry_after or timedelta()))

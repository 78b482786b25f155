"""When to try a delivery again, and when to spare a host.

The schedule is that of Standard Webhooks: ten tries over 75 hours, each wait a little longer or
shorter by chance, so that what failed together does not come back together. A `CircuitBreaker` keeps one
dead host from costing an attempt, and its time, for each delivery to it: after some failures in a
row nothing is sent to it for a while, then one delivery tries it. Only what was sent to a host says
something of it; what comes *from* it does not. Both are pure: time and chance are given.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

from graphmatch.broker.models.attempt import AttemptResult, RetryDecision

RETRY_SCHEDULE = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
"""What to wait after the first try, the second, and so on; the tenth is the last."""
JITTER = 0.1
"""A wait is so much longer or shorter, as a part of it, at most."""


def next_try(tries: int, outcome: AttemptResult, now: datetime, random: Random) -> datetime | None:
    """Return when to try again; ``None`` where it is given up.

    Parameters
    ----------
    tries
        How many there were, with the one that ended in `outcome`.

    Examples
    --------
    >>> from datetime import UTC
    >>> now, failed = datetime(2026, 1, 1, tzinfo=UTC), AttemptResult(RetryDecision.RETRY, "503", 503)
    >>> next_try(2, failed, now, Random(1)).isoformat(timespec="seconds")
    '2026-01-01T00:04:38+00:00'
    >>> next_try(10, failed, now, Random(1))
    """
    if outcome.verdict is not RetryDecision.RETRY or tries > len(RETRY_SCHEDULE):
        return None
    wait = RETRY_SCHEDULE[tries - 1] * random.uniform(1 - JITTER, 1 + JITTER)
    return now + max(wait, timedelta(seconds=outcome.retry_after or 0))

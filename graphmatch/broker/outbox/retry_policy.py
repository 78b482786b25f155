"""The retry schedule: ten attempts over 75 hours, as Standard Webhooks recommends.

Each wait is a little longer or shorter at random, so that deliveries that failed together are not
retried together.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

from graphmatch.broker.models.attempt import RETRY_SCHEDULE, AttemptResult, RetryDecision

JITTER = 0.1
"""Maximum random change of a wait, as a fraction of it."""


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
    return now + max(wait, timedelta(seconds=result.retry_after or 0))

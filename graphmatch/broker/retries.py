"""When to try a delivery again, and when to spare a host.

The schedule is that of Standard Webhooks: ten tries over 75 hours, each wait a little longer or
shorter by chance, so that what failed together does not come back together. A `Breaker` keeps one
dead host from costing an attempt, and its time, for each delivery to it: after some failures in a
row nothing is sent to it for a while, then one delivery tries it. Only what was sent to a host says
something of it; what comes *from* it does not. Both are pure: time and chance are given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from random import Random

from graphmatch.broker.transport import LONGEST_RETRY_AFTER, Outcome, Verdict

WAITS = (
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
FAILURES = 5
"""After so many failures in a row a breaker opens."""
OPEN_SECONDS = 60.0
"""So long it is open first; twice as long after each failed probe."""
OPEN_SECONDS_MOST = 3600.0
"""So long it is open at most, unless the host asks for more."""
PROBE_SECONDS = 60.0
"""So long a probe holds off others; longer than an attempt may take."""
_LONGEST = max(timedelta(seconds=OPEN_SECONDS_MOST), LONGEST_RETRY_AFTER)
"""An end that lies further ahead was said when the clock was wrong."""


def next_try(tries: int, outcome: Outcome, now: datetime, random: Random) -> datetime | None:
    """Return when to try again; ``None`` where it is given up.

    Parameters
    ----------
    tries
        How many there were, with the one that ended in `outcome`.

    Examples
    --------
    >>> from datetime import UTC
    >>> now, failed = datetime(2026, 1, 1, tzinfo=UTC), Outcome(Verdict.RETRY, "503", 503)
    >>> next_try(2, failed, now, Random(1)).isoformat(timespec="seconds")
    '2026-01-01T00:04:38+00:00'
    >>> next_try(10, failed, now, Random(1))
    """
    if outcome.verdict is not Verdict.RETRY or tries > len(WAITS):
        return None
    wait = WAITS[tries - 1] * random.uniform(1 - JITTER, 1 + JITTER)
    return now + max(wait, timedelta(seconds=outcome.retry_after or 0))


class BreakerState(Enum):
    """Whether a host is sent to."""

    CLOSED = "closed"  # yes
    OPEN = "open"  # no
    HALF_OPEN = "half-open"  # by one delivery, which tries it


@dataclass(frozen=True, slots=True)
class Breaker:
    """What is known of a host; the store keeps both fields.

    Parameters
    ----------
    failures
        How many there were in a row.
    open_until
        When it may be tried again, if it is spared.

    Examples
    --------
    >>> from datetime import UTC
    >>> now, failed = datetime(2026, 1, 1, tzinfo=UTC), Outcome(Verdict.RETRY, "", host_failed=True)
    >>> breaker = Breaker()
    >>> for _ in range(FAILURES):
    ...     breaker = breaker.after(failed, now)
    >>> breaker.state(now), breaker.open_until.isoformat()
    (<BreakerState.OPEN: 'open'>, '2026-01-01T00:01:00+00:00')
    >>> later = now + timedelta(minutes=1)
    >>> breaker.state(later), breaker.probing(later).state(later)
    (<BreakerState.HALF_OPEN: 'half-open'>, <BreakerState.OPEN: 'open'>)
    """

    failures: int = 0
    open_until: datetime | None = None

    def state(self, now: datetime) -> BreakerState:
        """Return whether the host is sent to."""
        if self.open_until is None:
            return BreakerState.CLOSED
        is_open = timedelta(0) < self.open_until - now <= _LONGEST
        return BreakerState.OPEN if is_open else BreakerState.HALF_OPEN

    def probing(self, now: datetime) -> Breaker:
        """Return the breaker while a delivery tries the host: half-open, it lets in no other.

        It is kept before the attempt. Should that never end, another may try `PROBE_SECONDS` later.
        """
        if self.state(now) is not BreakerState.HALF_OPEN:
            return self
        return replace(self, open_until=now + timedelta(seconds=PROBE_SECONDS))

    def after(self, outcome: Outcome, now: datetime) -> Breaker:
        """Return the breaker after an attempt; one that sent nothing leaves it as it is."""
        if outcome.verdict is Verdict.REFUSED and outcome.status is None:
            return self
        if not outcome.host_failed:
            return Breaker()
        failures = self.failures + 1
        if failures < FAILURES:
            return Breaker(failures)
        doubled = OPEN_SECONDS * 2.0 ** min(failures - FAILURES, 32)
        seconds = max(min(doubled, OPEN_SECONDS_MOST), outcome.retry_after or 0)
        return Breaker(failures, now + timedelta(seconds=seconds))

"""Circuit breakers: whether a host is sent to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from graphmatch.broker.models.attempt import LONGEST_RETRY_AFTER, AttemptResult, RetryDecision

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


class CircuitState(Enum):
    """Whether a host is sent to."""

    CLOSED = "closed"  # yes
    OPEN = "open"  # no
    HALF_OPEN = "half-open"  # by one delivery, which tries it


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
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
    >>> now, failed = datetime(2026, 1, 1, tzinfo=UTC), AttemptResult(RetryDecision.RETRY, "", host_failed=True)
    >>> breaker = CircuitBreaker()
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

    def state(self, now: datetime) -> CircuitState:
        """Return whether the host is sent to."""
        if self.open_until is None:
            return CircuitState.CLOSED
        is_open = timedelta(0) < self.open_until - now <= _LONGEST
        return CircuitState.OPEN if is_open else CircuitState.HALF_OPEN

    def probing(self, now: datetime) -> CircuitBreaker:
        """Return the breaker while a delivery tries the host: half-open, it lets in no other.

        It is kept before the attempt. Should that never end, another may try `PROBE_SECONDS` later.
        """
        if self.state(now) is not CircuitState.HALF_OPEN:
            return self
        return replace(self, open_until=now + timedelta(seconds=PROBE_SECONDS))

    def after(self, outcome: AttemptResult, now: datetime) -> CircuitBreaker:
        """Return the breaker after an attempt; one that sent nothing leaves it as it is."""
        if outcome.verdict is RetryDecision.REFUSED and outcome.status is None:
            return self
        if not outcome.host_failed:
            return CircuitBreaker()
        failures = self.failures + 1
        if failures < FAILURES:
            return CircuitBreaker(failures)
        doubled = OPEN_SECONDS * 2.0 ** min(failures - FAILURES, 32)
        seconds = max(min(doubled, OPEN_SECONDS_MOST), outcome.retry_after or 0)
        return CircuitBreaker(failures, now + timedelta(seconds=seconds))

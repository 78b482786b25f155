"""Circuit breakers, which stop sending to a host that fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from graphmatch.broker.models.attempt import LONGEST_RETRY_AFTER, AttemptResult, RetryDecision

FAILURES = 5
"""Number of failures in a row that opens a breaker."""
OPEN_SECONDS = 60.0
"""Time that a breaker is open at first; it doubles after each failed probe."""
OPEN_SECONDS_MOST = 3600.0
"""Maximum time that a breaker is open, unless the host asks for more."""
PROBE_SECONDS = 60.0
"""Time that a probe excludes other requests; it is longer than an attempt."""
_LONGEST = max(timedelta(seconds=OPEN_SECONDS_MOST), LONGEST_RETRY_AFTER)
"""A later end was written while the clock was wrong."""


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
    >>> breaker.is_open(later), breaker.probing(later).is_open(later)
    (False, True)
    """

    failures: int = 0
    open_until: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """Whether requests are not allowed."""
        return self.open_until is not None and timedelta(0) < self.open_until - now <= _LONGEST

    def probing(self, now: datetime) -> CircuitBreaker:
        """Return the breaker during a probe, the first request after a back-off: it is open.

        The store keeps it before the attempt. If the attempt never ends, another probe may begin
        `PROBE_SECONDS` later.
        """
        if self.open_until is None or self.is_open(now):
            return self
        return replace(self, open_until=now + timedelta(seconds=PROBE_SECONDS))

    def after(self, outcome: AttemptResult, now: datetime) -> CircuitBreaker:
        """Return the breaker after an attempt; an attempt that sent nothing changes nothing."""
        if outcome.decision is RetryDecision.REFUSED and outcome.status is None:
            return self
        if not outcome.host_failed:
            return CircuitBreaker()
        failures = self.failures + 1
        if failures < FAILURES:
            return CircuitBreaker(failures)
        doubled = OPEN_SECONDS * 2.0 ** min(failures - FAILURES, 32)
        seconds = max(min(doubled, OPEN_SECONDS_MOST), outcome.retry_after or 0)
        return CircuitBreaker(failures, now + timedelta(seconds=seconds))

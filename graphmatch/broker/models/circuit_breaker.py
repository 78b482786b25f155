"""Circuit breakers, which stop sending to a host that fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

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


class CircuitState(Enum):
    """State of a circuit breaker."""

    CLOSED = "closed"  # Requests are allowed.
    OPEN = "open"  # Requests are not allowed.
    HALF_OPEN = "half-open"  # One request, the probe, is allowed.


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
    >>> breaker.state(now), breaker.open_until.isoformat()
    (<CircuitState.OPEN: 'open'>, '2026-01-01T00:01:00+00:00')
    >>> later = now + timedelta(minutes=1)
    >>> breaker.state(later), breaker.probing(later).state(later)
    (<CircuitState.HALF_OPEN: 'half-open'>, <CircuitState.OPEN: 'open'>)
    """

    failures: int = 0
    open_until: datetime | None = None

    def state(self, now: datetime) -> CircuitState:
        """Return the state at a time."""
        if self.open_until is None:
            return CircuitState.CLOSED
        is_open = timedelta(0) < self.open_until - now <= _LONGEST
        return CircuitState.OPEN if is_open else CircuitState.HALF_OPEN

    def probing(self, now: datetime) -> CircuitBreaker:
        """Return the breaker during a probe, which excludes other requests.

        The store keeps it before the attempt. If the attempt never ends, another probe may begin
        `PROBE_SECONDS` later.
        """
        if self.state(now) is not CircuitState.HALF_OPEN:
            return self
        return replace(self, open_until=now + timedelta(seconds=PROBE_SECONDS))

    def after(self, outcome: AttemptResult, now: datetime) -> CircuitBreaker:
        """Return the breaker after an attempt; an attempt that sent nothing changes nothing."""
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

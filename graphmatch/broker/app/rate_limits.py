"""Rate limits of requests and of wrong tokens.

Each key has an allowance that refills continuously (the generic cell rate algorithm). The state of
a key is one time: the moment when its allowance will be complete again. The memory is bounded: the
key that was used least recently is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from graphmatch.broker.app.errors import TooManyRequestsError
from semantic.errors import Place, Problem

MAX_KEYS = 10_000
FAILURES = 10
"""Number of wrong tokens per minute from an address."""
_MINUTE_SECONDS = 60.0


class RateLimiter:
    """Counts requests and wrong tokens in the memory of one process, on one thread.

    Parameters
    ----------
    clock
        Returns seconds since an arbitrary time.

    Examples
    --------
    >>> limiter = RateLimiter()
    >>> limiter.check("owner 1", limit_per_minute=1)
    >>> limiter.check("owner 1", limit_per_minute=1)
    Traceback (most recent call last):
     ...
    graphmatch.broker.app.errors.TooManyRequestsError: requests: more than 1 per minute. Wait, and \
send more publications or subscriptions in one request.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._complete_at = OrderedDict[str, float]()

    def check(self, key: str, limit_per_minute: int) -> None:
        """Count a request.

        Raises
        ------
        TooManyRequestsError
            If the allowance of the key is used up.
        """
        what = f"more than {limit_per_minute:,} per minute"
        remedy = "Wait, and send more publications or subscriptions in one request."
        self._check(key, limit_per_minute, Problem(what, Place("requests"), remedy))
        self._count(key, limit_per_minute)

    def failed(self, address: str) -> None:
        """Count a wrong token from an address."""
        self._count(f"wrong tokens {address}", FAILURES)

    def check_failures(self, address: str) -> None:
        """Check that an address may send a token.

        Raises
        ------
        TooManyRequestsError
            After `FAILURES` wrong tokens within a minute.
        """
        what, remedy = "too many wrong tokens", "Wait, and send a valid token."
        problem = Problem(what, Place("Authorization"), remedy)
        self._check(f"wrong tokens {address}", FAILURES, problem)

    def _check(self, key: str, limit: int, problem: Problem) -> None:
        free_at = self._complete_at.get(key, 0.0) - _MINUTE_SECONDS + _MINUTE_SECONDS / limit
        delay = free_at - self._clock()
        if delay > 1e-6:
            raise TooManyRequestsError(problem, delay)

    def _count(self, key: str, limit: int) -> None:
        now = self._clock()
        self._complete_at[key] = max(self._complete_at.get(key, now), now) + _MINUTE_SECONDS / limit
        self._complete_at.move_to_end(key)
        if len(self._complete_at) > MAX_KEYS:
            self._complete_at.popitem(last=False)

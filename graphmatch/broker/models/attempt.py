"""The schedule of attempts to deliver, and the result of one attempt.

Standard Webhooks recommends ten attempts over 75 hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

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
"""Wait after the first attempt, the second, and so on. The tenth attempt is the last."""
GIVEN_UP = sum(RETRY_SCHEDULE, timedelta())
"""Maximum time that a delivery waits for a host in back-off."""
LONGEST_RETRY_AFTER = timedelta(days=1)
"""Maximum time of a ``Retry-After`` header; longer ones are shortened to it."""


class RetryDecision(Enum):
    """Decision about a delivery after an attempt."""

    DELIVERED = "delivered"  # The receiver accepted it.
    RETRY = "retry"  # The receiver may accept it later.
    GONE = "gone"  # The receiver wants no more deliveries, so the subscription is paused.
    REFUSED = "refused"  # It cannot be delivered, now or later.


@dataclass(frozen=True, slots=True)
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
        Seconds that the receiver asks to wait.
    host_failed
        Whether the host failed, so that other messages to it must wait. It did not answer, or it
        answered 429 or 5xx. A 404 does not count.
    inbox
        Inbox of a target, found during the attempt.
    """

    decision: RetryDecision
    reason: str
    status: int | None = None
    seconds: float = 0.0
    retry_after: float | None = None
    host_failed: bool = False
    inbox: str | None = None

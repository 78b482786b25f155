"""The result of one attempt to deliver."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

LONGEST_RETRY_AFTER = timedelta(days=1)
"""At most so long another side's ``Retry-After`` is obeyed."""


class RetryDecision(Enum):
    """What to do with a delivery after an attempt."""

    DELIVERED = "delivered"  # the other side took it
    RETRY = "retry"  # it may take it later
    GONE = "gone"  # it never wants anything again: the subscription is to be disabled
    REFUSED = "refused"  # it cannot be sent, now or later


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """What became of an attempt.

    Parameters
    ----------
    verdict
        What to do with the delivery.
    reason
        In a few words; it can be shown to the subscriber.
    status
        Of HTTP or SMTP; ``None`` where there was no answer.
    seconds
        How long the attempt took.
    retry_after
        For how many seconds the other side asks to be left alone.
    host_failed
        Whether this says something of the host, so that others' messages to it had better wait: it
        did not answer, or answered that it cannot, or not so much. A 404 does not.
    """

    verdict: RetryDecision
    reason: str
    status: int | None = None
    seconds: float = 0.0
    retry_after: float | None = None
    host_failed: bool = False

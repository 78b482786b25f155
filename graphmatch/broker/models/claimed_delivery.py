"""Deliveries that a dispatcher has claimed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A claimed row of the outbox: a notification to send to a subscriber.

    Parameters
    ----------
    id, subscription, kind, host, attempt
        Columns of the table. ``attempt`` is the number of attempts so far.
    created_at, claimed_until
        Milliseconds since 1970.
    """

    id: int
    subscription: int
    kind: str
    host: str
    attempt: int
    created_at: int
    claimed_until: int

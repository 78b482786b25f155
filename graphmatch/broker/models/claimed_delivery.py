"""Deliveries that a dispatcher has claimed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A claimed row of the outbox: a message to send.

    Parameters
    ----------
    id, subscription, kind, host, attempt, callback
        Columns of the table. ``attempt`` is the number of attempts so far. ``callback`` is set for
        deliveries of the WebSub hub.
    created_at, claimed_until
        Milliseconds since 1970.
    """

    id: int
    subscription: int
    kind: str
    host: str
    attempt: int
    callback: int | None
    created_at: int
    claimed_until: int

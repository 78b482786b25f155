"""Deliveries in answers, and the messages of webhooks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from graphmatch.broker.models.base import EXAMPLE_ID, Answer, Page, Time
from graphmatch.broker.models.match import MatchView


class DeliveryView(Answer):
    """A delivery to a sink.

    Attributes
    ----------
    due_at
        Time of the next attempt.
    status
        The last HTTP status of the sink.
    matches
        Numbers of the first 100 matches of the delivery.
    """

    id: int
    subscription: str = Field(examples=[EXAMPLE_ID])
    kind: str = Field(examples=["match", "digest", "test"])
    state: Literal["waiting", "delivered", "failed"]
    attempt: int
    due_at: Time
    created_at: Time
    done_at: Time | None = None
    status: int | None = None
    error: str | None = None
    matches: list[int]


class DeliveriesPage(Page):
    """A page of deliveries, newest first."""

    deliveries: list[DeliveryView]


class Notification(Answer):
    """A message to a webhook, signed as in Standard Webhooks.

    Attributes
    ----------
    type
        `match`, `digest`, `subscription.test`, `subscription.expiring`, `subscription.expired` or
        `subscription.disabled`.
    id
        The header `webhook-id`. It is the same for each attempt.
    name
        Name of the subscription.
    matches
        The matches. If the message is too large, solutions and then matches are left out.
    total
        Number of all matches.
    link
        Address of the delivery.
    reason
        Why the subscription was disabled.
    """

    type: str = Field(examples=["match"])
    id: str = Field(examples=["msg_0123456789abcdef_7"])
    timestamp: Time
    subscription: str = Field(examples=[EXAMPLE_ID])
    name: str
    matches: list[MatchView] | None = None
    total: int | None = None
    link: str
    expires_at: Time | None = None
    reason: str | None = None

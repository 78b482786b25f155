"""Deliveries in answers, and the messages of webhooks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from graphmatch.broker.models.base import EXAMPLE_ID, Answer, Page, Time
from graphmatch.broker.models.match import MatchView


class DeliveryView(Answer):
    """A delivery to a sink."""

    id: int
    subscription: str = Field(examples=[EXAMPLE_ID])
    kind: str = Field(examples=["match", "digest", "test"])
    state: Literal["waiting", "delivered", "failed"]
    attempt: int
    due_at: Time = Field(description="Time of the next attempt.")
    created_at: Time
    done_at: Time | None = None
    status: int | None = Field(None, description="The last HTTP status of the sink.")
    error: str | None = None
    matches: list[int] = Field(description="Numbers of the first 100 matches of the delivery.")


class DeliveriesPage(Page):
    """A page of deliveries, newest first."""

    deliveries: list[DeliveryView]


class Notification(Answer):
    """A message to a webhook, signed as in Standard Webhooks.

    `type` is `match`, `digest`, `subscription.test`, `subscription.expiring`,
    `subscription.expired` or `subscription.disabled`, which has a `reason`. `id` is the header
    `webhook-id`, which is the same for each attempt. If the message is too large, solutions and
    then matches are left out.
    """

    type: str = Field(examples=["match"])
    id: str = Field(examples=["msg_0123456789abcdef_7"])
    timestamp: Time
    subscription: str = Field(examples=[EXAMPLE_ID])
    name: str = Field(description="Name of the subscription.")
    matches: list[MatchView] | None = None
    total: int | None = Field(None, description="Number of all matches.")
    link: str = Field(description="Address of the delivery.")
    expires_at: Time | None = None
    reason: str | None = None

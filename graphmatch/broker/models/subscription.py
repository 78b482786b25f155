"""Subscriptions in requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from graphmatch.broker.models.base import EXAMPLE_QUERY, Answer, Model, Page, Time, example
from graphmatch.broker.models.problem import ProblemAnswer
from graphmatch.broker.models.subscription_settings import SubscriptionSettings


class QueryDefinition(Model):
    """A query, constraints on attributes, or topics and words. Exactly one of them is needed."""

    model_config = example({"query": EXAMPLE_QUERY}, {"topics": ["Energy"], "not-words": ["coal"]})

    query: str | None = None
    """SPARQL."""
    where: dict[str, Any] | list[Any] | None = Field(default=None, examples=[{"price": {"<": 500}}])
    """Constraints on attributes."""
    topics: list[str] | str | None = None
    """Labels of topics in the ontology."""
    words: list[str] | str | None = None
    """Words or phrases."""
    not_words: list[str] | str | None = Field(default=None, alias="not-words")
    """Words or phrases that a publication must not contain."""
    match: Literal["all", "any"] | None = None
    """Whether a publication needs all topics and words, or any of them."""

    def definition(self) -> dict[str, Any] | None:
        """Return the fields of the query; `None` if there are none."""
        fields = {*QueryDefinition.model_fields}
        return self.model_dump(include=fields, exclude_none=True) or None


class SubscriptionRequest(QueryDefinition, SubscriptionSettings):
    """A new subscription: a query, constraints on attributes, or topics and words."""

    model_config = example(
        {"query": EXAMPLE_QUERY, "name": "Laptops", "expires_in": 86400},
        {"topics": ["Energy"], "not-words": ["coal"], "sink": {"kind": "feed"}},
        {"where": {"price": {"<": 500}}, "digest": {"at": ["08:00"], "zone": "Europe/Berlin"}},
    )


class SubscriptionChange(SubscriptionRequest):
    """Changes of a subscription. Fields that are missing keep their values."""

    model_config = example({"name": "Laptops", "state": "paused"})

    state: Literal["active", "paused"] | None = None
    """`paused` stops matching. `active` resumes it."""


class Replay(Model):
    """The matches to send again."""

    model_config = example({"since": 41})

    since: int = Field(ge=0, lt=2**53)
    """Number of a match. Later matches are sent again."""


class Links(Answer):
    """Addresses of the parts of a subscription."""

    self: str
    matches: str
    events: str
    """All matches as a stream of server-sent events."""
    feed: str
    """The matches as an Atom feed, with the key for reading."""
    rss: str
    """The same as RSS."""
    json_feed: str
    """The same as JSON Feed."""
    deliveries: str


def _without_secrets(sink: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in sink.items() if key not in ("secret", "token")}


class SubscriptionView(Answer):
    """A subscription, without its secrets."""

    id: str
    name: str
    state: Literal["active", "paused", "unconfirmed", "ended"]
    reason: str | None = None
    """Why the subscription is paused or has ended."""
    definition: dict[str, Any]
    """The fields of the request."""
    query: str = Field(examples=[EXAMPLE_QUERY])
    """The definition as SPARQL."""
    sink: Annotated[dict[str, Any], AfterValidator(_without_secrets)]
    digest: dict[str, Any] | None = None
    quiet_hours: dict[str, Any] | None = None
    created_at: Time
    expires_at: Time | None = None
    generation: int
    """1, and one more after each change of the query."""
    match_count: int
    """Number of stored matches. 10,000 means 10,000 or more."""
    last_matched_at: Time | None = None
    links: Links


class SubscriptionReceipt(Answer):
    """A new subscription, with secrets that no later answer contains."""

    id: str
    ticket: str | None = None
    """Gives access to the subscription: `Authorization: Ticket gmt_…`. It is `null` if an earlier
    request with the same `Idempotency-Key` created the subscription.
    """
    secret: str | None = None
    """Key of a webhook's signatures."""
    read_key: str
    """Gives access to the matches only: `?key=gmr_…`."""
    expires_at: Time
    links: Links | None = None


class BulkReceipt(Answer):
    """One answer for each line of a request, in order: a subscription or a problem."""

    subscriptions: list[SubscriptionReceipt | ProblemAnswer]


class SubscriptionUpdate(Answer):
    """A subscription after a change."""

    subscription: SubscriptionView
    secret: str | None = None
    """Key of a new webhook's signatures."""


class SubscriptionsPage(Page):
    """A page of subscriptions."""

    subscriptions: list[SubscriptionView]

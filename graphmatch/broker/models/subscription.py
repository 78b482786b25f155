"""Subscriptions in requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from graphmatch.broker.models.base import EXAMPLE_QUERY, Answer, Model, Page, Time, example
from graphmatch.broker.models.problem import ProblemAnswer
from graphmatch.broker.models.subscription_settings import SubscriptionSettings


class QueryDefinition(Model):
    """A query, constraints on attributes, or topics and words. Exactly one of them is needed.

    `query` is SPARQL. `where` has constraints on attributes. `topics` are labels of topics in the
    ontology, and `words` are words or phrases. Each may have alternatives: `solar or wind power`. A
    publication must not have `not-topics` and must not contain `not-words`. `match` says whether it
    needs all topics and words, or any of them.
    """

    model_config = example({"query": EXAMPLE_QUERY}, {"topics": ["Energy"], "not-words": ["coal"]})

    query: str | None = None
    where: dict[str, Any] | list[Any] | None = Field(default=None, examples=[{"price": {"<": 500}}])
    topics: list[str] | str | None = None
    words: list[str] | str | None = None
    not_topics: list[str] | str | None = Field(default=None, alias="not-topics")
    not_words: list[str] | str | None = Field(default=None, alias="not-words")
    match: Literal["all", "any"] | None = None

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
    """Changes of a subscription. Fields that are missing keep their values.

    The state `paused` stops matching, and `active` resumes it.
    """

    model_config = example({"name": "Laptops", "state": "paused"})

    state: Literal["active", "paused"] | None = None


class Replay(Model):
    """The matches to send again: those with a larger number than `since`."""

    model_config = example({"since": 41})

    since: int = Field(ge=0, lt=2**53)


class Links(Answer):
    """Addresses of the parts of a subscription.

    `events` has all matches as a stream of server-sent events. `feed` (Atom), `rss` and `json_feed`
    contain the key for reading.
    """

    self: str
    matches: str
    events: str
    feed: str
    rss: str
    json_feed: str
    deliveries: str


def _without_secrets(sink: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in sink.items() if key not in ("secret", "token")}


class SubscriptionView(Answer):
    """A subscription, without its secrets.

    `reason` says why it is paused or has ended. `definition` has the fields of the request, and
    `query` is their SPARQL. `generation` is 1, and one more after each change of the query.
    """

    id: str
    name: str
    state: Literal["active", "paused", "unconfirmed", "ended"]
    reason: str | None = None
    definition: dict[str, Any]
    query: str = Field(examples=[EXAMPLE_QUERY])
    sink: Annotated[dict[str, Any], AfterValidator(_without_secrets)]
    digest: dict[str, Any] | None = None
    quiet_hours: dict[str, Any] | None = None
    created_at: Time
    expires_at: Time | None = None
    generation: int
    match_count: int = Field(description="Number of stored matches. 10,000 means 10,000 or more.")
    last_matched_at: Time | None = None
    links: Links


class SubscriptionReceipt(Answer):
    """A new subscription, with secrets that no later answer contains.

    `ticket` gives access to the subscription: `Authorization: Ticket gmt_…`. It is `null` if an
    earlier request with the same `Idempotency-Key` created the subscription. `secret` is the key of
    a webhook's signatures. `read_key` gives access to the matches only: `?key=gmr_…`.
    """

    id: str
    ticket: str | None = None
    secret: str | None = None
    read_key: str
    expires_at: Time
    links: Links | None = None


class BulkReceipt(Answer):
    """One answer for each line of a request, in order: a subscription or a problem."""

    subscriptions: list[SubscriptionReceipt | ProblemAnswer]


class SubscriptionUpdate(Answer):
    """A subscription after a change. `secret` is the key of a new webhook's signatures."""

    subscription: SubscriptionView
    secret: str | None = None


class SubscriptionsPage(Page):
    """A page of subscriptions."""

    subscriptions: list[SubscriptionView]

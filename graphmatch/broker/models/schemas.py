"""What requests and answers of the broker's API look like."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from graphmatch.broker.models.findings import Kind
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.models.texts import is_text
from graphmatch.broker.models.times import time_of

_GIVEN = ("query", "where", "topics", "words", "not_words", "match")
EXAMPLE_ID, EXAMPLE_TIME = "sub_0123456789abcdef", "2026-01-02T03:04:05Z"
EXAMPLE_QUERY = "SELECT ?offer WHERE { ?offer a <urn:example:Laptop> }"


class Model(BaseModel):
    """A part of a request: a field that is unknown is refused."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    @field_validator("*", mode="before")
    @classmethod
    def _check_texts(cls, value: Any) -> Any:
        if not is_text(value):
            raise ValueError("a NUL (U+0000), half a character, or no number of JSON")
        return value


class Answer(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(populate_by_name=True)


# -- requests -----------------------------------------------------------------------------------


class Sink(Model):
    """Where matches go: they are sent there, or fetched (``sse``, ``feed``)."""

    kind: Literal["webhook", "sse", "inbox", "feed", "email", "ntfy"]
    url: str | None = Field(None, max_length=2000, description="Of a webhook, inbox or ntfy topic.")
    address: str | None = Field(None, max_length=254, description="Of e-mail.")
    token: str | None = Field(None, max_length=1000, description="Of ntfy.")
    secret: str | None = Field(
        None,
        max_length=200,
        description="What a webhook's signatures are made with; made where none is given.",
    )
    include_reasons: bool | None = Field(None, description="Whether reasons are sent.")

    def said(self) -> dict[str, Any]:
        """Return what of it was said."""
        return self.model_dump(exclude_none=True)


class QueryDefinition(Model):
    """What a subscription is for: a query, constraints on attributes, or topics and words."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={
            "examples": [{"query": EXAMPLE_QUERY}, {"topics": ["Energy"], "not-words": ["coal"]}]
        },
    )

    query: str | None = Field(None, description="SPARQL.")
    where: dict[str, Any] | list[Any] | None = Field(
        None, description="Constraints on attributes.", examples=[{"price": {"<": 500}}]
    )
    topics: list[str] | str | None = Field(None, description="Topics of the ontology, by label.")
    words: list[str] | str | None = Field(None, description="Words or phrases.")
    not_words: list[str] | str | None = Field(
        None, alias="not-words", description="Words or phrases that are not to be there."
    )
    match: Literal["all", "any"] | None = Field(
        None, description="Whether all of topics and words are needed."
    )

    def given(self) -> dict[str, Any] | None:
        """Return what it is for; ``None`` where nothing is said."""
        said = {key: getattr(self, key) for key in _GIVEN if getattr(self, key) is not None}
        if "not_words" in said:
            said["not-words"] = said.pop("not_words")
        return said or None


class SubscriptionChange(QueryDefinition):
    """What a subscription is for, and what may be said beside it; what is left out stays."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={"examples": [{"name": "Laptops", "expires_in": 86400}]},
    )

    name: str | None = Field(None, max_length=200, description="What its matches are called.")
    sink: Sink | None = None
    expires_in: int | None = Field(
        None,
        ge=0,
        le=10**9,
        description="Seconds; 0: as long as the limits allow. A day by default.",
    )
    digest: dict[str, Any] | None = Field(
        None,
        description='Matches are told together: `{"every": seconds}`, '
        '`{"at": ["08:00"], "zone": "Europe/Berlin"}`; null: no more.',
        examples=[{"at": ["08:00"], "zone": "Europe/Berlin"}],
    )
    quiet_hours: dict[str, Any] | None = Field(
        None,
        description="Hours in which nothing is sent; null: no more.",
        examples=[{"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}],
    )

    def settings(self) -> SubscriptionSettings:
        """Return the rest; null takes a digest and quiet hours away."""

        def mapping(key: str) -> Mapping[str, Any] | None:
            value = getattr(self, key)
            return {} if value is None and key in self.model_fields_set else value

        return SubscriptionSettings(
            name=self.name,
            sink=None if self.sink is None else self.sink.said(),
            expires_in=None if self.expires_in is None else timedelta(seconds=self.expires_in),
            digest=mapping("digest"),
            quiet_hours=mapping("quiet_hours"),
        )


class SubscriptionRequest(SubscriptionChange):
    """A subscription: a query, constraints on attributes, or topics and words."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {"query": EXAMPLE_QUERY, "name": "Laptops", "expires_in": 86400},
                {"topics": ["Energy"], "not-words": ["coal"], "sink": {"kind": "feed"}},
                {"where": {"price": {"<": 500}}},
            ]
        },
    )


class Renewal(Model):
    """How long a subscription is to last from now on."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"expires_in": 60}]})

    expires_in: int | None = Field(
        None, ge=0, le=10**9, description="Seconds; a day by default; 0: as long as allowed."
    )


class TokenRequest(Model):
    """A new API token."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"owner": "shop", "scopes": ["publish"], "name": "till"}]},
    )

    owner: str = Field(min_length=1, max_length=100, description="Made where there is none.")
    scopes: list[Literal["publish", "subscribe", "feeds", "admin"]] = Field(min_length=1)
    name: str = Field("", max_length=100)


class ChosenFacts(Model):
    """Facts of a publication that a query is to ask for."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"facts": ["0123456789abcdef"]}]}
    )

    facts: list[str] = Field(min_length=1, max_length=1000, description="Their keys.")


class FeedRequest(Model):
    """A feed to follow."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"url": "https://example.org/feed.xml"}]}
    )

    url: str = Field(max_length=2000)
    title: str = Field("", max_length=200, description="What it is called until it says so.")


# -- answers ------------------------------------------------------------------------------------


class Where(Answer):
    """Where a problem is."""

    source: str
    line: int | None = None
    column: int | None = None
    item: str | None = None


class ProblemItem(Answer):
    """One thing that is wrong."""

    what: str
    where: Where
    remedy: str


class ProblemView(ProblemItem):
    """A problem, as RFC 9457 has it."""

    type: str = Field(examples=["urn:graphmatch:problem:not-found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str
    problems: list[ProblemItem] | None = Field(None, description="All, where there are several.")


class Links(Answer):
    """Where the rest of a subscription is."""

    self: str
    matches: str
    events: str = Field(description="A stream of all matches, as server-sent events.")
    feed: str = Field(description="Its matches as Atom, with the key for reading.")
    deliveries: str


class SubscriptionView(Answer):
    """A subscription, without its secrets."""

    id: str = Field(examples=[EXAMPLE_ID])
    name: str
    state: str = Field(examples=["active", "paused", "ended"])
    reason: str | None = Field(None, description="Why it has ended.")
    definition: dict[str, Any] = Field(description="What was asked for.")
    query: str = Field(description="That as SPARQL.", examples=[EXAMPLE_QUERY])
    sink: dict[str, Any]
    digest: dict[str, Any] | None = None
    quiet_hours: dict[str, Any] | None = None
    created_at: datetime = Field(examples=[EXAMPLE_TIME])
    expires_at: datetime | None = None
    generation: int = Field(description="1, and one more for each change of the query.")
    match_count: int = Field(description="How many matches of it are kept; 10,000 may be more.")
    last_matched_at: datetime | None = None
    links: Links


class CreatedView(Answer):
    """A subscription that was taken in. Ticket, secret and key are told here and never again."""

    id: str = Field(examples=[EXAMPLE_ID])
    ticket: str = Field(description="Proves that it is yours: `Authorization: Ticket gmt_…`.")
    secret: str | None = Field(None, description="What a webhook's signatures are checked by.")
    read_key: str = Field(description="For reading only: `?key=gmr_…`.")
    expires_at: datetime | None = None
    links: Links


class ChangedView(Answer):
    """A subscription after a change."""

    subscription: SubscriptionView
    secret: str | None = Field(None, description="Of a new webhook.")


class SubscriptionsPage(Answer):
    """Some subscriptions of an owner."""

    subscriptions: list[SubscriptionView]
    next: str | None = Field(None, description="The address of the next page.")


class PublicationRef(Answer):
    """A publication in the log."""

    seq: int = Field(examples=[17])
    id: str = Field(examples=["urn:example:offer:1"])
    url: str


class AcceptedView(Answer):
    """What was published: it is committed, and will be matched."""

    publications: list[PublicationRef]
    problems: list[ProblemItem] = Field(description="What of the body was refused.")


class PublicationView(PublicationRef):
    """A publication, without its triples."""

    title: str | None = None
    link: str | None = None
    source: str
    received_at: datetime
    matched_at: datetime | None = Field(None, description="Empty while it waits to be matched.")
    problem: str | None = None


class MatchedPublication(PublicationRef):
    """A publication that matched."""

    title: str | None = None
    link: str | None = None


class MatchView(Answer):
    """A match: events have the same."""

    seq: int = Field(description="The id of its event.", examples=[41])
    subscription: str = Field(examples=[EXAMPLE_ID])
    generation: int = Field(description="Of the subscription.")
    publication: MatchedPublication
    matched_at: datetime
    solutions: list[dict[str, Any]] | dict[str, Any] = Field(
        description="Bindings as N-Triples has terms; `graph` for CONSTRUCT.",
        examples=[[{"offer": "<urn:example:offer:1>"}]],
    )
    truncated: bool = Field(description="Whether there are more solutions.")
    url: str = Field(description="Where all that is kept of them is.")


class MatchesPage(Answer):
    """Some matches, oldest first."""

    matches: list[MatchView]
    next: str | None = Field(None, description="The address of the next page.")
    last: int = Field(description="The number of the last match here: for `since`.")


class WhyView(Answer):
    """Why a publication matched."""

    match: MatchView
    reasons: Any = Field(description="What each solution rests on.")


class ReasonsView(Answer):
    """Why a subscription matches a publication, or what failed first."""

    subscription: str = Field(examples=[EXAMPLE_ID])
    publication: PublicationRef
    matches: bool = Field(description="Whether the query of now matches it.")
    before: bool = Field(description="Whether it came before the query: then it is no match.")
    reasons: Any = Field(
        description="What it rests on; or what failed, what held before that, and what is nearest."
    )


class DeliveryView(Answer):
    """A delivery to a sink."""

    id: int
    subscription: str
    kind: str = Field(examples=["match"])
    state: str = Field(examples=["waiting", "delivered", "failed"])
    attempt: int
    due_at: datetime
    created_at: datetime
    done_at: datetime | None = None
    status: int | None = Field(None, description="The last status of the sink.")
    error: str | None = None
    matches: list[int] = Field(description="The first of the matches that it tells.")


class DeliveriesPage(Answer):
    """Some deliveries, newest first."""

    deliveries: list[DeliveryView]
    next: str | None = None


class TokenView(Answer):
    """A token: it is told here and never again."""

    token: str
    owner: str
    scopes: list[str]


class RevokedView(Answer):
    """How many tokens were revoked."""

    revoked: int


class HealthView(Answer):
    """Whether the broker is well."""

    status: Literal["ok", "not ready"]
    reasons: list[str] = Field(default_factory=list)
    set_aside: list[str] = Field(
        default_factory=list, description="How many records each background task set aside."
    )


# -- answers to questions -----------------------------------------------------------------------


class HitView(PublicationRef):
    """A stored publication that a query matches."""

    title: str | None = None
    link: str | None = None
    received_at: datetime
    because: list[str] = Field(description="Why, as far as there was time to say.")


class RelaxedMatchView(PublicationRef):
    """A stored publication that a query matches without one of its conditions."""

    title: str | None = None
    link: str | None = None
    received_at: datetime
    condition: str
    failure: str = Field(description="What fails of it; empty where there was no time.")
    but: str = Field(description="By how much the nearest missed it.")


class RelaxationView(Answer):
    """A condition of a query, and how many more publications it would match without it."""

    condition: str
    line: int
    column: int
    count: int


class DayView(Answer):
    """How many publications of a day (UTC) matched."""

    day: date
    matched: int
    scanned: int


class FindingView(Answer):
    """Something that somebody should look at."""

    kind: str = Field(examples=[kind.value for kind in Kind])
    subscriptions: list[str] = Field(description="Whom it concerns; of duplicates the older first.")
    text: str
    remedy: str
    code: str = Field(description="The linter's, if it found it.")


class BacktestView(Answer):
    """What a subscription would have matched of what is stored."""

    query: str = Field(description="It as SPARQL.", examples=[EXAMPLE_QUERY])
    findings: list[FindingView] = Field(description="That it can never match, for instance.")
    scanned: int = Field(description="So many publications were looked at, the newest.")
    complete: bool = Field(description="Whether these are all that are kept.")
    matched: int
    undecided: int = Field(description="Of so many operators left it open.")
    failed: int = Field(description="For so many it is beyond the limits of a query.")
    days: list[DayView] = Field(description="Newest first.")
    newest: list[HitView]
    relaxations: list[RelaxationView] = Field(
        description="Conditions without which more would match."
    )
    relaxed_matches: list[RelaxedMatchView]
    truncated: list[str] = Field(description="The limits that ended it or left reasons out.")


class StepView(Answer):
    """A fact, or what is above it."""

    key: str = Field(description="What it is chosen by.", examples=["0123456789abcdef"])
    label: str
    property: str = Field(description="What the property is called.")
    pattern: str = Field(examples=['?item dc:subject "Food" .'])
    count: int | None = Field(description="How many of the publications looked at have it.")


class FactView(Answer):
    """A fact of a publication: the first step is itself, the others are more general."""

    sort: str = Field(examples=["type", "concept", "category"])
    common: bool = Field(description="Whether all publications that were looked at have it.")
    steps: list[StepView]


class FactsView(Answer):
    """The facts of a publication that a subscription can ask for."""

    publication: PublicationRef
    facts: list[FactView]
    scanned: int
    complete: bool = Field(description="Whether all that is recent was looked at.")


class QueryView(Answer):
    """A query: for a subscription's `query`."""

    query: str = Field(examples=[EXAMPLE_QUERY])


class GainView(Answer):
    """What a subscription would gain and lose."""

    subscription: str = Field(examples=[EXAMPLE_ID])
    gained: int
    lost: int
    newest_gained: list[PublicationRef]
    newest_lost: list[PublicationRef]


class DifferenceView(Answer):
    """What another ontology would change."""

    scanned: int = Field(description="So many publications were matched by both, the newest.")
    complete: bool = Field(description="Whether these are all that are recent.")
    matches_before: int
    matches_after: int
    changed: int = Field(description="So many subscriptions gain or lose something.")
    subscriptions: list[GainView] = Field(description="Those with the most, first.")
    problems: list[ProblemItem] = Field(
        description="What could not be used any more, for instance."
    )


class FindingsView(Answer):
    """What is probably wrong with subscriptions and their sinks."""

    findings: list[FindingView] = Field(description="The worst first.")
    subscriptions: int = Field(description="So many there are.")
    examined: int = Field(description="So many of these were looked at, the newest.")


class FeedView(Answer):
    """A feed that is followed."""

    id: str = Field(examples=["0123456789abcdef"])
    url: str = Field(description="The address that it was first given.")
    address: str = Field(description="Where it is fetched.")
    title: str
    read_at: datetime | None = Field(None, description="When it was last fetched without error.")
    next_poll_at: datetime | None = Field(None, description="When it is fetched; null: soon.")
    errors: int = Field(description="So many fetches in a row failed.")
    status: int | None = Field(None, description="The last status of its server.")
    problem: str | None = Field(None, description="What was wrong the last time.")
    pushed_until: datetime | None = Field(None, description="Until when a hub sends what is new.")


class FeedsPage(Answer):
    """Some feeds."""

    feeds: list[FeedView]
    next: str | None = Field(None, description="The address of the next page.")


class ImportedView(Answer):
    """What became of a list of feeds."""

    added: int = Field(description="So many are new.")
    listed: int = Field(description="So many can be followed.")
    problems: list[ProblemItem] = Field(
        description="What of the list was left out; the first hundred."
    )


def times(row: Mapping[Any, Any], *keys: str) -> dict[str, datetime | None]:
    """Return times of a row of the store."""
    return {key: None if row[key] is None else time_of(row[key]) for key in keys}


def clock_times(kept: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a digest or quiet hours as they are asked for.

    Examples
    --------
    >>> clock_times({"at": [480], "zone": "UTC"})
    {'at': ['08:00'], 'zone': 'UTC'}
    """

    def clock(minutes: int) -> str:
        return f"{minutes // 60:02}:{minutes % 60:02}"

    if kept is None:
        return None
    shown = dict(kept)
    for key in ("from", "to"):
        if key in shown:
            shown[key] = clock(shown[key])
    if "at" in shown:
        shown["at"] = [clock(minutes) for minutes in shown["at"]]
    return shown

"""Settings of a subscription besides its query: name, sink, validity, digest and quiet hours.

The models are the fields of a request, and their JSON is what the database stores. Digests and
quiet hours delay matches (`send_at`). They drop none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from graphmatch.broker.models.base import Answer, Model
from graphmatch.broker.models.webhook_secret import new_secret
from graphmatch.topics import Topics
from semantic.errors import Place

PUSHED = frozenset({"webhook", "inbox", "email", "ntfy"})
"""Kinds of sinks that the broker sends matches to. Clients fetch the matches of the others."""


_NAME = r'[^\s\x00-\x1f\x7f-\x9f@<>",;:\\()\[\]]+'


def _mailbox(text: str) -> str:
    if re.fullmatch(f"{_NAME}@{_NAME}", text) is None:
        raise ValueError("not an email address")
    return text


def _one_line(text: str) -> str | None:
    return " ".join(text.split()) or None


_Clock = Annotated[str, Field(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["08:00"])]


class PullSink(Answer, extra="forbid"):
    """A sink without an address: clients fetch the matches as a stream or as a feed."""

    kind: Literal["sse", "feed"]


class EmailSink(Answer, extra="forbid"):
    """An email address. Its owner must confirm it."""

    kind: Literal["email"]
    address: Annotated[str, Field(max_length=254), AfterValidator(_mailbox)]
    include_reasons: bool | None = None


class _UrlSink(Answer, extra="forbid"):
    url: str = Field(max_length=2000)
    include_reasons: bool | None = None


class InboxSink(_UrlSink):
    """An inbox of Linked Data Notifications."""

    kind: Literal["inbox"]


class NtfySink(_UrlSink):
    """A topic of ntfy, with an access token if needed."""

    kind: Literal["ntfy"]
    token: str | None = Field(None, max_length=1000)


class WebhookSink(_UrlSink):
    """A webhook.

    `secret` is the key of the signatures. The broker creates one if it is missing. The default of
    `format` is `json`.
    """

    kind: Literal["webhook"]
    secret: str = Field(default_factory=new_secret, max_length=200)
    format: Literal["json", "cloudevents"] | None = None


Sink = Annotated[
    PullSink | EmailSink | InboxSink | NtfySink | WebhookSink, Field(discriminator="kind")
]


class Digest(Model):
    """Times at which matches are sent together: an interval, or times of the day in a time zone.

    `every` is the number of seconds from one digest to the next, up to 31 days.
    """

    every: int | None = Field(None, ge=60, le=31 * 86_400)
    at: list[_Clock] | None = Field(None, min_length=1, max_length=24)
    zone: ZoneInfo = ZoneInfo("UTC")

    @model_validator(mode="after")
    def _check(self) -> Digest:
        if (self.every is None) == (self.at is None):
            raise ValueError('write {"every": 60} or {"at": ["08:00"], "zone": "Europe/Berlin"}')
        return self


class QuietHours(Model):
    """Hours of the day without messages, in a time zone."""

    begin: _Clock = Field(alias="from")
    end: _Clock = Field(alias="to")
    zone: ZoneInfo = ZoneInfo("UTC")


class SubscriptionSettings(Model):
    """Settings of a subscription. A missing field means the default, or no change.

    `name` is used in messages. The default of `sink` is a stream of server-sent events.
    `expires_in` is the validity in seconds from now, which also renews a subscription. 0 is the
    longest validity, and the default is 30 days. `digest` has the times at which matches are sent
    together, and `quiet_hours` the hours without messages. `null` removes them.
    """

    model_config = ConfigDict(ser_json_timedelta="float")

    name: Annotated[str, Field(max_length=200), AfterValidator(_one_line)] | None = None
    sink: Sink | None = None
    expires_in: Annotated[timedelta, Field(ge=timedelta(0))] | None = None
    digest: Digest | None = None
    quiet_hours: QuietHours | None = None

    def columns(self) -> dict[str, Any]:
        """Return the values of the columns that are set, except for the end of the validity."""
        times = {"digest", "quiet_hours"}
        columns = {"name", "sink", *times}
        values = self.model_dump(mode="json", include=columns, exclude_none=True)
        return dict.fromkeys(times & self.model_fields_set) | values


def default_name(definition: Mapping[str, Any]) -> str:
    """Return the default name of a valid subscription: its topics and words."""
    if definition.keys() & {"query", "where"}:
        return "subscription"
    return (_one_line(Topics.of_row(definition, Place("subscription")).name) or "subscription")[
        :200
    ]


# -- times --------------------------------------------------------------------------------------


def send_at(
    now: datetime, digest: Mapping[str, Any] | None, quiet_hours: Mapping[str, Any] | None
) -> datetime:
    """Return the time at which a new match must be sent.

    Examples
    --------
    >>> at = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)
    >>> send_at(at, None, {"from": "22:00", "to": "07:00", "zone": "UTC"}).isoformat()
    '2026-01-02T07:00:00+00:00'
    >>> send_at(at, {"at": ["08:00"], "zone": "UTC"}, None).isoformat()
    '2026-01-02T08:00:00+00:00'
    """
    due = now
    if digest and "every" in digest:
        seconds = int(digest["every"])
        due = datetime.fromtimestamp((int(now.timestamp()) // seconds + 1) * seconds, UTC)
    elif digest:
        due = min(_next(now, clock, digest["zone"]) for clock in digest["at"])
    if quiet_hours:
        begin, end, zone = quiet_hours["from"], quiet_hours["to"], quiet_hours["zone"]
        at = f"{due.astimezone(ZoneInfo(zone)):%H:%M}"
        if begin <= at < end if begin <= end else at >= begin or at < end:
            due = _next(due, end, zone)
    return due


def _next(after: datetime, clock: str, zone: str) -> datetime:
    """Return the next time at which clocks in a zone show a time of the day."""
    local, (hour, minute) = after.astimezone(ZoneInfo(zone)), map(int, clock.split(":"))
    due = local.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (due if due > local else due + timedelta(days=1)).astimezone(UTC)

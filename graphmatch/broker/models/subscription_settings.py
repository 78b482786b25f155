"""Settings of a subscription besides its query: name, sink, validity, digest and quiet hours.

Digests and quiet hours delay matches (`send_at`). They drop none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
)

from graphmatch.broker.app.errors import InvalidRequestError
from graphmatch.broker.models.webhook_secret import key_of, new_secret
from semantic.errors import Place, Problem

PUSHED = frozenset({"webhook", "inbox", "email", "ntfy"})
"""Kinds of sinks that the broker sends matches to. Clients fetch the matches of the others."""


# -- models -------------------------------------------------------------------------------------


def _minutes(text: object) -> int:
    """Return the minutes after midnight of a time such as ``07:00``."""
    time = datetime.strptime(str(text), "%H:%M")
    return time.hour * 60 + time.minute


def _line(text: str) -> str:
    """Return a name on one line, without excess length."""
    return " ".join(text.split())[:200] or "subscription"


def _webhook_secret(text: str) -> str:
    key_of(text)
    return text


_NAME = r'[^\s\p{C}@<>",;:\\()\[\]]+'
_Url = Annotated[str, Field(max_length=2000, pattern=r"^[^\s\p{C}]+$")]
_Mailbox = Annotated[str, Field(max_length=254, pattern=f"^{_NAME}@{_NAME}$")]
_Secret = Annotated[str, AfterValidator(_webhook_secret), Field(default_factory=new_secret)]
_Minutes = Annotated[int, BeforeValidator(_minutes)]
_Zone = Annotated[ZoneInfo, PlainSerializer(str)]
_UTC = ZoneInfo("UTC")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _PullSink(_Model):
    kind: Literal["sse", "feed"]


class _EmailSink(_Model):
    kind: Literal["email"]
    address: _Mailbox
    include_reasons: bool | None = None


class _UrlSink(_Model):
    url: _Url
    include_reasons: bool | None = None


class _InboxSink(_UrlSink):
    kind: Literal["inbox"]


class _NtfySink(_UrlSink):
    kind: Literal["ntfy"]
    token: str | None = None


class _WebhookSink(_UrlSink):
    kind: Literal["webhook"]
    secret: _Secret
    format: Literal["json", "cloudevents"] | None = None


class _Interval(_Model):
    every: int = Field(ge=60, le=31 * 86_400)


class _Times(_Model):
    at: list[_Minutes] = Field(min_length=1, max_length=24)
    zone: _Zone = _UTC


class _QuietHours(_Model):
    begin: _Minutes = Field(alias="from")
    end: _Minutes = Field(alias="to")
    zone: _Zone = _UTC


_EMPTY_IS_NONE = BeforeValidator(lambda value: value or None)
_Sink = _PullSink | _EmailSink | _InboxSink | _NtfySink | _WebhookSink


class _Settings(_Model):
    name: Annotated[str, AfterValidator(_line)] | None = None
    sink: Annotated[_Sink, Field(discriminator="kind")] | None = None
    digest: Annotated[_Interval | _Times | None, _EMPTY_IS_NONE] = None
    quiet_hours: Annotated[_QuietHours | None, _EMPTY_IS_NONE] = None


_FAULTS = {"address": "not an e-mail address", "url": "the URL is not valid"}
_REMEDIES = {
    "name": "Write a string.",
    "sink": "Write kind and the keys of that kind, for instance url or address.",
    "digest": 'Write {"every": 60}, up to 31 days, or {"at": ["08:00"], "zone": "Europe/Berlin"}.',
    "quiet_hours": 'Write {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}.',
}


# -- settings -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SubscriptionSettings:
    """Settings of a subscription. ``None`` means the default, or no change.

    Parameters
    ----------
    name
        Name of the subscription, for people.
    sink
        Destination of matches: ``kind`` and the other keys of that kind, for instance ``url``.
    expires_in
        Validity; 0 is the longest one.
    digest
        Times at which matches are sent together: ``{"every": seconds}`` or
        ``{"at": ["08:00"], "zone": "Europe/Berlin"}``. An empty mapping ends the digest.
    quiet_hours
        Hours without deliveries: ``{"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}``.
        An empty mapping ends them.
    """

    name: str | None = None
    sink: Mapping[str, Any] | None = None
    expires_in: timedelta | None = None
    digest: Mapping[str, Any] | None = None
    quiet_hours: Mapping[str, Any] | None = None

    def columns(self) -> dict[str, Any]:
        """Return the values of the columns that are set, except for the end of the validity.

        Times are in minutes after midnight. A webhook without a secret gets a new one.

        Raises
        ------
        InvalidRequestError
            If a setting is not valid. Whether a URL may be requested is not checked.
        """
        values = {key: value for key in _REMEDIES if (value := getattr(self, key)) is not None}
        try:
            model = _Settings.model_validate(values)
        except ValidationError as error:
            fault, place = error.errors()[0], str(error.errors()[0]["loc"][0])
            item = str(fault["loc"][-1])
            is_vague = fault["type"] == "string_pattern_mismatch" or place == "digest"
            what = _FAULTS.get(item, "not valid") if is_vague else fault["msg"]
            where = Place(".".join(dict.fromkeys((place, item))))
            raise InvalidRequestError(Problem(what, where, _REMEDIES[place])) from error
        columns = model.model_dump(by_alias=True, exclude_none=True)
        return {key: columns.get(key) for key in values}


def name_of(definition: Mapping[str, Any]) -> str:
    """Return the default name of a subscription: its topics and words."""
    values = [definition.get("topics") or [], definition.get("words") or []]
    lists = [value if isinstance(value, list) else [value] for value in values]
    return _line(", ".join(str(word) for words in lists for word in words))


def checked_sink(sink: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return a valid sink, and the secret of a webhook."""
    checked: dict[str, Any] = SubscriptionSettings(sink=sink).columns()["sink"]
    return checked, checked.get("secret")


def checked_digest(digest: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the valid times of a digest, as `SubscriptionSettings.columns` does."""
    checked: dict[str, Any] | None = SubscriptionSettings(digest=digest).columns()["digest"]
    return checked


# -- times --------------------------------------------------------------------------------------


def send_at(
    now: datetime, digest: Mapping[str, Any] | None, quiet_hours: Mapping[str, Any] | None
) -> datetime:
    """Return the time at which a new match must be sent.

    Examples
    --------
    >>> at = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)
    >>> quiet_hours = {"from": 22 * 60, "to": 7 * 60, "zone": "UTC"}
    >>> send_at(at, None, quiet_hours).isoformat()
    '2026-01-02T07:00:00+00:00'
    >>> send_at(at, {"at": [8 * 60], "zone": "UTC"}, None).isoformat()
    '2026-01-02T08:00:00+00:00'
    """
    due = now
    if digest and "every" in digest:
        seconds = int(digest["every"])
        due = datetime.fromtimestamp((int(now.timestamp()) // seconds + 1) * seconds, UTC)
    elif digest:
        due = min(_next(now, minutes, digest["zone"]) for minutes in digest["at"])
    if quiet_hours:
        local = due.astimezone(ZoneInfo(quiet_hours["zone"]))
        at, begin, end = local.hour * 60 + local.minute, quiet_hours["from"], quiet_hours["to"]
        is_quiet = begin <= at < end if begin <= end else at >= begin or at < end
        if is_quiet:
            due = _next(due, end, quiet_hours["zone"])
    return due


def _next(after: datetime, minutes: int, zone: str) -> datetime:
    """Return the next time at which clocks in a zone show some minutes after midnight."""
    local = after.astimezone(ZoneInfo(zone))
    due = local.replace(hour=minutes // 60, minute=minutes % 60, second=0, microsecond=0)
    if due <= local:
        due = (due + timedelta(days=1)).replace(hour=minutes // 60, minute=minutes % 60)
    return due.astimezone(UTC)

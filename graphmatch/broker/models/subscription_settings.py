"""What may be said of a subscription beside what it is for: its name, sink, digest and quiet_hours hours.

Digests and quiet_hours hours move when a match is sent (`send_at`); nothing is dropped by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from graphmatch.broker.app.errors import InvalidRequestError
from graphmatch.broker.models.webhook_secret import key_of, new_secret
from semantic.errors import Place, Problem

SINKS = ("webhook", "sse", "inbox", "feed", "email", "ntfy")
PUSHED = frozenset({"webhook", "inbox", "email", "ntfy"})
"""Sinks that matches are sent to; of the others they are fetched."""


@dataclass(frozen=True, slots=True)
class SubscriptionSettings:
    """What may be said of a subscription beside what it is for; ``None``: nothing is said.

    Parameters
    ----------
    name
        What its matches are called, for people.
    sink
        ``kind`` and what that needs: ``url``, ``address``, ``token``, and ``why``, whether reasons
        are sent.
    expires_in
        How long it is valid; 0: without end, where the limits allow it.
    digest
        Matches are told together: ``{"every": seconds}`` or ``{"at": ["08:00"], "zone": …}``.
    quiet_hours
        When nothing is sent: ``{"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}``.
    """

    name: str | None = None
    sink: Mapping[str, Any] | None = None
    expires_in: timedelta | None = None
    digest: Mapping[str, Any] | None = None
    quiet_hours: Mapping[str, Any] | None = None


def name_of(name: str | None, given: Mapping[str, Any]) -> str:
    """Return what a subscription is called: what its owner says, or what it is for."""
    if name is None:
        words = [*_list(given.get("topics")), *_list(given.get("words"))]
        name = ", ".join(map(str, words)) or "subscription"
    return " ".join(str(name).split())[:200] or "subscription"


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]


def checked_sink(sink: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return a sink as it is kept, and the secret of a webhook, which was made where none is given.

    Raises
    ------
    RefusedError
        When it is none.
    """
    kind = sink.get("kind")
    place = Place("sink")
    if kind not in SINKS:
        what = f"{kind!r} is not a kind of sink"
        raise InvalidRequestError(Problem(what, place, f"Say one of {', '.join(SINKS)}."))
    keys = {
        "webhook": {"url", "secret", "include_reasons"},
        "inbox": {"url", "include_reasons"},
        "ntfy": {"url", "token", "include_reasons"},
        "email": {"address", "include_reasons"},
    }.get(kind, set())
    if unknown := sink.keys() - keys - {"kind"}:
        what = f"a sink of this kind has no {min(unknown)!r}"
        raise InvalidRequestError(
            Problem(what, place, f"It has {', '.join(sorted({'kind', *keys}))}.")
        )
    kept = dict(sink)
    if "url" in keys and not _is_address(str(sink.get("url", ""))):
        remedy = "Give an http: or https: URL without a password."
        raise InvalidRequestError(Problem("the URL is not valid", Place("sink.url"), remedy))
    if "address" in keys:
        address = str(sink.get("address", ""))
        local, at, domain = address.rpartition("@")
        odd = any(c.isspace() or c in '<>",;:\\()[]' for c in address)
        if not (local and at and domain) or odd or len(address) > 254:
            what = "not an e-mail address"
            raise InvalidRequestError(
                Problem(what, Place("sink.address"), "Write name@example.org.")
            )
    if not isinstance(sink.get("token", ""), str):
        raise InvalidRequestError(
            Problem("a token is a text", Place("sink.token"), "Write it in quotes.")
        )
    if not isinstance(sink.get("include_reasons", True), bool):
        raise InvalidRequestError(Problem("`why` is true or false", place, "Write one of them."))
    secret: str | None = None
    if kind == "webhook":
        secret = str(sink["secret"]) if "secret" in sink else new_secret()
        key_of(secret)
        kept["secret"] = secret
    return kept, secret


def _is_address(text: str) -> bool:
    """Whether it is a URL that can be sent to: its port, too, is looked at only when it is used."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return False
    is_web = url.scheme in ("http", "https") and bool(url.hostname) and port != 0
    return is_web and url.username is None and text.isprintable() and " " not in text


def checked_quiet(quiet_hours: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the hours in which nothing is sent; an empty mapping takes them away."""
    if not quiet_hours:
        return None
    if quiet_hours.keys() != {"from", "to", "zone"} and quiet_hours.keys() != {"from", "to"}:
        remedy = 'Write {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}.'
        raise InvalidRequestError(Problem("invalid hours", Place("quiet_hours"), remedy))
    return {
        "from": _minutes(quiet_hours["from"], "quiet_hours.from"),
        "to": _minutes(quiet_hours["to"], "quiet_hours.to"),
        "zone": _zone(quiet_hours.get("zone", "UTC"), "quiet_hours.zone"),
    }


def checked_digest(digest: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return when matches are told together; an empty mapping takes that away."""
    if not digest:
        return None
    if digest.keys() == {"every"} and isinstance(digest["every"], int):
        if 60 <= digest["every"] <= 31 * 86400:
            return {"every": digest["every"]}
    elif digest.keys() in ({"at"}, {"at", "zone"}) and isinstance(digest["at"], list):
        times = sorted({_minutes(one, "digest.at") for one in digest["at"]})
        if 0 < len(times) <= 24:
            return {"at": times, "zone": _zone(digest.get("zone", "UTC"), "digest.zone")}
    remedy = 'Write {"every": seconds}, a minute to 31 days, or {"at": ["08:00"], "zone": "UTC"}.'
    raise InvalidRequestError(Problem("invalid times of a digest", Place("digest"), remedy))


def send_at(
    now: datetime, digest: Mapping[str, Any] | None, quiet_hours: Mapping[str, Any] | None
) -> datetime:
    """Return when a match that is found now is to be sent.

    Examples
    --------
    >>> at = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)
    >>> send_at(at, None, checked_quiet({"from": "22:00", "to": "07:00"})).isoformat()
    '2026-01-02T07:00:00+00:00'
    >>> send_at(at, checked_digest({"at": ["08:00"]}), None).isoformat()
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
    """Return the next time at which the clocks of a zone show some minutes after midnight."""
    local = after.astimezone(ZoneInfo(zone))
    found = local.replace(hour=minutes // 60, minute=minutes % 60, second=0, microsecond=0)
    if found <= local:
        found = (found + timedelta(days=1)).replace(hour=minutes // 60, minute=minutes % 60)
    return found.astimezone(UTC)


def _minutes(text: object, where: str) -> int:
    try:
        time = datetime.strptime(str(text), "%H:%M")
    except ValueError as error:
        raise InvalidRequestError(
            Problem(f"{text!r} is no time", Place(where), "Write 07:00.")
        ) from error
    return time.hour * 60 + time.minute


def _zone(name: object, where: str) -> str:
    try:
        return ZoneInfo(str(name)).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        what = f"{name!r} is not a time zone"
        raise InvalidRequestError(
            Problem(what, Place(where), "Write Europe/Berlin, say.")
        ) from error

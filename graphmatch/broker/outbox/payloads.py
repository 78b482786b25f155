"""Messages to subscribers: JSON payloads and plain text from the rows of the database.

A payload is JSON: ``type`` (``match``, ``digest``, ``subscription.confirmation``,
``subscription.expiring``, ``subscription.expired``, ``subscription.test``), ``id`` (the
``webhook-id``), ``timestamp``, ``subscription``, ``name``, ``matches``, ``total``, and ``link``,
the URL of the complete delivery.
If a payload is too large, the reasons are removed first, then solutions, then matches.

A webhook may ask for a structured CloudEvent (https://cloudevents.io), whose ``data`` is the
payload. An inbox of Linked Data
Notifications (https://www.w3.org/TR/ldn/) receives an ActivityStreams ``Announce`` instead.

Reasons are sent if the sink has ``include_reasons``, and in email by default. Each match is then
matched again, so these messages are made after the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pydantic_core import from_json, to_json
from sqlalchemy import BigInteger, bindparam, func, select

from graphmatch.broker.app.security import derived_key
from graphmatch.broker.db.delivery_queries import DeliveryState, Result, move_delivery
from graphmatch.broker.db.match_queries import MATCH_ROWS
from graphmatch.broker.db.tables import matches, publications, subscriptions
from graphmatch.broker.models.attempt import ClaimedDelivery
from graphmatch.broker.models.subscription_settings import PUSHED
from graphmatch.broker.models.times import time_of
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import host_of
from semantic.clock import now_text
from semantic.terms import written

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row, RowMapping

    from graphmatch.broker.outbox.websub_hub import HubRequest
    from graphmatch.explain.evidence import Evidence

MATCHES = 100
"""Maximum number of matches in the payload of a digest."""
REASONS_SECONDS = 2.0
"""Time limit of the search for the reasons of one message, in seconds."""
TEXT_CHARACTERS = 2000
"""Maximum length of a title or a link."""
_IN_TEXT = 20
"""Maximum number of items in the plain text."""
_REASONS_IN_TEXT = 3
"""Maximum number of reasons per item in the plain text."""
_TEXTS = {
    "subscription.confirmation": (
        "Confirm your subscription",
        "Open this link to receive messages:\n{confirm}\n\nIf you did not subscribe, do nothing.",
    ),
    "subscription.expiring": (
        "{name}: the subscription ends soon",
        "It ends at {expires_at}. Renew it before that time.",
    ),
    "subscription.expired": ("{name}: the subscription has ended", "It has ended."),
    "subscription.test": ("{name}: test message", "This is a test message. The sink works."),
}
"""Titles and texts of messages without matches."""
_NUMBERS = bindparam("numbers", type_=BigInteger, expanding=True)
_SUBSCRIPTIONS = select(subscriptions).where(subscriptions.c.number.in_(_NUMBERS))
_ORDERED = MATCH_ROWS.order_by(matches.c.seq)
_SINGLE = _ORDERED.where(matches.c.delivery.in_(_NUMBERS))
_DIGEST = _ORDERED.add_columns(func.count().over().label("total")).limit(MATCHES)

View: TypeAlias = dict[str, Any]
"""The JSON object of a match."""


class Message(NamedTuple):
    """A message to a subscriber.

    Parameters
    ----------
    id
        Id of the delivery, the same for each attempt: letters, digits, ``-`` and ``_``.
    name
        Name of the subscription.
    title, text
        Text for people; ``text`` has lines.
    created
        Time of the first match, with its zone.
    body, content_type
        Payload for programs.
    link
        URL of the publication, or of the delivery.
    unsubscribe
        URL that ends the subscription with one click.
    """

    id: str
    name: str
    title: str
    text: str
    created: datetime
    body: bytes = b""
    link: str = ""
    unsubscribe: str | None = None
    content_type: str = "application/json"


class Contents(NamedTuple):
    """Data for the messages of a batch of deliveries, from the database.

    Parameters
    ----------
    subscriptions
        Rows by subscription number.
    matches
        Rows by delivery, ordered by ``seq``. A digest has at most `MATCHES`, and the column
        ``total``.
    """

    subscriptions: Mapping[int, RowMapping]
    matches: Mapping[int, Sequence[RowMapping]]


def contents(db: Connection, batch: Sequence[ClaimedDelivery]) -> Contents:
    """Read the data for the messages of a batch of deliveries."""
    numbers = sorted({row.subscription for row in batch})
    known = db.execute(_SUBSCRIPTIONS, {"numbers": numbers}).mappings()
    rows: dict[int, list[RowMapping]] = {}
    single = [row.id for row in batch if row.kind == "match"]
    for row in db.execute(_SINGLE, {"numbers": single}).mappings():
        rows.setdefault(row["delivery"], []).append(row)
    for digest in (row.id for row in batch if row.kind == "digest"):
        chosen = _DIGEST.where(matches.c.delivery == digest)
        rows[digest] = list(db.execute(chosen).mappings())
    return Contents({row["number"]: row for row in known}, rows)


class Item(NamedTuple):
    """A message, its receiver, and the hours in which it is not sent again."""

    delivery: ClaimedDelivery
    message: Message | HubRequest
    sink: Mapping[str, Any]
    quiet_hours: Mapping[str, Any] | None = None


class Composer:
    """Makes messages; its methods run in threads.

    Parameters
    ----------
    base
        URL of the broker, for links.
    hub_request
        Returns the request of a delivery of the WebSub hub, with a maximum size.
    """

    def __init__(
        self, broker: Broker, base: str, hub_request: Callable[..., HubRequest | None]
    ) -> None:
        self._broker, self._base, self._hub_request = broker, base, hub_request

    def compose(self, rows: Sequence[ClaimedDelivery], explain: bool) -> dict[int, Item | Result]:
        """Return the message of each delivery, or what to write if there is none.

        Without `explain`, deliveries whose messages need reasons are missing.
        """
        made: dict[int, Item | Result] = {}

        def work(batch: Sequence[ClaimedDelivery]) -> None:
            known = self._broker.store.read_now(partial(contents, batch=batch))
            for row in batch:
                item = self._item(row, known, explain)
                if isinstance(item, str):
                    made[row.id] = DeliveryState(row.id, "failed", row.attempt, error=item)
                elif item is not None:
                    made[row.id] = item

        name = "delivery {0.id}".format
        for row, error in self._broker.supervisor.each("messages", rows, work, name):
            made[row.id] = DeliveryState(row.id, "failed", row.attempt, error=error)
        return made

    def _item(
        self, row: ClaimedDelivery, known: Contents, explain: bool
    ) -> Item | Result | str | None:
        """Return an item, a change, the reason that nothing is sent, or ``None`` as `compose`."""
        limit = self._broker.limits.payload_bytes
        subscription = known.subscriptions[row.subscription]
        sink = subscription["sink"]
        if row.callback is not None:
            call = self._broker.store.read_now(partial(self._hub_request, row=row, limit=limit))
            return Item(row, call, sink) if call else "the WebSub subscription has ended"
        if subscription["reason"] == "unsubscribed" or sink["kind"] not in PUSHED:
            return "the subscription gets no messages any more"
        if (subscription["state"] == "unconfirmed") != (row.kind == "confirmation"):
            return "the email address is not confirmed, or was confirmed before"
        if (host := host_of(sink)) != row.host:
            return partial(move_delivery, id=row.id, host=host)
        if row.kind in ("match", "digest") and not known.matches.get(row.id):
            return "its matches were deleted"
        why: dict[int, list[dict[str, Any]]] = {}
        if sink.get("include_reasons", sink["kind"] == "email"):
            if not explain:
                return None
            why = self._reasons(row, known)
        sent = message(row, known, why, self._base, limit)
        return Item(row, sent, sink, subscription["quiet_hours"])

    def _reasons(self, row: ClaimedDelivery, known: Contents) -> dict[int, list[dict[str, Any]]]:
        """Return the reasons of the matches of a delivery that are found in time.

        Each publication is matched again with the current subscriptions of the engine.
        """
        engine, until = self._broker.engine, time.monotonic() + REASONS_SECONDS
        generation = known.subscriptions[row.subscription]["generation"]
        why: dict[int, list[dict[str, Any]]] = {}
        for match in known.matches.get(row.id, ()):
            seq = match["publication"]
            if match["generation"] != generation or time.monotonic() > until:
                continue
            with self._broker.supervisor.record("reasons", f"publication {seq}", attempts=1):
                stored = self._broker.store.read_now(partial(_publication, seq=seq))
                for report in engine.filter(stored.data, "nt", "document", name=stored.id):
                    for proof in engine.evidence(report, {str(row.subscription)}).values():
                        why[seq] = [_reason(part) for part in proof]
        return why


def _publication(db: Connection, seq: int) -> Row[*tuple[Any, ...]]:
    return db.execute(select(publications).where(publications.c.seq == seq)).one()


def _reason(part: Evidence) -> dict[str, Any]:
    """Return a matching triple, or a filter and its value, with its reasons."""
    if part.triple is not None:
        return {"because": list(part.reasons), "triple": " ".join(map(written, part.triple))}
    found = {"filter": part.pattern.write({}), "value": str(part.value)}
    return {"because": list(part.reasons), **found}


def message(
    delivery: ClaimedDelivery, known: Contents, why: Mapping[int, object], base: str, limit: int
) -> Message:
    """Return the message of a delivery.

    Parameters
    ----------
    why
        Reasons to include in the payload, by ``seq`` of the publication.
    base
        URL of the broker.
    limit
        Maximum size of the payload, in bytes.
    """
    row, rows = known.subscriptions[delivery.subscription], known.matches.get(delivery.id, ())
    is_match, kind, sink = delivery.kind in ("match", "digest"), delivery.kind, row["sink"]
    own, link = f"{base}/v1/subscriptions/{row['id']}", f"{base}/v1/deliveries/{delivery.id}"
    name, created = row["name"], time_of(delivery.created_at)
    frame: dict[str, Any] = {
        "type": kind if is_match else f"subscription.{kind}",
        "id": f"msg_{row['id'].removeprefix('sub_')}_{delivery.id}",  # Unique across brokers.
        "timestamp": now_text(created),
        "subscription": row["id"],
        "name": name,
        "link": link,
    }
    if is_match:
        frame["total"] = rows[0].get("total", len(rows))
    elif row["expires_at"] is not None:
        frame["expires_at"] = now_text(time_of(row["expires_at"]))
    if kind == "confirmation":
        frame["confirm"] = f"{own}/link?key={row['confirmation']}"
        name = ""  # A stranger may have written it.
    views = [match_view(match, base, limit) for match in rows]
    for view in views:
        if proof := why.get(view["publication"]["seq"]):
            view["reasons"] = proof
    if sink["kind"] == "webhook":
        is_event = sink.get("format") == "cloudevents"

        def document(some: Sequence[View]) -> dict[str, Any]:
            payload = {**frame, "matches": some} if is_match else frame
            return _event(payload, own) if is_event else payload

        smaller = ([match_view(match, base, size) for match in rows] for size in (limit, 0))
        body = fitted(document, chain([views], smaller), limit)
        content_type = f"application/{'cloudevents+' if is_event else ''}json"
        return Message(frame["id"], name, "", "", created, body, content_type=content_type)
    title, text = _text(frame, views)
    if sink["kind"] == "inbox":
        body = fitted(partial(_announce, frame, title, own), [views], limit)
        return Message(frame["id"], name, title, text, created, body)
    if len(views) == 1:
        link = views[0]["publication"]["link"] or link
    key = derived_key(row["ticket"], row["id"], "unsubscribe")
    unsubscribe = f"{own}/link?key={key}"
    return Message(frame["id"], name, title, text, created, b"", link, unsubscribe)


def match_view(row: RowMapping, root: str, limit: int | None = None) -> View:
    """Return the JSON object of a match, the same on every channel.

    Parameters
    ----------
    row
        Row of `graphmatch.broker.db.match_queries`.
    root
        Start of the broker's URLs.
    limit
        Maximum size of the solutions, in bytes. Larger ones are left out.
    """
    truncated, solutions = bool(row["truncated"]), row["solutions"]
    if limit is not None and len(solutions) > limit:
        truncated, solutions = True, '{"graph":[]}' if solutions.startswith("{") else "[]"
    return {
        "seq": row["seq"],
        "subscription": row["subscription_id"],
        "generation": row["generation"],
        "publication": {
            "seq": row["publication"],
            "id": row["publication_id"],
            "url": f"{root}/v1/publications/{row['publication']}",
            "title": row["title"] and row["title"][:TEXT_CHARACTERS],
            "link": row["link"] and row["link"][:TEXT_CHARACTERS],
            "summary": row["summary"],
        },
        "sources": row["sources"].split("\n"),
        "matched_at": now_text(time_of(row["matched_at"])),
        "solutions": from_json(solutions),
        "truncated": truncated,
        "ontology_version": f"{row['ontology_version'] & 0xFFFF_FFFF_FFFF_FFFF:x}",
        "url": f"{root}/v1/matches/{row['seq']}",
    }


def in_sources(view: Mapping[str, Any]) -> str:
    """Return a line with the sources of a match; empty if there is only one."""
    return f"in {', '.join(view['sources'])}" if len(view["sources"]) > 1 else ""


# -- sizes --------------------------------------------------------------------------------------


def _event(payload: Mapping[str, Any], own: str) -> dict[str, Any]:
    """Return a payload as a structured CloudEvent."""
    event = {"specversion": "1.0", "id": payload["id"], "source": own}
    event |= {"type": f"org.graphmatch.{payload['type']}", "datacontenttype": "application/json"}
    return {**event, "time": payload["timestamp"], "data": payload}


def _announce(
    frame: Mapping[str, Any], summary: str, own: str, views: Sequence[View]
) -> dict[str, Any]:
    """Return an ActivityStreams ``Announce`` of publications, or else of the subscription."""
    names = {"id": "id", "name": "title", "url": "link", "summary": "summary"}
    items = [view["publication"] for view in views]
    documents = [
        {"type": "Document"} | {key: item[name] for key, name in names.items() if item[name]}
        for item in items
    ]
    activity = {"@context": "https://www.w3.org/ns/activitystreams", "type": "Announce"}
    activity |= {"id": frame["link"], "actor": own, "summary": summary}
    return {**activity, "published": frame["timestamp"], "object": documents or [own]}


def fitted(
    document: Callable[[Sequence[Any]], object], variants: Iterable[Sequence[Any]], limit: int
) -> bytes:
    """Return the JSON of a document with the first list that fits, or the start of the last."""
    entries: Sequence[Any] = ()
    for entries in variants:
        body = to_json(document(entries))
        if len(body) <= limit:
            return body
    room = limit + 1 - len(to_json(document([])))
    sizes = accumulate(len(to_json(entry)) + 1 for entry in entries)  # Each with its comma.
    shown = [entry for entry, size in zip(entries, sizes, strict=True) if size <= room]
    return to_json(document(shown))


# -- texts --------------------------------------------------------------------------------------


def _text(frame: Mapping[str, Any], views: Sequence[View]) -> tuple[str, str]:
    """Return a title and a plain text for people."""
    if not views:
        title, text = _TEXTS[frame["type"]]
        return title.format_map(frame), text.format_map(frame)
    lines: list[str] = []
    for view in views[:_IN_TEXT]:
        item = view["publication"]
        because = dict.fromkeys(
            line for part in view.get("reasons", ()) for line in part["because"]
        )
        more = [item["summary"], *list(because)[:_REASONS_IN_TEXT], item["link"], in_sources(view)]
        lines += [item["title"] or item["id"], *(f"  {line}" for line in more if line)]
    total = frame["total"]
    if total > _IN_TEXT:
        lines.append(f"and {total - _IN_TEXT:,} more: {frame['link']}")
    title = lines[0] if total == 1 else f"{total:,} new"
    return f"{frame['name']}: {title}", "\n".join(lines)

"""Messages to subscribers: JSON payloads and plain text from the rows of the database.

A payload is JSON: ``type`` (``match``, ``digest``, ``subscription.confirmation``,
``subscription.expiring``, ``subscription.expired``, ``subscription.test``), ``id`` (the
``webhook-id``), ``timestamp``, ``subscription``, ``name``, ``matches``, ``total``, and ``link``,
the URL of the complete delivery.
If a payload is too large, the reasons are removed first, then solutions, then matches.

A webhook may ask for a structured CloudEvent, whose ``data`` is the payload. An inbox of Linked
Data Notifications receives an ActivityStreams ``Announce`` instead.

Reasons are sent if the sink has ``include_reasons``, and in email by default. Each match is then
matched again, so these messages are made after the others.

Sources: https://cloudevents.io, https://www.w3.org/TR/ldn/,
https://www.w3.org/TR/activitystreams-vocabulary/.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import func, select

from graphmatch.broker.app.security import derived_key
from graphmatch.broker.db.delivery_queries import move_delivery
from graphmatch.broker.db.match_queries import MATCH_ROWS
from graphmatch.broker.db.tables import matches, publications, subscriptions
from graphmatch.broker.models.claimed_delivery import ClaimedDelivery
from graphmatch.broker.models.subscription_settings import PUSHED
from graphmatch.broker.models.times import millis, time_of
from graphmatch.broker.outbox.match_feed import first_entries, match_view, to_json
from graphmatch.broker.outbox.senders import HubRequest, Message
from graphmatch.broker.outbox.websub_hub import KINDS, hub_request
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import host_of
from semantic.clock import now_text
from semantic.terms import written

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

    from graphmatch.engine import Engine

MATCHES = 100
"""Maximum number of matches in the payload of a digest."""
REASONS_SECONDS = 2.0
"""Time limit of the search for reasons for one batch, in seconds."""
_IN_TEXT = 20
"""Maximum number of items in the plain text."""
_REASONS_IN_TEXT = 3
"""Maximum number of reasons per item in the plain text."""

Reasons: TypeAlias = Mapping[tuple[int, int], list[dict[str, Any]]]
"""Reasons of matches, by ``seq`` of the publication and number of the subscription."""
View: TypeAlias = dict[str, Any]
"""The JSON object of a match."""

log = logging.getLogger("graphmatch.broker")


@dataclass(frozen=True, slots=True)
class Item:
    """A message, its receiver, and the hours in which it is not sent again."""

    delivery: ClaimedDelivery
    message: Message | HubRequest
    sink: Mapping[str, Any]
    quiet_hours: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """Data for the messages of a batch of deliveries, from the database.

    Parameters
    ----------
    subscriptions
        Rows by subscription number.
    matches
        Rows by delivery, ordered by ``seq``. A digest has at most `MATCHES`.
    totals
        Number of all matches of each digest.
    """

    subscriptions: Mapping[int, RowMapping]
    matches: Mapping[int, Sequence[RowMapping]]
    totals: Mapping[int, int]


def contents(db: Connection, batch: Sequence[ClaimedDelivery]) -> Contents:
    """Read the data for the messages of a batch of deliveries."""
    numbers = {row.subscription for row in batch}
    known = db.execute(select(subscriptions).where(subscriptions.c.number.in_(numbers)))
    rows: dict[int, list[RowMapping]] = {}
    totals: dict[int, int] = {}
    ordered = MATCH_ROWS.order_by(matches.c.seq)
    single = [row.id for row in batch if row.kind == "match"]
    for row in db.execute(ordered.where(matches.c.delivery.in_(single))).mappings():
        rows.setdefault(row["delivery"], []).append(row)
    for digest in (row.id for row in batch if row.kind == "digest"):
        mine = matches.c.delivery == digest
        rows[digest] = list(db.execute(ordered.where(mine).limit(MATCHES)).mappings())
        totals[digest] = db.scalar(select(func.count()).where(mine)) or 0
    return Contents({row["number"]: row for row in known.mappings()}, rows, totals)


class Composer:
    """Makes messages; its methods run in threads.

    Parameters
    ----------
    base
        URL of the broker, for links.
    """

    def __init__(self, broker: Broker, base: str) -> None:
        self._broker, self._base = broker, base

    def compose(
        self, rows: Sequence[ClaimedDelivery], explain: bool
    ) -> dict[int, Item | str | None]:
        """Return the message of each delivery.

        A text is the reason that there is no message. It is empty if the delivery was moved to the
        host of a new sink. ``None`` means that the message needs reasons, and `explain` is not set.
        """
        made: dict[int, Item | str | None] = {}

        def work(batch: Sequence[ClaimedDelivery]) -> None:
            known = self._broker.store.read_now(partial(contents, batch=batch))
            why = self._reasons(batch, known) if explain else None
            made.update({row.id: self._item(row, known, why) for row in batch})

        name = "delivery {0.id}".format
        for row, error in self._broker.supervisor.each("messages", rows, work, name):
            made[row.id] = error
        return made

    def _item(
        self, row: ClaimedDelivery, known: Contents, why: Reasons | None
    ) -> Item | str | None:
        store, limit = self._broker.store, self._broker.limits.payload_bytes
        subscription = known.subscriptions[row.subscription]
        sink = subscription["sink"]
        if row.kind in KINDS:
            now = millis(self._broker.clock())
            call = store.read_now(partial(hub_request, row=row, limit=limit, now=now))
            return Item(row, call, sink) if call else "the WebSub subscription has ended"
        if subscription["reason"] == "unsubscribed":
            return "the subscription has ended"
        if (subscription["state"] == "unconfirmed") != (row.kind == "confirmation"):
            return "the email address is not confirmed, or was confirmed before"
        if sink["kind"] not in PUSHED:
            return "the subscription's matches are not sent any more"
        if (host := host_of(sink)) != row.host:
            store.write_now(partial(move_delivery, id=row.id, host=host))
            return ""
        if why is None and sink.get("include_reasons", sink["kind"] == "email"):
            return None
        sent = message(row, known, why or {}, self._base, limit)
        quiet_hours = subscription["quiet_hours"]
        return "its matches were deleted" if sent is None else Item(row, sent, sink, quiet_hours)

    def _reasons(self, batch: Sequence[ClaimedDelivery], known: Contents) -> Reasons:
        """Return the reasons of the matches of a batch that are found in time."""
        wanted: dict[int, set[int]] = {}
        for row in batch:
            generation = known.subscriptions[row.subscription]["generation"]
            for match in known.matches.get(row.id, ()):
                if match["generation"] == generation:
                    wanted.setdefault(match["publication"], set()).add(row.subscription)
        proofs: dict[tuple[int, int], list[dict[str, Any]]] = {}
        until = time.monotonic() + REASONS_SECONDS
        for seq, numbers in wanted.items():
            if time.monotonic() > until:
                log.warning("reasons are left out: they took more than %g s", REASONS_SECONDS)
                break
            with self._broker.supervisor.record("reasons", f"publication {seq}", attempts=1):
                id, data = self._broker.store.read_now(partial(_publication, seq=seq))
                for number, proof in reasons(self._broker.engine, id, data, numbers).items():
                    proofs[seq, number] = proof
        return proofs


def _publication(db: Connection, seq: int) -> tuple[str, bytes]:
    row = db.execute(select(publications).where(publications.c.seq == seq)).mappings().one()
    return row["id"], row["data"]


def reasons(
    engine: Engine, id: str, data: bytes, numbers: Collection[int]
) -> dict[int, list[dict[str, Any]]]:
    """Return the matching triples and filters of a publication, with reasons, by subscription.

    The publication is matched again with the current subscriptions of the engine. `numbers` are
    the subscriptions to explain.
    """
    proofs: dict[int, list[dict[str, Any]]] = {}
    for report in engine.filter(data, "nt", "document", name=id):
        for number, proof in engine.evidence(report, set(map(str, numbers))).items():
            parts = proofs[int(number)] = []
            for part in proof:
                reason: dict[str, Any] = {"because": list(part.reasons)}
                if part.triple is not None:
                    reason["triple"] = " ".join(map(written, part.triple))
                else:
                    reason |= {"filter": part.pattern.write({}), "value": str(part.value)}
                parts.append(reason)
    return proofs


def message(
    delivery: ClaimedDelivery, known: Contents, why: Reasons, base: str, limit: int
) -> Message | None:
    """Return the message of a delivery, or ``None`` if its matches were deleted.

    Parameters
    ----------
    why
        Reasons to include in the payload.
    base
        URL of the broker.
    limit
        Maximum size of the payload, in bytes.
    """
    row, rows = known.subscriptions[delivery.subscription], known.matches.get(delivery.id, ())
    is_match, kind, sink = delivery.kind in ("match", "digest"), delivery.kind, row["sink"]
    if is_match and not rows:
        return None
    own, link = f"{base}/v1/subscriptions/{row['id']}", f"{base}/v1/deliveries/{delivery.id}"
    name, created = row["name"], time_of(delivery.created_at)
    frame: dict[str, Any] = {
        "type": kind if is_match else f"subscription.{kind}",
        "id": message_id(row["id"], delivery.id),
        "timestamp": now_text(created),
        "subscription": row["id"],
        "name": name,
        "link": link,
    }
    if is_match:
        frame["total"] = known.totals.get(delivery.id, len(rows))
    elif row["expires_at"] is not None:
        frame["expires_at"] = now_text(time_of(row["expires_at"]))
    if kind == "confirmation":
        frame["confirm"] = f"{own}/link?key={row['confirmation']}"
        name = ""  # A stranger may have written it.
    views = [match_view(match, base, limit) for match in rows]
    proofs = [why.get((match["publication"], delivery.subscription)) for match in rows]
    title, text = _text(frame, views, proofs)
    made = partial(Message, frame["id"], name, title, text, created)
    if len(views) == 1:
        link = views[0]["publication"]["link"] or link
    if sink["kind"] in ("email", "ntfy"):
        key = derived_key(row["ticket"], row["id"], "unsubscribe")
        return made(link=link, unsubscribe=f"{own}/link?key={key}")
    if sink["kind"] == "inbox":
        activity = _announce(frame, title, own)
        return made(fitted(activity, "object", [[*map(_document, views)] or [own]], limit))

    def body(room: int) -> bytes:
        variants = _variants(rows, views, proofs, base, room)
        return fitted(frame, "matches", variants, room) if is_match else to_json(frame)

    if sink.get("format") != "cloudevents":
        return made(body(limit))
    head = _event_head(frame, own)
    event = head + body(limit - len(head) - 1) + b"}"
    return made(event, content_type="application/cloudevents+json")


def message_id(subscription: str, delivery: int) -> str:
    """Return the ``webhook-id`` of a delivery, which is the same for each attempt.

    It is unique across brokers because it contains the id of the subscription.

    Examples
    --------
    >>> message_id("sub_0123456789abcdef", 7)
    'msg_0123456789abcdef_7'
    """
    return f"msg_{subscription.removeprefix('sub_')}_{delivery}"


def _variants(
    rows: Sequence[RowMapping], views: list[View], proofs: Sequence[object], base: str, limit: int
) -> Iterator[list[View]]:
    """Yield the matches of a payload: with reasons, without them, and with fewer solutions."""
    pairs = zip(views, proofs, strict=True)
    yield [{**view, "reasons": proof} if proof else view for view, proof in pairs]
    yield views
    for room in (limit // (2 * len(rows)), 0):
        yield [match_view(row, base, room) for row in rows]


def fitted(
    frame: Mapping[str, Any], key: str, variants: Iterable[Sequence[object]], limit: int
) -> bytes:
    """Return a JSON object with the first list that fits, or else with the start of the last."""
    entries: Sequence[object] = ()
    for entries in variants:
        body = to_json({**frame, key: entries})
        if len(body) <= limit:
            return body
    room = limit - len(to_json({**frame, key: []}))
    return to_json({**frame, key: first_entries(entries, room)})


def _event_head(frame: Mapping[str, Any], own: str) -> bytes:
    """Return the start of a structured CloudEvent, up to its data."""
    event = {"specversion": "1.0", "id": frame["id"], "source": own, "time": frame["timestamp"]}
    event |= {"type": f"org.graphmatch.{frame['type']}", "datacontenttype": "application/json"}
    return to_json(event)[:-1] + b',"data":'


def _announce(frame: Mapping[str, Any], summary: str, own: str) -> dict[str, Any]:
    """Return a payload as an ActivityStreams ``Announce``, without its objects."""
    activity = {"@context": "https://www.w3.org/ns/activitystreams", "type": "Announce"}
    activity |= {"id": frame["link"], "actor": own, "summary": summary}
    return {**activity, "published": frame["timestamp"]}


def _document(view: View) -> dict[str, Any]:
    """Return the publication of a match as an object of ActivityStreams."""
    item = view["publication"]
    names = {"id": "id", "name": "title", "url": "link", "summary": "summary"}
    document = {key: item[name] for key, name in names.items() if item[name] is not None}
    return {**document, "type": "Document"}


def _text(
    frame: Mapping[str, Any], views: Sequence[View], proofs: Sequence[Any]
) -> tuple[str, str]:
    """Return a title and a plain text for people.

    An item that was published under several addresses is listed once.
    """
    name, kind = frame["name"], frame["type"].removeprefix("subscription.")
    if kind == "confirmation":
        text = f"Open this link to receive messages:\n{frame['confirm']}"
        return "Confirm your subscription", f"{text}\n\nIf you did not subscribe, do nothing."
    if kind == "expiring":
        text = f"This subscription ends at {frame['expires_at']}. Renew it before that time."
        return f"{name}: the subscription ends soon", text
    if kind == "test":
        return f"{name}: test message", "This is a test message. The sink works."
    if kind == "expired":
        return f"{name}: the subscription has ended", "This subscription has ended."
    seen: set[str] = set()
    items: list[list[str]] = []
    for view, proof in zip(views, proofs, strict=True):
        item = view["publication"]
        names = {item["id"], item["link"]} - {None}
        if not names & seen:
            because = dict.fromkeys(reason for part in proof or () for reason in part["because"])
            more = [item["summary"], *list(because)[:_REASONS_IN_TEXT], item["link"]]
            items.append([item["title"] or item["id"], *(f"  {line}" for line in more if line)])
        seen |= names
    total = frame["total"] - len(views) + len(items)
    lines = [line for item in items[:_IN_TEXT] for line in item]
    if total > _IN_TEXT:
        lines.append(f"and {total - _IN_TEXT:,} more: {frame['link']}")
    title = items[0][0] if total == 1 else f"{total:,} new"
    return f"{name}: {title}", "\n".join(lines)

"""Messages to subscribers: JSON payloads and plain text from the rows of the database.

A payload is JSON: ``type`` (``match``, ``digest``, ``subscription.confirmation``,
``subscription.expiring``, ``subscription.expired``), ``id`` (the ``webhook-id``), ``timestamp``,
``subscription``, ``name``, ``matches``, ``total``, and ``link``, the URL of the complete delivery.
If a payload is too large, the reasons are removed first, then solutions, then matches.

A webhook may ask for a structured CloudEvent, whose ``data`` is the payload. An inbox of Linked
Data Notifications receives an ActivityStreams ``Announce`` instead.

Sources: https://cloudevents.io, https://www.w3.org/TR/ldn/,
https://www.w3.org/TR/activitystreams-vocabulary/.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import func, select

from graphmatch.broker.app.security import derived_key
from graphmatch.broker.db.match_queries import MATCH_ROWS
from graphmatch.broker.db.tables import matches, subscriptions
from graphmatch.broker.models.claimed_delivery import ClaimedDelivery
from graphmatch.broker.models.times import time_of
from graphmatch.broker.outbox.match_feed import first_entries, match_view, to_json
from graphmatch.broker.outbox.senders import Message
from semantic.clock import now_text
from semantic.terms import written

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

    from graphmatch.engine import Engine

MATCHES = 100
"""Maximum number of matches in the payload of a digest."""
_IN_TEXT = 20
"""Maximum number of items in the plain text."""
_REASONS_IN_TEXT = 3
"""Maximum number of reasons per item in the plain text."""
_BATCH_SIZE = 1000
"""Maximum number of deliveries in one SQL query for matches."""

Reasons: TypeAlias = Mapping[tuple[int, int], list[dict[str, Any]]]
"""Reasons of matches, by ``seq`` of the publication and number of the subscription."""


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
    ordered = MATCH_ROWS.order_by(matches.c.seq)
    single = [row.id for row in batch if row.kind == "match"]
    for begin in range(0, len(single), _BATCH_SIZE):
        chosen = matches.c.delivery.in_(single[begin : begin + _BATCH_SIZE])
        for row in db.execute(ordered.where(chosen)).mappings():
            rows.setdefault(row["delivery"], []).append(row)
    totals: dict[int, int] = {}
    for digest in (row.id for row in batch if row.kind == "digest"):
        mine = matches.c.delivery == digest
        rows[digest] = list(db.execute(ordered.where(mine).limit(MATCHES)).mappings())
        totals[digest] = db.scalar(select(func.count()).where(mine)) or 0
    return Contents({row["number"]: row for row in known.mappings()}, rows, totals)


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
            proofs[int(number)] = [
                {"triple": " ".join(map(written, part.triple)), "because": list(part.reasons)}
                if part.triple is not None
                else {
                    "filter": part.pattern.write({}),
                    "value": str(part.value),
                    "because": list(part.reasons),
                }
                for part in proof
            ]
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
    is_match, sink = delivery.kind in ("match", "digest"), row["sink"]
    if is_match and not rows:
        return None
    frame = _frame(delivery, row, base)
    if is_match:
        frame["total"] = known.totals.get(delivery.id, len(rows))
    proofs = [why.get((match["publication"], delivery.subscription)) for match in rows]
    variants = _variants(rows, proofs, base, limit)
    views = next(variants)
    title, text = _text(frame, views)
    made = Message(
        frame["id"],
        row["name"] if delivery.kind != "confirmation" else "",
        title,
        text,
        created=time_of(delivery.created_at),
        link=(views[0]["publication"]["link"] if len(views) == 1 else None) or frame["link"],
    )
    if sink["kind"] == "email":
        return replace(made, unsubscribe=_keyed_url(row, base, "unsubscribe"))
    if sink["kind"] == "inbox":
        activity = _announce(frame, title, base)
        objects = [_document(view) for view in views] or [activity["actor"]]
        return replace(made, body=_fitted(activity, "object", [objects], limit))
    head, tail = b"", b""
    if sink.get("format") == "cloudevents":
        made = replace(made, content_type="application/cloudevents+json")
        head, tail = _event_head(frame, base), b"}"
    if not is_match:
        return replace(made, body=head + to_json(frame) + tail)
    body = _fitted(frame, "matches", chain([views], variants), limit - len(head) - len(tail))
    return replace(made, body=head + body + tail)


def _frame(delivery: ClaimedDelivery, row: RowMapping, base: str) -> dict[str, Any]:
    """Return the parts of a payload besides its matches."""
    is_match = delivery.kind in ("match", "digest")
    frame: dict[str, Any] = {
        "type": delivery.kind if is_match else f"subscription.{delivery.kind}",
        "id": message_id(row["id"], delivery.id),
        "timestamp": now_text(time_of(delivery.created_at)),
        "subscription": row["id"],
        "name": row["name"],
        "link": f"{base}/v1/deliveries/{delivery.id}",
    }
    if delivery.kind == "confirmation":
        frame["confirm"] = _keyed_url(row, base, "confirm")
    if delivery.kind == "expired":
        frame["reason"] = row["reason"]
    if not is_match and row["expires_at"] is not None:
        frame["expires_at"] = now_text(time_of(row["expires_at"]))
    return frame


def _keyed_url(row: RowMapping, base: str, action: str) -> str:
    """Return the URL that confirms or ends a subscription."""
    key = derived_key(row["ticket"], row["id"], action)
    return f"{base}/v1/subscriptions/{row['id']}/{action}?key={key}"


def _variants(
    rows: Sequence[RowMapping], proofs: Sequence[object], base: str, limit: int
) -> Iterator[list[dict[str, Any]]]:
    """Yield the matches of a payload: with reasons, without them, and with fewer solutions."""
    views = [match_view(row, base, limit) for row in rows]
    yield [
        {**view, "reasons": proof} if proof else view
        for view, proof in zip(views, proofs, strict=True)
    ]
    yield views
    for room in (limit // max(len(rows), 1), 0):
        yield [match_view(row, base, room) for row in rows]


def _fitted(
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


def _event_head(frame: Mapping[str, Any], base: str) -> bytes:
    """Return the start of a structured CloudEvent, up to its data."""
    event = {
        "specversion": "1.0",
        "id": frame["id"],
        "source": f"{base}/v1/subscriptions/{frame['subscription']}",
        "type": f"org.graphmatch.{frame['type']}",
        "time": frame["timestamp"],
        "datacontenttype": "application/json",
    }
    return to_json(event)[:-1] + b',"data":'


def _text(frame: Mapping[str, Any], views: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return a title and a plain text for people.

    An item that was published under several addresses is listed once. A confirmation does not
    contain the subscription's name, because a stranger may have written it.
    """
    name, kind = frame["name"], frame["type"].removeprefix("subscription.")
    if kind == "confirmation":
        text = f"Open this link to receive messages:\n{frame['confirm']}"
        return "Confirm your subscription", f"{text}\n\nIf you did not subscribe, do nothing."
    if kind == "expiring":
        text = f"This subscription ends at {frame['expires_at']}. Renew it before that time."
        return f"{name}: the subscription ends soon", text
    if kind == "expired":
        return f"{name}: the subscription has ended", "This subscription has ended."
    seen: set[str] = set()
    items = []
    for view in views:
        names = {view["publication"]["id"], view["publication"]["link"]} - {None}
        if not names & seen:
            items.append(view)
        seen |= names
    total = frame["total"] - len(views) + len(items)
    lines: list[str] = []
    for view in items[:_IN_TEXT]:
        item = view["publication"]
        because = dict.fromkeys(why for part in view.get("reasons", ()) for why in part["because"])
        more = [item["summary"], *list(because)[:_REASONS_IN_TEXT], item["link"]]
        lines += [item["title"] or item["id"], *(f"  {line}" for line in more if line)]
    if total > _IN_TEXT:
        lines.append(f"and {total - _IN_TEXT:,} more: {frame['link']}")
    first = items[0]["publication"]
    title = (first["title"] or first["id"]) if total == 1 else f"{total:,} new"
    return f"{name}: {title}", "\n".join(lines)


def _announce(frame: Mapping[str, Any], summary: str, base: str) -> dict[str, Any]:
    """Return a payload as an ActivityStreams ``Announce``, without its objects."""
    return {
        "@context": "https://www.w3.org/ns/activitystreams",
        "id": frame["link"],
        "type": "Announce",
        "actor": {
            "type": "Service",
            "id": f"{base}/v1/subscriptions/{frame['subscription']}",
            "name": frame["name"],
        },
        "summary": summary,
        "published": frame["timestamp"],
    }


def _document(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the publication of a match as an object of ActivityStreams."""
    item = view["publication"]
    document = {"id": item["id"], "type": "Document", "name": item["title"], "url": item["link"]}
    document["summary"] = item["summary"]
    return {key: value for key, value in document.items() if value is not None}


def message_id(subscription: str, delivery: int) -> str:
    """Return the ``webhook-id`` of a delivery, which is the same for each attempt.

    It is unique across brokers because it contains the id of the subscription.

    Examples
    --------
    >>> message_id("sub_0123456789abcdef", 7)
    'msg_0123456789abcdef_7'
    """
    return f"msg_{subscription.removeprefix('sub_')}_{delivery}"

"""Notifications of subscribers: JSON payloads and plain text from the rows of the database.

A payload is JSON: ``type`` (``match``, ``digest``, ``subscription.expiring``,
``subscription.expired``, ``subscription.disabled``), ``id`` (the ``webhook-id``), ``timestamp``,
``subscription``, ``matches``, ``total``, and ``link``, the URL of the complete delivery. If a
payload is too large, the reasons are removed first, then solutions, then matches.

An inbox of Linked Data Notifications receives an ActivityStreams ``Announce`` instead.

Sources: https://www.w3.org/TR/ldn/, https://www.w3.org/TR/activitystreams-vocabulary/.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import func, select

from graphmatch.broker.db.tables import matches, publications, subscriptions
from graphmatch.broker.models.claimed_delivery import ClaimedDelivery
from graphmatch.broker.models.times import time_of
from graphmatch.broker.outbox.senders import Message, shortened
from semantic.clock import now_text
from semantic.terms import written

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

    from graphmatch.engine import Engine

MATCHES = 100
"""Maximum number of matches in the payload of a digest."""
TITLE_CHARACTERS = 500
"""Maximum length of a publication's title in a payload; longer titles are cut."""
_SOLUTIONS = (10, 1, 0)
"""Maximum numbers of solutions per match, tried in this order until the payload is small enough."""
_IN_TEXT = 20
"""Maximum number of matches in the plain text."""
_REASONS_IN_TEXT = 3
"""Maximum number of reasons per match in the plain text."""
_AT_A_TIME = 1000
"""Maximum number of deliveries in one SQL query for matches."""

Reasons: TypeAlias = Mapping[tuple[int, int], list[dict[str, Any]]]
"""Reasons of matches, by ``seq`` of the publication and number of the subscription."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Data for the messages of some deliveries, from the database.

    Parameters
    ----------
    subscriptions
        Rows by subscription number.
    matches
        Rows by delivery, ordered by ``seq``, with id, title and link of the publication. A digest
        has at most `MATCHES`.
    totals
        Number of all matches of each digest.
    """

    subscriptions: Mapping[int, RowMapping]
    matches: Mapping[int, Sequence[RowMapping]]
    totals: Mapping[int, int]


def contents(db: Connection, several: Sequence[ClaimedDelivery]) -> Contents:
    """Read the data for the messages of some deliveries from the database."""
    table, numbers = subscriptions.c, {one.subscription for one in several}
    columns = (
        table.number,
        table.id,
        table.name,
        table.sink,
        table.quiet_hours,
        table.state,
        table.reason,
        table.expires_at,
        table.generation,
    )
    rows = db.execute(select(*columns).where(table.number.in_(numbers))).mappings()
    found: dict[int, list[RowMapping]] = {}
    match_rows = (
        select(
            matches.c.seq,
            matches.c.delivery,
            matches.c.publication,
            matches.c.generation,
            matches.c.solutions,
            matches.c.truncated,
            matches.c.ontology_version,
            matches.c.matched_at,
            publications.c.id,
            publications.c.title,
            publications.c.link,
        )
        .join(publications, publications.c.seq == matches.c.publication)
        .order_by(matches.c.seq)
    )
    single = [one.id for one in several if one.kind == "match"]
    for begin in range(0, len(single), _AT_A_TIME):
        in_batch = matches.c.delivery.in_(single[begin : begin + _AT_A_TIME])
        for row in db.execute(match_rows.where(in_batch)).mappings():
            found.setdefault(row["delivery"], []).append(row)
    totals: dict[int, int] = {}
    for one in several:
        if one.kind == "digest":
            in_digest = matches.c.delivery == one.id
            found[one.id] = list(db.execute(match_rows.where(in_digest).limit(MATCHES)).mappings())
            totals[one.id] = db.scalar(select(func.count()).where(in_digest)) or 0
    return Contents({row["number"]: row for row in rows}, found, totals)


def reasons(
    engine: Engine, id: str, data: bytes, numbers: Collection[int]
) -> dict[int, list[dict[str, Any]]]:
    """Return the matching triples and filters of a publication, with reasons, by subscription.

    The publication is matched again with the current subscriptions of the engine. `numbers` are
    the subscriptions to explain.
    """
    found: dict[int, list[dict[str, Any]]] = {}
    wanted = set(map(str, numbers))
    for report in engine.filter(data, "nt", "document", name=id):
        for one, proof in engine.evidence(report, wanted).items():
            found[int(one)] = [
                {"triple": " ".join(map(written, part.triple)), "because": list(part.reasons)}
                if part.triple is not None
                else {
                    "filter": part.pattern.write({}),
                    "value": str(part.value),
                    "because": list(part.reasons),
                }
                for part in proof
            ]
    return found


def message(
    delivery: ClaimedDelivery, known: Contents, why: Reasons, base: str, most: int
) -> Message | None:
    """Return the message of a delivery, or ``None`` if it has no matches left to report.

    Parameters
    ----------
    why
        Reasons to include in the payload.
    base
        URL of the broker.
    most
        Maximum size of the payload, in bytes.
    """
    row = known.subscriptions[delivery.subscription]
    several = known.matches.get(delivery.id, ())
    if not several and delivery.kind in ("match", "digest"):
        return None
    id = message_id(row["id"], delivery.id)
    link = f"{base}/v1/deliveries/{delivery.id}"
    payload: dict[str, Any] = {
        "type": _type(delivery.kind),
        "id": id,
        "timestamp": now_text(time_of(delivery.created_at)),
        "subscription": {"id": row["id"], "name": row["name"]},
    }
    if delivery.kind in ("match", "digest"):
        payload["matches"] = [_match(one, why, delivery.subscription) for one in several]
        payload["total"] = known.totals.get(delivery.id, len(several))
    elif row["expires_at"] is not None:
        payload["expires_at"] = now_text(time_of(row["expires_at"]))
    if row["reason"] and delivery.kind not in ("match", "digest", "expiring"):
        payload["reason"] = row["reason"]
    payload["link"] = link
    title, text = _text(payload)
    if row["sink"]["kind"] == "inbox":
        body = shortened(_announced(payload, title, link), link, most, ("object",))
    else:
        body = _fitted(payload, link, most)
    created = time_of(delivery.created_at)
    publication_link = several[0]["link"] if len(several) == 1 else None
    target = publication_link or link
    return Message(id, row["id"], row["name"], title, text, body, created, target)


def message_id(subscription: str, delivery: int) -> str:
    """Return the ``webhook-id`` of a delivery, which is the same for each attempt.

    It is unique across brokers because it contains the id of the subscription.

    Examples
    --------
    >>> message_id("sub_0123456789abcdef", 7)
    'msg_0123456789abcdef_7'
    """
    return f"msg_{subscription.removeprefix('sub_')}_{delivery}"


def _type(kind: str) -> str:
    return kind if kind in ("match", "digest") else f"subscription.{kind}"


def _match(row: RowMapping, why: Reasons, subscription: int) -> dict[str, Any]:
    """Return the JSON object of a match in a payload."""
    title = row["title"]
    item = {
        "seq": row["seq"],
        "publication": {
            "seq": row["publication"],
            "id": row["id"],
            "title": title if title is None else title[:TITLE_CHARACTERS],
            "link": row["link"],
        },
        "solutions": json.loads(row["solutions"]),
        "truncated": row["truncated"],
        "ontology_version": f"{row['ontology_version']:x}",
        "matched_at": now_text(time_of(row["matched_at"])),
    }
    if proof := why.get((row["publication"], subscription)):
        item["reasons"] = proof
    return item


def _fitted(payload: Mapping[str, Any], link: str, most: int) -> bytes:
    """Return a payload as JSON of at most `most` bytes; if necessary, cut it as the module says."""
    whole = _json(payload)
    if len(whole) <= most or "matches" not in payload:
        return whole if len(whole) <= most else shortened(payload, link, most, ())
    several = [{key: one[key] for key in one if key != "reasons"} for one in payload["matches"]]
    for count in _SOLUTIONS:
        fitting = {**payload, "matches": several}
        if len(_json(fitting)) <= most:
            break
        several = [_fewer(one, count) for one in several]
    return shortened({**payload, "matches": several}, link, most, ("matches",))


def _fewer(one: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return a match with at most `count` solutions, or triples if its solutions are a graph."""
    several = one["solutions"]
    if isinstance(several, dict):
        lines = several["graph"]
        return {
            **one,
            "solutions": {"graph": lines[:count]},
            "truncated": one["truncated"] or len(lines) > count,
        }
    return {
        **one,
        "solutions": several[:count],
        "truncated": one["truncated"] or len(several) > count,
    }


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _text(payload: Mapping[str, Any]) -> tuple[str, str]:
    """Return a title and a plain text for the subscriber, written from a payload."""
    name = payload["subscription"]["name"]
    if "matches" not in payload:
        kind = payload["type"].removeprefix("subscription.")
        if kind == "expiring":
            said = f"This subscription ends at {payload['expires_at']}; renew it before that."
            return f"{name}: it ends soon", said
        return f"{name}: it has ended", f"This subscription is over: {payload.get('reason', kind)}."
    several, total = payload["matches"], payload["total"]
    lines: list[str] = []
    for one in several[:_IN_TEXT]:
        publication = one["publication"]
        lines.append(publication["title"] or publication["id"])
        because = dict.fromkeys(each for part in one.get("reasons", ()) for each in part["because"])
        lines += [f"  {each}" for each in list(because)[:_REASONS_IN_TEXT]]
        if publication["link"]:
            lines.append(f"  {publication['link']}")
    if total > _IN_TEXT:
        lines.append(f"and {total - _IN_TEXT:,} more: {payload['link']}")
    first = several[0]["publication"]
    title = (first["title"] or first["id"]) if total == 1 else f"{total:,} new"
    return f"{name}: {title}", "\n".join(lines)


def _announced(payload: Mapping[str, Any], summary: str, link: str) -> dict[str, Any]:
    """Return a payload as an ActivityStreams ``Announce``.

    Its objects are the publications. Without matches, its object is the subscription.
    """
    objects = [
        {
            "id": one["publication"]["id"],
            "type": "Document",
            "name": one["publication"]["title"],
            "url": one["publication"]["link"],
        }
        for one in payload.get("matches", ())
    ]
    subscription = {
        "type": "Service",
        "id": f"{link.rpartition('/deliveries/')[0]}/subscriptions/{payload['subscription']['id']}",
        "name": payload["subscription"]["name"],
    }
    return {
        "@context": "https://www.w3.org/ns/activitystreams",
        "id": link,
        "type": "Announce",
        "actor": subscription,
        "summary": summary,
        "published": payload["timestamp"],
        "object": [{k: v for k, v in one.items() if v is not None} for one in objects]
        or [subscription],
    }

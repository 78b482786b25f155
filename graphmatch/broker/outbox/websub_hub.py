"""The WebSub hub of the broker's own topics, the Atom feeds of matches.

A request of a subscriber is stored with its callback. The requests to callbacks are deliveries of
the outbox, with its claims, retries and circuit breakers: ``websub.verify`` verifies the intent of
a subscriber, and ``websub`` sends the match feed. A feed is made when it is sent, so several
matches are one delivery. When a subscription of the broker ends, its callbacks are forgotten.

Source: W3C WebSub (recommendation of 2018).
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import and_, delete, exists, func, insert, or_, select, update
from yarl import URL

from graphmatch.broker.app.security import read_key
from graphmatch.broker.db.delivery_queries import add_delivery, fail_waiting
from graphmatch.broker.db.tables import (
    WAITING,
    deliveries,
    matches,
    subscriptions,
    websub_callbacks,
)
from graphmatch.broker.models.attempt import ClaimedDelivery, RetryDecision
from graphmatch.broker.models.times import millis
from graphmatch.broker.outbox.match_feed import atom
from graphmatch.broker.outbox.websub_protocol import (
    LEASE,
    Response,
    hub_links,
    hub_of,
    is_address,
    sign,
)
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import host_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping, Select

CONTENT, VERIFY = "websub", "websub.verify"
"""Kinds of deliveries to callbacks."""
MIN_LEASE, MAX_LEASE = timedelta(minutes=5), timedelta(days=30)
SECRET_BYTES = 200
"""Limit of a secret, which must be shorter."""
CALLBACKS_PER_TOPIC = 1_000
ROUND_SECONDS, PAUSE_SECONDS = 5.0, 1.0
"""Longest and shortest time between two rounds; matches in between are sent together."""
_TOPIC = re.compile(
    r"(https?://[^?#\s]+)/v1/subscriptions/(sub_[0-9a-f]{1,64})/feed\.atom\?key=(gmr_[\w-]{1,100})",
    re.ASCII,
)
_TABLE = websub_callbacks.c
_LAST = (
    select(func.coalesce(func.max(matches.c.seq), 0))
    .where(matches.c.subscription == subscriptions.c.number)
    .scalar_subquery()
)
_MINE = exists().where(deliveries.c.callback == _TABLE.id, WAITING)


class HubRequest(NamedTuple):
    """A request of the WebSub hub to a callback.

    Parameters
    ----------
    body
        The match feed; ``None`` for the GET of a verification.
    challenge
        Text that the callback must repeat.
    version
        Last match of the feed.
    pending
        Request of the subscriber that is verified.
    """

    url: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    challenge: str = ""
    version: int = 0
    pending: Mapping[str, Any] | None = None


class Hub:
    """Accepts requests for the broker's topics, and adds the deliveries to their callbacks.

    Parameters
    ----------
    on_delivery
        Called after deliveries were added, to wake the dispatcher.
    """

    def __init__(self, broker: Broker, on_delivery: Callable[[], object]) -> None:
        self._broker, self._on_delivery = broker, on_delivery
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Add deliveries for new matches, ended leases and ended topics, until `stop` is set."""
        self._loop = asyncio.get_running_loop()

        async def round() -> float:
            await self.update()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), PAUSE_SECONDS)
            return ROUND_SECONDS

        await self._broker.supervisor.repeat("WebSub hub", round, stop, self._woken)

    def wake(self, _numbers: Sequence[int] = ()) -> None:
        """Begin a round soon, because there are new matches; any thread may call it."""
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop is closed.
                self._loop.call_soon_threadsafe(self._woken.set)

    async def request(self, form: Mapping[str, str]) -> Response:
        """Answer a POST of a subscriber; its intent is verified later."""
        mode, topic = form.get("hub.mode"), form.get("hub.topic", "")
        callback, secret = form.get("hub.callback", ""), form.get("hub.secret") or None
        lease = form.get("hub.lease_seconds") or str(LEASE // timedelta(seconds=1))
        if mode not in ("subscribe", "unsubscribe"):
            return Response(400, b"hub.mode must be subscribe or unsubscribe")
        if not is_address(callback) or "@" in urlsplit(callback).netloc:
            return Response(400, b"hub.callback must be an http or https URL")
        if secret is not None and len(secret.encode("utf-8", "replace")) >= SECRET_BYTES:
            return Response(400, b"hub.secret must be shorter than 200 bytes")
        if not re.fullmatch(r"[0-9]{1,9}", lease):
            return Response(400, b"hub.lease_seconds must be a number of seconds")
        limits = (each // timedelta(seconds=1) for each in (MIN_LEASE, MAX_LEASE))
        seconds = sorted((*limits, int(lease)))[1]
        pending = {"mode": mode, "lease_seconds": seconds, "secret": secret}
        answer = await self._broker.store.write(partial(self._add, topic, callback, pending))
        self._on_delivery()
        return answer

    def _add(self, topic: str, callback: str, pending: dict[str, Any], db: Connection) -> Response:
        """Store a request, and add the delivery that verifies it."""
        key = blake2b(f"{topic}\0{callback}".encode("utf-8", "replace"), digest_size=16).digest()
        known = db.execute(select(websub_callbacks).where(_TABLE.key == key)).mappings().first()
        subscription, now = _subscription_of(db, topic), millis(self._broker.clock())
        if pending["mode"] == "subscribe" and subscription is None:
            return Response(404, b"hub.topic is not a topic of this hub")
        if known is None and (pending["mode"] == "unsubscribe" or subscription is None):
            return Response(404, b"there is no such subscription")
        if known is None and subscription is not None:
            number = subscription["number"]
            count = select(func.count()).where(_TABLE.subscription == number)
            if (db.scalar(count) or 0) >= CALLBACKS_PER_TOPIC:
                return Response(429, b"there are too many subscriptions")
            row = {"subscription": number, "topic": topic, "callback": callback, "key": key}
            db.execute(insert(websub_callbacks).values(**row, version=subscription["last"]))
        stored = update(websub_callbacks).where(_TABLE.key == key).values(pending=pending)
        id, number = db.execute(stored.returning(_TABLE.id, _TABLE.subscription)).one()
        verifying = (deliveries.c.callback == id, deliveries.c.kind == VERIFY, WAITING)
        if not db.execute(update(deliveries).where(*verifying).values(due_at=now)).rowcount:
            add_delivery(db, number, VERIFY, _host(callback), now, callback=id)
        return Response(202)

    async def update(self) -> None:
        """Add the deliveries that are due, and remove callbacks whose lease or topic has ended."""
        store, now = self._broker.store, millis(self._broker.clock())
        if await store.read(lambda db: db.execute(_due(now)).first()):
            await store.write(partial(_update, now=now))
            self._on_delivery()


def _host(callback: str) -> str:
    return host_of({"kind": CONTENT, "url": callback})


def _subscription_of(db: Connection, topic: str) -> RowMapping | None:
    """Return the subscription of a topic, unless it has ended or the key is wrong."""
    parts = _TOPIC.fullmatch(topic)
    if parts is None:
        return None
    alive = (subscriptions.c.id == parts[2], subscriptions.c.state != "ended")
    chosen = select(subscriptions, _LAST.label("last")).where(*alive)
    row = db.execute(chosen).mappings().one_or_none()
    is_valid = row and secrets.compare_digest(read_key(row["ticket"], row["id"]), parts[3])
    return row if is_valid else None


def _due(now: int) -> Select[Any]:
    """Return the query of callbacks that need a delivery, or have ended."""
    asked = _MINE.where(deliveries.c.kind == VERIFY)
    over = and_(or_(_TABLE.expires_at.is_(None), _TABLE.expires_at <= now), ~asked)
    sent = _MINE.where(deliveries.c.kind == CONTENT)
    behind = and_(_TABLE.expires_at > now, _TABLE.version < _LAST, ~sent)
    columns = (websub_callbacks, subscriptions.c.state, _LAST.label("last"))
    joined = select(*columns).join(subscriptions, subscriptions.c.number == _TABLE.subscription)
    return joined.where(or_(over, subscriptions.c.state == "ended", behind))


def _update(db: Connection, now: int) -> None:
    for row in db.execute(_due(now)).mappings().all():
        id, expires_at = row["id"], row["expires_at"]
        if row["state"] == "ended" or expires_at is None or expires_at <= now:
            _forget(db, id, now)
        else:
            db.execute(update(websub_callbacks).where(_TABLE.id == id).values(version=row["last"]))
            host = _host(row["callback"])
            add_delivery(db, row["subscription"], CONTENT, host, now, callback=id)


def _forget(db: Connection, id: int, now: int) -> None:
    """Remove a callback, and fail its waiting deliveries."""
    mine = deliveries.c.callback == id
    fail_waiting(db, mine, "not sent: the WebSub subscription has ended", now)
    db.execute(update(deliveries).where(mine).values(callback=None))
    db.execute(delete(websub_callbacks).where(_TABLE.id == id))


def hub_request(db: Connection, row: ClaimedDelivery, limit: int, now: int) -> HubRequest | None:
    """Return the request of a delivery, or ``None`` if there is nothing to send any more.

    Parameters
    ----------
    limit
        Maximum size of the solutions of one entry, in bytes.
    """
    known = select(websub_callbacks).where(_TABLE.id == row.callback)
    callback = db.execute(known).mappings().one_or_none()
    if callback is None:
        return None
    topic, pending = callback["topic"], callback["pending"]
    if row.kind == VERIFY:
        if pending is None:
            return None
        challenge = secrets.token_urlsafe(32)
        query = {"hub.mode": pending["mode"], "hub.topic": topic, "hub.challenge": challenge}
        if pending["mode"] == "subscribe":
            query["hub.lease_seconds"] = str(pending["lease_seconds"])
        url = str(URL(callback["callback"]).extend_query(query))
        return HubRequest(url, challenge=challenge, pending=pending)
    subscription = _subscription_of(db, topic)
    if subscription is None or callback["expires_at"] is None or callback["expires_at"] <= now:
        return None
    root = topic.partition("/v1/subscriptions/")[0]
    hub = hub_of(root)
    body, _ = atom(db, subscription, root, limit, hub)
    headers = {"Content-Type": "application/atom+xml", "Link": hub_links(hub, topic)}
    if callback["secret"] is not None:
        headers["X-Hub-Signature"] = sign(callback["secret"], body)
    return HubRequest(callback["callback"], headers, body, version=subscription["last"])


def finish(
    db: Connection, call: HubRequest, row: ClaimedDelivery, decision: RetryDecision, now: int
) -> None:
    """Apply the final result of a delivery to its callback."""
    mine = _TABLE.id == row.callback
    callback = db.execute(select(websub_callbacks).where(mine)).mappings().one_or_none()
    if callback is None or row.callback is None:
        return
    is_delivered, pending = decision is RetryDecision.DELIVERED, call.pending
    values: dict[str, Any] = {"pending": None}
    if row.kind == CONTENT:
        if decision is RetryDecision.GONE:
            _forget(db, row.callback, now)
            return
        values = {"version": max(callback["version"], call.version)}
    elif callback["pending"] != pending:  # There was another request meanwhile.
        add_delivery(db, row.subscription, VERIFY, row.host, now, callback=row.callback)
        return
    elif pending and is_delivered and pending["mode"] == "subscribe":
        until = now + pending["lease_seconds"] * 1000
        values |= {"expires_at": until, "secret": pending["secret"]}
    elif is_delivered or callback["expires_at"] is None:
        _forget(db, row.callback, now)
        return
    db.execute(update(websub_callbacks).where(mine).values(values))

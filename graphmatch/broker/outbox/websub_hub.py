"""The WebSub hub of the broker's own topics, the Atom feeds of matches.

The hub verifies the intent of a subscriber at once, by one request to its callback, and stores the
callback if it agrees. Match feeds are deliveries of the outbox, with its claims, retries and
circuit breakers. A feed is made when it is sent, so several matches are one delivery. When a
subscription of the broker ends, its callbacks are forgotten.

Source: W3C WebSub (recommendation of 2018).
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

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
from graphmatch.broker.outbox.safe_http import HttpClient, TransportError
from graphmatch.broker.outbox.websub_protocol import (
    LEASE,
    Response,
    hub_links,
    hub_of,
    sign,
    web_url,
)
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import host_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping, Select

KIND = "websub"
"""Kind of deliveries to callbacks."""
MIN_LEASE, MAX_LEASE = timedelta(minutes=5), timedelta(days=30)
CALLBACKS_PER_TOPIC = 1_000
MAX_VERIFICATIONS, MAX_PER_HOST = 100, 2
"""Maximum number of verifications at a time, in total and by the host of the callback."""
ROUND_SECONDS = 1.0
"""Time between two rounds; matches in between are sent together."""
_TOPIC = re.compile(
    r"(?a)(https?://[^?#\s]+)/v1/subscriptions/(sub_[0-9a-f]{1,64})/feed\.atom\?key=(gmr_[\w-]{43})"
)
_TABLE = websub_callbacks.c
_MATCHES = select(func.coalesce(func.max(matches.c.seq), 0))
_LAST = _MATCHES.where(matches.c.subscription == subscriptions.c.number).scalar_subquery()


class HubRequest(NamedTuple):
    """A request of the hub to a callback: the match feed up to the match ``version``."""

    url: str
    headers: dict[str, str]
    body: bytes
    version: int


class Hub:
    """Accepts requests for the broker's topics, and adds the deliveries to their callbacks.

    Parameters
    ----------
    client
        Client that refuses addresses that are not public, because others name the callbacks.
    on_delivery
        Called after deliveries were added, to wake the dispatcher.

    Attributes
    ----------
    verifications
        The verifications that are under way, with the host of each callback.
    """

    def __init__(
        self, broker: Broker, client: HttpClient, on_delivery: Callable[[], object]
    ) -> None:
        self._broker, self._client, self._on_delivery = broker, client, on_delivery
        self.verifications: dict[asyncio.Task[None], str] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Add deliveries for new matches, and forget ended callbacks, until `stop` is set."""
        await self._broker.supervisor.repeat("WebSub hub", self.update, stop)

    async def request(self, form: Mapping[str, str]) -> Response:
        """Answer a POST of a subscriber; its intent is verified later."""
        fields = ("mode", "topic", "callback", "secret", "lease_seconds")
        mode, topic, callback, secret, lease = (form.get(f"hub.{name}", "") for name in fields)
        lease = lease or str(LEASE // timedelta(seconds=1))
        for fault, is_valid in (
            (b"hub.mode must be subscribe or unsubscribe", mode in ("subscribe", "unsubscribe")),
            (b"hub.callback must be an http or https URL", web_url(callback)),
            (b"hub.secret must be shorter than 200 bytes", len(secret.encode()) < 200),
            (b"hub.lease_seconds must be a number of seconds", re.fullmatch("[0-9]{1,9}", lease)),
        ):
            if not is_valid:
                return Response(400, fault)
        key = blake2b(f"{topic}\0{callback}".encode(), digest_size=16).digest()
        row = {"topic": topic, "callback": callback, "key": key, "secret": secret or None}
        checked = await self._broker.store.read(partial(_checked, mode=mode, row=row))
        if isinstance(checked, Response):
            return checked
        host, hosts = host_of({"kind": KIND, "url": callback}), list(self.verifications.values())
        if len(hosts) >= MAX_VERIFICATIONS or hosts.count(host) >= MAX_PER_HOST:
            return Response(429, b"there are too many verifications; try again later")
        length = min(max(timedelta(seconds=int(lease)), MIN_LEASE), MAX_LEASE)
        task = asyncio.create_task(self._verify(mode, checked, length))
        self.verifications[task] = host
        task.add_done_callback(self.verifications.pop)
        return Response(202)

    async def _verify(self, mode: str, row: Mapping[str, Any], length: timedelta) -> None:
        """Ask a callback, and apply the request if it repeats the challenge."""
        challenge = secrets.token_urlsafe(32)
        query = {"hub.mode": mode, "hub.topic": row["topic"], "hub.challenge": challenge}
        if mode == "subscribe":
            query["hub.lease_seconds"] = str(length // timedelta(seconds=1))
        url = str(URL(row["callback"]).extend_query(query))
        name = f"a callback at {URL(url).host}"  # The rest of the URL has the key for reading.
        record = self._broker.supervisor.record("WebSub hub", name, attempts=1)
        with record, suppress(TransportError):
            reply = await self._client.request("GET", url)
            if reply.status < 300 and reply.body == challenge.encode():
                now = self._broker.clock()
                values = {**row, "expires_at": millis(now + length)}
                await self._broker.store.write(
                    partial(_store, mode=mode, row=values, now=millis(now))
                )

    async def update(self) -> float:
        """Add the deliveries that are due, and remove callbacks whose lease or topic has ended."""
        store, now = self._broker.store, millis(self._broker.clock())
        if await store.read(lambda db: db.execute(_due(now)).first()):
            await store.write(partial(_update, now=now))
            self._on_delivery()
        return ROUND_SECONDS


def _checked(db: Connection, mode: str, row: dict[str, Any]) -> dict[str, Any] | Response:
    """Return the row of a callback with its subscription, or the reason that it is refused."""
    known = db.scalar(select(_TABLE.id).where(_TABLE.key == row["key"]))
    if mode == "unsubscribe":
        return Response(404, b"there is no such subscription") if known is None else row
    subscription = _subscription_of(db, row["topic"])
    if subscription is None:
        return Response(404, b"hub.topic is not a topic of this hub")
    number = subscription["number"]
    count = db.scalar(select(func.count()).where(_TABLE.subscription == number)) or 0
    if known is None and count >= CALLBACKS_PER_TOPIC:
        return Response(429, b"there are too many subscriptions")
    return {**row, "subscription": number, "version": subscription["last"]}


def _store(db: Connection, mode: str, row: Mapping[str, Any], now: int) -> None:
    """Subscribe or unsubscribe a callback that has agreed."""
    mine = _TABLE.key == row["key"]
    if mode == "unsubscribe":
        for id in db.scalars(select(_TABLE.id).where(mine)).all():
            _forget(db, id, now)
        return
    renewed = {name: row[name] for name in ("expires_at", "secret")}
    if not db.execute(update(websub_callbacks).where(mine).values(renewed)).rowcount:
        db.execute(insert(websub_callbacks).values(row))


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
    sent = exists().where(deliveries.c.callback == _TABLE.id, WAITING)
    behind = and_(_TABLE.version < _LAST, ~sent)
    columns = (websub_callbacks, subscriptions.c.state, _LAST.label("last"))
    joined = select(*columns).join(subscriptions, subscriptions.c.number == _TABLE.subscription)
    return joined.where(or_(_TABLE.expires_at <= now, subscriptions.c.state == "ended", behind))


def _update(db: Connection, now: int) -> None:
    for row in db.execute(_due(now)).mappings().all():
        id = row["id"]
        if row["state"] == "ended" or row["expires_at"] <= now:
            _forget(db, id, now)
        else:
            db.execute(update(websub_callbacks).where(_TABLE.id == id).values(version=row["last"]))
            host = host_of({"kind": KIND, "url": row["callback"]})
            add_delivery(db, row["subscription"], KIND, host, now, callback=id)


def _forget(db: Connection, id: int, now: int) -> None:
    """Remove a callback, and fail its waiting deliveries."""
    mine = deliveries.c.callback == id
    fail_waiting(db, mine, "not sent: the WebSub subscription has ended", now)
    db.execute(update(deliveries).where(mine).values(callback=None))
    db.execute(delete(websub_callbacks).where(_TABLE.id == id))


def hub_request(db: Connection, row: ClaimedDelivery, limit: int) -> HubRequest | None:
    """Return the request of a delivery, or ``None`` if there is nothing to send any more.

    Parameters
    ----------
    limit
        Maximum size of the solutions of one entry, in bytes.
    """
    known = select(websub_callbacks).where(_TABLE.id == row.callback)
    callback = db.execute(known).mappings().one_or_none()
    if callback is None or (subscription := _subscription_of(db, callback["topic"])) is None:
        return None
    root = callback["topic"].partition("/v1/subscriptions/")[0]
    hub = hub_of(root)
    body, _ = atom(db, subscription, root, limit, hub)
    headers = {"Content-Type": "application/atom+xml", "Link": hub_links(hub, callback["topic"])}
    if callback["secret"] is not None:
        headers["X-Hub-Signature"] = sign(callback["secret"], body)
    return HubRequest(callback["callback"], headers, body, subscription["last"])


def finish(
    db: Connection, call: HubRequest, row: ClaimedDelivery, decision: RetryDecision, now: int
) -> None:
    """Apply the final result of a delivery to its callback."""
    if decision is RetryDecision.GONE and row.callback is not None:
        _forget(db, row.callback, now)
    else:
        older = (_TABLE.id == row.callback, _TABLE.version < call.version)
        db.execute(update(websub_callbacks).where(*older).values(version=call.version))

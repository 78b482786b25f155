"""The WebSub subscriber: it asks the hubs of feeds to push new items to the broker.

The leases follow from the feeds: every few seconds, the subscriber asks for those that are missing,
renews those that will end, and ends those of removed feeds. So nothing is lost if the process ends.
`graphmatch.broker.api.websub` calls `Subscriber.verify` and `Subscriber.receive` for the requests
of hubs. The poller goes on to fetch a pushed feed, but seldom, because hubs can fail silently.

Limits: only the process that polls feeds can answer hubs. Hubs are asked only if they can reach the
broker's address.

Source: W3C WebSub (recommendation of 2018).
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode, urljoin, urlsplit

from sqlalchemy import delete, insert, literal, select

from graphmatch.broker.db.tables import websub_leases
from graphmatch.broker.outbox.safe_http import HttpClient, Reply, TransportError
from graphmatch.broker.outbox.websub_hub import LEASE, Response, is_signed

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from graphmatch.broker.feeds.feed_poller import Poller
    from graphmatch.broker.service.broker import Broker

ROUND_SECONDS = 5.0
"""Seconds between two comparisons of the feeds with the leases."""
RENEWAL = 0.8
"""Part of a lease after which it is renewed."""
RETRY_INTERVAL = timedelta(hours=6)
"""Interval after which a hub that failed, refused or did not verify is asked again."""
MAX_REQUESTS = 20
"""Maximum number of concurrent requests to hubs."""
_MAX_REDIRECTS = 5
_MAX_REASON_CHARACTERS = 200
_TIMES = ("until", "due_at")
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_UNKNOWN = b"there is no such subscription"


def is_reachable(base: str) -> bool:
    """Whether hubs can reach an address: it does not belong to this machine only.

    Examples
    --------
    >>> is_reachable("https://broker.example.org"), is_reachable("http://127.0.0.1:8080")
    (True, False)
    """
    host = (urlsplit(base).hostname or "localhost").rstrip(".")
    try:
        address = ip_address(host)
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")
    return not (address.is_loopback or address.is_unspecified)


@dataclass(frozen=True, slots=True)
class Lease:
    """A subscription to a topic at a hub.

    Parameters
    ----------
    id
        The random last part of the callback's address.
    topic, hub
        The addresses in the feed.
    callback
        The address that the hub calls.
    secret
        The key of the hub's signatures.
    due_at
        The time at which the hub is asked again.
    pending
        Whether the hub was asked and has not verified the request.
    until
        The end of the lease; ``None`` before the first verification.
    problem
        The reason of the last failure.
    """

    id: str
    topic: str
    hub: str
    callback: str = field(repr=False)
    secret: str = field(repr=False)
    due_at: datetime
    pending: bool = False
    until: datetime | None = None
    problem: str | None = None


class Subscriber:
    """Subscribes at the hubs that the feeds of a poller name.

    Parameters
    ----------
    client
        It refuses addresses that are not public, because feeds of others name the hubs.
    base
        The start of the broker's addresses.
    asks
        Whether hubs are asked; by default, if they can reach `base`.
    """

    def __init__(
        self,
        broker: Broker,
        poller: Poller,
        client: HttpClient,
        base: str,
        *,
        asks: bool | None = None,
    ) -> None:
        self.poller, self._client, self._clock = poller, client, broker.clock
        self._store, self._supervisor = broker.store, broker.supervisor
        self._callback = f"{base.rstrip('/')}/websub/callback"
        self._asks = is_reachable(base) if asks is None else asks
        self._leases: dict[str, Lease] = {}
        self._is_loaded = False
        self._requests = asyncio.Semaphore(MAX_REQUESTS)

    @property
    def leases(self) -> Sequence[Lease]:
        """All leases, including those that were not verified."""
        return list(self._leases.values())

    async def run(self, stop: asyncio.Event) -> None:
        """Work every few seconds until `stop` is set."""
        await self._supervisor.repeat("feed hubs", self.work, stop)
        self._is_loaded = False  # Another process may change the leases.

    async def work(self) -> float:
        """Ask the hubs for missing and ending leases; return the seconds until the next round."""
        if not self._is_loaded:
            await self._load()
        feeds, now = self.poller.feeds.values(), self._clock()
        wanted = {
            (feed.topic, feed.hub) for feed in feeds if self._asks and feed.topic and feed.hub
        }
        requests = []
        for lease in self.leases:
            key = (lease.topic, lease.hub)
            if key not in wanted or lease.callback != f"{self._callback}/{lease.id}":
                requests.append(self._end(lease))
                continue
            wanted.remove(key)
            if lease.due_at <= now:
                requests.append(self._subscribe(lease))
        requests += [self._subscribe(self._new_lease(topic, hub)) for topic, hub in wanted]
        await asyncio.gather(*requests)
        await self._note()
        return ROUND_SECONDS

    async def verify(self, id: str, parameters: Mapping[str, str]) -> Response:
        """Answer the GET of a hub that verifies a request, or denies it."""
        lease, mode = self._leases.get(id), parameters.get("hub.mode")
        challenge, now = parameters.get("hub.challenge", "").encode(), self._clock()
        if not self._is_loaded:
            return Response(503)
        if lease is None and mode == "unsubscribe" and challenge:
            return Response(200, challenge)
        if lease is None or parameters.get("hub.topic") != lease.topic:
            return Response(404, _UNKNOWN)
        if mode == "denied":
            reasons = "the hub denies it", _line(parameters.get("hub.reason", ""))
            lease = replace(lease, until=None, problem=": ".join(filter(None, reasons)))
            await self._save(replace(lease, pending=False, due_at=now + RETRY_INTERVAL))
        elif mode == "subscribe" and lease.pending and challenge:
            given = parameters.get("hub.lease_seconds", "")
            seconds = int(given) if re.fullmatch(r"[0-9]{1,9}", given) else 0
            length = timedelta(seconds=seconds) or LEASE
            lease = replace(lease, until=now + length, problem=None)
            due_at = now + max(length * RENEWAL, timedelta(minutes=1))
            await self._save(replace(lease, pending=False, due_at=due_at))
        else:
            return Response(404, _UNKNOWN)
        return Response(200, challenge)

    def refusal(self, id: str) -> Response | None:
        """Return the response to content that no hub may send, or ``None`` if it is welcome."""
        if not self._is_loaded:
            return Response(503)
        lease = self._leases.get(id)
        is_active = lease is not None and lease.until is not None and lease.until > self._clock()
        return None if is_active else Response(410, _UNKNOWN)

    async def receive(self, id: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Accept content with a valid signature: its new items are in the log afterwards."""
        if (refusal := self.refusal(id)) is not None:
            return refusal
        lease = self._leases[id]
        if not is_signed(lease.secret, body, headers.get("x-hub-signature")):
            return Response(403, b"the signature is not valid")
        for feed in list(self.poller.feeds.values()):
            if (feed.topic, feed.hub) == (lease.topic, lease.hub):
                await self.poller.pushed(feed.url, body)
        return Response(202)

    def _new_lease(self, topic: str, hub: str) -> Lease:
        id, secret = f"gmc_{secrets.token_urlsafe(32)}", secrets.token_urlsafe(32)
        return Lease(id, topic, hub, f"{self._callback}/{id}", secret, self._clock())

    async def _subscribe(self, lease: Lease) -> None:
        """Ask a hub for a lease. The hub may verify the request before it responds."""
        due_at, problem = self._clock() + RETRY_INTERVAL, ""
        await self._save(replace(lease, pending=True, due_at=due_at))
        try:
            reply = await self._ask(lease, "subscribe")
            if not 200 <= reply.status < 300:
                text = reply.body.decode("utf-8", "replace")
                problem = f"the hub answers {reply.status}: {_line(text)}"
        except TransportError as error:
            problem = f"no answer: {error.problem.what}"
        if problem and lease.id in self._leases:
            await self._save(replace(self._leases[lease.id], problem=problem))

    async def _end(self, lease: Lease) -> None:
        """Forget a lease, and tell the hub once. Its content gets the status 410 from now on."""
        old = delete(websub_leases).where(websub_leases.c.id == lease.id)
        await self._store.write(lambda db: db.execute(old))
        self._leases.pop(lease.id, None)
        with suppress(TransportError):
            await self._ask(lease, "unsubscribe")

    async def _ask(self, lease: Lease, mode: Literal["subscribe", "unsubscribe"]) -> Reply:
        """Return the hub's response to a request, after redirects with the status 307 or 308."""
        form = {"hub.mode": mode, "hub.topic": lease.topic, "hub.callback": lease.callback}
        if mode == "subscribe":
            form["hub.lease_seconds"] = str(int(LEASE.total_seconds()))
            form["hub.secret"] = lease.secret
        address, body = lease.hub, urlencode(form).encode()
        for _ in range(_MAX_REDIRECTS):
            async with self._requests:
                reply = await self._client.request("POST", address, body=body, headers=_FORM)
            if reply.status not in (307, 308):
                break
            with suppress(ValueError):
                address = urljoin(address, reply.headers.get("Location", ""))
        return reply

    async def _note(self) -> None:
        """Note the state of the leases with their feeds."""
        now = self._clock()
        leases = {(lease.topic, lease.hub): lease for lease in self.leases}
        for feed in list(self.poller.feeds.values()):
            lease = leases.get((feed.topic or "", feed.hub or ""))
            until = lease.until if lease and lease.until and lease.until > now else None
            problem = lease.problem if lease else None
            changes: dict[str, Any] = {"pushed_until": until, "push_problem": problem}
            if feed.pushed_until is not None and until is None:
                changes["next_poll_at"] = None  # Fetch the items that the hub did not push.
            if (until, problem) != (feed.pushed_until, feed.push_problem):
                await self.poller.change(feed.url, **changes)

    async def _load(self) -> None:
        """Load the leases, unless hubs are not asked."""
        chosen = select(websub_leases.c.state).where(literal(self._asks))
        states = await self._store.read(lambda db: db.scalars(chosen).all())
        self._leases = {state["id"]: _lease(state) for state in states}
        self._is_loaded = True

    async def _save(self, lease: Lease) -> None:
        """Save a lease to the store, and then in memory."""
        state = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asdict(lease).items()
        }
        row = {"id": lease.id, "topic": lease.topic, "hub": lease.hub, "state": state}

        def work(db: Connection) -> None:
            db.execute(delete(websub_leases).where(websub_leases.c.id == lease.id))
            db.execute(insert(websub_leases).values(row))

        await self._store.write(work)
        self._leases[lease.id] = lease


def _lease(state: Mapping[str, Any]) -> Lease:
    times = {name: datetime.fromisoformat(state[name]) for name in _TIMES if state[name]}
    return Lease(**{**state, **times})


def _line(text: str) -> str:
    """Return the start of a text on one line."""
    return " ".join(text.split())[:_MAX_REASON_CHARACTERS]

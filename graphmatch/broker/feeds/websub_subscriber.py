"""The WebSub subscriber: it asks the hubs of feeds to push new items to the broker.

The state of a feed includes its lease at the hub. Every few seconds, the subscriber asks for leases
that are missing or will end. So nothing is lost if the process ends. The content for a removed feed
gets the status 410, which ends its lease. `graphmatch.broker.api.websub` calls `Subscriber.verify`
and `Subscriber.receive` for the requests of hubs. The poller goes on to fetch a pushed feed, but
seldom, because hubs can fail silently.

Limits: only the process that polls feeds can answer hubs. Hubs are asked only if they can reach the
broker's address.

Source: W3C WebSub (recommendation of 2018).
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from graphmatch.broker.feeds.feed_store import Feed
from graphmatch.broker.outbox.safe_http import HttpClient, TransportError
from graphmatch.broker.outbox.websub_protocol import LEASE, Response, is_signed

if TYPE_CHECKING:
    from graphmatch.broker.feeds.feed_poller import Poller
    from graphmatch.broker.service.broker import Broker

ROUND_SECONDS = 5.0
"""Seconds between two searches for leases that are due."""
RENEWAL = 0.8
"""Part of a lease after which it is renewed."""
RETRY_INTERVAL = timedelta(hours=6)
"""Interval after which a hub that failed, refused or did not verify is asked again."""
MAX_REQUESTS = 20
"""Maximum number of concurrent requests to hubs."""
_MAX_REDIRECTS = 5
_MAX_REASON_CHARACTERS = 200
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
        self.poller, self._client = poller, client
        self._clock, self._supervisor = broker.clock, broker.supervisor
        self._callbacks = f"{base.rstrip('/')}/websub/callback/"
        self._asks = is_reachable(base) if asks is None else asks
        self._is_running = False
        self._requests = asyncio.Semaphore(MAX_REQUESTS)

    async def run(self, stop: asyncio.Event) -> None:
        """Work every few seconds until `stop` is set."""
        await self._supervisor.repeat("feed hubs", self.work, stop)
        self._is_running = False  # Another process may change the leases.

    async def work(self) -> float:
        """Ask the hubs for missing and ending leases; return the seconds until the next round."""
        self._is_running = True
        now = self._clock()
        for feed in list(self.poller.feeds.values()):
            is_current = self._asks and feed.callback.startswith(self._callbacks)
            if feed.pushed_until is not None and not (is_current and feed.pushed_until > now):
                # The lease has ended: fetch the items that the hub did not push.
                ended = {"callback": "", "pushed_until": None, "next_poll_at": None}
                await self.poller.change(feed.url, **ended)
        with_hub = [feed for feed in self.poller.feeds.values() if self._asks and feed.hub]
        due = [feed for feed in with_hub if not feed.callback or (feed.hub_due_at or now) <= now]
        await asyncio.gather(*map(self._subscribe, due))
        return ROUND_SECONDS

    async def verify(self, id: str, parameters: Mapping[str, str]) -> Response:
        """Answer the GET of a hub that verifies a request, or denies it."""
        feed, mode = self._find(id), parameters.get("hub.mode")
        challenge, now = parameters.get("hub.challenge", ""), self._clock()
        if not self._is_running:
            return Response(503)
        if feed is None or parameters.get("hub.topic") != feed.topic:
            return Response(404, _UNKNOWN)
        if mode == "denied":
            reasons = "the hub denies it", _line(parameters.get("hub.reason", ""))
            await self.poller.change(
                feed.url,
                is_pending=False,
                pushed_until=None,
                push_problem=": ".join(filter(None, reasons)),
                hub_due_at=now + RETRY_INTERVAL,
                next_poll_at=None if feed.pushed_until is not None else feed.next_poll_at,
            )
        elif mode == "subscribe" and feed.is_pending and challenge:
            given = parameters.get("hub.lease_seconds", "")
            seconds = int(given) if re.fullmatch(r"[0-9]{1,9}", given) else 0
            length = timedelta(seconds=seconds) or LEASE
            await self.poller.change(
                feed.url,
                is_pending=False,
                pushed_until=now + length,
                push_problem=None,
                hub_due_at=now + max(length * RENEWAL, timedelta(minutes=1)),
            )
        else:
            return Response(404, _UNKNOWN)
        return Response(200, challenge.encode())

    async def receive(
        self, id: str, headers: Mapping[str, str], read_body: Callable[[], Awaitable[bytes]]
    ) -> Response:
        """Accept content with a valid signature: its new items are in the log afterwards.

        Parameters
        ----------
        read_body
            Reads the content. It is called only if the lease has not ended.
        """
        if not self._is_running:
            return Response(503)
        feed = self._find(id)
        if feed is None or feed.pushed_until is None or feed.pushed_until <= self._clock():
            return Response(410, _UNKNOWN)
        body = await read_body()
        if not is_signed(feed.secret, body, headers.get("x-hub-signature")):
            return Response(403, b"the signature is not valid")
        await self.poller.pushed(feed.url, body)
        return Response(202)

    def _find(self, id: str) -> Feed | None:
        """Return the feed with a callback."""
        callback = self._callbacks + id
        return next((f for f in self.poller.feeds.values() if f.callback == callback), None)

    async def _subscribe(self, feed: Feed) -> None:
        """Ask a hub for a lease. The hub may verify the request before it responds."""
        callback, secret = feed.callback, feed.secret
        if not callback.startswith(self._callbacks):
            callback = f"{self._callbacks}gmc_{secrets.token_urlsafe(32)}"
            secret = secrets.token_urlsafe(32)
        form = {
            "hub.mode": "subscribe",
            "hub.topic": feed.topic,
            "hub.callback": callback,
            "hub.lease_seconds": str(int(LEASE.total_seconds())),
            "hub.secret": secret,
        }
        asked = {"callback": callback, "secret": secret, "is_pending": True}
        await self.poller.change(feed.url, hub_due_at=self._clock() + RETRY_INTERVAL, **asked)
        body = urlencode(form).encode()
        try:
            async with self._requests:
                reply = await self._client.request(
                    "POST", feed.hub, body=body, headers=_FORM, redirects=_MAX_REDIRECTS
                )
        except TransportError as error:
            problem = f"no answer: {error.problem.what}"
        else:
            if 200 <= reply.status < 300:
                return
            text = _line(reply.body.decode("utf-8", "replace"))
            problem = f"the hub answers {reply.status}: {text}"
        await self.poller.change(feed.url, push_problem=problem)


def _line(text: str) -> str:
    """Return the start of a text on one line."""
    return " ".join(text.split())[:_MAX_REASON_CHARACTERS]

"""The poller: it fetches feeds when they are due, and hands over their new items.

- 200: the feed is read. The next fetch is due after ``max-age``, between `MIN_INTERVAL` and
  `MAX_INTERVAL`, otherwise after `DEFAULT_INTERVAL`.
- ``ETag``, ``Last-Modified``: sent back unchanged. They are not stored if a part of the document
  was refused, so that it is fetched again, or if a redirect led to the document, because they
  could match another document at the next target.
- 304: nothing is new.
- 301, 308: followed. The feed's address changes if all redirects are permanent, and the target is
  a feed.
- 302, 303, 307: followed, and not stored. There are `MAX_REDIRECTS` redirects at most.
- 429, 503: ``Retry-After``, between `MIN_INTERVAL` and `MAX_RETRY_AFTER`.
- Other errors: the next fetch is due after `MIN_INTERVAL`, which doubles with each error in a row,
  up to `MAX_INTERVAL`. No feed is given up.

Each interval is up to `JITTER` longer, never shorter. While a WebSub hub pushes new items, a feed
is fetched every `PUSHED_INTERVAL`.

An item is known by its guid and its version, a digest of its content without dates. A process that
is killed loses no new items: the broker publishes and saves them in one transaction, and `watch`
saves them after it has reported them.

Sources: RFC 9110 (validators, Retry-After), RFC 9111 (max-age).
"""

from __future__ import annotations

import asyncio
import random as randomness
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from http.client import responses
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from graphmatch.broker.feeds.feed_store import Feed, FeedItem, FeedStore, Items, digest
from graphmatch.broker.outbox.safe_http import HttpClient, Reply, TransportError, retry_after
from graphmatch.broker.outbox.websub_protocol import discover, header_links
from semantic.clock import Clock, utc_now
from semantic.errors import InputError, Place, Problem, Severity
from semantic.feeds import open_feed
from semantic.feeds.model import Channel
from semantic.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from graphmatch.broker.app.supervisor import Supervisor

MIN_INTERVAL = timedelta(minutes=15)
DEFAULT_INTERVAL = timedelta(hours=1)
MAX_INTERVAL = timedelta(days=1)
PUSHED_INTERVAL = timedelta(hours=6)
MAX_RETRY_AFTER = timedelta(days=7)
MAX_REDIRECTS = 5
MAX_BODY_BYTES = 10 * 1024 * 1024
MAX_REQUESTS, MAX_REQUESTS_PER_HOST = 20, 2
"""Maximum numbers of concurrent requests."""
REQUEST_SECONDS = 60.0
"""Time limit of one request, for the `HttpClient` of a poller."""
ROUND_SECONDS = 0.5
"""Seconds between two searches for feeds that are due."""
JITTER = 0.1

_ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, "
    "application/rdf+xml;q=0.9, application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1"
)
_VALIDATORS = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
_PERMANENT = (301, 308)
_MAX_AGE = re.compile(r"\bmax-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
_LIMITS = replace(DEFAULT_LIMITS, document_bytes=MAX_BODY_BYTES, xml_expansion=1024 * 1024)
OnFetch: TypeAlias = Callable[[Feed, Items, Sequence[Problem]], Awaitable[None]]
"""A callback for a result before it is saved: the feed, its new items in order, and problems."""


@dataclass(frozen=True, slots=True)
class _Document:
    """The content of a feed; `is_whole` says that it has all items, and none was refused."""

    channel: Channel = field(default_factory=Channel)
    items: Items = ()
    problems: Sequence[Problem] = ()
    is_whole: bool = False


class Poller:
    """Fetches feeds when they are due, and hands over their new items.

    Parameters
    ----------
    store
        The states of the feeds.
    on_fetch
        Called with each result before it is saved: at least once for each new item.
    clock, random
        The time, and a number from 0 to 1 for the jitter.
    supervisor
        Keeps the failure of one feed from ending `run`: the feed is fetched again later.
    """

    def __init__(
        self,
        client: HttpClient,
        store: FeedStore,
        on_fetch: OnFetch | None = None,
        *,
        clock: Clock = utc_now,
        random: Callable[[], float] = randomness.random,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._client, self._store, self._on_fetch = client, store, on_fetch
        self._clock, self._random, self._supervisor = clock, random, supervisor
        self._polls = set[asyncio.Task[None]]()
        self._requests = asyncio.Semaphore(MAX_REQUESTS)
        self._hosts = defaultdict[str | None, asyncio.Semaphore](
            lambda: asyncio.Semaphore(MAX_REQUESTS_PER_HOST)
        )
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._feeds: dict[str, Feed] = {}

    # -- the feeds -------------------------------------------------------------------------------

    async def start(self, only: Container[str] | None = None) -> None:
        """Load the feeds of the store, or `only` those of some addresses."""
        feeds = await self._store.load()
        self._feeds = {feed.url: feed for feed in feeds if only is None or feed.url in only}

    @property
    def feeds(self) -> Mapping[str, Feed]:
        """All feeds, by the addresses under which they were added."""
        return self._feeds

    async def add(self, url: str, title: str = "") -> None:
        """Add a feed if it is new."""
        if url not in self._feeds:
            feed = Feed(url, title)
            await self._store.save(feed)
            self._feeds[url] = feed

    async def remove(self, url: str) -> None:
        """Remove a feed, and forget its items."""
        async with self._locks[url]:
            self._feeds.pop(url, None)
            await self._store.forget(url)

    async def change(self, url: str, **changes: Any) -> None:
        """Change the state of a feed if it exists; ``next_poll_at=None`` makes it due now."""
        async with self._locks[url]:
            if url in self._feeds:
                feed = replace(self._feeds[url], **changes)
                await self._store.save(feed)
                self._feeds[url] = feed

    def due(self) -> list[Feed]:
        """Return the feeds that are due."""
        now = self._clock()
        return [feed for feed in self._feeds.values() if (feed.next_poll_at or now) <= now]

    @property
    def running(self) -> int:
        """The number of feeds that are being fetched."""
        return sum(not poll.done() for poll in self._polls)

    # -- polling ---------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event, *, once: bool = False) -> None:
        """Fetch feeds when they are due until `stop` is set; a slow one delays no other.

        At the end, fetches are cancelled, and results are saved.

        Parameters
        ----------
        once
            Fetch only the feeds that are due now.
        """
        polls = self._polls = set[asyncio.Task[None]]()
        try:
            while not stop.is_set():
                for feed in self.due():
                    # The feed is not due again during the fetch, or if its result is not stored.
                    next_poll_at = self._clock() + MIN_INTERVAL
                    self._feeds[feed.url] = replace(feed, next_poll_at=next_poll_at)
                    polls.add(asyncio.create_task(self._poll_supervised(feed.url), name=feed.url))
                if once and not polls:
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), ROUND_SECONDS)
                for poll in [poll for poll in polls if poll.done()]:
                    polls.remove(poll)
                    poll.result()
        finally:
            for poll in polls:
                if not self._locks[poll.get_name()].locked():
                    poll.cancel()
            await asyncio.gather(*polls, return_exceptions=True)

    async def _poll_supervised(self, url: str) -> None:
        """Fetch one feed. If its content cannot be processed, note the error with the feed."""
        if self._supervisor is None:
            await self.poll(url)
            return
        with self._supervisor.round("feeds"):
            with self._supervisor.record("feeds", url) as work:
                await self.poll(url)
            if work.error is not None:
                await self._accept(url, partial(self._failed, what=f"it failed: {work.error}"))

    async def poll(self, url: str) -> None:
        """Fetch one feed now, unless it was removed."""
        if (feed := self._feeds.get(url)) is None:
            return
        reply: Reply | None = None
        document: _Document | None = None
        update: Callable[[Feed], Feed]
        try:
            reply = await self._get(feed)
            _check(url, reply)
            if reply.status == 200 and digest(reply.body).hex() != feed.digest:
                document = await asyncio.to_thread(_read, reply.body, url)
            update = partial(self._succeeded, reply=reply, document=document)
        except InputError as error:
            document = _Document(problems=[error.problem])
            update = partial(self._failed, what=error.problem.what, reply=reply)
        await self._accept(url, update, document)

    async def pushed(self, url: str, data: bytes) -> None:
        """Accept the content that a hub sent for a feed, unless the feed was removed."""
        try:
            document = await asyncio.to_thread(_read, data, url)
        except InputError as error:
            await self.change(url, push_problem=error.problem.what)
        else:
            some = replace(document, is_whole=False)
            await self._accept(url, lambda feed: replace(feed, push_problem=None), some)

    async def _get(self, feed: Feed) -> Reply:
        """Return the response of the server."""
        headers = {"Accept": _ACCEPT, **feed.validators}
        try:
            async with self._hosts[urlsplit(feed.address).hostname], self._requests:
                return await self._client.request(
                    "GET",
                    feed.address,
                    headers=headers,
                    limit=MAX_BODY_BYTES,
                    redirects=MAX_REDIRECTS,
                )
        except TransportError as error:
            raise InputError(replace(error.problem, where=Place(feed.url))) from error

    async def _accept(
        self, url: str, update: Callable[[Feed], Feed], document: _Document | None = None
    ) -> None:
        """Update the state of a feed, hand over the new items, and save both."""
        document = document or _Document()
        async with self._locks[url]:
            if url not in self._feeds:
                return
            feed = update(self._feeds[url])
            new = await self._store.unknown(url, document.items) if document.items else ()
            if self._on_fetch is not None:
                await self._on_fetch(feed, new, document.problems)
            await self._store.save(feed, document.items, new, is_whole=document.is_whole)
            self._feeds[url] = feed

    def _succeeded(self, feed: Feed, reply: Reply, document: _Document | None) -> Feed:
        """Return the state of a feed after a fetch without an error."""
        now = self._clock()
        feed = replace(feed, errors=0, problem=None, read_at=now)
        if reply.status == 200:
            feed = replace(feed, validators=_validators(reply.headers))
        if reply.hops or (document is not None and not document.is_whole):
            feed = replace(feed, validators={})
        if reply.hops and all(status in _PERMANENT for status, _ in reply.hops):
            feed = replace(feed, moved=reply.url)
        if document is not None:
            feed = _described(feed, reply, document)
        age = _MAX_AGE.search(reply.headers.get("Cache-Control", ""))
        wait = timedelta(seconds=int(age[1]) if age else 0) or DEFAULT_INTERVAL
        if feed.pushed_until is not None and feed.pushed_until > now:
            wait = max(wait, PUSHED_INTERVAL)
        return self._with_next_poll(feed, min(wait, MAX_INTERVAL))

    def _failed(self, feed: Feed, what: str, reply: Reply | None = None) -> Feed:
        """Return the state of a feed after an error."""
        wait = min(MIN_INTERVAL * 2 ** min(feed.errors, 20), MAX_INTERVAL)
        if reply is not None and reply.status in (429, 503):
            asked = retry_after(reply.headers.get("Retry-After"), self._clock(), MAX_RETRY_AFTER)
            wait = asked or wait
        feed = replace(feed, errors=feed.errors + 1, problem=what)
        return self._with_next_poll(feed, wait)

    def _with_next_poll(self, feed: Feed, wait: timedelta) -> Feed:
        """Return a feed whose next fetch is due after a wait with jitter."""
        wait = max(wait, MIN_INTERVAL) * (1 + JITTER * self._random())
        return replace(feed, next_poll_at=self._clock() + wait)


def _read(data: bytes, source: str) -> _Document:
    """Return the content of a feed."""
    problems: list[Problem] = []
    channel, items = open_feed(data, source, on_problem=problems.append, limits=_LIMITS)
    read = [FeedItem.from_publication(item) for item in items]
    is_whole = all(problem.severity is not Severity.REFUSED for problem in problems)
    return _Document(channel, read, problems, is_whole)


def _check(url: str, reply: Reply) -> None:
    """Raise an error if a response has no usable body."""
    what = f"the server answers {reply.status} {responses.get(reply.status, '')}".strip()
    if reply.status == 200 and reply.truncated:
        what = f"it has more than {MAX_BODY_BYTES:,} bytes"
    elif len(reply.hops) == MAX_REDIRECTS and 300 < reply.status < 400:
        what = f"it is redirected more than {MAX_REDIRECTS} times"
    elif reply.status in (200, 304):
        return
    raise InputError(Problem(what, Place(url), "It will be fetched again later."))


def _described(feed: Feed, reply: Reply, document: _Document) -> Feed:
    """Return a feed with its own description; a lease ends if the feed names another hub."""
    channel = document.channel
    discovered = discover(reply.url, header_links(reply.headers.getall("Link", [])), channel)
    hub, topic = next(iter(discovered.hubs), ""), discovered.topic or ""
    if (hub, topic) != (feed.hub, feed.topic):
        feed = replace(feed, callback="", pushed_until=None, push_problem=None)
    return replace(
        feed,
        title=channel.title or feed.title,
        digest=digest(reply.body).hex() if document.is_whole else feed.digest,
        hub=hub,
        topic=topic,
    )


def _validators(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of the next request, from validators that can be sent back unchanged."""
    values = {name: headers.get(source, "") for name, source in _VALIDATORS.items()}
    return {name: value for name, value in values.items() if value and value.isprintable()}

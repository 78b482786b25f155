"""The poller: it fetches feeds when they are due, and hands over their new items.

- 200: the feed is read. The next fetch is due after the longest of ``max-age`` or ``Expires``, the
  feed's ``ttl`` and ``sy:updatePeriod``, between `MIN_INTERVAL` and `MAX_INTERVAL`, otherwise after
  `DEFAULT_INTERVAL`.
- ``ETag``, ``Last-Modified``: sent back unchanged. They are not stored if a part of the document
  was refused, so that it is fetched again.
- 304: nothing is new.
- 301, 308: followed. The feed's address changes when `PERMANENT_POLLS` polls in a row led to it.
- 302, 303, 307: followed, and not stored. There are `MAX_REDIRECTS` redirects at most.
- 429, 503: ``Retry-After``, between `MIN_INTERVAL` and `MAX_RETRY_AFTER`. After 429, all feeds of
  the host wait.
- 410: the next fetch is due after `GONE_INTERVAL`.
- Other errors: the next fetch is due after `MIN_INTERVAL`, which doubles with each error in a row,
  up to `MAX_INTERVAL`. No feed is given up.
- ``skipHours``, ``skipDays``: the next fetch waits until they are over.

Each interval is up to `JITTER` longer, never shorter. While a WebSub hub pushes new items, a feed
is fetched every `PUSHED_INTERVAL` only.

An item is known by its guid and its version, a digest of its content without dates. New items are
handed over first and saved then, so a process that is killed loses none.

Sources: RFC 9110 (validators, Retry-After), RFC 9111 (max-age, Expires), RSS 2.0 (ttl, skipHours),
the RSS 1.0 syndication module.
"""

from __future__ import annotations

import asyncio
import random as randomness
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.client import responses
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from graphmatch.broker.feeds.feed_store import Feed, FeedItem, FeedStore, digest
from graphmatch.broker.outbox.safe_http import (
    HttpClient,
    Reply,
    TransportError,
    http_date,
    retry_after,
)
from graphmatch.broker.outbox.websub_hub import discover, header_links
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
GONE_INTERVAL = timedelta(days=7)
MAX_RETRY_AFTER = timedelta(days=7)
PERMANENT_POLLS = 3
MAX_REDIRECTS = 5
MAX_BODY_BYTES = 10 * 1024 * 1024
MAX_REQUESTS, MAX_REQUESTS_PER_HOST = 20, 2
"""Maximum numbers of concurrent requests."""
REQUEST_SECONDS = 60.0
"""Time limit of one request, for the `HttpClient` of a poller."""
JITTER = 0.1

_MAX_VALIDATOR_CHARACTERS = 2000
_ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, "
    "application/rdf+xml;q=0.9, application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1"
)
_VALIDATORS = (("etag", "ETag"), ("modified", "Last-Modified"))
_MAX_AGE = re.compile(r"\bmax-age\s*=\s*\"?(\d{1,10})", re.IGNORECASE)
_NOT_CACHED = re.compile(r"\bno-(?:store|cache)\b", re.IGNORECASE)
_PERIODS = {"hourly": 1, "daily": 24, "weekly": 168, "monthly": 720, "yearly": 8760}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LIMITS = replace(DEFAULT_LIMITS, document_bytes=MAX_BODY_BYTES, xml_expansion=1024 * 1024)


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The result of one fetch, or of one push by a hub.

    Parameters
    ----------
    feed
        The new state of the feed.
    items
        The new items, in the feed's order.
    problems
        The errors of the fetch, and the problems of the document.
    """

    feed: Feed
    items: tuple[FeedItem, ...] = ()
    problems: tuple[Problem, ...] = ()


OnFetch: TypeAlias = Callable[[FetchResult], Awaitable[None]]
"""A callback for each result, before it is saved."""


@dataclass(frozen=True, slots=True)
class _Document:
    """The content of a feed; `is_whole` says that no part of it was refused."""

    channel: Channel = field(default_factory=Channel)
    items: tuple[FeedItem, ...] = ()
    problems: tuple[Problem, ...] = ()
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
        self._requests = asyncio.Semaphore(MAX_REQUESTS)
        self._hosts = defaultdict[str, asyncio.Semaphore](
            lambda: asyncio.Semaphore(MAX_REQUESTS_PER_HOST)
        )
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._paused: dict[str, datetime] = {}
        self._feeds: dict[str, Feed] = {}
        self._woken = asyncio.Event()

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
            feed = Feed(url, title=title)
            await self._store.save(feed)
            self._feeds[url] = feed
            self._woken.set()

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
        self._woken.set()

    def due(self) -> list[Feed]:
        """Return the feeds that are due."""
        now = self._clock()
        return [feed for feed in self._feeds.values() if (feed.next_poll_at or now) <= now]

    def next_at(self) -> datetime | None:
        """Return the time of the next fetch; ``None`` if there is no feed."""
        now = self._clock()
        return min((feed.next_poll_at or now for feed in self._feeds.values()), default=None)

    # -- polling ---------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event, *, once: bool = False) -> None:
        """Fetch feeds when they are due until `stop` is set; a slow one delays no other.

        At the end, fetches are cancelled, and hand-overs are finished.

        Parameters
        ----------
        once
            Fetch only the feeds that are due now.
        """
        ending = asyncio.create_task(stop.wait())
        polls: set[asyncio.Task[None]] = set()
        try:
            while not stop.is_set():
                self._woken.clear()
                now = self._clock()
                for feed in self.due():
                    # It is not due during the fetch, nor soon if the result cannot be stored.
                    self._feeds[feed.url] = replace(feed, next_poll_at=now + MIN_INTERVAL)
                    polls.add(asyncio.create_task(self._poll_supervised(feed.url), name=feed.url))
                if once and not polls:
                    break
                next_at = self.next_at()
                seconds = None if next_at is None else (next_at - now).total_seconds()
                waking = asyncio.create_task(self._woken.wait())
                events = {ending, waking, *polls}
                await asyncio.wait(events, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                waking.cancel()
                for poll in [poll for poll in polls if poll.done()]:
                    polls.remove(poll)
                    poll.result()
        finally:
            ending.cancel()
            for poll in polls:
                if not self._locks[poll.get_name()].locked():
                    poll.cancel()
            await asyncio.gather(ending, *polls, return_exceptions=True)

    async def _poll_supervised(self, url: str) -> None:
        """Fetch one feed. If its content cannot be processed, note the error with the feed."""
        if self._supervisor is None:
            await self.poll(url)
            return
        with self._supervisor.round("feeds"):
            with self._supervisor.record("feeds", url) as work:
                await self.poll(url)
            if work.error is not None and (feed := self._feeds.get(url)) is not None:
                await self.change(url, **self._failed(feed, f"it failed: {work.error}", None))

    async def poll(self, url: str) -> FetchResult | None:
        """Fetch one feed now; return ``None`` if it was removed, or its host must not be asked."""
        if (feed := self._feeds.get(url)) is None:
            return None
        host, now = _host(feed.address), self._clock()
        if (until := self._paused.get(host, now)) > now:
            await self.change(url, next_poll_at=self._later(until - now, feed))
            return None
        reply: Reply | None = None
        document: _Document | None = None
        try:
            reply = await self._get(feed)
            _check(url, reply)
            if reply.status == 200 and digest(reply.body).hex() != feed.digest:
                document = await asyncio.to_thread(_read, reply.body, url)
            changes = self._succeeded(feed, reply, document)
        except InputError as error:
            document = _Document(problems=(error.problem,))
            changes = self._failed(feed, error.problem.what, reply)
        return await self._accept(url, changes, document or _Document())

    async def pushed(self, url: str, data: bytes) -> FetchResult | None:
        """Accept the content that a hub sent for a feed; return ``None`` if it was removed."""
        try:
            document = replace(await asyncio.to_thread(_read, data, url), is_whole=False)
        except InputError as error:
            document = _Document(problems=(error.problem,))
        return await self._accept(url, {}, document)

    async def _get(self, feed: Feed) -> Reply:
        """Return the response of the server."""
        headers = {
            "Accept": _ACCEPT,
            "If-None-Match": feed.etag,
            "If-Modified-Since": feed.modified,
        }
        sent = {name: value for name, value in headers.items() if value is not None}
        try:
            async with self._hosts[_host(feed.address)], self._requests:
                return await self._client.request(
                    "GET", feed.address, headers=sent, limit=MAX_BODY_BYTES, redirects=MAX_REDIRECTS
                )
        except TransportError as error:
            raise InputError(replace(error.problem, where=Place(feed.url))) from error

    async def _accept(
        self, url: str, changes: Mapping[str, Any], document: _Document
    ) -> FetchResult | None:
        """Hand over the new items, and save them with the feed."""
        async with self._locks[url]:
            if url not in self._feeds:
                return None
            feed, items = replace(self._feeds[url], **changes), document.items
            new = await self._store.unknown(url, items) if items else ()
            result = FetchResult(feed, tuple(new), document.problems)
            if self._on_fetch is not None:
                await self._on_fetch(result)
            await self._store.save(feed, items, new, is_whole=document.is_whole)
            self._feeds[url] = feed
        return result

    def _succeeded(self, feed: Feed, reply: Reply, document: _Document | None) -> dict[str, Any]:
        """Return the changes of a feed after a fetch without an error."""
        now = self._clock()
        changes = _redirected(feed, reply)
        changes |= {"errors": 0, "status": reply.status, "problem": None, "read_at": now}
        is_whole = document is None or document.is_whole
        if reply.status == 200:
            changes |= {name: _validator(reply.headers.get(header)) for name, header in _VALIDATORS}
            changes |= {"validated": reply.url, "digest": digest(reply.body).hex()}
        if not is_whole or (reply.url != feed.validated and reply.status == 304):
            changes |= {"etag": None, "modified": None, "digest": None}
        if document is not None:
            changes |= _described(feed, reply, document.channel)
        changed = replace(feed, **changes)
        wishes = [_max_age(reply.headers, now), changed.ttl]
        wait = max((timedelta(seconds=wish) for wish in wishes if wish), default=DEFAULT_INTERVAL)
        if feed.pushed_until is not None and feed.pushed_until > now:
            wait = max(wait, PUSHED_INTERVAL)
        wait = min(max(wait, MIN_INTERVAL), MAX_INTERVAL)
        return {**changes, "next_poll_at": self._later(wait, changed)}

    def _failed(self, feed: Feed, what: str, reply: Reply | None) -> dict[str, Any]:
        """Return the changes of a feed after an error."""
        now, status = self._clock(), None if reply is None else reply.status
        wait = min(MIN_INTERVAL * 2 ** min(feed.errors, 20), MAX_INTERVAL)
        if status == 410:
            wait = GONE_INTERVAL
        elif reply is not None and status in (429, 503):
            asked = retry_after(reply.headers.get("Retry-After"), now, MAX_RETRY_AFTER)
            wait = wait if asked is None else max(asked, MIN_INTERVAL)
        if status == 429:
            host = _host(feed.address)
            self._paused[host] = max(now + wait, self._paused.get(host, now))
        changes = {"errors": feed.errors + 1, "status": status, "problem": what}
        return {**changes, "target": None, "seen": 0, "next_poll_at": self._later(wait, feed)}

    def _later(self, wait: timedelta, feed: Feed) -> datetime:
        """Return the time after a wait with jitter, and after the hours that a feed skips."""
        at = self._clock() + wait * (1 + JITTER * self._random())
        return after_skipped(at, feed.skip_hours, feed.skip_days)


def after_skipped(at: datetime, hours: Sequence[int], days: Sequence[int]) -> datetime:
    """Return the first time from `at` that is not in a skipped hour or day.

    Examples
    --------
    >>> after_skipped(datetime(2026, 1, 2, 3, 30, tzinfo=UTC), (3, 4), ()).isoformat()
    '2026-01-02T05:00:00+00:00'
    """
    time = at.astimezone(UTC)
    for _ in range(8 * 24):
        if time.hour not in hours and time.weekday() not in days:
            return time
        time = time.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    return at  # The feed skips every hour, which must be a mistake.


def _read(data: bytes, source: str) -> _Document:
    problems: list[Problem] = []
    channel, items = open_feed(data, source, on_problem=problems.append, limits=_LIMITS)
    read = tuple(map(FeedItem.of, items))
    is_whole = not any(problem.severity is Severity.REFUSED for problem in problems)
    return _Document(channel, read, tuple(problems), is_whole)


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


def _redirected(feed: Feed, reply: Reply) -> dict[str, Any]:
    """Return the changes of a feed by the permanent redirects of a fetch."""
    address = feed.address
    for status, target in reply.hops:
        if status not in (301, 308):
            break
        address = target
    if address == feed.address:
        return {"target": None, "seen": 0}
    seen = feed.seen + 1 if address == feed.target else 1
    if seen < PERMANENT_POLLS:
        return {"target": address, "seen": seen}
    return {"moved": address, "target": None, "seen": 0}


def _described(feed: Feed, reply: Reply, channel: Channel) -> dict[str, Any]:
    """Return the changes of a feed by its own description."""
    links = header_links(reply.headers.getall("Link", []))
    discovered = discover(reply.url, links, channel)
    days = map(str.lower, channel.skip_days)
    return {
        "title": channel.title or feed.title,
        "ttl": _ttl(channel),
        "skip_hours": tuple(sorted({n % 24 for n in _numbers(*channel.skip_hours) if n <= 24})),
        "skip_days": tuple(_DAYS.index(day) for day in days if day in _DAYS),
        "hub": next(iter(discovered.hubs), None),
        "topic": discovered.topic,
    }


def _ttl(channel: Channel) -> int | None:
    """Return the shortest polling interval that a feed wants, in seconds."""
    wishes = [minutes * 60 for minutes in _numbers(channel.ttl)]
    hours = _PERIODS.get(channel.period.strip().lower())
    if hours is not None:
        wishes.append(hours * 3600 // max(1, *_numbers(channel.frequency), 1))
    return min(max(wishes), 10**9) if wishes else None


def _numbers(*texts: str) -> list[int]:
    return [int(text) for text in texts if re.fullmatch(r"[0-9]{1,9}", text.strip())]


def _max_age(headers: Mapping[str, str], now: datetime) -> int | None:
    """Return the number of seconds for which a response is fresh, or ``None``."""
    control = headers.get("Cache-Control", "")
    if _NOT_CACHED.search(control):
        return None
    if (age := _MAX_AGE.search(control)) is not None:
        return max(0, int(age[1]) - sum(_numbers(headers.get("Age", ""))))
    expires, date = http_date(headers.get("Expires")), http_date(headers.get("Date"))
    return None if expires is None else max(0, int((expires - (date or now)).total_seconds()))


def _validator(value: str | None) -> str | None:
    """Return a validator if it can be sent back unchanged."""
    is_usable = value and value.isprintable() and len(value) <= _MAX_VALIDATOR_CHARACTERS
    return value if is_usable else None


def _host(address: str) -> str:
    return (urlsplit(address).hostname or "").lower()

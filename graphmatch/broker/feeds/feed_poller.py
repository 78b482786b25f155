"""The poller: when each feed is fetched, what its server is asked, and what of it is new.

- 200: the feed is read. The next fetch is after the longest of `max-age` or `Expires`, the feed's
  `ttl` and `sy:updatePeriod`, between `FLOOR` and `CAP`; after `USUAL` where nothing is said.
- `ETag`, `Last-Modified`: sent back as they came, to the address that gave them. They are not kept
  of a document of which something could not be read, so that it is fetched again.
- 304: nothing is new.
- 301, 308: followed. The feed's address changes when `PERMANENT_SEEN` polls in a row led there.
- 302, 303, 307: followed, and not kept. There are `MOST_REDIRECTS` at most, of all kinds.
- 429, 503: `Retry-After`, between `FLOOR` and `RETRY_AFTER_CAP`. 429 holds for the whole host.
- 410: the next fetch is after `GONE`.
- Another error: the next fetch is after `FLOOR`, doubled with each error in a row, up to `CAP`. A
  feed is never given up.
- `skipHours`, `skipDays`: the next fetch is when they are over.

Times get up to `JITTER` longer, never shorter. A body may have `BODY_BYTES` once it is
decompressed. While a WebSub hub sends what is new, a feed is fetched every `SAFETY_NET` only.

An item is known by its guid and its version, a digest of what it says: not of its dates, of its
channel and of the names of blank nodes. What is new is handed over first and remembered then, so a
process that is killed in between hands it over again, and nothing is lost.

Sources: RFC 9110 (validators, Retry-After), RFC 9111 (max-age, Expires), RSS 2.0 (ttl, skipHours),
the RSS 1.0 syndication module.
"""

from __future__ import annotations

import asyncio
import random as randomness
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urldefrag, urljoin, urlsplit

import aiohttp
from multidict import CIMultiDictProxy

from graphmatch.broker.feeds.feed_store import Feed, FeedItem, FeedStore, digest
from graphmatch.broker.outbox.safe_http import http_date, retry_after
from graphmatch.broker.outbox.websub_protocol import discover, header_links
from semantic.clock import Clock, utc_now
from semantic.errors import GraphMatchError, InputError, Place, Problem, Severity
from semantic.feeds import open_feed
from semantic.feeds.model import Channel
from semantic.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from graphmatch.broker.app.supervisor import Supervisor

FLOOR = timedelta(minutes=15)
"""No feed is fetched more often."""
USUAL = timedelta(hours=1)
"""How often a feed is fetched that says nothing."""
CAP = timedelta(days=1)
"""A feed is fetched so often at least, even if it fails, unless its server names a time."""
SAFETY_NET = timedelta(hours=6)
"""How often a feed is fetched, at most, whose WebSub hub sends what is new."""
GONE = timedelta(days=7)
"""How often a feed is fetched whose server says that it is gone (410)."""
RETRY_AFTER_CAP = timedelta(days=7)
"""A longer Retry-After is taken for a mistake."""
PERMANENT_SEEN = 3
"""So many polls in a row have to be redirected for good before the new address is kept."""
MOST_REDIRECTS = 5
BODY_BYTES = 10 * 1024 * 1024
AT_ONCE = 20
"""So many requests are under way at the same time, in all."""
PER_HOST = 2
"""So many requests are under way at the same time to one host."""
SECONDS = 60.0
"""How long one request may take."""
JITTER = 0.1

_FIELDS = 2000  # a validator of more characters is not kept
_PERMANENT, _TEMPORARY = (301, 308), (302, 303, 307)
_HEADERS = {
    "Accept": "application/atom+xml, application/rss+xml, application/feed+json, "
    "application/rdf+xml;q=0.9, application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1",
    "Accept-Encoding": "gzip, deflate",
}
_MAX_AGE = re.compile(r"\bmax-age\s*=\s*\"?(\d{1,10})", re.IGNORECASE)
_NOT_CACHED = re.compile(r"\bno-(?:store|cache)\b", re.IGNORECASE)
_PERIODS = {"hourly": 1, "daily": 24, "weekly": 168, "monthly": 720, "yearly": 8760}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LIMITS = replace(DEFAULT_LIMITS, document_bytes=BODY_BYTES, xml_expansion=1024 * 1024)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch, or one push of a hub, has brought.

    Parameters
    ----------
    feed
        The feed's new state.
    items
        What was not there before, in the feed's order.
    problems
        What could not be fetched or read.
    """

    feed: Feed
    items: tuple[FeedItem, ...] = ()
    problems: tuple[Problem, ...] = ()


Handle: TypeAlias = Callable[[Fetched], Awaitable[None]]
"""What is called with each fetch, before it is remembered."""
Sleep: TypeAlias = Callable[[float], Awaitable[None]]


class FetchError(GraphMatchError):
    """A feed that could not be fetched or read this time.

    Attributes
    ----------
    status
        The status of the answer; ``None`` where there was none.
    wait
        How long the server wants to be left alone, if it says so.
    """

    def __init__(
        self, problem: Problem, status: int | None = None, wait: timedelta | None = None
    ) -> None:
        super().__init__(problem)
        self.status, self.wait = status, wait


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a server said at the end of redirects; no body where nothing has changed."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes | None
    address: str
    stable: str


@dataclass(frozen=True, slots=True)
class _Body:
    """What was read of a body."""

    channel: Channel
    items: tuple[FeedItem, ...]
    problems: tuple[Problem, ...]

    @property
    def is_whole(self) -> bool:
        return not any(problem.severity is Severity.REFUSED for problem in self.problems)


class Poller:
    """Fetches feeds when their time has come, and hands over what is new.

    Parameters
    ----------
    session
        The HTTP client; redirects are followed here, each hop by a request of its own. Its cookies
        would be sent: give one with `aiohttp.DummyCookieJar`.
    store
        Where state is kept.
    handle
        Called with each fetch, before it is saved: at least once for each new item.
    clock, sleep, random
        The time, how to wait, and a number from 0 to below 1: others in a simulation.
    seconds
        How long one request may take.
    supervisor
        Keeps the failure of one feed from ending `run`: the feed is fetched again later.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        store: FeedStore,
        handle: Handle | None = None,
        *,
        clock: Clock = utc_now,
        sleep: Sleep = asyncio.sleep,
        random: Callable[[], float] = randomness.random,
        seconds: float = SECONDS,
        at_once: int = AT_ONCE,
        per_host: int = PER_HOST,
        limits: Limits = _LIMITS,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._supervisor = supervisor
        self._session, self._store, self._handle = session, store, handle
        self._clock, self._sleep, self._random, self._limits = clock, sleep, random, limits
        self._timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=min(seconds, 15))
        self._all = asyncio.Semaphore(at_once)
        self._hosts = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(per_host))
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._paused: dict[str, datetime] = {}
        self._feeds: dict[str, Feed] = {}
        self._fetching: set[asyncio.Task[Any]] = set()
        self._woken = asyncio.Event()
        self._agent = {**_HEADERS, "User-Agent": f"graphmatch/{version('graphmatch')} (feeds)"}

    # -- which feeds -----------------------------------------------------------------------------

    async def start(self, only: Container[str] | None = None) -> None:
        """Load the feeds of the store; those that are not in `only` stay there untouched."""
        found = await self._store.load()
        self._feeds = {feed.url: feed for feed in found if only is None or feed.url in only}

    @property
    def feeds(self) -> Mapping[str, Feed]:
        """All feeds, by the address that they were first given."""
        return self._feeds

    async def add(self, url: str, title: str = "") -> Feed:
        """Follow a feed; one that is followed already stays as it is."""
        if url not in self._feeds:
            feed = Feed(url, title=title)
            await self._store.save(feed)
            self._feeds[url] = feed
            self._woken.set()
        return self._feeds[url]

    async def remove(self, url: str) -> None:
        """Follow a feed no longer, and forget what was in it; those that it stood for go on."""
        async with self._locks[url]:
            self._feeds.pop(url, None)
            await self._store.forget(url)
        for feed in [feed for feed in self._feeds.values() if feed.same_as == url]:
            await self.change(feed.url, same_as=None, next_poll_at=None)

    async def change(self, url: str, **changes: Any) -> Feed | None:
        """Change a feed's state, such as `pushed_until`; return it, ``None`` where there is none.

        ``next_poll_at=None`` has it fetched at once.
        """
        async with self._locks[url]:
            if url not in self._feeds:
                return None
            feed = self._feeds[url] = replace(self._feeds[url], **changes)
            await self._store.save(feed)
        self._woken.set()
        return feed

    def due(self) -> list[Feed]:
        """Return the feeds whose time has come."""
        now = self._clock()
        return [feed for feed in self._feeds.values() if feed.is_due(now)]

    def next_at(self, without: Iterable[str] = ()) -> datetime | None:
        """Return when the next feed is to be fetched; ``None`` where there is none."""
        skipped = set(without)
        now = self._clock()
        times = [
            feed.next_poll_at or now
            for feed in self._feeds.values()
            if feed.same_as is None and feed.url not in skipped
        ]
        return min(times, default=None)

    # -- polling ---------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event, *, once: bool = False) -> None:
        """Fetch feeds as their times come until `stop` is set; a slow one holds up no other.

        At the end, what is being fetched is dropped, and what is being handed over is finished.

        Parameters
        ----------
        once
            Fetch only what is due now.
        """
        flying: dict[str, asyncio.Task[None]] = {}
        ending = asyncio.create_task(stop.wait())
        try:
            due = self.due()
            while not stop.is_set():
                for feed in due:
                    if feed.url not in flying:
                        flying[feed.url] = asyncio.create_task(self._polled(feed.url))
                if once and not flying:
                    break
                await self._wait(ending, flying)
                for url in [url for url, task in flying.items() if task.done()]:
                    flying.pop(url).result()
                due = [] if once else self.due()
        finally:
            ending.cancel()
            for task in flying.values():
                if task in self._fetching:
                    task.cancel()
            await asyncio.gather(ending, *flying.values(), return_exceptions=True)

    async def _wait(
        self, ending: asyncio.Task[Any], flying: Mapping[str, asyncio.Task[Any]]
    ) -> None:
        """Wait for a feed's time, the end of a fetch, a change of the feeds, or the end."""
        self._woken.clear()
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._woken.wait())]
        if (time := self.next_at(flying)) is not None:
            seconds = max(0.0, (time - self._clock()).total_seconds())
            waits.append(asyncio.ensure_future(self._sleep(seconds)))
        try:
            waited = {ending, *flying.values(), *waits}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _polled(self, url: str) -> None:
        """Fetch one feed; if that fails, note the error with the feed and fetch it again later."""
        if self._supervisor is None:
            await self.poll(url)
            return
        with self._supervisor.round("feeds") as attempt:
            with self._supervisor.record("feeds", url) as fetch:
                await self.poll(url)
            if fetch.error is not None and (feed := self._feeds.get(url)) is not None:
                error = _error(feed, f"it failed: {fetch.error}")
                await self.change(url, **self._failed(feed, error))
        if attempt.error is not None and url in self._feeds:  # Nothing was stored.
            now = self._clock()
            self._feeds[url] = replace(self._feeds[url], next_poll_at=self._later(now + FLOOR, now))

    async def poll(self, url: str) -> Fetched | None:
        """Fetch one feed now; ``None`` where it is followed no longer, or its host has to rest."""
        feed, now = self._feeds.get(url), self._clock()
        if feed is None:
            return None
        until = self._paused.get(_host(feed.address))
        if until is not None and until > now:
            await self.change(url, next_poll_at=self._later(until, now))
            return None
        task = asyncio.current_task()
        body: _Body | None = None
        problems: tuple[Problem, ...]
        if task is not None:
            self._fetching.add(task)
        try:
            answer = await self._get(feed)
            if answer.body is not None and digest(answer.body).hex() != feed.digest:
                body = await asyncio.to_thread(_read, answer.body, feed.url, self._limits)
            changes = self._after(feed, answer, body)
            problems = () if body is None else body.problems
        except FetchError as error:
            changes, problems = self._failed(feed, error), (error.problem,)
        finally:
            if task is not None:
                self._fetching.discard(task)
        if body is None:
            return await self._accept(url, changes, (), problems)
        return await self._accept(url, changes, body.items, problems, is_whole=body.is_whole)

    async def pushed(self, url: str, data: bytes) -> Fetched | None:
        """Take what a hub sends of a feed; ``None`` where it is followed no longer."""
        try:
            body = await asyncio.to_thread(_read, data, url, self._limits)
        except FetchError as error:
            return await self._accept(url, {}, (), (error.problem,))
        return await self._accept(url, {}, body.items, body.problems)

    async def _accept(
        self,
        url: str,
        changes: Mapping[str, Any],
        items: Sequence[FeedItem],
        problems: tuple[Problem, ...],
        *,
        is_whole: bool = False,
    ) -> Fetched | None:
        """Hand over what is new, and remember it."""
        async with self._locks[url]:
            if url not in self._feeds:
                return None
            feed = replace(self._feeds[url], **changes)
            new = await self._store.unknown(url, items) if items else ()
            fetched = Fetched(feed, tuple(new), problems)
            if self._handle is not None:
                await self._handle(fetched)
            await self._store.save(feed, items, new, is_whole=is_whole)
            self._feeds[url] = feed
        return fetched

    # -- one fetch -------------------------------------------------------------------------------

    async def _get(self, feed: Feed) -> _Answer:
        """Ask the server, through redirects; raise `FetchError`."""
        address = stable = feed.address
        gone = {address}
        for _ in range(MOST_REDIRECTS + 1):
            try:
                async with self._hosts[_host(address)], self._all:
                    answer = await self._hop(feed, address, stable)
            except TimeoutError as error:
                raise _error(feed, f"no answer within {self._timeout.total:g} s") from error
            except (aiohttp.ClientError, OSError, ValueError) as error:
                reason = str(error) or type(error).__name__
                raise _error(feed, f"cannot be fetched: {reason}") from error
            if answer.status not in _PERMANENT + _TEMPORARY:
                return answer
            is_kept = answer.status in _PERMANENT and stable == address
            address = _target(feed, answer)
            stable = address if is_kept else stable
            if address in gone:
                raise _error(feed, "its redirects go round in a circle", answer.status)
            gone.add(address)
        what = f"it is redirected more than {MOST_REDIRECTS} times"
        raise _error(feed, what, answer.status)

    async def _hop(self, feed: Feed, address: str, stable: str) -> _Answer:
        """Make one request."""
        headers = dict(self._agent)
        if address == feed.validated:
            if feed.etag is not None:
                headers["If-None-Match"] = feed.etag
            if feed.modified is not None:
                headers["If-Modified-Since"] = feed.modified
        async with self._session.get(
            address, headers=headers, allow_redirects=False, timeout=self._timeout
        ) as response:
            status = response.status
            if status in (304, *_PERMANENT, *_TEMPORARY):
                return _Answer(status, response.headers, None, address, stable)
            if status != 200:
                header = response.headers.get("Retry-After")
                wait = retry_after(header, self._clock(), RETRY_AFTER_CAP)
                what = f"the server answers {status} {response.reason or ''}".strip()
                raise _error(feed, what, status, wait)
            parts, size = [], 0
            if (response.content_length or 0) > BODY_BYTES:
                raise _error(feed, f"it has more than {BODY_BYTES:,} bytes", status)
            async for part in response.content.iter_chunked(1 << 16):
                parts.append(part)
                size += len(part)
                if size > BODY_BYTES:
                    raise _error(feed, f"it has more than {BODY_BYTES:,} bytes", status)
            return _Answer(status, response.headers, b"".join(parts), address, stable)

    # -- what follows from it --------------------------------------------------------------------

    def _after(self, feed: Feed, answer: _Answer, body: _Body | None) -> dict[str, Any]:
        """Return what of a feed changes when it was fetched without an error."""
        now = self._clock()
        changes: dict[str, Any] = {
            **_moving(feed, answer.stable),
            "errors": 0,
            "status": answer.status,
            "problem": None,
            "read_at": now,
        }
        moved = changes.get("moved")
        if moved is not None:
            others = (f for f in self._feeds.values() if f.url != feed.url and f.same_as is None)
            same = next((f.url for f in others if moved in (f.address, f.url)), None)
            changes["same_as"] = same
        if answer.status == 200:
            is_whole = body is None or body.is_whole
            changes["etag"] = _kept(answer.headers.get("ETag")) if is_whole else None
            changes["modified"] = _kept(answer.headers.get("Last-Modified")) if is_whole else None
            changes["validated"] = answer.address
            changes["digest"] = digest(answer.body or b"").hex() if is_whole else None
        if body is not None:
            changes |= _said(feed, answer, body.channel)
        wishes = [_max_age(answer.headers, now), changes.get("ttl", feed.ttl)]
        wish = max((timedelta(seconds=each) for each in wishes if each), default=USUAL)
        if feed.pushed_until is not None and feed.pushed_until > now:
            wish = max(wish, SAFETY_NET)
        at = now + min(max(wish, FLOOR), CAP)
        changes["next_poll_at"] = self._later(at, now, replace(feed, **changes))
        return changes

    def _failed(self, feed: Feed, error: FetchError) -> dict[str, Any]:
        """Return what of a feed changes when a fetch failed."""
        now = self._clock()
        wait = min(FLOOR * 2 ** min(feed.errors, 20), CAP)
        at = now + wait
        if error.status == 410:
            at = now + GONE
        elif error.status in (429, 503) and error.wait is not None:
            at = now + max(error.wait, FLOOR)
        if error.status == 429:
            host = _host(feed.address)
            self._paused[host] = max(at, self._paused.get(host, at))
        return {
            "errors": feed.errors + 1,
            "status": error.status,
            "problem": error.problem.what,
            "target": None,
            "seen": 0,
            "next_poll_at": self._later(at, now, feed),
        }

    def _later(self, at: datetime, now: datetime, feed: Feed | None = None) -> datetime:
        """Return a time that is up to `JITTER` later, and not one when the feed is to be left."""
        at += (at - now) * (JITTER * self._random())
        return at if feed is None else after_skipped(at, feed.skip_hours, feed.skip_days)


def after_skipped(at: datetime, hours: Sequence[int], days: Sequence[int]) -> datetime:
    """Return the first time from `at` that is in no hour and day that a feed has to be left alone.

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
    return at  # all are skipped: a mistake


def _read(data: bytes, source: str, limits: Limits) -> _Body:
    problems: list[Problem] = []
    try:
        channel, items = open_feed(data, source, on_problem=problems.append, limits=limits)
        read = tuple(map(FeedItem.of, items))
    except InputError as error:
        raise FetchError(error.problem, 200) from error
    return _Body(channel, read, tuple(problems))


def _error(
    feed: Feed, what: str, status: int | None = None, wait: timedelta | None = None
) -> FetchError:
    problem = Problem(what, Place(feed.url), "It will be tried again.")
    return FetchError(problem, status, wait)


def _target(feed: Feed, answer: _Answer) -> str:
    """Return where a redirect leads."""
    location = answer.headers.get("Location", "").strip()
    try:
        address = urldefrag(urljoin(answer.address, location))[0]
        is_good = bool(location) and urlsplit(address).scheme in ("http", "https")
    except ValueError:
        is_good = False
    if not is_good:
        raise _error(feed, f"it is redirected to {location!r}", answer.status)
    return address


def _moving(feed: Feed, stable: str) -> dict[str, Any]:
    """Return what changes by where permanent redirects have led."""
    if stable == feed.address:
        return {"target": None, "seen": 0}
    seen = feed.seen + 1 if stable == feed.target else 1
    if seen < PERMANENT_SEEN:
        return {"target": stable, "seen": seen}
    return {"moved": stable, "target": None, "seen": 0}


def _said(feed: Feed, answer: _Answer, channel: Channel) -> dict[str, Any]:
    """Return what changes by what a feed says of itself."""
    links = header_links(answer.headers.getall("Link", []))
    found = discover(answer.address, links, channel)
    return {
        "title": channel.title or feed.title,
        "ttl": _ttl(channel),
        "skip_hours": tuple(sorted({n % 24 for n in _numbers(channel.skip_hours) if n <= 24})),
        "skip_days": tuple(_DAYS.index(d) for d in map(str.lower, channel.skip_days) if d in _DAYS),
        "hub": found.hubs[0] if found.hubs else None,
        "topic": found.topic,
    }


def _ttl(channel: Channel) -> int | None:
    """Return for how many seconds a feed wants to be left alone."""
    wishes = [minutes * 60 for minutes in _numbers([channel.ttl])]
    hours = _PERIODS.get(channel.period.strip().lower())
    if hours is not None:
        wishes.append(hours * 3600 // max(1, *_numbers([channel.frequency]), 1))
    return min(max(wishes), 10**9) if wishes else None


def _numbers(texts: Iterable[str]) -> list[int]:
    return [int(text) for text in texts if re.fullmatch(r"[0-9]{1,9}", text.strip())]


def _max_age(headers: Mapping[str, str], now: datetime) -> int | None:
    """Return for how many seconds an answer is fresh, as its headers say; ``None`` for no wish."""
    control = headers.get("Cache-Control", "")
    if _NOT_CACHED.search(control):
        return None
    if (found := _MAX_AGE.search(control)) is not None:
        age = _numbers([headers.get("Age", "")])
        return max(0, int(found[1]) - sum(age))
    expires = http_date(headers.get("Expires"))
    if expires is None:
        return None
    return max(0, int((expires - (http_date(headers.get("Date")) or now)).total_seconds()))


def _kept(validator: str | None) -> str | None:
    """Return a validator that can be sent back as it is."""
    if validator is None or not validator.isprintable() or len(validator) > _FIELDS:
        return None
    return validator or None


def _host(address: str) -> str:
    return (urlsplit(address).hostname or "").lower()

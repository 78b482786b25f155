"""Matches as they come (server-sent events), in pages, and as an Atom feed.

An event's id is the match's number, which is durable: a client that was cut off says the last one
that it has (``Last-Event-ID``, or ``since``) and gets all after it, once each. Whatever else a
stream says (that it is alive, that the subscription has ended) has no id.

The matcher tells which subscriptions matched; that wakes their streams, and each reads what is
after the last match that it sent. So nothing lies between reading and waiting, and a client that
is slow holds one page in memory.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from sqlalchemy import distinct, select

from graphmatch.broker.service import Broker, millis, time_of
from graphmatch.broker.store import StoreError, counter
from graphmatch.broker.tables import matches, publications, subscriptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, RowMapping

PAGE = 50
"""So many matches are read at once."""
STREAMS = 20
"""So many streams one subscription may have open."""
ALIVE_SECONDS = 15.0
"""After so long without a match a stream says that it is alive."""
STREAM_SECONDS = 3600.0
"""After so long a stream ends: the client comes again, and its right to read is looked at."""
POLL_SECONDS = 0.5
"""How often matches of other processes are looked for, where there may be some."""
ENTRIES = 50
"""So many matches an Atom feed has."""
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_key(ticket: bytes, id: str) -> str:
    """Return the key that is for reading a subscription's matches only.

    It is HMAC-SHA-256 of the subscription's id, under SHA-256 of its ticket: who has the ticket
    can make it, who has it cannot make the ticket. It may stand in an address.

    Parameters
    ----------
    ticket
        SHA-256 of the ticket: `graphmatch.broker.service.digest_of`.

    Examples
    --------
    >>> from graphmatch.broker.service import digest_of
    >>> read_key(digest_of("gmt_0"), "sub_1")[:8]
    'gmr_JTmp'
    """
    made = hmac.new(ticket, b"graphmatch read key\0" + id.encode(), sha256).digest()
    return "gmr_" + urlsafe_b64encode(made).decode("ascii").rstrip("=")


# -- reading ------------------------------------------------------------------------------------

_CHOSEN = (
    select(
        matches,
        subscriptions.c.id.label("subscription_id"),
        publications.c.id.label("publication_id"),
        publications.c.title,
        publications.c.link,
    )
    .join(publications, publications.c.seq == matches.c.publication)
    .join(subscriptions, subscriptions.c.number == matches.c.subscription)
)


def matches_after(
    db: Connection, number: int, since: int, most: int, not_before: int = 0
) -> Sequence[RowMapping]:
    """Return the matches of a subscription after a number, in order.

    Parameters
    ----------
    number
        The subscription's.
    since
        The number of the last match that is known.
    most
        How many, at most.
    not_before
        Older ones are left out; in milliseconds.
    """
    mine = (matches.c.subscription == number) & (matches.c.seq > since)
    chosen = _CHOSEN.where(mine, matches.c.at >= not_before).order_by(matches.c.seq).limit(most)
    return db.execute(chosen).mappings().all()


def last_matches(db: Connection, number: int, most: int) -> Sequence[RowMapping]:
    """Return the newest matches of a subscription, newest first."""
    chosen = _CHOSEN.where(matches.c.subscription == number).order_by(matches.c.seq.desc())
    return db.execute(chosen.limit(most)).mappings().all()


def match_of(db: Connection, seq: int) -> RowMapping | None:
    """Return a match."""
    return db.execute(_CHOSEN.where(matches.c.seq == seq)).mappings().one_or_none()


def match_view(row: RowMapping, root: str, most: int | None = None) -> dict[str, Any]:
    """Return what is told of a match.

    Parameters
    ----------
    root
        What addresses begin with.
    most
        So many bytes of solutions, and no more; ``None``: all that is kept.
    """
    text: str = row["solutions"]
    solutions, cut = json.loads(text), bool(row["cut"])
    if most is not None and len(text) > most:
        solutions, cut = _fitting(solutions, most), True
    return {
        "seq": row["seq"],
        "subscription": row["subscription_id"],
        "generation": row["generation"],
        "publication": {
            "seq": row["publication"],
            "id": row["publication_id"],
            "url": f"{root}/v1/publications/{row['publication']}",
            "title": _short(row["title"]),
            "link": _short(row["link"]),
        },
        "at": time_of(row["at"]).isoformat().replace("+00:00", "Z"),
        "solutions": solutions,
        "cut": cut,
        "url": f"{root}/v1/matches/{row['seq']}",
    }


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= 2000 else text[:1999] + "…"


def _fitting(solutions: Any, most: int) -> Any:
    """Return as many solutions, or triples of a graph, as there is room for."""
    several = solutions["graph"] if isinstance(solutions, dict) else solutions
    kept: list[Any] = []
    for one in several:
        most -= len(json.dumps(one, ensure_ascii=False)) + 1
        if most < 0:
            break
        kept.append(one)
    return {"graph": kept} if isinstance(solutions, dict) else kept


# -- streams ------------------------------------------------------------------------------------


class Streams:
    """The open streams of events, and what wakes them.

    Parameters
    ----------
    broker
        Has the store, the clock and the limits.
    alive_seconds
        After so long without a match a stream says that it is alive.
    """

    def __init__(self, broker: Broker, alive_seconds: float = ALIVE_SECONDS) -> None:
        self._broker, self._alive = broker, alive_seconds
        self._waiting: dict[int, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._polling: asyncio.Task[None] | None = None
        self._last: int | None = None
        self.stopped = False

    def __len__(self) -> int:
        """Return how many streams are open."""
        return sum(map(len, self._waiting.values()))

    def start(self) -> None:
        """Begin, on the loop that runs."""
        self._loop = asyncio.get_running_loop()
        if not self._broker.store.is_sqlite:
            repeat = self._broker.supervisor.repeat
            self._polling = self._loop.create_task(repeat("streams", self._poll, asyncio.Event()))

    def stop(self) -> None:
        """End all streams."""
        self.stopped = True
        if self._polling is not None:
            self._polling.cancel()
        for events in self._waiting.values():
            for event in events:
                event.set()

    def told(self, numbers: Sequence[int]) -> None:
        """Wake the streams of some subscriptions; from any thread."""
        loop = self._loop
        if loop is not None and not self.stopped:
            with suppress(RuntimeError):  # the loop has been closed: nobody reads
                loop.call_soon_threadsafe(self.wake, numbers)

    def wake(self, numbers: Sequence[int]) -> None:
        """Wake the streams of some subscriptions; on the loop."""
        for number in numbers:
            for event in self._waiting.get(number, ()):
                event.set()

    async def _poll(self) -> float:
        """Look for the matches of other processes: one look for all streams."""
        store = self._broker.store
        if self._last is None:
            self._last = await store.read(lambda db: counter(db, "match"))
        elif self._waiting:
            self._last, numbers = await store.read(partial(_matched_after, last=self._last))
            self.wake(numbers)
        return POLL_SECONDS

    def has_room(self, number: int) -> bool:
        """Whether a subscription may have one more stream."""
        return len(self._waiting.get(number, ())) < STREAMS

    @contextmanager
    def _awaiting(self, number: int) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        self._waiting.setdefault(number, set()).add(event)
        try:
            yield event
        finally:
            self._waiting[number].discard(event)
            if not self._waiting[number]:
                del self._waiting[number]

    async def follow(self, number: int, since: int | None, root: str) -> AsyncIterator[bytes]:
        """Yield the events of a subscription, until it ends, the client goes, or all stops.

        Parameters
        ----------
        number
            The subscription's.
        since
            The last match that the client has; ``None``: it wants those from now on.
        root
            What addresses begin with.
        """
        with self._awaiting(number) as event, suppress(StoreError):  # the client comes again
            async for text in self._followed(number, since, root, event):
                yield text.encode()

    async def _followed(
        self, number: int, since: int | None, root: str, event: asyncio.Event
    ) -> AsyncIterator[str]:
        store, limits = self._broker.store, self._broker.limits
        until = asyncio.get_running_loop().time() + STREAM_SECONDS
        newest = await store.read(lambda db: counter(db, "match"))
        # A number that is not there yet is of a store that was: nothing would come for long.
        last = newest if since is None else min(since, newest)
        yield f"retry: 2000\nid: {last}\n\n"
        if since is not None and await store.read(lambda db: self._is_cut(db, number, last)):
            days = limits.replayed / timedelta(days=1)
            yield _control("cut", {"what": f"older matches than {days:g} days are left out here"})
        while not self.stopped and asyncio.get_running_loop().time() < until:
            event.clear()  # what comes from here on wakes it again
            page = partial(self._page, number=number, last=last, oldest=self._oldest())
            rows, state = await store.read(page)
            for row in rows:
                view = json.dumps(match_view(row, root, limits.payload_bytes), ensure_ascii=False)
                last = row["seq"]
                yield f"id: {last}\nevent: match\ndata: {view}\n\n"
            if rows:
                continue
            if state == "ended":
                yield _control("ended", {"what": "the subscription has ended"})
                return
            try:
                async with asyncio.timeout(self._alive):
                    await event.wait()
            except TimeoutError:
                yield ": alive\n\n"

    def _oldest(self) -> int:
        return millis(self._broker.clock() - self._broker.limits.replayed)

    def _page(
        self, db: Connection, number: int, last: int, oldest: int
    ) -> tuple[Sequence[RowMapping], str | None]:
        # The state first: what matched before the end is then among the rows.
        mine = subscriptions.c.number == number
        state = db.scalar(select(subscriptions.c.state).where(mine))
        return matches_after(db, number, last, PAGE, oldest), state

    def _is_cut(self, db: Connection, number: int, last: int) -> bool:
        """Whether matches after a number are too old to be sent again."""
        mine = (matches.c.subscription == number) & (matches.c.seq > last)
        old = select(matches.c.seq).where(mine, matches.c.at < self._oldest()).limit(1)
        return db.scalar(old) is not None


def _matched_after(db: Connection, last: int) -> tuple[int, list[int]]:
    newest = counter(db, "match")
    if newest == last:
        return last, []
    mine = (matches.c.seq > last) & (matches.c.seq <= newest)
    return newest, list(db.scalars(select(distinct(matches.c.subscription)).where(mine)))


def _control(event: str, data: Mapping[str, Any]) -> str:
    """Return an event that is no match, and so has no id."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


# -- Atom ---------------------------------------------------------------------------------------


def feed_url(subscription: Mapping[Any, Any], root: str) -> str:
    """Return the address of a subscription's Atom feed, with the key that is for reading it."""
    id = subscription["id"]
    return f"{root}/v1/subscriptions/{id}/feed.atom?key={read_key(subscription['ticket'], id)}"


def atom(
    db: Connection, subscription: RowMapping, root: str, most: int, hub: str | None = None
) -> tuple[bytes, str]:
    """Return the Atom feed of a subscription's newest matches, and its entity tag.

    Parameters
    ----------
    root
        What addresses begin with.
    most
        So many bytes of solutions an entry has, at most.
    hub
        The address of its WebSub hub.
    """
    rows = last_matches(db, subscription["number"], ENTRIES)
    id, name = subscription["id"], _xml(subscription["name"])
    newest = rows[0]["at"] if rows else subscription["created_at"]
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n',
        f"<id>urn:graphmatch:{id}</id>\n<title>{name}</title>\n",
        f"<updated>{_time(newest)}</updated>\n<author><name>graphmatch</name></author>\n",
        f"<link rel='self' href={_attribute(feed_url(subscription, root))}/>\n",
    ]
    if hub is not None:
        parts.append(f"<link rel='hub' href={_attribute(hub)}/>\n")
    for row in rows:
        view = match_view(row, root, most)
        title = view["publication"]["title"] or view["publication"]["id"]
        link = str(view["publication"]["link"] or "")
        href = link if link.startswith(("http://", "https://")) else view["url"]
        text = json.dumps(view["solutions"], ensure_ascii=False, indent=1)
        parts.append(
            f"<entry>\n<id>urn:graphmatch:{id}:{row['seq']}</id>\n<title>{_xml(title)}</title>\n"
            f"<updated>{_time(row['at'])}</updated>\n<link href={_attribute(href)}/>\n"
            f"<content type='text'>{_xml(text)}</content>\n</entry>\n"
        )
    content = "".join((*parts, "</feed>\n")).encode("utf-8", "replace")
    return content, f'"{sha256(content).hexdigest()[:32]}"'


def _xml(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_NO_XML.sub("\ufffd", text))


def _time(at: int) -> str:
    return time_of(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")

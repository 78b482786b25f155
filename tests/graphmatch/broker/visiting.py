"""A broker with its page and sample data on its own port, and a visitor of the page."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from secrets import token_hex
from urllib.parse import urlencode

import uvicorn
from lxml import html

from graphmatch.broker.access import ApiOptions, local_owner
from graphmatch.broker.api import make_app
from graphmatch.broker.feed_store import Feed
from graphmatch.broker.matching import Matcher
from graphmatch.broker.page.routes import Page, install
from graphmatch.broker.service import Accepted, Broker, Principal
from graphmatch.broker.settings import Settings
from graphmatch.broker.store import Store
from graphmatch.engine import Engine
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.reading import read_publications

SAMPLES = ("library.rdf", "podcast.json", "science.atom", "daily.rss")
NEWS = Path("ontologies/news.ttl")
KNOWING = sorted(Path("ontologies").glob("*.*"))
"""The ontology files of `graphmatch serve --demo`."""
SUBSCRIPTIONS = {
    "Climate": {"topics": ["Climate"]},
    "Energy or space": {"topics": ["Energy", "Space exploration"], "match": "any"},
    "Elections without tax": {"words": ["election"], "not-words": ["tax"]},
}
DAYS = 13


def samples() -> list[Publication]:
    return [one for name in SAMPLES for one in read_publications(Path("data/feeds") / name)]


class Polled:
    """A stand-in for a poller, without a network."""

    def __init__(self, now: datetime) -> None:
        read, soon = now - timedelta(minutes=12), now + timedelta(minutes=48)
        daily = Feed("https://daily.example/feed.rss", title="The Harbour Daily", read_at=read)
        failing = Feed("https://late.example/feed.json", title="Late", errors=3, problem="503")
        self.feeds: dict[str, Feed] = {daily.url: daily, failing.url: failing}
        self.soon = soon

    async def add(self, url: str, title: str = "") -> Feed:
        return self.feeds.setdefault(url, Feed(url, title=title, next_at=self.soon))

    async def remove(self, url: str) -> None:
        del self.feeds[url]


@dataclass
class Broking:
    """A running broker."""

    broker: Broker
    matcher: Matcher
    page: Page
    port: int
    loop: asyncio.AbstractEventLoop
    retried: list[int] = field(default_factory=list)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def take_in(self, *several: Publication, source: str = "samples") -> Accepted:
        coming = self.broker.take_in(several, source=source)
        return asyncio.run_coroutine_threadsafe(coming, self.loop).result(10)

    def publish(self, data: bytes) -> int:
        """Publish a document, wait until it is matched, return its number."""
        coming = self.broker.publish(data)
        accepted = asyncio.run_coroutine_threadsafe(coming, self.loop).result(10)
        self.settle()
        return accepted.publications[-1][0]

    def subscribe_samples(self) -> None:
        """Subscribe as the page's local user."""

        async def subscribe() -> None:
            by = Principal(await local_owner(self.broker), frozenset({"subscribe"}))
            for name, given in SUBSCRIPTIONS.items():
                settings = Settings(name, expires_in=timedelta(days=30))
                await self.broker.subscribe(given, settings, by)

        asyncio.run_coroutine_threadsafe(subscribe(), self.loop).result(10)

    def token(self, owner: str, *scopes: str) -> str:
        coming = self.broker.new_token(owner, scopes)
        return asyncio.run_coroutine_threadsafe(coming, self.loop).result(10)

    def settle(self) -> None:
        """Wait until all is matched."""
        until = time.monotonic() + 10
        while self.broker.store.read_now(self.matcher._waiting):
            assert time.monotonic() < until, "it is not matched"
            time.sleep(0.02)


def item(title: str, text: str = "", link: str = "https://e.example/1") -> bytes:
    """Return a feed of one item; its parts are not escaped."""
    return (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>E</title>'
        f"<link>https://e.example/</link><description>d</description><item><title>{title}</title>"
        f"<link>{link}</link><description>{text}</description><guid>urn:{token_hex(8)}</guid>"
        "</item></channel></rss>"
    ).encode()


@contextmanager
def serving(folder: Path, *, local: bool = True, filled: bool = True) -> Iterator[Broking]:
    """Serve a broker until the end of the block."""
    behind = [timedelta(0)]
    engine = Engine(Ontology.load(*KNOWING), clock=lambda: datetime.now(UTC))
    store = Store(str(folder / "broker.db"))
    broker = Broker(store, engine, clock=lambda: datetime.now(UTC) - behind[0])
    matcher = Matcher(broker)
    retried: list[int] = []

    async def retry(number: int) -> None:
        retried.append(number)

    polled = Polled(datetime.now(UTC))
    options = ApiOptions(local=local)
    app = make_app(broker, matcher, options=options, retry=retry, feeds=polled)
    api = app.state.api
    page = Page(api)
    install(app, page)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
    loops: list[asyncio.AbstractEventLoop] = []

    async def served() -> None:
        loops.append(asyncio.get_running_loop())
        await server.serve([listening])

    thread = threading.Thread(target=asyncio.run, args=(served(),))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        matcher.load()
        matcher.start()
        port = listening.getsockname()[1]
        broking = Broking(broker, matcher, page, port, loops[0], retried)
        if filled:
            several = samples()
            behind[0] = timedelta(days=DAYS)
            broking.subscribe_samples()
            for number, one in enumerate(several, 1):
                behind[0] = timedelta(days=DAYS * (1 - number / len(several)))
                broking.take_in(one)
            behind[0] = timedelta(0)
            broking.settle()
        yield broking
    finally:
        api.streams.stop()
        server.should_exit = True
        thread.join()
        matcher.stop()
        store.close()
        listening.close()


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def page(self) -> html.HtmlElement:
        return html.document_fromstring(self.text)

    def all(self, selector: str) -> list[str]:
        """Return the texts of elements by an XPath."""
        found = self.page.xpath(selector)
        texts = (one if isinstance(one, str) else one.text_content() for one in found)
        return [" ".join(text.split()) for text in texts]


@dataclass
class Visitor:
    """A browser without JavaScript."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask("GET", path, b"", headers)

    def part(self, path: str) -> Answer:
        """Send a request as htmx does."""
        return self.get(path, **{"HX-Request": "true"})

    def post(
        self, path: str, fields: Iterable[tuple[str, str]] | Mapping[str, str], **headers: str
    ) -> Answer:
        said = {"Origin": f"http://127.0.0.1:{self.port}", **headers}
        said["Content-Type"] = "application/x-www-form-urlencoded"
        pairs = fields.items() if isinstance(fields, Mapping) else fields
        return self._ask("POST", path, urlencode(list(pairs)).encode(), said)

    def upload(self, path: str, **files: tuple[str, bytes]) -> Answer:
        """Post a form with files, given by names and contents."""
        mark = token_hex(8)
        body = b"".join(
            f'--{mark}\r\nContent-Disposition: form-data; name="{key}"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n".encode()
            + data
            + b"\r\n"
            for key, (name, data) in files.items()
        )
        said = {"Origin": f"http://127.0.0.1:{self.port}"}
        said["Content-Type"] = f"multipart/form-data; boundary={mark}"
        return self._ask("POST", path, body + f"--{mark}--\r\n".encode(), said)

    def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        given = {"Accept": "text/html", **headers}
        said = {key: value for key, value in given.items() if value}
        if self.cookies:
            said["Cookie"] = "; ".join(f"{key}={value}" for key, value in self.cookies.items())
        try:
            connection.request(method, path, body or None, said)
            answer = connection.getresponse()
            text = answer.read().decode()
            self._keep(answer)
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, text)
        finally:
            connection.close()

    def _keep(self, answer: HTTPResponse) -> None:
        for line in answer.headers.get_all("set-cookie") or []:
            name, _, value = line.partition(";")[0].partition("=")
            if value.strip('"'):
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)

    def events(self, path: str, most: int, **headers: str) -> list[dict[str, str]]:
        """Return the first events of a stream."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            found: list[dict[str, str]] = []
            event: dict[str, str] = {}
            while len(found) < most:
                line = answer.readline().decode().rstrip("\n")
                key, _, value = line.partition(": ")
                if not line and "event" in event:
                    found.append(event)
                    event = {}
                elif key:
                    event[key] = f"{event[key]}\n{value}" if key in event else value
            answer.close()
            return found
        finally:
            connection.close()

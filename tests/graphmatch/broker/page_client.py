"""A broker with its page and sample data on its own port, and a visitor of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from secrets import token_hex
from urllib.parse import urlencode

from fastapi import FastAPI

from graphmatch.broker.api.dependencies import ApiOptions, local_owner
from graphmatch.broker.app.security import Principal
from graphmatch.broker.feeds.feed_store import Feed
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.page.routes import Page, install
from graphmatch.broker.service.publications import Addition
from semantic.publication import Publication
from semantic.reading import read_publications
from tests.graphmatch.broker.live_broker import Answer, Called, LiveBroker

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
        return self.feeds.setdefault(url, Feed(url, title=title, next_poll_at=self.soon))

    async def remove(self, url: str) -> None:
        del self.feeds[url]


class PageServer(LiveBroker):
    """A running broker with its page, and with sample data if wanted."""

    def __init__(
        self, folder: Path, *, local: bool = True, filled: bool = True, url: str | None = None
    ) -> None:
        self.retried: list[int] = []
        self._filled = filled
        options, feeds = ApiOptions(local=local, url=url), Polled(datetime.now(UTC))
        more = {"options": options, "retry": self._retry, "feeds": feeds}
        super().__init__(folder, knowing=KNOWING, **more)

    async def _retry(self, number: int) -> None:
        self.retried.append(number)

    def make(self) -> FastAPI:
        app = super().make()
        self.page = Page(app.state.api)
        install(app, self.page)
        return app

    def start(self) -> None:
        super().start()
        if self._filled:
            several = samples()
            self.clock.forward = -timedelta(days=DAYS)
            self.wait_for(self._subscribe_samples())
            for number, one in enumerate(several, 1):
                self.clock.forward = -timedelta(days=DAYS * (1 - number / len(several)))
                self.wait_for(self.broker.publications.add(Addition([one], "samples")))
            self.clock.forward = timedelta(0)
            self.settled()

    async def _subscribe_samples(self) -> None:
        """Subscribe as the page's local user."""
        by = Principal(await local_owner(self.broker), frozenset({"subscribe"}))
        for name, given in SUBSCRIPTIONS.items():
            settings = SubscriptionSettings(name=name, expires_in=timedelta(days=30))
            await self.broker.subscriptions.subscribe(given, settings, by)

    def publish_item(self, data: bytes) -> int:
        """Publish a document, wait until it is matched, return its number."""
        accepted = self.wait_for(self.broker.publications.publish(data))
        self.settled()
        return accepted.publications[-1][0]

    def token(self, owner: str, *scopes: str) -> str:
        return self.wait_for(self.broker.accounts.new_token(owner, scopes))


def item(title: str, text: str = "", link: str = "https://e.example/1") -> bytes:
    """Return a feed of one item; its parts are not escaped."""
    return (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>E</title>'
        f"<link>https://e.example/</link><description>d</description><item><title>{title}</title>"
        f"<link>{link}</link><description>{text}</description><guid>urn:{token_hex(8)}</guid>"
        "</item></channel></rss>"
    ).encode()


@dataclass
class Visitor(Called):
    """A browser without JavaScript."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, b"", headers)

    def part(self, path: str) -> Answer:
        """Send a request as htmx does."""
        return self.get(path, **{"HX-Request": "true"})

    def post(
        self, path: str, fields: Iterable[tuple[str, str]] | Mapping[str, str], **headers: str
    ) -> Answer:
        said = {"Origin": f"http://127.0.0.1:{self.port}", **headers}
        said["Content-Type"] = "application/x-www-form-urlencoded"
        pairs = fields.items() if isinstance(fields, Mapping) else fields
        return self.ask("POST", path, urlencode(list(pairs)).encode(), said)

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
        return self.ask("POST", path, body + f"--{mark}--\r\n".encode(), said)

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        sent = {key: value for key, value in {"Accept": "text/html", **headers}.items() if value}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{key}={value}" for key, value in self.cookies.items())
        answer = self.call(method, path, body or None, sent)
        name, _, value = answer.headers.get("set-cookie", "").partition(";")[0].partition("=")
        if value.strip('"'):
            self.cookies[name] = value
        else:
            self.cookies.pop(name, None)
        return answer

    def events(self, path: str, most: int, **headers: str) -> list[dict[str, str]]:
        """Return the first events of a stream; fail if nothing arrives for 10 seconds."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            found: list[dict[str, str]] = []
            event: dict[str, str] = {}
            while len(found) < most:
                data = answer.readline()
                assert data, found  # The server has closed the stream.
                line = data.decode().rstrip("\n")
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

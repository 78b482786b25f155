"""`graphmatch watch`: the poller behind the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphmatch.cli import app
from graphmatch.command import options, watch
from semantic.errors import pip_install
from tests.waiting import wait

ROOT = Path(__file__).parents[3]
RSS = """<rss version="2.0"><channel><title>Soups</title><link>https://e.org/</link>
<item><title>Brühe with peas</title><guid>https://e.org/1</guid><category>Food</category>
<pubDate>Mon, 05 Jan 2026 00:00:00 GMT</pubDate></item>
<item><title>Cars</title><guid>https://e.org/2</guid></item></channel></rss>"""
WORDS = ["--word", "peas"]


class Site(ThreadingHTTPServer):
    """A loopback server with feeds."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, tuple[int, str]] = {"/feed": (200, RSS)}
        self.asked: list[str] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, text = self.server.pages.get(self.path, (404, ""))
        self._answer(status, text.encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def feeds(site: Site, tmp_path: Path) -> Path:
    path = tmp_path / "feeds.opml"
    path.write_text(f"<opml><body><outline text='a' xmlUrl='{site.url('/feed')}'/></body></opml>")
    return path


LOCAL = ("--allow", "127.0.0.0/8")


def run(*arguments: object, allow: tuple[str, ...] = LOCAL) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["watch", *allow, *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_what_matches_is_shown_as_filter_shows_it(site: Site, feeds: Path, tmp_path: Path) -> None:
    status, out, err = run("--feeds", feeds, "--once", *WORDS)
    assert status == 0, err
    (tmp_path / "feed.rss").write_text(RSS)
    filtered = CliRunner().invoke(app, ["filter", str(tmp_path / "feed.rss"), *WORDS])
    assert out == filtered.stdout
    assert "Brühe with peas" in out
    assert "watching 1 feed, 1 subscription; 1 due" in err
    assert "2 new items, 1 subscription: 1 match in 1 item, 0 refused" in err


def test_each_item_comes_once_with_a_state(site: Site, feeds: Path, tmp_path: Path) -> None:
    options = ("--feeds", feeds, "--state", tmp_path / "state.db", "--once", "--as", "jsonl")
    _, out, _ = run(*options, *WORDS)
    assert json.loads(out)["publication"] == "https://e.org/1"
    assert json.loads(out)["source"].startswith(site.url("/feed"))
    status, out, err = run(*options, *WORDS)
    assert (status, out) == (0, "")
    assert "1 feed, 1 subscription; 0 due" in err
    assert site.asked == ["/feed"]  # The next poll is not due.


def test_that_a_broken_feed_is_reported_and_the_rest_goes_on(
    site: Site, feeds: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more.txt"
    more.write_text(f"{site.url('/none')}\nnonsense\n")
    status, out, err = run("--feeds", feeds, "--feeds", more, "--once", *WORDS)
    assert status == 1
    assert "Brühe" in out
    assert f"refused  {site.url('/none')}: the server answers 404 Not Found." in err
    assert "'nonsense' is not a feed's address" in err
    assert "2 refused" in err


def test_that_nothing_is_sent_into_networks_that_are_not_allowed(site: Site, feeds: Path) -> None:
    refused = (
        f"{site.url('/feed')}: nothing is sent to 127.0.0.1, which is not public, without --allow "
        "127.0.0.0/8. Name a public address, or use this option (`allow` in graphmatch.toml)."
    )
    status, out, err = run("--feeds", feeds, "--once", *WORDS, allow=())
    assert (status, out, site.asked) == (1, "", [])
    assert refused in " ".join(err.split())
    status, _, err = run("--feeds", feeds, "--once", *WORDS, allow=("--allow", "127.0.0.1"))
    assert (status, site.asked) == (0, ["/feed"]), err
    status, _, err = run("--feeds", feeds, *WORDS, allow=("--allow", "here"))
    assert status == 2
    assert "'here' is not a network" in err


def test_copies_of_an_item_are_one_alert_that_names_its_feeds(
    site: Site, feeds: Path, tmp_path: Path
) -> None:
    """Three addresses of one feed: one alert, also if another copy comes in a later run."""
    other = RSS.replace("https://e.org/1</guid>", "post-1</guid><link>http://www.e.org/a/</link>")
    first = RSS.replace("https://e.org/1</guid>", "post-0</guid><link>https://e.org/a</link>")
    site.pages |= {"/feed": (200, first), "/feed?b": (200, first), "/c": (200, other)}
    urls = [site.url("/feed"), site.url("/feed?b"), site.url("/c")]
    options = ("--state", tmp_path / "state.db", "--once", *WORDS)
    status, out, err = run(*(f"--feeds={url}" for url in urls), *options)
    assert (status, out.count("Brühe"), out.count("▸")) == (0, 1, 1), err
    assert set(out.splitlines()[2].removeprefix("  in ").split(", ")) == set(urls)
    assert "6 new items, 1 subscription: 1 match in 1 item" in err
    site.pages["/d"] = (200, other)
    status, out, err = run("--feeds", site.url("/d"), *options)
    assert (status, out) == (0, "")
    assert "2 new items, 1 subscription: 0 matches" in err


def test_a_slow_feed_delays_alerts_only_for_a_while(
    site: Site, feeds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "HOLD_SECONDS", 0)
    site.pages["/b"] = (200, RSS.replace("Soups", "Other"))
    status, out, err = run("--feeds", feeds, "--feeds", site.url("/b"), "--once", *WORDS)
    assert (status, out.count("Brühe")) == (0, 1), err


def test_the_configuration_is_read_by_default(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = f"feeds = ['{site.url('/feed')}']\nseen = 'seen.db'\nallow = ['127.0.0.0/8']\n"
    Path("graphmatch.toml").write_text(text + "[[subscription]]\nid = 'a'\nwords = ['peas']\n")
    status, out, err = run("--once", allow=())
    assert (status, out.count("▸ a")) == (0, 1), err
    Path("graphmatch.toml").write_text("[[subscription]]\nid = 'a'\nwords = ['peas']\n")
    status, _, err = run("--once")
    assert status == 2
    assert "there is no feed to fetch. Name addresses, or OPML files." in err


def test_that_older_items_are_left_out(feeds: Path) -> None:
    assert run("--feeds", feeds, "--once", "--since", "2026-01-06", *WORDS)[1] == ""
    assert run("--feeds", feeds, "--once", "--since", "2026-01-05", *WORDS)[1] != ""


def test_that_options_of_loading_reach_the_ontology(site: Site, feeds: Path) -> None:
    site.pages["/feed"] = (200, RSS.replace("Cars", "The price of solar power"))
    news = ROOT / "ontologies/news.ttl"
    options = ("--feeds", feeds, "--once", "--topic", "Energy", "-o", news)
    assert "The price of solar power" in run(*options)[1]
    assert run(*options, "--no-annotate")[1] == ""
    status, _, err = run(*options, "--cache", ".", "--no-cache")
    assert status == 2
    assert "--cache and --no-cache are given both" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((), "there is no subscription to match"), (("--engine", "none.gm", *WORDS), "none.gm")],
)
def test_what_cannot_be_run(feeds: Path, arguments: tuple[str, ...], message: str) -> None:
    status, _, err = run("--feeds", feeds, "--once", *arguments)
    assert status == 2
    assert message in err


def test_that_a_list_without_feeds_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "feeds.opml"
    empty.write_text("<opml/>")
    for path, message in ((empty, "it lists no feed"), (tmp_path / "none", "cannot be read")):
        status, _, err = run("--feeds", path, *WORDS)
        assert status == 2
        assert message in err


def test_it_names_the_missing_package(feeds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "find_spec", lambda _: None)
    status, _, err = run("--feeds", feeds, *WORDS)
    assert status == 2
    install = pip_install("broker")
    assert "it needs aiohttp, alembic, " in err
    assert f"Install the extra: {install}" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_that_a_signal_ends_it_cleanly(
    site: Site, feeds: Path, tmp_path: Path, number: signal.Signals
) -> None:
    arguments = [
        "watch",
        *LOCAL,
        "--feeds",
        str(feeds),
        "--state",
        str(tmp_path / "state.db"),
        *WORDS,
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "graphmatch.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "Brühe with peas\n"
    wait(lambda: bool(site.asked))
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert "2 new items" in err

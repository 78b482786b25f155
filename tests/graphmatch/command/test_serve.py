"""``graphmatch serve``: it starts, prints its address, keeps its data, and stops."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

import graphmatch.broker
from graphmatch.broker.client import BrokerError, Client
from graphmatch.cli import app
from graphmatch.command.serve import ServeOptions
from semantic.errors import InputError, pip_install
from tests.waiting import wait

ROOT = Path(__file__).parents[3]


@contextmanager
def serve(store: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """Yield the process, its address, and the output before it."""
    code = "from graphmatch.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--store", str(store), "--port", "0", *more]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said: list[str] = []
            while True:
                line = process.stdout.readline()
                assert line, said
                said.append(line)
                if found := re.search(r"listening at (http://\S+),", line):
                    break
            yield process, found[1], said
        finally:
            process.kill()


def test_that_it_keeps_what_it_took_in_and_stops_when_told(tmp_path: Path) -> None:
    store = tmp_path / "broker.db"
    with serve(store, "-o", "ontologies/news.ttl") as (process, url, _):
        client = Client(url)
        made = client.subscribe(query="SELECT ?s WHERE { ?s a <urn:C> }")
        client.publish("<urn:a> a <urn:C> .", "text/turtle")
        events = client.events(made.id, made.ticket, since=0)
        assert next(events).seq == 1  # The stream stays open.
        parts = HTTPConnection(url.partition("://")[2], timeout=10)
        parts.request("GET", "/docs")
        page = parts.getresponse().read().decode()
        parts.close()
        assert "POST /v1/publications" in page
        assert "http-equiv" not in page
        assert "<script" not in page
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=20)
        assert process.returncode == 0, rest
        assert "stopped" in rest
        assert made.ticket not in rest
        assert '"path": "/v1/publications"' in rest
        events.close()
    assert list(tmp_path.glob("broker.db.engines/*.gm"))
    with serve(store, "-o", "ontologies/news.ttl") as (_, url, _):
        client = Client(url)
        client.publish("<urn:b> a <urn:C> .", "text/turtle")
        events = client.events(made.id, made.ticket, since=1)
        assert next(events).solutions == [{"s": "<urn:b>"}]
        events.close()


def test_that_tokens_are_needed_where_others_reach_it(tmp_path: Path) -> None:
    options = ("--host", "0.0.0.0", "--public", "--new-token", "shop:publish")
    with serve(tmp_path / "broker.db", *options) as (_, url, said):
        url = url.replace("0.0.0.0", "127.0.0.1")
        token = next(line for line in said if line.startswith("shop: ")).split()[1]
        with pytest.raises(BrokerError, match="this needs a token"):
            Client(url).publish("<urn:a> a <urn:C> .", "text/turtle")
        assert Client(url, token).publish("<urn:a> a <urn:C> .", "text/turtle").publications
        with pytest.raises(BrokerError, match="the token lacks the scope"):
            Client(url, token).subscribe(query="ASK { ?s ?p ?o }")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_other_machines_reach_the_broker_only_with_the_option(host: str) -> None:
    with pytest.raises(InputError, match="other machines could reach this address"):
        ServeOptions(host=host).check()
    ServeOptions(host=host, public=True).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_addresses_of_this_machine_need_no_option(host: str) -> None:
    ServeOptions(host=host).check()


def test_mistakes_are_explained(tmp_path: Path) -> None:
    def said(*options: str) -> str:
        ran = CliRunner().invoke(app, ["serve", "--store", str(tmp_path / "b.db"), *options])
        assert ran.exit_code == 2
        return " ".join(ran.output.split())

    assert "names no scope of a token" in said("--new-token", "shop")
    assert "no scope is called 'fly'" in said("--port", "0", "--new-token", "shop:fly")
    assert "cannot be listened at" in said("--host", "192.0.2.1", "--public", "--port", "1")


def test_the_missing_extra_of_the_broker_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphmatch, "broker", graphmatch.broker)  # Import the package again.
    for name in [name for name in sys.modules if name.startswith("graphmatch.broker")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    ran = CliRunner().invoke(app, ["serve", "--store", str(tmp_path / "b.db")])
    assert ran.exit_code == 2
    assert pip_install("broker") in " ".join(ran.output.split())


def test_the_missing_extra_of_kafka_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    options = ("--store", str(tmp_path / "b.db"), "--kafka", "127.0.0.1:1")
    ran = CliRunner().invoke(app, ["serve", *options])
    assert ran.exit_code == 2
    assert pip_install("kafka") in " ".join(ran.output.split())


def test_the_page_of_the_demo_soon_shows_a_match(tmp_path: Path) -> None:
    def shows_a_match() -> bool:
        with urlopen(Request(url, headers={"Accept": "text/html"})) as answer:
            return b'id="match-' in answer.read()

    with serve(tmp_path / "other.db", "--demo") as (process, url, _):
        wait(shows_a_match)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0
    assert not list(tmp_path.iterdir())

"""``graphmatch serve``: it starts, prints its address, keeps its data, and stops."""

from __future__ import annotations

import json
import logging
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

import graphmatch.broker
from graphmatch.broker.client import BrokerError, Client
from graphmatch.broker.metrics import json_logging
from graphmatch.cli import app
from graphmatch.command.config import read_limits
from graphmatch.command.options import Verbosity
from graphmatch.command.serve import LogLines, ServeOptions
from graphmatch.command.session import Session
from graphmatch.console import CommandConsole
from semantic.errors import InputError, Place, Problem, pip_install
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
        assert "SwaggerUIBundle" in page
        assert "//" not in page.replace("http://127.0.0.1", "")
        assert "http-equiv" not in page
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=20)
        assert process.returncode == 0, rest
        assert "stopped" in rest
        assert made.ticket not in rest
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
            return b'id="item-' in answer.read()

    with serve(tmp_path / "other.db", "--demo") as (process, url, _):
        wait(shows_a_match)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0
    assert not list(tmp_path.iterdir())


# -- The configuration file ---------------------------------------------------------------------


def refused(tmp_path: Path, text: str) -> str:
    file = tmp_path / "broker.toml"
    file.write_text(text, encoding="utf-8")
    ran = CliRunner().invoke(app, ["serve", "--config", str(file)])
    assert ran.exit_code == 2
    return ran.output.replace(str(file), "FILE")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serve]\n\nprot = 1", "FILE:3: there is no key `prot` in [serve]. Is `port` meant?"),
        ("[serve]\nurl = 1\n[limits]\nurl = 'x'", "FILE:2: `url` is not a string"),
        ("kafka = 'a'\nurls = 'x'", "FILE:2: there is no key `urls`. Is `url` meant?"),
        ("[filter]\nseen = 'a'\nport = 1", "FILE:3: there is no key `port` in [filter]."),
        ("[serve]\nnew-token = ['a:admin']", "FILE:2: there is no key `new-token` in [serve]"),
        ("[server]\nport = 1", "FILE:1: there is no table [server]. Write [serve]."),
        ("serve = 1", "FILE:1: there is no key `serve`. Is `[serve]` meant?"),
        ("[serve]\nport = 70000", "FILE:2: `port`: 70000 is not in the range"),
        ("[serve]\npublic = 'yes'", "FILE:2: `public` is not true or false"),
        ("[limits]\nretention = 30", "FILE:2: `retention` is not a duration"),
        ("[limits]\nsolutions = 0", "FILE:2: `solutions` is not a number above 0"),
        ("[limits]\nsolutions = true", "FILE:2: `solutions` is not a number above 0"),
        ("[limits]\nsolution = 1", "FILE:2: there is no key `solution` in [limits]. Is"),
        ("[serve\n", "FILE:1:7: not TOML"),
    ],
)
def test_mistakes_in_the_configuration_are_explained(tmp_path: Path, text: str, said: str) -> None:
    assert said in " ".join(refused(tmp_path, text).split())


def test_a_missing_configuration_is_an_error(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["serve", "--config", str(tmp_path / "no.toml")])
    assert ran.exit_code == 2
    assert "no.toml" in ran.output


def test_limits_and_durations_are_read(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text("[limits]\nretention = '90 days'\nreplayed = '36 hours'\nsolutions = 5\n")
    limits = read_limits(file)
    assert (limits.retention, limits.replayed) == (timedelta(days=90), timedelta(hours=36))
    assert limits.solutions == 5
    assert limits.body_bytes == read_limits(None).body_bytes == 10_000_000


def test_the_command_line_overrides_the_configuration_and_each_log_line_is_json(
    tmp_path: Path,
) -> None:
    """The ontology has a problem, a client sends a secret, and Python warns."""
    store, file = tmp_path / "other.db", tmp_path / "broker.toml"
    ontology = tmp_path / "o.ttl"
    ontology.write_text("<urn:A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> 'x' .")
    text = "ontology = ['o.ttl']\nport = 2\n[serve]\nstore = 'broker.db'\nport = 1\n"
    text += "[[subscription]]\nid = 'a'\nwords = ['b']\n"
    file.write_text(text + "[limits]\nbody-bytes = 100\n", encoding="utf-8")
    options = ("--config", str(file), "--port", "0")
    with serve(store, *options) as (process, url, lines):
        client = Client(url, "gmk_secret")
        with pytest.raises(BrokerError):
            client.publish(" " * 200, "text/turtle")
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=20)
    lines += rest.splitlines()
    events = [json.loads(line) for line in lines]
    assert all({"event", "level", "timestamp"} <= event.keys() for event in events)
    assert {413, 401} & {event.get("status") for event in events}
    told = [event["event"] for event in events]
    assert "stopped" in told
    assert any("broker.toml: serve skips [[subscription]]. Use its page" in one for one in told)
    assert "secret" not in "".join(lines)
    assert store.is_file()
    assert not (tmp_path / "broker.db").exists()


def test_a_quiet_service_logs_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    with json_logging(logging.WARNING):
        session = Session(Verbosity(quiet=True), err=CommandConsole(file=LogLines()))
        session.report(Problem("it is damaged", Place("a.rss"), "Get it again."))
        session.note("listening")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["level"] == "WARNING"
    assert "a.rss: it is damaged" in json.loads(line)["event"]


def test_warnings_errors_and_servers_are_logged_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(), json_logging():
        warnings.simplefilter("always")
        warnings.warn("an old\nfunction", DeprecationWarning, stacklevel=1)
        logging.getLogger("uvicorn.error").warning("with\ngmk_secret and %s", "://a:secret@b/c")
        try:
            int("?key=secret")
        except ValueError:
            logging.getLogger("graphmatch.broker").exception("it failed")
        path = {"path": "/x?token=secret"}
        logging.getLogger("graphmatch.broker").info("request", extra=path)
    lines = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["level"] for line in lines] == ["WARNING", "WARNING", "ERROR", "INFO"]
    assert "Traceback" in json.loads(lines[2])["exception"]
    assert "secret" not in "".join(lines)

"""``graphmatch filter`` from cron: forms, files, memory, configuration; ``graphmatch index``."""

from __future__ import annotations

import csv
import gc
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from pyoxigraph import BlankNode, Literal, NamedNode
from pyoxigraph import Triple as TripleTerm
from typer.testing import CliRunner

import graphmatch
from graphmatch.cli import app
from graphmatch.command import filter as filter_command
from graphmatch.command.config import COMMANDS, read_config
from graphmatch.command.filter import is_older
from graphmatch.command.misses import NearMisses
from graphmatch.command.output import Alert, term_as_json
from graphmatch.command.seen import KEPT_DAYS, open_seen
from graphmatch.engine import Engine
from graphmatch.report import Match
from semantic import Publication
from semantic.sqlite_file import SqliteFileError
from semantic.vocabulary import DC, RSS, TYPE, XSD

ROOT = Path(__file__).parents[3]
NEWS = ROOT / "ontologies" / "news.ttl"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """Run in a temporary folder."""
    with chdir(tmp_path):
        yield tmp_path


def run(*arguments: object, status: int = 0, stdin: bytes = b"") -> Any:
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    assert result.exit_code == status, (result.stdout, result.stderr)
    return result


def entry(number: int, **said: str) -> str:
    fields = {"title": f"Soup {number}", "link": f"https://e.org/{number}", **said}
    return f"<item>{''.join(f'<{k}>{v}</{k}>' for k, v in fields.items() if v)}</item>"


def feed(path: Path, *entries: str) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    site = "<title>Food</title><link>https://e.org/</link>"
    path.write_text(f'<rss version="2.0"><channel>{site}{"".join(entries)}</channel></rss>')
    return path


def titles(*arguments: object, status: int = 0) -> list[str]:
    """Return the titles of delivered items."""
    out = run("filter", *arguments, "--word", "soup", "--json", status=status).stdout
    return [json.loads(line)["title"] for line in out.splitlines()]


# --- The package ---------------------------------------------------------------------------------


def test_version() -> None:
    assert run("--version").stdout == f"graphmatch {graphmatch.__version__}\n"


def test_what_the_package_has_shows_before_it_is_imported() -> None:
    code = "import sys, graphmatch; print(*dir(graphmatch)); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, imported = done.stdout.splitlines()
    assert {*graphmatch.__all__, "__version__"} <= set(names.split())
    loaded = {name for name in imported.split() if name.startswith(("graphmatch.", "semantic."))}
    assert loaded == {"semantic.exports"}


# --- Warnings ------------------------------------------------------------------------------------


def test_warnings_are_grouped_by_kind() -> None:
    entries = [entry(n, pubDate=f"yesterday {n}") for n in range(5)]
    feed(Path("a.rss"), *entries)
    feed(Path("b.rss"), *entries, "<item><link>no link</link></item>")
    text = run("filter", "a.rss", "b.rss", "--word", "soup").stderr
    lines = text.splitlines()
    assert re.fullmatch(
        r"warning  10 times, first: a\.rss:1 .*'yesterday 0' cannot be .*", lines[0]
    )
    assert len([line for line in lines if line.startswith("warning")]) <= 3
    assert "--verbose lists each warning" in lines
    verbose = run("filter", "a.rss", "b.rss", "--word", "soup", "--verbose").stderr
    assert verbose.count("cannot be read") == 10
    quiet = run("filter", "a.rss", "b.rss", "none.rss", "--word", "soup", "-q", status=1).stderr
    assert re.fullmatch(r"refused  none\.rss: .*\n", quiet)


@pytest.mark.parametrize("command", ["check", "ontology", "explain"])
def test_warnings_of_other_commands_are_grouped_too(command: str) -> None:
    below = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    circle = "<urn:{0}> {1} <urn:b{0}> . <urn:b{0}> {1} <urn:{0}> .\n"
    Path("o.ttl").write_text("".join(circle.format(n, below) for n in range(5)))
    feed(Path("a.rss"), entry(1))
    options = {
        "check": ("--word", "soup", "-o", "o.ttl"),
        "ontology": ("o.ttl",),
        "explain": ("soup", "a.rss", "--word", "soup", "-o", "o.ttl"),
    }[command]
    lines = run(command, *options).stderr.splitlines()
    assert lines[0].startswith("warning  5 times, first: ontology: a cycle of classes: ")
    assert lines[1] == "--verbose lists each warning"
    assert run(command, *options, "--verbose").stderr.count("a cycle of classes") == 5
    assert run(command, *options, "--quiet").stderr == ""


def test_an_address_is_not_fetched() -> None:
    said = run("filter", "https://e.org/a?b=c&d", "--word", "soup", status=1).stderr
    assert "an address, not a file. Pipe it in: curl -sL 'https://e.org/a?b=c&d' |" in said


# --- Forms ---------------------------------------------------------------------------------------


def test_a_feed_item_in_json() -> None:
    date = "Mon, 02 Jan 2026 03:04:05 GMT"
    feed(Path("a.rss"), entry(1, pubDate=date, guid="tag:1"), entry(2))
    first, second = map(
        json.loads, run("filter", "a.rss", "--word", "soup", "--json").stdout.splitlines()
    )
    assert (first["title"], first["link"], first["date"], first["guid"]) == (
        "Soup 1",
        "https://e.org/1",
        "2026-01-02T03:04:05Z",
        "tag:1",
    )
    assert first["solutions"] == [{"item": {"type": "uri", "value": "tag:1"}}]
    assert (second["date"], second["guid"]) == (None, None)


def test_items_that_share_a_link_keep_their_titles() -> None:
    feed(Path("a.rss"), entry(1), entry(2, link="https://e.org/1"))
    assert titles("a.rss") == ["Soup 1", "Soup 2"]
    assert "Soup 2\n" in run("filter", "a.rss", "--word", "soup").stdout


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (NamedNode("urn:a"), {"type": "uri", "value": "urn:a"}),
        (BlankNode("b"), {"type": "bnode", "value": "b"}),
        (Literal("a"), {"type": "literal", "value": "a"}),
        (Literal("a", language="de"), {"type": "literal", "value": "a", "xml:lang": "de"}),
        (
            Literal("5", datatype=XSD["integer"]),
            {"type": "literal", "value": "5", "datatype": XSD["integer"].value},
        ),
        (
            TripleTerm(NamedNode("urn:a"), NamedNode("urn:b"), Literal("c")),
            {
                "type": "triple",
                "value": {
                    "subject": {"type": "uri", "value": "urn:a"},
                    "predicate": {"type": "uri", "value": "urn:b"},
                    "object": {"type": "literal", "value": "c"},
                },
            },
        ),
    ],
)
def test_terms_in_json(term: Any, expected: dict[str, Any]) -> None:
    assert term_as_json(term) == expected


NASTY = "soup =\u202e \x1b[31m\n,\"'"
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


def nasty(path: Path) -> Path:
    node = "<https://e.org/1>"
    triples = [f"{node} <{TYPE.value}> <{RSS['item'].value}> ."]
    triples += [f"{node} <{RSS['title'].value}> {Literal(f'=1+1 {NASTY}')} ."]
    path.write_text("\n".join(triples))
    return path


@pytest.mark.parametrize("form", ["text", "jsonl", "csv"])
@pytest.mark.parametrize("to_file", [False, True])
def test_no_form_has_control_characters(form: str, to_file: bool) -> None:
    Path("q.rq").write_text("SELECT ?t { ?i rss:title ?t }")
    options = ["--output", "out"] if to_file else []
    shown = run("filter", nasty(Path("a.nt")), "-s", "q.rq", "--as", form, *options).stdout
    text = Path("out").read_text() if to_file else shown
    assert "soup" in text
    assert not HIDDEN.search(text)


def test_csv() -> None:
    Path("q.rq").write_text("SELECT ?t { ?i rss:title ?t }")
    text = run("filter", nasty(Path("a.nt")), "-s", "q.rq", "--as", "csv").stdout
    head, row = csv.reader(text.splitlines())
    assert head == [
        *("subscription", "title", "link", "date", "publication", "guid", "source"),
        *("sources", "solutions", "because"),
    ]
    assert row[1].startswith("'=1+1 soup")
    assert row[7] == "a.nt"
    assert json.loads(row[8].replace("\\x", "x"))[0]["t"]["type"] == "literal"


def test_two_forms() -> None:
    said = run("filter", "a.rss", "--word", "x", "--json", "--as", "csv", status=2).stderr
    assert "--json and --as csv are given both" in said


# --- Near misses ---------------------------------------------------------------------------------


def test_near_misses_are_counted_by_condition() -> None:
    texts = [
        "Hot soup",
        "Cold soup",
        "Cold soup, live",
        "Hot tea",
        "Hot stew",
        "Hot ham",
        "Hot pie",
    ]
    feed(Path("a.rss"), *(entry(n, title=text) for n, text in enumerate(texts)))
    words = ("--word", "soup or broth", "--word", "hot", "--not-word", "live")
    shown = run("filter", "a.rss", *words, "--explain-misses").stdout
    assert shown.partition("near misses of ")[2].splitlines() == [
        "(soup or broth) and hot, not live",
        "  4 more matches without: the word “soup” or “broth”",
        "      Hot tea",
        "      Hot stew",
        "      Hot ham",
        "      … and 1 more",
        "  1 more match without: the word “hot”",
        "      Cold soup",
    ]
    assert shown.startswith("Hot soup\n")
    excluded = run("filter", "a.rss", "--word", "soup", "--not-word", "live", "--explain-misses")
    assert excluded.stdout.partition("near misses of ")[2].splitlines() == [
        "soup, not live",
        "  1 more match without: not the word “live”",
        "      Cold soup, live",
        "        but “live” is in rss:title",
    ]
    assert "near misses" not in run("filter", "a.rss", *words).stdout


def test_near_misses_of_queries_have_reasons() -> None:
    dates = ["2026-01-01", "2026-01-20"]
    feed(Path("a.rss"), *(entry(n, **{"dc:date": date}) for n, date in enumerate(dates)))
    text = Path("a.rss").read_text()
    Path("a.rss").write_text(text.replace("<rss ", f'<rss xmlns:dc="{DC.iri}" '))
    Path("q.rq").write_text(
        'SELECT * { ?i a rss:item ; dc:date ?d FILTER(?d > "2026-01-10T00:00:00Z"^^xsd:dateTime)'
        " MINUS { ?i rss:title ?t FILTER(?t = 'Soup 1') } }"
    )
    shown = run("filter", "a.rss", "-s", "q.rq", "--explain-misses").stdout
    assert re.sub(r"FILTER.*|MINUS.*", "…", shown).splitlines() == [
        "near misses of q",
        "  1 more match without: …",
        "      Soup 0",
        "  1 more match without: …",
        "      Soup 1",
    ]


def test_no_near_misses() -> None:
    """The only condition is kept, and older items are left out."""
    feed(Path("a.rss"), entry(1), entry(2, title="Tea", pubDate="Thu, 01 Jan 2015 00:00:00 GMT"))
    shown = run("filter", "a.rss", "--word", "soup", "--explain-misses").stdout
    assert shown.endswith("no near misses\n")
    words = ("--word", "soup", "--word", "tea", "--explain-misses", "--since")
    assert "Tea" in run("filter", "a.rss", *words, "2010-01-01").stdout
    assert "Tea" not in run("filter", "a.rss", *words, "2020-01-01").stdout
    said = run("filter", "a.rss", *words[:-1], "--json", status=2).stderr
    assert "--explain-misses: near misses are written as text only" in said


def test_near_misses_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    publications = [Publication.of("https://e.org/1", [])] * 2
    engine = Engine()
    engine.subscribe_many((str(n), f"ASK {{ ?i a rss:item ; <urn:{n}> 1, 2 }}") for n in range(102))
    late = NearMisses(engine, "en", seconds=-1)
    for publication in publications:
        late.add(engine.match(publication))
    assert [line.plain for line in late.lines()] == [
        "no near misses",
        "not examined for lack of time: 2 publications",
        "not examined: 2 subscriptions, the last",
    ]


# --- --output ------------------------------------------------------------------------------------


def test_the_file_is_replaced_when_all_is_done() -> None:
    feed(Path("a.rss"), entry(1))
    Path("out.jsonl").write_text("before")
    Path("out.jsonl").chmod(0o640)
    assert titles("a.rss", "--output", "out.jsonl") == []
    assert json.loads(Path("out.jsonl").read_text())["title"] == "Soup 1"
    assert Path("out.jsonl").stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir()) == ["a.rss", "out.jsonl"]  # noqa: PTH208


def test_a_file_that_cannot_be_written() -> None:
    feed(Path("a.rss"), entry(1))
    options = ("--word", "soup", "--seen", "seen.db")
    said = run("filter", "a.rss", *options, "--output", "none/out", status=2).stderr
    assert said.startswith("error    none/out: cannot be written: No such file or directory.")
    assert titles("a.rss", "--seen", "seen.db") == ["Soup 1"]  # The failed run delivered nothing.


# --- --since -------------------------------------------------------------------------------------


def dated(text: str) -> Publication:
    item = NamedNode("https://e.org/1")
    return Publication.of("p", [(item, TYPE, RSS["item"]), (item, DC["date"], Literal(text))])


@pytest.mark.parametrize(
    ("date", "older"),
    [
        ("2026-01-02T03:04:04Z", True),
        ("2026-01-02T03:04:05Z", False),
        ("2026-01-02T03:04:05+01:00", True),
        ("2026-01-02T03:04:05", False),
        ("2026-01-01", True),
        ("2026-01-02", False),
        ("recently", False),
        ("", False),
    ],
)
def test_older(date: str, older: bool) -> None:
    assert is_older(dated(date), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == older


def test_since() -> None:
    old = entry(1, pubDate="Mon, 02 Jan 2006 03:04:05 GMT")
    feed(Path("a.rss"), old, entry(2), entry(3, pubDate="Mon, 05 Jan 2026 00:00:00 GMT"))
    now = ("--now", "2026-01-10")
    assert titles("a.rss", "--since", "7d", *now) == ["Soup 2", "Soup 3"]
    assert titles("a.rss", "--since", "24h", *now) == ["Soup 2"]
    assert titles("a.rss", "--since", "2000-01-01") == ["Soup 1", "Soup 2", "Soup 3"]
    said = run("filter", "a.rss", "--word", "soup", "--since", "24h", *now).stderr
    assert "1 match in 1 publication, 2 older publications left out, 0 refused" in said
    assert "such as 7d" in run("filter", "a.rss", "--since", "soon", status=2).output


# --- Topics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--topic", "--word", "--not-topic", "--not-word"])
@pytest.mark.parametrize("text", ["", " ", "A or", "or A", "A or or B"])
def test_an_empty_topic_or_word_names_its_option(option: str, text: str) -> None:
    feed(Path("a.rss"), entry(1))
    said = run("filter", "a.rss", "--word", "soup", option, text, status=2).stderr
    assert f"{option}: a text is missing in {text!r}. `or` needs" in said


def test_entailment_none_finds_no_narrower_topics() -> None:
    feed(Path("a.rss"), entry(1))
    Path("t.csv").write_text("topic,label\nFood,food\n")
    options = ("filter", "a.rss", "-o", "t.csv", "--topic", "food")
    note = "with --entailment none, narrower topics are not found; use rdfs"
    assert note in run(*options, "--entailment", "none").stderr
    assert note not in run(*options).stderr


# --- Stories -------------------------------------------------------------------------------------


def test_copies_of_an_item_are_one_alert_that_names_its_sources() -> None:
    """Three addresses of one feed, with and without `--seen`: one alert of each item."""
    for name in "abc":
        feed(Path(f"f/{name}.rss"), entry(1, guid="1"), entry(2))
    feed(Path("f/d.rss"), entry(1, guid="x", link="http://www.e.org/1/?utm_source=rss#b"))
    for options in ((), SEEN):
        lines = run("filter", "f", "--word", "soup", "--json", *options).stdout.splitlines()
        rows = [json.loads(line) for line in lines]
        assert [row["title"] for row in rows] == ["Soup 1", "Soup 2"]
        assert rows[0]["sources"] == [f"f/{name}.rss" for name in "abcd"]
        assert rows[1]["sources"] == [f"f/{name}.rss" for name in "abc"]
    assert titles("f", *SEEN) == []
    shown = run("filter", "f", "--word", "soup").stdout.splitlines()
    assert shown[2] == "  in f/a.rss, f/b.rss, f/c.rss, f/d.rss"
    assert shown.count("  in f/a.rss, f/b.rss, f/c.rss") == 1


def test_a_copy_that_more_subscriptions_match_is_part_of_the_alert() -> None:
    """Items of one page with other titles are other stories."""
    feed(Path("f/a.rss"), entry(1), entry(2, link="https://e.org/1"))
    feed(Path("f/b.rss"), entry(1, description="with bread"))
    Path("s.toml").write_text(
        "[[subscription]]\nid = 'soup'\nwords = ['soup']\n"
        "[[subscription]]\nid = 'bread'\nwords = ['bread']\n"
    )
    shown = run("filter", "f", "-s", "s.toml").stdout.splitlines()
    assert [line for line in shown if "▸" in line or line.startswith("Soup")] == [
        "Soup 1",
        "  ▸ soup",
        "  ▸ bread",
        "Soup 2",
        "  ▸ soup",
    ]


def test_alerts_are_bounded_and_come_in_the_order_of_the_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """RDF is written at once, after the items before it."""
    monkeypatch.setattr(filter_command, "MAX_STORIES", 3)
    for name in "ab":
        feed(Path(f"f/{name}.rss"), *(entry(n) for n in range(5)))
    assert len(titles("f")) > 5  # The first stories are forgotten.
    monkeypatch.undo()
    Path("f/aa.ttl").write_text("<urn:a> <http://purl.org/rss/1.0/title> 'soup' .")
    Path("s.rq").write_text("SELECT * { ?item rss:title ?title }")
    rows = run("filter", "f", "-s", "s.rq", "--json").stdout.splitlines()
    assert [json.loads(row)["title"] for row in rows] == [*(f"Soup {n}" for n in range(5)), "soup"]


# --- --seen --------------------------------------------------------------------------------------

SEEN = ("--seen", "seen.db")


def test_nothing_is_delivered_twice() -> None:
    feed(Path("f/a.rss"), entry(1), entry(2))
    assert titles("f", *SEEN) == ["Soup 1", "Soup 2"]
    result = run("filter", "f", "--word", "soup", *SEEN, "--quiet")
    assert (result.stdout, result.stderr) == ("", "")
    assert run("filter", "f", "--word", "soup", *SEEN, "--as", "csv").stdout == ""
    feed(Path("f/a.rss"), entry(3), entry(1), entry(2))
    assert titles("f", *SEEN) == ["Soup 3"]
    feed(Path("f/b.rss"), entry(3, description="elsewhere"), entry(4))
    assert titles("f", *SEEN) == ["Soup 4"]
    assert titles("f", *SEEN, "--topic", "x", "--any") != []  # This is another subscription.


@pytest.mark.parametrize("numbers", [(3, 2, 1), (2, 3, 1), (2, 1, 3)])
@pytest.mark.parametrize("guid", ["", "https://e.org/{}", "post {}"])
def test_items_in_another_order_are_the_same_matches(numbers: tuple[int, ...], guid: str) -> None:
    feed(Path("a.rss"), *(entry(n, guid=guid.format(n)) for n in (1, 2, 3)))
    before = titles("a.rss")
    assert titles("a.rss", *SEEN) == before == ["Soup 1", "Soup 2", "Soup 3"]
    feed(Path("a.rss"), *(entry(n, guid=guid.format(n)) for n in numbers))
    assert sorted(titles("a.rss")) == before
    assert titles("a.rss", *SEEN) == []


def test_a_changed_address_of_a_known_guid() -> None:
    feed(Path("a.rss"), entry(1, guid="1"), entry(2, guid="same"), entry(3, guid="same"))
    assert titles("a.rss", *SEEN) == ["Soup 1", "Soup 2", "Soup 3"]
    moved = entry(1, guid="1", link="https://e.org/1?from=rss")
    feed(Path("a.rss"), moved, entry(4, guid="same"), entry(2, guid="same"))
    assert titles("a.rss", *SEEN) == ["Soup 4"]


def test_items_that_share_a_guid_and_say_little_else() -> None:
    said = [entry(n, guid="post", title="", description=f"Soup, no. {n}") for n in (1, 2, 3)]
    feed(Path("a.rss"), *said)
    run("filter", "a.rss", "--word", "soup", *SEEN, "--output", "o.jsonl", "--json")
    assert len(Path("o.jsonl").read_text().splitlines()) == 3


def test_items_without_a_guid_that_share_a_link() -> None:
    shared = [entry(n, link="https://e.org/live") for n in range(5)]
    feed(Path("a.rss"), shared[1], shared[0])
    assert titles("a.rss", *SEEN) == ["Soup 1", "Soup 0"]
    feed(Path("a.rss"), shared[3], shared[2])  # All other items have left the feed.
    assert titles("a.rss", *SEEN) == ["Soup 3", "Soup 2"]
    feed(Path("a.rss"), shared[4], shared[3])
    assert titles("a.rss", *SEEN) == ["Soup 4"]
    feed(Path("a.rss"), shared[4])
    assert titles("a.rss", *SEEN) == []


def test_a_document_is_known_by_its_triples() -> None:
    def write(title: str) -> None:
        item = f"<urn:a> a <{RSS['item'].value}> ; <urn:by> [ <urn:name> 'x' ] ;"
        Path("a.ttl").write_text(f"{item} <{RSS['title'].value}> '{title}' .")

    write("Soup")
    assert titles("a.ttl", *SEEN) == ["Soup"]
    assert titles("a.ttl", *SEEN) == []
    write("Soup again")
    assert titles("a.ttl", *SEEN) == ["Soup again"]


def new(day: datetime, name: str = "a", wait: float = 1.0) -> bool:
    """Return whether a match is new on a day, and record it."""
    with open_seen(Path("seen.db"), lambda: day, wait) as seen:
        found = seen.is_new("s", [name])
        seen.add(Alert(Publication.of(name, []), {name}, [Match("s", name, ({},))]))
    return found


def test_items_that_left_the_sources_are_forgotten() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    kept = timedelta(days=KEPT_DAYS)
    assert new(begin)
    assert new(begin, "b")
    assert not new(begin + kept)
    new(begin + kept + timedelta(days=1), "c")
    with sqlite3.connect("seen.db") as file:
        assert file.execute("SELECT count(*) FROM delivered").fetchone() == (2,)
    file.close()
    assert not new(begin + 2 * kept)
    assert new(begin + 2 * kept, "b")


def test_uncommitted_items_are_delivered_again() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for _ in range(2):
        run_once = open_seen(Path("seen.db"), lambda: now)
        seen = run_once.__enter__()
        assert seen.is_new("s", ["a"])
        seen.add(Alert(Publication.of("a", []), {"a"}, [Match("s", "a", ({},))]))
        assert not seen.is_new("s", ["a"])
        assert not run_once.__exit__(KeyError, KeyError(), None)


def test_two_runs_at_once() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with (
        open_seen(Path("seen.db"), lambda: now),
        pytest.raises(SqliteFileError, match="another process uses the file"),
    ):
        new(now, wait=0.01)


def test_two_processes_deliver_once_together() -> None:
    feed(Path("a.rss"), *(entry(n) for n in range(20)))
    command = [
        sys.executable,
        "-m",
        "graphmatch.cli",
        "filter",
        "a.rss",
        "--word",
        "soup",
        "--json",
        *SEEN,
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    outs = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    lines = b"".join(outs).splitlines()
    assert len(lines) == len({json.loads(line)["title"] for line in lines}) == 20


@pytest.mark.parametrize("kind", ["text", "database", "folder"])
def test_invalid_files_of_seen_items_are_refused(kind: str) -> None:
    feed(Path("a.rss"), entry(1))
    path = Path("seen.db")
    if kind == "text":
        path.write_text("some text, " * 1000)
    elif kind == "folder":
        path.mkdir()
    else:
        with sqlite3.connect(path) as file:
            file.execute("CREATE TABLE mine (a)")
        file.close()
    said = run("filter", "a.rss", "--word", "soup", *SEEN, status=2)
    assert said.stdout == ""
    expected = {"database": "seen.db: a database of another program, or of another version"}
    other = "seen.db: cannot be used as a database: "
    assert said.stderr.startswith(f"error    {expected.get(kind, other)}")


# --- graphmatch.toml -----------------------------------------------------------------------------

CONFIG = """\
publications = ["feeds"]
seen = "seen.db"
since = 2020-01-01
as = "jsonl"
annotate = true

[[subscription]]
id = "soup"
words = ["soup"]
"""


def test_a_configuration() -> None:
    Path("mine").mkdir()
    feed(Path("mine/feeds/a.rss"), entry(1))
    Path("mine/graphmatch.toml").write_text(CONFIG)
    text = run("filter", "--config", "mine/graphmatch.toml").stdout
    assert json.loads(text)["source"].startswith("mine/feeds/a.rss:")
    assert Path("mine/seen.db").exists()
    with chdir("mine"):
        assert run("filter").stdout == ""
        assert run("filter", "--seen", "other.db", "--as", "text").stdout.startswith("Soup 1\n")
        assert run("filter", "--word", "bread", "--quiet").stdout == ""
        shown = run("explain", "soup").stdout
        assert shown.startswith("https://e.org/1 matches soup\n")
    assert run("explain", "soup", "--config", "mine/graphmatch.toml").stdout == shown
    run("index", "-s", "mine/graphmatch.toml", "--output", "saved.gm")
    assert run("explain", "soup", "mine/feeds", "--engine", "saved.gm").stdout == shown
    assert "no subscription to match" in run("explain", "soup", "mine/feeds", status=2).stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("publications = [", ": not TOML: Invalid value"),
        ("seen : 1", ":1:6: not TOML: "),
        ("zzz = 1\nseen = 'x'", ":1: there is no key `zzz`. There are "),
        ("\npublication = ['x']", ":2: there is no key `publication`. Is `publications` meant?"),
        ("[[subscriptions]]\nid = 'a'", ":1: there is no table [[subscriptions]]. Write [[subsc"),
        (
            "[subscription]\nid = 'a'",
            ":1: there is no table [subscription]. Write [[subscription]].",
        ),
        (
            "[[subscription]]\nid = 'a'\n[[subscription]]\nid = 'b'\npublications = ['x']",
            ":5: there is no key `publications` in [[subscription]]. It belongs above",
        ),
        (
            "[watch]\npublications = ['x']",
            ":2: there is no key `publications` in [watch]. It belongs above the first table.",
        ),
        ("words = ['x']", ":1: there is no key `words`. It belongs below [[subscription]]."),
        ("word = ['x']", ":1: there is no key `word`. Is `words` meant? It belongs below [[subsc"),
        ("[serve]\nprot = 1", ":2: there is no key `prot` in [serve]. Is `port` meant?"),
        ("[serve]\nsolutions = 1", ":2: there is no key `solutions` in [serve]. It belongs below"),
        ("[limits]\nsolution = 1", ":2: there is no key `solution` in [limits]. Is `solutions` m"),
        ("quiet = 1", ":1: `quiet` is not true or false. Write quiet = true."),
        ("seen = true", ":1: `seen` is not a string."),
        ("seen = ['a']", ":1: `seen` is not a string."),
        ("events = 5", ":1: `events` is not a list of strings."),
        ('output = "a\\u0000b"', ":1: `output` has a NUL character. Leave it out."),
        (f"word = {'9' * 5000}", ": not TOML: Exceeds the limit"),
        (f"{'a.' * 5000}a = 1", ":1:1: not TOML: a key of more than 100 parts"),
        (
            "since = 'soon'",
            ":1: `since`: 'soon' is not a time such as 2026-01-02T03:04:05Z, a date, or",
        ),
        ("split-by = 'half'", ":1: `split-by`: 'half' is not one of "),
        ("seen = '~nobody-here/a'", ":1: `seen`: Could not determine home directory. "),
    ],
)
def test_what_a_configuration_cannot_say(text: str, said: str) -> None:
    Path("graphmatch.toml").write_text(text)
    assert run("filter", status=2).stderr.startswith(f"error    graphmatch.toml{said}")


def test_names_of_files_may_begin_with_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path("home").absolute()))
    feed(Path("home/a.rss"), entry(1))
    Path("graphmatch.toml").write_text("publications = ['~/a.rss']")
    assert run("filter", "--word", "soup", "--config", "graphmatch.toml").stdout[:7] == "Soup 1\n"


def test_a_disabled_garbage_collector_stays_disabled() -> None:
    feed(Path("a.rss"), entry(1))
    gc.disable()
    try:
        run("filter", "a.rss", "--word", "soup")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_keys_of_other_commands_are_skipped() -> None:
    feed(Path("a.rss"), entry(1))
    Path("graphmatch.toml").write_text(
        "publications = ['a.rss']\nfeeds = ['https://e.org/']\nallow = ['10.0.0.0/8']\n"
        "as = 'csv'\nport = 1\nstate = 'x'\n[serve]\nsmtp = 'x'\nquiet = true\n"
        "[filter]\nas = 'text'\n[limits]\nsolutions = 5\n[[subscription]]\nid = 'a'\n"
        "words = 'soup'\n"
    )
    result = run("filter")
    assert result.stdout.startswith("Soup 1\n")
    assert "1 match" in result.stderr


def test_each_commented_line_of_init_is_valid_in_each_command() -> None:
    feed(Path("feeds/a.rss"), entry(1, title="The election"), entry(2, title="Live: the election"))
    Path("topics.ttl").write_text("<urn:a> <urn:b> <urn:c> .")
    run("init")
    text = Path("graphmatch.toml").read_text()
    group: Any = typer.main.get_command(app)
    parent = typer.Context(group)
    lines = re.findall(r"(?m)^# [a-z-]+ = .+$", text)
    assert len(lines) > 5
    for line in ("", *lines):
        Path("graphmatch.toml").write_text(text.replace(line, line.removeprefix("# ")))
        run("explain", "election")
        assert line.startswith("# topics") or run("filter").stdout.startswith("The election\n")
        for name in COMMANDS:
            command = group.get_command(None, name)
            context = typer.Context(command, parent, info_name=name)
            read_config(Path("graphmatch.toml"), command, context)


@pytest.mark.parametrize("name", ["graphmatch.toml", "a b/c.toml", "-x.toml"])
def test_init_names_a_command_that_reads_the_file(name: str) -> None:
    feed(Path(name).parent / "feeds/a.rss", entry(1, title="The election"))
    result = run("init", "--", name)
    assert result.stdout == ""
    (command,) = re.findall("(?m)^ +graphmatch (filter.*)$", result.stderr)
    assert run(*shlex.split(command)).stdout.startswith("The election\n")
    said = run("init", "--", name, status=2).stderr
    assert said == f"error    {name}: the file exists. Name another file.\n"


def test_a_configuration_with_subscriptions_is_toml() -> None:
    assert "x.txt: the name does not end in .toml." in run("init", "x.txt", status=2).stderr
    Path("x.txt").write_text(CONFIG)
    assert "the name does not end in .toml" in run("filter", "--config", "x.txt", status=2).stderr


def test_an_item_is_explained_by_its_link() -> None:
    feed(Path("a.rss"), entry(1, guid="x"), entry(2))
    shown = run("explain", "soup", "a.rss", "--word", "soup", "-p", "https://e.org/1").stdout
    assert len(re.findall("matches soup", shown)) == 1
    said = run(
        "explain", "soup", "a.rss", "--word", "soup", "-p", "https://e.org/", status=2
    ).stderr
    assert "no publication has the id or link https://e.org/" in said


def test_a_prefix_of_a_query_replaces_the_built_in_one() -> None:
    """`op:` needs no declaration, and has no effect on a query with its own."""
    Path("a.nt").write_text('<urn:a> <urn:mine:about> "soup" .')
    Path("mine.rq").write_text("PREFIX op: <urn:mine:> SELECT * { ?x op:about 'soup' }")
    Path("other.rq").write_text("SELECT * { ?x op:about 'soup' }")
    shown = run("filter", "a.nt", "-s", "mine.rq", "-s", "other.rq").stdout
    assert "▸ mine" in shown
    assert "▸ other" not in shown


def test_a_configuration_that_is_not_there() -> None:
    said = run("filter", "--config", "none.toml", status=2).stderr
    assert said.startswith("error    none.toml: cannot be read: No such file or directory.")


# --- graphmatch index ----------------------------------------------------------------------------


def test_an_engine_that_was_saved() -> None:
    Path("topics.jsonl").write_text('{"id": "energy", "topics": ["Energy"], "comment": "Power."}')
    feeds = ROOT / "data" / "feeds"
    said = run("index", "-o", NEWS, "-s", "topics.jsonl", "--output", "engine.gm").stderr
    assert re.fullmatch(r"1 subscription in engine\.gm, \d+\.\d MB, 0 refused\n", said)
    saved = run("filter", feeds, "--engine", "engine.gm", "--word", "soups").stdout
    direct = run("filter", feeds, "-o", NEWS, "-s", "topics.jsonl", "--word", "soups").stdout
    assert saved == direct
    assert "▸ energy  Power.\n" in saved
    assert "▸ soups\n" in saved


@pytest.mark.parametrize("options", [["-o", str(NEWS)], ["--entailment", "none"], ["--casefold"]])
def test_an_engine_that_was_saved_has_its_ontology(options: list[str]) -> None:
    run("index", "--word", "soup", "--output", "engine.gm")
    said = run("filter", "a.rss", "--engine", "engine.gm", *options, status=2).stderr
    assert "engine.gm: a saved engine has its ontology and its options already." in said


def test_invalid_files_of_engines_are_refused() -> None:
    Path("engine.gm").write_text("no engine")
    assert "engine.gm: " in run("filter", "a.rss", "--engine", "engine.gm", status=2).stderr
    assert (
        "engine.gm: the file exists"
        in run("index", "--word", "soup", "--output", "engine.gm", status=2).stderr
    )

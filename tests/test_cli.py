"""The command on the samples: its output for people and machines, and its exit status."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from graphmatch.cli import app
from semantic.reading import read_publications

ROOT = Path(__file__).parents[1]
NEWS = ("-o", "ontologies/news.ttl")
FILTER = ("filter", "data/feeds", *NEWS, "-s", "data/subscriptions")
EXPLAIN = ("explain", "feeds-environment", "data/feeds/science.atom", *NEWS)
COMMANDS: dict[str, tuple[str, ...]] = {
    "filter": FILTER,
    "check": ("check", "data/subscriptions", *NEWS),
    "ontology": ("ontology", "ontologies/news.ttl", "ontologies/synonyms.csv"),
    "explain": (*EXPLAIN, "-s", "data/subscriptions"),
    "bench": ("bench", "paper", "LIST"),
    "demo": ("demo",),
}
TITLE = "http://purl.org/rss/1.0/title"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def run(*arguments: object, status: int = 0, stdin: bytes = b"", **environment: str) -> Any:
    """Run the command in the clone's folder."""
    with chdir(ROOT):
        result = CliRunner(env=environment).invoke(app, [str(a) for a in arguments], input=stdin)
    assert result.exit_code == status, result.stderr
    return result


def process(
    *arguments: object, stdout: int = subprocess.PIPE, **environment: str
) -> subprocess.Popen[bytes]:
    """Start the command as a separate process that tests can interrupt."""
    return subprocess.Popen(
        [sys.executable, "-m", "graphmatch.cli", *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": ""} | environment,
        preexec_fn=_interruptible,
    )


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def wanted(tmp_path: Path) -> Path:
    path = tmp_path / "wanted.rq"
    path.write_text(f"SELECT * {{ ?item <{TITLE}> ?title }}")
    return path


# --- Help ----------------------------------------------------------------------------------------


def test_that_every_command_is_tried() -> None:
    group: Any = typer.main.get_command(app)
    # These have tests in tests/graphmatch: command, broker and spark.
    others = {"index", "init", "serve", "spark", "watch"}
    assert set(group.list_commands(None)) == {*COMMANDS, *others}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_that_runs(name: str) -> None:
    text = " ".join(run(name, "--help", COLUMNS="200").stdout.split())
    found = re.search(rf"Example: (graphmatch {name}.*?) [╭│]", text)
    assert found is not None
    assert run(*shlex.split(found[1])[1:]).stdout


def test_that_help_imports_nothing_heavy() -> None:
    code = "import sys, graphmatch.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert not imported & {"numba", "rdflib"}
    assert {name for name in imported if name.startswith("semantic.")} <= {"semantic.exports"}


def test_without_a_command_there_is_help() -> None:
    assert "Usage:" in run(status=2).output


# --- Output for people ---------------------------------------------------------------------------


def test_filter() -> None:
    result = run(*FILTER)
    title = "Solar power overtakes coal in the Valmora grid"
    assert f"{title}\n  https://daily.example/2025/11/valmora-solar\n  ▸ feeds-" in result.stdout
    assert (
        "  ▸ feeds-environment  Everything about the environment, in whatever language it is "
        f'written.\n      ?title = "{title}"\n'
        "      because news:SolarPower ⊑ news:RenewableEnergy ⊑ news:Environment\n"
        "      because “Solar power” in rss:title names news:SolarPower\n"
    ) in result.stdout
    assert (
        '      ?topic = news:ClimateChange  ?name = "Changement climatique"@fr\n' in result.stdout
    )
    assert "      because “COP30” in rss:title names news:ClimateSummit\n" in result.stdout
    counts = re.fullmatch(
        r"(\d+) publications, (\d+) subscriptions: (\d+) matches in (\d+) publications, "
        r"0 refused, \d+\.\d\d s\n",
        result.stderr,
    )
    assert counts is not None
    matches = len(re.findall(r"^  ▸ ", result.stdout, re.MULTILINE))
    blocks = result.stdout.strip().split("\n\n")
    subscriptions = len(list((ROOT / "data/subscriptions").glob("*.rq")))
    assert [int(count) for count in counts.groups()] == [26, subscriptions, matches, len(blocks)]


def test_check() -> None:
    result = run(*COMMANDS["check"])
    assert (
        "    indexed: ?item dcterms:subject news:Environment . ?item rss:title ?title\n"
        "    the index decides; nothing is left to evaluate\n"
    ) in result.stdout
    count = len(list((ROOT / "data/subscriptions").glob("*.rq")))
    assert result.stdout.count("✓ ") == count
    assert result.stderr.startswith(f"{count} accepted, 0 refused, 0 warnings\n")


def test_check_warns(tmp_path: Path) -> None:
    path = tmp_path / "typo.rq"
    path.write_text("ASK { ?item rss:titel 'x' }")
    result = run("check", path)
    what, remedy = "rss:titel: http://purl.org/rss/1.0/ has no such term", "Did you mean rss:title?"
    assert f"    warning  unknown-term: {what}. {remedy}\n" in result.stdout
    assert result.stderr.startswith("1 accepted, 0 refused, 1 warning\n")
    (row,) = rows(run("check", path, "--strict", "--json", status=1).stdout)
    assert row["warnings"] == [{"code": "unknown-term", "what": what, "remedy": remedy}]


def test_ontology_trees_and_counts() -> None:
    lines = run(*COMMANDS["ontology"], "--depth", "2").stdout.splitlines()
    start = lines.index("├── news:Energy  Energy")
    assert lines[0] == "concepts"
    assert lines[start + 5 : start + 7] == [
        "│   └── news:RenewableEnergy  Renewable energy",
        "│       └── … 3 below",
    ]
    assert "      79  concepts" in lines
    assert "       0  problems" in lines
    assert any(line.startswith("          labels by language: en 189, de 149, ") for line in lines)


def test_ontology_limits_the_classes_of_a_level(tmp_path: Path) -> None:
    below = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    path = tmp_path / "o.ttl"
    path.write_text("".join(f"<urn:c{n:02}> {below} <urn:top> .\n" for n in range(50)))
    lines = run("ontology", path).stdout.splitlines()
    assert lines[:3] == ["classes", "└── <urn:top>", "    ├── <urn:c00>"]
    assert lines[41:43] == ["    ├── <urn:c39>", "    └── … and 10 more"]


def test_ontology_cycles_conflicts_and_synonyms(tmp_path: Path) -> None:
    below = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    (tmp_path / "o.ttl").write_text(
        f"<urn:a> {below} <urn:b> . <urn:b> {below} <urn:a> , <urn:top> ."
    )
    (tmp_path / "s.csv").write_text("term,root\nurn:x,urn:a\nUS,America\nUS,States\n")
    result = run("ontology", tmp_path / "o.ttl", tmp_path / "s.csv", status=1)
    assert "warning  ontology: a cycle of classes: " in result.stderr
    assert f"refused  {tmp_path}/s.csv:4: US has two roots: America (" in result.stderr
    assert "       2  problems\n" in result.stdout
    (row,) = rows(run("ontology", tmp_path / "o.ttl", "--json").stdout)
    assert len(row["problems"]) == 1
    shown = re.search(r"^    └── <urn:(\w)>  = (.*)$", result.stdout, re.MULTILINE)
    assert shown is not None
    names = {"a", "b", "x"} - {shown[1]}
    assert set(shown[2].split(", ")) == {f"<urn:{name}>" for name in names}


def test_explanation_of_a_match_and_of_none() -> None:
    text = run(*COMMANDS["explain"]).stdout
    assert (
        "https://notebook.example/almen matches feeds-environment\n"
        "  ✓ ?item dcterms:subject news:Environment\n"
    ) in text
    assert "        because “Klimawandel” in rss:title names news:ClimateChange\n" in text
    assert (
        "https://notebook.example/raumsonde does not match feeds-environment\n"
        "  ✗ no triple matches ?item dcterms:subject news:Environment\n"
        "      nearest triple: <https://notebook.example/raumsonde> dcterms:subject news:Space"
    ) in text
    assert (
        "but news:SpaceProbes is not below news:Environment: they have no common ancestor\n" in text
    )


def test_demo() -> None:
    result = run("demo")
    count = sum(
        1 for each in ("feeds", "publications") for _ in read_publications(ROOT / "data" / each)
    )
    assert re.search(
        rf"^… \d+ matches: {count} publications, \d+ subscriptions\. ", result.stdout, re.M
    )
    assert len(result.stdout.splitlines()) <= 40
    assert "\n  https://daily.example/" in result.stdout[:200]
    suggested = re.findall(r"^  \S+ ((?:filter|explain|check|ont).*)$", result.stdout, re.MULTILINE)
    assert len(suggested) == 5
    for line in suggested:
        assert run(*shlex.split(line)).stdout


def test_demo_elsewhere(tmp_path: Path) -> None:
    result = run("demo", tmp_path, status=2)
    assert result.stderr == (
        f"error    {tmp_path}: there are no samples: no `ontologies` folder. Run it in a clone of "
        "the project, or name the clone's folder.\n"
    )


def test_entailment_and_annotation_can_be_left_out() -> None:
    count = [
        run(*FILTER, *options).stdout.count("▸ ")
        for options in ((), ("--no-annotate",), ("--entailment", "none"))
    ]
    assert count[0] > count[1] > 0
    assert count[0] > count[2] > 0


def test_plurals_can_be_left_out_and_labels_are_in_the_readers_language(tmp_path: Path) -> None:
    ontology, subscription = tmp_path / "food.ttl", tmp_path / "food.rq"
    ontology.write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix v: <urn:v:> .\n"
        'v:17 a skos:Concept ; skos:prefLabel "soup"@en, "Suppe"@de .'
    )
    subscription.write_text("SELECT ?item { ?item dcterms:subject <urn:v:17> }")
    options = ("filter", "data/feeds/daily.rss", "-o", ontology, "-s", subscription)
    found = run(*options, LC_ALL="de_DE.UTF-8").stdout
    assert "because “soups” in rss:title names Suppe (v:17), as a form of “soup”\n" in found
    assert "names soup (v:17)" in run(*options).stdout
    assert run(*options, "--no-stem").stdout == ""
    explained = ("explain", "food", *options[1:], "-p", "https://daily.example/2025/11/soups")
    assert "as a form of “soup”" in run(*explained).stdout
    assert "✗" in run(*explained, "--no-stem").stdout
    saved = tmp_path / "saved.gm"
    run("index", *options[2:], "--no-stem", "--output", saved)
    assert run("filter", options[1], "--engine", saved).stdout == ""


def test_standard_input() -> None:
    feed = (ROOT / "data/feeds/daily.rss").read_bytes()
    piped = run("filter", "-", *FILTER[2:], stdin=feed)
    named = run("filter", "data/feeds/daily.rss", *FILTER[2:])
    assert piped.stdout == named.stdout
    assert piped.stdout


# --- Output for machines -------------------------------------------------------------------------


def test_filter_as_json() -> None:
    found = rows(run(*FILTER, "--json").stdout)
    text = run(*FILTER).stdout
    assert len(found) == text.count("▸ ")
    assert {tuple(row) for row in found} == {
        (
            *("publication", "title", "link", "date", "guid", "source", "sources"),
            *("subscription", "solutions", "graph", "because"),
        )
    }
    row = next(r for r in found if r["subscription"] == "feeds-climate-french-name")
    assert row["solutions"] == [
        {
            "item": {"type": "uri", "value": "https://daily.example/2025/11/sea-walls"},
            "topic": {"type": "uri", "value": "https://graphmatch.example/news#ClimateChange"},
            "name": {"type": "literal", "value": "Changement climatique", "xml:lang": "fr"},
        }
    ]
    assert row["source"].startswith("data/feeds/daily.rss:15 (https://daily.example/")
    assert row["because"] == ["“global warming” in rss:description names news:ClimateChange"]
    constructed = [r["graph"] for r in found if r["graph"] is not None]
    assert constructed
    assert all(line.endswith(" .") for graph in constructed for line in graph)


def test_check_as_json() -> None:
    result = run(*COMMANDS["check"], "--json")
    found = rows(result.stdout)
    assert len(found) == int(result.stderr.split()[0])
    keys = ("id", "query", "form", "indexed", "unindexed", "evaluated", "calls", "warnings")
    assert {tuple(row) for row in found} == {keys}
    assert {row["form"] for row in found} == {"SELECT", "ASK", "CONSTRUCT", "DESCRIBE"}


def test_ontology_as_json() -> None:
    (row,) = rows(run(*COMMANDS["ontology"], "--json").stdout)
    assert row["concepts"] == 79
    assert row["labels by language"]["de"] == 149
    assert row["problems"] == []


def test_explanation_as_json() -> None:
    found = rows(run(*COMMANDS["explain"], "--json").stdout)
    keys = ("subscription", "publication", "matches", "plan")
    others = ("evidence", "calls", "failure", "held", "nearest")
    assert {tuple(row) for row in found} == {(*keys, *others)}
    match = next(row for row in found if row["matches"])
    other = next(row for row in found if not row["matches"])
    parts = ("pattern", "triple", "value", "because")
    assert [tuple(e) for e in match["evidence"]] == [parts] * 2
    assert [tuple(near) for near in other["nearest"]] == [("triple", "because", "but")] * 2
    assert (match["failure"], other["evidence"]) == (None, [])
    assert other["failure"] == "no triple matches ?item dcterms:subject news:Environment"


def test_json_is_whole_whatever_is_in_it(tmp_path: Path, wanted: Path) -> None:
    title = "x" * 100_000 + '\\n\\"[bold] :cat: \\u001B \\u0085 \\u2028 \\U0001F600'
    path = tmp_path / "a.ttl"
    path.write_text(f'<urn:a:cat:b> <{TITLE}> "{title}" .')
    result = run("filter", path, "-s", wanted, "--json", COLUMNS="20")
    (row,) = rows(result.stdout)
    assert row["solutions"][0]["item"] == {"type": "uri", "value": "urn:a:cat:b"}
    assert row["title"].endswith('"[bold] :cat: \x1b \U0001f600')
    assert len(result.stdout.splitlines()) == 1


# --- Widths --------------------------------------------------------------------------------------

LONG = "http://example.org/" + "long/" * 60 + "end"


@pytest.mark.parametrize("columns", ["20", "80"])
def test_no_width_cuts_an_iri(columns: str, tmp_path: Path) -> None:
    query = tmp_path / "q.rq"
    query.write_text(f"SELECT * {{ ?item <{TITLE}> ?title ; <urn:p> <{LONG}> , ?other }}")
    data = tmp_path / "a.ttl"
    data.write_text(f'<{LONG}1> <{TITLE}> "T" ; <urn:p> <{LONG}> .')
    ontology = tmp_path / "o.ttl"
    below = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    ontology.write_text(f"<{LONG}1> {below} <{LONG}2> . <{LONG}2> {below} <{LONG}3> .")
    outputs = {
        "filter": [f"<{LONG}1>", f"<{LONG}>"],
        "explain": [f"<{LONG}1>", f"<{LONG}>"],
        "check": [f"<{LONG}>"],
        "ontology": [f"        └── <{LONG}1>", f"└── <{LONG}3>"],
    }
    arguments: dict[str, Sequence[object]] = {
        "filter": [data, "-s", query],
        "explain": ["q", data, "-s", query],
        "check": [query],
        "ontology": [ontology],
    }
    for command, expected in outputs.items():
        text = run(command, *arguments[command], COLUMNS=columns).stdout
        for iri in expected:
            assert iri in text, command


def test_problems_are_one_line(tmp_path: Path, wanted: Path) -> None:
    path = tmp_path / f"{'long ' * 20}.ttl"
    path.write_text("garbage")
    lines = run("filter", path, "-s", wanted, status=1, COLUMNS="20").stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"refused  {path}:1:1: ")


def test_long_titles_and_values_are_shortened(tmp_path: Path, wanted: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text(f'<urn:a> <{TITLE}> "{"long  " * 10_000}"@en .')
    lines = run("filter", path, "-s", wanted).stdout.splitlines()
    assert lines[0] == ("long " * 40)[:199] + "…"
    value = ("long " * 20)[:99] + "…"
    assert lines[3] == f'      ?item = <urn:a>  ?title = "{value}"@en'


def test_many_solutions_are_counted(tmp_path: Path, wanted: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text("".join(f'<urn:{n}> <{TITLE}> "{n}" .\n' for n in range(9)))
    text = run("filter", path, "-s", wanted).stdout
    assert text.count("?title = ") == 5
    assert "      … and 4 more\n" in text


def test_id_that_only_looks_like_an_iri(tmp_path: Path, wanted: Path) -> None:
    path = tmp_path / "a: b [c].ttl"
    path.write_text(f'<urn:a> <{TITLE}> "T" .')
    assert run("filter", path, "-s", wanted).stdout.startswith(f"T\n  {path}\n")


# --- Terminals and pipes -------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe_gets_no_control_characters(name: str) -> None:
    started = (
        process(*COMMANDS[name], "nothing.ttl") if name == "filter" else process(*COMMANDS[name])
    )
    out, err = started.communicate(timeout=300)
    assert started.returncode == (1 if name == "filter" else 0)
    assert len(out.decode()) > 200, name
    assert not CONTROL.search(out.decode())
    assert not CONTROL.search(err.decode())


def on_a_terminal(*arguments: object, out: bool = True, **environment: str) -> tuple[str, str]:
    """Run the command with standard error, and optionally output, on a terminal."""
    main, side = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "graphmatch.cli", *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=side if out else subprocess.PIPE,
        stderr=side,
        env={k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        | {"TERM": "xterm", "COLUMNS": "100"}
        | environment,
    )
    os.close(side)
    piped = "" if child.stdout is None else child.stdout.read().decode()
    seen = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:  # The other end is closed.
            break
        if not piece:
            break
        seen += piece
    os.close(main)
    assert child.wait(300) == 0
    if child.stdout is not None:
        child.stdout.close()
    return seen.decode(), piped


COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")


def test_a_terminal_gets_colours_and_progress() -> None:
    seen, _ = on_a_terminal(*FILTER)
    assert COLOUR.search(seen)
    assert "Loading the ontology" in seen
    assert re.search(r"Reading publications: 0 of \d files, 1 publication ", seen)
    assert "\x1b[1mSolar power overtakes coal in the Valmora grid" in seen
    bars = [line for line in re.split(r"[\r\n]", seen) if "Reading publ" in line]
    assert not any("daily.example" in line or "Coastal mayors" in line for line in bars)


def test_no_color_is_respected() -> None:
    seen, _ = on_a_terminal(*FILTER, NO_COLOR="1")
    assert not COLOUR.search(seen)
    assert "Solar power overtakes coal in the Valmora grid" in seen


def test_progress_goes_beside_a_result_that_is_piped() -> None:
    seen, piped = on_a_terminal(*FILTER, out=False)
    assert "Reading publications" in seen
    assert "Solar power" not in seen
    assert not CONTROL.search(piped)
    assert piped == run(*FILTER).stdout


def many(path: Path) -> Path:
    line = '<urn:a%d> <%s> "title %d" <urn:g%d> .\n'
    path.write_text("".join(line % (n, TITLE, n, n) for n in range(3000)))
    return path


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_output_that_is_closed_early(options: list[str], tmp_path: Path, wanted: Path) -> None:
    started = process("filter", many(tmp_path / "many.nq"), "-s", wanted, *options)
    assert started.stdout is not None
    assert started.stdout.readline()
    started.stdout.close()
    assert started.stderr is not None
    err = started.stderr.read().decode()
    assert started.wait(300) == 0
    assert err == ""
    started.stderr.close()
    assert started.stdin is not None
    started.stdin.close()


def test_a_device_or_pipe_is_written_to_and_not_replaced(tmp_path: Path, wanted: Path) -> None:
    data, pipe = many(tmp_path / "many.nq"), tmp_path / "pipe"
    os.mkfifo(pipe)
    started = process("filter", data, "-s", wanted, "--output", pipe, "--json")
    assert len(rows(pipe.read_text())) == 3000
    _, err = started.communicate(timeout=300)
    assert (started.returncode, pipe.is_fifo()) == (0, True), err
    if Path("/dev/full").exists():
        full = run("filter", data, "-s", wanted, "--output", "/dev/full", status=2)
        assert "/dev/full: cannot be written: No space left on device. Check " in full.stderr
        assert Path("/dev/full").is_char_device()


def test_an_output_that_is_a_link_stays_one(tmp_path: Path, wanted: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target")
    run("filter", many(tmp_path / "many.nq"), "-s", wanted, "--output", link, "--json")
    assert link.is_symlink()
    assert len(rows((tmp_path / "target").read_text())) == 3000


@pytest.mark.parametrize("option", ["--output", "--seen"])
def test_an_input_is_never_written_to(option: str, tmp_path: Path, wanted: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    data, known = many(folder / "many.nq"), tmp_path / "known.ttl"
    known.write_text("<urn:a> a <urn:B> .")
    events = tmp_path / "events.jsonl"
    events.write_text('{"id": "e", "price": 3}')
    config = tmp_path / "graphmatch.toml"
    config.write_text("verbose = true")
    (link := tmp_path / "link").symlink_to(data)
    inputs = ("-s", wanted, "-o", known, "--events", events, "--config", config)
    for path in (data, wanted, known, events, config, link):
        before = path.read_bytes()
        result = run("filter", folder, *inputs, option, path, status=2)
        assert f"{path}: {option} names a file that is also an input, " in result.stderr
        assert path.read_bytes() == before


def test_standard_input_and_operators_are_inputs_too(tmp_path: Path, wanted: Path) -> None:
    data = many(tmp_path / "many.nq")
    code = tmp_path / "ops.py"
    code.write_text("operators = []\n", encoding="utf-8")
    for line in (
        f"filter - --format nq -s {wanted} --output {data} < {data}",
        f"filter {data} -s {wanted} --operators {code}:operators --output {code}",
    ):
        before = data.read_bytes(), code.read_bytes()
        command = f"{shlex.quote(sys.executable)} -m graphmatch.cli {line}"
        done = subprocess.run(command, shell=True, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2
        assert "also an input" in " ".join(done.stderr.split())
        assert (data.read_bytes(), code.read_bytes()) == before


def test_the_matches_do_not_replace_what_remembers_them(tmp_path: Path, wanted: Path) -> None:
    path = tmp_path / "both"
    options = ("--seen", path, "--output", path)
    result = run("filter", many(tmp_path / "many.nq"), "-s", wanted, *options, status=2)
    assert "--output names a file that is also an input" in result.stderr
    assert not path.exists()


@pytest.mark.parametrize("arguments", [(*FILTER, "-q"), ("--version",)])
def test_an_output_that_is_closed_is_an_error(arguments: tuple[str, ...]) -> None:
    command = shlex.join([sys.executable, "-m", "graphmatch.cli", *arguments])
    done = subprocess.run(f"{command} >&-", shell=True, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    error = "error    the output cannot be written: Bad file descriptor\n"
    assert (done.returncode, done.stderr) == (2, error)


def test_a_file_without_an_end_is_refused(wanted: Path) -> None:
    for option in ("--config", "--subscriptions"):
        result = run("filter", wanted, option, "/dev/zero", status=2)
        assert "/dev/zero: a file has more than 16,777,216 characters" in result.stderr


def test_many_refusals_are_counted(tmp_path: Path, wanted: Path) -> None:
    data = tmp_path / "bad.nt"
    data.write_text("<urn:a> <urn:b> <urn:c> .\n" + "bad\n" * 50)
    err = run("filter", data, "-s", wanted, status=1).stderr
    assert err.count("not valid N-Triples") == 20
    assert f"refused  {data}: 30 more. --verbose lists each.\n" in err
    assert "50 refused" in err
    err = run("filter", data, "-s", wanted, "--verbose", status=1).stderr
    assert (err.count("not valid N-Triples"), "more." in err) == (50, False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is full")
def test_disk_that_is_full(tmp_path: Path, wanted: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        data = many(tmp_path / "many.nq")
        started = process("filter", data, "-s", wanted, stdout=full.fileno())
        _, err = started.communicate(timeout=300)
    assert started.returncode == 2
    assert err.decode() == "error    the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_output_in_a_narrow_encoding(encoding: str) -> None:
    started = process(*FILTER, PYTHONIOENCODING=encoding)
    out, err = started.communicate(timeout=300)
    assert (started.returncode, b"Traceback" in err) == (0, False)
    assert rb"\u25b8 feeds-environment" in out


def test_file_name_may_be_invalid_text(tmp_path: Path, wanted: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.ttl"))
    path.write_text(f'<urn:a> <{TITLE}> "T" .')
    bad = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xe9.ttl"))
    bad.write_text("garbage")
    result = run("filter", path, bad, "-s", wanted, status=1)
    assert f"  {tmp_path}/caf\\udce9.ttl\n" in result.stdout
    assert f"refused  {tmp_path}/bad\\udce9.ttl:1:1: " in result.stderr
    (row,) = rows(run("filter", path, "-s", wanted, "--json").stdout)
    assert row["publication"] == str(path)


def test_stream_is_answered_as_it_comes_and_can_be_interrupted(wanted: Path) -> None:
    started = process("filter", "-", "-s", wanted, "--format", "nq", "--json")
    assert started.stdin is not None
    assert started.stdout is not None
    line = b'<urn:a%d> <%s> "T" <urn:g%d> .\n'
    started.stdin.write(line % (1, TITLE.encode(), 1) + line % (2, TITLE.encode(), 2))
    started.stdin.flush()
    assert json.loads(started.stdout.readline())["publication"] == "urn:g1"
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=300)
    assert (started.returncode, out, err) == (130, b"", b"interrupted\n")

"""Mutated input of every kind gives only clean errors, within limits of time and memory.

Each kind runs in its own process, so that a crash, a hang or a memory error is seen, with the input
that caused it. As a script, ``python tests/test_fuzz.py documents 9000`` tries 9,000 inputs.
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import pickle
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from typer.main import get_command

from graphmatch import AttributeSubscription, Engine, read_subscriptions
from graphmatch.cli import app
from semantic import Ontology, read_events
from semantic.attributes.events import Event
from semantic.errors import GraphMatchError
from tests.real_data import DATA

ROOT = Path(__file__).parents[1]

HANG = 30
"""Maximum seconds per input; an evaluation's own limit ends it far earlier."""
SECONDS = 2
"""Maximum CPU seconds per input without long evaluations, in long hunts."""
INPUTS = 100
"""Inputs of each kind that default tests try."""
MEMORY = 6 << 30
"""Maximum address space of the process, in bytes."""
GROWTH = 500 << 10
"""Maximum growth of the process, in kilobytes."""

Once: TypeAlias = Callable[[random.Random, Path], bool]
"""A function that writes one input to a path, tries it, and returns whether it was valid."""

FORMATS = {
    "ttl": "@prefix e: <urn:e:> . e:a a e:B ; e:p ( 1 2.5 -1e3 true ) , [ e:q '''x'y''' ] . "
    '<< e:a e:b 5 ~ _:x >> e:p <<( e:a e:b "x"@en--ltr )>> . e:a e:r 5 {| e:s 6 |} .',
    "trig": 'BASE <http://e/> GRAPH <g> { <a> <b> "c"^^<d> } _:g { } <urn:x> { [] <p> \\u0041 }',
    "jsonld": '{"@context": {"@vocab": "urn:", "p": {"@type": "@id", "@container": "@list"}}, '
    '"@id": "urn:a", "p": ["urn:b", {"@value": 5}], "@graph": [{"q": "x\\u0041"}]}',
    "rdf": '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e "x&#38;">]><rdf:RDF xmlns:rdf='
    '"http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:e:" xml:base="http://e/"><e:A '
    'rdf:ID="i" e:q="&e;"><e:p rdf:parseType="Literal"><b c="d">x</b></e:p><e:r rdf:parseType='
    '"Collection"><e:B/></e:r><![CDATA[ ]]></e:A></rdf:RDF>',
    "nq": '<urn:a> <urn:b> <<( _:x <urn:c> "d\\n"@en )>> <urn:g> .\n_:x <urn:b> "5"^^<urn:t> .\r\n',
}
QUERIES = (
    "SELECT ?x (COUNT(?y) AS ?n) { ?x <urn:p>/<urn:q>* ?y . OPTIONAL { ?y a ?z FILTER(?z != 5) } } "
    "GROUP BY ?x HAVING(?n > 1) ORDER BY DESC(?x) LIMIT 3",
    "ASK { { ?x <urn:p> ?y MINUS { ?x <urn:q> ?y } } UNION { GRAPH ?g { ?x ?p 'a'@en } } "
    "VALUES (?x ?y) { (UNDEF 1) (<urn:a> 2.50) } FILTER(?y IN (1, 2) || REGEX(STR(?x), 'a+b', 'i'))"
    "}",
    "CONSTRUCT { ?x <urn:p> _:b } WHERE { ?x !(<urn:p>|^<urn:q>) ?y BIND(?y + 1 AS ?z) "
    "FILTER NOT EXISTS { ?y <urn:q> ?z } { SELECT ?y (GROUP_CONCAT(?w) AS ?v) { ?y <urn:r> ?w } "
    "GROUP BY ?y } }",
    "PREFIX e: <urn:e:> SELECT * { << ?s e:p ?o >> e:q <<( ?s e:p ?o )>> . ?s e:p ?o {| e:r ?t |}}",
)
SIGNS = b'<>"{}()[].;,|^*+?!@#_:\\\n\t \x00\xff'
WORDS = (
    "FILTER OPTIONAL UNION MINUS SELECT VALUES BIND( NOT EXISTS GRAPH ?x ?y <urn:p> 1e400 -0 "
    "'''x''' \"\\u0000\" &e; <<( )>> {| |} <!-- CDATA @prefix BASE 99999999999999999999"
)
PIECES = [*(bytes([sign]) for sign in SIGNS), *WORDS.encode().split()]


def mutated(text: bytes, others: list[bytes], choose: random.Random) -> bytes:
    """Return a text with parts removed, repeated, replaced, or taken from another text."""
    for _ in range(choose.randint(1, 5)):
        begin, end = sorted(choose.randint(0, len(text)) for _ in range(2))
        match choose.randrange(6):
            case 0:
                text = text[:begin] + text[min(end, begin + 9) :]
            case 1:
                text = text[:end] + text[begin:end] * choose.choice((1, 1, 2, 20)) + text[end:]
            case 2:
                text = text[:begin] + bytes([choose.randrange(256)]) + text[begin + 1 :]
            case 3:
                other = choose.choice(others)
                text = text[:begin] + other[choose.randint(0, len(other)) :] + text[begin:]
            case 4:
                text = text[:end]
            case _:
                text = text[:begin] + choose.choice(PIECES) + text[begin:]
        text = text[:100_000]
    return text


def engine() -> Engine:
    """Return an engine whose subscriptions use every triple of a document."""
    ontology = Ontology.load(
        *sorted((ROOT / "ontologies").glob("*.ttl")), on_problem=lambda _: None
    )
    found = Engine(ontology, on_problem=lambda _: None)
    found.subscribe_many((f"q{n}", query) for n, query in enumerate(QUERIES))
    for path in sorted((ROOT / "data" / "subscriptions").glob("*.rq")):
        found.subscribe(path.stem, path.read_text())
    return found


def documents() -> Once:
    """Return a function that matches a mutated document, and returns whether it matched."""
    seeds = {name: [text.encode()] for name, text in FORMATS.items()}
    feeds = [path.read_bytes()[:20_000] for path in sorted((ROOT / "data" / "feeds").iterdir())]
    seeds[""] = [*feeds, *(seed for some in seeds.values() for seed in some)]
    matching = engine()

    def once(choose: random.Random, last: Path) -> bool:
        format = choose.choice(list(seeds))
        text = mutated(choose.choice(seeds[format]), seeds[""], choose)
        last.write_bytes(format.encode() + b"\n" + text)
        reports = list(matching.filter(text, format or None))
        return sum(len(list(report.subscriptions)) for report in reports) > 0

    return once


def queries() -> Once:
    """Return a function that matches a mutated query, and returns whether it was valid."""
    samples = sorted((ROOT / "data" / "subscriptions").glob("*.rq"))
    seeds = [*(query.encode() for query in QUERIES), *(path.read_bytes() for path in samples)]
    matching = Engine(on_problem=lambda _: None)
    document = FORMATS["ttl"].encode()

    def once(choose: random.Random, last: Path) -> bool:
        text = mutated(choose.choice(seeds), seeds, choose).decode("utf-8", "replace")
        last.write_text(text)
        try:
            matching.subscribe("s", text)
        except GraphMatchError:
            return False
        for report in matching.filter(document, "ttl"):
            for match in report.matches:
                assert match.subscription == "s"
        matching.unsubscribe("s")
        return True

    return once


FEEDS = (
    '<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><title>t</title><entry><id>urn:1</id>'
    '<title type="html">a &lt;b&gt;</title><content type="application/x">eHl6IA==</content>'
    '<updated>2026-01-02T03:04:05Z</updated><link rel="enclosure" href="a.mp3" length="1"/>'
    "</entry></feed>",
    '<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><title>t</title><content mode='
    '"base64" type="text/html">PGI+w6k8L2I+</content><issued>2004-01-02</issued></entry></feed>',
    '{"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [{"id": 1, "title": '
    '"\\ud83d\\ude00", "content_html": "<b>x", "tags": ["a"], "date_published": "2026-01-02"}]}',
)
ENCODINGS = (
    "utf-16",
    "utf-16-be",
    "utf-32",
    "utf-8-sig",
    "latin-1",
    "koi8-r",
    "shift_jis",
    "utf-7",
)


def encoded(text: bytes, encoding: str) -> bytes:
    """Return a document in an encoding that it declares."""
    declaration = f'<?xml version="1.0" encoding="{encoding}"?>'
    whole = re.sub(r"^\s*<\?xml.*?\?>", "", text.decode("utf-8", "replace"))
    return f"{declaration if whole[:1] == '<' else ''}{whole}".encode(encoding, "replace")


def feeds() -> Once:
    """Return a function that reads and matches a mutated feed, in some encoding."""
    folders = [folder for folder in (ROOT / "data" / "feeds", DATA / "feeds") if folder.is_dir()]
    paths = (path for folder in folders for path in sorted(folder.iterdir()))
    seeds = [*(path.read_bytes()[:20_000] for path in paths), *map(str.encode, FEEDS)]
    matching = engine()

    def once(choose: random.Random, last: Path) -> bool:
        text = choose.choice((choose.choice(seeds), choose.choice(FEEDS).encode()))
        mutate_first = choose.random() < 0.5
        text = mutated(text, seeds, choose) if mutate_first else text
        text = encoded(text, choose.choice(ENCODINGS)) if choose.random() < 0.5 else text
        text = text if mutate_first else mutated(text, seeds, choose)
        last.write_bytes(text)
        return sum(len(list(report.subscriptions)) for report in matching.filter(text)) > 0

    return once


VALUES: tuple[Any, ...] = (
    *(None, True, float("nan"), float("-inf"), 10**5000, Decimal("1e999999999"), Decimal("sNaN")),
    *(b"x", "\ud800", "\0", "9999-99-99", "2026-02-29T24:00:00Z", date.min, datetime.max, {}, []),
    *({1: 2}, {"": ""}, {"iri": "x:"}, {"value": 1, "unit": "10**10**10 m"}, {"value": []}, {"a"}),
    *({"value": "x", "language": "-"}, {"value": "1e9999", "datatype": "xsd:double"}, 1 << 64),
    *([[[]]], {"in": [1, {}]}, {"isa": "\ud800"}, {"exists": True}, {"<": {"value": 5}}),
)


def strange(value: Any, choose: random.Random) -> Any:
    """Return a Python value with a part that JSON does not allow."""
    if choose.random() < 0.2:
        return choose.choice(VALUES)
    if isinstance(value, dict):
        return {name: strange(inner, choose) for name, inner in value.items()}
    return [strange(inner, choose) for inner in value] if isinstance(value, list) else value


def events() -> Once:
    """Return a function for mutated events and attribute subscriptions: lines, values, tables."""
    seeds = [(ROOT / "data" / f"{name}.jsonl").read_bytes() for name in ("events", "attributes")]
    rows = [[json.loads(line) for line in seed.splitlines()] for seed in seeds]
    ontology = Ontology.load(ROOT / "ontologies" / "products.ttl", cache=False)
    matching = Engine(ontology, on_problem=lambda _: None)
    matching.subscribe_many(read_subscriptions(ROOT / "data" / "attributes.jsonl"))
    kept = len(matching)

    def lines(text: bytes, last: Path) -> bool:
        last.write_bytes(text)
        for publication in read_events(str(last), on_problem=lambda _: None):
            list(matching.match(publication).subscriptions)
        jsonl = last.with_suffix(".jsonl")
        jsonl.write_bytes(text)
        read = list(read_subscriptions(jsonl, on_problem=lambda _: None))
        matching.subscribe_many(read)
        return len(read) > 0

    def values(choose: random.Random, last: Path) -> bool:
        event, where = (strange(choose.choice(some), choose) for some in rows)
        last.write_bytes(pickle.dumps((event, where)))
        good = False
        if isinstance(event, dict):
            good = len(matching.match(Event("e", event)).subscriptions) >= 0
        if isinstance(where, dict) and "where" in where:
            matching.subscribe(AttributeSubscription.of("s", where["where"]))
        return good

    def table(choose: random.Random, last: Path) -> bool:
        several = [strange(event, choose) for event in rows[choose.randrange(2)]]
        written = pickle.dumps(several)  # Pickle accepts numbers of any length.
        last.write_bytes(written)
        if b"1E+999999999" in written:
            return False  # For strings, Arrow itself would write out all of its digits.
        try:
            made = pa.Table.from_pylist([row for row in several if isinstance(row, dict)])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return False  # Arrow cannot represent it.
        matching.subscribe_table(made)
        return len(list(matching.match_events(made))) > 0

    def once(choose: random.Random, last: Path) -> bool:
        how = choose.randrange(3)
        try:
            if how == 0:
                return lines(mutated(choose.choice(seeds), seeds, choose), last)
            return values(choose, last) if how == 1 else table(choose, last)
        except GraphMatchError:
            return False
        finally:
            for subscription in matching.subscriptions[kept:]:
                matching.unsubscribe(subscription.id)

    return once


SYNONYMS = {
    ".csv": "term,root\nUS,United States\nhttp://e/a,http://e/b\nB,http://e/a\n",
    ".json": '{"United States": ["US", "U.S."], "http://e/b": ["http://e/a", "B"]}',
    ".ttl": "@prefix s: <http://www.w3.org/2004/02/skos/core#> . @prefix o: <http://www.w3.org/2002"
    "/07/owl#> . <urn:a> a s:Concept ; s:prefLabel 'A'@en ; s:altLabel 'B' ; s:broader <urn:b> ; "
    "s:exactMatch <urn:c> ; o:sameAs <urn:d> . <urn:b> s:broader <urn:a> ; o:equivalentClass "
    "[ o:unionOf ( <urn:a> <urn:c> ) ] . <urn:p> a o:TransitiveProperty ; o:inverseOf <urn:q> ; "
    "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf> s:broader .",
    ".rq": "CONSTRUCT { ?x <urn:n> ?m } WHERE { ?x <urn:n> ?n BIND(?n + 1 AS ?m) }",
}


def synonyms() -> Once:
    """Return a function that loads and uses mutated synonyms, SKOS and mapping functions."""
    seeds = {ending: [text.encode()] for ending, text in SYNONYMS.items()}
    seeds[".json"].append(b'[{"term": "US", "root": "United States"}]')
    for path in sorted((ROOT / "ontologies").iterdir()):
        seeds[path.suffix].append(path.read_bytes()[:3000])
    every = [seed for some in seeds.values() for seed in some]
    text = '<urn:x> <urn:n> 1 ; a <urn:a> ; <urn:p> "B", "US" . <urn:a> <urn:q> <urn:x> .'

    def once(choose: random.Random, last: Path) -> bool:
        ending = choose.choice(list(seeds))
        path = last.with_suffix(ending)
        path.write_bytes(mutated(choose.choice(seeds[ending]), every, choose))
        try:
            ontology = Ontology.load(path, cache=False, on_problem=lambda _: None)
            made = Engine(ontology, on_problem=lambda _: None)
            made.subscribe("s", "SELECT * { ?x <urn:n> ?n ; a <urn:b> ; <urn:p> 'United States' }")
            made.subscribe("t", "SELECT * { ?x ?p ?n FILTER(?n > 5) }")
            return all(len(report.matches) >= 0 for report in made.filter(text.encode(), "ttl"))
        except GraphMatchError:
            return False

    return once


CONFIG = """publications = ["a.atom"]
ontology = ["o.ttl", "o.csv"]
subscriptions = ["s.jsonl", "t.rq"]
topic = ["A", "urn:b"]
word = ["soup", "a.b*"]
not-word = "meat"
any = true
since = 2020-01-01
now = 2026-01-02T03:04:05Z
split-by = "auto"
as = "jsonl"
quiet = false

[[subscription]]
id = "soup"
topics = ["A"]
words = ["soup"]
match = "any"

[[subscription]]
id = "climate"
query = "SELECT ?item { ?item dcterms:subject <urn:c> }"

[[subscription]]
id = "cheap"
where = { price = { "<" = 5.5, "in" = [1, 2.0] }, "date" = 2026-01-31, "made" = { isa = "Sport" } }
"""
LINES = """{"id": "a", "topics": ["A or B", "C"], "words": "wind", "not-topics": [], "match": "any"}
{"id": "b", "query": "SELECT ?i { ?i dc:title ?t FILTER(REGEX(?t, '(a+)+$', 'i')) }", "comment": ""}
{"id": "c", "where": {"price": {">": 1e3, "ignore case": false}, "name": {"starts": "x"}}}
"""


def config() -> Once:
    """Return a function that runs ``filter`` or ``check`` with mutated options and files."""
    seeds = {"graphmatch.toml": CONFIG, "s.jsonl": LINES, "t.rq": QUERIES[1], "words": "A a+b?"}
    others = {"a.atom": FEEDS[0], "o.ttl": SYNONYMS[".ttl"], "o.csv": SYNONYMS[".csv"]}
    every = [text.encode() for text in seeds.values()]
    command = get_command(app)

    def once(choose: random.Random, last: Path) -> bool:
        folder = last.with_suffix(".folder")
        folder.mkdir(exist_ok=True)
        for name, text in (seeds | others).items():
            (folder / name).write_text(text)
        name = choose.choice(list(seeds))
        (folder / name).write_bytes(content := mutated(seeds[name].encode(), every, choose))
        word = content.decode("utf-8", "surrogateescape").replace("\0", "")
        safe = ["--no-cache", "--output", str(folder / "out"), "--seen", str(folder / "seen")]
        arguments = ["filter", "--config", str(folder / "graphmatch.toml"), *safe]
        if name == "words":
            arguments += [choose.choice(("--topic", "--word", "--not-word", "--since")), word]
        elif choose.random() < 0.3:
            arguments = ["check", str(folder / name), "--json"][: choose.randint(2, 3)]
        (folder / "seen").unlink(missing_ok=True)
        shown = io.TextIOWrapper(io.BytesIO(), "utf-8")
        with redirect_stdout(shown), redirect_stderr(shown), pytest.raises(SystemExit) as ended:
            command.main(arguments, "graphmatch")
        assert ended.value.code in (0, 1, 2)
        return ended.value.code != 2

    return once


KINDS: dict[str, Callable[[], Once]] = {
    make.__name__: make for make in (documents, queries, feeds, events, synonyms, config)
}


def peak() -> int:
    """Return the peak memory in kilobytes; getrusage would include the parent's."""
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


def run(kind: str, inputs: int, last: Path) -> tuple[int, int]:
    """Try inputs; return the numbers of tried and valid inputs."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    once = KINDS[kind]()
    choose = random.Random(seed := time.time_ns())
    tried = good = 0
    most, grown = 0.0, 0
    before = peak()
    while tried < inputs:
        faulthandler.dump_traceback_later(HANG, exit=True)
        begun = sum(os.times()[:2])
        tried, good = tried + 1, good + once(choose, last)
        if tried > 1:  # The first input includes imports.
            most = max(most, sum(os.times()[:2]) - begun)
        if inputs > INPUTS and kind not in ("documents", "queries"):
            assert most < SECONDS, f"{most} s"
        grown = peak() - before
        assert grown < GROWTH, f"{grown} KB"
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.write(
        f"{kind}: seed {seed}, {tried} tried, {good} of them good\n"
        f"{most:.2f}s at most, {grown >> 10}MB more\n"
    )
    return tried, good


@pytest.mark.parametrize("inputs", [INPUTS, pytest.param(3000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_clean_errors(kind: str, inputs: int, tmp_path: Path) -> None:
    program = [
        sys.executable,
        "-X",
        "faulthandler",
        __file__,
        kind,
        str(inputs),
        str(tmp_path / "last"),
    ]
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(program, cwd=ROOT, env=here, capture_output=True, text=True, check=False)
    shown = {path.name: path.read_bytes() for path in tmp_path.glob("last*") if path.is_file()}
    assert ended.returncode == 0, (shown, ended.stderr)
    tried, good = (int(word) for word in ended.stdout.split() if word.isdigit() and len(word) < 12)
    assert tried == inputs
    assert good > 0


if __name__ == "__main__":
    _, kind, inputs, *names = sys.argv
    path = Path(names[0]) if names else ROOT / "build" / f"last-{kind}"
    path.parent.mkdir(exist_ok=True)
    run(kind, int(inputs), path)

"""Mutated documents and queries: nothing but clean errors, each within its time and memory.

Each kind is tried in a process of its own, so that a crash, a hang or a process out of memory is
seen, with the input that caused it. For longer, as a script: ``python tests/test_fuzz.py documents
600`` tries for ten minutes.
"""

from __future__ import annotations

import faulthandler
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmatch import Engine
from semantic import Ontology
from semantic.errors import GraphMatchError

ROOT = Path(__file__).parents[1]
HANG = 30
"""So many seconds one input may take: an evaluation ends by its own limit far earlier."""
MEMORY = 6 << 30
"""So many bytes of addresses the process may have."""

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
    """Return a text with some places removed, repeated, replaced, or taken from another text."""
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
    """Return an engine in which everything of a document is asked for."""
    ontology = Ontology.load(
        *sorted((ROOT / "ontologies").glob("*.ttl")), on_problem=lambda _: None
    )
    found = Engine(ontology, on_problem=lambda _: None)
    found.subscribe_many((f"q{n}", query) for n, query in enumerate(QUERIES))
    for path in sorted((ROOT / "data" / "subscriptions").glob("*.rq")):
        found.subscribe(path.stem, path.read_text())
    return found


def documents() -> Callable[[random.Random, Path], bool]:
    """Return what reads and matches a mutated document; it says whether it was read."""
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


def queries() -> Callable[[random.Random, Path], bool]:
    """Return what subscribes a mutated query and matches it; it says whether it was one."""
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


def run(kind: str, seconds: float, last: Path) -> tuple[int, int]:
    """Try for some time; return how many inputs were tried, and how many of them were good."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    once = {"documents": documents, "queries": queries}[kind]()
    choose = random.Random(seed := time.time_ns())
    tried = good = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        faulthandler.dump_traceback_later(HANG, exit=True)
        tried, good = tried + 1, good + once(choose, last)
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.write(f"{kind}: seed {seed}, {tried} tried, {good} of them good\n")
    return tried, good


@pytest.mark.parametrize("kind", ["documents", "queries"])
def test_nothing_but_clean_errors(kind: str, tmp_path: Path) -> None:
    last = tmp_path / "last"
    program = [sys.executable, "-X", "faulthandler", __file__, kind, "3", str(last)]
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(program, cwd=ROOT, env=here, capture_output=True, text=True, check=False)
    shown = last.read_bytes() if last.exists() else b""
    assert ended.returncode == 0, (shown, ended.stderr)
    tried, good = (int(word) for word in ended.stdout.split() if word.isdigit() and len(word) < 12)
    assert tried > 20
    assert good > 0


if __name__ == "__main__":
    _, kind, seconds, *names = sys.argv
    run(kind, float(seconds), Path(names[0] if names else f"last-{kind}"))

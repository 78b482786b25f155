"""Small inputs that once took minutes or gigabytes: each ends soon and delays no others.

Each attack runs in its own process:
``python tests/test_expensive_input.py "cross product"`` tries one and prints its cost. An attack
returns the engine and the document. The subscription ``other`` is
always present, and must match.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine
from semantic import Ontology
from semantic.annotation.annotate import Annotator, Label
from semantic.errors import Problem, SubscriptionError
from semantic.vocabulary import LABEL

ROOT = Path(__file__).parents[1]
SECONDS, MEGABYTES = 4.0, 500
"""Limits of CPU time and memory, imports included; an idle machine needs half."""
SKOS, OWL = "http://www.w3.org/2004/02/skos/core#", "http://www.w3.org/2002/07/owl#"
Attack = tuple[Engine, str]


def triples(count: int, step: int = 0) -> str:
    """Return triples of one property; with a step, each term leads to another."""
    ends = (f"s{(n * step + 1) % count}" if step else f"o{n}" for n in range(count))
    return "".join(f"<urn:s{n}> <urn:p> <urn:{end}> .\n" for n, end in enumerate(ends))


def pairs(count: int) -> str:
    return " ".join(f"?a{n} <urn:p> ?b{n} ." for n in range(count))


def engine(*queries: str, ontology: Ontology | None = None, labels: int = 0) -> Engine:
    """Return an engine with the accepted subscriptions and `other`."""
    concepts = (
        Label(" ".join(["abc"] * n), "en", NamedNode(f"urn:c{n}")) for n in range(1, labels + 1)
    )
    made = Engine(ontology, annotator=Annotator(concepts) if labels else None, on_problem=told)
    for number, query in enumerate(queries):
        try:
            made.subscribe(f"hostile{number}", query)
        except SubscriptionError as error:
            told(error.problem)
    return made


TOLD: list[str] = []


def told(problem: Problem) -> None:
    TOLD.append(str(problem))


def rss(item: str) -> str:
    channel = f"<channel><language>en</language><item>{item}</item></channel>"
    return f"<rss version='2.0'>{channel}</rss>"


def cross_product() -> Attack:
    return engine(f"SELECT * {{ {pairs(4)} }}"), triples(100)


def many_cross_products() -> Attack:
    counts = (f"SELECT (COUNT(*) AS ?n{n}) {{ {pairs(8)} }}" for n in range(30))
    rows = (f"SELECT DISTINCT ?a0 ?a1 {{ {pairs(8)} FILTER(?a0 != <urn:{n}>) }}" for n in range(30))
    return engine(*counts, *rows), triples(100)


def chains_of_patterns() -> Attack:
    chains = (
        "SELECT * {" + " ".join(f"?x{n} <urn:p> ?x{n + 1} ." for n in range(size)) + "}"
        for size in (999, 4100, 5359)
    )
    return engine(*chains), triples(300, 7) + triples(300, 11)


def long_lists() -> Attack:
    several = ",".join(f"<urn:i{n}>" for n in range(100_000))
    return engine(
        f"SELECT * {{ ?a <urn:p> ?x FILTER(?x IN ({several})) }}",
        "SELECT " + " ".join(f"?v{n}" for n in range(100_000)) + " { ?a <urn:p> ?x }",
        "SELECT * { ?a <urn:p> ?x FILTER(COALESCE(" + "?z," * 16_000 + " true)) }",
    ), triples(100)


def many_categories() -> Attack:
    categories = "".join(f"<category>c{n} abc</category>" for n in range(20_000))
    return engine(labels=1), rss(f"<title>abc</title>{categories}")


def chain_of_broader() -> Attack:
    chain = "".join(f"<urn:c{n}> <{SKOS}broader> <urn:c{n + 1}> .\n" for n in range(4000))
    return engine(f"SELECT * {{ ?a <{SKOS}broaderTransitive> ?b }}"), chain + triples(1)


def chain_of_same() -> Attack:
    chain = "".join(f"<urn:c{n}> <{OWL}sameAs> <urn:c{n + 1}> .\n" for n in range(2500))
    return engine("SELECT * { ?a ?p ?b }"), chain + triples(1)


def nested_labels() -> Attack:
    return engine(labels=500), rss(f"<title>{'abc ' * 20_000}</title>")


def long_label() -> Attack:
    label = (NamedNode("urn:a"), LABEL, Literal("abc " * 2_000_000, language="en"))
    return engine(ontology=Ontology([label])), rss("<title>abc</title>")


def long_words() -> Attack:
    words = " ".join(f"B{letter * 100_000}" for letter in ("a", "ay", "xae"))
    return engine(labels=1), rss(f"<title>{words}</title>")


def long_paths() -> Attack:
    paths = (
        f"SELECT * {{ ?a <urn:p> ?b . ?b (<urn:p>|<urn:q{n}>)* ?c . ?c (<urn:p>|^<urn:p>)* ?d }}"
        for n in range(10)
    )
    return engine(*paths), triples(1000, 7) + triples(1000, 11)


def flat_optionals() -> Attack:
    parts = " ".join(f"OPTIONAL {{ ?a <urn:p> ?w{n} }}" for n in range(100))
    data = "".join(f"<urn:s> <urn:p> <urn:o{n}> .\n" for n in range(50))
    return engine(f"SELECT * {{ ?a <urn:p> ?w {parts} }}"), data


def nested_optionals() -> Attack:
    parts = "".join(f"OPTIONAL {{ ?b{n} <urn:p> ?w{n} " for n in range(200)) + "}" * 200
    return engine(f"SELECT * {{ ?a <urn:p> ?w {parts} }}"), triples(50)


def wide_stars() -> Attack:
    """Stars with more patterns than an index row can hold."""
    star = " ; ".join(f"<urn:p{n}> ?o{n}" for n in range(90))
    data = "".join(f"<urn:s> <urn:p{n}> <urn:o> .\n" for n in range(90))
    queries = (f"SELECT * {{ ?s {star} FILTER(?o1 != <urn:x{n}>) }}" for n in range(21))
    return engine(*queries), data + triples(1)


ATTACKS: dict[str, Callable[[], Attack]] = {
    made.__name__.replace("_", " "): made
    for made in (
        *(cross_product, many_cross_products, chains_of_patterns, long_lists, many_categories),
        *(chain_of_broader, chain_of_same, nested_labels, long_label, long_words, long_paths),
        *(flat_optionals, nested_optionals, wide_stars),
    )
}


def peak() -> int:
    """Return the process's peak memory in megabytes."""
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) >> 10


def run(name: str) -> None:
    made, document = ATTACKS[name]()
    made.subscribe("other", "ASK { { ?s <urn:p> ?o } UNION { ?s a rss:item } }")
    (report,) = made.filter(document.encode())
    solutions = sum(len(match.solutions) for match in report)
    found = {"others": "other" in report.subscriptions, "solutions": solutions, "told": TOLD}
    cost = {"seconds": sum(os.times()[:2]), "megabytes": peak()}
    sys.stdout.write(json.dumps(found | cost))


def cost_of(name: str) -> dict[str, Any]:
    program = [sys.executable, __file__, name]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(json.loads(ended.stdout))


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_reaches_a_limit_and_others_get_their_answers(name: str) -> None:
    found = cost_of(name)
    assert found["others"]
    assert found["megabytes"] < MEGABYTES, found
    limits = re.compile("`[a-z_]+`|text_characters|only the first")
    assert all(limits.search(one) for one in found["told"]), found["told"]


@pytest.mark.long  # Seconds depend on the machine, but not every cost has a counter.
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_soon(name: str) -> None:
    found = cost_of(name)
    assert found["seconds"] < SECONDS, found


if __name__ == "__main__":
    run(sys.argv[1])

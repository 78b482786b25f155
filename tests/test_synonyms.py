"""Synonyms of attributes, values and literals, end to end: `graphmatch filter`.

The examples come from CTPS, section 4 ("Desktop PC" and its Chinese term, "US" for "United
States"), and from S-ToPSS's first step, in which "school" in an event and "university" in a
subscription are one attribute.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode
from typer.testing import CliRunner

from graphmatch import Engine
from graphmatch.cli import app
from semantic import Ontology, Publication
from semantic.ontology.synonyms import SynonymOptions, SynonymPairs

PREFIXES = """
PREFIX : <http://example.org/>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
"""
ONTOLOGY = """
:school owl:equivalentProperty :university .
:DesktopPC owl:equivalentClass :Tischrechner .
:us skos:prefLabel "United States"@en, "États-Unis"@fr ; skos:altLabel "America" .
"""
SYNONYMS = """term,root
US,United States
U.S.,United States
台式机,http://example.org/DesktopPC
http://example.org/PC,http://example.org/DesktopPC
http://example.org/cost,http://example.org/price
"""


@pytest.mark.parametrize(
    ("event", "wanted", "options", "matches"),
    [
        (':o :school "Toronto"', '?o :university "Toronto"', "", True),
        (":o :cost 450", "?o :price ?p FILTER(?p < 500)", "", True),
        (":o :target :Tischrechner", "?o :target :PC", "", True),
        (':o :target "台式机"', "?o :target :DesktopPC", "", True),
        (':o :country "US"', '?o :country "U.S."', "", True),
        (':o :country "US"@en', '?o :country "United States"', "", True),
        (':o :country "us"', '?o :country "United States"', "", False),
        (':o :country "us"', '?o :country "United States"', "--casefold", True),
        (':o :country "U.S."', '?o :country "u.s."', "--casefold", True),
        (':o :country "\uff35\uff33"', '?o :country "US"', "", False),
        (':o :country "\uff35\uff33"', '?o :country "US"', "--nfkc", True),
        (':o :country "\uff55\uff53"', '?o :country "US"', "--nfkc --casefold", True),
        (':o :country "in the US"', '?o :country "United States"', "--casefold", False),
    ],
)
def test_filter(event: str, wanted: str, options: str, matches: bool, tmp_path: Path) -> None:
    for name, text in {
        "event.ttl": f"{PREFIXES}{event} .",
        "wanted.rq": f"{PREFIXES}SELECT * {{ {wanted} }}",
        "ontology.ttl": PREFIXES + ONTOLOGY,
        "synonyms.csv": SYNONYMS,
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ontology = ("-o", str(tmp_path / "ontology.ttl"), "-o", str(tmp_path / "synonyms.csv"))
    files = (str(tmp_path / "event.ttl"), "-s", str(tmp_path / "wanted.rq"), *ontology)
    outcome = CliRunner().invoke(app, ["filter", *files, *options.split(), "--json"])
    assert outcome.exit_code == 0, outcome.output
    found = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert bool(found) is matches


@pytest.mark.parametrize(("casefold", "nfkc"), [(True, False), (False, True), (True, True)])
def test_the_core_folds_characters_as_python_does(casefold: bool, nfkc: bool) -> None:
    options = SynonymOptions(casefold=casefold, nfkc=nfkc)
    characters = (chr(code) for code in range(0x80, 0x20000) if not 0xD800 <= code < 0xE000)
    texts = {text: options.fold(text) for text in map("ẞe{}\u0301".format, characters)}
    texts = {text: folded for text, folded in texts.items() if text[2:-1] not in folded}
    assert len(texts) > 500
    roots = {folded: f"root {number}" for number, folded in enumerate(set(texts.values()))}
    engine = Engine(Ontology((), SynonymPairs(texts=roots), options=options))
    engine.subscribe("all", "SELECT ?text { <urn:s> ?number ?text }")
    triples = [
        (NamedNode("urn:s"), NamedNode(f"urn:{number}"), Literal(text))
        for number, text in enumerate(texts)
    ]
    (match,) = engine.match(Publication.of("urn:p", triples))
    expected = [roots[folded] for folded in texts.values()]
    assert Counter(solution["text"].value for solution in match.solutions) == Counter(expected)

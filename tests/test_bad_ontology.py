"""Contradictory ontologies: each is reported with its message, and still used."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphmatch.cli import app
from semantic import Ontology
from semantic.errors import OntologyError, Problem, Severity

TURTLE = """
@prefix : <urn:> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
ONE_TERM = "They are treated as one term. Remove "

CIRCLES = {
    "a class that is its own ancestor, two steps away": (
        ":A rdfs:subClassOf :B . :B rdfs:subClassOf :C . :C owl:equivalentClass :A .",
        "a cycle of classes: <urn:A> (the same as <urn:C>), <urn:B>. "
        f"{ONE_TERM}a link if they differ.",
    ),
    "a cycle of properties": (
        ":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p .",
        f"a cycle of properties: <urn:p>, <urn:q>. {ONE_TERM}a link if they differ.",
    ),
}


@pytest.mark.parametrize("case", CIRCLES)
def test_circle(case: str, tmp_path: Path) -> None:
    turtle, message = CIRCLES[case]
    path = tmp_path / "o.ttl"
    path.write_text(TURTLE + turtle)
    problems: list[Problem] = []
    ontology = Ontology.load(path, on_problem=problems.append)
    assert list(map(str, problems)) == [f"ontology: {message}"]
    assert {problem.severity for problem in problems} == {Severity.WARNING}
    roots = {ontology.root(t) for triple in ontology.stated for t in (triple[0], triple[2])}
    assert len(roots) == 1
    outcome = CliRunner().invoke(app, ["ontology", str(path)])
    assert f"warning  ontology: {message}" in outcome.stderr.splitlines()
    assert outcome.exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"US": ["USA",]}', ":1:15: not valid JSON-LD: "),
        ('{"US": ["USA"]', ":1:15: not valid JSON-LD: "),
    ],
)
def test_broken_json(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(OntologyError) as caught:
        Ontology.load(path)
    assert str(caught.value).startswith(f"{path}{message}")

"""``graphmatch ontology`` on the samples: the output and status of each option."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphmatch.cli import app
from tests.real_data import DATA

ROOT = Path(__file__).parents[3]

NEWS = "ontologies/news.ttl"
PRODUCTS = ("ontologies/products.ttl", "ontologies/synonyms.csv")
SHOP = "https://graphmatch.example/shop#"


def run(*arguments: object, status: int = 0) -> Any:
    """Run ``graphmatch ontology`` in the clone's folder."""
    with chdir(ROOT):
        result = CliRunner().invoke(app, ["ontology", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result


def rows(*arguments: object, status: int = 0) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in run(*arguments, "--json", status=status).stdout.splitlines()
    ]


# --- Unused axioms -------------------------------------------------------------------------------


FAMILY = """@prefix owl: <http://www.w3.org/2002/07/owl#> .
<urn:A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> [ owl:someValuesFrom owl:Thing ] .
<urn:partOf> a owl:TransitiveProperty .
"""


def test_commands_note_unused_axioms(tmp_path: Path) -> None:
    ontology, query = tmp_path / "family.ttl", tmp_path / "a.rq"
    ontology.write_text(FAMILY, encoding="utf-8")
    query.write_text("ASK { ?x a <urn:A> }", encoding="utf-8")
    note = "note     1 transitive property, 1 existential restriction: not used by "
    command = ["check", str(query), "-o", str(ontology)]
    for options, expected in {
        (): f"{note}rdfs; 1 of them is used by owl-rl",
        ("--quiet",): "",
        ("--entailment", "none"): "1 subclass axiom, ",
    }.items():
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 0, result.output
        assert expected in result.stderr
        assert ("not used by" in result.stderr) is bool(expected)


def test_unused_axioms_for_machines(tmp_path: Path) -> None:
    path = tmp_path / "family.ttl"
    path.write_text(FAMILY, encoding="utf-8")
    (row,) = rows(path)
    both = {"existential restriction": 1, "transitive property": 1}
    assert row["axioms not used by rdfs"] == both
    assert row["axioms not used by owl-rl"] == {"existential restriction": 1}


# --- Searching -----------------------------------------------------------------------------------


def test_search() -> None:
    result = run(NEWS, "--search", "énergie ")
    lines = result.stdout.splitlines()
    assert lines[0] == "news:Energy  “Énergie”@fr  concept, 8 below"
    assert (
        "news:RenewableEnergy  “Énergie renouvelable”@fr  concept, under news:Energy and "
        "news:Environment, 3 below"
    ) in lines
    assert result.stderr == f"{len(lines)} terms found\n"


def test_search_for_machines() -> None:
    (row,) = rows(*PRODUCTS, "--search", "notebook")
    assert row == {
        "term": f"<{SHOP}LaptopPC>",
        "name": "Notebook",
        "language": None,
        "found": "exact",
        "kinds": ["class"],
        "parents": [f"<{SHOP}Computer>"],
        "below": 1,
    }


def test_search_that_finds_nothing() -> None:
    result = run(NEWS, "--search", "xyzzy")
    assert (result.stdout, result.stderr) == ("", "0 terms found\n")


def test_search_that_finds_much(tmp_path: Path) -> None:
    path = tmp_path / "o.ttl"
    path.write_text(
        "".join(f"<urn:c{n:02}> a <http://www.w3.org/2002/07/owl#Class> .\n" for n in range(50))
    )
    lines = run(path, "--search", "c").stdout.splitlines()
    assert len(lines) == 41
    assert lines[-1] == "… and 10 more"
    assert len(rows(path, "--search", "c")) == 50


# --- One term ------------------------------------------------------------------------------------


def test_term() -> None:
    assert run(*PRODUCTS, "--term", "Notebook").stdout.splitlines() == [
        f"shop:LaptopPC  {SHOP}LaptopPC",
        "  kind        class",
        '  labels      "laptop PC"@en, "Laptop"@de, "ordinateur portable"@fr',
        "  other names shop:Notebook",
        "  parents     shop:Computer",
        "  children    shop:Ultrabook",
        "  above       2",
        "  below       1",
    ]


def test_term_for_machines(tmp_path: Path) -> None:
    path = tmp_path / "o.ttl"
    path.write_text("""
        PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
        PREFIX owl: <http://www.w3.org/2002/07/owl#>
        <urn:x:Dog> rdfs:subClassOf <urn:x:Animal>, [ a owl:Restriction ] ;
            rdfs:comment "Hund"@de, "Barks."@en .
        <urn:x:Rex> a <urn:x:Dog> .
        <urn:x:Tom> a <urn:x:Animal> .
        <urn:x:owner> a owl:ObjectProperty ; rdfs:domain <urn:x:Animal> ;
            rdfs:range <urn:x:Person> .
    """)
    (dog,) = rows(path, "--term", "Dog")
    assert dog["parents"] == ["<urn:x:Animal>"]
    assert (dog["ancestors"], dog["comments"]) == (1, ["Barks.", "Hund"])
    (animal,) = rows(path, "--term", "Animal")
    assert animal["attributes"] == ["<urn:x:owner>"]
    assert (animal["instances"], animal["all instances"]) == (1, 2)
    assert (animal["children"], animal["descendants"]) == (["<urn:x:Dog>"], 1)
    (owner,) = rows(path, "--term", "owner")
    assert (owner["domain"], owner["range"]) == (["<urn:x:Animal>"], ["<urn:x:Person>"])
    (rex,) = rows(path, "--term", "Rex")
    assert (rex["kinds"], rex["parents"], rex["ancestors"]) == (["instance"], ["<urn:x:Dog>"], 2)


def test_name_of_nothing() -> None:
    result = run(NEWS, "--term", "Enrgy", status=2)
    what = "the ontology has no term called 'Enrgy'"
    assert result.stderr == f"error    Enrgy: {what}. Is news:Energy meant?\n"


def test_a_name_of_several_terms_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "o.ttl"
    path.write_text("""
        @prefix : <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        :a rdfs:subClassOf :top ; rdfs:label "same" . :b rdfs:subClassOf :top ; rdfs:label "same" .
    """)
    result = run(path, "--term", "same", status=2)
    assert "same: 2 terms are called 'same': " in result.stderr
    assert "Give one of these, or its IRI." in result.stderr


# --- Problems ------------------------------------------------------------------------------------


@pytest.fixture
def faulty(tmp_path: Path) -> list[Path]:
    below = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    (tmp_path / "o.ttl").write_text(f"<urn:a> {below} <urn:b> . <urn:b> {below} <urn:a> .")
    (tmp_path / "s.csv").write_text("term,root\nurn:x,some text\nnothing\n")
    return [tmp_path / "o.ttl", tmp_path / "s.csv"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    result = run(tmp_path / "missing.ttl", status=2)
    assert "missing.ttl: cannot be read: " in result.stderr


def test_two_ways_to_look() -> None:
    result = run(NEWS, "--term", "x", "--search", "x", status=2)
    assert "--search and --term are given together" in result.stderr


# --- Mapping functions and units -----------------------------------------------------------------

MORE = ("ontologies/jobs.ttl", "ontologies/measures.ttl", "ontologies/experience.rq")


def test_mapping_functions_and_units() -> None:
    lines = run(*MORE).stdout.splitlines()
    at = lines.index("mapping functions")
    reads = "    experience  jobs:graduationYear → jobs:professionalExperience  "
    assert lines[at + 1].startswith(reads)
    at = lines.index("base units")
    assert lines[at + 1 : at + 3] == ['    shop:diskSize  "GB"', '    shop:weight  "kg"']


def test_mapping_functions_and_units_for_machines() -> None:
    (found,) = rows(*MORE)
    assert found["base units"] == {"shop:diskSize": '"GB"', "shop:weight": '"kg"'}
    (function,) = found["mapping functions"]
    assert function["name"] == "experience"
    assert function["reads"] == ["jobs:graduationYear"]
    assert function["adds"] == ["jobs:professionalExperience"]


# --- Real ontologies -----------------------------------------------------------------------------


@pytest.mark.data
def test_the_search_of_a_real_ontology() -> None:
    first = run(
        DATA / "ontologies" / "dbpedia.owl", "--search", "musical artist"
    ).stdout.splitlines()[0]
    assert first.startswith("dbo:MusicalArtist  “musical artist”@en  class, under dbo:")

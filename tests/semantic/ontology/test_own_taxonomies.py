"""Users can declare any property from narrower to broader terms as a taxonomy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyoxigraph import Literal
from typer.testing import CliRunner

from graphmatch import Engine
from graphmatch.cli import app
from semantic import Ontology, Publication
from semantic.errors import OntologyError
from semantic.terms import Triple
from semantic.vocabulary import (
    DCTERMS,
    EQUIVALENT_PROPERTY,
    GM,
    RDF,
    SKOS,
    SUBPROPERTY,
    TYPE,
    Namespace,
)

GEO = Namespace("https://example.org/geo#")
PLACES: list[Triple] = [
    (GEO["Paris"], GEO["locatedIn"], GEO["France"]),
    (GEO["France"], GEO["locatedIn"], GEO["Europe"]),
    (GEO["Montmartre"], GEO["districtOf"], GEO["Paris"]),
    (GEO["districtOf"], SUBPROPERTY, GEO["locatedIn"]),
]
DECLARED: Triple = (GEO["locatedIn"], TYPE, GM["Taxonomy"])
ABOUT = Publication.of("p", [(GEO["item"], DCTERMS["subject"], GEO["Montmartre"])])
QUERIES = {
    "subject": f"ASK {{ ?item dcterms:subject {GEO['Europe']} }}",
    "operator": f"ASK {{ ?i dcterms:subject ?p FILTER(gm:descendantOf(?p, {GEO['Europe']})) }}",
}


@pytest.mark.parametrize(
    ("triples", "expected"), [(PLACES, []), ([*PLACES, DECLARED], ["subject", "operator"])]
)
def test_that_a_declared_taxonomy_is_followed(triples: list[Triple], expected: list[str]) -> None:
    engine = Engine(Ontology(triples))
    for id, query in QUERIES.items():
        engine.subscribe(id, query)
    assert [match.subscription for match in engine.match(ABOUT)] == expected


def test_that_any_property_can_be_walked() -> None:
    places = Ontology(PLACES).taxonomy(GEO["locatedIn"])
    assert places.ancestors(GEO["Montmartre"]) == (GEO["Paris"], GEO["France"], GEO["Europe"])
    assert places.ancestors(GEO["Nowhere"]) == ()


def test_that_the_command_takes_one(tmp_path: Path) -> None:
    places, item = tmp_path / "places.ttl", tmp_path / "item.ttl"
    places.write_text("".join(f"{s} {p} {o} .\n" for s, p, o in PLACES))
    item.write_text("".join(f"{s} {p} {o} .\n" for s, p, o in ABOUT.triples))
    wanted = tmp_path / "europe.rq"
    wanted.write_text(QUERIES["subject"])
    arguments = ["filter", str(item), "-s", str(wanted), "-o", str(places), "--json"]
    assert CliRunner().invoke(app, arguments).stdout == ""
    result = CliRunner().invoke(app, [*arguments, "--taxonomy", GEO["locatedIn"].value])
    assert json.loads(result.stdout)["subscription"] == "europe"


def test_that_it_can_be_declared_and_taken_back_while_running() -> None:
    engine = Engine(Ontology(PLACES))
    engine.subscribe("subject", QUERIES["subject"])
    engine.update_ontology(added=[DECLARED])
    assert engine.match(ABOUT).matches
    engine.update_ontology(removed=[DECLARED])
    assert not engine.match(ABOUT).matches


def test_that_a_circle_is_reported_and_shown(tmp_path: Path) -> None:
    circle = [
        DECLARED,
        (GEO["a"], GEO["locatedIn"], GEO["b"]),
        (GEO["b"], GEO["locatedIn"], GEO["a"]),
        (GEO["c"], GEO["locatedIn"], GEO["a"]),
        (GEO["c"], GEO["locatedIn"], Literal("Europe")),
    ]
    file = tmp_path / "circle.ttl"
    file.write_text("".join(f"{s} {p} {o} .\n" for s, p, o in circle))
    result = CliRunner().invoke(app, ["ontology", str(file)])
    assert result.exit_code == 0
    told = " ".join(result.stderr.split())
    assert "a cycle of concepts: <https://example.org/geo#a>, <https://example.org/geo#b>" in told
    assert "a literal in the place of an IRI: <https://example.org/geo#c>" in told
    shown = result.stdout.split("concepts", 1)[1]
    assert shown.index("geo#a") < shown.index("geo#b") < shown.index("geo#c")


def test_that_a_taxonomy_has_all_names_of_its_property() -> None:
    part, component = GEO["partOf"], GEO["componentOf"]
    ontology = Ontology(
        [
            (component, EQUIVALENT_PROPERTY, part),
            (component, TYPE, RDF["Property"]),
            (GEO["wheel"], part, GEO["car"]),
            (GEO["spoke"], component, GEO["wheel"]),
        ]
    )
    for name in (part, component):
        assert ontology.taxonomy(name).ancestors(GEO["spoke"]) == (GEO["wheel"], GEO["car"])


def test_that_a_transitive_link_is_one_of_the_concepts() -> None:
    a, b, c = (GEO[name] for name in "abc")
    ontology = Ontology([(a, SKOS["broaderTransitive"], b), (c, SKOS["broader"], a)])
    assert ontology.concepts.ancestors(c) == (a, b)


RDF_XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:my="http://e.org/xml#">
  <rdf:Description rdf:about="urn:a"><my:in rdf:resource="urn:b"/></rdf:Description>
</rdf:RDF>
"""


def test_prefixes_that_files_declare(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.ttl", "b.rdf", "c.ttl")]
    files[0].write_text("@prefix e: <http://a.org/> . <urn:a> e:b <urn:c> .")
    files[1].write_text(RDF_XML)
    files[2].write_text("@prefix e: <http://c.org/> . e:a e:b e:c .")
    names = ["e:partOf", "my:in", "<urn:x:y>", "dcterms:isPartOf", GEO["in"]]
    ontology = Ontology.load(*files, taxonomies=names)
    assert [s.value for s, _, o in ontology.stated if o == GM["Taxonomy"]] == [
        "http://a.org/partOf",
        "http://e.org/xml#in",
        "urn:x:y",
        "http://purl.org/dc/terms/isPartOf",
        GEO["in"].value,
    ]


@pytest.mark.parametrize("name", ["nothing:there", "partOf", "http://e.org/a b"])
def test_invalid_names_of_taxonomies_are_refused(name: str) -> None:
    with pytest.raises(OntologyError, match="not an IRI, and no file declares its prefix"):
        Ontology.load(taxonomies=[name])

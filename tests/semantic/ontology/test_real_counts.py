"""Published ontologies: the counts equal those of plain SPARQL queries over the files.

An ontology merges names with the same meaning into one. The queries do so, too: they replace each
name by the least name reachable through equivalences. They share no code with the project.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import BlankNode, NamedNode, QuerySolutions, RdfFormat, Store

from semantic import Ontology, Problem
from semantic.ontology.taxonomy import Taxonomy
from tests.real_data import DATA

ONTOLOGIES = DATA / "ontologies"
FILES = {
    "dbpedia": [ONTOLOGIES / "dbpedia.owl"],
    "schemaorg": [ONTOLOGIES / "schemaorg.ttl"],
    "so-simple": [ONTOLOGIES / "so-simple.owl"],
    "sosa": sorted(ONTOLOGIES.glob("sosa-*.ttl")),
}

PREFIXES = """
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
"""
SAME = (
    "(owl:sameAs|^owl:sameAs|owl:equivalentClass|^owl:equivalentClass"
    "|owl:equivalentProperty|^owl:equivalentProperty)*"
)
CLASSES = "{ VALUES ?kind { rdfs:Class owl:Class } ?term a ?kind FILTER(isIRI(?term)) }"
PROPERTIES = """{
  VALUES ?kind {
    rdf:Property owl:ObjectProperty owl:DatatypeProperty owl:AnnotationProperty
  } ?term a ?kind FILTER(isIRI(?term))
}"""

pytestmark = pytest.mark.data


def terms(declared: str, link: str) -> str:
    """Count the named terms that are declared or are an end of a link."""
    return f"""{PREFIXES} SELECT (COUNT(DISTINCT ?least) AS ?count) {{
      {{ SELECT ?term (MIN(STR(?name)) AS ?least) {{
          {{ {declared} UNION {linked("?term", "?o", link)} UNION {linked("?s", "?term", link)} }}
          FILTER(isIRI(?term))
          ?term {SAME} ?name FILTER(isIRI(?name))
      }} GROUP BY ?term }}
    }}"""


def edges(link: str) -> str:
    """Count the links between named terms, without the loops that merging creates."""
    return f"""{PREFIXES} SELECT (COUNT(*) AS ?count) {{
      {{ SELECT DISTINCT ?below ?above {{
        {{ SELECT ?s ?o (MIN(STR(?s2)) AS ?below) (MIN(STR(?o2)) AS ?above) {{
          {linked("?s", "?o", link)}
          FILTER(isIRI(?s) && isIRI(?o))
          ?s {SAME} ?s2 . ?o {SAME} ?o2 FILTER(isIRI(?s2) && isIRI(?o2))
        }} GROUP BY ?s ?o }}
        FILTER(?below != ?above)
      }} }}
    }}"""


def linked(below: str, above: str, link: str) -> str:
    """Match a link that is not a loop, because loops are ignored."""
    return f"{{ {below} {link} {above} FILTER({below} != {above} && !isLiteral({above})) }}"


def count(store: Store, query: str) -> int:
    found = store.query(query)
    assert isinstance(found, QuerySolutions)
    return int(next(found)["count"].value)


def store_of(files: list[Path]) -> Store:
    store = Store()
    for file in files:
        syntax = RdfFormat.TURTLE if file.suffix == ".ttl" else RdfFormat.RDF_XML
        store.load(path=file, format=syntax, base_iri=file.resolve().as_uri())
    return store


def named_edges(taxonomy: Taxonomy) -> int:
    return sum(
        isinstance(parent, NamedNode)
        for term in taxonomy
        if isinstance(term, NamedNode)
        for parent in taxonomy.parents(term)
    )


@pytest.mark.parametrize("name", FILES)
def test_counts_and_problems(name: str) -> None:
    problems: list[Problem] = []
    ontology = Ontology.load(*FILES[name], cache=False, on_problem=problems.append)
    assert [problem.what for problem in problems] == []
    store = store_of(FILES[name])
    for taxonomy, declared, link in (
        (ontology.classes, CLASSES, "rdfs:subClassOf"),
        (ontology.properties, PROPERTIES, "rdfs:subPropertyOf"),
    ):
        named = sum(isinstance(term, NamedNode) for term in taxonomy)
        assert named == count(store, terms(declared, link)) > 0
        assert named_edges(taxonomy) == count(store, edges(link))
        blank = sum(isinstance(term, BlankNode) for term in taxonomy)
        assert named + blank == len(taxonomy)


def test_that_the_counts_are_of_something() -> None:
    """Check a lower bound, so that two empty results do not count as agreement."""
    store = store_of(FILES["so-simple"])
    assert count(store, edges("rdfs:subClassOf")) > 2000
    assert len(store) == 42_936

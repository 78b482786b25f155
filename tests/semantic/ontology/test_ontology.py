from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, NamedNode, RdfFormat, parse

from graphmatch.enrichment import Enricher
from semantic.annotation.annotate import Label
from semantic.errors import OntologyError, Problem
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import SynonymPairs
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import PREFIXES
from tests.oracle import World
from tests.oracle import roots as roots_of
from tests.strategies import CLASSES, CONCEPTS, EX, PROPERTIES, RESOURCES, ontologies, publications
from tests.strategies import synonyms as synonym_pairs

TERMS: tuple[Term, ...] = (*CLASSES, *CONCEPTS, *RESOURCES, *PROPERTIES[:2], EX["unknown"])


def triples(turtle: str) -> list[Triple]:
    known = {**PREFIXES, "": EX.iri}
    head = "".join(f"PREFIX {prefix}: <{iri}> " for prefix, iri in known.items())
    quads = parse(head + turtle, format=RdfFormat.TURTLE)
    return [(quad.subject, quad.predicate, quad.object) for quad in quads]


def ontology_of(turtle: str, synonyms: SynonymPairs | None = None) -> Ontology:
    return Ontology(triples(turtle), synonyms, on_problem=lambda _: None)


def names(terms: object) -> str:
    assert isinstance(terms, tuple)
    return " ".join(term.value.removeprefix(EX.iri) for term in terms)


MIXED = ontology_of("""
    :Laptop rdfs:subClassOf :Computer, :Portable . :Computer rdfs:subClassOf :Product .
    :Portable rdfs:subClassOf :Product . :mine a :Laptop .
    :jazz skos:broader :music . :art skos:narrower :music . :jazz a skos:Concept .
    :wrote rdfs:subPropertyOf :made .
""")


def test_walks() -> None:
    assert names(MIXED.parents(EX["Laptop"])) == "Computer Portable"
    assert names(MIXED.parents(EX["mine"])) == "Laptop"
    assert names(MIXED.children(EX["Laptop"])) == "mine"
    assert names(MIXED.instances(EX["Laptop"])) == "mine"
    assert names(MIXED.ancestors(EX["mine"])) == "Laptop Computer Portable Product"
    assert names(MIXED.descendants(EX["Product"])) == "Computer Portable Laptop mine"
    assert names(MIXED.descendants(EX["art"])) == "music jazz"
    assert names(MIXED.path(EX["mine"], EX["Product"])) == "mine Laptop Computer Product"
    assert MIXED.path(EX["Product"], EX["mine"]) == ()
    assert MIXED.is_a(EX["jazz"], EX["art"])
    assert MIXED.is_a(EX["wrote"], EX["made"])
    assert not MIXED.is_a(EX["art"], EX["jazz"])
    assert MIXED.is_child(EX["jazz"], EX["music"])
    assert not MIXED.is_child(EX["jazz"], EX["art"])
    assert not MIXED.is_child(EX["jazz"], EX["jazz"])


def test_terms_that_it_does_not_know() -> None:
    unknown = EX["unknown"]
    assert MIXED.parents(unknown) == MIXED.children(unknown) == MIXED.ancestors(unknown) == ()
    assert MIXED.is_a(unknown, unknown)
    assert not MIXED.is_a(unknown, EX["Product"])
    assert MIXED.root(unknown) == unknown


def test_links_come_from_stated_triples() -> None:
    """Stated triples of the is-a properties, and of their sub-properties, are is-a links."""
    ontology = ontology_of("""
        :kind rdfs:subPropertyOf rdfs:subClassOf . :A :kind :B . :B rdfs:subClassOf :C .
        :over rdfs:subPropertyOf skos:narrower . :art :over :jazz .
        :jazz skos:broaderTransitive :music . :isa rdfs:subPropertyOf rdf:type . :x :isa :A .
    """)
    assert ontology.is_child(EX["A"], EX["B"])
    assert not ontology.is_child(EX["A"], EX["C"])  # This link is derived, not stated.
    assert ontology.is_a(EX["x"], EX["C"])
    assert ontology.is_child(EX["jazz"], EX["art"])
    assert ontology.is_child(EX["jazz"], EX["music"])
    publication = Publication.of("p", triples(":D :kind :A . :y :isa :D . :jazz :over :swing ."))
    links = ontology.links(publication)
    assert ontology.is_a(EX["y"], EX["C"], links)
    assert ontology.is_child(EX["swing"], EX["jazz"], links)
    assert not ontology.is_a(EX["y"], EX["C"])


@pytest.mark.parametrize(
    ("turtle", "merged", "reported"),
    [
        (":A rdfs:subClassOf :B . :B rdfs:subClassOf :A .", "A B", 1),
        (":A rdfs:subClassOf :B . :B rdfs:subClassOf :C . :C rdfs:subClassOf :A .", "A B C", 1),
        (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p .", "p q", 1),
        (":a skos:broader :b . :a skos:narrower :b .", "a b", 1),
        (":A rdfs:subClassOf :A .", "A", 0),
        # Replacing terms by their roots closes a second cycle, of another kind.
        (":A rdfs:subClassOf :B . :B rdfs:subClassOf :A . "
         ":A skos:broader :X . :X skos:broader :B .",
         "A B X", 2),
        (":A owl:equivalentClass :B . :A rdfs:subClassOf :C . :C rdfs:subClassOf :B .", "A B C", 1),
        # Blank nodes have no name to merge.
        (":A rdfs:subClassOf [ rdfs:subClassOf :A ] .", "A", 0),
        (":A rdfs:subClassOf _:b . _:b rdfs:subClassOf :B . :B rdfs:subClassOf :A .", "A B", 1),
        (":A owl:equivalentClass [ owl:unionOf () ] .", "A", 0),
        # Derived cycles are reported but merge nothing.
        (":kind rdfs:subPropertyOf rdfs:subClassOf . :A :kind :B . :B :kind :A .", "A", 1),
    ],
)  # fmt: skip
def test_cycles(turtle: str, merged: str, reported: int) -> None:
    problems: list[Problem] = []
    ontology = Ontology(triples(turtle), on_problem=problems.append)
    first, *others = merged.split()
    assert all(ontology.root(EX[name]) == EX[first] for name in others)
    assert len(ontology.roots) == len(others)
    assert len(problems) == reported
    assert ontology.problems == problems
    assert all("a cycle of " in problem.what for problem in problems)


def test_that_built_in_terms_in_a_cycle_do_no_harm() -> None:
    ontology = ontology_of("""
        rdfs:label rdfs:subPropertyOf rdfs:comment . rdfs:comment rdfs:subPropertyOf rdfs:label .
        rdfs:label owl:sameAs rdfs:seeAlso .
    """)
    found = Enricher(ontology).follow(triples(':x rdfs:label "a" .'))
    assert set(found) == set(triples(':x rdfs:label "a" ; rdfs:comment "a" .'))


def test_labels() -> None:
    ontology = ontology_of(
        """
        :Jazz a owl:Class ; rdfs:label "jazz"@en, "Jazz"@de . :ann a :Person ; rdfs:label "Ann" .
        :music a skos:Concept ; skos:prefLabel "music" ; skos:altLabel "tunes" ;
          skos:hiddenLabel "musik" ; skos:definition "noise" .
        :made a owl:ObjectProperty ; rdfs:label "made" . :wrote rdfs:subPropertyOf :made ;
          rdfs:label "wrote" . :scheme a skos:ConceptScheme ; skos:prefLabel "scheme" .
        _:b rdfs:label "blank" . :other rdfs:label :Jazz . :Swing owl:sameAs :Jazz ;
          rdfs:label "swing" .
        """,
        SynonymPairs(
            texts={"dschäss": "jazz", "nothing": "none"},
            labels=(("bebop", EX["Jazz"]), ("hard bop", EX["Swing"])),
        ),
    )
    found = {(label.text, label.language, label.concept) for label in ontology.labels()}
    jazz, music = EX["Jazz"], EX["music"]
    assert found == {
        ("jazz", None, jazz),  # The root of its text has no language.
        ("Jazz", "de", jazz),
        ("swing", None, jazz),
        ("dschäss", None, jazz),
        ("bebop", None, jazz),
        ("hard bop", None, jazz),
        ("Ann", None, EX["ann"]),
        ("music", None, music),
        ("tunes", None, music),
        ("musik", None, music),
    }
    assert all(isinstance(label, Label) for label in ontology.labels())


def test_loading(tmp_path: Path) -> None:
    one, two, rows = tmp_path / "one.ttl", tmp_path / "two.nt", tmp_path / "synonyms.csv"
    one.write_text("PREFIX e: <urn:> e:A a e:C .")
    two.write_text("<urn:C> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:D> .\n")
    rows.write_text("term,root\nurn:B,urn:D\n")
    ontology = Ontology.load(one, two, rows)
    assert ontology.is_a(NamedNode("urn:A"), NamedNode("urn:B"))
    assert ontology.prefixes["e"] == "urn:"
    for name, text in (("bad.ttl", "<urn:a> <urn:b> "), ("empty.ttl", ""), ("a.csv", "x,y\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(OntologyError, match=name):
            Ontology.load(one, tmp_path / name)
    with pytest.raises(OntologyError, match=r"missing\.ttl"):
        Ontology.load(tmp_path / "missing.ttl")


@given(ontologies(), synonym_pairs())
def test_roots_against_the_oracle(
    stated: tuple[Triple, ...], pairs: tuple[tuple[Term, Term], ...]
) -> None:
    named = {a: b for a, b in reversed(pairs) if isinstance(a, NamedNode)}
    terms = {a: b for a, b in named.items() if isinstance(b, NamedNode)}
    ontology = Ontology(stated, SynonymPairs(terms=terms), on_problem=lambda _: None)
    oracle = roots_of(stated, tuple(terms.items()))
    assert {term: ontology.root(term) for term in TERMS} == {term: oracle(term) for term in TERMS}


@given(st.data())
def test_taxonomy_operators_against_the_oracle(drawn: st.DataObject) -> None:
    stated = drawn.draw(ontologies())
    publication = drawn.draw(publications(stated))
    ontology = Ontology(stated, on_problem=lambda _: None)
    world = World.of(stated, publication.triples)
    links = ontology.links(ontology.rewrite(publication))
    nodes = (*drawn.draw(st.permutations(TERMS))[:6], BlankNode("b0"))
    for x in nodes:
        for y in nodes:
            assert ontology.is_a(x, y, links) == world.isa("descendantOf", x, y)
            assert ontology.is_child(x, y, links) == world.isa("childOf", x, y)
            path = ontology.path(x, y, links)
            assert bool(path) == ontology.is_a(x, y, links)
            steps = pairwise(path)
            assert all(ontology.is_child(a, b, links) or a == b for a, b in steps)


@given(ontologies())
def test_that_walks_up_and_down_agree(stated: tuple[Triple, ...]) -> None:
    ontology = Ontology(stated, on_problem=lambda _: None)
    for term in {ontology.root(term) for term in TERMS}:
        for above in ontology.ancestors(term):
            assert term in ontology.descendants(above)
        for below in ontology.children(term):
            assert term in ontology.parents(below)

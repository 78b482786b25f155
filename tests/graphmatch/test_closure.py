"""Derived triples, compared with the oracle's."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from graphmatch.enrichment import Enricher
from semantic.clock import utc_now
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import SynonymPairs
from semantic.publication import Publication
from semantic.terms import Triple
from semantic.vocabulary import (
    BROADER,
    BROADER_TRANSITIVE,
    DOMAIN,
    INVERSE_OF,
    NARROWER,
    PREFIXES,
    RANGE,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)
from tests.oracle import World, closure
from tests.strategies import CLASSES, CONCEPTS, EX, PROPERTIES, RESOURCES, ontologies, publications


def triples(turtle: str) -> list[Triple]:
    known = {**PREFIXES, "": EX.iri}
    head = "".join(f"PREFIX {prefix}: <{iri}> " for prefix, iri in known.items())
    dot = "" if not turtle or turtle.endswith(".") else " ."
    quads = parse(head + turtle + dot, format=RdfFormat.TURTLE)
    return [(quad.subject, quad.predicate, quad.object) for quad in quads]


def quiet(stated: Iterable[Triple], synonyms: SynonymPairs | None = None) -> Ontology:
    return Ontology(stated, synonyms, on_problem=lambda _: None)


def follows(ontology: str, publication: str, synonyms: SynonymPairs | None = None) -> set[Triple]:
    """Return the triples derived from a publication, without its own."""
    known = quiet(triples(ontology), synonyms)
    enriched = enrich(Enricher(known), Publication.of("p", triples(publication)))
    assert len(set(enriched.triples)) == len(enriched.triples)
    stated = known.roots.rewrite(triples(publication))
    assert enriched.derived == set(enriched.triples) - set(stated)
    return set(enriched.derived)


def enrich(enricher: Enricher, publication: Publication) -> Publication:
    return enricher.enrich(publication, utc_now()).publication


@pytest.mark.parametrize(
    ("ontology", "publication", "more"),
    [
        (":A rdfs:subClassOf :B, :C . :B rdfs:subClassOf :D .", ":x a :A", ":x a :B, :C, :D"),
        (":p rdfs:domain :A . :A rdfs:subClassOf :B .", ":x :p 1", ":x a :A, :B"),
        (":p rdfs:range :A .", ":x :p :y, 1", ":y a :A"),
        (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :r .", ":x :p 1", ":x :q 1; :r 1"),
        (":p owl:inverseOf :q .", ":x :p :y . :z :q 1", ":y :q :x"),
        (":p owl:inverseOf :p .", ":x :p :y", ":y :p :x"),
        # Broader topics, by either property, with sub-properties and inverses.
        (":a skos:broader :b . :c skos:narrower :b .", ":x :p :a", ":x :p :b, :c"),
        (":a skos:broaderTransitive :b .", ":x :p :a", ":x :p :b"),
        (":bg rdfs:subPropertyOf skos:broader . :a :bg :b .", ":x :p :a", ":x :p :b"),
        (":over owl:inverseOf skos:broader . :b :over :a .", ":x :p :a", ":x :p :b"),
        (":a skos:broader :b .", ":x rdfs:seeAlso :a", ""),  # Properties of RDFS are excluded.
        # Schema stated with sub-properties of the schema vocabulary.
        (":kind rdfs:subPropertyOf rdfs:subClassOf . :A :kind :B .", ":x a :A", ":x a :B"),
        (":sup owl:inverseOf rdfs:subClassOf . :B :sup :A .", ":x a :A", ":x a :B"),
        ("skos:broader rdfs:subPropertyOf rdfs:subClassOf . :A skos:broader :B .", ":x a :A",
         ":x a :B ; a :B . :x a :B"),
        (":sub rdfs:subPropertyOf rdfs:subPropertyOf . :p :sub :q .", ":x :p 1", ":x :q 1"),
        (":isa rdfs:subPropertyOf rdf:type . :A rdfs:subClassOf :B .", ":x :isa :A",
         ":x a :A, :B"),
        (":dom rdfs:subPropertyOf rdfs:domain . :p :dom :A .", ":x :p 1", ":x a :A"),
        # Restrictions: blank nodes are classes like any other.
        (":A rdfs:subClassOf [ rdfs:subClassOf :B ] .", ":x a :A", None),
        (":A owl:equivalentClass [ a owl:Restriction ] .", ":x a :A", ""),
        # Schema triples in the publication.
        (":B rdfs:subClassOf :C .", ":A rdfs:subClassOf :B . :x a :A",
         ":A rdfs:subClassOf :C . :x a :B, :C"),
        (":x a :A .", ":A rdfs:subClassOf :B", ":x a :B"),
        (":kind rdfs:subPropertyOf rdfs:subClassOf .", ":A :kind :B . :x a :A",
         ":A rdfs:subClassOf :B . :x a :B"),
        ("", ":kind rdfs:subPropertyOf rdfs:subClassOf . :A :kind :B . :x a :A",
         ":A rdfs:subClassOf :B . :x a :B"),
        ("", ":x owl:sameAs :y . :x :p 1", ":y owl:sameAs :x, :y . :x owl:sameAs :x . :y :p 1"),
        (":x :q 2 .", ":x owl:sameAs :x . :x :p 1", ""),  # It adds nothing, so nothing is new.
        # The ontology's triples on blank nodes are ignored, with or without published schema.
        (":x owl:sameAs [] .", ":x :p 1", ""),
        (":x owl:sameAs [] .", ":x :p 1 . :A rdfs:subClassOf :B", ""),
        # A literal cannot be a class, property or concept.
        (':p rdfs:domain "A" . :A rdfs:subClassOf "B" . :c skos:broader "d" .',
         ":x :p :c ; a :A", ""),
        (':p rdfs:domain "A" . :A rdfs:subClassOf "B" . :c skos:broader "d" .',
         ":x :p :c ; a :A . :C rdfs:subClassOf :D", ""),
    ],
)  # fmt: skip
def test_rules(ontology: str, publication: str, more: str | None) -> None:
    found = follows(ontology, publication)
    if more is None:
        assert {o for _, p, o in found if isinstance(o, NamedNode)} == {EX["B"]}
        assert any(isinstance(o, BlankNode) for _, _, o in found)
    else:
        assert found == set(triples(more))


def test_that_skos_may_say_what_it_is() -> None:
    skos = (
        "skos:broader rdfs:subPropertyOf skos:broaderTransitive ; owl:inverseOf skos:narrower . "
        "skos:broaderTransitive rdfs:subPropertyOf skos:semanticRelation . "
        "skos:narrower owl:inverseOf skos:broader . "
        "skos:semanticRelation rdfs:domain skos:Concept ."
    )
    found = follows(skos + ":a skos:broader :b . :b skos:broader :c .", ":x :p :a")
    assert found == set(triples(":x :p :b, :c"))


def test_names() -> None:
    """A label or synonym in a file names its term if it is an object in the data."""
    jazz = SynonymPairs(
        texts={"Dschäss": "Jazz"},
        labels=(("Jazz", EX["jazz"]), ("5", EX["five"]), ("US", EX["us"])),
    )
    broader = ":jazz skos:broader :music . rdfs:label rdfs:subPropertyOf :name ."
    named = {(EX["x"], EX["p"], EX["jazz"]), (EX["x"], EX["p"], EX["music"])}
    assert follows(broader, ':x :p "Jazz"@de', jazz) == named
    assert follows(broader, ':x :p "Jazz" . :A rdfs:subClassOf :B', jazz) == named
    assert follows(broader, ':x :p "Dschäss"', jazz) == named
    assert follows(broader, ":x :p 5", jazz) == set()  # A number cannot be a name.
    # Labels do not name an item's topic, but triples derived from them can.
    below = follows(broader, ':x rdfs:label "US"', jazz)
    assert below == {(EX["x"], EX["name"], Literal("US")), (EX["x"], EX["name"], EX["us"])}


def test_names_by_another_name() -> None:
    pairs = SynonymPairs(texts={"US": "United States"}, labels=(("US", EX["us"]),))
    assert (EX["x"], EX["p"], EX["us"]) in follows("", ':x :p "US"', pairs)
    assert (EX["x"], EX["p"], EX["us"]) in follows("", ':x :p "United States"', pairs)


# Legal but rare in ontologies: rules about the rules.
META = [
    (EX["kind"], SUBPROPERTY, SUBCLASS),
    (EX["kind"], SUBPROPERTY, BROADER),
    (EX["kind"], SUBPROPERTY, EX["p"]),
    (EX["p"], SUBPROPERTY, EX["kind"]),
    (EX["over"], INVERSE_OF, SUBCLASS),
    (EX["over"], INVERSE_OF, EX["kind"]),
    (BROADER, SUBPROPERTY, BROADER_TRANSITIVE),
    (SUBCLASS, SUBPROPERTY, EX["q"]),
    (EX["q"], SUBPROPERTY, SUBPROPERTY),
    (EX["isa"], SUBPROPERTY, TYPE),
    (BROADER_TRANSITIVE, SUBPROPERTY, SUBCLASS),
    (EX["kind"], SUBPROPERTY, DOMAIN),
    (EX["p"], RANGE, EX["A"]),
]
OWN = (EX["kind"], EX["over"], EX["isa"], EX["p"], EX["q"])
TERMS = (*CLASSES[:3], *CONCEPTS[:2], *RESOURCES[:2], *PROPERTIES[:2], BlankNode("o"))
meta_ontologies = st.builds(
    lambda meta, stated: [t for t in meta + stated if isinstance(t[1], NamedNode)],
    st.lists(st.sampled_from(META), max_size=4),
    st.lists(
        st.tuples(
            st.sampled_from(TERMS),
            st.sampled_from((*OWN, SUBCLASS, SUBPROPERTY, BROADER, NARROWER, TYPE, INVERSE_OF)),
            st.sampled_from((*TERMS, Literal("A"))),
        ),
        max_size=6,
    ),
)
data = st.lists(
    st.tuples(
        st.sampled_from((*RESOURCES[:2], BlankNode("b"))),
        st.sampled_from((*OWN, TYPE)),
        st.sampled_from((*TERMS[:-1], Literal("A"))),
    ),
    max_size=4,
)


@given(st.data())
def test_against_the_oracle(drawn: st.DataObject) -> None:
    stated = drawn.draw(ontologies())
    publication = drawn.draw(publications(stated))
    ontology = quiet(stated)
    world = World.of(stated, publication.triples)
    enricher = Enricher(ontology)
    assert enricher.closure == world.background
    assert set(enrich(enricher, publication).triples) == world.news


@given(meta_ontologies, data)
def test_rules_about_rules_against_the_oracle(
    stated: list[Triple], published: list[Triple]
) -> None:
    stated = [t for t in stated if not isinstance(t[2], Literal)]  # The oracle accepts them.
    published = [t for t in published if not isinstance(t[2], Literal)]
    ontology = quiet(stated)
    roots = ontology.roots
    c, e = closure(roots.rewrite(stated), roots.rewrite(published))
    enricher = Enricher(ontology)
    assert enricher.closure == c
    assert set(enrich(enricher, Publication.of("p", published)).triples) == e


@given(st.data())
def test_derivations(drawn: st.DataObject) -> None:
    """Each derived triple leads back, step by step, to a stated triple of the publication."""
    stated = drawn.draw(ontologies())
    publication = drawn.draw(publications(stated))
    ontology = quiet(stated)
    enricher = Enricher(ontology)
    parents = enricher.follow(ontology.rewrite(publication).triples)
    enriched = enrich(enricher, publication)
    assert parents.keys() == set(enriched.triples)
    for triple in parents:
        steps = 0
        while (origin := parents[triple]) is not None:
            triple, steps = origin[1], steps + 1
            assert steps <= len(parents)
        assert triple not in enriched.derived

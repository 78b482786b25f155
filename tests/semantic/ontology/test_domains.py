from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, NamedNode

from semantic import Ontology
from semantic.ontology.domains import Domain, Kind, domain
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term, Triple
from semantic.vocabulary import OWL, RANGE, RDF, RDFS, SUBPROPERTY, XSD
from tests.oracle import World
from tests.strategies import CLASSES, EX, PROPERTIES

P, Q, R = PROPERTIES[:3]
PRODUCTS = Path(__file__).parents[3] / "ontologies" / "products.ttl"
MONEY = EX["MoneyValue"]


@pytest.mark.parametrize(
    ("range_", "kind"),
    [
        (MONEY, Kind.CLASS),
        (RDFS["Class"], Kind.CLASS),
        (XSD["string"], Kind.STRING),
        (XSD["anyURI"], Kind.STRING),
        (RDF["langString"], Kind.STRING),
        (XSD["decimal"], Kind.NUMBER),
        (XSD["nonNegativeInteger"], Kind.NUMBER),
        (XSD["double"], Kind.NUMBER),
        (XSD["date"], Kind.DATE),
        (XSD["dateTime"], Kind.DATE),
        (XSD["gYear"], Kind.DATE),
        (XSD["boolean"], Kind.BOOLEAN),
        (XSD["duration"], None),
        (RDFS["Literal"], None),
        (RDFS["Resource"], None),
        (OWL["Thing"], None),
        (EX["celsius"], None),
        (BlankNode("union"), None),
    ],
)
def test_the_kind_of_a_range(range_: Term, kind: Kind | None) -> None:
    found = domain(P, {P: (range_,)}, Taxonomy([]), datatypes={EX["celsius"]})
    assert [d.kind for d in found] == ([] if kind is None else [kind])
    assert [d.range for d in found] == ([] if kind is None else [range_])


def test_that_ranges_come_from_above_nearest_first() -> None:
    ranges = {P: (XSD["integer"],), Q: (XSD["decimal"], XSD["integer"]), R: (MONEY,)}
    properties = Taxonomy([(P, Q), (Q, R)])
    assert domain(P, ranges, properties) == (
        Domain(Kind.NUMBER, XSD["integer"]),
        Domain(Kind.NUMBER, XSD["decimal"]),
        Domain(Kind.CLASS, MONEY),
    )
    assert domain(R, ranges, properties) == (Domain(Kind.CLASS, MONEY),)
    assert domain(EX["unknown"], ranges, properties) == ()


RANGES = st.lists(st.tuples(st.sampled_from(PROPERTIES), st.sampled_from(CLASSES)), max_size=5)
LINKS = st.lists(st.tuples(st.sampled_from(PROPERTIES), st.sampled_from(PROPERTIES)), max_size=6)


@given(RANGES, LINKS)
def test_domains_against_entailment(
    stated: list[tuple[Term, Term]], links: list[tuple[Term, Term]]
) -> None:
    """A value of an attribute is an instance of exactly the classes of its domain."""
    ranges: dict[Term, list[Term]] = {}
    for property_, class_ in stated:
        ranges.setdefault(property_, []).append(class_)
    ontology: list[Triple] = [(p, RANGE, c) for p, c in stated]
    ontology += [(a, SUBPROPERTY, b) for a, b in links if PROPERTIES.index(a) < PROPERTIES.index(b)]
    properties = Taxonomy([(a, b) for a, p, b in ontology if p == SUBPROPERTY])
    thing, value = EX["ann"], EX["bob"]
    for property_ in PROPERTIES:
        world = World.of(ontology, [(thing, property_, value)])
        classes = {o for s, p, o in world.news if s == value and p == RDF["type"]}
        found = domain(property_, ranges, properties)
        assert {d.range for d in found} == classes
        assert {d.kind for d in found} <= {Kind.CLASS}


def test_the_products_of_the_samples() -> None:
    ontology = Ontology.load(PRODUCTS)
    shop = ontology.prefixes["shop"]
    found = domain(NamedNode(shop + "target"), ontology.schema.ranges, ontology.properties)
    assert found == (Domain(Kind.CLASS, NamedNode(shop + "Product")),)

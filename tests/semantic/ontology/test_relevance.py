"""Restricted entailment leaves out nothing that a subscription could meet."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from semantic import Ontology, Publication
from semantic.mentions import Mention, Mentions
from semantic.ontology.relevance import Relevance
from semantic.terms import Triple
from semantic.vocabulary import BROADER, DOMAIN, SUBCLASS, SUBPROPERTY, TYPE
from tests.strategies import CLASSES, CONCEPTS, PROPERTIES, Profile, Scenario, scenarios


def is_asked(triple: Triple, mentions: frozenset[Mention]) -> bool:
    return any(p in (None, triple[1]) and o in (None, triple[2]) for p, o in mentions)


asked = st.frozensets(
    st.tuples(
        st.sampled_from((*PROPERTIES, TYPE, SUBCLASS, None)),
        st.sampled_from((*CLASSES, *CONCEPTS, None)),
    ).filter(lambda mention: mention[0] is not None or mention[1] is None),
    max_size=4,
)


@given(scenarios(Profile(), entailment="rdfs"), asked)
def test_that_what_is_asked_for_is_derived(
    scenario: Scenario, mentions: frozenset[Mention]
) -> None:
    schema = Ontology(scenario.ontology, on_problem=lambda _: None).schema
    relevance = Relevance(schema, Mentions(mentions))
    for publication in scenario.publications:
        full = schema.close(publication.triples)
        restricted = relevance.close(publication.triples)
        assert restricted.keys() <= full.keys()
        missing = full.keys() - restricted.keys()
        assert not [triple for triple in missing if is_asked(triple, mentions)]


def test_that_a_high_taxonomy_costs_what_is_mentioned() -> None:
    names = [NamedNode(f"urn:c{n}") for n in range(1000)]
    ontology = Ontology([(low, SUBCLASS, high) for low, high in pairwise(names)])
    triple = (NamedNode("urn:x"), TYPE, names[0])
    mentions = Mentions([(TYPE, names[500]), (TYPE, names[900])])
    relevance = Relevance(ontology.schema, mentions)
    assert list(relevance.close([triple])) == [
        triple,
        (triple[0], TYPE, names[500]),
        (triple[0], TYPE, names[900]),
    ]
    mentions.remove([(TYPE, names[900])])
    assert len(relevance.close([triple])) == 2
    mentions.add([(TYPE, None)])
    assert len(relevance.close([triple])) == 1000


def test_that_unmentioned_properties_cost_nothing() -> None:
    p, q, r, c = (NamedNode(f"urn:{name}") for name in "pqrc")
    ontology = Ontology([(p, SUBPROPERTY, q), (q, SUBPROPERTY, r), (r, DOMAIN, c)])
    triple = (NamedNode("urn:x"), p, NamedNode("urn:y"))
    assert list(Relevance(ontology.schema, Mentions([(p, None)])).close([triple])) == [triple]
    closed = Relevance(ontology.schema, Mentions([(TYPE, c)])).close([triple])
    assert (triple[0], TYPE, c) in closed
    assert (triple[0], q, triple[2]) not in closed


def test_that_publications_are_enriched_as_far_as_asked() -> None:
    laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
    ontology = Ontology([(laptop, SUBCLASS, computer)])
    publication = Publication.of("p", [(NamedNode("urn:x"), TYPE, laptop)])
    relevance = Relevance(ontology.schema, Mentions())
    assert len(ontology.enrich(publication).triples) == 2
    assert len(relevance.close(publication.triples)) == 1


@given(scenarios(Profile(), entailment="rdfs"))
def test_that_hierarchies_put_back_give_the_closure(scenario: Scenario) -> None:
    ontology = Ontology(scenario.ontology, on_problem=lambda _: None)
    assert ontology.closure == ontology.schema.close(ontology.triples).keys()


def test_that_a_high_taxonomy_has_few_triples_until_asked() -> None:
    names = [NamedNode(f"urn:c{n}") for n in range(300)]
    ontology = Ontology([(low, SUBCLASS, high) for low, high in pairwise(names)])
    assert len(ontology.inference.background(())) == 299
    assert len(ontology.inference.background({SUBCLASS})) == 299 * 300 / 2


def test_that_a_topic_may_be_a_type() -> None:
    """A topic leads to broader ones, and by way of rdf:type to their superclasses."""
    p, c, d, e = (NamedNode(f"urn:{name}") for name in "pcde")
    ontology = Ontology([(p, SUBPROPERTY, TYPE), (c, BROADER, d), (d, SUBCLASS, e)])
    triple = (NamedNode("urn:x"), p, c)
    closed = Relevance(ontology.schema, Mentions([(TYPE, e)])).close([triple])
    assert (triple[0], TYPE, e) in closed

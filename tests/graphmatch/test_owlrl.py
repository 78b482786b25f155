"""RDFS entailment of an ontology and a publication, compared with owlrl."""

from __future__ import annotations

from hypothesis import given, settings

from graphmatch.knowledge import Knowledge
from semantic import Ontology, Publication
from semantic.terms import Triple
from tests.second_opinion import by_owlrl, ours, spoken
from tests.strategies import ontologies, publications


@settings(deadline=None, max_examples=100)
@given(ontologies(), publications())
def test_that_owlrl_agrees(stated: tuple[Triple, ...], publication: Publication) -> None:
    ontology = Ontology(spoken(stated), on_problem=lambda _: None)
    published = Publication.of("p", ontology.roots.rewrite(spoken(publication.triples)))
    knowledge = Knowledge(ontology)
    found = knowledge.closure.union(knowledge.follow(published.triples))
    assert ours(found) == ours(by_owlrl((*ontology.triples, *published.triples)))

"""An ontology's triples sorted by what they say: sameness, hierarchy, kinds of terms."""

from __future__ import annotations

from collections.abc import Container, Iterable

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.ontology.entailment import SCHEMA
from semantic.terms import Term, Triple
from semantic.vocabulary import (
    BROADER,
    BROADER_TRANSITIVE,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    INVERSE_OF,
    NARROWER,
    OWL,
    RDF,
    RDFS,
    SAME_AS,
    SKOS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)

SAMENESS = frozenset({SAME_AS, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY})
_CLASS_TYPES = frozenset({RDFS["Class"], OWL["Class"]})
_PROPERTY_TYPES = frozenset(
    {RDF["Property"], OWL["ObjectProperty"], OWL["DatatypeProperty"], OWL["AnnotationProperty"]}
)
LINKS = frozenset({TYPE, SUBCLASS, SUBPROPERTY, BROADER, NARROWER, BROADER_TRANSITIVE})
_BUILT_IN = frozenset(
    {
        (BROADER, SUBPROPERTY, BROADER_TRANSITIVE),
        (BROADER, INVERSE_OF, NARROWER),
        (NARROWER, INVERSE_OF, BROADER),
    }
)
"""What SKOS states of its own properties, and the rules know."""


def same_names(triples: Iterable[Triple]) -> list[tuple[NamedNode, NamedNode]]:
    """Return the pairs of named terms that are said to mean the same."""
    return [
        (s, o)
        for s, p, o in triples
        if p in SAMENESS and isinstance(s, NamedNode) and isinstance(o, NamedNode)
    ]


def gives_schema(triple: Triple) -> bool:
    """Whether a triple makes a property say what one of the schema's properties says."""
    subject, predicate, object_ = triple
    if triple in _BUILT_IN:
        return False
    if predicate == INVERSE_OF:
        return subject in SCHEMA or object_ in SCHEMA
    return predicate == SUBPROPERTY and object_ in SCHEMA


def edges_of(
    triples: Iterable[Triple], properties: Container[Term] = SCHEMA
) -> dict[str, list[tuple[Term, Term]]]:
    """Sort the is-a triples of these properties into the edges of the three taxonomies."""
    edges: dict[str, list[tuple[Term, Term]]] = {"classes": [], "properties": [], "concepts": []}
    for subject, predicate, object_ in triples:
        if isinstance(object_, Literal) or predicate not in properties:
            continue
        if predicate == SUBCLASS:
            edges["classes"].append((subject, object_))
        elif predicate == SUBPROPERTY:
            edges["properties"].append((subject, object_))
        elif predicate in (BROADER, BROADER_TRANSITIVE):
            edges["concepts"].append((subject, object_))
        elif predicate == NARROWER:
            edges["concepts"].append((object_, subject))
    return edges


def members_of(triples: Iterable[Triple]) -> dict[str, list[Term]]:
    """Sort the declared terms into the three taxonomies."""
    members: dict[str, list[Term]] = {"classes": [], "properties": [], "concepts": []}
    for subject, predicate, object_ in triples:
        if predicate == TYPE and not isinstance(subject, BlankNode):
            if object_ in _CLASS_TYPES:
                members["classes"].append(subject)
            elif object_ in _PROPERTY_TYPES:
                members["properties"].append(subject)
            elif object_ == SKOS["Concept"]:
                members["concepts"].append(subject)
    return members

"""What follows: RDFS and SKOS rules, on the publication's side.

The rules are those of docs/reference/semantics.md. An ontology's schema is compiled
once into look-up tables (all superclasses of a class, all superproperties, …), so
that a publication's triple leads to its consequences by a few look-ups, and a
publication of n triples costs O(n · consequences). A publication that states
schema of its own takes the general way (`semantic.ontology.rules`).

Source: RDF 1.1 Semantics, section 9.2.1 (rdfs2 to rdfs11); SKOS Reference,
sections 8 and 10; the broader-topic rule is ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term, Triple
from semantic.vocabulary import (
    BROADER,
    BROADER_TRANSITIVE,
    DOMAIN,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    INVERSE_OF,
    NARROWER,
    RANGE,
    RESERVED,
    SAME_AS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)

SCHEMA = frozenset(
    {
        SUBCLASS,
        SUBPROPERTY,
        DOMAIN,
        RANGE,
        INVERSE_OF,
        EQUIVALENT_CLASS,
        EQUIVALENT_PROPERTY,
        SAME_AS,
        BROADER,
        NARROWER,
        BROADER_TRANSITIVE,
    }
)
"""The properties whose triples are premises of rules, beside the data."""


Derived: TypeAlias = dict[Triple, Triple | None]
"""Triples, each with the one that it was derived from; a given one has ``None``."""


class Schema:
    """The compiled rules of one ontology.

    Parameters
    ----------
    triples
        The ontology's triples, roots put in.
    classes, properties, concepts
        Its taxonomies.
    """

    def __init__(
        self,
        triples: Iterable[Triple],
        classes: Taxonomy,
        properties: Taxonomy,
        concepts: Taxonomy,
    ) -> None:
        self.classes = classes
        self.properties = properties
        self.concepts = concepts
        self.domains = _pairs(triples, DOMAIN)
        self.ranges = _pairs(triples, RANGE)
        inverses = _pairs(triples, INVERSE_OF)
        both = [(p, q) for p, several in inverses.items() for q in several]
        both.append((BROADER, NARROWER))
        self.inverses = grouped([*both, *((q, p) for p, q in both)])
        self.hierarchies: Mapping[Term, Taxonomy] = {
            SUBCLASS: classes,
            SUBPROPERTY: properties,
            BROADER_TRANSITIVE: concepts,
        }

    def consequences(self, triple: Triple) -> Iterator[Triple]:
        """Yield what follows from one triple and the ontology's schema in one step."""
        yield from self.lighter_consequences(triple)
        subject, predicate, object_ = triple
        if (taxonomy := self.hierarchies.get(predicate)) is not None:
            for term in taxonomy.ancestors(object_):
                yield subject, predicate, term

    def lighter_consequences(self, triple: Triple) -> Iterator[Triple]:
        """Yield the same, less the hierarchies' own: that what is above is transitive."""
        subject, predicate, object_ = triple
        resource = isinstance(object_, NamedNode | BlankNode)
        for above in self.properties.ancestors(predicate):
            if isinstance(above, NamedNode):
                yield subject, above, object_
        for class_ in self.domains.get(predicate, ()):
            yield subject, TYPE, class_
        if resource:
            for class_ in self.ranges.get(predicate, ()):
                yield object_, TYPE, class_
            for inverse in self.inverses.get(predicate, ()):
                if isinstance(inverse, NamedNode):
                    yield object_, inverse, subject
        for term in self._standing_for(predicate, object_):
            yield subject, predicate, term
        if predicate == BROADER and not isinstance(object_, Literal):
            yield subject, BROADER_TRANSITIVE, object_

    def _standing_for(self, predicate: Term, object_: Term) -> tuple[Term, ...]:
        """Return the terms that an object also stands for."""
        if predicate == TYPE:
            return self.classes.ancestors(object_)
        return () if is_reserved(predicate) else self.concepts.ancestors(object_)

    def hierarchy(self, property_: Term) -> Iterator[Triple]:
        """Yield every pair of a hierarchy: ``rdfs:subClassOf`` and its kin, made transitive."""
        taxonomy = self.hierarchies[property_]
        for term in taxonomy:
            for above in taxonomy.ancestors(term):
                yield term, property_, above

    @cached_property
    def has_rules_on_hierarchies(self) -> bool:
        """Whether anything but transitivity follows from ``rdfs:subClassOf`` and its kin."""
        rules = (self.domains, self.ranges, self.inverses)
        return any(
            self.properties.parents(property_) or any(property_ in rule for rule in rules)
            for property_ in self.hierarchies
        )

    def close(self, triples: Iterable[Triple]) -> Derived:
        """Return the triples and all that follows from them; see `close`."""
        return close(triples, self.consequences)


def close(triples: Iterable[Triple], consequences: Callable[[Triple], Iterable[Triple]]) -> Derived:
    """Return the triples and all that follows from them step by step, in order of derivation."""
    closed: dict[Triple, Triple | None] = dict.fromkeys(triples)
    agenda = list(closed)
    for triple in agenda:
        for consequence in consequences(triple):
            if consequence not in closed:
                closed[consequence] = triple
                agenda.append(consequence)
    return closed


def is_reserved(predicate: Term) -> bool:
    """Whether a property belongs to a vocabulary that speaks about ontologies."""
    return isinstance(predicate, NamedNode) and predicate.value.startswith(RESERVED)


def states_schema(triples: Iterable[Triple]) -> bool:
    """Whether any of the triples is a premise of a rule beside the data."""
    return any(triple[1] in SCHEMA for triple in triples)


def _pairs(triples: Iterable[Triple], predicate: NamedNode) -> Mapping[Term, tuple[Term, ...]]:
    return grouped(
        (s, o)
        for s, p, o in triples
        if p == predicate and not isinstance(o, Literal) and not isinstance(s, BlankNode)
    )


def grouped(pairs: Iterable[tuple[Term, Term]]) -> Mapping[Term, tuple[Term, ...]]:
    """Return the second terms of each first one, each once."""
    table: defaultdict[Term, dict[Term, None]] = defaultdict(dict)
    for key, value in pairs:
        table[key][value] = None
    return {key: tuple(values) for key, values in table.items()}

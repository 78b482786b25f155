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
from collections.abc import Iterable, Iterator, Mapping

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
        self._classes = classes
        self.properties = properties
        self._concepts = concepts
        self._domains = _pairs(triples, DOMAIN)
        self._ranges = _pairs(triples, RANGE)
        inverses = _pairs(triples, INVERSE_OF)
        both = [(p, q) for p, several in inverses.items() for q in several]
        both.append((BROADER, NARROWER))
        self._inverses = _table([*both, *((q, p) for p, q in both)])

    def consequences(self, triple: Triple) -> Iterator[Triple]:
        """Yield what follows from one triple and the ontology's schema in one step."""
        subject, predicate, object_ = triple
        resource = isinstance(object_, NamedNode | BlankNode)
        for above in self.properties.ancestors(predicate):
            if isinstance(above, NamedNode):
                yield subject, above, object_
        for class_ in self._domains.get(predicate, ()):
            yield subject, TYPE, class_
        if resource:
            for class_ in self._ranges.get(predicate, ()):
                yield object_, TYPE, class_
            for inverse in self._inverses.get(predicate, ()):
                if isinstance(inverse, NamedNode):
                    yield object_, inverse, subject
        yield from self._hierarchy(subject, predicate, object_)

    def _hierarchy(self, subject: Term, predicate: Term, object_: Term) -> Iterator[Triple]:
        above: tuple[Term, ...] = ()
        if predicate in (TYPE, SUBCLASS):
            above = self._classes.ancestors(object_)
        elif predicate == SUBPROPERTY:
            above = self.properties.ancestors(object_)
        elif predicate == BROADER:
            if not isinstance(object_, Literal):
                yield subject, BROADER_TRANSITIVE, object_
        elif predicate == BROADER_TRANSITIVE or not is_reserved(predicate):
            above = self._concepts.ancestors(object_)
        for term in above:
            yield subject, predicate, term

    def close(self, triples: Iterable[Triple]) -> dict[Triple, Triple | None]:
        """Return the triples and all that follows from them, in order of derivation.

        Each is mapped to the triple that it was derived from; a given one to ``None``.
        """
        closed: dict[Triple, Triple | None] = dict.fromkeys(triples)
        agenda = list(closed)
        for triple in agenda:
            for consequence in self.consequences(triple):
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
    return _table(
        (s, o)
        for s, p, o in triples
        if p == predicate and not isinstance(o, Literal) and not isinstance(s, BlankNode)
    )


def _table(pairs: Iterable[tuple[Term, Term]]) -> Mapping[Term, tuple[Term, ...]]:
    table: defaultdict[Term, dict[Term, None]] = defaultdict(dict)
    for key, value in pairs:
        table[key][value] = None
    return {key: tuple(values) for key, values in table.items()}

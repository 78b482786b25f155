"""What follows: the rules of docs/reference/semantics.md, section 2, in Python.

The engine's core has rules of its own, limited to what subscriptions ask for. These here give
everything, for mapping functions, for explanations, and as a second opinion.

A triple leads to its consequences by look-ups in the ontology's `Schema`: cost is linear in what
follows, whatever the height of the hierarchies. Schema that a publication states itself
counts, too: then each of its links is also joined with what is known already, here and in the
ontology's closure.

Source: RDF 1.1 Semantics, section 9.2.1 (rdfs2 to rdfs11); SKOS Reference, sections 8 and 10; the
rules *topic* and *name* are ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.ontology.taxonomy import Taxonomy, edges_of
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

StandingFor: TypeAlias = Callable[[Iterable[Triple]], Iterable[Triple]]
"""Returns triples with terms in the place of the texts that name them: the rule *name*."""

Table: TypeAlias = Mapping[Term, tuple[Term, ...]]

_OF_SKOS = frozenset(
    {
        (BROADER, SUBPROPERTY, BROADER_TRANSITIVE),
        (BROADER, INVERSE_OF, NARROWER),
        (NARROWER, INVERSE_OF, BROADER),
    }
)
"""What SKOS states of its own properties, and the rules know."""


class Schema:
    """What an ontology says for rules to look up.

    Parameters
    ----------
    triples
        The ontology's with a property of `SCHEMA`, root terms put in.
    """

    def __init__(self, triples: Iterable[Triple]) -> None:
        triples = tuple(triples)
        edges = edges_of(triples)
        self.classes = Taxonomy(edges["classes"])
        self.properties = Taxonomy(edges["properties"])
        self.concepts = Taxonomy(edges["concepts"])
        self.domains = _table(triples, DOMAIN)
        self.ranges = _table(triples, RANGE)
        inverses = [(p, q) for p, several in _table(triples, INVERSE_OF).items() for q in several]
        inverses.append((BROADER, NARROWER))
        self.inverses = grouped([*inverses, *((q, p) for p, q in inverses)])
        self.hierarchies: Mapping[Term, Taxonomy] = {
            SUBCLASS: self.classes,
            SUBPROPERTY: self.properties,
            BROADER_TRANSITIVE: self.concepts,
        }
        self.said: Mapping[Term, Callable[[Term], tuple[Term, ...]]] = {
            **{property_: tree.parents for property_, tree in self.hierarchies.items()},
            DOMAIN: lambda term: self.domains.get(term, ()),
            RANGE: lambda term: self.ranges.get(term, ()),
            INVERSE_OF: lambda term: self.inverses.get(term, ()),
        }
        """What is said of a term by a property: of hierarchies what is directly above."""

    @classmethod
    def of(cls, groups: Mapping[Term, Sequence[Triple]], standing_for: StandingFor) -> Schema:
        """Return the schema of an ontology, that included which its own rules give.

        An ontology may state its schema by properties of its own: by sub-properties or inverses
        of ``rdfs:subClassOf``, say.

        Parameters
        ----------
        groups
            Its triples by property, root terms put in.
        """
        known = dict.fromkeys(t for p in groups if p in SCHEMA for t in groups[p])
        while True:
            schema = cls(known)
            if not any(map(_gives_schema, known)):
                return schema
            giving = (t for p in _leading_to_schema(known) for t in groups.get(p, ()))
            closed = _Closing(schema, standing_for).close((*known, *giving))
            more = [triple for triple in closed if triple[1] in SCHEMA and triple not in known]
            if not more:
                return schema
            known |= dict.fromkeys(more)

    @property
    def has_rules_on_hierarchies(self) -> bool:
        """Whether anything follows from pairs of a hierarchy that does not from its links."""
        return any(self.properties.parents(p) or p in self.inverses for p in self.hierarchies)


def _gives_schema(triple: Triple) -> bool:
    """Whether a triple makes a property say what one of the schema's properties says."""
    subject, predicate, object_ = triple
    if triple in _OF_SKOS:
        return False
    if predicate == INVERSE_OF:
        return subject in SCHEMA or object_ in SCHEMA
    return predicate == SUBPROPERTY and object_ in SCHEMA


def _leading_to_schema(schema: Iterable[Triple]) -> dict[Term, None]:
    """Return the properties from whose triples schema may follow."""
    links: list[tuple[Term, Term]] = []
    for subject, predicate, object_ in schema:
        if predicate in (SUBPROPERTY, INVERSE_OF):
            links.append((subject, object_))
        if predicate == INVERSE_OF:
            links.append((object_, subject))
        elif predicate in (DOMAIN, RANGE):
            links.append((subject, TYPE))
    tree = Taxonomy(links)
    return dict.fromkeys(
        below for p in sorted(SCHEMA, key=str) for below in (p, *tree.descendants(p))
    )


def _table(triples: Iterable[Triple], predicate: NamedNode) -> Table:
    return grouped((s, o) for s, p, o in triples if p == predicate and not isinstance(o, Literal))


def grouped(pairs: Iterable[tuple[Term, Term]]) -> Table:
    """Return the second terms of each first one, each once."""
    table: defaultdict[Term, dict[Term, None]] = defaultdict(dict)
    for key, value in pairs:
        table[key][value] = None
    return {key: tuple(values) for key, values in table.items()}


def is_reserved(predicate: Term) -> bool:
    """Whether a property belongs to a vocabulary that speaks about ontologies."""
    return isinstance(predicate, NamedNode) and predicate.value.startswith(RESERVED)


class Inference:
    """Applies the rules.

    Parameters
    ----------
    triples
        The ontology's, root terms put in.
    schema
        What it says for rules to look up.
    standing_for
        The rule *name*.

    Examples
    --------
    >>> from semantic.vocabulary import SUBCLASS, TYPE
    >>> laptop, computer, x = (NamedNode(f"urn:{name}") for name in ("laptop", "computer", "x"))
    >>> schema = Schema([(laptop, SUBCLASS, computer)])
    >>> inference = Inference([(laptop, SUBCLASS, computer)], schema, lambda _: ())
    >>> (x, TYPE, computer) in inference.follow([(x, TYPE, laptop)])
    True
    """

    def __init__(
        self, triples: Sequence[Triple], schema: Schema, standing_for: StandingFor
    ) -> None:
        self._triples = triples
        self._schema = schema
        self._standing_for = standing_for

    @cached_property
    def closure(self) -> frozenset[Triple]:
        """Everything that follows from the ontology alone: C(O).

        A high hierarchy of n terms has many more than n pairs.
        """
        return frozenset(self._background.find(None, None, None))

    def follow(self, triples: Iterable[Triple]) -> Derived:
        """Return a publication's triples and all that follows from them: E(P).

        Parameters
        ----------
        triples
            Root terms put in; they come first in what is returned.
        """
        return _Closing(self._schema, self._standing_for, lambda: self._background).close(triples)

    @cached_property
    def _background(self) -> _Background:
        closed = _Closing(self._schema, self._standing_for).close(self._triples)
        return _Background(closed, self._schema.hierarchies)


class _Graph:
    """Triples that can be looked up by any of their terms."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._triples: list[Triple] = []
        self._by: defaultdict[tuple[int, Term], list[Triple]] = defaultdict(list)
        for triple in triples:
            self.add(triple)

    def add(self, triple: Triple) -> None:
        """Add a triple that is not there yet."""
        self._triples.append(triple)
        for place, term in enumerate(triple):
            self._by[place, term].append(triple)

    def find(self, *wanted: Term | None) -> list[Triple]:
        """Return the triples with the given terms; ``None`` stands for any."""
        fixed = [(place, term) for place, term in enumerate(wanted) if term is not None]
        rows = min((self._by.get(key, []) for key in fixed), key=len, default=self._triples)
        return [t for t in rows if all(t[place] == term for place, term in fixed)]


class _Background(_Graph):
    """What follows from an ontology; pairs of its hierarchies are walked, and not kept."""

    def __init__(self, triples: Iterable[Triple], hierarchies: Mapping[Term, Taxonomy]) -> None:
        super().__init__(triples)
        self._hierarchies = hierarchies

    def find(self, *wanted: Term | None) -> list[Triple]:
        """Return the triples with the given terms; ``None`` stands for any."""
        subject, predicate, object_ = wanted
        found = dict.fromkeys(super().find(*wanted))
        for property_, taxonomy in self._hierarchies.items():
            if predicate is None or predicate == property_:
                pairs = _pairs(taxonomy, subject, object_)
                found.update(((below, property_, above), None) for below, above in pairs)
        return list(found)


def _pairs(
    taxonomy: Taxonomy, below: Term | None, above: Term | None
) -> Iterator[tuple[Term, Term]]:
    if below is None and above is not None:
        yield from ((term, above) for term in taxonomy.descendants(above))
        return
    for term in taxonomy if below is None else (below,):
        yield from ((term, other) for other in taxonomy.ancestors(term) if above in (None, other))


class _Closing:
    """The rules, applied to triples until nothing is new.

    Parameters
    ----------
    schema
        The ontology's.
    standing_for
        The rule *name*.
    background
        What follows from the ontology, for triples that may state schema of their own; ``None``
        where they are the ontology's. Of these no pairs of hierarchies are made that nothing
        else follows from.
    """

    def __init__(
        self,
        schema: Schema,
        standing_for: StandingFor,
        background: Callable[[], _Background] | None = None,
    ) -> None:
        self._schema = schema
        self._standing_for = standing_for
        self._background = background
        self._makes_pairs = background is not None or schema.has_rules_on_hierarchies
        self._closed: Derived = {}
        self._agenda: list[Triple] = []
        self._own: dict[Term, defaultdict[Term, list[Term]]] = {}
        """Schema that these triples state: property, subject, objects."""
        self._links: set[Triple] = set()
        """The triples in `_own`: all but pairs that only say that a hierarchy is transitive."""
        self._graph: _Graph | None = None
        """All triples so far, where any of them is schema."""

    def close(self, triples: Iterable[Triple]) -> Derived:
        """Return the triples and all that follows, in the order of derivation."""
        for triple in triples:
            self._put(triple, None)
        for triple in self._agenda:
            self._apply(triple)
            if self._own:
                self._apply_same(triple)
                if triple in self._links:
                    self._apply_link(triple)
        return self._closed

    def _put(self, triple: Triple, source: Triple | None, *, is_pair: bool = False) -> bool:
        """Take a triple in; return whether it is new."""
        if triple in self._closed:
            return False
        self._closed[triple] = source
        self._agenda.append(triple)
        if self._background is None:
            return True
        subject, predicate, object_ = triple
        if self._graph is not None:
            self._graph.add(triple)
        if predicate in SCHEMA and not is_pair and not isinstance(object_, Literal):
            if self._graph is None:
                self._graph = _Graph(self._closed)
                self._own = {property_: defaultdict(list) for property_ in SCHEMA}
            self._links.add(triple)
            self._own[predicate][subject].append(object_)
            if predicate == INVERSE_OF:
                self._own[predicate][object_].append(subject)
        return True

    def _add(self, subject: Term, predicate: Term, object_: Term, source: Triple) -> bool:
        """Take a conclusion in, if it is a triple; return whether it is new."""
        if isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode):
            return self._put((subject, predicate, object_), source)
        return False

    def _said(self, property_: Term, term: Term) -> tuple[Term, ...]:
        said = self._schema.said[property_](term)
        own = self._own[property_].get(term) if self._own else None
        return (*said, *own) if own else said

    # -- a triple as data -------------------------------------------------------------------

    def _apply(self, triple: Triple) -> None:
        """Add what follows from a triple by the schema, the ontology's and its own."""
        subject, predicate, object_ = triple
        self._climb(SUBPROPERTY, 1, triple)
        for class_ in self._said(DOMAIN, predicate):
            self._add(subject, TYPE, class_, triple)
        for class_ in self._said(RANGE, predicate):
            self._add(object_, TYPE, class_, triple)
        for inverse in self._said(INVERSE_OF, predicate):
            self._add(object_, inverse, subject, triple)
        if isinstance(object_, Literal):
            for named in self._standing_for((triple,)):
                self._put(named, triple)
        elif predicate == TYPE:
            self._climb(SUBCLASS, 2, triple)
        elif not is_reserved(predicate):
            self._climb(BROADER_TRANSITIVE, 2, triple)
        elif predicate == BROADER:
            self._add(subject, BROADER_TRANSITIVE, object_, triple)
        elif predicate in self._schema.hierarchies and self._makes_pairs:
            self._climb(predicate, 2, triple)

    def _climb(self, link: Term, place: int, triple: Triple) -> None:
        """Put all that is above a term in its place, as far up as that is not there yet."""
        if not self._said(link, triple[place]):
            return
        terms = list(triple)
        queue = [triple[place]]
        seen = set(queue)
        for current in queue:
            for above in self._said(link, current):
                if above in seen:
                    continue
                seen.add(above)
                terms[place] = above
                subject, predicate, object_ = terms
                # what is above a blank node is not found by way of triples with it as property
                is_pair = link == triple[1] and place == 2 and not isinstance(current, BlankNode)
                if not isinstance(predicate, NamedNode) or self._put(
                    (subject, predicate, object_), triple, is_pair=is_pair
                ):
                    queue.append(above)

    # -- a triple as schema of its own ------------------------------------------------------

    def _known(self, *wanted: Term | None) -> list[Triple]:
        """Return the triples here and in the ontology's closure that have the given terms."""
        if self._graph is None or self._background is None:
            return []
        return [*self._graph.find(*wanted), *self._background().find(*wanted)]

    def _apply_same(self, triple: Triple) -> None:
        """Add what is said of other names of a triple's terms."""
        subject, predicate, object_ = triple
        same = self._own[SAME_AS]
        for other in same.get(subject, ()):
            if other != subject:
                self._add(other, predicate, object_, triple)
        for other in same.get(object_, ()):
            if other != object_:
                self._add(subject, predicate, other, triple)

    def _apply_link(self, link: Triple) -> None:
        """Add what follows from a triple of schema and what is known already."""
        one, says, other = link
        if says == DOMAIN:
            for s, _, _ in self._known(None, one, None):
                self._add(s, TYPE, other, link)
        elif says == RANGE:
            for _, _, o in self._known(None, one, None):
                self._add(o, TYPE, other, link)
        elif says == INVERSE_OF:
            for property_, inverse in ((one, other), (other, one)):
                for s, _, o in self._known(None, property_, None):
                    self._add(o, inverse, s, link)
        elif says == SUBPROPERTY:
            for s, _, o in self._known(None, one, None):
                self._add(s, other, o, link)
        elif says == SUBCLASS:
            for s, _, _ in self._known(None, TYPE, one):
                self._add(s, TYPE, other, link)
        elif says == BROADER_TRANSITIVE:
            for s, p, _ in self._known(None, None, one):
                if not is_reserved(p):
                    self._add(s, p, other, link)
        elif says == SAME_AS:
            self._apply_sameness(link)
        elif says in (EQUIVALENT_CLASS, EQUIVALENT_PROPERTY):
            above = SUBCLASS if says == EQUIVALENT_CLASS else SUBPROPERTY
            self._add(one, above, other, link)
            self._add(other, above, one, link)
        if says in self._schema.hierarchies:
            for s, _, _ in self._known(None, says, one):
                self._put((s, says, other), link, is_pair=not isinstance(one, BlankNode))

    def _apply_sameness(self, link: Triple) -> None:
        one, _, other = link
        self._add(other, SAME_AS, one, link)
        if one != other:
            for _, p, o in self._known(one, None, None):
                self._add(other, p, o, link)
            for s, p, _ in self._known(None, None, one):
                self._add(s, p, other, link)

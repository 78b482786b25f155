"""Near misses: the triples and values of a publication closest to a failed pattern or filter.

For a triple pattern, these are the triples that share the most terms with it. Ties are broken by
the number of is-a links between the objects. For a filter, they are the values nearest to its
constant: numbers, times and quantities by their difference, a term and a class by the number of
links between them through their nearest common ancestor.

Cost: one pass over the triples, or over the first 1,000 solutions.

Source of the distance of terms: Rada, Mili, Bicknell and Blettner: Development and application of a
metric on semantic nets, IEEE Transactions on Systems, Man, and Cybernetics 19(1), 1989.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from graphmatch._native import Evaluation
from graphmatch.explain.evidence import LOOKED_AT, first, in_ntriples, instance, solutions
from graphmatch.explain.provenance import Provenance
from semantic.attributes.names import attribute, isa_name_of, name_of
from semantic.branch import (
    AnyOf,
    Branch,
    Comparison,
    Filter,
    TaxonomyOperator,
    TaxonomyTest,
    TriplePattern,
    Unequal,
)
from semantic.errors import listed
from semantic.ontology.ontology import Links, Ontology
from semantic.terms import Term, Triple, compact
from semantic.units.quantities import without_unit
from semantic.values import ComparisonOperator, Instant, Number, Quantity, compare, value_of
from semantic.vocabulary import OWL, RDF, RDFS, SKOS, TYPE

MAX_NEAR_MISSES = 3
"""Maximum number of near misses, and of values in one of them, to show."""
_ABOVE_ALL = tuple(namespace.iri for namespace in (OWL, RDF, RDFS, SKOS))
"""Namespaces with classes above nearly all terms, which are useless as common ancestors."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A near miss: a triple close to a failed condition.

    Parameters
    ----------
    triple
        A triple of the publication, stated or derived, or of the ontology.
    why
        Why it does not match; empty if the triple shows it.
    reasons
        Why the triple holds, as in `Evidence`.
    """

    triple: Triple
    why: str = ""
    reasons: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the near miss for JSON."""
        triple, reasons = in_ntriples(self.triple), list(self.reasons)
        return {"triple": triple, "because": reasons, "but": self.why or None}


@dataclass(frozen=True, slots=True)
class Miss:
    """The distance of a term from a condition, infinite if unknown, and its description, if any."""

    distance: Fraction | float
    why: str = ""


UNKNOWN = Miss(math.inf)


class NearMissFinder:
    """Finds the triples and values of one publication that are closest to a failed condition."""

    def __init__(self, evaluation: Evaluation, provenance: Provenance) -> None:
        self.evaluation, self.provenance = evaluation, provenance
        self._distances = Distances(provenance.ontology, provenance.links, provenance.language)

    # -- patterns ---------------------------------------------------------------------------

    def to_pattern(self, pattern: TriplePattern) -> tuple[NearMiss, ...]:
        """Return the triples that share the most terms with a pattern without matches, best first.

        If the pattern tests the class of an attribute, return the attribute's values instead.
        """
        if (name := isa_name_of(pattern.predicate)) is not None:
            return self._to_class(pattern, name)
        publication = self.provenance.publication
        triples = publication.visible_to_all
        # Only a pattern that names an attribute can match the triples of derived attributes.
        if name_of(pattern.predicate) is not None:
            triples = publication.triples
        sharing = {t: sum(map(operator.eq, pattern, t)) for t in triples}
        most = max(sharing.values(), default=0)
        found = self._without_derived([t for t in triples if most and sharing[t] == most])
        return self._nearest((triple, self._object_miss(pattern, triple)) for triple in found)

    def _nearest(self, misses: Iterable[tuple[Triple, Miss]]) -> tuple[NearMiss, ...]:
        """Return the near misses with the smallest distances."""
        best = sorted(misses, key=lambda each: each[1].distance)[:MAX_NEAR_MISSES]
        return tuple(NearMiss(t, miss.why, tuple(self.provenance.reasons(t))) for t, miss in best)

    def _without_derived(self, triples: Sequence[Triple]) -> list[Triple]:
        """Return the triples without those that were derived from another one of them."""
        chosen = frozenset(triples)
        return [t for t in triples if not chosen.intersection(self.provenance.sources(t))]

    def _object_miss(self, pattern: TriplePattern, triple: Triple) -> Miss:
        """Return how far a triple's object is from a pattern's, if only the objects differ.

        The distance is unknown if other terms differ too.
        """
        wanted, given = pattern.object, triple[2]
        if isinstance(wanted, Variable) or wanted == given or pattern.predicate != triple[1]:
            return UNKNOWN
        if not isinstance(pattern.subject, Variable) and pattern.subject != triple[0]:
            return UNKNOWN
        if isinstance(wanted, Literal):
            return self._texts(wanted, given)
        if isinstance(given, Literal | BlankNode) and given not in self.provenance.links:
            return UNKNOWN
        known = self.provenance.ontology
        if not (known.parents(wanted) or known.children(wanted)):
            return UNKNOWN
        return self._distances.not_below(given, wanted)

    def _texts(self, wanted: Literal, given: Term) -> Miss:
        """Return why a literal does not match, if it is like the wanted one."""
        if not isinstance(given, Literal):
            return UNKNOWN
        if compare(given, ComparisonOperator.EQ, wanted):
            return Miss(0, "the values are equal, but a pattern needs the same term")
        if wanted.value == given.value:
            return Miss(0, "the strings are equal, but not their languages or datatypes")
        if wanted.value.casefold() == given.value.casefold():
            return Miss(1, "the strings differ only in upper and lower case")
        return UNKNOWN

    def _to_class(self, pattern: TriplePattern, name: str) -> tuple[NearMiss, ...]:
        """Return the triples of the attribute `name` whose values are closest to a pattern's class.

        If there are none, return ``rdf:type`` triples.
        """
        triples, wanted = self.provenance.publication.triples, pattern.object
        valued = [t for t in triples if t[1] == attribute(name)]
        found = valued or [t for t in triples if t[1] == TYPE]
        if isinstance(wanted, Variable):
            return self._nearest((t, UNKNOWN) for t in found)
        stated = self._without_derived(found)
        return self._nearest((t, self._class_miss(t[2], wanted)) for t in stated)

    def _class_miss(self, value: Term, wanted: Term) -> Miss:
        classes = self.provenance.classes_called(value) if isinstance(value, Literal) else (value,)
        misses = [self._distances.not_below(each, wanted) for each in classes]
        unnamed = Miss(math.inf, f"no class or concept is called {value}")
        return min(misses, key=lambda miss: miss.distance, default=unnamed)

    # -- filters ----------------------------------------------------------------------------

    def to_filter(self, branch: Branch, filter_: Filter) -> tuple[Term, tuple[NearMiss, ...]]:
        """Return the value closest to passing a filter, and triples that have the closest values.

        The values are those of the filter's variable in the solutions of `branch`.
        """
        name = filter_.variable.value
        binding = next(p for p in branch.patterns if filter_.variable in p.variables)
        values: dict[Term, Triple] = {}
        for solution in solutions(self.evaluation, branch, None, LOOKED_AT):
            values.setdefault(solution[name], instance(binding, solution))
        misses = {value: self._distances.miss(filter_, value) for value in values}
        nearest = min(values, key=lambda value: misses[value].distance)
        return nearest, self._nearest((values[value], miss) for value, miss in misses.items())

    # -- joins ------------------------------------------------------------------------------

    def apart(self, pattern: TriplePattern, before: Sequence[TriplePattern], words: Wording) -> str:
        """Return why a pattern matches, but not together with the patterns `before` it.

        If it excludes one of them, name a variable without a common value.
        """
        met = f"{words.pattern(pattern)} matches, but not together with"
        apart = (o for o in before if first(self.evaluation, Branch((o, pattern))) is None)
        if (other := next(apart, None)) is None:
            return f"{met} all of {words.conjunction(before)}"
        met = f"{met} {words.pattern(other)}:"
        for variable in sorted(pattern.variables & other.variables, key=str):
            one, two = (self._values(p, variable) for p in (pattern, other))
            if not one.keys() & two.keys():
                shown = words.variable(variable)
                here, there = (
                    listed(list(map(words.term, v)), MAX_NEAR_MISSES) for v in (one, two)
                )
                return f"{met} {shown} is {here} in the first, {there} in the second"
        return f"{met} no two triples have the same values of all shared variables"

    def _values(self, pattern: TriplePattern, variable: Variable) -> dict[Term, None]:
        found = solutions(self.evaluation, Branch((pattern,)))
        return dict.fromkeys(solution[variable.value] for solution in found)


class Distances:
    """Measures and describes how far a term is from passing a filter or belonging to a class.

    `links` are the is-a links that the publication states; `language` is that of labels.

    Examples
    --------
    >>> from pyoxigraph import Variable
    >>> from semantic.ontology.ontology import Ontology
    >>> distances = Distances(Ontology(), {})
    >>> at_most = Comparison(Variable("x"), ComparisonOperator.LE, Literal(400))
    >>> distances.miss(at_most, Literal(412))
    Miss(distance=Fraction(12, 1), why='')
    """

    def __init__(self, ontology: Ontology, links: Links, language: str = "en") -> None:
        self._ontology, self._links, self._language = ontology, links, language

    def miss(self, filter_: Filter, term: Term) -> Miss:
        """Return how far a term is from passing a filter that is false for it."""
        match filter_:
            case AnyOf(_, tests):
                misses = [self.miss(test, term) for test in tests]
                return min(misses, key=lambda miss: miss.distance)
            case Comparison(_, _, constant):
                return Miss(_difference(term, constant))
            case TaxonomyTest(_, operator, concept):
                return self._unrelated(term, operator, concept)
        return UNKNOWN

    def _shown(self, term: Term) -> str:
        return self._ontology.shown_names.shown(term, self._language)

    # -- taxonomies -------------------------------------------------------------------------

    def _unrelated(self, term: Term, operator: TaxonomyOperator, concept: Term) -> Miss:
        if operator is TaxonomyOperator.ANCESTOR:
            return self.not_below(concept, term)
        path = self._ontology.path(term, concept, self._links)
        if operator is TaxonomyOperator.CHILD and len(path) > 1:
            way = " ⊑ ".join(self._shown(node) for node in path)
            return Miss(len(path) - 2, f"it is not directly below: {way}")
        return self.not_below(term, concept)

    def not_below(self, low: Term, high: Term) -> Miss:
        """Return the number of is-a links between `low` and `high`, which is not its ancestor.

        It is infinite if they have no common ancestor.

        Examples
        --------
        >>> from semantic.ontology.ontology import Ontology
        >>> from semantic.vocabulary import SUBCLASS
        >>> phone, laptop, product = (NamedNode(f"urn:{n}") for n in ("phone", "laptop", "product"))
        >>> known = Ontology([(phone, SUBCLASS, product), (laptop, SUBCLASS, product)])
        >>> Distances(known, {}).not_below(phone, laptop)
        Miss(distance=2, why='<urn:phone> is not below <urn:laptop>: both are below <urn:product>')
        """
        says = f"{self._shown(low)} is not below {self._shown(high)}"
        mine, theirs = self._above(low), self._above(high)
        both = (term for term in mine if term in theirs and not _is_above_all(term))
        common = sorted(both, key=lambda term: mine[term] + theirs[term])
        if not common:
            return Miss(math.inf, f"{says}: they have no common ancestor")
        distance = mine[common[0]] + theirs[common[0]]
        if self._ontology.root(low) in theirs:
            return Miss(distance, f"{says}: it is more general")
        return Miss(distance, f"{says}: both are below {self._shown(common[0])}")

    def _above(self, term: Term) -> dict[Term, int]:
        """Return the term and its ancestors, each with the number of links to it."""
        steps = {self._ontology.root(term): 0}
        queue = list(steps)
        for current in queue:
            for parent in (*self._ontology.parents(current), *self._links.get(current, ())):
                if parent not in steps:
                    steps[parent] = steps[current] + 1
                    queue.append(parent)
        return steps


def _is_above_all(term: Term) -> bool:
    return isinstance(term, NamedNode) and term.value.startswith(_ABOVE_ALL)


def _difference(term: Term, constant: NamedNode | Literal) -> Fraction | float:
    """Return the distance of two values, infinite without a common scale."""
    if not (isinstance(term, Literal) and isinstance(constant, Literal)):
        return math.inf
    match value_of(term), value_of(constant):
        case Number(one), Number(other) if math.isfinite(one) and math.isfinite(other):
            return abs(Fraction(one) - Fraction(other))
        case Instant() as time, Instant() as bound:
            if (time.kind, time.zoned) == (bound.kind, bound.zoned):
                return abs(Fraction(time.seconds) - Fraction(bound.seconds))
        case Quantity(one, unit), Quantity(other, same) if unit == same:
            return abs(one - other)
    return math.inf


class Wording:
    """Writes the conditions of a branch for people.

    If all patterns of the branch are attributes of one subject, conditions are constraints on these
    attributes; otherwise they are SPARQL.

    Examples
    --------
    >>> from graphmatch.subscription import AttributeSubscription
    >>> from semantic.vocabulary import PREFIXES
    >>> where = {"price.value": {"<=": 400}, "brand": "Acme"}
    >>> branch = AttributeSubscription.of("alice", where).branches[0]
    >>> words = Wording(branch, PREFIXES)
    >>> words.conjunction(branch.patterns), words.filter(branch.filters[0])
    ('price.value exists and brand = "Acme"', 'price.value <= 400')
    """

    def __init__(self, branch: Branch, prefixes: Mapping[str, str]) -> None:
        self.prefixes = prefixes
        named = [_attribute_of(pattern) for pattern in branch.patterns]
        subjects = {pattern.subject for pattern in branch.patterns}
        self.of_attributes = len(subjects) == 1 and all(name is not None for name in named)
        self._names: dict[Variable, str] = {}
        if self.of_attributes:
            for pattern, name in zip(branch.patterns, named, strict=True):
                if isinstance(pattern.object, Variable) and name is not None:
                    self._names.setdefault(pattern.object, name)

    def pattern(self, pattern: TriplePattern) -> str:
        """Return a pattern as `attribute = term` (or `isa` a class, or `exists`), or as SPARQL."""
        name = _attribute_of(pattern)
        if not self.of_attributes or name is None:
            return pattern.write(self.prefixes)
        if isinstance(pattern.object, Variable):
            return f"{name} exists"
        sign = "isa" if isa_name_of(pattern.predicate) is not None else "="
        return f"{name} {sign} {compact(pattern.object, self.prefixes)}"

    def conjunction(self, patterns: Iterable[TriplePattern]) -> str:
        """Return several patterns, joined by ``and``, or by `` . `` as in SPARQL."""
        return (" and " if self.of_attributes else " . ").join(map(self.pattern, patterns))

    def variable(self, variable: Variable) -> str:
        """Return the name of the attribute whose value a variable is; without one, the variable."""
        return self._names.get(variable, str(variable))

    def filter(self, filter_: Filter) -> str:
        """Return a filter as `name operator constant`, or as SPARQL if its variable has no name."""
        name = self._names.get(filter_.variable)
        if name is None:
            return f"FILTER({filter_.write(self.prefixes)})"
        if isinstance(filter_, AnyOf) and filter_.word != "IN":
            return " || ".join(map(self.filter, filter_.tests))
        if isinstance(filter_, Comparison | Unequal):
            return f"{name} {filter_.word} {self.term(filter_.constant)}"
        return filter_.write(self.prefixes).replace(str(filter_.variable), name, 1)

    def term(self, term: Term) -> str:
        """Return a term in SPARQL, with prefixes."""
        return compact(term, self.prefixes)


def _attribute_of(pattern: TriplePattern) -> str | None:
    """Return the name of the attribute that a pattern tests; ``None`` for another property."""
    property_ = without_unit(pattern.predicate)
    name = name_of(property_)
    return isa_name_of(property_) if name is None else name

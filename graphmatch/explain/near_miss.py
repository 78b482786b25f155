"""Near misses: the triples and values of a publication closest to a failed pattern or filter.

For a triple pattern, these are the triples that share the most terms with it. Ties are broken by
the number of is-a links between the objects. For a filter, they are the values nearest to its
constant. The distance of two numbers, times or quantities is exact if both are exact. The distance
of a term and a class is the number of links between them through their nearest common ancestor.

Cost: one pass over the triples, or over the first 1,000 solutions.

Source of the distance of terms: Rada, Mili, Bicknell and Blettner: Development and application of a
metric on semantic nets, IEEE Transactions on Systems, Man, and Cybernetics 19(1), 1989.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain, islice, zip_longest

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from graphmatch._native import Evaluation
from graphmatch.explain.evidence import LOOKED_AT, in_ntriples, instance, solutions
from graphmatch.explain.provenance import Provenance
from semantic.attributes.names import attribute, isa_name_of, name_of, steps
from semantic.branch import (
    AnyOf,
    Branch,
    Comparison,
    Filter,
    TaxonomyOperator,
    TaxonomyTest,
    TermPart,
    TextTest,
    TriplePattern,
    Unequal,
)
from semantic.filter_evaluation import folded, text_of
from semantic.ontology.ontology import Links, Ontology
from semantic.terms import Term, Triple, compact
from semantic.values import ComparisonOperator, Instant, Number, Quantity, compare, value_of
from semantic.vocabulary import OWL, RDF, RDFS, SKOS, TYPE

MAX_NEAR_MISSES = 3
"""Maximum number of near misses, and of values in one of them, to show."""
_DAY = 86_400
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


class NearMissFinder:
    """Finds the triples and values of one publication that are closest to a failed condition."""

    def __init__(self, evaluation: Evaluation, provenance: Provenance) -> None:
        self._evaluation, self._provenance = evaluation, provenance
        self._distances = Distances(provenance.ontology, provenance.links, provenance.language)

    # -- patterns ---------------------------------------------------------------------------

    def to_pattern(self, pattern: TriplePattern) -> tuple[NearMiss, ...]:
        """Return the triples that share the most terms with a pattern without matches, best first.

        If the pattern tests the class of an attribute, return the attribute's values instead. If no
        triple shares a term with the pattern of an attribute, return similar attributes.
        """
        if (name := isa_name_of(pattern.predicate)) is not None:
            return self._to_class(pattern, name)
        publication = self._provenance.publication
        triples = publication.visible_to_all
        # Only a pattern that names an attribute can match the triples of derived attributes.
        if name_of(pattern.predicate) is not None:
            triples = publication.triples
        sharing = {t: sum(map(operator.eq, pattern, t)) for t in triples}
        most = max(sharing.values(), default=0)
        if not most and (name := name_of(pattern.predicate)) is not None:
            return self._to_attribute(name)
        found = self._without_derived(
            [t for t, shared in sharing.items() if shared and shared == most]
        )
        rest = [t for t, shared in sharing.items() if 0 < shared < most]
        misses = [(triple, self._object_miss(pattern, triple)) for triple in found]
        misses.sort(key=lambda each: _rank(each[1]))
        more = [(triple, None) for triple in sorted(rest, key=lambda t: -sharing[t])]
        return tuple(self._near(t, miss) for t, miss in [*misses, *more][:MAX_NEAR_MISSES])

    def _without_derived(self, triples: Sequence[Triple]) -> list[Triple]:
        """Return the triples without those that were derived from another one of them."""
        chosen = frozenset(triples)
        return [t for t in triples if not chosen.intersection(self._provenance.sources(t))]

    def _object_miss(self, pattern: TriplePattern, triple: Triple) -> Miss | None:
        """Return how far a triple's object is from a pattern's, if only the objects differ.

        Return ``None`` if other terms differ too, or if the distance is unknown.
        """
        wanted, given = pattern.object, triple[2]
        if isinstance(wanted, Variable) or wanted == given or pattern.predicate != triple[1]:
            return None
        if not isinstance(pattern.subject, Variable) and pattern.subject != triple[0]:
            return None
        if isinstance(wanted, Literal):
            return self._texts(wanted, given)
        if isinstance(given, Literal | BlankNode) and given not in self._provenance.links:
            return None
        if not self._provenance.ontology.parents(wanted) + self._provenance.ontology.children(
            wanted
        ):
            return None
        return self._distances.not_below(given, wanted)

    def _texts(self, wanted: Literal, given: Term) -> Miss | None:
        """Return why a literal like the wanted one does not match; ``None`` if it is not alike."""
        if not isinstance(given, Literal):
            return None
        if compare(given, ComparisonOperator.EQ, wanted):
            return Miss(0, "the values are equal, but a pattern needs the same term")
        if wanted.value == given.value:
            return Miss(0, "the strings are equal, but not their languages or datatypes")
        if wanted.value.casefold() == given.value.casefold():
            return Miss(1, "the strings differ only in upper and lower case")
        return None

    def _to_class(self, pattern: TriplePattern, name: str) -> tuple[NearMiss, ...]:
        """Return the triples of the attribute `name` whose values are closest to a pattern's class.

        If there are none, return ``rdf:type`` triples.
        """
        triples, wanted = self._provenance.publication.triples, pattern.object
        found = [t for t in triples if t[1] == attribute(name)] or [
            t for t in triples if t[1] == TYPE
        ]
        if isinstance(wanted, Variable):
            return tuple(self._near(t, None) for t in found[:MAX_NEAR_MISSES])
        misses = [(t, self._class_miss(t[2], wanted)) for t in self._without_derived(found)]
        misses.sort(key=lambda each: _rank(each[1]))
        return tuple(self._near(t, miss) for t, miss in misses[:MAX_NEAR_MISSES])

    def _class_miss(self, value: Term, wanted: Term) -> Miss | None:
        classes = self._provenance.classes_called(value) if isinstance(value, Literal) else (value,)
        misses = [self._distances.not_below(each, wanted) for each in classes]
        if not misses:
            return Miss(math.inf, f"no class or concept is called {value}")
        return min(misses, key=_rank)

    def _to_attribute(self, name: str) -> tuple[NearMiss, ...]:
        """Return triples of the attributes whose names share the most steps with `name`."""
        asked = frozenset(steps(name))
        shared = {
            triple: len(asked.intersection(steps(own)))
            for triple in self._provenance.publication.triples
            if (own := name_of(triple[1])) is not None
        }
        close = sorted((t for t, count in shared.items() if count), key=lambda t: -shared[t])
        return tuple(self._near(triple, None) for triple in close[:MAX_NEAR_MISSES])

    # -- filters ----------------------------------------------------------------------------

    def to_filter(self, branch: Branch, filter_: Filter) -> Iterator[tuple[Term, NearMiss]]:
        """Yield the values that are closest to passing a filter, each with a triple that has it.

        The values are those of the filter's variable in the solutions of `branch`.
        """
        name = filter_.variable.value
        values: dict[Term, Triple] = {}
        for solution in solutions(self._evaluation, branch, None, LOOKED_AT):
            if solution[name] not in values:
                binding = next(p for p in branch.patterns if filter_.variable in p.variables)
                values[solution[name]] = instance(binding, solution)
        misses = [(value, self._distances.miss(filter_, value)) for value in values]
        misses.sort(key=lambda each: _rank(each[1]))
        for value, miss in misses[:MAX_NEAR_MISSES]:
            yield value, self._near(values[value], miss)

    # -- joins ------------------------------------------------------------------------------

    def of_join(self, pattern: TriplePattern, other: TriplePattern) -> tuple[NearMiss, ...]:
        """Return some triples that match each of two patterns which do not match together."""
        found = (self._meeting(p, MAX_NEAR_MISSES - 1) for p in (pattern, other))
        triples = chain.from_iterable(zip_longest(*found))
        return tuple(self._near(t, None) for t in triples if t is not None)[:MAX_NEAR_MISSES]

    def _meeting(self, pattern: TriplePattern, most: int) -> list[Triple]:
        found = solutions(self._evaluation, Branch((pattern,)), None, most)
        return [instance(pattern, solution) for solution in found]

    def apart(self, pattern: TriplePattern, other: TriplePattern, words: Wording) -> str:
        """Return why two patterns do not match together: a variable without a common value."""
        for variable in sorted(pattern.variables & other.variables, key=str):
            one, two = (self._values(p, variable) for p in (pattern, other))
            if not one.keys() & two.keys():
                here, there = _some(one, words), _some(two, words)
                return f"{words.variable(variable)} is {here} in the first, {there} in the second"
        return "no two triples have the same values of all shared variables"

    def _values(self, pattern: TriplePattern, variable: Variable) -> dict[Term, None]:
        found = solutions(self._evaluation, Branch((pattern,)))
        return dict.fromkeys(solution[variable.value] for solution in found)

    def _near(self, triple: Triple, miss: Miss | None) -> NearMiss:
        reasons = tuple(self._provenance.reasons(triple))
        return NearMiss(triple, miss.why if miss is not None else "", reasons)


def _rank(miss: Miss | None) -> Fraction | float:
    return math.inf if miss is None else miss.distance


def _some(values: dict[Term, None], words: Wording) -> str:
    shown = [words.term(value) for value in islice(values, MAX_NEAR_MISSES)]
    more = f" or {len(values) - MAX_NEAR_MISSES:,} more" if len(values) > MAX_NEAR_MISSES else ""
    return " or ".join(shown) + more


@dataclass(frozen=True, slots=True)
class Miss:
    """The distance of a term from a condition, infinite if unknown, and its description."""

    distance: Fraction | float
    why: str


class Distances:
    """Measures and describes how far a term is from passing a filter or belonging to a class.

    `links` are the is-a links that the publication states; `language` is that of labels.

    Examples
    --------
    >>> from pyoxigraph import Variable
    >>> from semantic.ontology.ontology import Ontology
    >>> distances = Distances(Ontology(), {})
    >>> at_most = Comparison(Variable("x"), ComparisonOperator.LE, Literal(400))
    >>> distances.miss(at_most, Literal(412)).why
    '412 is above 400 by 12'
    """

    def __init__(self, ontology: Ontology, links: Links, language: str = "en") -> None:
        self._ontology, self._links, self._language = ontology, links, language

    def miss(self, filter_: Filter, term: Term) -> Miss:
        """Return how far a term is from passing a filter that is false for it."""
        match filter_:
            case AnyOf(_, tests):
                misses = sorted((self.miss(test, term) for test in tests), key=_rank)
                shown = dict.fromkeys(miss.why for miss in misses[:MAX_NEAR_MISSES])
                more = (
                    f"; and {len(misses) - MAX_NEAR_MISSES} more"
                    if len(misses) > MAX_NEAR_MISSES
                    else ""
                )
                return Miss(misses[0].distance if misses else math.inf, "; ".join(shown) + more)
            case Comparison(_, operator, constant):
                return self._compared(term, operator, constant)
            case Unequal(_, constant):
                return Miss(math.inf, self._not_unequal(term, constant))
            case TaxonomyTest(_, operator, concept):
                return self._unrelated(term, operator, concept)
            case TextTest():
                return self._text(filter_, term)

    # -- numbers and other values -----------------------------------------------------------

    def _compared(
        self, term: Term, operator: ComparisonOperator, constant: NamedNode | Literal
    ) -> Miss:
        shown, bound = self._write(term), self._write(constant)
        value = value_of(term) if isinstance(term, Literal) else None
        wanted = value_of(constant) if isinstance(constant, Literal) else None
        between = _between(value, wanted)
        if between is None:
            if (
                isinstance(value, str)
                and isinstance(wanted, str)
                and operator is not ComparisonOperator.EQ
            ):
                where = "after" if value > wanted else "before" if value < wanted else "not beside"
                return Miss(math.inf, f"{shown} comes {where} {bound}")
            if value is None or wanted is None or type(value) is type(wanted):
                return Miss(math.inf, f"{shown} is not {bound}")
            return Miss(math.inf, f"{shown} cannot be compared with {bound}")
        distance, amount = between
        if not distance:
            return Miss(distance, f"{bound} itself is excluded")
        if operator is ComparisonOperator.EQ:
            return Miss(distance, f"{shown} differs from {bound} by {amount}")
        where = "above" if operator in (ComparisonOperator.LT, ComparisonOperator.LE) else "below"
        return Miss(distance, f"{shown} is {where} {bound} by {amount}")

    def _not_unequal(self, term: Term, constant: NamedNode | Literal) -> str:
        shown, bound = self._write(term), self._write(constant)
        return f"it is {bound}" if shown == bound else f"{shown} may be equal to {bound}"

    def _shown(self, term: Term) -> str:
        return self._ontology.shown_names.shown(term, self._language)

    def _write(self, term: Term) -> str:
        """Return the value of a number, date etc., or the label and IRI of another term."""
        if isinstance(term, Literal) and not isinstance(value_of(term), str | None):
            return term.value
        return self._shown(term)

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

    # -- text -------------------------------------------------------------------------------

    def _text(self, test: TextTest, term: Term) -> Miss:
        found = text_of(term, test.view)
        if found is None:
            return Miss(math.inf, f"{self._shown(term)} is not a string")
        kind = "language" if test.view is TermPart.LANG else "text"
        text, language = found
        return Miss(0, f"the {kind} is {Literal(folded(text, test.folding), language=language)}")


def _is_above_all(term: Term) -> bool:
    return isinstance(term, NamedNode) and term.value.startswith(_ABOVE_ALL)


def _between(value: object, wanted: object) -> tuple[Fraction | float, str] | None:
    """Return the distance of two values as number and text; ``None`` without a common scale."""
    match value, wanted:
        case Number(one), Number(other):
            if not (math.isfinite(one) and math.isfinite(other)):
                return None
            exact = isinstance(one, Decimal) and isinstance(other, Decimal)
            distance = abs(Fraction(one) - Fraction(other))
            return distance, _amount(distance, exact=exact)
        case Instant(), Instant() if value.kind == wanted.kind and value.zoned == wanted.zoned:
            distance = abs(Fraction(value.seconds) - Fraction(wanted.seconds))
            return distance, _time(distance)
        case Quantity(one, unit), Quantity(other, same) if unit == same:
            distance = abs(one - other)
            return distance, f"{_amount(distance, exact=True)} {unit}"
    return None


def _amount(number: Fraction, *, exact: bool) -> str:
    """Return a number as text, with six significant digits if it is an inexact fraction."""
    if number.denominator == 1:
        return str(number.numerator)
    quotient = Decimal(number.numerator) / Decimal(number.denominator)
    return format(quotient.normalize(), "f") if exact else f"{float(number):.6g}"


def _time(seconds: Fraction) -> str:
    days, rest = divmod(seconds, _DAY)
    if not rest:
        return f"{days} day" if days == 1 else f"{days} days"
    return f"{'' if not days else f'{days} d '}{timedelta(seconds=float(rest))}"


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
    name = name_of(pattern.predicate)
    return isa_name_of(pattern.predicate) if name is None else name

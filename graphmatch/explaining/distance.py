"""How far a term is from passing a filter: the numbers between, the common parent, the text.

Numbers, times and quantities have a distance that is exact where both are; a term and a class have
the links that lead from one to the other over the nearest term above both.

Source of the distance of terms: Rada, Mili, Bicknell and Blettner: Development and application of a
metric on semantic nets, IEEE Transactions on Systems, Man, and Cybernetics 19(1), 1989.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from pyoxigraph import Literal, NamedNode

from semantic.decision import folded, text_of
from semantic.ontology.walks import Links, Walks
from semantic.pattern import (
    AnyOf,
    Comparison,
    Filter,
    TaxonomyOperator,
    TaxonomyTest,
    TextTest,
    Unequal,
    View,
)
from semantic.terms import Term, compact
from semantic.values import Instant, Number, Operator, Quantity, value_of
from semantic.vocabulary import OWL, RDF, RDFS, SKOS

_DAY = 86_400
_ABOVE_ALL = tuple(namespace.iri for namespace in (OWL, RDF, RDFS, SKOS))
"""Whose classes are above nearly everything: that two terms are below one says nothing."""
_LISTED = 3
"""So many alternatives are spoken of."""


@dataclass(frozen=True, slots=True)
class Miss:
    """By how much a term misses something.

    Parameters
    ----------
    distance
        What the terms that miss it are ordered by; infinite where there is no distance.
    why
        The same for people.
    """

    distance: Fraction | float
    why: str


class Distances:
    """Distances under an ontology.

    Parameters
    ----------
    ontology
        What is known.
    links
        The is-a links that the publication states itself.
    prefixes
        For showing terms.

    Examples
    --------
    >>> from pyoxigraph import Variable
    >>> from semantic.ontology.ontology import Ontology
    >>> distances = Distances(Ontology(), {}, {})
    >>> at_most = Comparison(Variable("x"), Operator.LE, Literal(400))
    >>> distances.miss(at_most, Literal(412)).why
    '412 is above 400 by 12'
    """

    def __init__(self, ontology: Walks, links: Links, prefixes: Mapping[str, str]) -> None:
        self._ontology, self._links, self._prefixes = ontology, links, prefixes

    def miss(self, filter_: Filter, term: Term) -> Miss:
        """Say by how much a term misses a filter that is not true of it."""
        match filter_:
            case AnyOf(_, tests):
                misses = sorted((self.miss(test, term) for test in tests), key=_distance)
                shown = dict.fromkeys(miss.why for miss in misses[:_LISTED])
                more = f"; and {len(misses) - _LISTED} more" if len(misses) > _LISTED else ""
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

    def _compared(self, term: Term, operator: Operator, constant: NamedNode | Literal) -> Miss:
        shown, bound = self._write(term), self._write(constant)
        value = value_of(term) if isinstance(term, Literal) else None
        wanted = value_of(constant) if isinstance(constant, Literal) else None
        between = _between(value, wanted)
        if between is None:
            if isinstance(value, str) and isinstance(wanted, str) and operator is not Operator.EQ:
                where = "after" if value > wanted else "before" if value < wanted else "not beside"
                return Miss(math.inf, f"{shown} comes {where} {bound}")
            if value is None or wanted is None or type(value) is type(wanted):
                return Miss(math.inf, f"{shown} is not {bound}")
            return Miss(math.inf, f"{shown} is of another kind than {bound}")
        distance, amount = between
        if not distance:
            return Miss(distance, f"{bound} itself is left out")
        if operator is Operator.EQ:
            return Miss(distance, f"{shown} differs from {bound} by {amount}")
        where = "above" if operator in (Operator.LT, Operator.LE) else "below"
        return Miss(distance, f"{shown} is {where} {bound} by {amount}")

    def _not_unequal(self, term: Term, constant: NamedNode | Literal) -> str:
        shown, bound = self._write(term), self._write(constant)
        return (
            f"it is {bound}"
            if shown == bound
            else f"{shown} does not certainly differ from {bound}"
        )

    def _write(self, term: Term) -> str:
        """Write a term; of one that has a value and is no text, the value alone."""
        if isinstance(term, Literal) and not isinstance(value_of(term), str | None):
            return term.value
        return compact(term, self._prefixes)

    # -- taxonomies -------------------------------------------------------------------------

    def _unrelated(self, term: Term, operator: TaxonomyOperator, concept: Term) -> Miss:
        if operator is TaxonomyOperator.ANCESTOR:
            return self.not_below(concept, term)
        if operator is TaxonomyOperator.CHILD and len(path := self._path(term, concept)) > 1:
            way = " ⊑ ".join(compact(node, self._prefixes) for node in path)
            return Miss(len(path) - 2, f"it is not directly below: {way}")
        return self.not_below(term, concept)

    def not_below(self, low: Term, high: Term) -> Miss:
        """Say what leads from one term to another that it is not below.

        Examples
        --------
        >>> from semantic.ontology.ontology import Ontology
        >>> from semantic.vocabulary import SUBCLASS
        >>> phone, laptop, product = (NamedNode(f"urn:{n}") for n in ("phone", "laptop", "product"))
        >>> known = Ontology([(phone, SUBCLASS, product), (laptop, SUBCLASS, product)])
        >>> Distances(known, {}, {}).not_below(phone, laptop)
        Miss(distance=2, why='<urn:phone> is not below <urn:laptop>: both are below <urn:product>')
        """
        says = f"{compact(low, self._prefixes)} is not below {compact(high, self._prefixes)}"
        mine, theirs = self._above(low), self._above(high)
        both = (term for term in mine if term in theirs and not _is_above_all(term))
        common = sorted(both, key=lambda term: mine[term] + theirs[term])
        if not common:
            return Miss(math.inf, f"{says}: nothing is above both")
        distance = mine[common[0]] + theirs[common[0]]
        if self._ontology.root(low) in theirs:
            return Miss(distance, f"{says}, but above it")
        return Miss(distance, f"{says}: both are below {compact(common[0], self._prefixes)}")

    def _path(self, low: Term, high: Term) -> tuple[Term, ...]:
        return self._ontology.path(low, high, self._links)

    def _above(self, term: Term) -> dict[Term, int]:
        """Return the terms above, with this one, each with how many links lead there."""
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
            return Miss(math.inf, f"{compact(term, self._prefixes)} is no text")
        kind = "language" if test.view is View.LANG else "text"
        text, language = found
        return Miss(0, f"the {kind} is {Literal(folded(text, test.folding), language=language)}")


def _is_above_all(term: Term) -> bool:
    return isinstance(term, NamedNode) and term.value.startswith(_ABOVE_ALL)


def _distance(miss: Miss) -> Fraction | float:
    return miss.distance


def _between(value: object, wanted: object) -> tuple[Fraction | float, str] | None:
    """Return how much is between two values, and how to write it; ``None``: they have no scale."""
    match value, wanted:
        case Number(_, one), Number(_, other):
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
    """Write a number; of a float six digits."""
    if number.denominator == 1:
        return str(number.numerator)
    quotient = Decimal(number.numerator) / Decimal(number.denominator)
    return format(quotient.normalize(), "f") if exact else f"{float(number):.6g}"


def _time(seconds: Fraction) -> str:
    days, rest = divmod(seconds, _DAY)
    if not rest:
        return f"{days} day" if days == 1 else f"{days} days"
    return f"{'' if not days else f'{days} d '}{timedelta(seconds=float(rest))}"

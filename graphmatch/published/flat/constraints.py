"""Subscriptions as the papers on attributes have them: one constraint for each attribute.

A subscription is one when all of its patterns have one subject, each has an attribute of its own,
and its filters test one value each: ``?event :price ?v FILTER(?v >= 100 && ?v < 400)``. A
constraint is an interval of numbers, an equality with a term, or a class that stands above the
value (CTPS, section 3.3; DEXIN, section 2.1; Gryphon, section 2).

Numbers are doubles, as in the papers: two that no double tells apart are one here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import inf, isnan, nextafter
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode, Variable

from graphmatch.matcher import UnsupportedError
from graphmatch.subscription import Subscription
from semantic.pattern import (
    Branch,
    Comparison,
    Filter,
    Form,
    TaxonomyOperator,
    TaxonomyTest,
    Unequal,
)
from semantic.terms import Term
from semantic.values import Number, Operator, value_of


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers between two ends, each closed, open, or absent (infinite).

    Examples
    --------
    >>> Interval(0, 400, open_high=True).holds(400.0)
    False
    """

    low: float = -inf
    high: float = inf
    open_low: bool = False
    open_high: bool = False

    def holds(self, value: float) -> bool:
        """Say whether a number is between the ends."""
        above = value > self.low if self.open_low else value >= self.low
        return above and (value < self.high if self.open_high else value <= self.high)

    def and_(self, other: Interval) -> Interval:
        """Return the numbers that are in both."""
        low, open_low = max((self.low, self.open_low), (other.low, other.open_low))
        high, closed = min((self.high, not self.open_high), (other.high, not other.open_high))
        return Interval(low, high, open_low, not closed)

    def closed(self) -> tuple[float, float]:
        """Return the least and the largest double in it; it is empty if the first is larger.

        Examples
        --------
        >>> Interval(0, 1, open_high=True).closed()
        (0, 0.9999999999999999)
        """
        if (self.open_low and self.low == inf) or (self.open_high and self.high == -inf):
            return inf, -inf
        low = nextafter(self.low, inf) if self.open_low else self.low
        return low, nextafter(self.high, -inf) if self.open_high else self.high


@dataclass(frozen=True, slots=True)
class Equal:
    """One term, and no other."""

    term: Term


@dataclass(frozen=True, slots=True)
class Below:
    """A class with all that is below it (``gm:descendantOf``)."""

    concept: Term


@dataclass(frozen=True, slots=True)
class Present:
    """Any value."""


Constraint: TypeAlias = Interval | Equal | Below | Present

Row: TypeAlias = Mapping[NamedNode, Constraint]
"""Attribute to constraint: what one conjunction asks for."""


@dataclass(frozen=True, slots=True)
class Conjunction:
    """A subscription as constraints on the attributes of one resource.

    Parameters
    ----------
    subject
        The resource, or a variable.
    rows
        Alternatives: more than one where an attribute has several ranges (``!=``).
    names
        What a solution binds: the name of a variable, and its attribute; ``None`` is the subject.
    filters
        Attribute to what its value has to pass, for the solutions.
    """

    id: str
    subject: Variable | Term
    rows: tuple[Row, ...]
    names: tuple[tuple[str, NamedNode | None], ...] = ()
    filters: Mapping[NamedNode, tuple[Filter | Equal, ...]] = field(default_factory=dict)
    distinct: bool = False

    @classmethod
    def of(cls, subscription: Subscription, kinds: Collection[type]) -> Conjunction:
        """Read a subscription as constraints.

        Parameters
        ----------
        kinds
            The constraints that may be in it.

        Raises
        ------
        UnsupportedError
            When it is no conjunction, or has other constraints.

        Examples
        --------
        >>> from graphmatch.subscription import SubscriptionParser
        >>> text = "SELECT ?e { ?e <urn:price> ?v FILTER(?v < 400) }"
        >>> read = Conjunction.of(SubscriptionParser().parse("s", text), {Interval})
        >>> [str(constraint) for constraint in read.rows[0].values()]
        ['Interval(low=-inf, high=400.0, open_low=False, open_high=True)']
        """
        if not subscription.exact or len(subscription.branches) != 1:
            raise UnsupportedError(subscription.id, ", ".join(subscription.remainder))
        reader = _Reader(subscription.id, subscription.branches[0], frozenset(kinds))
        rows, filters = reader.read()
        known = {variable: attribute for attribute, variable in reader.variables.items()}
        names = tuple(
            (v.value, known.get(v))
            for v in subscription.projection
            if v in known or v == reader.subject
        )
        distinct = subscription.distinct or subscription.form is Form.ASK
        return cls(subscription.id, reader.subject, rows, names, filters, distinct)


class _Reader:
    """Reads one branch."""

    def __init__(self, id: str, branch: Branch, kinds: frozenset[type]) -> None:
        self._id, self._kinds = id, kinds
        self._branch = branch
        self.subject: Variable | Term = branch.patterns[0].subject
        self.variables: dict[NamedNode, Variable] = {}
        self._constants: dict[NamedNode, Term] = {}

    def read(self) -> tuple[tuple[Row, ...], Mapping[NamedNode, tuple[Filter | Equal, ...]]]:
        self._read_patterns()
        tests: dict[Variable, list[Filter]] = {v: [] for v in self.variables.values()}
        for filter_ in self._branch.filters:
            if filter_.variable not in tests:
                raise self._refused("a test of what is no value of an attribute")
            tests[filter_.variable].append(filter_)
        row: dict[NamedNode, tuple[Constraint, ...]] = {}
        filters: dict[NamedNode, tuple[Filter | Equal, ...]] = {}
        for attribute, term in self._constants.items():
            row[attribute] = (self._allowed(Equal(term)),)
            filters[attribute] = (Equal(term),)
        for attribute, variable in self.variables.items():
            row[attribute] = tuple(map(self._allowed, self._constraints(tests[variable])))
            filters[attribute] = tuple(tests[variable])
        choices = product(*row.values())
        return tuple(dict(zip(row, chosen, strict=True)) for chosen in choices), filters

    def _read_patterns(self) -> None:
        seen: set[Variable | Term] = {self.subject}
        for pattern in dict.fromkeys(self._branch.patterns):
            attribute, value = pattern.predicate, pattern.object
            if pattern.subject != self.subject:
                raise self._refused("patterns with several subjects")
            if not isinstance(attribute, NamedNode):
                raise self._refused("a variable in a property's place")
            if attribute in self.variables or attribute in self._constants:
                raise self._refused("two patterns with one attribute")
            if isinstance(value, Variable):
                if value in seen:
                    raise self._refused("a variable in several places")
                seen.add(value)
                self.variables[attribute] = value
            else:
                self._constants[attribute] = value

    def _constraints(self, tests: list[Filter]) -> tuple[Constraint, ...]:
        """Return what a value has to be: one constraint, or several ranges."""
        if not tests:
            return (Present(),)
        if len(tests) == 1 and (one := _of_terms(tests[0])) is not None:
            return (one,)
        interval, holes = Interval(), []
        compared = False
        for test in tests:
            number = number_of(test.constant) if isinstance(test, Comparison | Unequal) else None
            if number is None:
                raise self._refused(f"FILTER {test.word}")
            if isinstance(test, Comparison):
                interval, compared = interval.and_(_range(test.operator, number)), True
            else:
                holes.append(number)
        if not compared:  # what is no number differs from it, too
            raise self._refused("FILTER != without another comparison with a number")
        return tuple(_cut(interval, sorted(set(holes))))

    def _allowed(self, constraint: Constraint) -> Constraint:
        if type(constraint) not in self._kinds:
            raise self._refused(f"a constraint of this kind: {type(constraint).__name__}")
        return constraint

    def _refused(self, what: str) -> UnsupportedError:
        return UnsupportedError(self._id, what)


def _of_terms(test: Filter) -> Constraint | None:
    match test:
        case TaxonomyTest(_, TaxonomyOperator.DESCENDANT, concept):
            return Below(concept)
        case Comparison(_, Operator.EQ, constant) if _is_text(constant):
            return Equal(constant)
        case Comparison(_, Operator.EQ, NamedNode() as constant):
            return Equal(constant)
    return None


def _is_text(constant: Term) -> bool:
    return isinstance(constant, Literal) and isinstance(value_of(constant), str)


def number_of(term: Term) -> float | None:
    """Return the number that a term is, as a double; ``None`` if it is none, or not a number.

    Examples
    --------
    >>> number_of(Literal(7)), number_of(Literal("7"))
    (7.0, None)
    """
    value = value_of(term) if isinstance(term, Literal) else None
    number = float(value.value) if isinstance(value, Number) else None
    return None if number is None or isnan(number) else number


def _range(operator: Operator, number: float) -> Interval:
    match operator:
        case Operator.EQ:
            return Interval(number, number)
        case Operator.LT | Operator.LE:
            return Interval(high=number, open_high=operator is Operator.LT)
        case Operator.GT | Operator.GE:
            return Interval(low=number, open_low=operator is Operator.GT)


def _cut(interval: Interval, holes: list[float]) -> Iterator[Interval]:
    """Yield what is left of an interval without some numbers: two ranges for each (DEXIN, 2.1)."""
    for hole in holes:
        left = interval.and_(Interval(high=hole, open_high=True))
        if not _is_empty(left):
            yield left
        interval = interval.and_(Interval(low=hole, open_low=True))
    if not _is_empty(interval):
        yield interval


def _is_empty(interval: Interval) -> bool:
    low, high = interval.closed()
    return low > high

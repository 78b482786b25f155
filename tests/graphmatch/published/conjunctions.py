"""Generated subscriptions and events for attribute algorithms, and the oracle's answers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Variable

from graphmatch.published.attribute_matcher import Below, Equal, Interval, Present
from semantic import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import SUBCLASS, XSD
from tests.oracle import Compare, Filter, Group, Isa, Operator, Pattern, Query, compare
from tests.strategies import EX, Scenario

EVENT = Variable("event")
ATTRIBUTES = tuple(EX[name] for name in "pqrst")
CLASSES = tuple(EX[name] for name in "ABCDEFG")
TREE: tuple[Triple, ...] = tuple(
    (CLASSES[child], SUBCLASS, CLASSES[(child - 1) // 2]) for child in range(1, len(CLASSES))
)
"""A complete binary tree of height 2; A is its root."""
TEXTS = tuple(map(Literal, ("US", "us", "États-Unis", "")))
DOMAIN = (0.0, 10.0)
"""The domain that algorithms get; some numbers lie outside it."""

_COMPARED: tuple[Operator, ...] = ("=", "<", "<=", ">", ">=", "!=")


def _number(value: float, decimal: bool) -> Literal:
    datatype = XSD["decimal"] if decimal else XSD["double"]
    whole = value == int(value)
    return Literal(int(value)) if whole and decimal else Literal(str(value), datatype=datatype)


NUMBERS = st.builds(_number, st.integers(-8, 48).map(lambda n: n / 4), st.booleans())
"""Numbers that a double holds, in several datatypes."""


def _values(kinds: Collection[type]) -> st.SearchStrategy[Term]:
    """Return a strategy for attribute values, mostly numbers if those are compared."""
    several: list[st.SearchStrategy[Term]] = [NUMBERS, st.sampled_from(TEXTS)]
    if Interval in kinds:
        several += [NUMBERS, NUMBERS]
    if Equal in kinds or Below in kinds:
        several += [st.sampled_from(CLASSES), st.sampled_from(TEXTS)]
    return st.one_of(several)


@st.composite
def _publications(draw: st.DrawFn, kinds: Collection[type], number: int) -> Publication:
    triples: list[Triple] = []
    for name in draw(st.sampled_from([["ann"], ["ann"], ["ann", "bob"]])):
        for attribute in ATTRIBUTES:
            count = draw(st.sampled_from([0, 1, 1, 1, 1, 2]))
            values = draw(st.lists(_values(kinds), min_size=count, max_size=count))
            triples += [(EX[name], attribute, value) for value in values]
    return Publication.of(f"http://example.org/publication/{number}", dict.fromkeys(triples))


@st.composite
def _queries(draw: st.DrawFn, kinds: Sequence[type], publications: Sequence[Publication]) -> Query:
    """Draw constraints; two of three subscriptions hold for a resource of some publication."""
    triples = draw(st.sampled_from(publications)).triples
    subject = draw(st.sampled_from([s for s, *_ in triples] or [EX["ann"]]))
    held = {p: o for s, p, o in triples if s == subject and _kinds_of(o, kinds)}
    if not held or not draw(st.sampled_from([True, True, False])):
        held = {}
    patterns: list[Pattern] = []
    filters: list[Filter] = []
    names = list(held) or list(ATTRIBUTES)
    for number, attribute in enumerate(
        draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    ):
        variable, value = Variable(f"v{number}"), held.get(attribute)
        pattern = Pattern(EVENT, attribute, variable)
        match draw(st.sampled_from(_kinds_of(value, kinds))).__name__:
            case Interval.__name__:
                filters += draw(_comparisons(variable, value))
            case Equal.__name__ if value is None and draw(st.booleans()):
                filters.append(Compare(variable, "=", draw(st.sampled_from([*TEXTS, *CLASSES]))))
            case Equal.__name__ if value in (*TEXTS, *CLASSES) and draw(st.booleans()):
                filters.append(Compare(variable, "=", value))
            case Equal.__name__:
                pattern = Pattern(EVENT, attribute, value or draw(_values(kinds)))
            case Below.__name__:
                above = CLASSES if value is None else _above(value)
                filters.append(Isa(variable, "descendantOf", draw(st.sampled_from(above))))
            case Present.__name__:
                pass
        patterns.append(pattern)
    projection = draw(st.sampled_from([None, (EVENT,)]))
    ask, distinct = draw(st.sampled_from([(False, False), (False, True), (True, False)]))
    where = Group(tuple(patterns), tuple(filters))
    return Query(where, None if ask else projection, distinct, ask)


def _kinds_of(value: Term | None, kinds: Sequence[type]) -> list[type]:
    """Return the kinds of constraints that may hold for a value, or all without one."""
    if value is None:
        return list(kinds)
    holds = {Equal, Present}
    if isinstance(value, NamedNode):
        holds.add(Below)
    elif value not in TEXTS:
        holds.add(Interval)
    return [kind for kind in kinds if kind in holds]


def _above(value: Term) -> tuple[NamedNode, ...]:
    """Return a class of the tree, and its ancestors."""
    place, found = CLASSES.index(value) + 1, list[NamedNode]()
    while place:
        found.append(CLASSES[place - 1])
        place //= 2
    return tuple(found)


@st.composite
def _comparisons(draw: st.DrawFn, variable: Variable, value: Term | None) -> list[Filter]:
    """Draw comparisons with numbers, which hold for the value if there is one."""

    def one(operators: Sequence[Operator]) -> Filter:
        constant = draw(NUMBERS if value is None else NUMBERS | st.just(value))
        true = [sign for sign in operators if value is None or compare(value, sign, constant)]
        return Compare(variable, draw(st.sampled_from(true)), constant)

    found = [one(_COMPARED) for _ in range(draw(st.integers(1, 3)))]
    if all(each.operator == "!=" for each in found):
        found.append(one(("<=", ">=")))
    return found


@st.composite
def conjunctions(
    draw: st.DrawFn, kinds: Sequence[type], ontology: tuple[Triple, ...] = TREE
) -> Scenario:
    """Draw subscriptions with these kinds of constraints, and publications with some events."""
    count = draw(st.integers(1, 3))
    publications = tuple(draw(_publications(kinds, number)) for number in range(count))
    queries = draw(st.lists(_queries(kinds, publications), min_size=1, max_size=6))
    return Scenario(ontology, (), publications, tuple(queries))

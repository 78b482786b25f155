"""CTPS as printed: correct under the paper's assumptions, and differences from the fixed one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Variable

from graphmatch import SubscriptionParser
from graphmatch.matcher import UnsupportedError
from graphmatch.published import make
from graphmatch.published.base import (
    Below,
    Conjunction,
    Constraint,
    Equal,
    Event,
    FlatMatcher,
    Interval,
    Tally,
)
from semantic import Ontology, Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import SUBCLASS, SUBPROPERTY
from tests.graphmatch.published.conjunctions import (
    ATTRIBUTES,
    CLASSES,
    DOMAIN,
    EVENT,
    NUMBERS,
    TEXTS,
    TREE,
    agree,
    answers,
    conjunctions,
    expected,
)
from tests.oracle import Compare, Filter, Group, Isa, Pattern, Query, to_sparql
from tests.strategies import EX, Scenario

P, Q, R, S, T = ATTRIBUTES
A, B, C, D, *_ = CLASSES
X, Y = Literal("x"), Literal("y")
PARSER = SubscriptionParser()

ATTRIBUTE_TREE: tuple[Triple, ...] = ((Q, SUBPROPERTY, P), (R, SUBPROPERTY, P))


@st.composite
def assumed(draw: st.DrawFn) -> Scenario:
    """Draw events and subscriptions under the paper's assumptions.

    Each event has one pair per attribute tree, and each subscription at most one. The name
    of an attribute determines its values: strings below P, classes of a tree, or numbers.
    """
    queries = []
    for _ in range(draw(st.integers(1, 6))):
        asked = draw(
            st.lists(st.sampled_from((P, S, T)), min_size=1, unique=True).map(
                lambda names: [draw(st.sampled_from((P, Q, R))) if n == P else n for n in names]
            )
        )
        filters: list[Filter] = []
        for number, attribute in enumerate(asked):
            value = Variable(f"v{number}")
            if attribute == S:
                filters.append(Isa(value, "descendantOf", draw(st.sampled_from(CLASSES))))
            elif attribute == T:
                filters.append(Compare(value, draw(st.sampled_from(("<=", ">"))), draw(NUMBERS)))
            else:
                filters.append(Compare(value, "=", draw(st.sampled_from(TEXTS))))
        patterns = tuple(Pattern(EVENT, a, Variable(f"v{n}")) for n, a in enumerate(asked))
        queries.append(Query(Group(patterns, tuple(filters))))
    triples = (
        (EX["ann"], draw(st.sampled_from((P, Q, R))), draw(st.sampled_from(TEXTS))),
        (EX["ann"], S, draw(st.sampled_from(CLASSES))),
        (EX["ann"], T, draw(NUMBERS)),
    )
    publication = Publication.of("http://example.org/publication", triples)
    return Scenario((*TREE, *ATTRIBUTE_TREE), (), (publication,), tuple(queries))


@pytest.mark.parametrize("name", ["ctps-printed", "ctps"])
@given(assumed())
def test_that_it_agrees_where_the_assumptions_hold(name: str, scenario: Scenario) -> None:
    matcher = make(name, Ontology(scenario.ontology), domain=DOMAIN, cells=4)
    for number, query in enumerate(scenario.queries):
        matcher.subscribe(PARSER.parse(str(number), to_sparql(query)))
    (publication,) = scenario.publications
    report = matcher.match(publication)
    assert answers(report) == expected(scenario, publication, "rdfs")
    assert report.counters.verified == report.counters.matched


@given(conjunctions([Interval, Equal, Below], (*TREE, *ATTRIBUTE_TREE)), st.data())
def test_that_the_printed_one_forgets_whom_it_unsubscribed(
    scenario: Scenario, data: st.DataObject
) -> None:
    agree(lambda o: make("ctps-printed", o, domain=DOMAIN, cells=4), scenario, data, "rdfs")


# --- Fixes, each with a minimal example -----------------------------------------------------------


def both(
    row: dict[NamedNode, Constraint], terms: dict[NamedNode, Term], *ontology: Triple
) -> tuple[bool, bool]:
    """Return whether the fixed and the printed algorithm match an event with one subscription."""
    found = []
    for name in ("ctps", "ctps-printed"):
        matcher = make(name, Ontology(ontology), domain=DOMAIN)
        assert isinstance(matcher, FlatMatcher)
        matcher.add(Conjunction("s", Variable("x"), (row,)))
        found.append(list(matcher.matched(Event.of(terms), Tally())) == [0])
    mended, printed = found
    return mended, printed


def test_that_a_missing_attribute_matches_nobody_who_asks_for_it() -> None:
    row = {P: Equal(X), Q: Equal(Y)}
    assert both(row, {P: X, Q: Y}) == (True, True)
    assert both(row, {P: X}) == (False, True)


def test_that_attributes_are_matched_together_with_their_values() -> None:
    row = {Q: Equal(X), R: Equal(Y)}
    assert both(row, {Q: Y, R: X}, *ATTRIBUTE_TREE) == (False, True)
    row = {P: Equal(X), Q: Equal(Y)}
    assert both(row, {Q: Y}, *ATTRIBUTE_TREE) == (False, True)


def test_that_several_pairs_of_a_tree_are_alternatives() -> None:
    assert both({Q: Equal(X)}, {Q: X}, *ATTRIBUTE_TREE) == (True, True)
    assert both({Q: Equal(X)}, {Q: X, R: Y}, *ATTRIBUTE_TREE) == (True, False)
    assert both({P: Equal(X)}, {Q: X, R: Y}, *ATTRIBUTE_TREE) == (True, False)


def test_that_all_parents_are_walked() -> None:
    ontology = ((D, SUBCLASS, B), (D, SUBCLASS, C))
    assert both({P: Below(B)}, {P: D}, *ontology) == (True, True)
    assert both({P: Below(C)}, {P: D}, *ontology) == (True, False)


def test_that_a_value_of_another_sort_matches_no_constraint() -> None:
    assert both({P: Interval(0, 1)}, {P: X}) == (False, True)
    assert both({P: Below(A)}, {P: Literal(1)}) == (False, True)


def test_that_a_match_without_a_value_is_counted_and_not_reported() -> None:
    matcher = make("ctps-printed", Ontology())
    matcher.subscribe(PARSER.parse("s", f"SELECT * {{ ?x {P} 'x' ; {Q} 'y' }}"))
    report = matcher.match(Publication.of("p", [(A, P, X)]))
    assert (report.counters.verified, report.counters.matched) == (1, 0)


def test_that_the_printed_one_refuses_what_any_value_meets() -> None:
    with pytest.raises(UnsupportedError, match="Present"):
        make("ctps-printed", Ontology()).subscribe(PARSER.parse("s", f"SELECT * {{ ?x {P} ?y }}"))


def test_that_two_pairs_of_a_tree_may_have_one_place() -> None:
    made = make("ctps-printed", Ontology(ATTRIBUTE_TREE))
    made.subscribe(PARSER.parse("s", f"SELECT * {{ ?x {Q} 'x' ; {R} 'x' }}"))
    made.unsubscribe("s")
    assert len(made) == 0

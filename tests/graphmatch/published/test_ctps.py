"""CTPS: the oracle's answers, as printed where the paper's assumptions hold, and what it costs."""

from __future__ import annotations

from dataclasses import replace

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
    Interval,
    Present,
    Tally,
)
from graphmatch.published.ctps import Ctps
from semantic import Ontology, Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import EQUIVALENT_CLASS, EQUIVALENT_PROPERTY, SUBCLASS, SUBPROPERTY, TYPE
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
KINDS = [Interval, Equal, Below, Present]

ATTRIBUTE_TREE: tuple[Triple, ...] = ((Q, SUBPROPERTY, P), (R, SUBPROPERTY, P))
MORE: tuple[Triple, ...] = (
    (S, SUBPROPERTY, Q),
    (S, SUBPROPERTY, R),
    (T, SUBPROPERTY, P),
    (D, SUBCLASS, C),
    (CLASSES[5], EQUIVALENT_CLASS, EX["Z"]),
    (CLASSES[6], EQUIVALENT_CLASS, CLASSES[4]),
    (T, EQUIVALENT_PROPERTY, EX["tee"]),
)
"""More parents, and synonyms; any of these may be there."""


@st.composite
def concepts(draw: st.DrawFn) -> Scenario:
    """Draw trees with some more parents and synonyms, and instances in place of some classes."""
    more = draw(st.lists(st.sampled_from(MORE), unique=True))
    scenario = draw(conjunctions(KINDS, (*TREE, *ATTRIBUTE_TREE, *more)))
    chosen = draw(st.lists(st.sampled_from(CLASSES), max_size=2))
    instances: dict[Term, Term] = {class_: EX[f"of-{class_.value[-1]}"] for class_ in chosen}

    def renamed(triple: Triple) -> tuple[Triple, ...]:
        subject, attribute, value = triple
        instance = instances.get(value)
        if instance is None:
            return (triple,)
        return (subject, attribute, instance), (instance, TYPE, value)

    publications = tuple(
        Publication.of(p.id, dict.fromkeys(new for t in p.triples for new in renamed(t)))
        for p in scenario.publications
    )
    return replace(scenario, publications=publications)


@pytest.mark.parametrize("cells", [1, 3, 10])
@given(concepts(), st.data())
def test_that_it_agrees_with_the_oracle(
    cells: int, scenario: Scenario, data: st.DataObject
) -> None:
    agree(lambda o: make("ctps", o, domain=DOMAIN, cells=cells), scenario, data, "rdfs")


@st.composite
def assumed(draw: st.DrawFn) -> Scenario:
    """Draw what the paper assumes.

    Each event has one pair of each tree of attributes, and a subscription at most one; an
    attribute's name says what its values are: texts below P, classes of a tree, numbers.
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


# --- What is mended, each with its smallest example -----------------------------------------------


def both(
    row: dict[NamedNode, Constraint], terms: dict[NamedNode, Term], *ontology: Triple
) -> tuple[bool, bool]:
    """Say whether the mended and the printed algorithm match an event with one subscription."""
    found = []
    for name in ("ctps", "ctps-printed"):
        matcher = make(name, Ontology(ontology), domain=DOMAIN)
        assert isinstance(matcher, Ctps)
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


# --- The paper's own examples ---------------------------------------------------------------------

TARGET, PRICE, CURRENCY = EX["target"], EX["price.value"], EX["price.currency"]
PRODUCT, COMPUTER, DESKTOP = EX["Product"], EX["Computer"], EX["DesktopPC"]
PRODUCTS = [(COMPUTER, SUBCLASS, PRODUCT), (DESKTOP, SUBCLASS, COMPUTER)]
FIGURE_1 = [
    *PRODUCTS,
    (EX["seller.cellPhoneNumber"], SUBPROPERTY, EX["seller.contactInformation"]),
    (EX["seller.email"], SUBPROPERTY, EX["seller.contactInformation"]),
    (EX["台式机"], EQUIVALENT_CLASS, DESKTOP),
    (DESKTOP, TYPE, EX["ProductClass"]),
]


def figure_2(price: int, target: Term = DESKTOP) -> Publication:
    """Return John's offer, pair by pair (section 3.2)."""
    pairs: dict[str, Term] = {
        "seller.name": Literal("John"),
        "seller.cellPhoneNumber": Literal("123456789"),
        "price.value": Literal(price),
        "price.currency": EX["units:$"],
        "target": target,
        "target.manufacture.name": Literal("IBM"),
        "target.hardDisk.size.value": Literal(40),
        "target.hardDisk.size.units": EX["units:G"],
        "target.hardDisk.manufacture.name": Literal("IBM"),
    }
    return Publication.of("john", [(EX["john"], EX[name], v) for name, v in pairs.items()])


@pytest.mark.parametrize("name", ["ctps", "ctps-printed"])
def test_the_papers_example(name: str) -> None:
    """Figures 1 to 3: John asks 450 dollars, and the subscriber pays up to 400."""
    matcher = make(name, Ontology(FIGURE_1))
    matcher.subscribe(
        PARSER.parse(
            "figure 3",
            f"""SELECT ?offer {{ ?offer {TARGET} ?target ; {CURRENCY} {EX["units:$"]} ;
            {PRICE} ?price FILTER(gm:descendantOf(?target, {COMPUTER}))
            FILTER(?price >= 0 && ?price <= 400) }}""",
        )
    )
    assert len(matcher.match(figure_2(450))) == 0
    (match,) = matcher.match(figure_2(350))
    assert match.solutions == ({"offer": EX["john"]},)
    assert len(matcher.match(figure_2(350, EX["台式机"]))) == 1
    assert len(matcher.match(figure_2(350, PRODUCT))) == 0
    matcher.subscribe(
        PARSER.parse(
            "reach",
            f"""SELECT ?c {{ ?x {EX["seller.contactInformation"]} ?c
        FILTER(?c = "123456789") }}""",
        )
    )
    (match,) = matcher.match(figure_2(450))
    assert match.solutions == ({"c": Literal("123456789")},)


def test_that_types_are_classes() -> None:
    """Section 3.2 has pairs like <price.type, MoneyValue>."""
    matcher = make("ctps", Ontology(PRODUCTS))
    matcher.subscribe(PARSER.parse("class", f"SELECT * {{ ?x a {COMPUTER} }}"))
    matcher.subscribe(PARSER.parse("classes", "SELECT ?c { ?x a ?c }"))
    one, all_ = matcher.match(Publication.of("p", [(EX["pc"], TYPE, DESKTOP)]))
    assert one.solutions == ({"x": EX["pc"]},)
    assert [solution["c"] for solution in all_.solutions] == [DESKTOP, COMPUTER, PRODUCT]


# --- What it costs --------------------------------------------------------------------------------


def ctps(**rows: dict[NamedNode, Constraint]) -> Ctps:
    made = make("ctps", Ontology(TREE), domain=(0, 100), cells=5)
    assert isinstance(made, Ctps)
    for id, row in rows.items():
        made.add(Conjunction(id, P, (row,)))
    return made


def test_that_a_class_costs_its_way_to_the_root() -> None:
    made = ctps(top={P: Below(A)}, other={P: Below(C)}, own={P: Below(D)})
    tally = Tally()
    assert list(made.matched(Event.of({P: D}), tally)) == [0, 2]
    assert (tally.probes, tally.candidates) == (3, 2)


def test_that_only_ends_in_the_values_own_row_and_column_are_compared() -> None:
    """Section 5.3: T is 5, the range 100 and the value 45, so r is 2."""
    made = ctps(
        a={P: Interval(0, 20)},
        b={P: Interval(60, 80)},
        c={P: Interval(0, 44)},
        d={P: Interval(46, 80)},
        e={P: Interval(45, 50)},
        f={P: Interval(0, 80)},
    )
    tally = Tally()
    assert list(made.matched(Event.of({P: Literal(45)}), tally)) == [4, 5]
    assert (tally.probes, tally.gates, tally.candidates) == (6, 3, 3 + 2)


def test_that_those_who_are_out_are_not_compared() -> None:
    """Texts come before ranges, whatever the order of asking."""
    made = ctps(s={P: Interval(40, 50), Q: Equal(X)}, t={P: Interval(41, 50), Q: Equal(Y)})
    tally = Tally()
    assert list(made.matched(Event.of({P: Literal(45), Q: X}), tally)) == [0]
    assert (tally.gates, tally.candidates) == (1, 1 + 1)


def test_that_unsubscribing_gives_the_space_back() -> None:
    made = ctps()
    empty = made.nbytes
    sizes = []
    for _ in range(2):
        for number in range(200):
            row = {P: Below(CLASSES[number % 7]), Q: Equal(Literal(number)), R: Interval(number)}
            made.add(Conjunction(str(number), P, (row | {S: Present()},)))
        sizes.append(made.nbytes)
        for number in range(200):
            made.unsubscribe(str(number))
    assert len(set(sizes)) == 1
    assert made.nbytes < empty + 100
    assert list(made.matched(Event.of({P: A, S: X}), Tally())) == []


def test_that_two_values_of_one_attribute_serve_two_names_of_it() -> None:
    """The subscription asks for a class by the one name, and for a number by the one above."""
    below, above, thing = EX["below"], EX["above"], EX["thing"]
    made = make("ctps", Ontology([(below, SUBPROPERTY, above)]))
    text = f"SELECT * {{ ?e {below} {thing} ; {above} ?n FILTER(?n > 5) }}"
    made.subscribe(PARSER.parse("s", text))
    triples = [(EX["ann"], below, thing), (EX["ann"], below, Literal(7))]
    report = made.match(Publication.of("urn:p", triples))
    assert [match.subscription for match in report] == ["s"]

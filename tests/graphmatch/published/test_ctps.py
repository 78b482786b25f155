"""CTPS: the oracle's answers, as printed if the paper's assumptions hold, and its cost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch import SubscriptionParser
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
    TREE,
    agree,
    conjunctions,
)
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
"""Optional additional parents and synonyms."""


@st.composite
def concepts(draw: st.DrawFn) -> Scenario:
    """Draw trees with extra parents and synonyms, and instances in place of some classes."""
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


# --- Examples from the paper ----------------------------------------------------------------------

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


# --- Cost -----------------------------------------------------------------------------------------


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
    """Strings come before ranges, in any order of the query."""
    made = ctps(s={P: Interval(40, 50), Q: Equal(X)}, t={P: Interval(41, 50), Q: Equal(Y)})
    tally = Tally()
    assert list(made.matched(Event.of({P: Literal(45), Q: X}), tally)) == [0]
    assert (tally.gates, tally.candidates) == (1, 1 + 1)


def test_that_two_values_of_one_attribute_serve_two_names_of_it() -> None:
    """The subscription constrains a class by one name, and a number by a broader name."""
    below, above, thing = EX["below"], EX["above"], EX["thing"]
    made = make("ctps", Ontology([(below, SUBPROPERTY, above)]))
    text = f"SELECT * {{ ?e {below} {thing} ; {above} ?n FILTER(?n > 5) }}"
    made.subscribe(PARSER.parse("s", text))
    triples = [(EX["ann"], below, thing), (EX["ann"], below, Literal(7))]
    report = made.match(Publication.of("urn:p", triples))
    assert [match.subscription for match in report] == ["s"]

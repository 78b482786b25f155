"""CTPS and S-ToPSS: the examples of their papers, their costs, and the repairs of CTPS."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Variable

from graphmatch import SubscriptionParser
from graphmatch.published import make
from graphmatch.published.attribute_matcher import (
    AttributeEvent,
    AttributeMatcher,
    Below,
    Conjunction,
    Constraint,
    Equal,
    Interval,
    Present,
    Tally,
)
from graphmatch.published.reconstructed.stopss import SToPSS
from semantic import Ontology, Publication
from semantic.mapping import MappingFunction
from semantic.terms import Term, Triple
from semantic.vocabulary import EQUIVALENT_CLASS, SUBCLASS, SUBPROPERTY, TYPE
from tests.graphmatch.published.conjunctions import ATTRIBUTES, CLASSES, DOMAIN, TREE
from tests.strategies import EX

ROOT = Path(__file__).parents[3]
PARSER = SubscriptionParser()
P, Q, R, *_ = ATTRIBUTES
A, B, C, D, *_ = CLASSES
X, Y = Literal("x"), Literal("y")
NOW = datetime(2003, 9, 9, tzinfo=UTC)
ATTRIBUTE_TREE: tuple[Triple, ...] = ((Q, SUBPROPERTY, P), (R, SUBPROPERTY, P))


def index(
    name: str, *rows: dict[NamedNode, Constraint], ontology: tuple[Triple, ...] = TREE
) -> AttributeMatcher:
    options = {"domain": (0, 100), "cells": 5} if name == "ctps" else {}
    made = make(name, Ontology(ontology), **options)
    assert isinstance(made, AttributeMatcher)
    for number, row in enumerate(rows):
        made.add(Conjunction(str(number), Variable("x"), (row,)))
    return made


def work(made: AttributeMatcher, terms: dict[NamedNode, Term]) -> tuple[list[int], int, int, int]:
    """Return the matches of an event, and its numbers of probes, gates and candidates."""
    tally = Tally()
    found = sorted(made.matched(AttributeEvent.of(terms), tally))
    return found, tally.probes, tally.index_hits, tally.candidates


@pytest.mark.parametrize("name", ["ctps", "stopss"])
def test_types_are_classes(name: str) -> None:
    """Section 3.2 of CTPS has pairs like <price.type, MoneyValue>."""
    matcher = make(name, Ontology(TREE))
    matcher.subscribe(PARSER.parse("s", f"ASK {{ ?x a {B} }}"))
    for type_, count in ((D, 1), (B, 1), (A, 0)):
        assert len(matcher.match(Publication.of("p", [(EX["ann"], TYPE, type_)]))) == count


@pytest.mark.parametrize("name", ["ctps", "stopss"])
def test_two_values_of_one_attribute_serve_two_names_of_it(name: str) -> None:
    """The subscription constrains a class by one name, and a number by a broader name."""
    below, above, thing = EX["below"], EX["above"], EX["thing"]
    made = make(name, Ontology([(below, SUBPROPERTY, above)]))
    text = f"SELECT * {{ ?e {below} {thing} ; {above} ?n FILTER(?n > 5) }}"
    made.subscribe(PARSER.parse("s", text))
    triples = [(EX["ann"], below, thing), (EX["ann"], below, Literal(7))]
    assert list(made.match(Publication.of("urn:p", triples)).subscriptions) == ["s"]


# --- CTPS -----------------------------------------------------------------------------------------

TARGET, PRICE, CURRENCY = EX["target"], EX["price.value"], EX["price.currency"]
PRODUCT, COMPUTER, DESKTOP = EX["Product"], EX["Computer"], EX["DesktopPC"]
FIGURE_1 = [
    (COMPUTER, SUBCLASS, PRODUCT),
    (DESKTOP, SUBCLASS, COMPUTER),
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


def test_ctps_matches_the_papers_example() -> None:
    """Figures 1 to 3: John asks 450 dollars, and the subscriber pays up to 400."""
    matcher = make("ctps", Ontology(FIGURE_1))
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


def test_ctps_visits_the_classes_above_a_class() -> None:
    made = index("ctps", {P: Below(A)}, {P: Below(C)}, {P: Below(D)})
    assert work(made, {P: D}) == ([0, 2], 3, 0, 2)


def test_ctps_compares_ends_in_the_values_own_row_and_column() -> None:
    """Section 5.3: T is 5, the range 100 and the value 45, so r is 2."""
    ends = ((0, 20), (60, 80), (0, 44), (46, 80), (45, 50), (0, 80))
    made = index("ctps", *({P: Interval(*pair)} for pair in ends))
    assert work(made, {P: Literal(45)}) == ([4, 5], 6, 3, 3 + 2)


def test_ctps_compares_strings_before_ranges() -> None:
    made = index("ctps", {P: Interval(40, 50), Q: Equal(X)}, {P: Interval(41, 50), Q: Equal(Y)})
    found, _, index_hits, candidates = work(made, {P: Literal(45), Q: X})
    assert (found, index_hits, candidates) == ([0], 1, 1 + 1)


TWO_PARENTS = ((D, SUBCLASS, B), (D, SUBCLASS, C))


@pytest.mark.parametrize(
    ("row", "terms", "ontology", "matches"),
    [
        # A missing attribute fails its constraint.
        ({P: Equal(X), Q: Equal(Y)}, {P: X, Q: Y}, (), True),
        ({P: Equal(X), Q: Equal(Y)}, {P: X}, (), False),
        # An attribute belongs to its value.
        ({Q: Equal(X), R: Equal(Y)}, {Q: Y, R: X}, ATTRIBUTE_TREE, False),
        ({P: Equal(X), Q: Equal(Y)}, {Q: Y}, ATTRIBUTE_TREE, False),
        # Several pairs of a tree are alternatives.
        ({Q: Equal(X)}, {Q: X}, ATTRIBUTE_TREE, True),
        ({Q: Equal(X)}, {Q: X, R: Y}, ATTRIBUTE_TREE, True),
        ({P: Equal(X)}, {Q: X, R: Y}, ATTRIBUTE_TREE, True),
        # All parents are visited.
        ({P: Below(B)}, {P: D}, TWO_PARENTS, True),
        ({P: Below(C)}, {P: D}, TWO_PARENTS, True),
        # A value of another sort fails.
        ({P: Interval(0, 1)}, {P: X}, (), False),
        ({P: Below(A)}, {P: Literal(1)}, (), False),
    ],
)
def test_ctps_repairs_what_its_paper_prints(
    row: dict[NamedNode, Constraint],
    terms: dict[NamedNode, Term],
    ontology: tuple[Triple, ...],
    matches: bool,
) -> None:
    matcher = make("ctps", Ontology(ontology), domain=DOMAIN)
    assert isinstance(matcher, AttributeMatcher)
    matcher.add(Conjunction("s", Variable("x"), (row,)))
    assert (work(matcher, terms)[0] == [0]) is matches


# --- S-ToPSS --------------------------------------------------------------------------------------


def test_stopss_matches_the_papers_example() -> None:
    """School is a name of university, and experience is the present minus the graduation year."""
    ontology = Ontology.load(
        *(ROOT / "ontologies" / name for name in ("jobs.ttl", "experience.rq"))
    )
    stopss = make("stopss", ontology, now=NOW)
    path = ROOT / "data" / "subscriptions" / "stopss-example.rq"
    stopss.subscribe(PARSER.parse("recruiter", path.read_text(encoding="utf-8")))

    def candidate(year: int) -> Publication:
        jobs = "https://graphmatch.example/jobs#"
        pairs = {
            "school": Literal("University of Toronto"),
            "degree": NamedNode(jobs + "PhD"),
            "graduationYear": Literal(year),
        }
        me = EX["me"]
        return Publication.of("cv", [(me, NamedNode(jobs + p), v) for p, v in pairs.items()])

    report = stopss.match(candidate(1990))
    assert report.matches[0].solutions == ({"person": EX["me"]},)
    assert report.counters.mapped == 1
    assert len(stopss.match(candidate(2000))) == 0


def test_stopss_reports_a_function_that_fails() -> None:
    text = f"CONSTRUCT {{ ?x {P} ?more }} {{ ?x {P} ?n BIND(?n + 1 AS ?more) }}"
    ontology = Ontology(mapping=[MappingFunction("endless", text)])
    stopss = make("stopss", ontology)
    stopss.subscribe(PARSER.parse("s", f"SELECT * {{ ?x {P} ?n FILTER(?n < 2) }}"))
    report = stopss.match(Publication.of("p", [(EX["ann"], P, Literal(1))]))
    assert len(report) == 1
    assert "`endless` is left out" in str(report.problems[0])


def test_stopss_derives_an_event_for_each_choice_of_superclasses() -> None:
    """D is below B and A, and C below A. Unused attributes create no events."""
    made = index("stopss", {P: Below(A), Q: Below(B)})
    assert isinstance(made, SToPSS)
    events = list(made.general(AttributeEvent.of({P: D, Q: C, R: D})))
    assert {(event.terms[P], event.terms[Q]) for event in events} == {
        (p, q) for p in (D, B, A) for q in (C, A)
    }
    assert len(events) == 6


def test_stopss_tests_all_ranges() -> None:
    made = index(
        "stopss",
        {P: Interval(2), Q: Equal(X)},
        {P: Interval(0, 1)},
        {P: Interval(3)},
        {Q: Equal(X)},
        {Q: Present()},
    )
    assert work(made, {P: Literal(2), Q: X}) == ([0, 3, 4], 3 + 3 + 3, 2, 3)

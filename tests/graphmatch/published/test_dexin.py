"""DEXIN: the oracle's answers, its slots, the cost of each method, and its plans."""

from __future__ import annotations

from math import inf, nextafter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch.published import make
from graphmatch.published.base import Conjunction, Event, Interval, Tally
from graphmatch.published.dexin import Dexin, Slots
from semantic import Ontology
from tests.graphmatch.published.conjunctions import DOMAIN, agree, conjunctions
from tests.strategies import Scenario

P, Q, R = NamedNode("urn:p"), NamedNode("urn:q"), NamedNode("urn:r")
VARIANTS = ("dexin", "dexin-exclusive", "dexin-inclusive", "dexin-optimal")
every_variant = pytest.mark.parametrize("name", VARIANTS)


@pytest.mark.parametrize(
    ("name", "slots"),
    [("dexin", 1), ("dexin", 1500), *((name, 4) for name in VARIANTS)],
)
@given(conjunctions([Interval]), st.data())
def test_that_it_agrees_with_the_oracle(
    name: str, slots: int, scenario: Scenario, data: st.DataObject
) -> None:
    agree(lambda o: make(name, o, domain=DOMAIN, slots=slots), scenario, data)


def dexin(name: str = "dexin", **rows: dict[NamedNode, Interval]) -> Dexin:
    made = make(name, Ontology(), domain=(0, 10), slots=10)
    assert isinstance(made, Dexin)
    for id, row in rows.items():
        made.add(Conjunction(id, P, (row,)))
    return made


def matched(made: Dexin, **numbers: float) -> list[int]:
    event = Event({}, {NamedNode(f"urn:{name}"): number for name, number in numbers.items()})
    return list(made.matched(event, Tally()))


def test_that_a_slot_is_in_order() -> None:
    """Entries with equal values keep their order of insertion."""
    slots = Slots(2)
    for number, end in enumerate([5.0, 3.0, 5.0, 1.0, 4.0, 3.0]):
        slots.insert(1, end, number)
    assert slots.numbers[1].tolist() == [3, 1, 5, 4, 0, 2]
    assert slots.ends[1].tolist() == [1, 3, 3, 4, 5, 5]
    assert slots.sizes.tolist() == [0, 6]


@every_variant
def test_that_ends_are_open_closed_or_absent(name: str) -> None:
    made = dexin(
        name,
        point={P: Interval(5, 5)},
        closed={P: Interval(5, 5.5)},
        open={P: Interval(nextafter(5, inf), nextafter(5.5, -inf))},
        below={P: Interval(high=nextafter(5, -inf))},
        above={P: Interval(low=5)},
        any={P: Interval()},
    )
    assert matched(made, p=5) == [0, 1, 4, 5]
    assert matched(made, p=5.25) == [1, 2, 4, 5]
    assert matched(made, p=5.5) == [1, 4, 5]
    assert matched(made, p=4.75) == [3, 5]
    assert matched(made, p=inf) == [4, 5]
    assert matched(made, p=-inf) == [3, 5]


@every_variant
def test_that_nothing_passes_a_constraint_that_holds_for_nothing(name: str) -> None:
    """Rule 3 as printed would accept a value at the closed end."""
    made = dexin(name, empty={P: Interval(5, nextafter(5, -inf))}, turned={P: Interval(7, 5)})
    assert [matched(made, p=value) for value in (4, 5, 6, 7, 8)] == [[]] * 5


@every_variant
def test_that_a_missing_attribute_matches_nobody_who_asks_for_it(name: str) -> None:
    made = dexin(
        name,
        both={P: Interval(0, 1), Q: Interval(0, 1)},
        low={P: Interval(0, 1), Q: Interval(0)},
        high={P: Interval(0, 1), Q: Interval(high=1)},
        any={P: Interval(0, 1), Q: Interval()},
        one={P: Interval(0, 1)},
    )
    assert matched(made, p=1) == [4]
    assert matched(made, p=1, q=1) == [0, 1, 2, 3, 4]
    assert matched(made, q=1) == []


@every_variant
def test_that_many_are_matched_as_one_by_one(name: str) -> None:
    """Slots hold several entries, constraints and values are missing, and columns grow."""
    random = Random(5)
    made = make(name, Ontology(), domain=DOMAIN, slots=7)
    assert isinstance(made, Dexin)
    rows = []
    for number in range(300):
        asked = [P] * (number < 100) + random.sample([P, Q, R], random.randint(1, 3))
        ends = {attribute: sorted(random.choices(range(11), k=2)) for attribute in asked}
        rows.append(
            {
                attribute: Interval(
                    random.choice([low, low, -inf]), random.choice([high, high, inf])
                )
                for attribute, (low, high) in ends.items()
            }
        )
        made.add(Conjunction(str(number), P, (rows[-1],)))
    for _ in range(50):
        numbers = {a: random.uniform(-1, 11) for a in (P, Q, R) if random.random() < 0.9}
        right = [
            number
            for number, row in enumerate(rows)
            if all(a in numbers and i.holds(numbers[a]) for a, i in row.items())
        ]
        assert list(made.matched(Event({}, numbers), Tally())) == right


def test_that_the_exclusive_method_walks_over_what_does_not_hold() -> None:
    """Wide constraints cost only a search in the value's own slots."""
    made = dexin(
        "dexin-exclusive",
        wide={P: Interval(0, 9.9)},
        near={P: Interval(5.5, 9.9)},
        above={P: Interval(8, 9.9)},
        below={P: Interval(0, 2)},
        elsewhere={Q: Interval(0, 9)},
    )
    tally = Tally()
    assert list(made.matched(Event({}, {P: 5.4, Q: 5.0}), tally)) == [0, 4]
    assert (tally.probes, tally.gates, tally.candidates) == (3, 3, 1)


def crowd(name: str) -> Dexin:
    """Return 20 subscriptions; at 5.5, 8 of them pass P, 10 pass Q (3 of those 8), and all R."""
    inside, outside = Interval(0, 9), Interval(0, 3)
    return dexin(
        name,
        **{
            str(number): {
                P: inside if number < 8 else outside,
                Q: inside if 5 <= number < 15 else outside,
                R: inside,
            }
            for number in range(20)
        },
    )


@pytest.mark.parametrize(
    ("name", "steps", "probes", "gates", "candidates"),
    [
        ("dexin", [(P, 0, 0.6), (Q, 1, 0.4), (R, 1, 0.2)], 12, 12, 8 + 3),
        ("dexin-optimal", [(P, 0, 0.6), (R, 0, 0.0), (Q, 1, 0.4)], 12, 12, 8),
        ("dexin-exclusive", [(P, 0, 0.6), (Q, 0, 0.5), (R, 0, 0.0)], 12 + 10, 17, 0),
        ("dexin-inclusive", [(P, 1, 1.0), (Q, 1, 0.4), (R, 1, 0.2)], 0, 0, 20 + 8 + 3),
    ],
)
def test_that_each_step_looks_at_what_it_is_planned_to(
    name: str,
    steps: list[tuple[NamedNode, int, float]],
    probes: int,
    gates: int,
    candidates: int,
) -> None:
    """An exclusive step visits failed constraints, an inclusive one the remaining candidates."""
    made, event, tally = crowd(name), Event({}, {P: 5.5, Q: 5.5, R: 5.5}), Tally()
    plan = made.plan(event)
    assert [(step.attribute, step.method) for step in plan] == [step[:2] for step in steps]
    assert [step.cost for step in plan] == pytest.approx([cost for _, _, cost in steps])
    assert list(made.matched(event, tally)) == [5, 6, 7]
    assert (tally.probes, tally.gates, tally.candidates) == (probes, gates, candidates)


def test_that_rates_are_estimated_of_whole_slots() -> None:
    """Formula 3 counts the entries of the value's own slots, up to the total."""
    made = dexin(
        near={P: Interval(5.25, 5.75)},
        nearer={P: Interval(5.4, 5.6)},
        nearest={P: Interval(5.5, 5.5)},
        other={Q: Interval(5.25, 9)},
    )
    rates = {step.attribute: step.rate for step in made.plan(Event({}, {P: 5.5, Q: 5.5}))}
    assert rates == {P: 0, Q: 0.75}  # P has six entries of four subscriptions.
    assert matched(made, p=5.5, q=5.5) == [0, 1, 2, 3]


def test_that_a_missing_attribute_is_planned_as_one_that_nobody_passes() -> None:
    made = dexin(both={P: Interval(0, 9), Q: Interval(0)}, one={P: Interval(0, 9)})
    rates = {step.attribute: step.rate for step in made.plan(Event({}, {P: 5.0}))}
    assert rates == {P: 1, Q: 0.5}

"""Attribute subscriptions on events, compared with constraints evaluated in plain Python."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st

from graphmatch import AttributeSubscription, Engine
from semantic.attributes.constraints import attribute_query
from semantic.attributes.events import event
from semantic.attributes.values import decode

ATTRIBUTES = ("brand", "price.value", "date", "state", "weight (kg)")
TEXTS = ("Acme", "acme", "Acme & Sons", "Straße", "STRASSE", "ΟΔΟΣ", "οδος", "", "5")
DATES = ("2026-01-01", "2026-01-31", "2025-12-31")
NUMBERS = (0, 5, 5.0, 5.5, -3, 1e3, 1000)
VALUES: tuple[Any, ...] = (*TEXTS, *DATES, *NUMBERS, True, False)
ORDERED: tuple[Any, ...] = (*TEXTS, *DATES, *NUMBERS)


# --- The reference ----------------------------------------------------------------------------


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "date" if re.fullmatch(r"\d{4}-\d\d-\d\d", value) else "text"


def passes(value: Any, operator: str, operand: Any, *, ignore: bool) -> bool:
    if operator == "exists":
        return True
    if operator == "in":
        return any(passes(value, "=", each, ignore=False) for each in operand)
    same = kind(value) == kind(operand)
    if operator == "!=":
        return not same or bool(value != operand)
    if ignore and same and kind(value) == "text":
        value, operand = value.lower(), operand.lower()
    if operator == "=":
        return same and bool(value == operand)
    if operator in ("contains", "starts", "ends"):
        if kind(value) != "text":
            return False
        if operator == "contains":
            return operand in value
        return bool(value.startswith(operand) if operator == "starts" else value.endswith(operand))
    if not same:
        return False
    return bool(
        {"<": value < operand, "<=": value <= operand, ">": value > operand}.get(
            operator, value >= operand
        )
    )


def matches(where: Mapping[str, Any], attributes: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether each attribute has one value that satisfies its whole constraint."""
    for name, constraint in where.items():
        tests = constraint if isinstance(constraint, dict) else {"=": constraint}
        ignore = tests.get("ignore case", False)
        tests = {op: operand for op, operand in tests.items() if op != "ignore case"}
        if not any(
            all(passes(value, op, operand, ignore=ignore) for op, operand in tests.items())
            for value in attributes.get(name, ())
        ):
            return False
    return True


# --- Generated data ---------------------------------------------------------------------------


@st.composite
def constraints(draw: st.DrawFn) -> Any:
    if draw(st.booleans()):
        return draw(st.sampled_from(VALUES))
    if draw(st.integers(0, 3)) == 0:
        op = draw(st.sampled_from(("contains", "starts", "ends", "=")))
        return {op: draw(st.sampled_from(TEXTS)), "ignore case": draw(st.booleans())}
    tests: dict[str, Any] = {}
    for _ in range(draw(st.integers(1, 3))):
        op = draw(st.sampled_from(("=", "!=", "<", "<=", ">", ">=", "in", "contains", "exists")))
        match op:
            case "in":
                tests[op] = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))
            case "exists":
                tests[op] = True
            case "contains":
                tests[op] = draw(st.sampled_from(TEXTS))
            case "=" | "!=":
                tests[op] = draw(st.sampled_from(VALUES))
            case _:
                tests[op] = draw(st.sampled_from(ORDERED))
    return tests


WHERE = st.dictionaries(st.sampled_from(ATTRIBUTES), constraints(), min_size=1, max_size=3)
EVENTS = st.dictionaries(
    st.sampled_from(ATTRIBUTES),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
    min_size=1,
    max_size=5,
)


@given(st.lists(WHERE, min_size=1, max_size=4), EVENTS)
def test_matches_as_value_by_value(
    several: list[dict[str, Any]], attributes: dict[str, list[Any]]
) -> None:
    engine = Engine()
    for number, where in enumerate(several):
        written = decode(json.dumps(where))
        engine.subscribe(AttributeSubscription.of(str(number), written))
    read = decode(json.dumps(attributes))
    found = {match.subscription for match in engine.match(event("e", read))}
    expected = {str(n) for n, where in enumerate(several) if matches(where, attributes)}
    note(f"matches: {len(expected)}")
    assert found == expected


@given(WHERE, EVENTS)
def test_python_and_json_say_the_same(where: dict[str, Any], attributes: dict[str, Any]) -> None:
    read = decode(json.dumps({"where": where, "event": attributes}))
    assert attribute_query("s", where) == attribute_query("s", read["where"])
    assert event("e", attributes).triples == event("e", read["event"]).triples


# --- Several tests of one attribute -------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "values", "expected"),
    [
        ({">": 1, "<": 5}, [0, 9], False),
        ({">": 1, "<": 5}, [0, 3], True),
        ({">": 1, "!=": 3}, [0, 3], False),
        ({">": 1, "!=": 3}, [3, 4], True),
        ({"starts": "a", "ends": "z"}, ["ab", "yz"], False),
        ({"starts": "a", "ends": "z"}, ["ab", "a z"], True),
        ({"!=": "broken"}, ["broken", "new"], True),
        ({"!=": "broken"}, ["broken"], False),
    ],
)
def test_tests_of_one_attribute_are_about_one_value(
    constraint: dict[str, Any], values: list[Any], expected: bool
) -> None:
    engine = Engine()
    engine.subscribe(AttributeSubscription.of("s", {"a": constraint}))
    assert bool(engine.match(event("e", {"a": values})).matches) is expected


def test_a_missing_attribute_matches_nothing() -> None:
    """CTPS's algorithm 6 leaves this subscription set undecided."""
    engine = Engine()
    for name, constraint in {"not": {"!=": 5}, "low": {"<": 5}, "there": {"exists": True}}.items():
        engine.subscribe(AttributeSubscription.of(name, {"a": constraint}))
    assert not engine.match(event("e", {"b": 1})).matches
    assert len(engine.match(event("e", {"a": 1})).matches) == 3


def test_solutions_name_the_values() -> None:
    engine = Engine()
    where = {"price.value": {"<": 5}, "price_value": {"exists": True}, "brand": "Acme"}
    engine.subscribe(AttributeSubscription.of("s", where))
    (match,) = engine.match(
        event("http://e/1", {"price": {"value": 3}, "price_value": 4, "brand": "Acme"})
    )
    (solution,) = match.solutions
    assert {name: term.value for name, term in solution.items()} == {
        "event": "http://e/1",
        "price_value": "3",
        "price_value_2": "4",
    }


def test_quantities_compare_in_any_unit() -> None:
    engine = Engine()
    where = {"size": {">=": {"value": 40, "unit": "GB"}, "<": {"value": 1, "unit": "TB"}}}
    engine.subscribe(AttributeSubscription.of("s", where))
    for number, unit, expected in ((40000, "MB", True), (39, "GB", False), (1000, "GB", False)):
        publication = event("e", {"size": {"value": number, "unit": unit}})
        assert bool(engine.match(publication).matches) is expected, (number, unit)


def test_a_value_can_be_declared() -> None:
    engine = Engine()
    text = {"value": "2026-01-01", "datatype": "xsd:string"}
    engine.subscribe(AttributeSubscription.of("text", {"a": text}))
    engine.subscribe(AttributeSubscription.of("date", {"a": "2026-01-01"}))
    german = {"value": "Klima", "language": "de"}
    engine.subscribe(AttributeSubscription.of("german", {"a": german}))
    engine.subscribe(AttributeSubscription.of("iri", {"a": {"iri": "foaf:Person"}}))
    for value, name in [
        (text, "text"),
        ("2026-01-01", "date"),
        (german, "german"),
        ({"iri": "http://xmlns.com/foaf/0.1/Person"}, "iri"),
    ]:
        assert [m.subscription for m in engine.match(event("e", {"a": value}))] == [name]

"""Comparison by value, checked with pyoxigraph's evaluator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QuerySolutions, Store

from semantic.terms import Term
from semantic.values import ComparisonOperator, Instant, Number, compare, decidable, value_of
from semantic.vocabulary import XSD

P = NamedNode("urn:p")


def lit(text: str, datatype: str = "string") -> Literal:
    return Literal(text, datatype=XSD[datatype])


INTEGERS = ("integer", "long", "int", "byte", "unsignedShort", "negativeInteger")
TEXTS = {
    "integer": ["0", "-0", "+7", "007", "7", "-7", "9223372036854775807", "9223372036854775808"],
    "decimal": [
        "7",
        "7.0",
        ".5",
        "7.",
        "-0.0",
        "0.000000000000000001",
        "1e3",
        "7.00000000000000001",
    ],
    "float": ["7", "7e0", "1.1", "INF", "-INF", "NaN", "16777217", "1e39", "-0", "+7"],
    "double": ["7.0E0", "1.1", "INF", "NaN", "16777217", "9007199254740993", "1e400", "5e-324"],
    "boolean": ["true", "false", "1", "0", "TRUE", ""],
    "dateTime": [
        "2024-02-29T00:00:00",
        "2024-02-29T00:00:00Z",
        "2024-02-28T24:00:00",
        "2024-02-28T19:00:00-05:00",
        "2024-02-29T00:00:00.5",
        "2023-02-29T00:00:00",
        "2024-02-29T25:00:00",
        "-0044-03-15T00:00:00Z",
        "12024-01-01T00:00:00Z",
    ],
    "date": ["2024-02-29", "2024-02-29Z", "2024-03-01-14:00", "0000-01-01", "2024-2-29"],
    "string": ["", "7", "a", "B", "é", "\U00010000", "\uffff"],
}
TERMS: tuple[Term, ...] = (
    *(lit(text, datatype) for datatype, texts in TEXTS.items() for text in texts),
    *(lit("7", datatype) for datatype in (*INTEGERS, "dateTimeStamp", "duration", "time")),
    lit("2024-02-29T00:00:00Z", "dateTimeStamp"),
    lit("300", "byte"),
    lit("P1D", "duration"),
    Literal("a", language="en"),
    Literal("7", datatype=NamedNode("urn:type")),
    NamedNode("urn:a"),
    BlankNode("b"),
)
CONSTANTS = tuple(term for term in TERMS if isinstance(term, NamedNode | Literal))


CASES = [
    pytest.param(operator, constant, id=f"{operator.value} {constant}")
    for constant in CONSTANTS
    for operator in ComparisonOperator
    if decidable(operator, constant)
]


@pytest.fixture(scope="module")
def numbered() -> Store:
    """Store each term under a numbered subject, because the store changes literals."""
    store = Store()
    store.extend(Quad(NamedNode(f"urn:{n}"), P, term) for n, term in enumerate(TERMS))
    return store


@pytest.mark.parametrize(("operator", "constant"), CASES)
def test_that_the_evaluator_agrees(
    operator: ComparisonOperator, constant: NamedNode | Literal, numbered: Store
) -> None:
    answer = numbered.query(f"SELECT ?s {{ ?s {P} ?x FILTER(?x {operator.value} {constant}) }}")
    assert isinstance(answer, QuerySolutions)
    expected = {TERMS[int(row["s"].value.removeprefix("urn:"))] for row in answer}
    assert {term for term in TERMS if compare(term, operator, constant)} == expected


def test_only_plain_values_are_decidable() -> None:
    assert [decidable(o, NamedNode("urn:a")) for o in ComparisonOperator] == [True] + [False] * 4
    assert [decidable(o, lit("true", "boolean")) for o in ComparisonOperator] == [True] + [
        False
    ] * 4
    undecidable = [Literal("a", language="en"), lit("NaN", "double"), lit("x", "integer")]
    undecidable += [lit("P1D", "duration"), lit("9223372036854775808", "integer")]
    assert not any(decidable(o, term) for o in ComparisonOperator for term in undecidable)


def agrees(term: Literal, operator: ComparisonOperator, constant: Literal) -> None:
    expected = bool(Store().query(f"ASK {{ FILTER({term} {operator.value} {constant}) }}"))
    assert not decidable(operator, constant) or compare(term, operator, constant) == expected


digits = st.text("0123456789", min_size=1, max_size=20)
decimals = st.builds(
    lambda sign, a, b: f"{sign}{a}.{b}", st.sampled_from(("", "-", "+")), digits, digits
)
numbers = st.one_of(
    st.integers(-(2**64), 2**64).map(lambda n: lit(str(n), "integer")),
    decimals.map(lambda text: lit(text, "decimal")),
    st.floats(allow_nan=False).map(lambda n: lit(repr(n).replace("inf", "INF"), "double")),
    decimals.map(lambda text: lit(text, "float")),
    st.floats(width=32, allow_nan=False).map(lambda n: lit(repr(n).replace("inf", "INF"), "float")),
)


@st.composite
def near(draw: st.DrawFn) -> tuple[Literal, Literal]:
    """Draw a number, and one of another type with similar digits."""
    number = draw(numbers)
    kind = draw(st.sampled_from(("integer", "decimal", "float", "double")))
    text = number.value
    if kind == "integer":
        text = text.partition(".")[0] if "e" not in text else text
    return number, lit(text, kind)


@given(near() | st.tuples(numbers, numbers), st.sampled_from(ComparisonOperator))
def test_numbers(pair: tuple[Literal, Literal], operator: ComparisonOperator) -> None:
    agrees(pair[0], operator, pair[1])
    agrees(pair[1], operator, pair[0])


zones = st.sampled_from(("", "Z", "+14:00", "-14:00", "+00:00", "-05:30", "+14:01"))
moments = st.builds(
    lambda year, month, day, hour, fraction, zone: lit(
        f"{year}-{month:02}-{day:02}T{hour:02}:00:00{fraction}{zone}", "dateTime"
    ),
    st.sampled_from(("2024", "2023", "-0001", "0000", "0001", "5391559471918", "5391559471919")),
    st.integers(1, 12),
    st.integers(28, 31),
    st.integers(0, 24),
    st.sampled_from(("", ".5", ".000000000000000001", ".000000000000000002", ".50")),
    zones,
)
days = st.builds(
    lambda day, zone: lit(f"2024-02-{day:02}{zone}", "date"), st.integers(27, 30), zones
)


@given(
    st.one_of(st.tuples(moments, moments), st.tuples(days, days)),
    st.sampled_from(ComparisonOperator),
)
def test_instants(pair: tuple[Literal, Literal], operator: ComparisonOperator) -> None:
    agrees(pair[0], operator, pair[1])


@given(st.text(max_size=3), st.text(max_size=3), st.sampled_from(ComparisonOperator))
def test_texts(a: str, b: str, operator: ComparisonOperator) -> None:
    agrees(lit(a), operator, lit(b))


@pytest.mark.parametrize(
    ("term", "constant", "equal"),
    [
        # An integer becomes a float in one rounding, not through a double.
        (lit("9007199791611905", "integer"), lit("9007200328482816", "float"), True),
        (lit("12674264.50000000000000000001", "float"), lit("12674265", "float"), True),
        (
            lit("170141183460469231731.687303715884105727", "decimal"),
            lit("170141183460469231731.687303715884105726", "decimal"),
            False,
        ),
        (
            lit("2024-01-01T00:00:00.000000000000000001", "dateTime"),
            lit("2024-01-01T00:00:00.000000000000000002", "dateTime"),
            False,
        ),
    ],
)
def test_the_last_digit(term: Literal, constant: Literal, equal: bool) -> None:
    assert compare(term, ComparisonOperator.EQ, constant) is equal
    agrees(term, ComparisonOperator.EQ, constant)


@pytest.mark.parametrize("datatype", ["integer", "decimal", "double", "date", "dateTime"])
def test_that_any_length_can_be_read(datatype: str) -> None:
    """Python refuses to parse more than 4300 digits, but a publication may contain them."""
    long = "9" * 10_000
    assert value_of(lit(f"{long}-01-01", datatype)) is None
    assert value_of(lit(f"{long}-01-01T00:00:00", datatype)) is None
    value = value_of(lit(long, datatype))
    assert value == (Number(float("inf")) if datatype == "double" else None)
    assert value_of(lit("0" * 10_000 + "5", "integer")) == value_of(lit("5", "integer"))


def test_what_values_are() -> None:
    noon = value_of(lit("0001-01-02T00:00:01+00:01", "dateTime"))
    assert isinstance(noon, Instant)
    assert (noon.kind, int(noon.seconds), noon.zoned) == ("dateTime", 86400 + 1 - 60, True)
    assert value_of(lit("1", "boolean")) is True
    assert value_of(Literal("a", language="en")) is None

"""Arrow tables as attribute subscriptions, held against rows of JSON that say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal

from semantic.attributes.gathered import Grouped
from semantic.attributes.headings import Heading, heading, headings
from semantic.attributes.query import AttributeQuery
from semantic.attributes.subscription import AttributeParser
from semantic.attributes.tables import grouped_attribute_table
from semantic.errors import InputError, SubscriptionError
from semantic.vocabulary import XSD

# --- Headings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("brand", Heading("brand", None, ignore_case=False)),
        ("price.value <=", Heading("price.value", "<=", ignore_case=False)),
        ("target isa", Heading("target", "isa", ignore_case=False)),
        ("weight (kg) =", Heading("weight (kg)", "=", ignore_case=False)),
        ("title ignore case contains", Heading("title", "contains", ignore_case=True)),
    ],
)
def test_headings(name: str, expected: Heading) -> None:
    assert heading(name) == expected


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["price =<"], r"column 'price =<': there is no operator '=<'\. Use one of"),
        (["weight (kg)"], r"there is no operator '\(kg\)'.* 'weight \(kg\) ='\.$"),
        (["a..b <"], r"column 'a\.\.b <': 'a\.\.b' is no name of an attribute"),
        ([" <"], "'' is no name of an attribute"),
        (["a", "a ="], "column 'a =': the columns 'a' and 'a =' say the same"),
        (["a <", "b", "a <"], "the columns 'a <' and 'a <' say the same"),
    ],
)
def test_headings_that_mean_nothing(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        headings(names)


# --- The reference ----------------------------------------------------------------------------


def spoken(names: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constraints that a row says, as JSON does."""
    where: dict[str, Any] = {}
    for name in names:
        if (value := row[name]) is None:
            continue
        attribute, _, operator = name.partition(" ")
        if isinstance(value, Decimal):
            value = Literal(f"{value:f}", datatype=XSD["decimal"])
        where.setdefault(attribute, {})[operator or "="] = value
    return where


def row_by_row(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], parser: AttributeParser
) -> list[AttributeQuery | str]:
    """Return the query of each row, or what is wrong with it."""
    found: list[AttributeQuery | str] = []
    for number, row in enumerate(rows, 1):
        try:
            name = row["id"]
            if name is None or not name.strip():
                found.append(f"row {number}: the id is null or empty")
            elif where := spoken(names, row):
                found.append(parser.query(name, where))
            else:
                found.append(f"{name}: all its constraints are null")
        except SubscriptionError as error:
            found.append(f"{error.problem.where}: {error.problem.what}")
    return found


def of_groups(grouped: Grouped) -> list[AttributeQuery | str]:
    """Return the same of a table."""
    found: dict[int, AttributeQuery | str] = {
        row: f"{error.problem.where}: {error.problem.what}" for row, error in grouped.refused
    }
    assert list(found) == sorted(found)
    for group in grouped.groups:
        constants = group.constants.tolist()
        for row, places in zip(group.rows, constants, strict=True):
            terms = tuple(grouped.terms[place] for place in places)
            assert row not in found
            found[row] = AttributeQuery(group.template, terms)
    return [found[row] for row in range(len(found))]


# --- Generated tables -------------------------------------------------------------------------

TEXTS = st.sampled_from(("Acme", "größe", "2026-01-31", "2026-02-31", "2026-x", "", " ", "5"))
COLUMNS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "brand": ("string", TEXTS),
    "brand !=": ("large_string", TEXTS),
    "at >=": ("string", TEXTS),
    "at <": ("date32", st.dates(date(2000, 1, 1), date(2030, 1, 1))),
    "seen": ("timestamp", st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1))),
    "price >": ("int64", st.integers(-(2**63), 2**63 - 1)),
    "price <=": ("float64", st.floats(allow_subnormal=False)),
    "price": ("int8", st.integers(-5, 5)),
    "size": ("uint64", st.integers(0, 2**64 - 1)),
    "cost =": ("float64", st.sampled_from((0.5, 1e300, 12345678.123456789))),
    "cost <": ("decimal128", st.sampled_from((Decimal("3.50"), Decimal("0.0000001"), Decimal(5)))),
    "new": ("bool", st.booleans()),
    "new exists": ("bool", st.sampled_from((True, True, False))),
    "target isa": ("dictionary", TEXTS),
    "title contains": ("dictionary", TEXTS),
    "title starts": ("int64", st.integers(0, 1)),
    "kind in": ("list", st.lists(TEXTS, max_size=2)),
    "weight >=": ("struct", st.sampled_from(({"value": 40, "unit": "GB"}, {"value": 5}))),
}


def arrow_type(name: str) -> Any:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `spark` only")
    return {
        "timestamp": arrow.timestamp("us"),
        "decimal128": arrow.decimal128(20, 7),
        "bool": arrow.bool_(),
        "dictionary": arrow.dictionary(arrow.int8(), arrow.string()),
        "list": arrow.list_(arrow.string()),
        "struct": arrow.struct({"value": arrow.int64(), "unit": arrow.string()}),
    }.get(name) or getattr(arrow, name)()


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[dict[str, Any]]]:
    """Names of columns in some order, and rows."""
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=5, unique=True))
    ids = st.sampled_from(("a", "b", "ö", "", " ", None))
    row = st.fixed_dictionaries(
        {"id": ids, **{name: st.none() | COLUMNS[name][1] for name in names}}
    )
    return names, draw(st.lists(row, max_size=8))


@settings(max_examples=300)
@given(tables(), st.integers(1, 8))
def test_that_it_is_what_row_by_row_is(
    drawn: tuple[list[str], list[dict[str, Any]]], size: int
) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `spark` only")
    names, rows = drawn
    schema = arrow.schema(
        [("id", arrow.string())] + [(n, arrow_type(COLUMNS[n][0])) for n in names]
    )
    table = arrow.Table.from_pylist(rows, schema=schema)
    scaled = [  # Arrow has as many digits as the type says
        {
            name: v.quantize(Decimal("0.0000001")) if isinstance(v, Decimal) else v
            for name, v in r.items()
        }
        for r in rows
    ]
    parser = AttributeParser()
    expected = row_by_row(names, scaled, parser)
    assert of_groups(grouped_attribute_table(table, parser=parser)) == expected
    several = arrow.Table.from_batches(table.to_batches(max_chunksize=size), schema)
    assert of_groups(grouped_attribute_table(several, parser=parser)) == expected


# --- By hand ----------------------------------------------------------------------------------


def test_of_two_faults_that_of_the_first_attribute_is_said() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `spark` only")
    columns = {"id": ["a"], "title contains": ["x"], "kind in": [[]], "title starts": [0]}
    types = [("id", arrow.string()), ("title contains", arrow.string())]
    types += [("kind in", arrow.list_(arrow.string())), ("title starts", arrow.int64())]
    ((_, error),) = grouped_attribute_table(arrow.table(columns, arrow.schema(types))).refused
    assert "'title'" in error.problem.what


def test_a_table_and_its_batches() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `spark` only")
    given = {
        "name": ["a", "b", None, "c", "d"],
        "brand": ["Acme", None, "Acme", "Apex", None],
        "price <=": [400, 250, 1, 400, None],
    }
    table = arrow.table(given)
    for each in (table, table.to_batches()[0]):
        grouped = grouped_attribute_table(each, id="name")
        assert [(list(group.ids), list(group.rows)) for group in grouped.groups] == [
            (["a", "c"], [0, 3]),
            (["b"], [1]),
        ]
        constants = grouped.groups[0].constants
        assert constants.shape == (2, 4)
        assert constants.flags.c_contiguous
        assert [str(error) for _, error in grouped.refused] == [
            "row 3: the id is null or empty. Give each row an id of its own.",
            "d: all its constraints are null. Give one at least, or no row.",
        ]


def test_that_a_shape_and_a_value_are_looked_at_once() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `spark` only")
    rows = 10_000
    parser = AttributeParser()
    grouped = grouped_attribute_table(
        arrow.table(
            {
                "id": [f"s{n}" for n in range(rows)],
                "brand": [f"b{n % 7}" for n in range(rows)],
                "price >": [n % 11 for n in range(rows)],
                "price <=": [None if n % 2 else n % 13 + 0.5 for n in range(rows)],
            }
        ),
        parser=parser,
    )
    assert parser.shapes == len(grouped.groups) == 2
    assert len(grouped.terms) == 7 + 11 + 13 + 2


def test_more_kinds_of_rows_than_fit_into_a_number() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `spark` only")
    names = [f"a{n}" for n in range(80)]
    rows: list[dict[str, Any]] = [
        {
            "id": f"s{n}",
            **{
                name: "x" if (place * 7 + n) % (n + 2) == 0 else None
                for place, name in enumerate(names)
            },
        }
        for n in (0, 1, 2, 0, 3, 1)
    ]
    assert all(any(row[name] for row in rows) for name in names[::2])
    rows[5][names[0]] = "2026-01-31"
    schema = arrow.schema([(name, arrow.string()) for name in ("id", *names)])
    table = arrow.Table.from_pylist(rows, schema=schema)
    parser = AttributeParser()
    expected = row_by_row(names, rows, parser)
    assert of_groups(grouped_attribute_table(table, parser=parser)) == expected


def test_ids_that_are_numbers_and_times_with_zones() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `spark` only")
    at = arrow.array([datetime(2026, 1, 31, tzinfo=UTC)], arrow.timestamp("s", "UTC"))
    grouped = grouped_attribute_table(arrow.table({"id": [7], "at <": at}))
    assert list(grouped.groups[0].ids) == ["7"]
    assert Literal("2026-01-31T00:00:00+00:00", datatype=XSD["dateTime"]) in grouped.terms


def test_values_that_python_has_not() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `spark` only")
    far = arrow.array([2**62], arrow.timestamp("s"))
    with pytest.raises(InputError, match="column 'at': Arrow has values here that Python has not"):
        grouped_attribute_table(arrow.table({"id": ["a"], "at <": far}))


@pytest.mark.parametrize("names", [["brand"], ["id", "id"]])
def test_ids_have_a_column(names: list[str]) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `spark` only")
    table = arrow.Table.from_arrays([arrow.array(["x"])] * len(names), names)
    with pytest.raises(InputError, match=r"column 'id': the table has (no|2) columns called 'id'"):
        grouped_attribute_table(table)

"""Bulk subscription from tables and lines, compared with subscribing one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as arrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine
from semantic import Event, Ontology
from semantic.attributes import bulk
from semantic.attributes.bulk import Heading, headings
from semantic.attributes.constraints import Shape, attribute_query, sparql
from semantic.attributes.events import event
from semantic.errors import GraphMatchError, InputError
from semantic.limits import Limits
from semantic.vocabulary import SUBCLASS, XSD

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
    assert headings([name]) == [expected]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["price =<"], r"column 'price =<': there is no operator '=<'\. Use one of"),
        (["weight (kg)"], r"there is no operator '\(kg\)'.* 'weight \(kg\) ='\.$"),
        (["a..b <"], r"column 'a\.\.b <': 'a\.\.b' is not a valid attribute name"),
        ([" <"], "'' is not a valid attribute name"),
        (["a", "a ="], "column 'a =': the columns 'a' and 'a =' have the same test"),
        (["a <", "b", "a <"], "the columns 'a <' and 'a <' have the same test"),
    ],
)
def test_headings_that_mean_nothing(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        headings(names)


# --- The reference ----------------------------------------------------------------------------


def spoken(names: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constraints of a row, in their JSON form."""
    where: dict[str, Any] = {}
    attributes = [name.partition(" ")[0] for name in names]
    for name in sorted(names, key=lambda name: attributes.index(name.partition(" ")[0])):
        if (value := row[name]) is None:
            continue
        attribute, _, operator = name.partition(" ")
        if isinstance(value, Decimal):
            value = Literal(f"{value:f}", datatype=XSD["decimal"])
        where.setdefault(attribute, {})[operator or "="] = value
    return where


def said(error: GraphMatchError) -> str:
    return f"{error.problem.where}: {error.problem.what}"


def row_by_row(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> tuple[Engine, list[str]]:
    """Subscribe row by row; return the engine and the errors."""
    engine, refused = Engine(), []
    for number, row in enumerate(rows, 1):
        id = row["id"]
        try:
            if id is None or not id.strip():
                refused.append(f"row {number}: the id is null or empty")
            elif where := spoken(names, row):
                engine.subscribe(id, attribute_query(id, where))
            else:
                refused.append(f"{id}: all constraints of the row are null")
        except GraphMatchError as error:
            refused.append(said(error))
    return engine, refused


def texts_of(engine: Engine) -> list[tuple[str, str]]:
    """Return the id and query text of each subscription, sorted by id."""
    return sorted((one.id, one.query.text) for one in engine.subscriptions)


# --- Generated tables -------------------------------------------------------------------------

WORDS = st.sampled_from(("Acme", "größe", "2026-01-31", "2026-02-31", "2026-x", "", " ", "5"))
COLUMNS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "brand": ("string", WORDS),
    "brand !=": ("large_string", WORDS),
    "at >=": ("string", WORDS),
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
    "target isa": ("dictionary", WORDS),
    "title contains": ("dictionary", WORDS),
    "title starts": ("int64", st.integers(0, 1)),
    "kind in": ("list", st.lists(WORDS, max_size=2)),
    "weight >=": ("struct", st.sampled_from(({"value": 40, "unit": "GB"}, {"value": 5}))),
}


def arrow_type(name: str) -> Any:
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
    """Draw column names in some order, and rows."""
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=5, unique=True))
    ids = st.sampled_from(("a", "b", "ö", "", " ", "\u2003", None))
    row = st.fixed_dictionaries(
        {"id": ids, **{name: st.none() | COLUMNS[name][1] for name in names}}
    )
    return names, draw(st.lists(row, max_size=8))


@settings(max_examples=150)
@given(tables(), st.integers(1, 8))
def test_that_a_table_is_what_its_rows_are(
    drawn: tuple[list[str], list[dict[str, Any]]], size: int
) -> None:
    names, rows = drawn
    schema = arrow.schema(
        [("id", arrow.string())] + [(n, arrow_type(COLUMNS[n][0])) for n in names]
    )
    table = arrow.Table.from_pylist(rows, schema=schema)
    scaled = [  # The Arrow type fixes the number of decimal places.
        {
            name: v.quantize(Decimal("0.0000001")) if isinstance(v, Decimal) else v
            for name, v in r.items()
        }
        for r in rows
    ]
    expected, refused = row_by_row(names, scaled)
    several = arrow.Table.from_batches(table.to_batches(max_chunksize=size), schema)
    for each in (table, several):
        engine = Engine()
        told = [said(error) for error in engine.subscribe_table(each)]
        assert (told, texts_of(engine)) == (refused, texts_of(expected))


# --- Examples ---------------------------------------------------------------------------------


def test_the_error_of_the_first_attribute_is_reported() -> None:
    columns = {"id": ["a"], "title contains": ["x"], "kind in": [[]], "title starts": [0]}
    types = [("id", arrow.string()), ("title contains", arrow.string())]
    types += [("kind in", arrow.list_(arrow.string())), ("title starts", arrow.int64())]
    (error,) = Engine().subscribe_table(arrow.table(columns, arrow.schema(types)))
    assert "'title'" in error.problem.what


def test_a_table_and_its_batches() -> None:
    given = {
        "name": ["a", "b", None, "c", "d"],
        "brand": ["Acme", None, "Acme", "Apex", None],
        "price <=": [400, 250, 1, 400, None],
    }
    table = arrow.table(given)
    for each in (table, table.to_batches()[0]):
        engine = Engine()
        refused = engine.subscribe_table(each, id="name")
        assert [subscription.id for subscription in engine.subscriptions] == ["a", "b", "c"]
        assert list(map(str, refused)) == [
            "row 3: the id is null or empty. Give each row a unique id.",
            "d: all constraints of the row are null. Add one, or remove the row.",
        ]


def test_that_rows_of_many_classes_are_added_fast() -> None:
    """The core parses few rows again after each that needs Python."""
    names = [f"C{n}" for n in range(1000)]
    top = NamedNode("urn:Top")
    engine = Engine(Ontology([(NamedNode(f"urn:{name}"), SUBCLASS, top) for name in names]))
    ids = [f"s{n}" for n in range(1001)]
    table = arrow.table({"id": ids, "kind isa": [*names, "none"]})
    (refused,) = engine.subscribe_table(table)
    assert "s1000: the ontology has no term called 'none'" in str(refused)
    assert [subscription.id for subscription in engine.subscriptions] == ids[:-1]
    assert list(engine.match(Event("e", {"kind": "C7"})).subscriptions) == ["s7"]


def test_that_rows_of_one_shape_share_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def counted(shape: Shape, constants: Sequence[str]) -> str:
        written.append(sparql(shape, constants))
        return written[-1]

    monkeypatch.setattr(bulk, "sparql", counted)
    rows: list[dict[str, Any]] = [
        {"id": f"s{n}", "price >=": n, "price <=": n + 0.5, "brand": f"B{n % 7}", "kind isa": None}
        for n in range(1000)
    ]
    table = arrow.Table.from_pylist(rows)
    engine = Engine()
    assert engine.subscribe_table(table) == ()
    (query,) = written
    assert "FILTER(?price >= ?_0) FILTER(?price <= ?_1)" in query
    assert [one.id for one in engine.subscriptions] == [row["id"] for row in rows]
    assert list(engine.match(Event("e", {"price": 7, "brand": "B0"})).subscriptions) == ["s7"]

    written.clear()
    rows[400]["price >="] = None
    rows[500]["price <="] = float("nan")
    rows[600]["price <="] = 0.0012345678901234567  # More digits than a decimal may have.
    rows[700]["brand"] = "2026-01-31"  # The query has a filter.
    rows[800]["id"] = " "
    engine = Engine()
    refused = engine.subscribe_table(arrow.Table.from_pylist(rows, table.schema))
    expected, reasons = row_by_row(list(rows[0])[1:], rows)
    assert (list(map(said, refused)), texts_of(engine)) == (reasons, texts_of(expected))
    assert [said(error).partition(":")[0] for error in refused] == ["s500", "s600", "row 801"]
    assert len(written) == 8, "six parts between these rows, and two valid rows alone"


def test_that_rows_with_class_names_keep_their_places() -> None:
    engine = Engine(Ontology([(NamedNode("urn:Top"), SUBCLASS, NamedNode("urn:Any"))]))
    ids = [f"s{n}" for n in range(9)]
    classes = ["Top" if n in {0, 5} else "urn:Top" for n in range(9)]
    assert engine.subscribe_table(arrow.table({"id": ids, "kind isa": classes})) == ()
    assert [one.id for one in engine.subscriptions] == ids


def test_more_kinds_of_rows_than_fit_into_a_number() -> None:
    names = [f"a{n}" for n in range(80)]
    rows: list[dict[str, Any]] = [
        {
            "id": f"s{place}",
            **{name: "x" if (at * 7 + n) % (n + 2) == 0 else None for at, name in enumerate(names)},
        }
        for place, n in enumerate((0, 1, 2, 0, 3, 1))
    ]
    assert all(any(row[name] for row in rows) for name in names[::2])
    rows[5][names[0]] = "2026-01-31"
    schema = arrow.schema([(name, arrow.string()) for name in ("id", *names)])
    engine = Engine()
    assert engine.subscribe_table(arrow.Table.from_pylist(rows, schema=schema)) == ()
    assert texts_of(engine) == texts_of(row_by_row(names, rows)[0])


def test_ids_that_are_numbers_and_times_with_zones() -> None:
    at = arrow.array([datetime(2026, 1, 31, tzinfo=UTC)], arrow.timestamp("s", "UTC"))
    engine = Engine()
    assert engine.subscribe_table(arrow.table({"id": [7], "at <": at})) == ()
    ((id, text),) = texts_of(engine)
    assert id == "7"
    assert str(Literal("2026-01-31T00:00:00+00:00", datatype=XSD["dateTime"])) in text


def test_ids_that_are_views_of_texts() -> None:
    ids = arrow.array(["one", None], arrow.string_view())
    engine = Engine()
    (refused,) = engine.subscribe_table(arrow.table({"id": ids, "brand": ["Acme", "Acme"]}))
    assert "the id is null or empty" in str(refused)
    assert "one" in engine


def test_values_that_python_has_not() -> None:
    count = 70_000  # The value is in the second batch.
    at = arrow.array([5] * (count - 2) + [2**62, None], arrow.timestamp("s"))
    ids, engine = list(map(str, range(count))), Engine()
    table = arrow.table({"id": ids, "at <": at, "brand": ["Acme"] * count})
    (refused,) = engine.subscribe_table(table)
    assert "69998: attribute 'at': Python cannot represent this value" in str(refused)
    assert len(engine) == count - 1


def test_integers_of_more_than_63_bits() -> None:
    numbers = arrow.array([2**63, 5, 2**64 - 1], arrow.uint64())
    engine = Engine()
    one, other = engine.subscribe_table(arrow.table({"id": ["a", "b", "c"], "n <=": numbers}))
    assert "a: attribute 'n': 9223372036854775808 has too many digits" in str(one)
    assert "c: attribute 'n': 18446744073709551615 has too many digits" in str(other)
    assert [subscription.id for subscription in engine.subscriptions] == ["b"]
    equal = Engine()
    assert equal.subscribe_table(arrow.table({"id": ["a", "b", "c"], "n": numbers})) == ()
    found = {n: equal.match(event("e", {"n": n})).matches for n in (2**63, 2**63 + 1, 5, 2**64 - 1)}
    assert {n: [m.subscription for m in matches] for n, matches in found.items()} == {
        2**63: ["a"],
        2**63 + 1: [],
        5: ["b"],
        2**64 - 1: ["c"],
    }


@pytest.mark.parametrize("names", [["brand"], ["id", "id"]])
def test_ids_have_a_column(names: list[str]) -> None:
    table = arrow.Table.from_arrays([arrow.array(["x"])] * len(names), names)
    with pytest.raises(InputError, match=r"column 'id': the table has (no|2) columns called 'id'"):
        Engine().subscribe_table(table)


def test_a_shape_that_is_larger_than_a_limit() -> None:
    rows = [{"id": id, **{f"{name} <": 5 for name in "wxyz"}} for id in "ab"]
    engine = Engine(limits=Limits(subscription_operators=5))
    table = arrow.Table.from_pylist([*rows, {"id": "c", "w <": 5}])
    errors = engine.subscribe_table(table)
    assert [error.problem.where.source for error in errors] == ["a", "b"]
    assert [id for id, _ in texts_of(engine)] == ["c"]

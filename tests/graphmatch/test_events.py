"""Events as dictionaries and table rows, compared with the equivalent publications."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as arrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch import AttributeSubscription, Engine
from graphmatch.report import MatchReport
from semantic import Ontology, Publication
from semantic.attributes.events import Event
from semantic.errors import InputError
from semantic.vocabulary import SUBCLASS, XSD

LAPTOP, COMPUTER = NamedNode("urn:e:Laptop"), NamedNode("urn:e:Computer")
NAMES = ("price", "price.value", "brand", "at", "größe", "foaf:name", "a-b_1", "weight (kg)")
WHERES: tuple[Any, ...] = (
    *({name: {"exists": True}} for name in NAMES),
    {"price": {">=": 5}},
    {"price.value": {"<": 5.5, "!=": 2}},
    {"brand": "Acme"},
    {"brand": {"contains": "c", "ignore case": True}},
    {"brand": {"isa": "Computer"}},
    {"at": {">": "2026-01-01"}},
    {"at": {"=": True}},
    {"price": {"in": [1, 0.5, "5"]}},
    {"price": {"<": {"value": 1, "unit": "GB"}}},
)
SCALARS = st.sampled_from(
    (
        *("Acme", "größe", "2026-01-31", "2026-x", "", 'a"b\\\n', "Laptop", "5", "0000-"),
        *(5, 0, -7, 2**40, 2**70, True, False, None, date(2026, 1, 31)),
        *(0.5, 5.0, 1e300, 1e-7, 12345678.123456789, -0.0, Decimal("3.50")),
        *({"iri": "urn:e:Laptop"}, {"iri": "foaf:Person"}, {"iri": "http://e/x"}, {"iri": 5}),
        *({"value": 5}, {"value": 40, "unit": "MB"}, {"value": "x", "language": "de"}),
        *(Literal("5", datatype=XSD["int"]), COMPUTER, float("nan"), {}, [], b"x", {5: 1}),
        *({"iri": "no iri"}, {"iri": "urn:e:Laptop", "b": 1}, "\ud800"),
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(("value", "b", "iri", "a..b", "")), inner, max_size=2)
    ),
    max_leaves=3,
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = Engine(Ontology([(LAPTOP, SUBCLASS, COMPUTER)]), on_problem=lambda _: None)
    for number, where in enumerate(WHERES):
        engine.subscribe(AttributeSubscription.of(str(number), where))
    return engine


def found(report: MatchReport) -> list[tuple[str, Any]]:
    return [(match.subscription, match.solutions) for match in report]


@settings(max_examples=300)
@given(
    st.sampled_from(("e", "urn:e:1", "")),
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4),
)
def test_an_event_is_the_publication_that_it_is(
    engine: Engine, id: str, attributes: dict[str, Any]
) -> None:
    event = Event(id, attributes)
    wrong, expected = None, []
    try:
        expected = found(engine.match(event.publication()))
    except InputError as error:
        wrong = str(error)
    if wrong is None:
        assert found(engine.match(event)) == expected
        return
    with pytest.raises(InputError) as caught:
        engine.match(event)
    assert str(caught.value) == wrong


def test_that_plain_events_make_no_publication(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: list[Event] = []

    def publication(event: Event) -> Publication:
        converted.append(event)
        return Publication.of(event.id, [])

    monkeypatch.setattr(Event, "publication", publication)
    plain = {"price.value": 5, "brand": "Acme", "at": 0.5, "made": {"iri": "urn:x"}}
    engine.match(Event("e", plain))
    assert converted == []
    values: tuple[Any, ...] = ("2026-01-31", {"value": 5}, ["Acme"], True)
    others = [Event("e", {"at": value}) for value in values]
    for event in others:
        engine.match(event)
    assert converted == others


COLUMNS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "price": ("int64", st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9)),
    "price.value": ("float64", st.floats(allow_nan=False, allow_infinity=False)),
    "brand": ("string", st.sampled_from(("Acme", "Laptop", "", "a"))),
    "at": ("date32", st.dates(date(2025, 1, 1), date(2027, 1, 1))),
    "größe": ("uint8", st.integers(0, 9)),
    "foaf:name": ("bool", st.booleans()),
    "a-b_1": ("decimal", st.sampled_from((Decimal("3.50"), Decimal("0.25")))),
    "weight (kg)": ("list", st.lists(st.integers(0, 9), max_size=2)),
    "size": ("struct", st.sampled_from(({"value": 1, "unit": "GB"}, {"value": 5, "unit": None}))),
    "seen": ("timestamp", st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1))),
}


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=5, unique=True))
    ids = st.sampled_from(("a", "urn:e:1", "", None))
    values = {name: st.none() | COLUMNS[name][1] for name in names}
    return draw(st.lists(st.fixed_dictionaries({"id": ids, **values}), max_size=6))


@settings(max_examples=100)
@given(tables())
def test_a_row_is_the_event_that_it_is(engine: Engine, rows: list[dict[str, Any]]) -> None:
    types = {
        "decimal": arrow.decimal128(5, 2),
        "bool": arrow.bool_(),
        "list": arrow.list_(arrow.int64()),
        "struct": arrow.struct({"value": arrow.int64(), "unit": arrow.string()}),
        "timestamp": arrow.timestamp("us", "UTC"),
    }
    names = list(rows[0]) if rows else ["id"]
    kinds = [(n, "string" if n == "id" else COLUMNS[n][0]) for n in names]
    schema = arrow.schema([(n, types.get(kind) or getattr(arrow, kind)()) for n, kind in kinds])
    table = arrow.Table.from_pylist(rows, schema=schema)
    expected, is_wrong = [], False
    for number, row in enumerate(rows, 1):
        values = {name: value for name, value in row.items() if name != "id"}
        if isinstance(seen := values.get("seen"), datetime):
            values["seen"] = seen.replace(tzinfo=UTC)
        id = row["id"] if row["id"] is not None else f"row {number}"
        try:
            expected.append((id, found(engine.match(Event(id, values).publication()))))
        except InputError:
            is_wrong = True
    if is_wrong:
        with pytest.raises(InputError):
            engine.match_events(table)
        return
    reports = engine.match_events(table)
    assert [(report.publication, found(report)) for report in reports] == expected
    ids = engine.ids_of(reports.numbers)
    ends = reports.offsets.tolist()
    assert [ids[begin:end] for begin, end in pairwise(ends)] == [
        [id for id, _ in matches] for _, matches in expected
    ]


def test_reasons_of_events() -> None:
    engine = Engine(Ontology([(LAPTOP, SUBCLASS, COMPUTER)]))
    engine.subscribe(AttributeSubscription.of("s", {"target": {"isa": "Computer"}}))
    one = engine.match(Event("e", {"target": "Laptop"}))
    (row,) = engine.match_events(arrow.table({"id": ["e"], "target": ["Laptop"]}))
    other = engine.match(Event("e", {"target": "Laptop"}).publication())
    for report in (one, row):
        assert report.read().triples == other.read().triples
        assert engine.evidence(report) == engine.evidence(other)
    assert "⊑" in engine.evidence(one)["s"][0].reasons[0]


def test_reports_stay_what_they_are(engine: Engine) -> None:
    other = Engine()
    other.subscribe(AttributeSubscription.of("a", {"price": {"<": 5}}))
    reports = other.match_events(arrow.table({"price": [4, 5, 3]}))
    assert (reports.numbers.tolist(), reports.offsets.tolist()) == ([0, 0], [0, 1, 1, 2])
    other.unsubscribe("a")
    assert [[m.solutions[0]["price"].value for m in report] for report in reports[::2]] == [
        ["4"],
        ["3"],
    ]
    assert other.ids_of(reports.numbers) == [None, None]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_are_refused(engine: Engine, value: float) -> None:
    with pytest.raises(InputError, match="cannot be compared"):
        engine.match_events(arrow.table({"price": [1.0, value]}))


def test_reports_of_a_table_are_read_again_and_again() -> None:
    engine = Engine()
    engine.subscribe("alice", "SELECT ?e { ?e attribute:price ?p FILTER(?p > 1) }")
    reports = engine.match_events(arrow.table({"price": [1, 2]}))
    for _ in range(2):
        assert [len(report.matches) for report in reports] == [0, 1]
    engine.unsubscribe("alice")
    assert [list(report.subscriptions) for report in reports] == [[], ["alice"]]


def test_columns_of_every_kind_are_what_their_rows_are() -> None:
    engine = Engine()
    for name in ("a", "a.b", "a.c.d"):
        engine.subscribe(name, f"SELECT ?o {{ ?e attribute:{name} ?o }}")
    texts = arrow.DictionaryArray.from_arrays(arrow.array([0, 1]), arrow.array(["x", None]))
    numbers = arrow.array([7, 8], arrow.int64())
    shifted = arrow.py_buffer(b"x" + numbers.buffers()[1].to_pybytes()).slice(1)
    columns = (
        texts,
        arrow.array(["x", None], arrow.string_view()),
        arrow.array([None, "größe"], arrow.large_string()),
        arrow.StructArray.from_arrays([texts], ["b"]),
        arrow.StructArray.from_arrays([arrow.array(["urn:x"] * 2).dictionary_encode()], ["iri"]),
        arrow.array([{"b": 1, "c": {"d": "2026-01-31"}}, None]),
        arrow.array([{"iri": "urn:x"}, None]),
        arrow.array([{"b": [1, 2]}, {"b": []}]),
        arrow.Array.from_buffers(arrow.int64(), 2, [None, shifted]),
    )
    for column in columns:
        table = arrow.table({"a": column, "z": [0, 0]})
        for report, value in zip(engine.match_events(table), column.to_pylist(), strict=True):
            expected = engine.match(Event(report.publication, {"a": value, "z": 0}))
            assert [(m.subscription, m.solutions) for m in report] == [
                (m.subscription, m.solutions) for m in expected
            ]


@pytest.mark.parametrize("value", [5, True, "no iri"])
def test_invalid_iris_in_columns_are_refused(value: object) -> None:
    with pytest.raises(InputError, match="iri"):
        Engine().match_events(arrow.table({"a": [{"iri": value}]}))

"""Tables and columns of pandas, polars and DuckDB are read like those of pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine
from semantic import InputError, publications_from_arrow
from semantic.arrow import to_table

Columns = dict[str, list[Any]]


def filtered(columns: Columns) -> pd.DataFrame:
    """Return a pandas frame with an index that is not a range."""
    extra = pd.DataFrame({name: [None, *values] for name, values in columns.items()})
    return extra.iloc[1:].convert_dtypes()


def with_categories(columns: Columns) -> pl.DataFrame:
    texts = [name for name, values in columns.items() if isinstance(values[0], str)]
    return pl.DataFrame(columns).with_columns(pl.col(texts).cast(pl.Categorical))


def relation(columns: Columns) -> duckdb.DuckDBPyRelation:
    return duckdb.from_arrow(pa.table(columns))


def batch(columns: Columns) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


FRAMES = [pa.table, batch, pd.DataFrame, filtered, pl.DataFrame, with_categories, relation]
frames = pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.__name__)


@frames
def test_subscriptions_of_a_table(frame: Callable[[Columns], Any]) -> None:
    engine = Engine()
    columns: Columns = {"id": ["a", "b"], "brand": ["Acme", "Bolt"], "price <=": [10, 20]}
    assert engine.subscribe_table(frame(columns)) == ()
    queries = {"id": ["c"], "query": ["SELECT ?e { ?e attribute:brand 'Acme' }"]}
    assert engine.subscribe_table(frame(queries)) == ()
    reports = engine.match_events(
        frame({"id": ["e1", "e2"], "brand": ["Acme", "Bolt"], "price": [9, 21]})
    )
    found = [(report.publication, list(report.subscriptions)) for report in reports]
    assert found == [("e1", ["a", "c"]), ("e2", [])]


@frames
def test_publications_of_a_table(frame: Callable[[Columns], Any]) -> None:
    names = ("publication", "subject", "predicate", "object")
    triple = NamedNode("urn:a"), NamedNode("urn:p"), Literal("x")
    table = frame(dict(zip(names, (["urn:g"], *([str(term)] for term in triple)), strict=True)))
    (publication,) = publications_from_arrow(table)
    assert (publication.id, tuple(publication.triples)) == ("urn:g", (triple,))
    engine = Engine()
    engine.subscribe("all", "SELECT ?s { ?s <urn:p> ?o }")
    assert engine.match_table(table).to_dicts(plain=True) == [
        {"publication": "urn:g", "subscription": "all", "s": "urn:a"}
    ]


@frames
def test_columns_of_a_prepared_query(frame: Callable[[Columns], Any]) -> None:
    engine = Engine()
    prepared = engine.prepare(
        "SELECT ?x { ?x <urn:p> ?class ; <urn:q> ?n FILTER(?n < ?most) }", ["class", "most"]
    )
    table = frame({"most": [5, 1], "id": ["a", "b"], "class": ["<urn:c>", "<urn:c>"]})
    ids = to_table(table)["id"] if frame is relation else table["id"]
    assert prepared.subscribe(ids, table) == ()
    (report,) = engine.filter(b"<urn:x> <urn:p> <urn:c> ; <urn:q> 3 .", "ttl")
    assert list(report.subscriptions) == ["a"]


@pytest.mark.parametrize("series", [pd.Series, pl.Series])
def test_series_with_missing_values(series: Callable[[list[Any]], Any]) -> None:
    engine = Engine()
    prepared = engine.prepare("SELECT ?x { ?x <urn:p> ?c }", ["c"])
    (refused,) = prepared.subscribe(series(["a", "b"]), [series([1.5, None])])
    assert "?c has no IRI or literal in this row" in str(refused)
    assert prepared.subscribe(series(["d"]), [series(["<urn:c>"])]) == ()
    assert "c" not in engine
    assert engine.match_events(pa.table({"id": ["e"], "n": [1]}))[0].subscriptions == ()


def test_a_prepared_query_without_a_column_is_refused() -> None:
    prepared = Engine().prepare("SELECT ?x { ?x <urn:p> ?c }", ["c"])
    with pytest.raises(InputError, match="the table has no columns called 'c'"):
        prepared.subscribe(["a"], pl.DataFrame({"d": ["<urn:c>"]}))


def test_what_is_not_a_table_is_refused() -> None:
    given: Any = [{"id": "a"}]
    with pytest.raises(TypeError, match="a table is a data frame or an Arrow table, not the list"):
        Engine().subscribe_table(given)


MIXED = pd.DataFrame({"id": ["a", "b"], "brand": ["Acme", 5]})
TWICE = pd.DataFrame([["a", "b"]], columns=["id", "id"])
HUGE = pd.DataFrame({"id": ["a"], "n": [10**30]})
SURROGATE = pd.DataFrame({"id": ["\ud800"], "n": [5]})
PERIODS = pd.DataFrame({"id": ["a"], "at": pd.period_range("2026", periods=1)})


@pytest.mark.parametrize("table", [MIXED, TWICE, HUGE, SURROGATE])
def test_frames_that_arrow_cannot_convert_are_refused(table: pd.DataFrame) -> None:
    for use in (Engine().subscribe_table, Engine().match_events, publications_from_arrow):
        with pytest.raises(InputError, match=r"not a table of Arrow: .* Give each column its own"):
            list(use(table))


def test_values_of_extension_types_are_refused() -> None:
    for use in (Engine().subscribe_table, Engine().match_events):
        with pytest.raises(InputError, match=r"values of the type .*period.* are not supported"):
            use(PERIODS)

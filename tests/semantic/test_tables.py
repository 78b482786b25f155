"""Publications from Arrow tables: rows are grouped, bad ones are reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode

from semantic.errors import InputError, Problem
from semantic.limits import Limits
from semantic.publication import Publication
from semantic.tables import COLUMNS, publications_of_table
from semantic.terms import read_terms

GOOD = ("<urn:a>", "<urn:b>", "_:x", "_:y", '"t"', '"t"@en', '"5"^^<urn:d>', '"t"@EN')
BAD = ("urn:a", "", "<urn:a> .\n<urn:a> <urn:p> <urn:b>", '"t', "<urn:a> <urn:b>", None)


@dataclass
class Values:
    """As much of an array of Arrow as is needed."""

    values: list[Any]

    def to_pylist(self) -> list[Any]:
        return self.values


@dataclass
class Column:
    """A column, dictionary-encoded; some values of the dictionary are in no row."""

    indices: Values
    dictionary: Values

    @classmethod
    def of(cls, values: Sequence[object]) -> Column:
        distinct = ["nothing", *dict.fromkeys(v for v in values if v is not None)]
        places = [None if v is None else distinct.index(v) for v in values]
        return cls(Values(places), Values(distinct))

    def dictionary_encode(self) -> Column:
        return self


@dataclass
class Batch:
    """A record batch."""

    rows: list[Any]
    names: list[str]

    @property
    def schema(self) -> Batch:
        return self

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    def column(self, i: int, /) -> Column:
        return Column.of([row[i] for row in self.rows])

    def slice(self, offset: int, length: int) -> Batch:
        return Batch(self.rows[offset : offset + length], self.names)


@dataclass
class Table:
    """A table in parts of three rows."""

    rows: list[Any]
    names: Sequence[str] = COLUMNS
    schema: None = None

    def to_batches(self) -> list[Batch]:
        starts = range(0, len(self.rows), 3)
        return [Batch(self.rows[start : start + 3], list(self.names)) for start in starts]


def row_by_row(rows: Sequence[Sequence[Any]], prefix: str) -> tuple[dict[str, list[Any]], int]:
    found: dict[str, list[Any]] = {}
    bad = 0
    for id, *texts in rows:
        try:
            triple = tuple(read_terms([t], prefix)[0] for t in texts)
        except AttributeError:
            bad += 1
            continue
        if None in triple:
            bad += 1
            continue
        kinds = [type(term).__name__ for term in triple]
        if id is None or kinds[0] == "Literal" or kinds[1] != "NamedNode":
            bad += 1
        elif triple not in found.setdefault(id, []):
            found[id].append(triple)
    return found, bad


def blank_prefix(publications: Sequence[Publication]) -> str:
    for publication in publications:
        for term in (term for triple in publication.triples for term in triple):
            if isinstance(term, BlankNode):
                return term.value[:-1]
    return ""


terms = st.sampled_from(GOOD * 4 + BAD)
nodes, properties = st.sampled_from(GOOD[:4] * 6 + BAD), st.sampled_from(GOOD[:2] * 9 + BAD)
rows = st.lists(st.tuples(st.sampled_from(("g", "h", "i", None)), nodes, properties, terms))


@given(rows)
def test_tables_as_row_by_row(rows: list[Any]) -> None:
    problems: list[Problem] = []
    found = list(publications_of_table(Table(rows), on_problem=problems.append))
    prefix = blank_prefix(found)
    expected, bad = row_by_row(rows, prefix)
    order = [id for id in dict.fromkeys(id for id, *_ in rows) if id in expected]
    assert [p.id for p in found] == order
    assert {p.id: list(p.triples) for p in found} == expected
    assert len(problems) == bad


def told(*rows: Any) -> list[str]:
    problems: list[Problem] = []
    list(publications_of_table(Table(list(rows)), on_problem=problems.append))
    return [str(problem) for problem in problems]


def test_what_is_said_of_bad_rows() -> None:
    good = ("g", "<urn:a>", "<urn:p>", '"t"')
    assert told(good, good, good, ("g", "<urn:a>", "<urn:p>", "urn:b")) == [
        "<table> (row 4): the object 'urn:b' is no term of N-Triples. Write <IRI>, _:name, "
        '"text", "text"@en or "5"^^<IRI of a datatype>.'
    ]
    assert told(good, ("g", '"t"', "<urn:p>", '"t"')) == [
        '<table> (row 2): "t" cannot be a subject. A subject is an IRI or a blank node.'
    ]
    assert told(("g", "_:a", "_:p", '"t"')) == [
        "<table> (row 1): _:p cannot be a predicate. A predicate is an IRI."
    ]
    assert told((None, *good[1:])) == [
        "<table> (row 1): no publication. Give the publication an id."
    ]


def test_that_tables_need_their_columns_and_texts() -> None:
    with pytest.raises(InputError, match="no column 'object'"):
        list(publications_of_table(Table([("g", "<urn:a>", "<urn:p>")], COLUMNS[:3])))
    with pytest.raises(InputError, match="the column 'object' has values that are no texts"):
        list(publications_of_table(Table([("g", "<urn:a>", "<urn:p>", 5)])))


def test_that_an_empty_table_has_no_publications() -> None:
    assert list(publications_of_table(Table([]))) == []


def test_that_large_publications_are_refused() -> None:
    rows = [
        (id, "<urn:a>", "<urn:p>", f"<urn:{n}>") for id, n in zip("ghggh", "12345", strict=True)
    ]
    problems: list[Problem] = []
    limits = Limits(publication_triples=2)
    found = publications_of_table(Table(rows), on_problem=problems.append, limits=limits)
    assert [p.id for p in found] == ["h"]
    assert [problem.where.item for problem in problems] == ["g"]


def test_a_table_of_arrow() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `spark` only")
    rows = [("g", "<urn:a>", "<urn:p>", "_:b"), ("h", "_:b", "<urn:p>", None)] * 2
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    plain = arrow.table(columns)
    encoded = arrow.table({name: plain[name].dictionary_encode() for name in COLUMNS})
    for table in (plain, encoded, plain.to_batches()[0]):
        problems: list[Problem] = []
        (found,) = publications_of_table(table, on_problem=problems.append)
        assert (found.id, len(found.triples), len(problems)) == ("g", 1, 2)

"""Publications from Arrow tables: rows are grouped, and bad rows are reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, RdfFormat, Triple, parse

from semantic.errors import InputError, Problem
from semantic.limits import Limits
from semantic.tables import COLUMNS, publications_from_arrow

GOOD = ("<urn:a>", "<urn:b#c>", "_:x", "_:y", '"t"', '"t"@en', '"5"^^<urn:d>', '"t"@EN', '"a. #b"')
BAD = (
    *("urn:a", "", "<urn:a> .\n<urn:a> <urn:p> <urn:b>", '"t', "<urn:a> <urn:b>", None, "#"),
    *("<urn:p><urn:q>", "<urn:p><urn:q>.#", "_:x<urn:p>", "<urn:p>_:b", '<urn:p>"x"'),
    *("<urn:a> . # b", '"a" .#', "<urn:a> # b", '"a\rb"', ' "a"', "<<( _:x <urn:p> _:y )>>"),
)


def table(rows: Sequence[Any], names: Sequence[str] = COLUMNS, at_once: int = 3) -> Any:
    """Return a table with batches of `at_once` rows and a dictionary-encoded first column."""
    parts = []
    for begin in range(0, max(len(rows), 1), at_once):
        some = rows[begin : begin + at_once]
        columns = [pa.array([row[i] for row in some], pa.string()) for i in range(len(names))]
        columns[0] = columns[0].dictionary_encode()
        parts.append(pa.Table.from_arrays(columns, list(names)))
    return pa.concat_tables(parts)


def read_term(text: str, prefix: str) -> Any:
    """Return the term that pyoxigraph reads from a text."""
    try:
        (quad,) = parse(f"<urn:s> <urn:p> {text} .", format=RdfFormat.N_TRIPLES)
        (same,) = parse(f"<urn:s> <urn:p> {text} <urn:g> .", format=RdfFormat.N_QUADS)
    except (SyntaxError, ValueError):
        return None
    if isinstance(same.graph_name, DefaultGraph):
        return None  # The rest was a comment.
    return named(quad.object, prefix)


def named(term: Any, prefix: str) -> Any:
    if isinstance(term, BlankNode):
        return BlankNode(prefix + term.value)
    if isinstance(term, Triple):
        return Triple(named(term.subject, prefix), term.predicate, named(term.object, prefix))
    return term


def row_by_row(rows: Sequence[Sequence[Any]], prefix: str) -> tuple[dict[str, list[Any]], int]:
    found: dict[str, list[Any]] = {}
    bad = 0
    for id, *texts in rows:
        # The reader refuses a space before a term, as after it.
        whole = (t is not None and t == t.strip() for t in texts)
        triple = tuple(
            read_term(t, prefix) if w else None for w, t in zip(whole, texts, strict=True)
        )
        if None in triple:
            bad += 1
            continue
        kinds = [type(term).__name__ for term in triple]
        if id is None or kinds[0] in ("Literal", "Triple") or kinds[1] != "NamedNode":
            bad += 1
        elif triple not in found.setdefault(id, []):
            found[id].append(triple)
    return found, bad


terms = st.sampled_from(GOOD * 4 + BAD)
nodes, properties = st.sampled_from(GOOD[:4] * 4 + BAD), st.sampled_from(GOOD[:2] * 7 + BAD)
rows = st.lists(st.tuples(st.sampled_from(("g", "h", "i", None)), nodes, properties, terms))


@given(rows)
@example([("g", "<urn:a>", "<urn:a>", '"a" .#')])
def test_tables_as_row_by_row(rows: list[Any]) -> None:
    problems: list[Problem] = []
    found = list(publications_from_arrow(table(rows), on_problem=problems.append, names="n"))
    expected, bad = row_by_row(rows, "n")
    order = [id for id in dict.fromkeys(id for id, *_ in rows) if id in expected]
    assert [p.id for p in found] == order
    assert {p.id: list(p.triples) for p in found} == expected
    assert len(problems) == bad


def told(*rows: Any) -> list[str]:
    problems: list[Problem] = []
    list(publications_from_arrow(table(rows), on_problem=problems.append))
    return [str(problem) for problem in problems]


def test_bad_rows_are_reported() -> None:
    good = ("g", "<urn:a>", "<urn:p>", '"t"')
    assert told(good, good, good, ("g", "<urn:a>", "<urn:p>", "urn:b")) == [
        "<table> (row 4): the object 'urn:b' is not a term in N-Triples syntax. Write <IRI>, "
        '_:name, "text", "text"@en or "5"^^<IRI of a datatype>.'
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
        list(publications_from_arrow(table([("g", "<urn:a>", "<urn:p>")], COLUMNS[:3])))
    numbers = table([("g", "<urn:a>", "<urn:p>", None)]).set_column(3, "object", [[5]])
    with pytest.raises(InputError, match="the column 'object' has values that are not strings"):
        list(publications_from_arrow(numbers))


def test_that_an_empty_table_has_no_publications() -> None:
    assert list(publications_from_arrow(table([]))) == []


def test_that_large_publications_are_refused() -> None:
    rows = [
        (id, "<urn:a>", "<urn:p>", f"<urn:{n}>") for id, n in zip("ghggh", "12345", strict=True)
    ]
    problems: list[Problem] = []
    limits = Limits(publication_triples=2)
    found = publications_from_arrow(table(rows), on_problem=problems.append, limits=limits)
    assert [p.id for p in found] == ["h"]
    assert [problem.where.item for problem in problems] == ["g"]


def test_a_table_of_arrow() -> None:
    rows = [("g", "<urn:a>", "<urn:p>", "_:b"), ("h", "_:b", "<urn:p>", None)] * 2
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    plain = pa.table(columns)
    encoded = pa.table({name: plain[name].dictionary_encode() for name in COLUMNS})
    for table in (plain, encoded, plain.to_batches()[0]):
        problems: list[Problem] = []
        (found,) = publications_from_arrow(table, on_problem=problems.append)
        assert (found.id, len(found.triples), len(problems)) == ("g", 1, 2)

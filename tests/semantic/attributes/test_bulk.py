"""Attribute subscriptions by skeleton, held against the same file read row by row."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal

from semantic.attributes.bulk import grouped_attribute_rows
from semantic.attributes.files import read_attribute_queries
from semantic.attributes.gathered import Grouped
from semantic.attributes.query import AttributeQuery
from semantic.attributes.subscription import AttributeParser
from semantic.errors import Problem
from semantic.vocabulary import XSD


def ungrouped(grouped: Grouped) -> list[tuple[int, str, AttributeQuery]]:
    """Return rows, ids and queries, in the order of rows."""
    found = []
    assert grouped.refused == []
    assert len({id(group.template) for group in grouped.groups}) == len(grouped.groups)
    first = [group.rows[0] for group in grouped.groups]
    assert first == sorted(first)
    for group in grouped.groups:
        assert list(group.rows) == sorted(group.rows)
        constants = group.constants.tolist()
        for row, name, places in zip(group.rows, group.ids, constants, strict=True):
            terms = tuple(grouped.terms[place] for place in places)
            found.append((row, name, AttributeQuery(group.template, terms)))
    return sorted(found, key=lambda each: each[0])


def check(path: Path, chunk: int) -> list[Problem]:
    """Compare both ways of reading a file; return the problems."""
    parser = AttributeParser()
    slow_told: list[Problem] = []
    slow = list(read_attribute_queries(path, parser=parser, on_problem=slow_told.append))
    told: list[Problem] = []
    several = grouped_attribute_rows(path, parser=parser, on_problem=told.append, chunk=chunk)
    fast = [each for grouped in several for each in ungrouped(grouped)]
    assert told == slow_told
    assert [name for _, name, _ in fast] == [name for name, _ in slow]
    for (_, _, query), (_, expected) in zip(fast, slow, strict=True):
        assert query.template is expected.template
        assert query.constants == expected.constants
    return told


# --- What is generated ------------------------------------------------------------------------

TEXTS = (
    "Acme",
    "Apex",
    "größe",
    "2026-01-31",
    "2026-01-31T12:00:00Z",
    "2026-02-31",
    "2026-blue",
    "ÄÖÜ-1-x",
    "",
    " ",
    'a"b',
    "<urn:x>",
    "http://e/x",
)
NUMBERS = ("5", "5.0", "5e0", "-0", "0.5", "1E+3", "9" * 19, "9" * 30, "0." + "1" * 25, "1e999")
FAULTS = ("01", "1.", "-", "+1", ".5", "NaN", "Infinity", "tru", "[]", "null", '"\\ud800"', '"\t"')
SCALARS = st.one_of(
    st.sampled_from(TEXTS).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(TEXTS).map(json.dumps),
    st.sampled_from(NUMBERS),
    st.sampled_from(NUMBERS),
    st.sampled_from(("true", "false")),
)
VALUES = st.one_of(
    SCALARS,
    SCALARS,
    SCALARS,
    st.sampled_from(
        (
            *FAULTS,
            '{"value": 40, "unit": "GB"}',
            '{"value": "5", "datatype": "xsd:integer"}',
            '{"iri": "foaf:Person"}',
            '{"value": 5}',
        )
    ),
)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "contains", "starts", "isa", "exists", "ends")


@st.composite
def constraints(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Tests of one attribute with what stands after them; none, and it is a value alone."""
    tests = []
    for operator in draw(st.lists(st.sampled_from(OPERATORS), max_size=2)):
        value = draw(VALUES)
        if operator == "in" and draw(st.integers(0, 5)):
            value = f"[{', '.join(draw(st.lists(SCALARS, min_size=1, max_size=3)))}]"
        elif operator == "exists" and draw(st.integers(0, 5)):
            value = "true"
        tests.append((operator, value))
    if tests and not draw(st.integers(0, 5)):
        tests.append(("ignore case", draw(st.sampled_from(("true", "false", "1")))))
    return tests


ATTRIBUTES = ("brand", "price.value", "größe", "foaf:name", "a..b", "weight (kg)")


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A line of a subscription; now and then something is wrong with it."""
    names = draw(st.lists(st.sampled_from(ATTRIBUTES), min_size=1, max_size=3))
    blank = draw(st.sampled_from(("", " ", "\t")))
    inside = []
    for name in names:
        if tests := draw(constraints()):
            written = ",".join(f"{json.dumps(op)}{blank}: {value}" for op, value in tests)
            inside.append(f"{json.dumps(name, ensure_ascii=draw(st.booleans()))}: {{{written}}}")
        else:
            inside.append(f'"{name}":{blank}{draw(VALUES)}')
    where = f'"where": {{{f",{blank}".join(inside)}}}'
    identity = f'"id": "s{draw(st.integers(0, 20))}"'
    fields = draw(
        st.sampled_from(
            (
                *[f"{identity}, {where}"] * 8,
                f"{where}, {identity}",
                f'{identity}, {where}, "comment": "for {blank} x"',
                f'{identity}, {where}, "comment": 5',
                f'{identity}, {where}, "to": "me"',
                f'"id": " ", {where}',
                f'"id": 5, {where}',
                f'"id": "", {where}',
                f'"id": "\\u00e4", {where}',
                where,
                identity,
                f"{identity}, {where}, {where}",
                f'{identity}, "where": {{}}',
                f'{identity}, "where": "x"',
            )
        )
    )
    line = f"{blank}{{{fields}}}{blank}"
    return draw(st.sampled_from((*[line] * 12, line[:-4], f"{line} x", f"{line}{line}", "", "5")))


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Lines, of which many are as others but for their constants."""
    drawn = draw(st.lists(lines(), min_size=1, max_size=6))
    every = list(drawn)
    for line in drawn:
        for _ in range(draw(st.integers(0, 3))):
            other = line.replace("Acme", draw(st.sampled_from(("Apex", "2026-01-31", "x\\ny"))))
            for old, new in (("5", draw(st.sampled_from(NUMBERS))), ('"s', f'"s{len(every)}')):
                other = other.replace(old, new)
            every.append(other)
    order = draw(st.permutations(every))
    data = draw(st.sampled_from(("\n", "\r\n"))).join(order).encode()
    data = draw(st.sampled_from((b"", b"", b"\xef\xbb\xbf"))) + data
    if not draw(st.integers(0, 9)):
        place = draw(st.integers(0, len(data)))
        data = data[:place] + draw(st.sampled_from((b"\xff", b"\xc3", b"\x00"))) + data[place:]
    return data + draw(st.sampled_from((b"", b"\n", b"\n\n")))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bulk") / "s.jsonl"


@settings(max_examples=300)
@given(documents(), st.sampled_from((1, 200, 1 << 20)))
@example(
    b'{"id": "a", "where": {"x": "2026-02-31"}}\n{"id": "b", "where": {"x": "2026-01-31"}}', 999
)
@example(b'{"id": "a", "where": {"x": tr ue}}\n{"id": "b", "where": {"x": true}}', 999)
@example(b'{"id": "b", "where": {"x": true}}\n{"id": "a", "where": {"x": tr ue}}', 999)
@example(b'{"id": "b", "where": {"x": true}}\n{"id": "a", "where": {"x": truetrue}}', 999)
@example(b'{"id": "b", "where": {"x": 1}}\n{"id": "a", "where": {"x": 1 1}}', 999)
def test_that_it_is_what_row_by_row_is(path: Path, data: bytes, chunk: int) -> None:
    path.write_bytes(data)
    check(path, chunk)


# --- By hand ----------------------------------------------------------------------------------


def row(name: str, where: Any) -> str:
    return json.dumps({"id": name, "where": where}, ensure_ascii=False)


def test_groups(path: Path) -> None:
    rows = [
        row("a", {"brand": "Acme", "price": {"<": 5}}),
        row("b", {"size": 5}),
        "",
        row("c", {"brand": "größe", "price": {"<": 5.5}}),
        row("d", {"brand": "a\nb", "price": {"<": 5}}),
        row("a", {"size": 7}),
        row("e", {"brand": "Acme", "price": {"<": 5.5}}),
        row("f", {"brand": "2026-01-01", "price": {"<": 5}}),
    ]
    path.write_text("\n".join(rows), encoding="utf-8")
    told: list[Problem] = []
    (grouped,) = grouped_attribute_rows(path, on_problem=told.append)
    assert [(list(group.ids), list(group.rows)) for group in grouped.groups] == [
        (["a", "c", "d", "e"], [0, 3, 4, 6]),
        (["b"], [1]),
        (["f"], [7]),
    ]
    assert [(str(problem.where), problem.what) for problem in told] == [
        (f"{path}:6 (a)", f"the id 'a' has a subscription already, at {path}:1")
    ]
    texts = {term.value for term in grouped.terms}
    assert {"Acme", "größe", "a\nb", "5", "5.5"} < texts
    acme = [place for place, term in enumerate(grouped.terms) if term == Literal("Acme")]
    assert len(acme) == 1


def test_one_text_may_be_several_terms(path: Path) -> None:
    wheres = [{"a": text, "b": {"isa": text}, "c": {"=": 5}, "d": "5"} for text in ("x", "y", "x")]
    path.write_text("\n".join(row(f"s{n}", where) for n, where in enumerate(wheres)))
    assert check(path, 1 << 20) == []


def test_ids_are_taken_across_chunks(path: Path) -> None:
    path.write_text("\n".join(row("a", {"size": n}) for n in range(5)), encoding="utf-8")
    told = check(path, 1)
    assert [problem.where.line for problem in told] == [2, 3, 4, 5]


def test_that_lines_of_one_form_are_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted is lines that are read as JSON: the first of each form."""
    parser = AttributeParser()
    count = 0
    decode = parser.decoder.decode

    def counted(text: str) -> Any:
        nonlocal count
        count += 1
        return decode(text)

    monkeypatch.setattr(parser.decoder, "decode", counted)
    wheres: list[Any] = list(
        chain.from_iterable(
            (
                {"target": {"isa": f"C{n}"}, "price": {">": n, "<=": n + 0.5}, "brand": f"b{n}"},
                {"at": {">=": f"2026-01-{n % 28 + 1:02}"}, "new": True, "in": {"in": [n, "x"]}},
            )
            for n in range(500)
        )
    )
    path.write_text("\n".join(row(f"s{n}", where) for n, where in enumerate(wheres)))
    (grouped,) = grouped_attribute_rows(path, parser=parser)
    found = ungrouped(grouped)
    assert (len(found), count, parser.shapes) == (1000, 2, 2)
    dates = {term for _, _, query in found[1::2] for term in query.constants}
    assert Literal("2026-01-28", datatype=XSD["date"]) in dates


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(grouped_attribute_rows(tmp_path / "none.jsonl"))


def test_an_empty_file(path: Path) -> None:
    path.write_bytes(b"\n \n")
    assert list(grouped_attribute_rows(path)) == []
    path.write_bytes(b"")
    assert list(grouped_attribute_rows(path)) == []

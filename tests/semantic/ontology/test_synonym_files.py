from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from semantic.errors import GraphMatchError, OnProblem, Place, Problem
from semantic.ontology.csv_tables import read_csv
from semantic.ontology.synonyms import SynonymRow, SynonymRows, read_synonyms

A, B, C, D = (NamedNode(f"urn:{name}") for name in "abcd")


def unexpected(problem: Problem) -> None:
    raise AssertionError(problem)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(path: Path, on_problem: OnProblem) -> SynonymRows:
    return read_synonyms(read_csv(path, on_problem), on_problem)


def said(rows: SynonymRows) -> tuple[set[tuple[NamedNode, NamedNode]], set[tuple[str, str]]]:
    return {(r.name, r.root) for r in rows.terms}, {(r.name, r.root) for r in rows.texts}


def test_csv(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.csv",
        "\ufeffterm,root,why\nUS,United States,short\nurn:a,urn:b,\n"
        'Jazz,urn:c,a label\nJazz,urn:d,another\n"a, b",ab,quoted\nhttp: a protocol,HTTP,text\n',
    )
    rows = read(file, unexpected)
    texts = {("US", "United States"), ("a, b", "ab"), ("http: a protocol", "HTTP")}
    assert said(rows) == ({(A, B)}, texts)
    assert rows.labels == (("Jazz", C), ("Jazz", D))
    assert rows.texts[0] == SynonymRow("US", "United States", Place(str(file), line=2))


def test_that_bad_rows_are_reported_and_passed_over(tmp_path: Path) -> None:
    problems: list[Problem] = []
    rows = "term,root\nUS\nurn:a,text\nurn:a,urn:b\nurn:a,urn:c\nUS,USA\n,x\n"
    file = write(tmp_path / "a.csv", rows)
    found = read(file, problems.append)
    assert said(found) == ({(A, B), (A, C)}, {("US", "USA")})
    assert [problem.where.line for problem in problems] == [2, 3, 7]
    assert all(str(file) in str(problem) for problem in problems)


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.csv", "", "columns"),
        ("a.csv", "name,root\n", "columns"),
        ("a.csv", b"term,root\nB\xfccher,Buch\n", "not UTF-8"),
        ("a.csv", "term,root\n" + "x" * 200_000 + ",y\n", "not CSV: field larger"),
    ],
)
def test_files_that_cannot_be_read(name: str, text: str | bytes, what: str, tmp_path: Path) -> None:
    with pytest.raises(GraphMatchError, match=what):
        read(write(tmp_path / name, text), unexpected)

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from semantic.errors import OntologyError, Place, Problem
from semantic.limits import DEFAULT_LIMITS
from semantic.ontology.synonym_files import is_synonym_json, read_synonyms
from semantic.ontology.synonyms import SynonymRow, SynonymRows

A, B, C, D = (NamedNode(f"urn:{name}") for name in "abcd")


def unexpected(problem: Problem) -> None:
    raise AssertionError(problem)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def said(rows: SynonymRows) -> tuple[set[tuple[NamedNode, NamedNode]], set[tuple[str, str]]]:
    return {(r.name, r.root) for r in rows.terms}, {(r.name, r.root) for r in rows.texts}


def test_csv(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.csv",
        "\ufeffterm,root,why\nUS,United States,short\nurn:a,urn:b,\n"
        'Jazz,urn:c,a label\nJazz,urn:d,another\n"a, b",ab,quoted\nhttp: a protocol,HTTP,text\n',
    )
    rows = read_synonyms(file, unexpected)
    texts = {("US", "United States"), ("a, b", "ab"), ("http: a protocol", "HTTP")}
    assert said(rows) == ({(A, B)}, texts)
    assert rows.labels == (("Jazz", C), ("Jazz", D))
    assert rows.texts[0] == SynonymRow("US", "United States", Place(str(file), line=2))


def test_that_bad_rows_are_reported_and_passed_over(tmp_path: Path) -> None:
    problems: list[Problem] = []
    rows = "term,root\nUS\nurn:a,text\nurn:a,urn:b\nurn:a,urn:c\nUS,USA\n,x\n"
    file = write(tmp_path / "a.csv", rows)
    found = read_synonyms(file, problems.append)
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
        ("a.json", "", ":1: not JSON: Expecting value"),
        ("a.json", '{"USA":\n ["US",]}', ":2: not JSON"),
        ("a.json", "7", "not an object of lists"),
        ("a.json", "9" * 6000, "not an object of lists"),
        ("a.json", b'{"B\xfccher": ["Buch"]}', "not UTF-8 at byte 3"),
        ("a.json", "[" * 100_000, "its objects and lists nest too deep"),
        ("a.json", '{"USA": ["' + "U" * 1000 + '"]}', "larger than 1,000 bytes"),
    ],
)
def test_files_that_cannot_be_read(name: str, text: str | bytes, what: str, tmp_path: Path) -> None:
    limits = replace(DEFAULT_LIMITS, document_bytes=1000) if "larger than" in what else None
    with pytest.raises(OntologyError, match=what):
        read_synonyms(write(tmp_path / name, text), unexpected, limits or DEFAULT_LIMITS)


def test_json(tmp_path: Path) -> None:
    text = '\ufeff{"USA": ["US", " U.S. "], "urn:b": ["urn:a", "Jazz"], "USA": ["America"]}'
    rows = read_synonyms(write(tmp_path / "a.JSON", text), unexpected)
    assert said(rows) == ({(A, B)}, {(name, "USA") for name in ("US", "U.S.", "America")})
    assert rows.labels == (("Jazz", B),)
    assert rows.texts[0].where == Place(str(tmp_path / "a.JSON"), item="'USA'")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"US": "USA"}', "('US'): the value of a root is not a list of its synonyms."),
        ('{"US": {"x": 1}}', "('US'): the value of a root is not a list of its synonyms."),
        ('{"US": [1]}', "('US'): a synonym is not a text."),
        ('{"US": [' + "9" * 6000 + "]}", "('US'): a synonym is not a text."),
        ('{"US": [""]}', "('US'): a row needs both a term and a root."),
        ('{"a\\nb": [1]}', "('a\\nb'): a synonym is not a text."),
        ('{"' + "x" * 99 + '": [1]}', f"('{'x' * 56}…): a synonym is not a text."),
        ('{"text": ["urn:a"]}', "('text'): the IRI urn:a cannot have the text 'text' as its root."),
        ('{"a": ["\\ud83d"]}', "('a'): half of a surrogate pair is no text."),
    ],
)
def test_entries_that_are_passed_over(text: str, problem: str, tmp_path: Path) -> None:
    problems: list[Problem] = []
    file = write(tmp_path / "a.json", f'{text[:-1]}, "Great Britain": ["UK"]}}')
    rows = read_synonyms(file, problems.append)
    assert said(rows)[1] == {("UK", "Great Britain")}
    assert len(problems) == 1
    assert str(problems[0]).startswith(f"{file} {problem}")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b'{"USA": ["US"]}', True),
        (b'\xef\xbb\xbf \n{ "US\\"A" : [ "US"', True),
        (b"{}", True),
        (b"[]", True),
        (b'{"US": "USA"}', True),  # told what to write, when it is read
        (b'[{"term": "US", "root": "USA"}]', True),
        (b'[ { "root": "USA", "term": "US"}]', True),
        (b'{"@context": {}, "USA": ["US"]}', False),
        (b'{"name": ["x"], "@type" : "Thing"}', False),
        (b'[{"@id": "urn:a"}]', False),
        (b'{"@graph": []}', False),
        (b'{"version": "https://jsonfeed.org/version/1.1", "items": []}', False),
        (b'{"USA": 7}', True),
        (b'[["US", "USA"]]', True),
        (b'{"items": ["goods"], "version": ["edition"]}', True),
        (b"3", True),
        (b'"x"', True),
        (b" null\n", True),
        (b"null:a <urn:p> <urn:o> .", False),
        (b"<rdf/>", False),
        (b"", False),
    ],
)
def test_telling_synonyms_from_other_json(head: bytes, expected: bool) -> None:
    assert is_synonym_json(head) is expected


NAMES = (
    st.text(min_size=1)
    .map(str.strip)
    .filter(lambda text: bool(text) and not text.startswith(("http:", "https:", "urn:", "@")))
)


@given(st.dictionaries(NAMES, st.lists(NAMES, min_size=1), min_size=1))
def test_that_what_is_written_is_read(lists: dict[str, list[str]]) -> None:
    expected = {(name, root) for root, names in lists.items() for name in names}
    with tempfile.TemporaryDirectory() as folder:
        rows = read_synonyms(write(Path(folder) / "a.json", json.dumps(lists)), unexpected)
        assert said(rows)[1] == expected

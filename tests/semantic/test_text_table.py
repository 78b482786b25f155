"""Lines that are cut by compiled loops: any lexicon's texts are found again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from semantic.term_texts import Lexicon, TermTexts
from semantic.text_table import TextTable

ROOT = Path(__file__).parents[2]


def lines_of(begin: int, end: int) -> bytes:
    return b"".join(b'<urn:s%d> <urn:p%d> "%d" .\n' % (n, n % 7, n) for n in range(begin, end))


def test_that_texts_are_found_when_there_are_many() -> None:
    texts: list[bytes] = []
    table = TextTable(texts, [])
    for begin in range(0, 9000, 450):
        block = lines_of(max(0, begin - 300), begin + 450)
        lines = table.cut(block, has_graphs=False)
        assert lines is not None
        texts += dict.fromkeys(text for _, text in lines.unknown())
    again = table.cut(lines_of(0, 9000), has_graphs=False)
    assert again is not None
    assert again.new == 0
    (run,) = again.runs()
    assert [texts[again.numbers[n]] for n in run.places] == lines_of(0, 9000).replace(
        b" .\n", b" "
    ).split()
    assert run.is_distinct


def test_that_small_tables_are_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semantic.text_table._HIGHEST", 1000)
    table = TextTable([], [])
    for begin in range(50):
        lines = table.cut(lines_of(begin, begin + 9), has_graphs=False)
        assert lines is not None
        assert (len(lines), lines.new) == (9, 25)


def test_that_repeated_triples_and_aliases_are_told() -> None:
    texts = TermTexts()
    texts.terms([b"<urn:a>", b'"a"', b'"\\u0061"'])
    table = texts.lexicon.table

    def told(document: bytes) -> list[bool]:
        lines = table.cut(document, has_graphs=True)
        assert lines is not None
        return [run.is_distinct for run in lines.runs()]

    one, other = b'<urn:a> <urn:p> "b" ', b'<urn:a> <urn:p> "a" '
    g, h = b"<urn:g> .\n", b"<urn:h> .\n"
    assert told(one + g) == [True]
    assert told(one + g + one + h) == [True, True]
    assert told(one + g + one + g + one + h) == [False, True]
    assert told(other + g + one + h) == [False, True]
    assert texts.lexicon.aliased == [1, 2]


def test_that_a_lexicon_numbers_texts() -> None:
    texts = TermTexts()
    texts.terms([b"<urn:a>", b"_:b"])
    assert list(texts.lexicon.numbers) == [b"<urn:a>"]
    before: Lexicon = texts.lexicon
    texts.forget()
    assert len(texts) == 0
    assert len(before) == 1


def test_lines_without_compiling() -> None:
    """numba's own switch: the same loops run as Python, where overflow is a warning."""
    others = ("-k", "not without_compiling and not many")
    files = (__file__, str(Path(__file__).with_name("test_plain_lines.py")))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, *others],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout

"""Units: what one task reads, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.spark.listing import shared_out, units
from graphmatch.spark.units import How, Kind, Unit, ids, lines_of, publications, system
from semantic import read_publications
from semantic.errors import InputError, Problem
from semantic.tables import COLUMNS

LINES = (
    "<urn:a> <urn:p> <urn:b> <urn:g%d> .",
    '<urn:a> <urn:p> "a <urn:x> ." <urn:g%d> .',
    "<urn:a>\t<urn:p>\t<urn:c>  <urn:g%d>  .  # <urn:h> .",
    "_:a <urn:p> _:b _:g%d .",
    "<urn:a> <urn:p> <urn:o%d> .",
    r"<urn:a> <urn:p> <urn:\u0041> <urn:g\u00%d> .",
    "# <urn:g%d> .",
    "no line %d",
    "",
)
"""Lines of N-Quads, one way and another; their numbers are two digits of a hexadecimal."""


@st.composite
def documents(draw: st.DrawFn) -> str:
    lines = draw(st.lists(st.tuples(st.sampled_from(LINES), st.integers(40, 44)), max_size=12))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = "".join((line % number if "%" in line else line) + end for line, number in lines)
    return text if draw(st.booleans()) else text.removesuffix(end)


@given(documents(), st.lists(st.integers(0, 400), max_size=5))
def test_lines_in_parts_are_the_whole(text: str, cuts: Sequence[int]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.nq"
        path.write_bytes(text.encode())
        size = path.stat().st_size
        places = sorted({0, size, *(cut for cut in cuts if cut < size)})
        told: list[Problem] = []
        found: dict[str, set[str]] = {}
        for begin, end in pairwise(places):
            unit = Unit(Kind.LINES, str(path), end - begin, begin, end)
            there = ids(unit, How())
            for publication in publications(unit, How(), told.append):
                assert publication.id in there
                lines = lines_of(publication).decode().splitlines()
                found.setdefault(publication.id, set()).update(lines)
        whole: list[Problem] = []
        unit = Unit(Kind.LINES, str(path), size, 0, size)
        expected = {
            publication.id: set(lines_of(publication).decode().splitlines())
            for publication in publications(unit, How(), whole.append)
        }
    assert found == expected
    assert [problem.where.line for problem in told] == [problem.where.line for problem in whole]


def test_lines_are_what_the_reader_makes_of_them(tmp_path: Path) -> None:
    path = tmp_path / "a.nq"
    path.write_text("<urn:a> <urn:p> <urn:b> <urn:g> .\n<urn:a> <urn:p> <urn:b> .\n")
    (unit,) = units([str(path)], How(), pytest.fail)
    own = publications(unit, How(), pytest.fail)
    read = read_publications(str(path))
    assert [(p.id, p.triples) for p in own] == [(p.id, p.triples) for p in read]


def table(path: Path, rows: Sequence[tuple[str | None, ...]], group: int) -> None:
    columns = [pa.array(list(column), pa.string()) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(columns, names=list(COLUMNS)), path, row_group_size=group)


def test_tables_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmatch.spark.listing._SMALLEST", 1)
    rows: list[tuple[str | None, ...]] = [
        ("g", "<urn:a>", "<urn:p>", "_:x"),
        ("h", "<urn:a>", "<urn:p>", '"1"'),
        (None, "<urn:a>", "<urn:p>", '"1"'),
        ("g", "_:x", "<urn:p>", '"2"@en'),
        ("h", "<urn:a>", "<urn:p>", None),
    ]
    table(tmp_path / "a.parquet", rows, 2)
    found = units([str(tmp_path)], How(), pytest.fail, cores=100)
    assert [(unit.begin, unit.end, unit.first) for unit in found] == [
        (0, 1, 0),
        (1, 2, 2),
        (2, 3, 4),
    ]
    assert [ids(unit, How()) for unit in found] == [{"g", "h"}, {"g"}, {"h"}]
    told: list[Problem] = []
    said = [
        (publication.id, lines_of(publication).decode())
        for unit in found
        for publication in publications(unit, How(), told.append)
    ]
    assert said == [
        ("g", "<urn:a> <urn:p> _:bx .\n"),
        ("h", '<urn:a> <urn:p> "1" .\n'),
        ("g", '_:bx <urn:p> "2"@en .\n'),
    ]
    where = [(Path(problem.where.source).name, problem.where.item) for problem in told]
    assert where == [("a.parquet", "row 3"), ("a.parquet", "row 5")]


def test_files_that_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a.nq").write_text("<urn:a> <urn:p> <urn:b> <urn:g> .\n")
    (tmp_path / "b.ttl").write_text("<urn:a> <urn:p> <urn:b> .\n")
    for name in ("_SUCCESS", ".hidden", "_temporary"):
        (tmp_path / name).touch()
    table(tmp_path / "c", [("g", "<urn:a>", "<urn:p>", "<urn:b>")], 1)  # by its content
    found = units([str(tmp_path)], How(), pytest.fail)
    assert [(Path(unit.path).name, unit.kind) for unit in found] == [
        ("a.nq", Kind.LINES),
        ("b.ttl", Kind.DOCUMENT),
        ("c", Kind.TABLE),
    ]
    remote = units([f"file://{tmp_path}"], How(), pytest.fail)
    assert [unit.kind for unit in remote] == [unit.kind for unit in found]
    named = units([str(tmp_path / "_SUCCESS")], How(), pytest.fail)
    assert [unit.kind for unit in named] == [Kind.DOCUMENT]


def test_files_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    told: list[Problem] = []
    (tmp_path / "a.parquet").write_text("no table")
    (tmp_path / "empty").mkdir()
    paths = ["a.parquet", "empty", "missing.nq"]
    names = [str(tmp_path / name) for name in paths]
    found = units([*names, f"file://{tmp_path}/missing", "nowhere://x"], How(), told.append)
    assert found == []
    said = {str(problem).removeprefix(str(tmp_path))[:32] for problem in told}
    assert said >= {
        "/a.parquet: cannot be read: Parq",
        "/empty: the folder has no files.",
        "/missing.nq: cannot be read: [Er",
    }
    assert len(told) == 5
    gone = Unit(Kind.LINES, names[2], 1, 0, 1)
    with pytest.raises(InputError, match=r"missing\.nq: cannot be read"):
        list(publications(gone, How(), pytest.fail))
    with pytest.raises(InputError, match="its file system cannot be reached"):
        system("nowhere://x")


@given(st.lists(st.integers(0, 10**7), max_size=40), st.integers(1, 8))
def test_units_are_shared_out_in_order(sizes: Sequence[int], cores: int) -> None:
    made = [Unit(Kind.DOCUMENT, str(number), size) for number, size in enumerate(sizes)]
    tasks = shared_out(made, cores)
    assert [unit for task in tasks for unit in task] == made
    assert all(tasks)
    assert len(tasks) <= 12 * cores + 1

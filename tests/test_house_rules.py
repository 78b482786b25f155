"""Rules of the tests: only public names, no clocks and no sleeping in default tests.

- Tests use public names. The compiled core's boundary is what `graphmatch/_native.pyi` declares,
  so tests may import that; attributes that begin with an underscore are private everywhere.
- Default tests wait for conditions, with `tests.waiting`. Bounds in seconds are in tests marked
  ``long``, with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
FILES = sorted(TESTS.rglob("*.py"))
CLOCKS = {"monotonic", "perf_counter", "process_time", "sleep", "thread_time", "time"}
OF_OTHERS = {"_exit", "_jsc", "_jvm", "_replace", "_repr_html_"}
"""Names of Python, Spark and Jupyter without a public counterpart."""
LONG_ONLY = ("graphmatch/spark/peers/",)
"""Folders of helpers that only long tests use."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_OTHERS


def own_names(tree: ast.AST) -> set[str]:
    """Return the names that a file defines."""
    found = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Attribute(ctx=ast.Store()):
                found.add(node.attr)
            case ast.Name(ctx=ast.Store()):
                found.add(node.id)
    return found


def private_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the places where a file uses private names of others."""
    own = own_names(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if is_private(name) and name not in own:
                yield node.lineno, name
            case ast.ImportFrom(module=module, names=names):
                several = [*(module or "").split("."), *(alias.name for alias in names)]
                yield from (
                    (node.lineno, name)
                    for name in several
                    if is_private(name) and name != "_native"
                )
            case (
                ast.Call(func=ast.Name("getattr" | "setattr" | "delattr"))
                | ast.Call(func=ast.Attribute(attr="setattr" | "delattr"))
            ):
                texts = (one.value for one in node.args if isinstance(one, ast.Constant))
                names_ = (one.rpartition(".")[2] for one in texts if isinstance(one, str))
                yield from ((node.lineno, name) for name in names_ if is_private(name))


def is_long(node: ast.AST) -> bool:
    """Whether a function is marked as long, or a statement marks the whole file."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return any(ast.unparse(one) == "pytest.mark.long" for one in node.decorator_list)
        case ast.Assign(targets=[ast.Name("pytestmark")], value=value):
            return ast.unparse(value) == "pytest.mark.long"
    return False


def clocks(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the places where code outside of long tests reads a clock or sleeps."""
    if any(isinstance(node, ast.Assign) and is_long(node) for node in tree.body):
        return
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
    }
    for statement in tree.body:
        if is_long(statement):
            continue
        for node in ast.walk(statement):
            match node:
                case ast.Attribute(value=ast.Name("time"), attr=name) if name in CLOCKS:
                    yield node.lineno, f"time.{name}"
                case ast.Call(func=ast.Name(name)) if name in imported & CLOCKS:
                    yield node.lineno, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_tests_use_public_names_and_wait_for_conditions(path: Path) -> None:
    name = path.relative_to(TESTS).as_posix()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [f"{name}:{line}: {what} is private" for line, what in private_names(tree)]
    if name != "waiting.py" and not name.startswith(LONG_ONLY):
        remedy = "use tests.waiting, or mark the test as long and say why"
        found += [f"{name}:{line}: {what}: {remedy}" for line, what in clocks(tree)]
    assert not found, "\n".join(found)


def test_the_rules_find_what_they_forbid() -> None:
    """Private names of others, and clocks outside of long tests, are found."""
    text = """
import time, pytest
from time import sleep
from graphmatch.engine import _hidden
def test_a():
    x._y; self._own = 1; setattr(x, "_z", 1)
    sleep(1); assert time.monotonic() < 5
@pytest.mark.long
def test_b():
    sleep(2)
"""
    tree = ast.parse(text)
    assert {name for _, name in private_names(tree)} == {"_hidden", "_y", "_z"}
    assert [name for _, name in clocks(tree)] == ["sleep", "time.monotonic"]


def test_the_table_of_tests_covers_the_product() -> None:
    """Each module has a row in docs/contributing.md, and each path of the table exists."""
    page = (ROOT / "docs/contributing.md").read_text(encoding="utf-8")
    table = page.partition("| changed | tests | seconds |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:4] for line in table.splitlines()[2:]]
    assert len(rows) > 20
    changed = {path for row in rows for path in re.findall(r"`(.+?)`", row[0])}
    tests = {path for row in rows for path in re.findall(r"`(.+?)`", row[1])}
    assert [path for path in changed | tests if not (ROOT / path).exists()] == []
    assert all(re.fullmatch(r" (\d+|-) ", row[2]) for row in rows)
    modules = [
        path.relative_to(ROOT)
        for name in ("semantic", "graphmatch")
        for path in (ROOT / name).rglob("*.py")
    ]
    uncovered = [
        str(module)
        for module in modules
        if not any(str(one) in changed for one in (module, *module.parents))
    ]
    assert uncovered == [], "name them in the table of docs/contributing.md"

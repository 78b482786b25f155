"""Files of results: JSON with one line per run or figure."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from os import cpu_count
from pathlib import Path

from graphmatch.bench.process import Row
from graphmatch.console import to_json
from semantic.errors import InputError, Place, Problem


def machine() -> str:
    """Return the processor, the number of cores and the version of Python, for readers."""
    return f"{platform.machine()}, {cpu_count()} cores, Python {platform.python_version()}"


def read_results(file: Path) -> dict[str, Row]:
    """Return the results in a file by name; empty if the file does not exist.

    Raise `InputError` if it is not JSON.
    """
    if not file.is_file():
        return {}
    try:
        found: dict[str, Row] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        what = f"not a file of results: {error}"
        raise InputError(Problem(what, Place(str(file)), "Delete it, or give another.")) from error
    return found


def add_results(file: Path, results: Mapping[str, Row]) -> None:
    """Add results to those in a file; raise `InputError` if it is not JSON or cannot be written."""
    every = {**read_results(file), **results}
    lines = ",\n".join(f"{to_json(name)}: {to_json(one)}" for name, one in every.items())
    write_bytes(file, f"{{\n{lines}\n}}\n".encode())


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file, and create its folder if it is missing; raise `InputError` if that fails."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise InputError(Problem(what, Place(str(file)), "Give another --output.")) from error

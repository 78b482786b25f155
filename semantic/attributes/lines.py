"""Lines of JSON: objects with an id, whose numbers are literals; every fault has its place."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from semantic.attributes.values import TermError, decode
from semantic.errors import GraphMatchError, OnProblem, Place, Problem

_BLANK = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads the lines of one document.

    Parameters
    ----------
    source
        Its name, for messages.
    remedy
        What a line has to look like.
    on_problem
        Called with each line that cannot be used.
    """

    source: str
    remedy: str
    on_problem: OnProblem

    def rows(self, lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the objects with the numbers of their lines; empty lines are passed over."""
        for number, line in enumerate(lines, 1):
            if (row := self.row(number, line)) is not None:
                yield number, row

    def row(self, number: int, line: bytes) -> dict[str, Any] | None:
        """Return the object of a line; ``None`` where it is empty, or cannot be used."""
        if not (text := line.removeprefix(BOM_UTF8).strip(_BLANK)):
            return None
        try:
            row = decode(text.decode())
        except (RecursionError, ValueError) as error:
            self.on_problem(self._fault(number, line, error))
            return None
        if isinstance(row, dict):
            return row
        self.on_problem(Problem("not a JSON object", self.place(number), self.remedy))
        return None

    def place(self, number: int, item: str | None = None) -> Place:
        """Return the place of a line, and of what is in it."""
        return Place(self.source, line=number, item=item)

    def refused(self, number: int, id: object, error: GraphMatchError) -> None:
        """Report what is wrong with the item of a line."""
        item = id if isinstance(id, str) else None
        self.on_problem(replace(error.problem, where=self.place(number, item)))

    def _fault(self, number: int, line: bytes, error: Exception) -> Problem:
        place = self.place(number)
        match error:
            case UnicodeDecodeError():
                what, remedy = "not UTF-8", "Save the file as UTF-8."
                before = line[: line.index(error.object) + error.start]
                where = replace(place, column=len(before.decode("utf-8-sig")) + 1)
                return Problem(what, where, remedy)
            case json.JSONDecodeError():
                what = f"not JSON: {error.msg.removesuffix(' at')}"
                return Problem(what, replace(place, column=error.pos + 1), self.remedy)
            case TermError():
                return Problem(error.what, place, error.remedy)
        return Problem("its JSON nests too deep or has too long a number", place, self.remedy)


def fault(row: dict[str, Any], name: str, place: Place, remedy: str) -> Problem:
    """Return the problem of a field that has to be a text, and is missing or something else."""
    what = f"the field `{name}` is not a text" if name in row else f"the field `{name}` is missing"
    return Problem(what, place, remedy)


def opened(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file.

    Raises
    ------
    OSError
        When it cannot be read.
    """
    with Path(path).open("rb") as file:
        yield from file

"""CSV files of an ontology: tables of synonyms or topics.

The first line names the columns, in any case and order; other columns are ignored. Commas, tabs or
semicolons separate the columns: spreadsheets in many European countries write semicolons.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyoxigraph import NamedNode

from semantic.errors import OnProblem, OntologyError, Place, Problem
from semantic.limits import DEFAULT_LIMITS, Limits, too_long
from semantic.terms import expanded

SKIPPED = "The row was skipped. Correct or remove it."


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV file: the columns that its first line names, and its rows, each with its place."""

    where: Place
    columns: frozenset[str]
    rows: list[tuple[Mapping[str, str], Place]]


def read_csv(path: Path, on_problem: OnProblem, limits: Limits = DEFAULT_LIMITS) -> CsvTable:
    """Read a CSV file; report and skip rows with a text that is too long, or with too many fields.

    Raise `OntologyError` if the file is not CSV or not UTF-8.
    """
    where = Place(str(path))
    rows: list[tuple[Mapping[str, str], Place]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            file.seek(0)
            table = csv.DictReader(file, delimiter=max(",;\t", key=head.count), restval="")
            table.fieldnames = [name.strip().lower() for name in table.fieldnames or ()]
            for row in table:
                place = replace(where, line=table.line_num)
                if None in row:
                    what = "the row has more fields than the first line"
                    remedy = f"{SKIPPED} Write a text that contains a separator in quotes."
                    on_problem(Problem(what, place, remedy))
                elif max(map(len, row.values())) > limits.text_characters:
                    on_problem(too_long("a text", place, limits))
                else:
                    rows.append(({name: text.strip() for name, text in row.items()}, place))
    except csv.Error as error:
        problem = Problem(f"not CSV: {error}", where, "Save the table as CSV.")
        raise OntologyError(problem) from error
    except UnicodeDecodeError as error:
        what = f"not UTF-8 at byte {error.start}"
        raise OntologyError(Problem(what, where, "Save the file as UTF-8.")) from error
    return CsvTable(where, frozenset(table.fieldnames), rows)


def iri_of(name: str, prefixes: Mapping[str, str] = {}) -> NamedNode | None:
    """Return the term that an IRI or a prefixed name denotes; ``None`` for another text."""
    prefix, colon, _ = name.removeprefix("<").partition(":")
    if not colon or prefix not in (*prefixes, "http", "https", "urn"):
        return None
    try:
        return expanded(name, prefixes)
    except ValueError:
        return None

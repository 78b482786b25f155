"""CSV files of an ontology: tables of synonyms or topics.

The first line names the columns, in any case and order; other columns are ignored. Commas, tabs or
semicolons separate the columns: spreadsheets in many European countries write semicolons. A text
has one line and, as in the module `csv`, at most 131,072 characters.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import NamedNode

from semantic.errors import OnProblem, OntologyError, Place, Problem
from semantic.terms import expanded

SKIPPED = "The row was skipped. Correct or remove it."
_QUOTES = f"{SKIPPED} Look for quotation marks that are missing or too many."
_COLUMNS = frozenset({"topic", "label", "language", "broader", "proper_name", "term", "root"})
_CONTROL = re.compile(r"[\x00-\x1f]")


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV file: the known columns that its first line names, and its rows by line number."""

    path: str
    columns: frozenset[str]
    rows: dict[int, dict[str, str]]


def read_csv(path: Path, on_problem: OnProblem) -> CsvTable:
    """Read a CSV file without its empty rows; report and skip rows that no table can have.

    Raise `OntologyError` if the file is not CSV or not UTF-8.
    """
    rows: dict[int, dict[str, str]] = {}
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            file.seek(0)
            reader = csv.reader(file, delimiter=max(",;\t", key=head.count), strict=True)
            names = [name.strip().lower() for name in next(reader, ())]
            columns = {name: n for n, name in enumerate(names) if name in _COLUMNS}
            line = reader.line_num + 1
            for fields in reader:
                begin, line = line, reader.line_num + 1
                fields += [""] * (len(names) - len(fields))
                row = {name: fields[n].strip() for name, n in columns.items()}
                what = ""
                if len(fields) > len(names):
                    what = "the row has more fields than the first line"
                elif _CONTROL.search("".join(row.values())):
                    what = "a text has a line break or another control character"
                elif any(row.values()):
                    rows[begin] = row
                if what:
                    on_problem(Problem(what, Place(str(path), line=begin), _QUOTES))
    except csv.Error as error:
        what = f"not CSV: {error}, in the row that begins here"
        remedy = "Add or remove a quotation mark, or save the table as CSV again."
        raise OntologyError(Problem(what, Place(str(path), line=line), remedy)) from error
    except UnicodeDecodeError as error:
        what = f"not UTF-8 at byte {error.start}"
        raise OntologyError(Problem(what, Place(str(path)), "Save the file as UTF-8.")) from error
    return CsvTable(str(path), frozenset(columns), rows)


def iri_of(name: str, prefixes: Mapping[str, str] = {}) -> NamedNode | None:
    """Return the term that an IRI or a prefixed name denotes; ``None`` for another text."""
    prefix, colon, _ = name.removeprefix("<").partition(":")
    if not colon or prefix not in (*prefixes, "http", "https", "urn"):
        return None
    try:
        return expanded(name, prefixes)
    except ValueError:
        return None

"""CSV files of an ontology: tables of synonyms or topics.

The first line that is not empty names the columns, in any case and order. Other columns are
ignored. Commas, tabs or semicolons separate the columns: spreadsheets in many European countries
write semicolons. A text has one line and, as in the module `csv`, at most 131,072 characters.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import NamedNode

from semantic.errors import OnProblem, OntologyError, Place, Problem
from semantic.files import decoded
from semantic.terms import expanded

SKIPPED = "The row was skipped. Correct or remove it."
_MORE = f"{SKIPPED} Put a text with a separator between quotation marks."
_UNCLOSED = f"{SKIPPED} A line break can mean that a quotation mark is missing."
_COLUMNS = frozenset({"topic", "label", "language", "broader", "proper_name", "term", "root"})
_CONTROL = re.compile(r"[\x00-\x1f]")


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV file: the known columns that its first line names, and its rows by line number."""

    path: str
    columns: frozenset[str]
    rows: dict[int, dict[str, str]]


def read_csv(path: Path, on_problem: OnProblem) -> CsvTable:
    """Read a CSV file without its empty rows; report and skip unusable rows.

    Rows with too many fields or with control characters are unusable. Raise `OntologyError` if the
    file is not CSV, or names a known column twice. Raise `InputError` if it is not UTF-8.
    """
    rows: dict[int, dict[str, str]] = {}
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = next((text for text in file if text.strip()), "")
            file.seek(0)
            reader = csv.reader(file, delimiter=max(",;\t", key=head.count), strict=True)
            first = next((fields for fields in reader if "".join(fields).strip()), ())
            names = [name.strip().lower() for name in first]
            columns = {name: n for n, name in enumerate(names) if name in _COLUMNS}
            line = reader.line_num
            for name in columns:
                if names.count(name) > 1:
                    what, place = f"two columns are called `{name}`", Place(str(path), line)
                    raise OntologyError(Problem(what, place, "Rename or remove one of them."))
            line += 1
            for fields in reader:
                begin, line = line, reader.line_num + 1
                fields += [""] * (len(names) - len(fields))
                row = {name: fields[n].strip() for name, n in columns.items()}
                place = Place(str(path), begin)
                if len(fields) > len(names):
                    on_problem(Problem("the row has more fields than the first line", place, _MORE))
                elif _CONTROL.search("".join(row.values())):
                    what = "a text has a control character, such as a tab or a line break"
                    on_problem(Problem(what, place, _UNCLOSED))
                elif any(row.values()):
                    rows[begin] = row
    except csv.Error as error:
        what = f"not CSV: {error}, in the row that begins here"
        remedy = "Add or remove a quotation mark, or save the table as CSV again."
        raise OntologyError(Problem(what, Place(str(path), line=line), remedy)) from error
    except UnicodeDecodeError:
        decoded(path.read_bytes(), str(path))  # Its error has the place.
        raise
    return CsvTable(str(path), frozenset(columns), rows)


def iri_of(name: str, prefixes: Mapping[str, str] = {}) -> NamedNode | None:
    """Return the term that an IRI or a prefixed name denotes; ``None`` for another text.

    Without angle brackets, only ``http:``, ``https:`` and ``urn:`` begin an IRI.
    """
    prefix, colon, _ = name.partition(":")
    if not (name.startswith("<") or (colon and prefix in (*prefixes, "http", "https", "urn"))):
        return None
    try:
        return expanded(name, prefixes)
    except ValueError:
        return None

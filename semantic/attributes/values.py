"""Conversion of attribute values from JSON and Python to RDF terms.

A JSON number is an ``xsd:integer``, ``xsd:decimal`` or ``xsd:double`` depending on its notation
(``5``, ``5.0``, ``5e0``), and a string is a plain text. Other values are objects: ``{"value": "…",
"datatype": "xsd:date"}``, ``{"value": "…", "language": "de"}``, ``{"value": 40, "unit": "GB"}``,
``{"iri": "…"}``. JSON has no dates, so a string in the form ``2026-01-31`` or
``2026-01-31T12:00:00Z`` is a date, in subscriptions and in events.

This module also reads JSON Lines of subscriptions and events, and reports the place of each error.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode

from semantic.errors import OnProblem, Place, Problem, UnplacedError
from semantic.limits import DEFAULT_LIMITS, Limits, too_long
from semantic.terms import SURROGATE_REMEDY, expanded
from semantic.units.quantities import UCUM, is_quantity, read_quantity
from semantic.values import value_of
from semantic.vocabulary import PREFIXES, XSD

_DIGITS = 4300
"""Maximum length of a number: the default limit of Python's ``int()``."""
_BITS = (10**_DIGITS).bit_length() - 1
"""Maximum size of an integer with ``_DIGITS`` digits, in bits."""
_INTEGER, _DECIMAL, _DOUBLE = XSD["integer"], XSD["decimal"], XSD["double"]
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_TYPED = frozenset({"value", "datatype", "language", "unit", "iri"})
_ORDERED = frozenset(XSD[n] for n in ("integer", "decimal", "double", "float", "date", "dateTime"))


class TermError(UnplacedError):
    """A value or a constraint that cannot be converted to RDF terms."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the JSON object that has these fields; raise `TermError` if a name repeats."""
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TermError(f"the field {twice!r} occurs twice", "Write it once.")
    return made


def _no_number(text: str) -> Any:
    raise TermError(f"{text} cannot be compared", "Leave it out.")


def _written(number: str) -> Literal:
    if len(number) > _DIGITS:
        raise ValueError("too long a number")
    if "e" in number or "E" in number:
        return Literal(number, datatype=_DOUBLE)
    return Literal(number, datatype=_DECIMAL if "." in number else _INTEGER)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_int=_written, parse_float=_written, parse_constant=_no_number
)


def decode(text: str) -> Any:
    """Parse JSON, with numbers as literals that keep their notation.

    Raises `ValueError` if the text is not JSON or has too long a number. Raises `TermError` if a
    field is duplicate, or a number is NaN or infinite.

    Examples
    --------
    >>> decode('{"price.value": 3.50}')["price.value"].value
    '3.50'
    """
    return _DECODER.decode(text)


def plain(text: str) -> Literal:
    """Return a plain literal; raise `TermError` if the text has a lone surrogate."""
    try:
        return Literal(text)
    except ValueError as error:
        what = "a string has a lone surrogate (half a character)"
        raise TermError(what, SURROGATE_REMEDY) from error


def term_of(value: object) -> NamedNode | Literal:
    """Convert a JSON or Python value to a term; raise `TermError` if that is impossible.

    Examples
    --------
    >>> print(term_of("Acme"), term_of({"value": 40, "unit": "GB"}))
    "Acme" "40 GB"^^<https://w3id.org/cdt/ucum>
    >>> print(term_of(399), term_of({"iri": "foaf:Person"}))
    "399"^^<http://www.w3.org/2001/XMLSchema#integer> <http://xmlns.com/foaf/0.1/Person>
    """
    match value:
        case str():
            return plain(value)
        case Literal() | NamedNode():
            return value
        case bool():
            return Literal("true" if value else "false", datatype=XSD["boolean"])
        case int() | float() | Decimal():
            return _number(value)
        case datetime():
            return Literal(value.isoformat(), datatype=XSD["dateTime"])
        case date():
            return Literal(value.isoformat(), datatype=XSD["date"])
        case Mapping():
            return _typed(value)
    shown = {"NoneType": "null", "list": "a list", "dict": "an object"}.get(type(value).__name__)
    what = f"{shown or repr(value)[:40]} is not a valid value"
    raise TermError(what, 'Write a string, a number, true, false or {"value": …}.')


def _number(value: float | Decimal) -> Literal:
    if isinstance(value, Decimal):
        too_long = max(abs(value.adjusted()), len(str(value))) > _DIGITS
    else:
        too_long = isinstance(value, int) and value.bit_length() > _BITS
    if too_long:
        raise TermError(
            f"a number has more than {_DIGITS:,} digits", "Round it, or write it as a string."
        )
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    if isinstance(value, int):
        return Literal(text, datatype=_INTEGER)
    if text.lower().lstrip("-+")[:1] in "ins":  # Infinity or NaN.
        _no_number(text)
    return Literal(text, datatype=_DOUBLE if "e" in text else _DECIMAL)


def _typed(value: Mapping[Any, object]) -> NamedNode | Literal:
    if unknown := [name for name in value if name not in _TYPED]:
        what = f"a value cannot have the field {unknown[0]!r}"
        raise TermError(what, "Use value with one of datatype, language and unit, or iri alone.")
    text = {name: _text(name, field) for name, field in value.items()}
    if "value" in text:
        plain(text["value"])
    match sorted(text):
        case ["iri"]:
            return _iri(text["iri"])
        case ["datatype", "value"]:
            return _checked(Literal(text["value"], datatype=_iri(text["datatype"])))
        case ["language", "value"]:
            try:
                return Literal(text["value"], language=text["language"])
            except ValueError as error:
                what = f"{text['language']!r} is not a language tag"
                raise TermError(what, "Write a tag such as de or en-GB.") from error
        case ["unit", "value"]:
            quantity = f"{text['value']} {plain(text['unit']).value}"
            if read_quantity(quantity) is None:
                raise TermError(
                    f"{quantity!r} is not a valid quantity", 'Write {"value": 40, "unit": "GB"}.'
                )
            return Literal(quantity, datatype=UCUM)
        case ["value"]:
            return term_of(value["value"])
    what = f"the fields {', '.join(sorted(text))} cannot be combined"
    raise TermError(what, "Use value with one of datatype, language and unit, or iri alone.")


def _text(name: str, field: object) -> str:
    if isinstance(field, Literal):
        return field.value
    if name == "value" and isinstance(field, int | float | Decimal):
        return term_of(field).value
    if not isinstance(field, str):
        raise TermError(f"the field {name!r} is not a string", "Write it in quotes.")
    return field


def _checked(literal: Literal) -> Literal:
    """Return a literal; raise `TermError` if its text is invalid for a known datatype."""
    if (literal.datatype in _ORDERED or is_quantity(literal)) and value_of(literal) is None:
        what = f"{literal.value!r} is not a valid value of the datatype {literal.datatype.value}"
        remedy = "Use the syntax of XML Schema: 2026-01-31, 2026-01-31T12:00:00Z, 5, 5.0, true."
        raise TermError(what, remedy)
    return literal


def _iri(text: str) -> NamedNode:
    """Parse an IRI or a prefixed name; raise `TermError` if it is neither."""
    try:
        return expanded(text, PREFIXES)
    except ValueError as error:
        what = f"{text!r} is not an absolute IRI and has no known prefix"
        raise TermError(what, "Write the full IRI.") from error


def may_be_dated(text: str) -> bool:
    """Return whether a text may be a date, so that `dated` must parse it: a hyphen comes fifth."""
    return text[4:5] == "-"


def looks_dated(text: str) -> bool:
    """Return whether a text has the form of a date or time, even if the day does not exist."""
    return _DATE.fullmatch(text) is not None


def dated(literal: Literal) -> Literal:
    """Convert a plain text to a date or time; return any other literal unchanged.

    Examples
    --------
    >>> print(dated(Literal("2026-01-31")), dated(Literal("2026-02-31")))
    "2026-01-31"^^<http://www.w3.org/2001/XMLSchema#date> "2026-02-31"
    """
    text = literal.value
    if not may_be_dated(text) or literal.datatype != XSD["string"]:
        return literal
    if not (found := _DATE.fullmatch(text)):
        return literal
    made = Literal(text, datatype=XSD["dateTime" if found[1] else "date"])
    return literal if value_of(made) is None else made


# -- lines of JSON --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LineReader:
    """Reader of the objects in one JSON Lines document.

    `source` is its name, and `remedy` describes a valid line for messages. The reader reports each
    invalid line, and each line longer than ``text_characters`` of the limits.
    """

    source: str
    remedy: str
    on_problem: OnProblem
    limits: Limits = DEFAULT_LIMITS

    def file(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the objects of the file `source`; see `rows`."""
        with Path(self.source).open("rb") as file:
            yield from self.rows(file)

    def rows(self, lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number (from 1) and the object of each line; skip empty lines.

        Invalid and too long lines are reported and skipped.
        """
        for number, line in enumerate(lines, 1):
            if not (text := line.removeprefix(BOM_UTF8).strip(b" \t\r\n")):
                continue
            if len(text) > self.limits.text_characters:
                self.on_problem(too_long("a line", self.place(number), self.limits))
                continue
            try:
                row = decode(text.decode())
            except (RecursionError, ValueError) as error:
                self.on_problem(self._fault(number, line, error))
                continue
            if isinstance(row, dict):
                yield number, row
            else:
                self.on_problem(Problem("not a JSON object", self.place(number), self.remedy))

    def place(self, number: int, item: str | None = None) -> Place:
        """Return the place of a line, or of an item in it."""
        return Place(self.source, line=number, item=item)

    def _fault(self, number: int, line: bytes, error: Exception) -> Problem:
        place = self.place(number)
        match error:
            case UnicodeDecodeError():
                before = line[: line.index(error.object) + error.start]
                where = replace(place, column=len(before.decode("utf-8-sig")) + 1)
                return Problem("not UTF-8", where, "Save the file as UTF-8.")
            case json.JSONDecodeError():
                what = f"not JSON: {error.msg.removesuffix(' at')}"
                return Problem(what, replace(place, column=error.pos + 1), self.remedy)
            case TermError():
                return Problem(error.what, place, error.remedy)
        return Problem(
            "the JSON is nested too deeply or has a number with too many digits", place, self.remedy
        )

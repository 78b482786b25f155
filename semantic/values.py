"""Values of literals, and their comparison by SPARQL's operators.

`compare` decides only comparisons with constants for which the answer is certain *for every term*
(`decidable`): a number, a string, a boolean, a date or a dateTime, a quantity, or an IRI for ``=``.
The SPARQL evaluator decides the rest (durations, NaN, the order of language-tagged strings), and
``!=`` if the answer may be an error (`semantic.filter_evaluation`). It is also called if numbers
must be promoted to floats, or if a time with a zone is compared with one without.

Source: SPARQL 1.1 section 17.3 (operator mapping), XML Schema part 2 section 3.2.7 (order of
dateTime).
"""

from __future__ import annotations

import datetime
import math
import operator
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from pyoxigraph import Literal, NamedNode, Store

from semantic.terms import Term
from semantic.units.quantities import is_quantity, read_quantity, read_written
from semantic.vocabulary import RDF, XSD


class ComparisonOperator(Enum):
    """The comparison operators of SPARQL that an index may support: all but ``!=``."""

    EQ = "="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Number:
    """The value of a numeric literal: a `Decimal` if exact, a `float` for float and double."""

    value: Decimal | float


@dataclass(frozen=True, slots=True)
class Instant:
    """A point on the time line (``xsd:dateTime``) or the start of a day (``xsd:date``).

    `kind` is ``dateTime`` or ``date``; the two are not comparable. `seconds` are since
    0001-01-01T00:00:00, in UTC if there is a zone, otherwise in local time.
    """

    kind: str
    seconds: Decimal
    zoned: bool


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit.

    Quantities with the same unit text compare by their numbers; others are not comparable.
    `semantic.units` converts quantities to the base unit of their dimension.
    """

    number: Fraction
    unit: str


Value: TypeAlias = Number | Instant | Quantity | str | bool

_INTEGERS = frozenset(
    XSD[name].value
    for name in (
        *("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger"),
        *("nonPositiveInteger", "negativeInteger", "unsignedLong", "unsignedInt"),
        *("unsignedShort", "unsignedByte"),
    )
)
_STRING = XSD["string"].value
_BOOLEAN = XSD["boolean"].value
_DECIMAL = XSD["decimal"].value
_FLOAT = XSD["float"].value
_DOUBLE_TERM = XSD["double"]
_DOUBLE = _DOUBLE_TERM.value
_DATE = XSD["date"].value
_DATE_TIMES = frozenset({XSD["dateTime"].value, XSD["dateTimeStamp"].value})

_INTEGER_RANGE = range(-(2**63), 2**63)
_EXACT = Context(prec=60)
_UNIT = 10**18
"""Scale of decimals: a decimal is a 128-bit count of fractions 1/10**18."""
_DECIMAL_END = _EXACT.divide(Decimal(2**127), Decimal(_UNIT))
_INTEGER_FORM = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
_DECIMAL_FORM = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)", re.ASCII)
_DOUBLE_FORM = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)",
    re.ASCII | re.IGNORECASE,
)
_DATE_TIME_FORM = re.compile(
    r"(-?(?:[1-9][0-9]{3,12}|0[0-9]{3}))-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"(?:T([01][0-9]|2[0-4]):([0-5][0-9]):([0-5][0-9](?:\.[0-9]{1,18})?))?"
    r"(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?",
    re.ASCII,
)
_COMPARED: Mapping[ComparisonOperator, Callable[[Any, Any], object]] = {
    ComparisonOperator.EQ: operator.eq,
    ComparisonOperator.LT: operator.lt,
    ComparisonOperator.LE: operator.le,
    ComparisonOperator.GT: operator.gt,
    ComparisonOperator.GE: operator.ge,
}
_CYCLE_DAYS = 146_097


@lru_cache(maxsize=4096)
def value_of(literal: Literal) -> Value | None:
    """Return the value of a literal, or ``None`` if it has no comparable value.

    Examples
    --------
    >>> value_of(Literal("05", datatype=XSD["integer"]))
    Number(value=Decimal('5'))
    >>> value_of(Literal("five", datatype=XSD["integer"])) is None
    True
    >>> value_of(Literal("Climate"))
    'Climate'
    """
    datatype, text = literal.datatype.value, literal.value
    if datatype == _STRING:
        return text
    if datatype in _INTEGERS:
        if parts := _INTEGER_FORM.fullmatch(text):
            value = int(parts[1] + parts[2])
            if value in _INTEGER_RANGE:
                return Number(Decimal(value))
    elif datatype == _DECIMAL:
        return _decimal(text)
    elif datatype in (_FLOAT, _DOUBLE):
        if _DOUBLE_FORM.fullmatch(text):
            return Number(float(text) if datatype == _DOUBLE else _single(text))
    elif datatype == _DATE or datatype in _DATE_TIMES:
        return _instant(text, date=datatype == _DATE)
    elif datatype == _BOOLEAN:
        return {"true": True, "1": True, "false": False, "0": False}.get(text)
    elif is_quantity(literal) and (found := read_written(text) or read_quantity(text)) is not None:
        return Quantity(*found)
    return None


def decidable(operator: ComparisonOperator, constant: NamedNode | Literal) -> bool:
    """Return whether `compare` agrees with SPARQL on ``term operator constant``, for every term."""
    if isinstance(constant, NamedNode):
        return operator is ComparisonOperator.EQ
    value = value_of(constant)
    if isinstance(value, Number) and value.value != value.value:
        return False  # Implementations differ on NaN <= NaN.
    return value is not None and (operator is ComparisonOperator.EQ or not isinstance(value, bool))


def is_comparable(constant: NamedNode | Literal) -> bool:
    """Return whether ``!=`` with this constant is certain: an IRI, a text or another known value.

    NaN and literals without a comparable value (`value_of`) are not certain.
    """
    if isinstance(constant, Literal) and constant.datatype == RDF["langString"]:
        return True
    return decidable(ComparisonOperator.EQ, constant)


def compare(term: Term, operator: ComparisonOperator, constant: NamedNode | Literal) -> bool:
    """Return whether ``term operator constant`` is true; a type error is false.

    Examples
    --------
    >>> five = Literal("5", datatype=XSD["integer"])
    >>> [compare(term, ComparisonOperator.GE, five) for term in (Literal(5.5), Literal("7"))]
    [True, False]
    """
    if isinstance(constant, NamedNode):
        return operator is ComparisonOperator.EQ and term == constant
    if not isinstance(term, Literal):
        return False
    left, right = value_of(term), value_of(constant)
    if left is None or type(left) is not type(right):
        return False
    match left, right:
        case Number(one), Number(other):
            exact = isinstance(one, Decimal) and isinstance(other, Decimal)
            if not exact and not term.datatype == constant.datatype == _DOUBLE_TERM:
                return asked(term, operator.value, constant)
            return bool(_COMPARED[operator](one, other))
        case Instant(kind, one, zoned), Instant(same, other, too):
            if zoned is not too:  # The order must be the same for every zone.
                return asked(term, operator.value, constant)
            return kind == same and bool(_COMPARED[operator](one, other))
        case Quantity(one, unit), Quantity(other, same):
            return unit == same and bool(_COMPARED[operator](one, other))
        case bool(), bool():
            return operator is ComparisonOperator.EQ and left == right
    return bool(_COMPARED[operator](left, right))


@lru_cache(maxsize=4096)
def asked(left: Term, operator: str, right: Term) -> bool:
    """Return whether SPARQL's evaluator finds ``left operator right`` true (50 µs, then cached)."""
    return bool(evaluator().query(f"ASK {{ FILTER({left} {operator} {right}) }}"))


@lru_cache(maxsize=1)
def evaluator() -> Store:
    """Return the empty store that evaluates SPARQL expressions; all callers share it."""
    return Store()


def _decimal(text: str) -> Number | None:
    if not _DECIMAL_FORM.fullmatch(text):
        return None
    value = Decimal(text)
    digits = len(text.partition(".")[2].rstrip("0"))
    if digits > 18 or not -_DECIMAL_END <= value < _DECIMAL_END:
        return None
    return Number(value)


def _single(text: str) -> float:
    """Round a number to single precision, as ``xsd:float`` does."""
    value = float(text)
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _instant(text: str, *, date: bool) -> Instant | None:
    parts = _DATE_TIME_FORM.fullmatch(text)
    if parts is None or (parts[4] is None) is not date:
        return None
    cycles, year = divmod(int(parts[1]) - 1, 400)  # The calendar repeats after 400 years.
    try:
        days = datetime.date(year + 1, int(parts[2]), int(parts[3])).toordinal() - 1
    except ValueError:  # The day does not exist, such as 31 June.
        return None
    whole, second = (cycles * _CYCLE_DAYS + days) * 86400, Decimal(0)
    if not date:
        hour, minute, second = int(parts[4]), int(parts[5]), Decimal(parts[6])
        if hour == 24 and (minute or second):
            return None
        whole += hour * 3600 + minute * 60
    zone = parts[7]
    if zone is not None and zone != "Z":
        offset = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        whole -= offset if zone[0] == "+" else -offset
    seconds = _EXACT.add(Decimal(whole), second)
    if not -_DECIMAL_END <= seconds < _DECIMAL_END:
        return None
    return Instant("date" if date else "dateTime", seconds, zone is not None)

"""Vocabularies of literals with units, and exact parsing and serialization of these literals.

Parsing yields a `Fraction`, so that 1 km/h is exactly 5/18 m/s. The number is rounded once, when it
is written: quantities to 34 digits (IEEE 754 decimal128), plain numbers to the precision of
SPARQL's datatypes. Rounding never reverses the order of two numbers.

Sources: M. Lefrançois, A. Zimmermann, "The Unified Code for Units of Measure in RDF: cdt:ucum and
other UCUM datatypes", ESWC 2018; QUDT, http://qudt.org/.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import TypeGuard
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode

from semantic.attributes.names import encoded
from semantic.errors import UnplacedError
from semantic.terms import Node, Term
from semantic.vocabulary import ATTRIBUTE, GM, XSD, Namespace

CDT = Namespace("https://w3id.org/cdt/")
QUDT = Namespace("http://qudt.org/schema/qudt/")
UNIT = Namespace("http://qudt.org/vocab/unit/")
CURRENCY = Namespace("http://qudt.org/vocab/currency/")
UCUM = CDT["ucum"]
BASE_UNIT = GM["baseUnit"]
"""``A gm:baseUnit "GB"``: the numbers of the attribute A are in GB."""
UNIT_ATTRIBUTE = GM["unitAttribute"]
"""``V gm:unitAttribute W``: the value of W is the unit of V's number for the same subject."""

_UNIT_ONLY = CDT["ucumunit"].value
_ROUNDING = Context(prec=34, rounding=ROUND_HALF_EVEN)
_WIDE = Context(prec=80, rounding=ROUND_HALF_EVEN)
"""Context of `number_literal`. It has more digits than its ``xsd:decimal`` literals, at most 38."""
_INTEGERS = range(-(2**63), 2**63)
_DECIMAL_END = Decimal(10) ** 20
"""`number_literal` writes numbers from this size on as ``xsd:double``."""
_DECIMAL_STEP = Decimal(10) ** -18
_DECIMAL_START = Decimal(10) ** -6
"""Smaller numbers are written as ``xsd:decimal`` only if this is exact."""
_PLAIN_EXPONENTS = range(-18, 21)
"""`write_number` writes numbers with these exponents without ``E``."""
_NUMBER = r"[+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})(?:[eE][+-]?[0-9]{1,2})?"
_NUMBER_FORM = re.compile(_NUMBER, re.ASCII)
_WRITTEN_FORM = re.compile(r"([+-]?[0-9.]{1,70}(?:E[+-][0-9]{1,3})?) (\S+)", re.ASCII)
"""Form of the values that `quantity_literal` writes.

The exponent may have three digits, one more than in `_NUMBER`, because the number may have been
multiplied by the factor of a unit. The form also allows several points, see `read_written`.
"""
_QUANTITY_FORM = re.compile(rf"\s*({_NUMBER})(?:\s+|(?![0-9.eE+-]))(\S(?:.*\S)?)\s*", re.ASCII)
"""A unit without a space before it cannot begin like the rest of a number.

Otherwise 40 could be read as 4 with the unit 0.
"""

IN_UNIT = f"{ATTRIBUTE.iri}in-unit."
"""Prefix of the properties that `in_unit` returns. Only patterns that name such a one match it."""


class UnitError(UnplacedError):
    """An unusable unit or quantity."""


def is_quantity(term: Term) -> TypeGuard[Literal]:
    """Return whether a term is a literal whose datatype is for numbers with a unit."""
    datatype = term.datatype.value if isinstance(term, Literal) else ""
    return datatype.startswith(CDT.iri) and datatype != _UNIT_ONLY


def in_unit(property_: Term, unit: NamedNode | Literal) -> NamedNode:
    """Return the hidden property for a property's values in a unit that a subscription names.

    Only this subscription and those that name the same unit use it.

    Examples
    --------
    >>> hidden = in_unit(NamedNode("urn:size"), Literal("GB"))
    >>> hidden.value
    'urn:graphmatch:attribute:in-unit.%3Curn:size%3E%20GB'
    >>> [term.value for term in read_in_unit(hidden)]
    ['urn:size', 'GB']
    >>> without_unit(hidden).value
    'urn:size'
    """
    name = unit.value if isinstance(unit, Literal) else unit
    return NamedNode(IN_UNIT + encoded(f"{property_} {name}"))


def read_in_unit(hidden: object) -> tuple[NamedNode, NamedNode | Literal] | None:
    """Return the property and the unit of a hidden property; ``None`` for any other term."""
    if not is_in_unit(hidden):
        return None
    property_, _, name = unquote(hidden.value.removeprefix(IN_UNIT)).partition(" ")
    try:
        unit = NamedNode(name[1:-1]) if name.startswith("<") else Literal(name)
        return NamedNode(property_[1:-1]), unit
    except ValueError:  # A query may name a similar property.
        return None


def without_unit(term: Node) -> Node:
    """Return the property of a hidden property, for display; return any other term unchanged."""
    found = read_in_unit(term)
    return term if found is None else found[0]


def is_in_unit(property_: object) -> TypeGuard[NamedNode]:
    """Return whether `in_unit` made a property."""
    return isinstance(property_, NamedNode) and property_.value.startswith(IN_UNIT)


def read_number(text: str) -> Fraction | None:
    """Parse a number: sign, digits, point and exponent, all of limited length.

    Return ``None`` if the text has another form.
    """
    stripped = text.strip()
    return Fraction(stripped) if _NUMBER_FORM.fullmatch(stripped) else None


def read_quantity(text: str) -> tuple[Fraction, str] | None:
    """Return the number and the unit in a quantity's lexical form, or ``None`` if one is missing.

    The unit is not looked up.

    Examples
    --------
    >>> read_quantity("40 GB"), read_quantity("40GB"), read_quantity("forty GB")
    ((Fraction(40, 1), 'GB'), (Fraction(40, 1), 'GB'), None)
    """
    found = _QUANTITY_FORM.fullmatch(text)
    return (Fraction(found[1]), found[2]) if found else None


def read_written(text: str) -> tuple[Fraction, str] | None:
    """Return the number and the unit of a value that `quantity_literal` wrote, or ``None``."""
    found = _WRITTEN_FORM.fullmatch(text)
    try:
        return (Fraction(found[1]), found[2]) if found else None
    except ValueError:  # `_WRITTEN_FORM` allows several points, as in 1.2.3.
        return None


def write_number(number: Fraction) -> str:
    """Write a number, rounded to 34 digits, in canonical form: equal numbers give equal strings.

    Examples
    --------
    >>> write_number(Fraction(40)), write_number(Fraction(1, 8)), write_number(Fraction(10) ** 30)
    ('40', '0.125', '1E+30')
    """
    decimal = _ROUNDING.divide(Decimal(number.numerator), Decimal(number.denominator))
    decimal = decimal.normalize(_ROUNDING) if decimal else Decimal(0)
    is_plain = not decimal or decimal.adjusted() in _PLAIN_EXPONENTS
    return f"{decimal:f}" if is_plain else str(decimal)


def number_literal(number: Fraction) -> Literal:
    """Return a number as the literal that SPARQL compares most exactly.

    This is an ``xsd:integer`` if the number is whole and fits 64 bits, otherwise an ``xsd:decimal``
    with at most 18 decimal places. It is an ``xsd:double`` if its absolute value is at least 1e20,
    or less than 1e-6 and not exact in 18 places.

    Examples
    --------
    >>> [number_literal(Fraction(1, n)).value for n in (1, 4, 10**30)]
    ['1', '0.25', '1e-30']
    """
    if number.denominator == 1 and number.numerator in _INTEGERS:
        return Literal(str(number.numerator), datatype=XSD["integer"])
    decimal = _WIDE.divide(Decimal(number.numerator), Decimal(number.denominator))
    if abs(decimal) < _DECIMAL_END:
        step = decimal.quantize(_DECIMAL_STEP, context=_WIDE)
        if step == decimal or abs(decimal) >= _DECIMAL_START:
            return Literal(f"{step.normalize(_WIDE):f}", datatype=XSD["decimal"])
    return Literal(repr(float(number)), datatype=XSD["double"])


def quantity_literal(number: Fraction, unit: str) -> Literal:
    """Return a number and a unit as one ``cdt:ucum`` literal."""
    return Literal(f"{write_number(number)} {unit}", datatype=UCUM)

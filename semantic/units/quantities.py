"""Literals of numbers with units: their vocabularies, and exact reading and writing.

A number is a `Fraction` between reading and writing, so that 1 km/h is 5/18 m/s and not nearly
that. It is rounded once, when it is written: to 34 digits (the decimal128 of IEEE 754), and as a
plain number to what SPARQL's datatypes hold. Rounding never turns an order round.

Sources: M. Lefrançois, A. Zimmermann, "The Unified Code for Units of Measure in RDF: cdt:ucum and
other UCUM datatypes", ESWC 2018; QUDT, http://qudt.org/.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from pyoxigraph import Literal, NamedNode

from semantic.attributes.names import encoded
from semantic.errors import UnplacedError
from semantic.terms import Term
from semantic.vocabulary import ATTRIBUTE, GM, XSD, Namespace

CDT = Namespace("https://w3id.org/cdt/")
QUDT = Namespace("http://qudt.org/schema/qudt/")
UNIT = Namespace("http://qudt.org/vocab/unit/")
CURRENCY = Namespace("http://qudt.org/vocab/currency/")
UCUM = CDT["ucum"]
BASE_UNIT = GM["baseUnit"]
"""``A gm:baseUnit "GB"``: the numbers of the attribute A are in GB."""
UNIT_ATTRIBUTE = GM["unitAttribute"]
"""``V gm:unitAttribute W``: the unit of V's number is the W of the same subject."""

_UNIT_ONLY = CDT["ucumunit"].value
_ROUNDING = Context(prec=34, rounding=ROUND_HALF_EVEN)
_WIDE = Context(prec=80, rounding=ROUND_HALF_EVEN)
_INTEGERS = range(-(2**63), 2**63)
_DECIMAL_END = Decimal(10) ** 20
_DECIMAL_STEP = Decimal(10) ** -18
_DECIMAL_START = Decimal(10) ** -6
_PLAIN_EXPONENTS = range(-18, 21)
_NUMBER = r"[+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})(?:[eE][+-]?[0-9]{1,2})?"
_NUMBER_FORM = re.compile(_NUMBER, re.ASCII)
_WRITTEN_FORM = re.compile(r"([+-]?[0-9.]{1,70}(?:E[+-][0-9]{1,3})?) (\S+)", re.ASCII)
"""What `quantity_literal` writes: a unit's factor may make an exponent one digit longer."""
_QUANTITY_FORM = re.compile(rf"\s*({_NUMBER})(?:\s+|(?![0-9.eE+-]))(\S(?:.*\S)?)\s*", re.ASCII)


_IN_BASE = f"{ATTRIBUTE.iri}base-unit."
"""Begins names of attributes, which only patterns that name them see."""


class UnitError(UnplacedError):
    """A unit or a quantity that cannot be used."""


def is_of_cdt(literal: Literal) -> bool:
    """Whether a literal's datatype is one of quantities and their units."""
    return literal.datatype.value.startswith(CDT.iri)


def is_quantity(literal: Literal) -> bool:
    """Whether a literal is a number with a unit, by its datatype."""
    return is_of_cdt(literal) and literal.datatype.value != _UNIT_ONLY


def in_base(property_: Term) -> Term:
    """Return the hidden property that has the values of a property in the base unit.

    Only subscriptions that name a unit ask for it.

    Examples
    --------
    >>> in_base(NamedNode("urn:size")).value
    'urn:graphmatch:attribute:base-unit.%3Curn:size%3E'
    """
    name = encoded(f"<{property_.value}>") if isinstance(property_, NamedNode) else ""
    return NamedNode(_IN_BASE + name)


def is_in_base(property_: Term) -> bool:
    """Whether a property is one that `in_base` returns."""
    return isinstance(property_, NamedNode) and property_.value.startswith(_IN_BASE)


def read_number(text: str) -> Fraction | None:
    """Return the number that a text says: sign, digits, point and exponent, all bounded."""
    stripped = text.strip()
    return Fraction(stripped) if _NUMBER_FORM.fullmatch(stripped) else None


def read_quantity(text: str) -> tuple[Fraction, str] | None:
    """Return the number and the unit of a quantity's lexical form.

    Examples
    --------
    >>> read_quantity("40 GB"), read_quantity("40GB"), read_quantity("forty GB")
    ((Fraction(40, 1), 'GB'), (Fraction(40, 1), 'GB'), None)
    """
    found = _QUANTITY_FORM.fullmatch(text)
    return (Fraction(found[1]), found[2]) if found else None


def read_written(text: str) -> tuple[Fraction, str] | None:
    """Return the number and the unit of a quantity as `quantity_literal` writes it."""
    found = _WRITTEN_FORM.fullmatch(text)
    try:
        return (Fraction(found[1]), found[2]) if found else None
    except ValueError:
        return None


def write_number(number: Fraction) -> str:
    """Write a number of 34 digits in one way only, so that equal numbers are equal texts.

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
    """Return a number as the literal that SPARQL compares best.

    An ``xsd:integer`` where it is whole and fits 64 bits; else an ``xsd:decimal`` of at most 18
    places after the point; an ``xsd:double`` where it is too large or too small for that.

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
    """Return a number and a unit as one literal."""
    return Literal(f"{write_number(number)} {unit}", datatype=UCUM)

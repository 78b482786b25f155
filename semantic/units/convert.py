"""One quantity, one pair of number and unit: brought to a base unit, or to its dimension's own."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from pyoxigraph import Literal, NamedNode

from semantic.terms import Term, compact
from semantic.units.declarations import BaseUnit, unit_of
from semantic.units.numbers import (
    UnitError,
    number_literal,
    quantity_literal,
    read_number,
    read_quantity,
)
from semantic.units.qudt import iri_of
from semantic.units.registry import Registry, Unit
from semantic.values import Number, value_of


def quantity(literal: Literal, base: BaseUnit | None, registry: Registry) -> Literal:
    """Return a quantity as a number of the base unit; without one, as a quantity in one form.

    Raises
    ------
    UnitError
        When it is no quantity, its unit is unknown, or cannot be brought to the base unit.
    """
    found = read_quantity(literal.value)
    if found is None:
        raise UnitError(
            f"“{literal.value[:40]}” is not a number and a unit", 'Write it as in "40 GB".'
        )
    number, text = found
    unit = registry.unit(text)
    if base is None:
        return quantity_literal(unit.to_base(number), unit.base)
    return number_literal(converted(number, unit, text, base))


def number(
    value: Fraction, units: Iterable[Term], base: BaseUnit | None, registry: Registry
) -> tuple[Fraction, Unit]:
    """Return a number in the base unit, or in its dimension's, and the unit that it was given in.

    Raises
    ------
    UnitError
        When the terms are not one unit, or it is incompatible with the base unit.
    """
    known = {unit_of(term, registry): term for term in units}
    (unit, term), *others = known.items()
    if others:
        names = " and ".join(sorted(map(_name, known.values())))
        raise UnitError(f"two units for one number, {names}", "Give each number one unit.")
    if base is None:
        return unit.to_base(value), unit
    return converted(value, unit, _name(term), base), unit


def converted(number: Fraction, unit: Unit, name: str, base: BaseUnit) -> Fraction:
    """Return a number of a unit in the base unit.

    Raises
    ------
    UnitError
        When the two are of different dimensions; `name` is how it calls the unit.
    """
    if unit.base != base.unit.base:
        raise UnitError(
            f"{name} cannot be brought to {_name(base.term)}",
            "Use a unit of the same dimension.",
        )
    return base.unit.from_base(unit.to_base(number))


def unit_term(term: Term, base: BaseUnit | None, registry: Registry) -> Term:
    """Return what stands for a unit once numbers are in the base unit.

    That is the base unit as it was declared; without one, its dimension's, as a text for a text
    and as one of QUDT's IRIs for an IRI.

    Raises
    ------
    UnitError
        When the term is no unit, or cannot be brought to the base unit.
    """
    unit = unit_of(term, registry)
    if base is not None:
        converted(Fraction(0), unit, _name(term), base)
        return base.term
    if isinstance(term, NamedNode) and (iri := iri_of(unit.base)) is not None:
        return iri
    return Literal(unit.base)


def number_of(term: Term) -> Fraction | None:
    """Return the number that a numeric literal says, exactly as it is written."""
    if not isinstance(term, Literal) or not isinstance(value_of(term), Number):
        return None
    return read_number(term.value)


def _name(term: Term) -> str:
    return term.value if isinstance(term, Literal) else compact(term)

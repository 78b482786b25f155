"""What an ontology says about units: base units of attributes, units of values.

``A gm:baseUnit "GB"`` says that the numbers of A are gigabytes, and so for A's
sub-properties, for what is said with them is said with A, too. For the same reason
two base units in one line of properties cannot both hold: that is reported, and
neither is used for the properties concerned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pyoxigraph import Literal, NamedNode

from semantic.errors import OnProblem, Place, Problem, Severity
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term, Triple, compact
from semantic.units.numbers import UnitError
from semantic.units.qudt import ucum_of
from semantic.units.registry import Registry, Unit
from semantic.units.vocabulary import BASE_UNIT, QUDT, UNIT_ATTRIBUTE

_BUILT_IN = {QUDT[value]: (QUDT["unit"], QUDT["hasUnit"]) for value in ("numericValue", "value")}
_T = TypeVar("_T")
_REMEDY = "Correct the ontology."


@dataclass(frozen=True, slots=True)
class BaseUnit:
    """The unit that an attribute's numbers are in.

    Parameters
    ----------
    term
        As it was declared: a text or an IRI.
    unit
        What that means.
    """

    term: Term
    unit: Unit


@dataclass(frozen=True, slots=True)
class Declarations:
    """What is declared, sub-properties included.

    Parameters
    ----------
    base_units
        Attribute to base unit.
    unit_attributes
        Value attribute to the attributes that give its unit.
    """

    base_units: Mapping[Term, BaseUnit]
    unit_attributes: Mapping[Term, tuple[Term, ...]]


def unit_of(term: Term, registry: Registry) -> Unit:
    """Return the unit that a term names: a text, or an IRI of QUDT.

    Raises
    ------
    UnitError
        When it names none.
    """
    if isinstance(term, Literal):
        return registry.unit(term.value)
    if isinstance(term, NamedNode) and (text := ucum_of(term)) is not None:
        return registry.unit(text)
    raise UnitError(
        f"{compact(term)} is not a unit",
        "Give a text, such as GB, or one of QUDT's units.",
    )


def read_declarations(
    triples: Iterable[Triple], properties: Taxonomy, registry: Registry, on_problem: OnProblem
) -> Declarations:
    """Find what an ontology's triples declare, and report what cannot be used.

    Parameters
    ----------
    triples
        With roots put in.
    properties
        The hierarchy that declarations are inherited in.
    """

    def report(what: str) -> None:
        on_problem(Problem(what, Place("ontology"), _REMEDY, Severity.WARNING))

    stated: defaultdict[Term, dict[Term, Unit]] = defaultdict(dict)
    units_of: defaultdict[Term, dict[Term, None]] = defaultdict(dict)
    for value, several in _BUILT_IN.items():
        units_of[value] = dict.fromkeys(several)
    for attribute, predicate, object_ in triples:
        if predicate == BASE_UNIT:
            try:
                stated[attribute][object_] = unit_of(object_, registry)
            except UnitError as error:
                report(f"the base unit of {compact(attribute)}: {error.what}")
        elif predicate == UNIT_ATTRIBUTE:
            if isinstance(object_, NamedNode):
                units_of[attribute][object_] = None
            else:
                report(f"the unit attribute of {compact(attribute)} is not an IRI")
    base_units = {}
    for attribute in _with_descendants(stated, properties):
        found = _nearest_first(attribute, stated, properties)
        first, *others = [BaseUnit(term, unit) for one in found for term, unit in one.items()]
        if all(other.unit == first.unit for other in others):
            base_units[attribute] = first
        else:
            names = ", ".join(sorted(compact(base.term) for base in (first, *others)))
            report(f"{compact(attribute)} has several base units: {names}; none is used")
    unit_attributes = {
        attribute: tuple(
            dict.fromkeys(w for one in _nearest_first(attribute, units_of, properties) for w in one)
        )
        for attribute in _with_descendants(units_of, properties)
    }
    return Declarations(base_units, unit_attributes)


def _with_descendants(declared: Iterable[Term], properties: Taxonomy) -> list[Term]:
    found: dict[Term, None] = {}
    for attribute in declared:
        found[attribute] = None
        found.update(dict.fromkeys(properties.descendants(attribute)))
    return list(found)


def _nearest_first(attribute: Term, declared: Mapping[Term, _T], properties: Taxonomy) -> list[_T]:
    above = dict.fromkeys([attribute, *properties.ancestors(attribute)])
    return [declared[one] for one in above if one in declared]

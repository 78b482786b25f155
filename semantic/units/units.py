"""Convert units of measure in publications' values and subscriptions' constants.

Numbers with a unit are stated in three ways: one literal (``"40 GB"^^cdt:ucum``), a node with a
number and a unit (QUDT), and two attributes of one subject. Each is converted to the declared base
unit of its attribute. Without one, a literal is converted to the base unit of its dimension, and a
number stays as stated. For each unit that a subscription names, a hidden property has the number in
this unit, and the subscription asks for this property (`in_unit`). So the matcher compares numbers
in one unit and needs no unit code (docs/reference/semantics.md).

Cost: one check per triple in a publication without quantities.

Source: the CTPS step that unifies unit types before matching (section 4, on the transformation of
``target.hardDisk.size.units``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import TypeAlias, TypeVar

from pyoxigraph import Literal, NamedNode

from semantic.attributes.names import name_of, step_names, steps
from semantic.errors import OnProblem, Place, Problem, Severity
from semantic.ontology.taxonomy import Taxonomy
from semantic.publication import Publication
from semantic.terms import Term, Triple, compact
from semantic.units.quantities import (
    BASE_UNIT,
    QUDT,
    UNIT_ATTRIBUTE,
    UnitError,
    in_unit,
    is_in_unit,
    is_quantity,
    number_literal,
    quantity_literal,
    read_in_unit,
    read_number,
    read_quantity,
)
from semantic.units.registry import NamedUnit, Registry, Unit
from semantic.values import Number, value_of

OnUnitError: TypeAlias = Callable[[Term, UnitError], None]
"""Called with the attribute and the error of a value that stays unchanged."""
_Changes: TypeAlias = dict[Triple, dict[Triple, None]]
"""Replaced triples, each with its replacements."""
MeasurablePattern: TypeAlias = tuple[int, int, Sequence[tuple[int, bool]]]
"""A pattern of a query: subject, property, and the constants that the object is compared with.

Constants are numbered, and the number of a variable is negative. Each constant says whether the
object equals it.
"""
_BUILT_IN = {QUDT[value]: (QUDT["unit"], QUDT["hasUnit"]) for value in ("numericValue", "value")}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Declarations:
    """An ontology's declarations of units, including inherited ones.

    ``A gm:baseUnit "GB"`` declares gigabytes for the numbers of A. Sub-properties of A inherit the
    unit, because their statements imply statements with A. Two base units in one line of properties
    therefore contradict each other: they are reported, and neither is used. `unit_attributes` maps
    a value attribute to the attributes that give its unit.
    """

    base_units: Mapping[Term, NamedUnit]
    unit_attributes: Mapping[Term, tuple[Term, ...]]


class Units:
    """Converts quantities in publications and subscriptions, for one ontology.

    `hidden` are the properties that publications get for the units that subscriptions name.

    Examples
    --------
    >>> from semantic.units.quantities import BASE_UNIT, UCUM
    >>> disk, size = NamedNode("urn:disk"), NamedNode("urn:size")
    >>> units = Units([(size, BASE_UNIT, Literal("GB"))], Taxonomy([]), print)
    >>> item = Publication.of("p", [(disk, size, Literal("0.04 TB", datatype=UCUM))])
    >>> units.normal(item, print).triples[0][2].value
    '40'
    >>> terms = [size, Literal("30000 MB", datatype=UCUM)]
    >>> units.constants(terms, [(-1, 0, [(1, False)])])[1].value
    '30'
    """

    def __init__(
        self,
        triples: Iterable[Triple],
        properties: Taxonomy,
        on_problem: OnProblem,
        registry: Registry | None = None,
    ) -> None:
        """Compile the unit declarations in an ontology's triples, which use root terms.

        Declarations are inherited in the hierarchy of `properties`, and unusable ones are reported.
        Pass the `registry` of other `Units` to share its cache.
        """
        self.registry = registry or Registry()
        self._properties = properties
        self.declarations = _declarations(triples, properties, self.registry, on_problem)
        self._unit_attributes = self.declarations.unit_attributes
        values: defaultdict[Term, list[Term]] = defaultdict(list)
        for value, attributes in self._unit_attributes.items():
            for attribute in attributes:
                values[attribute].append(value)
        self._value_attributes: Mapping[Term, Sequence[Term]] = dict(values)
        self.measured = frozenset(values).union(self._unit_attributes)
        """Attributes of plain numbers with a unit, and attributes that give the unit."""
        self.hidden: frozenset[NamedNode] = frozenset()
        self._hidden: defaultdict[Term, list[tuple[NamedNode, NamedUnit]]] = defaultdict(list)

    def with_hidden(self, properties: Iterable[Term | None]) -> Units:
        """Return units that also give publications these properties, if `in_unit` made them."""
        new = set(filter(is_in_unit, properties)) - self.hidden
        if not new:
            return self
        units = copy(self)
        units.hidden, units._hidden = self.hidden | new, defaultdict(list)
        for property_ in units.hidden:
            if found := read_in_unit(property_):
                with suppress(UnitError):  # A query may name a similar property.
                    named = self.registry.named(found[1])
                    units._hidden[found[0]].append((property_, named))
        return units

    def base_unit(self, attribute: Term) -> NamedUnit | None:
        """Return the declared unit of an attribute's numbers, or ``None``.

        An attribute such as ``a.b`` has the unit of the properties that its last step names.
        """
        found = self.declarations.base_units.get(attribute)
        if found is None and (name := name_of(attribute)) is not None:
            return self._by_step.get(steps(name)[-1])
        return found

    @cached_property
    def _by_step(self) -> Mapping[str, NamedUnit | None]:
        """Base units by an attribute's last step, if all properties of that name share one."""
        found: dict[str, NamedUnit | None] = {}
        for property_, base in self.declarations.base_units.items():
            for name in step_names([property_]) if isinstance(property_, NamedNode) else ():
                known = found.setdefault(name, base)
                if known is not None and known.unit != base.unit:
                    found[name] = None
        return found

    # -- publications -----------------------------------------------------------------------

    def normal(self, publication: Publication, on_problem: OnProblem) -> Publication:
        """Return a publication, which uses root terms, with its quantities converted.

        Values that cannot be converted stay unchanged and are reported.
        """
        place = publication.source
        if place.source != publication.id:
            place = Place(place.source, place.line, place.column, publication.id)

        def report(attribute: Term, error: UnitError) -> None:
            what = f"{compact(attribute)}: {error.what}"
            on_problem(Problem(what, place, error.remedy, Severity.WARNING))

        origins = self.normal_triples(publication.triples, report)
        if origins is None:
            return publication
        hidden = [t for t in origins if is_in_unit(t[1])]
        triples = (*(t for t in origins if not is_in_unit(t[1])), *hidden)
        added = (t for t, old in origins.items() if t != old and old in origins)
        changed = (t for t, old in origins.items() if old in publication.derived)
        derived = frozenset((*hidden, *added, *changed))
        return Publication(publication.id, triples, derived, publication.source, len(hidden))

    def normal_triples(
        self, triples: Iterable[Triple], report: OnUnitError
    ) -> Mapping[Triple, Triple] | None:
        """Return triples with converted quantities, or ``None`` if there are no quantities.

        Each comes with the triple that it was made of: itself, one that it replaces, or one that
        stays. Values that cannot be converted stay unchanged and are passed to `report`.
        """
        triples = tuple(triples)
        changes: _Changes = defaultdict(dict)
        values: defaultdict[Term, list[Triple]] = defaultdict(list)
        for triple in triples:
            subject, attribute, object_ = triple
            if is_quantity(object_):
                try:
                    new = subject, attribute, self._quantity(object_, self.base_unit(attribute))
                    hidden = self._in_named_units(subject, [attribute], *self._read(object_))
                    changes[triple] = dict.fromkeys((new, *hidden))
                except UnitError as error:
                    report(attribute, error)
            elif attribute in self._unit_attributes:
                values[subject].append(triple)
        if not changes and not values:
            return None
        derived = self._change_nodes(triples, values, changes, report) if values else {}
        return derived | {new: old for old in triples for new in changes.get(old, (old,))}

    def _change_nodes(
        self,
        triples: Iterable[Triple],
        values: Mapping[Term, Sequence[Triple]],
        changes: _Changes,
        report: OnUnitError,
    ) -> dict[Triple, Triple]:
        """Add conversions of pairs of number and unit to `changes`, and report failures.

        `values` are the triples with numbers, by subject. If an attribute with a declared base unit
        links to such a subject, its number in this unit becomes a value of the attribute: return
        these derived triples, each with the link as its original.
        """
        base_units = self.declarations.base_units
        units: defaultdict[Term, list[Triple]] = defaultdict(list)
        above: list[Triple] = []
        for triple in triples:
            if triple[1] in self._value_attributes and triple[0] in values:
                units[triple[0]].append(triple)
            if triple[1] in base_units and triple[2] in values:
                above.append(triple)
        said: defaultdict[Term, dict[tuple[Fraction, NamedUnit], None]] = defaultdict(dict)
        for subject, stated in units.items():
            for triple in values[subject]:
                pair = [u for u in stated if u[1] in self._unit_attributes[triple[1]]]
                try:
                    if pair:
                        said[subject][self._change_pair(triple, pair, changes)] = None
                except UnitError as error:
                    report(triple[1], error)
                    for kept in pair:
                        changes[kept][kept] = None
        derived: dict[Triple, Triple] = {}
        for triple in above:
            subject, attribute, node = triple
            for number, unit in said[node]:
                try:
                    own = number_literal(unit.convert(number, base_units[attribute]))
                    derived[subject, attribute, own] = triple
                except UnitError as error:
                    report(attribute, error)
        return derived

    def _change_pair(
        self, triple: Triple, units: Sequence[Triple], changes: _Changes
    ) -> tuple[Fraction, NamedUnit]:
        """Add the conversion of a number (in `triple`) and its unit to `changes`; return both.

        The number and unit are returned as stated. Raise `UnitError` if they cannot be converted.
        """
        subject, attribute, object_ = triple
        value = _number_of(object_)
        if value is None:
            text = object_.value if isinstance(object_, Literal) else compact(object_)
            what = f"“{text[:40]}” has a unit but is not a number"
            raise UnitError(what, "Give a number such as 40 or 0.5.")
        unit, *others = {(known := self.registry.named(u[2])).unit: known for u in units}.values()
        if others:
            names = " and ".join(sorted(one.name for one in (unit, *others)))
            raise UnitError(f"a number has two units, {names}", "Give it one unit.")
        base = self.base_unit(attribute)
        for old in (triple, *units):
            new = old[2]
            if base is not None:
                new = base.term if old in units else number_literal(unit.convert(value, base))
            attributes = self._unit_attributes[attribute] if old in units else [attribute]
            hidden = self._in_named_units(subject, attributes, value, unit)
            changes[old] |= dict.fromkeys(((subject, old[1], new), *hidden))
        return value, unit

    def _in_named_units(
        self, subject: Term, attributes: Iterable[Term], number: Fraction, unit: NamedUnit
    ) -> Iterator[Triple]:
        """Yield hidden triples with a quantity in the units that subscriptions name.

        `attributes` are those of the number or of its unit, and so are the hidden properties.
        """
        above = (self._properties.ancestors(attribute) for attribute in attributes)
        for property_ in dict.fromkeys(chain(attributes, *above)):
            for hidden, named in self._hidden.get(property_, ()):
                if named.unit.base == unit.unit.base:
                    is_number = property_ in self._unit_attributes
                    own = number_literal(unit.convert(number, named)) if is_number else named.term
                    yield subject, hidden, own

    # -- subscriptions ----------------------------------------------------------------------

    def concern(self, terms: Iterable[Term]) -> bool:
        """Return whether a query with these constants may need conversion to base units."""
        return any(term in self.measured or is_quantity(term) for term in terms)

    def constants(self, terms: Sequence[Term], patterns: Sequence[MeasurablePattern]) -> list[Term]:
        """Convert a query's constants, which use root terms, to the units of its numbers.

        If the query names the unit of a number, its property is replaced by the hidden one. Raise
        `UnitError` if a unit is unknown or incompatible with that of the attribute, or if a
        constant is compared with numbers in several units.
        """
        named = self.named_units(terms, patterns)
        converted = list(terms)
        for place, unit in named.items():
            is_property = terms[place] in self.measured
            converted[place] = in_unit(terms[place], unit.term) if is_property else unit.term
        units: defaultdict[int, dict[Unit, NamedUnit]] = defaultdict(dict)
        for _, attribute, constants in patterns:
            wanted = named.get(attribute) or self.base_unit(terms[attribute])
            for constant, _ in constants:
                if wanted is not None:
                    units[constant][wanted.unit] = wanted
                if attribute in named and (number := _number_of(terms[constant])) is not None:
                    converted[constant] = number_literal(number)
        for place, term in enumerate(terms):
            if is_quantity(term):
                if len(units[place]) > 1:
                    what = f"{compact(term)} is used with attributes of different units"
                    raise UnitError(what, "Give each attribute its own variable and quantity.")
                converted[place] = self._quantity(term, next(iter(units[place].values()), None))
        return converted

    def named_units(
        self, terms: Sequence[Term], patterns: Sequence[MeasurablePattern]
    ) -> dict[int, NamedUnit]:
        """Return the named units by the places of their terms, and of the properties they are for.

        A unit attribute with one constant names a unit for all numbers of the same subject. So does
        a quantity for numbers that are compared with it, if they have no other unit.
        """
        found: dict[int, NamedUnit] = {}
        by_subject = [(terms[s] if s >= 0 else s, p, constants) for s, p, constants in patterns]
        for subject, attribute, constants in by_subject:
            values = self._value_attributes.get(terms[attribute], ())
            numbers = [p for s, p, _ in by_subject if s == subject and terms[p] in values]
            equal = [constant for constant, is_equal in constants if is_equal]
            if not numbers or len(equal) != 1:
                continue
            unit = self.registry.named(terms[equal[0]])
            for place in (equal[0], attribute, *numbers):
                if (base := self.base_unit(terms[place])) is not None:
                    unit.convert(Fraction(0), base)
                other = found.setdefault(place, unit)
                if other.unit != unit.unit:
                    what = f"the query names two units of a number, {other.name} and {unit.name}"
                    raise UnitError(what, "Use another variable for the subject of each unit.")
        for _, attribute, constants in patterns:
            property_ = terms[attribute]
            if property_ in self._unit_attributes and self.base_unit(property_) is None:
                for quantity in filter(is_quantity, (terms[constant] for constant, _ in constants)):
                    found.setdefault(attribute, self._read(quantity)[1])
        return found

    # -- one quantity -----------------------------------------------------------------------

    def _read(self, quantity: Literal) -> tuple[Fraction, NamedUnit]:
        """Return the number and the unit of a quantity; raise `UnitError` if it is invalid."""
        found = read_quantity(quantity.value)
        if found is None:
            what = f"“{quantity.value[:40]}” is not a number and a unit"
            raise UnitError(what, 'Write it as in "40 GB".')
        return found[0], self.registry.named(Literal(found[1]))

    def _quantity(self, quantity: Literal, unit: NamedUnit | None) -> Literal:
        """Return a quantity as a plain number in a unit.

        Without one, return a quantity in the base unit of its dimension. Raise `UnitError` if it is
        invalid, or has another dimension than the unit.
        """
        number, own = self._read(quantity)
        if unit is None:
            return quantity_literal(own.unit.to_base(number), own.unit.base)
        return number_literal(own.convert(number, unit))


def _number_of(term: Term) -> Fraction | None:
    """Return the exact number in a numeric literal; return ``None`` for any other term."""
    if not isinstance(term, Literal) or not isinstance(value_of(term), Number):
        return None
    return read_number(term.value)


def _declarations(
    triples: Iterable[Triple], properties: Taxonomy, registry: Registry, on_problem: OnProblem
) -> Declarations:
    """Collect an ontology's unit declarations, and report unusable ones."""

    def report(what: str) -> None:
        on_problem(Problem(what, Place("ontology"), "Correct the ontology.", Severity.WARNING))

    stated: dict[Term, list[NamedUnit]] = {}
    units_of: dict[Term, dict[Term, None]] = {v: dict.fromkeys(w) for v, w in _BUILT_IN.items()}
    for attribute, predicate, object_ in triples:
        if predicate == BASE_UNIT:
            try:
                stated[attribute] = [*stated.get(attribute, ()), registry.named(object_)]
            except UnitError as error:
                report(f"the base unit of {compact(attribute)}: {error.what}")
        elif predicate == UNIT_ATTRIBUTE:
            if isinstance(object_, NamedNode):
                units_of.setdefault(attribute, {})[object_] = None
            else:
                report(f"the unit attribute of {compact(attribute)} is not an IRI")
    base_units = {}
    for attribute, nearest in _inherited(stated, properties):
        first, *others = [unit for units in nearest for unit in units]
        if all(other.unit == first.unit for other in others):
            base_units[attribute] = first
        else:
            names = ", ".join(sorted(compact(base.term) for base in (first, *others)))
            report(f"{compact(attribute)} has several base units: {names}; none is used")
    inherited = _inherited(units_of, properties)
    return Declarations(
        base_units,
        {v: tuple(dict.fromkeys(w for one in all_ for w in one)) for v, all_ in inherited},
    )


def _inherited(
    declared: Mapping[Term, _T], properties: Taxonomy
) -> Iterator[tuple[Term, Sequence[_T]]]:
    """Yield each attribute with declarations, own or inherited, and these, nearest first."""
    each = ((one, *properties.descendants(one)) for one in declared)
    for attribute in dict.fromkeys(one for several in each for one in several):
        above = dict.fromkeys((attribute, *properties.ancestors(attribute)))
        yield attribute, [declared[one] for one in above if one in declared]

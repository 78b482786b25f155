"""Convert units of measure in publications' values and subscriptions' constants.

Numbers with a unit are stated in three ways: one literal (``"40 GB"^^cdt:ucum``), a node with a
number and a unit (QUDT), and two attributes of one subject. Each is converted to the declared base
unit of its attribute, otherwise to the base unit of its dimension. Publications and subscriptions
are treated alike, so that the matcher compares numbers in one unit and needs no unit code
(docs/reference/semantics.md).

Cost: one check per triple in a publication without quantities.

Source: the CTPS step that unifies unit types before matching (section 4, on the transformation of
``target.hardDisk.size.units``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
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
    in_base,
    is_in_base,
    is_of_cdt,
    is_quantity,
    number_literal,
    quantity_literal,
    read_number,
    read_quantity,
)
from semantic.units.registry import Registry, Unit, iri_of, ucum_of
from semantic.values import Number, value_of

OnUnitError: TypeAlias = Callable[[Term, UnitError], None]
"""Called with the attribute and the error of a value that stays unchanged."""
_Changes: TypeAlias = dict[Triple, dict[Triple, None]]
"""Replaced triples, each with its replacements."""
_BUILT_IN = {QUDT[value]: (QUDT["unit"], QUDT["hasUnit"]) for value in ("numericValue", "value")}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BaseUnit:
    """The declared unit of an attribute's numbers: the term that declares it, and its meaning."""

    term: Term
    unit: Unit


@dataclass(frozen=True, slots=True)
class Declarations:
    """An ontology's declarations of units, including inherited ones.

    ``A gm:baseUnit "GB"`` declares gigabytes for the numbers of A. Sub-properties of A inherit the
    unit, because their statements imply statements with A. Two base units in one line of properties
    therefore contradict each other: they are reported, and neither is used. `unit_attributes` maps
    a value attribute to the attributes that give its unit.
    """

    base_units: Mapping[Term, BaseUnit]
    unit_attributes: Mapping[Term, tuple[Term, ...]]


@dataclass(frozen=True, slots=True)
class ConstantUse:
    """One use of a query's constant: as the value of `attribute`, or compared with such a value.

    `siblings` are the properties of the same subject, each with the constant that is its object or
    equals it. The constant is ``None`` if the query leaves it open.
    """

    attribute: Term
    siblings: tuple[tuple[Term, Term | None], ...] = ()


@dataclass(frozen=True, slots=True)
class NormalizedTriples:
    """Distinct triples with quantities in base units; derived triples come last.

    `derived` contains plain numbers of quantity nodes, under the attributes that link to these
    nodes. `origins` maps each changed or derived triple to its original.
    """

    triples: tuple[Triple, ...]
    derived: frozenset[Triple] = frozenset()
    origins: Mapping[Triple, Triple] = field(default_factory=dict)


class Units:
    """Converts quantities in publications and subscriptions to base units, for one ontology.

    Examples
    --------
    >>> from semantic.units.quantities import BASE_UNIT, UCUM
    >>> disk, size = NamedNode("urn:disk"), NamedNode("urn:size")
    >>> units = Units.of([(size, BASE_UNIT, Literal("GB"))], Taxonomy([]), print)
    >>> item = Publication.of("p", [(disk, size, Literal("0.04 TB", datatype=UCUM))])
    >>> units.normal(item, print).triples[0][2].value
    '40'
    >>> units.constant(Literal("30000 MB", datatype=UCUM), [ConstantUse(size)]).value
    '30'
    """

    def __init__(
        self, declarations: Declarations, registry: Registry, properties: Taxonomy
    ) -> None:
        self.registry = registry
        self._properties = properties
        self.declarations = declarations
        self._unit_attributes = declarations.unit_attributes
        values: defaultdict[Term, list[Term]] = defaultdict(list)
        for value, attributes in declarations.unit_attributes.items():
            for attribute in attributes:
                values[attribute].append(value)
        self._value_attributes: Mapping[Term, Sequence[Term]] = dict(values)
        self.measured = frozenset(values).union(declarations.unit_attributes)
        """Attributes of plain numbers with a unit, and attributes that give the unit."""

    @classmethod
    def of(
        cls,
        triples: Iterable[Triple],
        properties: Taxonomy,
        on_problem: OnProblem,
        registry: Registry | None = None,
    ) -> Units:
        """Compile the unit declarations in an ontology's triples, which use root terms.

        Declarations are inherited in the hierarchy of `properties`, and unusable ones are reported.
        Pass the `registry` of other `Units` to share its cache.
        """
        registry = registry or Registry()
        declarations = _declarations(triples, properties, registry, on_problem)
        return cls(declarations, registry, properties)

    def base_unit(self, attribute: Term) -> BaseUnit | None:
        """Return the declared unit of an attribute's numbers, or ``None``.

        An attribute such as ``a.b`` has the unit of the properties that its last step names.
        """
        found = self.declarations.base_units.get(attribute)
        if found is None and (name := name_of(attribute)) is not None:
            return self._by_step.get(steps(name)[-1])
        return found

    @cached_property
    def _by_step(self) -> Mapping[str, BaseUnit | None]:
        """Base units by an attribute's last step, if all properties of that name share one."""
        found: dict[str, BaseUnit | None] = {}
        for property_, base in self.declarations.base_units.items():
            for name in step_names([property_]) if isinstance(property_, NamedNode) else ():
                known = found.setdefault(name, base)
                if known is not None and known.unit != base.unit:
                    found[name] = None
        return found

    # -- publications -----------------------------------------------------------------------

    def normal(self, publication: Publication, on_problem: OnProblem) -> Publication:
        """Return a publication, which uses root terms, with its quantities in base units.

        Values that cannot be converted stay unchanged and are reported.
        """
        place = publication.source
        if place.source != publication.id:
            place = Place(place.source, place.line, place.column, publication.id)

        def report(attribute: Term, error: UnitError) -> None:
            what = f"{compact(attribute)}: {error.what}"
            on_problem(Problem(what, place, error.remedy, Severity.WARNING))

        found = self.normal_triples(publication.triples, report)
        if found is None:
            return publication
        hidden = tuple(t for t in found.triples if is_in_base(t[1]))
        added = found.derived.union(hidden)
        changed = {old: t for t, old in found.origins.items() if t not in added}
        derived = added.union(changed.get(t, t) for t in publication.derived)
        shown = (t for t in found.triples if not is_in_base(t[1]))
        return Publication(
            publication.id, (*shown, *hidden), derived, publication.source, len(hidden)
        )

    def normal_triples(
        self, triples: Iterable[Triple], report: OnUnitError
    ) -> NormalizedTriples | None:
        """Return triples with quantities in base units, or ``None`` if there are no quantities.

        Values that cannot be converted stay unchanged and are passed to `report`.
        """
        triples = tuple(triples)
        changes: _Changes = {}
        is_measured = False
        values: defaultdict[Term, list[Triple]] = defaultdict(list)
        for triple in triples:
            subject, attribute, object_ = triple
            if isinstance(object_, Literal) and is_of_cdt(object_):
                is_measured = True
                if is_quantity(object_):
                    try:
                        new = self._quantity(object_, self.base_unit(attribute))
                        changes[triple] = {(subject, attribute, new): None}
                    except UnitError as error:
                        report(attribute, error)
            elif attribute in self._unit_attributes:
                values[subject].append(triple)
        if not is_measured and not values:
            return None
        derived = self._change_nodes(triples, values, changes, report) if values else {}
        new_ones = dict.fromkeys(t for triple in triples for t in changes.get(triple, (triple,)))
        added = {triple: old for triple, old in derived.items() if triple not in new_ones}
        origins = {t: old for old, several in changes.items() for t in several if t != old}
        return NormalizedTriples((*new_ones, *added), frozenset(added), origins | added)

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
        said: defaultdict[Term, dict[tuple[Fraction, Unit], None]] = defaultdict(dict)
        for subject, stated in units.items():
            change: _Changes = defaultdict(dict)
            for triple in values[subject]:
                of_it = [u for u in stated if u[1] in self._unit_attributes[triple[1]]]
                if not of_it:
                    continue
                try:
                    said[subject][self._change_pair(triple, of_it, change)] = None
                except UnitError as error:
                    report(triple[1], error)
                    said[subject].clear()
                    break
            else:
                changes |= change
        derived: dict[Triple, Triple] = {}
        for triple in above:
            subject, attribute, node = triple
            for number, unit in said[node]:
                try:
                    own = _converted(number, unit, "its unit", base_units[attribute])
                    derived[subject, attribute, number_literal(own)] = triple
                except UnitError as error:
                    report(attribute, error)
        return derived

    def _change_pair(
        self, triple: Triple, units: Sequence[Triple], change: _Changes
    ) -> tuple[Fraction, Unit]:
        """Add the conversion of a number (in `triple`) and its unit to `change`; return both.

        The number and unit are returned as stated. Raise `UnitError` if they cannot be converted.
        """
        subject, attribute, object_ = triple
        value = _number_of(object_)
        if value is None:
            text = object_.value if isinstance(object_, Literal) else compact(object_)
            raise UnitError(
                f"“{text[:40]}” has a unit but is not a number", "Give a number such as 40 or 0.5."
            )
        base = self.base_unit(attribute)
        number, unit = self._number(value, [u[2] for u in units], base)
        new: list[tuple[Triple, Term]] = [(triple, number_literal(number))]
        new += ((stated, self._unit_term(stated[2], base)) for stated in units)
        for old, term in new:
            if base is not None:
                change[old][subject, old[1], term] = None
                continue
            change[old][old] = None
            for property_ in (old[1], *self._properties.ancestors(old[1])):
                if property_ in self.measured:
                    change[old][subject, in_base(property_), term] = None
        return value, unit

    # -- subscriptions ----------------------------------------------------------------------

    def concern(self, terms: Iterable[Term]) -> bool:
        """Return whether a query with these constants may need conversion to base units."""
        return any(
            term in self._value_attributes
            or term in self._unit_attributes
            or (isinstance(term, Literal) and is_quantity(term))
            for term in terms
        )

    def constant(self, term: Term, uses: Sequence[ConstantUse]) -> Term:
        """Convert a query's constant, which uses root terms, to the base units of publications.

        Raise `UnitError` if its unit is unknown or incompatible with the attribute's, or if its
        uses need different units.
        """
        if isinstance(term, Literal) and is_quantity(term):
            bases = [base for use in uses if (base := self.base_unit(use.attribute)) is not None]
            if any(base.unit != bases[0].unit for base in bases):
                raise _torn(term)
            return self._quantity(term, bases[0] if bases else None)
        found = dict.fromkeys(self._beside(term, use) for use in uses)
        if len(found) > 1:
            raise _torn(term)
        return next(iter(found), term)

    def in_base_units(self, unit_attribute: Term, value: Term) -> bool:
        """Return whether a query that names a unit needs the value's number in the base unit.

        This is true if `unit_attribute` gives the unit of the attribute `value`, which has no
        declared base unit: the converted number is then in a hidden property (`in_base`).
        """
        values = self._value_attributes.get(unit_attribute, ())
        return value in values and self.base_unit(value) is None

    def _beside(self, term: Term, use: ConstantUse) -> Term:
        """Convert a plain number or a unit by its sibling constants; return other terms unchanged.

        Raise `UnitError` if the conversion is impossible or ambiguous.
        """
        if (values := self._value_attributes.get(use.attribute)) is not None:
            named = [v for v, _ in use.siblings if v in values]
            bases = {self.base_unit(value) for value in named or values}
            if len({base and base.unit for base in bases}) > 1:
                raise _torn(term)
            base = bases.pop()
            if base is None and not (named and (use.attribute, term) in use.siblings):
                return term
            return self._unit_term(term, base)
        attributes = self._unit_attributes.get(use.attribute, ())
        units = [unit for w, unit in use.siblings if w in attributes and unit is not None]
        value = _number_of(term)
        if not units or value is None:
            return term
        return number_literal(self._number(value, units, self.base_unit(use.attribute))[0])

    # -- one quantity -----------------------------------------------------------------------

    def _quantity(self, literal: Literal, base: BaseUnit | None) -> Literal:
        """Return a quantity as a plain number in `base`.

        Without a base unit, return a quantity in the base unit of its dimension. Raise `UnitError`
        if it is invalid, or has another dimension than `base`.
        """
        found = read_quantity(literal.value)
        if found is None:
            what = f"“{literal.value[:40]}” is not a number and a unit"
            raise UnitError(what, 'Write it as in "40 GB".')
        number, text = found
        unit = self.registry.unit(text)
        if base is None:
            return quantity_literal(unit.to_base(number), unit.base)
        return number_literal(_converted(number, unit, text, base))

    def _number(
        self, value: Fraction, units: Iterable[Term], base: BaseUnit | None
    ) -> tuple[Fraction, Unit]:
        """Return a number in its attribute's or dimension's base unit, and the stated unit."""
        known = {_unit_of(term, self.registry): term for term in units}
        (unit, term), *others = known.items()
        if others:
            names = " and ".join(sorted(map(_name, known.values())))
            raise UnitError(f"a number has two units, {names}", "Give it one unit.")
        if base is None:
            return unit.to_base(value), unit
        return _converted(value, unit, _name(term), base), unit

    def _unit_term(self, term: Term, base: BaseUnit | None) -> Term:
        """Return the term that replaces a unit after numbers are converted.

        This is the base unit as declared. Without one, it is the dimension's base unit: a string
        for a string, a QUDT IRI (if there is one) for an IRI.
        """
        unit = _unit_of(term, self.registry)
        if base is not None:
            _converted(Fraction(0), unit, _name(term), base)
            return base.term
        if isinstance(term, NamedNode) and (iri := iri_of(unit.base)) is not None:
            return iri
        return Literal(unit.base)


def _unit_of(term: Term, registry: Registry) -> Unit:
    """Return the unit that a string or a QUDT IRI names; raise `UnitError` if it names none."""
    if isinstance(term, Literal):
        return registry.unit(term.value)
    if isinstance(term, NamedNode) and (text := ucum_of(term)) is not None:
        return registry.unit(text)
    remedy = "Give a string such as GB, or one of QUDT's units."
    raise UnitError(f"{compact(term)} is not a unit", remedy)


def _converted(number: Fraction, unit: Unit, name: str, base: BaseUnit) -> Fraction:
    """Convert a number to a base unit of the same dimension; `name` is the unit's text.

    Raise `UnitError` if the dimensions differ.
    """
    if unit.base != base.unit.base:
        what = f"{name} cannot be converted to {_name(base.term)}"
        raise UnitError(what, "Use a unit of the same dimension.")
    return base.unit.from_base(unit.to_base(number))


def _number_of(term: Term) -> Fraction | None:
    """Return the exact number in a numeric literal; return ``None`` for any other term."""
    if not isinstance(term, Literal) or not isinstance(value_of(term), Number):
        return None
    return read_number(term.value)


def _name(term: Term) -> str:
    return term.value if isinstance(term, Literal) else compact(term)


def _torn(term: Term) -> UnitError:
    return UnitError(
        f"{compact(term)} is used with attributes of different base units",
        "Give each attribute its own variable, and write the value with its unit.",
    )


def _declarations(
    triples: Iterable[Triple], properties: Taxonomy, registry: Registry, on_problem: OnProblem
) -> Declarations:
    """Collect an ontology's unit declarations, and report unusable ones."""

    def report(what: str) -> None:
        on_problem(Problem(what, Place("ontology"), "Correct the ontology.", Severity.WARNING))

    stated: defaultdict[Term, dict[Term, Unit]] = defaultdict(dict)
    units_of: dict[Term, dict[Term, None]] = {v: dict.fromkeys(w) for v, w in _BUILT_IN.items()}
    for attribute, predicate, object_ in triples:
        if predicate == BASE_UNIT:
            try:
                stated[attribute][object_] = _unit_of(object_, registry)
            except UnitError as error:
                report(f"the base unit of {compact(attribute)}: {error.what}")
        elif predicate == UNIT_ATTRIBUTE:
            if isinstance(object_, NamedNode):
                units_of.setdefault(attribute, {})[object_] = None
            else:
                report(f"the unit attribute of {compact(attribute)} is not an IRI")
    base_units = {}
    for attribute, nearest in _inherited(stated, properties):
        first, *others = [BaseUnit(term, unit) for one in nearest for term, unit in one.items()]
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

"""Units of measure on both sides: publications' values and subscriptions' constants.

Numbers with a unit come in three spellings: one literal (``"40 GB"^^cdt:ucum``), a
node with a number and a unit (QUDT), and two attributes of one subject. Each is
brought to the attribute's base unit where one is declared, else to the base unit of
its dimension, in publications and in subscriptions alike; so what is compared is in
one unit, and the matcher knows nothing of units (docs/reference/semantics.md).

Cost: a publication without quantities costs one look at each of its triples.

Source: the step of CTPS that unifies unit types before matching (section 4, on the
transformation of ``target.hardDisk.size.units``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from pyoxigraph import Literal, NamedNode

from semantic.attributes.names import name_of, step_names, steps
from semantic.errors import OnProblem, Place, Problem, Severity
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.taxonomy import Taxonomy
from semantic.publication import Publication
from semantic.terms import Term, Triple, compact
from semantic.units import convert
from semantic.units.declarations import BaseUnit, Declarations, read_declarations
from semantic.units.numbers import UnitError, number_literal
from semantic.units.registry import Registry, Unit
from semantic.units.use import Use
from semantic.units.vocabulary import CDT, is_quantity

Report = Callable[[Term, UnitError], None]
"""Told the attribute of a value that stays as it is, and why."""


@dataclass(frozen=True, slots=True)
class Normal:
    """Triples with their quantities in base units.

    Parameters
    ----------
    triples
        In the order of those given, distinct, with the derived ones at the end.
    derived
        The plain number of a quantity node, under the attribute that leads to the node.
    origins
        Each changed or derived triple to the triple that it was made of.
    """

    triples: tuple[Triple, ...]
    derived: frozenset[Triple] = frozenset()
    origins: Mapping[Triple, Triple] = field(default_factory=dict)


class Units:
    """What an ontology says about units, applied to publications and subscriptions.

    Parameters
    ----------
    declarations
        Base units and unit attributes.
    registry
        Knows what the texts of units mean.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.units.vocabulary import BASE_UNIT, UCUM
    >>> disk, size = NamedNode("urn:disk"), NamedNode("urn:size")
    >>> units = Units.of([(size, BASE_UNIT, Literal("GB"))], Taxonomy([]), print)
    >>> item = Publication.of("p", [(disk, size, Literal("0.04 TB", datatype=UCUM))])
    >>> units.normal(item, print).triples[0][2].value
    '40'
    >>> units.constant(Literal("30000 MB", datatype=UCUM), [Use(size)]).value
    '30'
    """

    def __init__(self, declarations: Declarations, registry: Registry) -> None:
        self.registry = registry
        self.declarations = declarations
        self._base_units = declarations.base_units
        self._unit_attributes = declarations.unit_attributes
        values: defaultdict[Term, list[Term]] = defaultdict(list)
        for value, attributes in declarations.unit_attributes.items():
            for attribute in attributes:
                values[attribute].append(value)
        self._value_attributes: Mapping[Term, Sequence[Term]] = dict(values)
        self.measured = frozenset(values).union(declarations.unit_attributes)
        """The attributes that have or give the unit of a plain number."""

    @classmethod
    def of(
        cls,
        triples: Iterable[Triple],
        properties: Taxonomy,
        on_problem: OnProblem,
        limits: Limits = DEFAULT_LIMITS,
        registry: Registry | None = None,
    ) -> Units:
        """Compile what an ontology's triples, with roots put in, say about units.

        Parameters
        ----------
        properties
            The hierarchy in which declarations are inherited.
        on_problem
            Called with each declaration that cannot be used.
        registry
            Another `Units`' own, to go on with what it has loaded and remembers.
        """
        registry = registry or Registry(limits)
        return cls(read_declarations(triples, properties, registry, on_problem), registry)

    def base_unit(self, attribute: Term) -> BaseUnit | None:
        """Return the unit that the numbers of an attribute are in, where one is declared."""
        found = self._base_units.get(attribute)
        if found is None and (name := name_of(attribute)) is not None:
            return self._by_step.get(steps(name)[-1])
        return found

    @cached_property
    def _by_step(self) -> Mapping[str, BaseUnit | None]:
        """The base unit of an attribute's last step, where all properties called so have one."""
        found: dict[str, BaseUnit | None] = {}
        for property_, base in self._base_units.items():
            for name in step_names([property_]) if isinstance(property_, NamedNode) else ():
                known = found.setdefault(name, base)
                if known is not None and known.unit != base.unit:
                    found[name] = None
        return found

    # -- publications -----------------------------------------------------------------------

    def concerns(self, term: Term) -> bool:
        """Whether a publication with a term may have a quantity: it is one, or gives a unit."""
        if isinstance(term, Literal):
            return _is_of_cdt(term)
        return term in self._unit_attributes

    def normal(self, publication: Publication, on_problem: OnProblem) -> Publication:
        """Return a publication, with roots put in, with its quantities in base units.

        What cannot be converted stays as it was and is reported; the rest goes on.
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
        changed = {old: t for t, old in found.origins.items() if t not in found.derived}
        derived = {changed.get(t, t) for t in publication.derived} | found.derived
        return Publication(publication.id, found.triples, frozenset(derived), publication.source)

    def normal_triples(self, triples: Iterable[Triple], report: Report) -> Normal | None:
        """Return triples with their quantities in base units; ``None`` where there are none."""
        triples = tuple(triples)
        literals: list[Triple] = []
        values: defaultdict[Term, list[Triple]] = defaultdict(list)
        for triple in triples:
            object_ = triple[2]
            if isinstance(object_, Literal) and _is_of_cdt(object_):
                literals.append(triple)
            elif triple[1] in self._unit_attributes:
                values[triple[0]].append(triple)
        if not literals and not values:
            return None
        changes: dict[Triple, dict[Triple, None]] = {}
        for triple in literals:
            self._change_literal(triple, changes, report)
        derived = self._change_nodes(triples, values, changes, report) if values else {}
        new = dict.fromkeys(t for triple in triples for t in changes.get(triple, (triple,)))
        added = {new_one: old for new_one, old in derived.items() if new_one not in new}
        origins = {t: old for old, several in changes.items() for t in several if t != old}
        return Normal((*new, *added), frozenset(added), origins | added)

    def _change_literal(
        self, triple: Triple, changes: dict[Triple, dict[Triple, None]], report: Report
    ) -> None:
        subject, attribute, object_ = triple
        assert isinstance(object_, Literal)
        if not is_quantity(object_):
            return
        try:
            new = convert.quantity(object_, self.base_unit(attribute), self.registry)
        except UnitError as error:
            report(attribute, error)
        else:
            changes[triple] = {(subject, attribute, new): None}

    def _change_nodes(
        self,
        triples: Iterable[Triple],
        values: Mapping[Term, Sequence[Triple]],
        changes: dict[Triple, dict[Triple, None]],
        report: Report,
    ) -> dict[Triple, Triple]:
        """Change pairs of number and unit, and return what they say about the nodes above."""
        units: defaultdict[Term, list[Triple]] = defaultdict(list)
        above: list[Triple] = []
        for triple in triples:
            if triple[1] in self._value_attributes and triple[0] in values:
                units[triple[0]].append(triple)
            if triple[1] in self._base_units and triple[2] in values:
                above.append(triple)
        said: defaultdict[Term, dict[tuple[Fraction, Unit], None]] = defaultdict(dict)
        for subject, stated in units.items():
            change: defaultdict[Triple, dict[Triple, None]] = defaultdict(dict)
            for triple in values[subject]:
                attribute = triple[1]
                of_it = [u for u in stated if u[1] in self._unit_attributes[attribute]]
                if not of_it:
                    continue
                try:
                    said[subject][self._change_pair(triple, of_it, change)] = None
                except UnitError as error:
                    report(attribute, error)
                    said[subject].clear()
                    break
            else:
                changes |= change
        derived = {}
        for triple in above:
            for number, unit in said[triple[2]]:
                try:
                    derived[self._under(triple, number, unit)] = triple
                except UnitError as error:
                    report(triple[1], error)
        return derived

    def _change_pair(
        self, triple: Triple, units: Sequence[Triple], change: dict[Triple, dict[Triple, None]]
    ) -> tuple[Fraction, Unit]:
        """Change a number and its unit, and return them as they were stated."""
        subject, attribute, object_ = triple
        value = convert.number_of(object_)
        if value is None:
            text = object_.value if isinstance(object_, Literal) else compact(object_)
            raise UnitError(
                f"“{text[:40]}” has a unit and is not a number", "Give a number of XML Schema."
            )
        base = self.base_unit(attribute)
        number, unit = convert.number(value, [u[2] for u in units], base, self.registry)
        change[triple][subject, attribute, number_literal(number)] = None
        for stated in units:
            term = convert.unit_term(stated[2], base, self.registry)
            change[stated][subject, stated[1], term] = None
        return value, unit

    def _under(self, triple: Triple, number: Fraction, unit: Unit) -> Triple:
        subject, attribute, _ = triple
        base = self._base_units[attribute]
        return subject, attribute, number_literal(convert.converted(number, unit, "its unit", base))

    # -- subscriptions ----------------------------------------------------------------------

    def constant(self, term: Term, uses: Sequence[Use]) -> Term:
        """Return what a query's constant, with roots put in, is in publications' base units.

        Parameters
        ----------
        uses
            Where the query has it.

        Raises
        ------
        UnitError
            When its unit is unknown or does not go together with the attribute's, or when its
            places ask for different units.
        """
        if isinstance(term, Literal) and is_quantity(term):
            base = self._one_base(term, (use.attribute for use in uses))
            return convert.quantity(term, base, self.registry)
        found = dict.fromkeys(self._beside(term, use) for use in uses)
        if len(found) > 1:
            raise _torn(term)
        return next(iter(found), term)

    def _beside(self, term: Term, use: Use) -> Term:
        """Return a plain number or a unit by what stands beside it."""
        if use.attribute in self._value_attributes:
            return self._unit_constant(term, use)
        attributes = self._unit_attributes.get(use.attribute, ())
        units = [unit for w, unit in use.siblings if w in attributes and unit is not None]
        value = convert.number_of(term)
        if not units or value is None:
            return term
        number, _ = convert.number(value, units, self.base_unit(use.attribute), self.registry)
        return number_literal(number)

    def _unit_constant(self, term: Term, use: Use) -> Term:
        values: Sequence[Term] = self._value_attributes[use.attribute]
        named = [v for v, _ in use.siblings if v in values]
        bases = {self.base_unit(value) for value in named or values}
        if len({base and base.unit for base in bases}) > 1:
            raise _torn(term)
        return convert.unit_term(term, bases.pop(), self.registry)

    def _one_base(self, term: Term, attributes: Iterable[Term]) -> BaseUnit | None:
        bases = [base for one in attributes if (base := self.base_unit(one)) is not None]
        if any(base.unit != bases[0].unit for base in bases):
            raise _torn(term)
        return bases[0] if bases else None


def _is_of_cdt(literal: Literal) -> bool:
    """Whether a literal's datatype is one of quantities and their units."""
    return literal.language is None and literal.datatype.value.startswith(CDT.iri)


def _torn(term: Term) -> UnitError:
    return UnitError(
        f"{compact(term)} is used with attributes of different base units",
        "Give each attribute a variable of its own, and name the value beside its unit.",
    )

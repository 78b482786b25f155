"""A query that can be evaluated: a shared skeleton, its own constants.

`Query.text` writes it in one of three ways: as it is; with the condition that each
solution rests on the publication; or as an ASK with that condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode, Variable

from semantic.pattern import Branch, Form, TriplePattern
from semantic.sparql.exact import is_protected, protect
from semantic.sparql.slots import SlottedText, slot_number
from semantic.sparql.uses import SlotUse
from semantic.terms import Node, Term
from semantic.units.units import Units
from semantic.units.vocabulary import is_quantity
from semantic.vocabulary import GM

Mention: TypeAlias = tuple[Node | None, Node | None]
"""A property and an object that a pattern asks for; ``None`` for any."""
ANYTHING: Mention = (None, None)
"""What a pattern mentions that has a variable as its property."""


class Resting(Enum):
    """How the condition that a solution rests on the publication is put to a query."""

    SOLUTIONS = "solutions"  # each solution by itself
    PATTERN = "pattern"  # an aggregating query: some solution of its pattern
    WHOLE = "whole"  # a query with a subquery: some triple pattern is met
    BOTH = "both"  # an aggregating query with a subquery: a solution, and some pattern is met

    @property
    def of_pattern(self) -> bool:
        """Whether the query's pattern is asked, and not the query."""
        return self in (Resting.PATTERN, Resting.BOTH)


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query's text up to its WHERE group, the inside of that, and what follows."""

    head: SlottedText
    where: SlottedText
    tail: SlottedText
    base: str = ""
    """A BASE declaration, where IRI() needs one: other IRIs are absolute already."""


Position: TypeAlias = int | Node | None
"""A slot's number, or what stands there in every query of a skeleton."""


@dataclass(frozen=True)
class Skeleton:
    """What queries that differ in constants only have in common.

    Parameters
    ----------
    form, projection, distinct, branches, supports, remainder
        As in `Subscription`, with slots for constants.
    plain
        The query's text.
    exact
        The same with expressions put through `semantic.sparql.exact.FUNCTIONS`.
    values
        The slots of constants in expressions: those are compared by value.
    condition
        A filter that holds when a solution rests on the publication.
    resting
        What the condition is put to.
    rewritten
        The slots of literals that synonyms replace (IRIs always are).
    mentions
        What its patterns ask for; see `semantic.sparql.mentions`.
    uses
        Slot to the attributes whose value it is; see `semantic.sparql.uses`.
    source
        What it was made of, and can be made of again: a BASE declaration or nothing, and the pieces
        of the text.
    """

    form: Form
    projection: tuple[Variable, ...]
    distinct: bool
    branches: tuple[Branch, ...]
    supports: tuple[TriplePattern, ...] | None
    remainder: tuple[str, ...]
    plain: QueryText
    exact: QueryText
    values: frozenset[int]
    condition: SlottedText
    resting: Resting
    rewritten: frozenset[int]
    mentions: frozenset[Mention]
    uses: Mapping[int, tuple[SlotUse, ...]]
    source: tuple[str, ...] = ()

    def said(self, constants: Sequence[Term]) -> str:
        """Return the text of a query with some constants, as it was submitted."""
        return self._said.fill(constants)

    @cached_property
    def _said(self) -> SlottedText:
        base, *pieces = self.source
        now = str(GM["now"])
        return SlottedText(" ".join([base, *("NOW" if p == now else p for p in pieces)]))

    @cached_property
    def pattern_places(self) -> tuple[tuple[tuple[Position, ...], ...], ...]:
        """The patterns of each branch, slots told apart from other nodes."""
        return tuple(_placed(branch.patterns) for branch in self.branches)

    @cached_property
    def projected(self) -> tuple[tuple[str, int], ...]:
        """The projected variables of the first branch, with their places in `Branch.names`."""
        names = self.branches[0].names
        return tuple((v.value, names.index(v.value)) for v in self.projection if v.value in names)

    @cached_property
    def support_places(self) -> tuple[tuple[Position, ...], ...] | None:
        """The same of the supports."""
        return None if self.supports is None else _placed(self.supports)

    @cached_property
    def mention_places(self) -> tuple[tuple[Position, ...], ...]:
        """The same of what the patterns ask for."""
        return _placed(self.mentions)


def _placed(patterns: Iterable[Iterable[Node | None]]) -> tuple[tuple[Position, ...], ...]:
    return tuple(
        tuple(node if (number := slot_number(node)) is None else number for node in pattern)
        for pattern in patterns
    )


def put(place: Position, constants: Sequence[Term]) -> Node | None:
    """Return the constant of a slot, and anything else as it is."""
    return constants[place] if isinstance(place, int) else place


@dataclass(frozen=True, slots=True)
class Query:
    """A skeleton with constants.

    Parameters
    ----------
    skeleton
        Shared with all queries that differ in constants only.
    constants
        One term a slot.
    """

    skeleton: Skeleton
    constants: tuple[Term, ...]

    def rewritten(self, root: Callable[[Term], Term], units: Units | None = None) -> Query:
        """Return the query with its constants replaced by their roots, and in base units.

        Raises
        ------
        UnitError
            When a unit of the query is unknown, or incompatible with its attribute's.
        """
        constants = tuple(
            root(term) if isinstance(term, NamedNode) or number in self.skeleton.rewritten else term
            for number, term in enumerate(self.constants)
        )
        if units is None or not self._is_measured(constants, units):
            return Query(self.skeleton, constants)
        uses = self.skeleton.uses
        return Query(
            self.skeleton,
            tuple(
                units.constant(term, [use.filled(constants) for use in uses.get(number, ())])
                for number, term in enumerate(constants)
            ),
        )

    @staticmethod
    def _is_measured(constants: tuple[Term, ...], units: Units) -> bool:
        """Whether a query has quantities, or attributes whose numbers have units."""
        return any(
            term in units.measured or (isinstance(term, Literal) and is_quantity(term))
            for term in constants
        )

    def said(self) -> str:
        """Return the query's text as it was submitted, but for white space and prefixes."""
        return self.skeleton.said(self.constants)

    def mentions(self) -> tuple[Mention, ...]:
        """Return what the query's patterns ask for, constants put in: some perhaps twice."""
        constants = self.constants
        return tuple(
            (put(p, constants), put(o, constants)) for p, o in self.skeleton.mention_places
        )

    def has_protected(self) -> bool:
        """Whether a constant of a triple pattern is one that the store would change."""
        return any(
            number not in self.skeleton.values and is_protected(protect(term))
            for number, term in enumerate(self.constants)
        )

    def text(self, *, exact: bool = False, resting: bool = False, form: str | None = None) -> str:
        """Write the query as SPARQL without prefixes.

        Parameters
        ----------
        exact
            For data in which some terms are protected (see `semantic.sparql.exact`).
        resting
            Only solutions that rest on the publication (the one named graph).
        form
            ``"ASK"`` or ``"SELECT *"``: that of the query's pattern, whatever the query's form.
        """
        text = self.skeleton.exact if exact else self.skeleton.plain
        head = form or self._fill(text.head, exact=exact)
        where = self._fill(text.where, exact=exact)
        pattern = form == "SELECT *" or self.skeleton.resting.of_pattern
        tail = "" if form and pattern else self._fill(text.tail, exact=exact)
        if resting:
            where = f"{{ {where} }} FILTER({self._fill(self.skeleton.condition, exact=exact)})"
        return f"{text.base}{head} {{ {where} }} {tail}"

    def _fill(self, text: SlottedText, *, exact: bool) -> str:
        if not exact:
            return text.fill(self.constants)
        values = self.skeleton.values
        return text.fill(self.constants, lambda n, term: term if n in values else protect(term))

"""Which attribute a constant of a query is a value of, and what stands beside it.

A number means another quantity where the same subject has the unit ``"MB"`` beside
it, so a constant is read by its uses: the properties whose object it is, or whose
object is a variable that it is compared with. They are found once a skeleton, as
slots, and filled in for each query.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import rdflib
from rdflib.paths import AlternativePath, MulPath, Path, SequencePath
from rdflib.plugins.sparql.parserutils import CompValue

from semantic.sparql.algebra import edges, parts
from semantic.sparql.quantities import compared_slots
from semantic.sparql.slots import slot_number
from semantic.terms import Term
from semantic.units.use import Use


@dataclass(frozen=True, slots=True)
class SlotUse:
    """A `semantic.units.use.Use` with slots for terms."""

    attribute: int
    siblings: tuple[tuple[int, int | None], ...]

    def filled(self, constants: Sequence[Term]) -> Use:
        """Return the use in a query with these constants."""
        return Use(
            constants[self.attribute],
            tuple(
                (constants[predicate], None if object_ is None else constants[object_])
                for predicate, object_ in self.siblings
            ),
        )


def uses_of(query: CompValue, pieces: Sequence[str]) -> Mapping[int, tuple[SlotUse, ...]]:
    """Return the uses of each slot that is an object, or compared with one.

    Parameters
    ----------
    query
        Its algebra.
    pieces
        Its text.
    """
    found = list(parts(query))
    listed = ((variable, n, True) for part in found for variable, n in _cells(part))
    asked = ((rdflib.Variable(v), n, same) for v, n, same in compared_slots(pieces))
    stated = (
        (subject, attribute, object_, slot_number(object_))
        for part in found
        for subject, path, object_ in edges(part)
        for attribute in _last(path)
    )
    return uses_among(stated, chain(listed, asked))


def uses_among(
    stated: Iterable[tuple[Hashable, int, Hashable, int | None]],
    compared: Iterable[tuple[Hashable, int, bool]],
) -> Mapping[int, tuple[SlotUse, ...]]:
    """Return the uses of each slot among triple patterns and comparisons.

    Parameters
    ----------
    stated
        Subject, the slot of the property, object, and the slot that this is, of each pattern.
    compared
        A variable, a slot that it is compared with, and whether for equality.
    """
    partners: defaultdict[int, set[Hashable]] = defaultdict(set)
    equal: defaultdict[Hashable, set[int]] = defaultdict(set)
    for variable, number, is_equal in compared:
        partners[number].add(variable)
        if is_equal:
            equal[variable].add(number)
    objects: defaultdict[tuple[Hashable, int | None], dict[tuple[Hashable, int], None]]
    objects = defaultdict(dict)
    siblings: defaultdict[Hashable, dict[tuple[int, int | None], None]] = defaultdict(dict)
    for subject, attribute, object_, own in stated:
        objects[object_, own][subject, attribute] = None
        known: list[int | None] = [own] if own is not None else [*sorted(equal[object_])]
        siblings[subject].update(((attribute, one), None) for one in known or [None])
    found: defaultdict[int, dict[SlotUse, None]] = defaultdict(dict)
    for (object_, own), places in objects.items():
        numbers = [own] if own is not None else [n for n in partners if object_ in partners[n]]
        for number in numbers:
            for subject, attribute in places:
                found[number][SlotUse(attribute, tuple(siblings[subject]))] = None
    return {number: tuple(several) for number, several in found.items()}


def _last(path: Any) -> Iterator[int]:
    """Yield the slots of the properties that a path may end with."""
    if isinstance(path, SequencePath):
        yield from _last(path.args[-1])
    elif isinstance(path, AlternativePath):
        for arm in path.args:
            yield from _last(arm)
    elif isinstance(path, MulPath):
        yield from _last(path.path)
    elif not isinstance(path, Path) and (number := slot_number(path)) is not None:
        yield number


def _cells(part: CompValue) -> Iterator[tuple[Any, int]]:
    """Yield the variables and slots of VALUES; under EXISTS it is not translated."""
    rows: list[Any] = []
    if part.name == "values":
        rows = [row.items() for row in part.res]
    elif part.name == "InlineData":
        values = [row if isinstance(row, list) else [row] for row in part.value]
        rows = [zip(part.var, row, strict=False) for row in values]
    for variable, term in chain.from_iterable(rows):
        if (number := _slot(term)) is not None:
            yield variable, number


def _slot(term: Any) -> int | None:
    is_term = isinstance(term, rdflib.URIRef | rdflib.Literal)
    return slot_number(term) if is_term else None

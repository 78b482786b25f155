"""Queries by skeleton, with their constants as columns of integers.

An index translates each different term once, not each constant of each subscription; and
a skeleton's subscriptions come as one matrix.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from semantic.errors import SubscriptionError
from semantic.sparql.bulk import Environment, Rests, Ways
from semantic.sparql.cuts import constant
from semantic.sparql.query import Query, Skeleton
from semantic.terms import Term

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Group:
    """The queries of one skeleton.

    Parameters
    ----------
    skeleton
        What they have in common.
    ids
        Their ids, n of them.
    rows
        Where each was among the rows that were read, from 0, ascending.
    constants
        A row a query, a column a slot: what `Grouped.terms` has at these places.
    """

    skeleton: Skeleton
    ids: Sequence[str]
    rows: Sequence[int]
    constants: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Queries by skeleton, and what was refused.

    Parameters
    ----------
    groups
        In the order of their first queries.
    terms
        The different constants. One that is written in several ways is there several times.
    refused
        The places of the rows that cannot be subscriptions, ascending, and why they cannot.
    """

    groups: Sequence[Group]
    terms: Sequence[Term]
    refused: Sequence[tuple[int, SubscriptionError]]


def grouped(rows: Iterable[tuple[str, str | Query]], ways: Ways) -> Grouped:
    """Return the queries of ids and texts by skeleton; some may be read already."""
    columns = _Columns(ways)
    for row, (name, query) in enumerate(rows):
        if isinstance(query, Query):
            columns.put(row, name, query)
        else:
            columns.add(row, name, query)
    return columns.result()


class _Numbers(dict[str, int]):
    """Constants as they are written to their places among the terms.

    Raises
    ------
    KeyError
        Where it is not certain that a text is a constant.
    """

    def __init__(self, prefixes: Mapping[str, str], terms: _Terms) -> None:
        super().__init__()
        self._prefixes = prefixes
        self._terms = terms

    def __missing__(self, text: str) -> int:
        term = constant(text, self._prefixes)
        if term is None:
            raise KeyError(text)
        number = self[text] = self._terms.add(term)
        return number


class _Terms:
    """Terms and their places."""

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.kinds: list[type[Term]] = []
        self._numbers: dict[Term, int] = {}

    def add(self, term: Term) -> int:
        """Return a new place for a term."""
        self.terms.append(term)
        self.kinds.append(type(term))
        return len(self.terms) - 1

    def number(self, term: Term) -> int:
        """Return the place of a term that was not cut."""
        if term not in self._numbers:
            self._numbers[term] = self.add(term)
        return self._numbers[term]


class _Columns:
    """The groups as they grow."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._terms = _Terms()
        self._numbers: dict[Environment, _Numbers] = {}
        self._groups: dict[int, tuple[Skeleton, list[str], list[int], array[int]]] = {}
        self._refused: list[tuple[int, SubscriptionError]] = []

    def add(self, row: int, name: str, text: str) -> None:
        """Put a query into its group."""
        found = self._ways.find(text)
        known = None if found is None else self._known(*found)
        if known is None:
            try:
                query = self._ways.learn(name, text)
            except SubscriptionError as error:
                self._refused.append((row, error))
                return
            self.put(row, name, query)
        else:
            self._put(row, name, *known)

    def put(self, row: int, name: str, query: Query) -> None:
        """Put a query into its group that was read already."""
        self._put(row, name, query.skeleton, map(self._terms.number, query.constants))

    def _put(self, row: int, name: str, skeleton: Skeleton, numbers: Iterable[int]) -> None:
        group = self._groups.get(id(skeleton))
        if group is None:
            group = self._groups[id(skeleton)] = (skeleton, [], [], array("i"))
        group[1].append(name)
        group[2].append(row)
        group[3].extend(numbers)

    def _known(
        self, environment: Environment, rests: Rests, written: Sequence[str]
    ) -> tuple[Skeleton, list[int]] | None:
        table = self._numbers.get(environment)
        if table is None:
            table = self._numbers[environment] = _Numbers(environment.prefixes, self._terms)
        try:
            numbers = list(map(table.__getitem__, written))
        except KeyError:
            return None
        way = rests.ways.get(tuple(map(self._terms.kinds.__getitem__, numbers)))
        if way is None:
            return None
        for slot, term in way.fixed:
            numbers.insert(slot, self._terms.number(term))
        return way.skeleton, numbers

    def result(self) -> Grouped:
        """Return the groups."""
        import numpy as np

        groups = []
        for skeleton, ids, rows, numbers in self._groups.values():
            shape = len(ids), len(numbers) // len(ids)
            constants = np.array(numbers, dtype=np.int32).reshape(shape)
            groups.append(Group(skeleton, ids, rows, constants))
        return Grouped(groups, self._terms.terms, self._refused)

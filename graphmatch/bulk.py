"""Filing many subscriptions at once: those of one skeleton are columns of integers.

What `graphmatch.filing.file` decides of a subscription depends on its skeleton and on single
constants. So it is decided once a skeleton and different constant, and what is left a subscription
are rows of arrays. Where it is not so simple, `Sheet.slowly` says so, and the subscription is filed
by itself: it has a quantity or an attribute with a unit, a name that means nothing, a pattern that
the ontology alone may meet, or a constant with which the index cannot take a filter.

Cost: some microseconds a subscription, and ten for each different constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from graphmatch.bulk_constants import Constants, Mask
from graphmatch.bulk_filters import FilterColumn
from graphmatch.index.index import Index
from graphmatch.index.plans import arranged
from graphmatch.index.records import Flag
from graphmatch.index.runs import Ids
from graphmatch.index.terms import Mentioned, Passes
from semantic.evaluation import Evaluator
from semantic.pattern import Form
from semantic.sparql.columns import Group
from semantic.sparql.query import Position
from semantic.terms import Term

Pairs: TypeAlias = NDArray[np.int64]


class Sheet:
    """The subscriptions of one skeleton, as they are filed.

    Parameters
    ----------
    group
        The skeleton, the ids, and the constants as places.
    constants
        What the places stand for.

    Attributes
    ----------
    filed
        The constants with roots put in: shape (subscriptions, slots).
    slowly
        Which subscriptions are to be filed by themselves.
    """

    def __init__(self, group: Group, constants: Constants) -> None:
        self.group, self.skeleton = group, group.skeleton
        self._constants = constants
        self.filed = constants.filed(group.skeleton, group.constants)
        self.slowly = np.zeros(len(group.ids), np.bool_)
        np.logical_or.reduce(constants.odd[group.constants], axis=1, out=self.slowly)
        self._filters: list[list[FilterColumn]] = []
        for branch in self.skeleton.branches:
            if not branch.patterns:
                self.slowly[:] = True
            own = [FilterColumn(f, self.filed, constants) for f in branch.filters]
            for column in own:
                self.slowly |= column.refused
            self._filters.append(own)

    @property
    def exact(self) -> bool:
        """Whether the index's solutions are the answers."""
        return not self.skeleton.remainder

    @property
    def flags(self) -> int:
        """What is known of how those are filed that are not filed by themselves."""
        resting = Flag.RESTING if self.skeleton.resting.of_pattern else Flag(0)
        return resting | (Flag.EXACT if self.exact else Flag(0))

    def slow(self) -> list[int]:
        """Return the places of those that are filed by themselves."""
        found: list[int] = np.flatnonzero(self.slowly).tolist()
        return found

    # -- what is asked for -------------------------------------------------------------------

    def mentions(self, chosen: Mask) -> Pairs:
        """Return what the patterns of some of the subscriptions ask for: shape (mentions, 2).

        A property and an object by their places; -1 for any.
        """
        rows = self.filed[chosen]
        asked = [
            np.stack([self._column(place, rows) for place in places], axis=1)
            for places in self.skeleton.mention_places
        ]
        return np.concatenate(asked).astype(np.int64) if asked else np.zeros((0, 2), np.int64)

    def _column(self, place: Position, rows: Ids) -> Ids:
        if isinstance(place, int):
            return rows[:, place]
        term = _known(place)
        number = -1 if term is None else self._constants.place(term)
        return np.full(len(rows), number, np.int32)

    def look_for_repeated(self, index: Index, ids: Ids) -> None:
        """Note in which subscriptions two patterns of a branch are the same: it is one then.

        Parameters
        ----------
        ids
            By place of a constant: its id in the index.
        """
        known = index.terms.ids
        for patterns in self.skeleton.pattern_places:
            for one, other in combinations(patterns, 2):
                same = ~self.slowly
                for place in (1, 0, 2):  # properties differ most often
                    mine, theirs = one[place], other[place]
                    if isinstance(mine, int) and isinstance(theirs, int):
                        same &= ids[self.filed[:, mine]] == ids[self.filed[:, theirs]]
                    elif isinstance(mine, int) or isinstance(theirs, int):
                        slot, node = (mine, theirs) if isinstance(mine, int) else (theirs, mine)
                        term = _known(node)
                        assert isinstance(slot, int)
                        id = -1 if term is None else known.get(term, -1)
                        same &= ids[self.filed[:, slot]] == id
                    elif mine != theirs:
                        same[:] = False
                    if not same.any():
                        break
                self.slowly |= same

    def mark(self, places: Mask) -> None:
        """Mark the constants that patterns have, of those that are not filed by themselves."""
        slots = {
            slot
            for patterns in self.skeleton.pattern_places
            for pattern in patterns
            for slot in pattern
            if isinstance(slot, int)
        }
        places[self.filed[~self.slowly][:, sorted(slots)]] = True

    def look_up(self, background: Evaluator, occurring: NDArray[np.bool_]) -> None:
        """Note which subscriptions have a pattern that the ontology alone may meet.

        Parameters
        ----------
        occurring
            Where the ontology has which constants: `Constants.occurring`.
        """
        for patterns in self.skeleton.pattern_places:
            for pattern in patterns:
                met = ~self.slowly
                for where, slot in enumerate(pattern):
                    if isinstance(slot, int):
                        met &= occurring[where, self.filed[:, slot]]
                if met.any():
                    self.slowly |= self._met(pattern, met, background)

    def _met(self, pattern: Sequence[Position], chosen: Mask, background: Evaluator) -> Mask:
        """Say of which of the chosen subscriptions the ontology meets a pattern."""
        slots = [slot for slot in pattern if isinstance(slot, int)]
        different, inverse = np.unique(self.filed[chosen][:, slots], axis=0, return_inverse=True)
        answers = np.zeros(len(different), np.bool_)
        for number, places in enumerate(different.tolist()):
            given = iter(places)
            answers[number] = background.meets(
                self._constants.terms[next(given)] if isinstance(slot, int) else _known(slot)
                for slot in pattern
            )
        found = np.zeros(len(chosen), np.bool_)
        found[chosen] = answers[inverse.ravel()]
        return found

    # -- what the index is given -------------------------------------------------------------

    def file(self, index: Index, ids: Ids) -> Ids:
        """Give the index what it is to find for all that are not filed slowly; return their rows.

        Parameters
        ----------
        ids
            By place of a constant: its id in the index.

        Returns
        -------
        rows
            Shape (subscriptions, branches); -1 where two branches of one are the same row.
        """
        chosen = np.flatnonzero(~self.slowly)
        rows = np.empty((len(chosen), len(self.skeleton.branches)), np.int32)
        for branch, filters in enumerate(self._filters):
            operators = np.array([column.operators[chosen] for column in filters], np.int32)
            kinds, inverse = np.unique(
                operators.reshape(len(filters), len(chosen)), axis=1, return_inverse=True
            )
            for number, kind in enumerate(kinds.T.tolist()):
                own = inverse.ravel() == number
                rows[own, branch] = self._file_kind(branch, kind, chosen[own], index, ids)
        for first, second in combinations(range(rows.shape[1]), 2):
            same = (rows[:, first] == rows[:, second]) & (rows[:, first] >= 0)
            for row in rows[same, second].tolist():
                index.remove(row)
            rows[same, second] = -1
        return rows

    def _file_kind(
        self, branch: int, operators: Sequence[int], chosen: Ids, index: Index, ids: Ids
    ) -> Ids:
        """Give the index one branch of subscriptions whose filters are of the same kinds."""
        own = self._filters[branch]
        columns = list(ids[self.filed[chosen]].T)
        held: list[Ids] = []

        def column(constant: Mentioned) -> int:
            held.append(index.take([constant]))
            columns.append(np.full(len(chosen), held[-1][0], np.int32))
            return len(columns) - 1

        patterns = [
            tuple(
                place if isinstance(place, int | Variable) else column(_term(place))
                for place in pattern
            )
            for pattern in self.skeleton.pattern_places[branch]
        ]
        filters = []
        for filter_, operator in zip(own, operators, strict=True):
            if filter_.slot >= 0:
                filters.append((filter_.variable, operator, filter_.slot))
                continue
            held.append(index.take(filter_.mentioned))
            filters.append((filter_.variable, operator, len(columns)))
            columns.append(held[-1][filter_.places[chosen]])
        program, constants = arranged(patterns, filters)
        passes = np.full(len(chosen), index.terms.passes, np.int32)
        given = [passes if c is Passes.PASSES else columns[c] for c in constants]
        matrix = np.ascontiguousarray(np.array(given, np.int32).reshape(len(given), len(chosen)).T)
        any_will_do = not self.exact or self.skeleton.form is Form.ASK
        rows = index.add_many(program, matrix, any_will_do=any_will_do)
        for some in held:
            index.release(some)
        return rows


def _known(node: Position) -> Term | None:
    """Return what stands in a place of every pattern, ``None`` for anything."""
    return None if node is None or isinstance(node, Variable) else _term(node)


def _term(node: Position) -> Term:
    assert isinstance(node, Term)
    return node

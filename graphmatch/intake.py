"""Taking very many subscriptions in at once, and filing very many anew.

What is counted, indexed and kept of a subscription is here done for all of a skeleton
(`graphmatch.bulk`); those that need to be looked at by themselves take the usual way.

Cost: some 15 µs a subscription, reading its text not counted; as much as by itself where few
have its skeleton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from graphmatch.bulk import Sheet
from graphmatch.bulk_constants import Constants, Mask
from graphmatch.index.runs import Ids, Longs
from graphmatch.index.store import SubscriptionStore
from graphmatch.matcher import DuplicateError
from graphmatch.standing import Standing
from semantic.errors import GraphMatchError, SubscriptionError
from semantic.sparql.columns import Group, Grouped
from semantic.sparql.query import Mention, Query
from semantic.subscription import Subscription

_TERMS = 1 << 16
"""So many constants get ids between two publications."""
_FEW = 4
"""So few subscriptions of a skeleton are filed one by one."""


class Intake:
    """Takes subscriptions into what stands already.

    Parameters
    ----------
    standing
        The subscriptions that there are.
    constants
        Those of the subscriptions that come, under what is known.
    add
        Takes in one by itself, with its place in the order of subscribing.
    """

    def __init__(
        self,
        standing: Standing,
        constants: Constants,
        add: Callable[[Subscription, int], None],
    ) -> None:
        self._standing, self._constants, self._add = standing, constants, add
        self._given = len(constants.terms)
        self._ids = np.zeros(0, np.int32)

    def prepare(self) -> bool:
        """Give ids to some more of the constants; return whether all have one now."""
        terms, begin = self._constants.terms, len(self._ids)
        some = slice(begin, min(begin + _TERMS, self._given))
        ids = self._standing.index.terms.take(terms[some], self._constants.scales[some])
        self._ids = np.concatenate((self._ids, ids))
        return len(self._ids) == self._given

    def finish(self) -> None:
        """Give back what only taking in needed."""
        self._standing.index.terms.release(self._ids)

    def take_in(
        self, grouped: Grouped, serials: Longs, comments: Mapping[int, str]
    ) -> list[tuple[int, GraphMatchError]]:
        """Take subscriptions in; return the rows of those that are refused, and why.

        Parameters
        ----------
        grouped
            The queries by skeleton.
        serials
            By row: its place in the order of subscribing.
        comments
            By row: what the subscriber says, where there is something.
        """
        refused: list[tuple[int, GraphMatchError]] = list(grouped.refused)
        groups, duplicates = self._distinct(grouped.groups)
        refused += duplicates
        sheets = [Sheet(g, self._constants) for g in groups if len(g.ids) >= _FEW]
        for sheet in sheets:
            sheet.look_for_repeated(self._standing.index, self._ids)
        self._ask(sheets)
        for sheet in sheets:
            self._keep(sheet, serials, comments)
        slow = [(sheet.group, n) for sheet in sheets for n in sheet.slow()]
        slow += [(g, n) for g in groups if len(g.ids) < _FEW for n in range(len(g.ids))]
        for group, n in sorted(slow, key=lambda one: one[0].rows[one[1]]):
            row = group.rows[n]
            comment = comments.get(row, "")
            constants = map(grouped.terms.__getitem__, group.constants[n].tolist())
            query = Query(group.skeleton, tuple(constants))
            try:
                subscription = Subscription.of(group.ids[n], query, comment)
                self._add(subscription, int(serials[row]))
            except SubscriptionError as error:
                refused.append((row, error))
        return sorted(refused, key=lambda one: one[0])

    def _distinct(
        self, groups: Sequence[Group]
    ) -> tuple[list[Group], list[tuple[int, GraphMatchError]]]:
        """Leave out whose id is taken, or stood before."""
        ids = [id for group in groups for id in group.ids]
        rows = np.array([row for group in groups for row in group.rows], np.int64)
        order = np.argsort(rows)
        repeated = np.zeros(len(ids), np.bool_)
        repeated[order] = self._standing.store.repeated([ids[n] for n in order.tolist()])
        if not repeated.any():
            return list(groups), []
        refused: list[tuple[int, GraphMatchError]] = [
            (int(rows[n]), DuplicateError(ids[n])) for n in np.flatnonzero(repeated).tolist()
        ]
        kept, end = [], 0
        for group in groups:
            begin, end = end, end + len(group.ids)
            new = np.flatnonzero(~repeated[begin:end]).tolist()
            kept.append(
                replace(
                    group,
                    ids=[group.ids[n] for n in new],
                    rows=[group.rows[n] for n in new],
                    constants=group.constants[new],
                )
            )
        return [group for group in kept if group.ids], refused

    def _ask(self, sheets: Sequence[Sheet]) -> None:
        """Count what is asked for, and look up what the ontology alone may meet."""
        standing, constants = self._standing, self._constants
        asked = [~sheet.slowly for sheet in sheets]
        standing.mentions.add_counted(self._mentions(sheets, asked))
        standing.knowledge.ask(standing.mentions)
        background = standing.knowledge.evaluator
        places = np.zeros(len(constants.terms), np.bool_)
        for sheet in sheets:
            sheet.mark(places)
        occurring = constants.occurring(background, places)
        for sheet in sheets:
            sheet.look_up(background, occurring)
        alone = [mask & sheet.slowly for mask, sheet in zip(asked, sheets, strict=True)]
        standing.mentions.remove_counted(self._mentions(sheets, alone))

    def _mentions(
        self, sheets: Sequence[Sheet], chosen: Sequence[Mask]
    ) -> Iterator[tuple[Mention, int]]:
        """Yield what some of the subscriptions ask for, and how many of them."""
        pairs = [sheet.mentions(mask) for sheet, mask in zip(sheets, chosen, strict=True)]
        if not pairs:
            return
        terms = [*self._constants.terms, None]  # the last one is that of -1
        codes = (np.concatenate(pairs) + 1) @ np.array([len(terms), 1])
        codes, uses = np.unique(codes, return_counts=True)
        for code, times in zip(codes.tolist(), uses.tolist(), strict=True):
            property_, object_ = divmod(code, len(terms))
            yield (terms[property_ - 1], terms[object_ - 1]), times

    def _keep(self, sheet: Sheet, serials: Longs, comments: Mapping[int, str]) -> None:
        """Index and keep those of a skeleton that need not be looked at by themselves."""
        chosen = np.flatnonzero(~sheet.slowly)
        if not len(chosen):
            return
        index, store = self._standing.index, self._standing.store
        ids = self._ids
        rows = sheet.file(index, ids)
        said, filed = ids[sheet.group.constants[chosen]], ids[sheet.filed[chosen]]
        index.terms.hold(said)
        index.terms.hold(filed[(said != filed).any(axis=1)])
        group = sheet.group
        own = [group.rows[n] for n in chosen.tolist()]
        numbers = store.add_many(
            [group.ids[n] for n in chosen.tolist()],
            sheet.skeleton,
            said,
            rows,
            np.full(len(chosen), sheet.flags, np.uint16),
            filed=filed,
            serials=serials[own],
        )
        if comments:
            for number, row in zip(numbers.tolist(), own, strict=True):
                if row in comments:
                    store.say(number, comments[row])


def regrouped(store: SubscriptionStore, numbers: Ids) -> Grouped:
    """Return subscriptions as they were taken in: their places among `numbers` are the rows."""
    own, shapes = store.skeletons(numbers), store.all_skeletons()
    groups, said = [], []
    for number in np.unique(own).tolist():
        skeleton, rows = shapes[number], np.flatnonzero(own == number)
        assert skeleton is not None
        slots = len(store.constants(int(numbers[rows[0]])))
        said.append(store.constants_of(numbers[rows], slots))
        groups.append((skeleton, rows))
    different = np.unique(np.concatenate([constants.ravel() for constants in said]))
    return Grouped(
        [
            Group(
                skeleton,
                store.names(numbers[rows]),
                rows.tolist(),
                np.searchsorted(different, constants).astype(np.int32),
            )
            for (skeleton, rows), constants in zip(groups, said, strict=True)
        ],
        store.terms_of(different),
        (),
    )


def parts(grouped: Grouped, size: int) -> Iterator[tuple[int, Grouped]]:
    """Yield so many rows of subscriptions at a time, with the number of the first of them."""
    rows = [np.asarray(group.rows) for group in grouped.groups]
    refused = [row for row, _ in grouped.refused]
    end = max([-1, *refused, *(int(own[-1]) for own in rows)]) + 1
    for begin in range(0, end, size):
        groups = []
        for group, own in zip(grouped.groups, rows, strict=True):
            first, last = np.searchsorted(own, [begin, begin + size]).tolist()
            if first < last:
                some = slice(first, last)
                placed = [row - begin for row in group.rows[some]]
                groups.append(Group(group.skeleton, group.ids[some], placed, group.constants[some]))
        errors = [(row - begin, e) for row, e in grouped.refused if begin <= row < begin + size]
        yield begin, Grouped(groups, grouped.terms, errors)

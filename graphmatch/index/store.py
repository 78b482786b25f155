"""Subscriptions as columns of numbers instead of objects: a million of them, 100 bytes each.

A subscription has a number (`graphmatch.index.ids`); by it, columns hold what it says, under which
rows of the index it is filed, and its place in the order of subscribing
(`graphmatch.index.records`). Queries that differ in constants only share a skeleton
(`graphmatch.index.skeletons`). A `Query` is made again when somebody asks for it. Who says a term,
or is filed with a triple pattern, is looked up in postings, which are made when first asked for
(`graphmatch.index.postings`).

Cost: about 65 bytes and the id, 4 bytes a constant, 8 a pattern and constant once postings are
asked for; about half a microsecond to take one in among many, ten by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode
from pyoxigraph import Triple as TripleTerm

from graphmatch.index.ids import IdTable, Written
from graphmatch.index.lookups import Lookups
from graphmatch.index.records import FLAGS, Contents, Flag, RecordTable, check, check_columns
from graphmatch.index.runs import Array, Ids, Longs
from graphmatch.index.skeletons import SkeletonTable
from graphmatch.index.terms import Terms
from semantic.sparql.query import Query, Skeleton
from semantic.terms import Term

_FLAGS = int(FLAGS)


class SubscriptionStore:
    """Subscriptions by number.

    Several threads may read at once while nobody changes the store; `saying` and `asking` count
    as changes. Whoever adds and removes counts the uses of terms and rows: `remove` and `refile`
    return what is no longer held. Methods that take one number raise `ValueError` if it is no
    subscription's; those that take many do not check, but for `names` and `remove`.

    Parameters
    ----------
    terms
        The terms whose ids constants are.

    Examples
    --------
    >>> from semantic.sparql.parse import SubscriptionParser
    >>> query = SubscriptionParser().parse("s", "ASK { <urn:a> <urn:p> ?x }").query
    >>> terms = Terms()
    >>> store = SubscriptionStore(terms)
    >>> number = store.add("s", query.skeleton, terms.take(query.constants), [7], Flag.EXACT)
    >>> store.query(number) == query, store.rows(number)
    (True, array([7], dtype=int32))
    >>> numbers, which = store.owners(np.array([3, 7], np.int32))
    >>> store.names(numbers), which
    (['s'], array([1], dtype=int32))
    >>> store.remove(numbers)
    Contents(terms=array([1, 2], dtype=int32), rows=array([7], dtype=int32))
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._ids = IdTable()
        self._skeletons = SkeletonTable(terms)
        self._records = RecordTable(self._skeletons.slots)
        self._comments: dict[int, str] = {}
        self._flagged: dict[Flag, Ids] = {}
        self._next = 0
        self._lookups = Lookups(self.numbers, self._records, self._skeletons)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: object) -> bool:
        return id in self._ids

    @property
    def nbytes(self) -> dict[str, int]:
        """Bytes of all arrays by part, in use or not; skeletons and comments are not counted."""
        return {
            "ids": self._ids.nbytes,
            "records": self._records.nbytes,
            "skeletons": self._skeletons.nbytes,
            "postings": self._lookups.nbytes,
        }

    # -- coming and going -------------------------------------------------------------------

    def add(
        self,
        id: str,
        skeleton: Skeleton,
        constants: Sequence[int] | Ids,
        rows: Sequence[int],
        flags: int,
        *,
        filed: Sequence[int] | Ids | None = None,
        comment: str = "",
        serial: int | None = None,
    ) -> int:
        """Take a subscription in and return its number; see `add_many`."""
        own = np.array([constants], np.int32)
        put = own if filed is None else np.array([filed], np.int32)
        under = np.array([rows], np.int32)
        highest = check(1, own, put, under)
        if flags & ~_FLAGS:
            raise ValueError("a flag is unknown: see Flag")
        self._check_slots(skeleton, own.shape[1])
        number = self._ids.add(id)
        serial = self._next if serial is None else serial
        numbers = np.array([number], np.int32)
        self._enter(number, skeleton, own.shape[1], flags, serial)
        self._write(numbers, own, put, under, highest)
        self._next = max(self._next, serial + 1)
        if comment:
            self._comments[number] = comment
        return number

    def add_many(
        self,
        ids: Sequence[str],
        skeleton: Skeleton,
        constants: Ids,
        rows: Ids,
        flags: NDArray[np.uint16],
        *,
        filed: Ids | None = None,
        serials: Longs | None = None,
    ) -> Ids:
        """Take subscriptions of one skeleton in and return their numbers: all, or none.

        Parameters
        ----------
        ids
            Distinct, n of them.
        constants
            Ids of terms, as the queries say them: shape ``(n, slots)``.
        rows
            The index's rows of each: shape ``(n, k)``; -1 for none. No subscription has one twice.
        flags
            Of each, as in `Flag`: shape ``(n,)``.
        filed
            The constants with roots put in, in base units, as `constants`; they are kept where
            they are others.
        serials
            Where each comes in the order of subscribing: shape ``(n,)``; by default after all
            others.

        Raises
        ------
        DuplicateError
            An id is taken, or is there twice; `repeated` says which are.
        ValueError
            Shapes or types do not fit; a number is negative; a row is there twice.
        """
        filed = constants if filed is None else filed
        highest = check(len(ids), constants, filed, rows)
        check_columns(len(ids), flags, serials)
        self._check_slots(skeleton, constants.shape[1])
        numbers = self._ids.add_many(ids)
        if not len(numbers):
            return numbers
        if serials is None:
            serials = np.arange(self._next, self._next + len(ids))
        self._enter(numbers, skeleton, constants.shape[1], flags, serials)
        self._write(numbers, constants, filed, rows, highest)
        self._next = max(self._next, int(serials.max()) + 1)
        return numbers

    def _check_slots(self, skeleton: Skeleton, slots: int) -> None:
        own = self._skeletons.slots_of(skeleton)
        if own not in (None, slots):
            raise ValueError(f"the skeleton has {own} slots, not {slots}")

    def _enter(
        self,
        numbers: Ids | int,
        skeleton: Skeleton,
        slots: int,
        flags: NDArray[np.uint16] | int,
        serials: Longs | int,
    ) -> None:
        """Write the columns of new numbers."""
        records = self._records
        records.make_room(self._ids.made)
        uses = 1 if isinstance(numbers, int) else len(numbers)
        own = self._skeletons.take(skeleton, slots, uses)
        records.slots = self._skeletons.slots
        records.skeleton[numbers] = own
        records.flags[numbers] = flags
        records.serial[numbers] = serials

    def _write(self, numbers: Ids, constants: Ids, filed: Ids, rows: Ids, highest: int) -> None:
        self._records.write(numbers, constants, filed, rows, highest)
        self._flagged_otherwise(numbers)
        self._lookups.changed(numbers)

    def repeated(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """Say which of the ids are taken, or stand before among these."""
        return self._ids.repeated(ids)

    def remove(self, numbers: Ids) -> Contents:
        """Take distinct subscriptions away; return what they held.

        Raises
        ------
        ValueError
            A number is no subscription's, or named twice.
        """
        self._ids.remove(numbers)
        self._flagged_otherwise(numbers)
        held = self._records.drop(numbers)
        self._skeletons.release(self._records.skeleton[numbers])
        if self._comments:
            for number in numbers.tolist():
                self._comments.pop(number, None)
        self._lookups.gone(len(numbers))
        return held

    def refile(
        self, number: int, rows: Sequence[int], flags: int, *, filed: Ids | None = None
    ) -> Contents:
        """File a subscription otherwise: other rows, flags, roots.

        Returns
        -------
        held
            The rows that it had, and the constants that it was filed with where they were kept.

        Raises
        ------
        ValueError
            As in `add_many`, or the number is no subscription's.
        """
        constants = self.constants(number).reshape(1, -1)
        put = constants if filed is None else filed.reshape(1, -1)
        under, numbers = np.array([rows], np.int32), np.array([number], np.int32)
        highest = check(1, constants, put, under)
        check_columns(1, np.array([flags], np.uint16))
        self._flagged_otherwise(numbers)
        held = self._records.drop(numbers)
        self._records.make_room(0)
        self._records.flags[number] = flags
        self._write(numbers, constants, put, under, highest)
        return Contents(held.terms[constants.size :], held.rows)

    # -- by number --------------------------------------------------------------------------

    def number(self, id: str) -> int:
        """Return the number of an id, -1 if there is no such subscription."""
        return self._ids.number(id)

    def name(self, number: int) -> str:
        """Return the id of a number."""
        return self._ids.name(number)

    def names(self, numbers: Ids) -> list[str]:
        """Return the ids of numbers."""
        return self._ids.names(numbers)

    def written(self, numbers: Ids) -> Written:
        """Return the ids of numbers as bytes, for whoever may not look at all of them."""
        return self._ids.written(numbers)

    def numbers(self) -> Ids:
        """Return all numbers, ascending."""
        return self._ids.numbers()

    def in_order(self, numbers: Ids) -> Ids:
        """Return numbers in the order of subscribing."""
        return numbers[np.argsort(self._records.serial[numbers])]

    @property
    def next_serial(self) -> int:
        """Where the next subscription comes in the order of subscribing."""
        return self._next

    def serials(self, numbers: Ids) -> Longs:
        """Return where each comes in the order of subscribing."""
        return self._records.serial[numbers]

    def flags(self, numbers: Ids) -> NDArray[np.uint16]:
        """Return what is known of each, as in `Flag`."""
        return self._records.flags[numbers] & FLAGS

    def skeletons(self, numbers: Ids) -> Ids:
        """Return the number of each one's skeleton; `all_skeletons` has these."""
        return self._records.skeleton[numbers]

    def skeleton(self, number: int) -> Skeleton:
        """Return the skeleton of a subscription's query."""
        return self._skeletons[int(self._records.skeleton[self._known(number)])]

    def constants(self, number: int, *, filed: bool = False) -> Ids:
        """Return the ids of a subscription's constants: as it says them, or as it is filed."""
        return self._records.constants(self._known(number), filed=filed)

    def constants_of(self, numbers: Ids, slots: int) -> Ids:
        """Return the ids of the constants, as they say them, of subscriptions of one skeleton.

        Returns
        -------
        constants
            Shape (subscriptions, slots).
        """
        return self._records.constants_of(numbers, slots)

    def rows(self, number: int) -> Ids:
        """Return a subscription's rows."""
        return self._records.contents(np.array([self._known(number)], np.int32)).rows

    def query(self, number: int, *, filed: bool = False) -> Query:
        """Return a subscription's query: as it was submitted, or as it is filed."""
        ids = self.constants(number, filed=filed)
        return Query(self.skeleton(number), tuple(self.terms_of(ids)))

    def say(self, number: int, comment: str) -> None:
        """Note what the subscriber says about a subscription."""
        self._comments[self._known(number)] = comment

    def comment(self, number: int) -> str:
        """Return what the subscriber says about a subscription."""
        return self._comments.get(self._known(number), "")

    def comments(self, numbers: Ids) -> dict[int, str]:
        """Return what subscribers say, by place among the numbers, where they say something."""
        known = self._comments
        found = (
            (place, known.get(n, "")) for place, n in enumerate(numbers.tolist() if known else ())
        )
        return {place: comment for place, comment in found if comment}

    def terms_of(self, ids: Ids) -> list[Term]:
        """Return the terms that ids stand for."""
        return list(map(self._term, ids.tolist()))

    def _term(self, id: int) -> Term:
        term = self._terms.term(id)
        assert isinstance(term, NamedNode | Literal | BlankNode | TripleTerm)
        return term

    def _known(self, number: int) -> int:
        if not self._ids.has(number):
            raise ValueError(f"no subscription has the number {number}")
        return number

    # -- looked up --------------------------------------------------------------------------

    def owners(self, rows: Ids) -> tuple[Ids, Ids]:
        """Return the subscriptions of rows.

        Returns
        -------
        numbers
            One row's after the other's, in no order; one of several rows is there several times.
        which
            For each the place of its row in `rows`.
        """
        return self._records.owned.of(rows)

    def flagged(self, flag: Flag) -> Ids:
        """Return, ascending, the numbers that have one of some flags; the array is kept."""
        found = self._flagged.get(flag)
        if found is None:
            numbers = self.numbers()
            found = numbers[(self._records.flags[numbers] & np.uint16(flag)) != 0]
            self._flagged[flag] = found
        return found

    def _flagged_otherwise(self, numbers: Ids) -> None:
        """Forget who has which flags, where these numbers matter."""
        if self._flagged:
            some = int(np.bitwise_or.reduce(self._records.flags[numbers], initial=0))
            self._flagged = {flag: n for flag, n in self._flagged.items() if not flag & some}

    def saying(self, terms: Ids) -> Ids:
        """Return, in the order of subscribing, who says one of some terms, given by id."""
        return self.in_order(self._lookups.saying(terms))

    def asking(self, patterns: Ids) -> Ids:
        """Return, in the order of subscribing, who is filed with one of some triple patterns.

        Parameters
        ----------
        patterns
            Ids of terms, -1 for a variable: shape ``(patterns, 3)``.
        """
        if patterns.dtype != np.int32 or patterns.ndim != 2 or patterns.shape[1] != 3:
            raise ValueError("patterns are of int32, three in a row")
        return self.in_order(self._lookups.asking(patterns))

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return all that is to be saved but skeletons; `of_arrays` makes the same store of it."""
        text = "".join(self._comments.values()).encode("utf-8", "surrogatepass")
        parts: dict[str, dict[str, Array]] = {
            "ids": self._ids.arrays(),
            "records": self._records.arrays(self._ids.made),
            "skeletons": self._skeletons.arrays(),
            "comments": {
                "numbers": np.array(list(self._comments), np.int32),
                "lengths": np.array(list(map(len, self._comments.values())), np.int64),
                "text": np.frombuffer(text, np.uint8),
            },
            "next": {"serial": np.array([self._next])},
        }
        return {f"{part}.{name}": a for part, own in parts.items() for name, a in own.items()}

    @classmethod
    def of_arrays(
        cls, terms: Terms, skeletons: Sequence[Skeleton | None], arrays: Mapping[str, Array]
    ) -> SubscriptionStore:
        """Return the store that gave these arrays and skeletons, over the terms that it had.

        The arrays may be read-only and mapped from a file; one is copied when the store first
        changes what is in it.
        """
        parts: dict[str, dict[str, Array]] = {}
        for name, array in arrays.items():
            part, _, own = name.partition(".")
            parts.setdefault(part, {})[own] = array
        store = cls(terms)
        store._ids = IdTable.of_arrays(parts["ids"])
        store._skeletons = SkeletonTable.of_arrays(terms, skeletons, parts["skeletons"])
        store._records = RecordTable.of_arrays(store._skeletons.slots, parts["records"])
        store._comments = _comments(parts["comments"])
        store._next = int(parts["next"]["serial"][0])
        store._lookups = Lookups(store.numbers, store._records, store._skeletons)
        return store

    def all_skeletons(self) -> Sequence[Skeleton | None]:
        """Return the skeletons by number, ``None`` where a number is free: as it is now."""
        return self._skeletons.all()


def _comments(arrays: Mapping[str, Array]) -> dict[int, str]:
    text = arrays["text"].tobytes().decode("utf-8", "surrogatepass")
    ends = np.cumsum(arrays["lengths"]).tolist()
    pieces = (text[start:end] for start, end in zip([0, *ends], ends, strict=False))
    return dict(zip(arrays["numbers"].tolist(), pieces, strict=True))

"""Subscriptions as columns against plain dictionaries, and what they promise to cost."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pyoxigraph import Literal, NamedNode, Variable

from graphmatch.index import record_kernels
from graphmatch.index.postings import Postings
from graphmatch.index.record_kernels import NUMBER
from graphmatch.index.records import Flag
from graphmatch.index.store import SubscriptionStore
from graphmatch.index.terms import Terms
from graphmatch.matcher import DuplicateError
from semantic.sparql.parse import SubscriptionParser
from semantic.sparql.query import Query, Skeleton
from semantic.sparql.slots import fill

ROOT = Path(__file__).parents[3]
EXAMPLES = int(os.environ.get("STORE_EXAMPLES", "60"))
COMPILED = not os.environ.get("NUMBA_DISABLE_JIT")

QUERIES = (
    "SELECT * { ?s ?p ?o }",
    "SELECT ?x { ?x a <urn:C> }",
    "SELECT ?x { { ?x <urn:p> ?y . <urn:a> <urn:q> ?x } UNION { ?x <urn:p> ?x } }",
    "ASK { ?x <urn:p> (<urn:a> 5) FILTER(?x != <urn:b>) }",
)
TERMS = [NamedNode(f"urn:{n}") for n in range(6)] + [Literal("x"), Literal("x", language="en")]
ROWS = 12
Pattern = tuple[int, int, int]


@dataclass(frozen=True)
class Known:
    """A subscription as the tests know it."""

    number: int
    query: int
    constants: tuple[int, ...]
    filed: tuple[int, ...]
    rows: tuple[int, ...]
    flags: int
    comment: str
    serial: int


def skeletons() -> list[tuple[Skeleton, int]]:
    parser = SubscriptionParser()
    queries = [parser.parse("s", text).query for text in QUERIES]
    return [(query.skeleton, len(query.constants)) for query in queries]


SKELETONS = skeletons()
names = st.integers(0, 60).map("s{}".format)
flags = st.integers(0, sum(Flag))


def table(rows: list[tuple[int, ...]], width: int) -> np.ndarray:
    return np.array(rows, np.int32).reshape(len(rows), width)


def frozen(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    copies = {name: array.copy() for name, array in arrays.items()}
    for copy in copies.values():
        copy.flags.writeable = False
    return copies


class Life(RuleBasedStateMachine):
    """Subscriptions come and go."""

    @initialize()
    def begin(self) -> None:
        self.terms = Terms()
        self.ids = self.terms.take(TERMS).tolist()
        self.before = len(self.terms)
        self.store = SubscriptionStore(self.terms)
        self.known: dict[str, Known] = {}
        self.next = 0

    def constants(self, data: st.DataObject, slots: int) -> tuple[int, ...]:
        one = st.sampled_from(self.ids)
        return tuple(data.draw(st.lists(one, min_size=slots, max_size=slots)))

    def drawn(self, data: st.DataObject, query: int) -> Known:
        slots = SKELETONS[query][1]
        said = self.constants(data, slots)
        filed = said if data.draw(st.booleans()) else self.constants(data, slots)
        rows = data.draw(st.lists(st.integers(0, ROWS - 1), max_size=3, unique=True))
        return Known(-1, query, said, filed, tuple(rows), data.draw(flags), "", -1)

    @rule(
        id=names,
        query=st.integers(0, 3),
        comment=st.sampled_from(["", "a\0b", "é"]),
        data=st.data(),
    )
    def add(self, id: str, query: int, comment: str, data: st.DataObject) -> None:
        one = self.drawn(data, query)
        serial = data.draw(st.none() | st.just(self.next + 5))
        ids = np.array(one.constants, np.int32), np.array(one.filed, np.int32)

        def put() -> int:
            return self.store.add(
                id,
                SKELETONS[query][0],
                ids[0],
                one.rows,
                one.flags,
                filed=ids[1] if one.filed != one.constants else None,
                comment=comment,
                serial=serial,
            )

        if id in self.known:
            with pytest.raises(DuplicateError):
                put()
            return
        given = self.next if serial is None else serial
        self.known[id] = replace(one, number=put(), comment=comment, serial=given)
        self.next = given + 1

    @rule(ids=st.lists(names, max_size=20), query=st.integers(0, 3), data=st.data())
    def add_many(self, ids: list[str], query: int, data: st.DataObject) -> None:
        skeleton, slots = SKELETONS[query]
        some = [self.drawn(data, query) for _ in ids]
        own = [(*one.rows, -1, -1, -1)[:3] for one in some]
        arrays = (
            table([one.constants for one in some], slots),
            table(own, 3),
            np.array([one.flags for one in some], np.uint16),
        )
        filed = table([one.filed for one in some], slots)
        if len(set(ids)) < len(ids) or set(ids) & self.known.keys():
            with pytest.raises(DuplicateError):
                self.store.add_many(ids, skeleton, *arrays, filed=filed)
            return
        numbers = self.store.add_many(ids, skeleton, *arrays, filed=filed).tolist()
        for id, one, number in zip(ids, some, numbers, strict=True):
            self.known[id] = replace(one, number=number, serial=self.next)
            self.next += 1

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from([*self.known, ""]), unique=True))
        gone = [self.known.pop(id) for id in ids if id in self.known]
        held = self.store.remove(np.array([one.number for one in gone], np.int32))
        kept = [id for one in gone if one.filed != one.constants for id in one.filed]
        said = [id for one in gone for id in one.constants]
        assert sorted(held.terms.tolist()) == sorted(said + kept)
        assert sorted(held.rows.tolist()) == sorted(row for one in gone for row in one.rows)

    @rule(data=st.data())
    def refile(self, data: st.DataObject) -> None:
        if not self.known:
            return
        id = data.draw(st.sampled_from(list(self.known)))
        old = self.known[id]
        new = self.drawn(data, old.query)
        filed = np.array(new.filed, np.int32)
        held = self.store.refile(old.number, new.rows, new.flags, filed=filed)
        assert sorted(held.rows.tolist()) == sorted(old.rows)
        assert held.terms.tolist() == ([] if old.filed == old.constants else list(old.filed))
        self.known[id] = replace(old, filed=new.filed, rows=new.rows, flags=new.flags)

    @rule()
    def save(self) -> None:
        arrays = frozen(self.store.arrays())
        own = self.store.all_skeletons()
        self.store = SubscriptionStore.of_arrays(self.terms, own, arrays)

    @rule(data=st.data())
    def says(self, data: st.DataObject) -> None:
        wanted = data.draw(st.lists(st.sampled_from([*self.ids, -1, 10**6])))
        expected = [one for one in self.known.values() if set(one.constants) & set(wanted)]
        self.agree(self.store.saying(np.array(wanted, np.int32)), expected)

    @rule(data=st.data())
    def asks(self, data: st.DataObject) -> None:
        present = sorted({p for one in self.known.values() for p in self.patterns(one)})
        place = st.sampled_from([*self.ids, -1, -1])
        some = st.tuples(place, place, place)
        some = st.sampled_from(present) | some if present else some
        wanted = data.draw(st.lists(some, max_size=4))
        expected = [one for one in self.known.values() if self.patterns(one) & set(wanted)]
        self.agree(self.store.asking(table(wanted, 3)), expected)

    def patterns(self, one: Known) -> set[Pattern]:
        constants = [self.terms.term(id) for id in one.filed]
        found = set()
        for branch in SKELETONS[one.query][0].branches:
            for pattern in branch.patterns:
                nodes = (fill(node, constants) for node in pattern)
                s, p, o = (-1 if isinstance(n, Variable) else self.terms.ids[n] for n in nodes)
                found.add((s, p, o))
        return found

    def agree(self, numbers: np.ndarray, expected: list[Known]) -> None:
        ordered = sorted(expected, key=lambda one: one.serial)
        assert numbers.tolist() == [one.number for one in ordered]

    @invariant()
    def is_what_is_known(self) -> None:
        store = self.store
        assert len(store) == len(self.known)
        if not self.known:
            assert len(self.terms) == self.before  # patterns' own terms are given back
        for id, one in self.known.items():
            number = one.number
            assert (store.number(id), store.name(number), id in store) == (number, id, True)
            assert tuple(store.constants(number).tolist()) == one.constants
            assert tuple(store.constants(number, filed=True).tolist()) == one.filed
            skeleton = SKELETONS[one.query][0]
            assert store.query(number) == Query(
                skeleton, tuple(map(self.terms.term, one.constants))
            )
            assert store.skeleton(number) is skeleton
            assert sorted(store.rows(number).tolist()) == sorted(one.rows)
            assert store.comment(number) == one.comment
        numbers = store.numbers()
        self.agree(store.in_order(numbers), list(self.known.values()))
        by_number = {one.number: one for one in self.known.values()}
        ordered = [by_number[number] for number in numbers.tolist()]
        assert store.flags(numbers).tolist() == [one.flags for one in ordered]
        assert store.serials(numbers).tolist() == [one.serial for one in ordered]
        for flag in (Flag.UNINDEXED, Flag.UNINDEXED | Flag.SUSPENDED):
            flagged = [one.number for one in ordered if one.flags & flag]
            assert store.flagged(flag).tolist() == flagged

    @invariant()
    def has_the_owners_that_are_known(self) -> None:
        rows = np.array([-1, *range(ROWS + 2), 10**6, 3], np.int32)
        numbers, which = self.store.owners(rows)
        assert sorted(which.tolist()) == which.tolist()
        found = sorted(zip(rows[which].tolist(), numbers.tolist(), strict=True))
        asked = [one for one in self.known.values() for row in one.rows if row == 3]
        owned = [(row, one.number) for one in self.known.values() for row in one.rows]
        assert found == sorted(owned + [(3, one.number) for one in asked])


Life.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=25, deadline=None)
TestLife = Life.TestCase


def many(count: int, owners: int = 1) -> tuple[SubscriptionStore, np.ndarray, list[str]]:
    """So many subscriptions of four constants, each row of which has so many owners."""
    query = (
        SubscriptionParser()
        .parse("s", "SELECT ?x { <urn:s> <urn:p> ?x . ?x <urn:q> ?y . ?y ?z <urn:o> }")
        .query
    )
    ids = [f"subscriber-{n}/topic" for n in range(count)]
    random = np.random.default_rng(3)
    constants = random.integers(0, count, (count, len(query.constants)), dtype=np.int32)
    rows = (np.arange(count, dtype=np.int32) // owners).reshape(-1, 1)
    store = SubscriptionStore(Terms())
    store.add_many(ids, query.skeleton, constants, rows, np.ones(count, np.uint16))
    return store, constants, ids


@pytest.mark.skipif(not COMPILED, reason="too slow uncompiled")
@pytest.mark.parametrize("owners", [1, 2, 100, 100_000])
def test_what_it_costs(owners: int) -> None:
    count = 100_000
    store, constants, ids = many(count, owners)
    text = sum(map(len, ids))
    assert constants.shape == (count, 4)
    assert sum(store.nbytes.values()) - text < 110 * count
    assert store.nbytes["postings"] == 0
    numbers, which = store.owners(np.arange(count, dtype=np.int32))
    assert np.array_equal(np.sort(numbers), np.arange(count))
    assert np.array_equal(which, numbers // owners)
    store.saying(np.array([5], np.int32))
    assert store.nbytes["postings"] <= 8 * 4 * count
    store.asking(np.array([[-1, 5, -1]], np.int32))
    assert store.nbytes["postings"] <= 8 * 7 * count
    for first in range(0, count, count // 10):
        held = store.remove(np.arange(first, first + count // 10, dtype=np.int32))
        assert len(held.rows) == count // 10
    assert len(store) == 0
    assert sum(store.nbytes.values()) < 55 * count  # the places of numbers and rows stay


def test_that_a_shared_row_loses_its_owners_one_by_one() -> None:
    store, _, _ = many(300, 300)
    order = np.random.default_rng(1).permutation(300).astype(np.int32)
    left = set(range(300))
    for number in order:
        store.remove(np.array([number]))
        left.remove(int(number))
        numbers, _ = store.owners(np.zeros(1, np.int32))
        assert set(numbers.tolist()) == left
        assert len(numbers) == len(left)


def test_that_room_does_not_grow_with_coming_and_going() -> None:
    store, _, _ = many(200, 7)
    skeleton = store.skeleton(0)
    random = np.random.default_rng(5)
    sizes = []
    for turn in range(60):
        store.remove(random.permutation(store.numbers())[:150])
        ids = [f"{turn}/{n:03}" for n in range(150)]
        constants = random.integers(0, 9, (150, 4), dtype=np.int32)
        rows = random.permutation(40)[:2].astype(np.int32).reshape(1, 2).repeat(150, 0)
        store.add_many(ids, skeleton, constants, rows, np.ones(150, np.uint16))
        sizes.append(sum(store.nbytes.values()))
    assert max(sizes[30:]) <= 1.1 * max(sizes[:30])


def test_that_postings_are_read_anew_only_where_something_changed() -> None:
    read = []

    def postings_of(numbers: np.ndarray) -> np.ndarray:
        read.append(len(numbers))
        return numbers.astype(np.int64) % 10 << NUMBER | numbers

    everybody = np.arange(1000, dtype=np.int32)
    postings = Postings(lambda: everybody, postings_of)
    postings.changed(everybody)
    assert not read
    assert len(postings.candidates(np.array([3, 4]))) == 200
    for n in range(900):
        postings.changed(np.array([n], np.int32))
        assert len(postings.candidates(np.array([3, 4]))) == 200
    assert sum(read) == 1000 + 900
    assert postings.nbytes <= 8 * 2000
    postings.gone(99)
    assert postings.nbytes
    postings.gone(1)
    assert postings.nbytes == 0
    assert len(postings.candidates(np.array([3]))) == 100
    assert read[-1] == 1000


def test_that_only_what_is_there_now_is_found() -> None:
    """Few changes among many, so that old postings are still there."""
    random = np.random.default_rng(11)
    store, constants, _ = many(400)
    skeleton = store.skeleton(0)
    said = {n: (row, row) for n, row in enumerate(constants.tolist())}
    plain = Postings(lambda: np.empty(0, np.int32), lambda numbers: numbers.astype(np.int64))
    assert plain.candidates(np.array([1])).size == 0
    reused = 0
    for turn in range(60):
        gone, moved = random.choice(sorted(said), 2, replace=False).tolist()
        asked = said[gone][0], said[moved]
        store.remove(np.array([gone], np.int32))
        del said[gone]
        if turn % 3:
            row = random.integers(0, 400, 4, dtype=np.int32)
            number = store.add(f"new/{turn}", skeleton, row, [], 0)
            reused += number == gone
            said[number] = (row.tolist(), row.tolist())
        filed = random.integers(0, 400, 4, dtype=np.int32)
        store.refile(moved, [], 0, filed=filed)
        said[moved] = (said[moved][0], filed.tolist())
        wanted = [*asked[0], *asked[1][0], int(filed[0])]
        found = store.saying(np.array(wanted, np.int32)).tolist()
        assert sorted(found) == [n for n in sorted(said) if set(said[n][0]) & set(wanted)]
        pairs = [asked[0], *asked[1], filed.tolist()]
        places = pattern_slots(skeleton)
        patterns = {at(slots, pair) for pair in pairs for slots in places}
        found = store.asking(table(sorted(patterns), 3)).tolist()
        own = {n: {at(slots, filed) for slots in places} for n, (_, filed) in said.items()}
        assert sorted(found) == [n for n in sorted(said) if own[n] & patterns]
    assert reused == 40


@pytest.mark.skipif(COMPILED, reason="a compiled hash cannot be exchanged")
def test_that_patterns_of_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_kernels, "_hash", lambda *_: 7)
    test_that_only_what_is_there_now_is_found()


def pattern_slots(skeleton: Skeleton) -> list[list[int | None]]:
    """Return for each pattern the slots of its places, which are all it has."""
    names = [NamedNode(f"urn:{n}") for n in range(4)]
    patterns = [p for branch in skeleton.branches for p in branch.patterns]
    filled = [[fill(node, names) for node in pattern] for pattern in patterns]
    return [[names.index(n) if n in names else None for n in nodes] for nodes in filled]


def at(slots: list[int | None], constants: list[int]) -> Pattern:
    s, p, o = (-1 if slot is None else constants[slot] for slot in slots)
    return s, p, o


def test_what_cannot_be_added() -> None:
    store, _, _ = many(3)
    skeleton = store.skeleton(0)
    four, row = np.zeros((1, 4), np.int32), np.zeros((1, 1), np.int32)
    flags = np.zeros(1, np.uint16)
    for constants, rows, given, message in (
        (four.astype(np.int64), row, flags, "int32"),
        (four[0], row, flags, "two dimensions"),
        (np.zeros((2, 4), np.int32), row, flags, "do not fit"),
        (np.zeros((1, 3), np.int32), row, flags, "4 slots, not 3"),
        (four - 1, row, flags, "0 or more"),
        (four, row - 2, flags, "rows are 0 or more"),
        (four, np.zeros((1, 2), np.int32), flags, "a row twice"),
        (four, row, flags.astype(np.int32), "uint16"),
        (four, row, flags + np.uint16(64), "unknown"),
    ):
        with pytest.raises(ValueError, match=message):
            store.add_many(["new"], skeleton, constants, rows, given)
    with pytest.raises(ValueError, match="unknown"):
        store.add("new", skeleton, four[0], [0], 64)
    with pytest.raises(ValueError, match="int64"):
        store.add_many(["new"], skeleton, four, row, flags, serials=np.zeros(2, np.int64))
    assert len(store) == 3
    assert "new" not in store
    with pytest.raises(ValueError, match="three in a row"):
        store.asking(row)
    for number in (-1, 3):
        for ask in (store.query, store.rows, store.comment, store.constants):
            with pytest.raises(ValueError, match="no subscription"):
                ask(number)


def test_that_saved_arrays_stay_as_they_are(tmp_path: Path) -> None:
    store, constants, ids = many(500, 3)
    for name, array in store.arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    files = sorted(tmp_path.iterdir())
    before = [path.read_bytes() for path in files]
    mapped = {path.stem: np.load(path, mmap_mode="r") for path in files}
    again = SubscriptionStore.of_arrays(Terms(), store.all_skeletons(), mapped)
    assert again.names(again.numbers()) == ids
    assert again.saying(constants[0]).tolist() == store.saying(constants[0]).tolist()
    for change in (store, again):
        change.remove(np.arange(0, 400, 2, dtype=np.int32))
        change.add("new", change.skeleton(1), constants[0], [3, 9], 1)
    for name, array in again.arrays().items():
        assert np.array_equal(array, store.arrays()[name]), name
    assert [path.read_bytes() for path in files] == before


def test_the_kernels_without_compiling_them() -> None:
    """numba's own switch: the same loops run as Python, where a bad index is an error."""
    if not COMPILED:
        return
    files = [__file__, str(Path(__file__).with_name("test_store_ids.py"))]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "STORE_EXAMPLES": "12"},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout, ran.stdout

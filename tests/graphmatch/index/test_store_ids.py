"""A table of ids against a dictionary, and what it promises to cost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from graphmatch.index.ids import IdTable
from graphmatch.matcher import DuplicateError

ROOT = Path(__file__).parents[3]
EXAMPLES = int(os.environ.get("STORE_EXAMPLES", "60"))
COMPILED = not os.environ.get("NUMBA_DISABLE_JIT")

letters = st.text(st.sampled_from("ab/é漢🎉\0\ud800"), max_size=3)
names = st.one_of(letters, st.integers(0, 40).map("subscriber/{}".format))


def numbers_of(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.int32)


def frozen(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Copies that cannot be written on, as those that are mapped from a file."""
    copies = {name: array.copy() for name, array in arrays.items()}
    for copy in copies.values():
        copy.flags.writeable = False
    return copies


class Life(RuleBasedStateMachine):
    """Ids come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.table = IdTable(seed=3)
        self.known: dict[str, int] = {}

    @rule(id=names)
    def add(self, id: str) -> None:
        if id in self.known:
            with pytest.raises(DuplicateError):
                self.table.add(id)
        else:
            number = self.table.add(id)
            assert number not in self.known.values()
            self.known[id] = number

    @rule(ids=st.lists(names, max_size=30))
    def add_many(self, ids: list[str]) -> None:
        seen = set(self.known)
        repeated = [id in seen or bool(seen.add(id)) for id in ids]
        assert self.table.repeated(ids).tolist() == repeated
        if any(repeated):
            with pytest.raises(DuplicateError) as caught:
                self.table.add_many(ids)
            assert caught.value.problem.where is not None
            assert caught.value.problem.where.source == ids[repeated.index(True)]
            ids = [id for id, twice in zip(ids, repeated, strict=True) if not twice]
        numbers = self.table.add_many(ids).tolist()
        assert not set(numbers) & set(self.known.values())
        assert len(set(numbers)) == len(ids)
        self.known |= dict(zip(ids, numbers, strict=True))

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from([*self.known, ""]), unique=True))
        self.table.remove(numbers_of([self.known.pop(id) for id in ids if id in self.known]))

    @rule(data=st.data())
    def remove_what_is_not_there(self, data: st.DataObject) -> None:
        free = max(self.known.values(), default=-1) + 1
        wrong = data.draw(st.sampled_from([-1, free, *self.known.values()]))
        with pytest.raises(ValueError, match="not in use, or is named twice"):
            self.table.remove(numbers_of([*self.known.values(), wrong]))

    @rule()
    def save(self) -> None:
        self.table = IdTable.of_arrays(frozen(self.table.arrays()))

    @invariant()
    def is_what_is_known(self) -> None:
        assert len(self.table) == len(self.known)
        assert self.table.numbers().tolist() == sorted(self.known.values())
        numbers = numbers_of(list(self.known.values()))
        assert self.table.names(numbers) == list(self.known)
        written = self.table.written(numbers)
        assert [written[n] for n in range(len(written))] == list(self.known)
        assert written[1:-1] == list(self.known)[1:-1]
        for id, number in self.known.items():
            assert self.table.number(id) == number
            assert self.table.name(number) == id
        assert "nobody" not in self.table
        assert 1 not in self.table


Life.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=25, deadline=None)
TestLife = Life.TestCase


def test_numbers_that_nobody_has() -> None:
    table = IdTable()
    table.add("a")
    for ask in (table.name, lambda n: table.names(numbers_of([0, n]))):
        for number in (-1, 1):
            with pytest.raises(ValueError, match=r"number"):
                ask(number)


def test_a_batch_with_an_id_twice_leaves_nothing_behind() -> None:
    table = IdTable(seed=1)
    table.add_many(["a", "b"])
    before = {name: array.copy() for name, array in table.arrays().items()}
    with pytest.raises(DuplicateError):
        table.add_many(["c", "d", "b"])
    assert table.add_many(["c"]).tolist() == [2]
    table.remove(numbers_of([2]))
    after = table.arrays()
    for name in ("tags", "arena"):
        assert np.array_equal(after[name][: len(before[name])], before[name]), name


@pytest.mark.skipif(not COMPILED, reason="too slow uncompiled")
def test_what_it_costs() -> None:
    ids = [f"subscriber-{n}/topic" for n in range(100_000)]
    table = IdTable()
    numbers = table.add_many(ids)
    text = sum(map(len, ids))
    assert table.nbytes - text < 30 * len(ids)
    one_by_one = IdTable()
    for id in ids:
        one_by_one.add(id)
    assert one_by_one.nbytes - 1.25 * text < 35 * len(ids)
    table.remove(numbers[1000:])
    assert table.nbytes < 12.5 * len(ids) + 40_000  # a number's place stays
    again = table.add_many(ids[1000:])
    assert set(again.tolist()) == set(numbers[1000:].tolist())
    assert table.nbytes - text < 32 * len(ids)


def test_that_room_does_not_grow_with_coming_and_going() -> None:
    table = IdTable()
    sizes = []
    for turn in range(40):
        numbers = table.add_many([f"{turn}/{n}" for n in range(200)])
        table.remove(numbers)
        sizes.append(table.nbytes)
    assert max(sizes[20:]) <= max(sizes[:20])
    assert table.made == 200


def test_that_a_table_means_the_same_everywhere() -> None:
    """Another process, with other hashes of strings and uncompiled loops, reads it as it is."""
    script = (
        "from graphmatch.index.ids import IdTable\n"
        "table = IdTable(seed=2**31 - 1)\n"
        "table.add_many([f'é/{n}' for n in range(300)])\n"
        "print([a.tobytes().hex() for a in table.arrays().values()])\n"
    )
    told = []
    for disabled in "01":
        ran = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled, "PYTHONHASHSEED": f"7{disabled}"},
            check=True,
        )
        told.append(ran.stdout)
    assert told[0] == told[1]


def test_ids_that_were_written_equal_any_sequence_of_them() -> None:
    table = IdTable(seed=1)
    numbers = numbers_of([table.add(id) for id in ("a", "bc", "")])
    written = table.written(numbers)
    assert written == ["a", "bc", ""]
    assert written == table.written(numbers)
    assert written != ["a", "bc"]
    assert hash(written) == hash(("a", "bc", ""))

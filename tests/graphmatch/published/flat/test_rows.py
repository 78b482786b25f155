"""The constraints of conjunctions in arrays: each has its own, and room is used again."""

from __future__ import annotations

from math import nan

from hypothesis import given
from hypothesis import strategies as st

from graphmatch.published.flat.buckets import Values
from graphmatch.published.flat.rows import Rows, Table, passes
from graphmatch.published.jit import kernel

KEYS = "abc"
ROWS = st.dictionaries(
    st.sampled_from(KEYS), st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1
)


@kernel
def _passes(table: Table, number: int, values: Values) -> bool:
    return passes(table, number, values)


@given(st.lists(ROWS, max_size=12), st.data())
def test_that_each_has_its_own(
    given_rows: list[dict[str, tuple[int, int]]], data: st.DataObject
) -> None:
    rows = Rows[str]()
    kept = dict(enumerate(given_rows))
    for number, row in kept.items():
        rows.insert(number, row)
    for number in data.draw(st.sets(st.sampled_from(range(12)))) & kept.keys():
        rows.remove(number, kept[number])
        if data.draw(st.booleans()):
            kept[number] = data.draw(ROWS)
            rows.insert(number, kept[number])
        else:
            del kept[number]
    assert rows.slots.keys() == {key for row in kept.values() for key in row}
    event = data.draw(st.dictionaries(st.sampled_from(KEYS), st.integers(0, 9)))
    values = rows.values(event.items())
    for number, row in kept.items():
        assert rows.of(number) == {rows.slots[key]: ends for key, ends in row.items()}
        right = all(low <= event.get(key, nan) <= high for key, (low, high) in row.items())
        assert _passes(rows.table, number, values) == right


def test_that_room_is_used_again() -> None:
    rows, sizes = Rows[int](), []
    for turn in range(3):
        for number in range(500):
            rows.insert(number, {turn * 100 + number % 100: (0.0, 1.0), turn - 1: (0.0, 1.0)})
        sizes.append((rows.nbytes, len(rows.values([]))))
        for number in range(500):
            rows.remove(number, [turn * 100 + number % 100, turn - 1])
    assert len(set(sizes)) == 1

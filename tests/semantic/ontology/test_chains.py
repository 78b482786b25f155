from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyoxigraph import Literal

from semantic.ontology.chains import follow
from tests.oracle import Pair, roots, undisputed

NAMES = tuple("abcdefg")


@pytest.mark.parametrize(
    ("rows", "ends", "disputed"),
    [
        ("", "", ""),
        ("ab", "ab bb", ""),
        ("ab bc cd", "ad bd cd dd", ""),
        ("aa", "aa", ""),
        ("ab ac bc", "ac bc cc", ""),  # two chains that meet
        ("ab ac bd cd", "ad bd cd dd", ""),
        ("ab ac", "", "a"),
        ("ab ac da", "aa da", "a"),  # what leads to a dispute ends there
        ("ab ac bc bd", "", "ab"),
        ("ac ab cb ad", "cb bb", "a"),  # the rows of other names count
        ("ab ba", "aa ba", ""),
        ("cb ba ab", "aa ba ca", ""),
        ("ab ba bc", "ac bc cc", ""),  # a circle with a way out
        ("ab ba ac bd", "", "ab"),  # and with two
        ("ab bc ca ac", "aa ba ca", ""),
        ("ed dc ca cb", "cc dc ec", "c"),
        ("ab ac bd cd be", "cd dd", "ab"),
        ("ae ab ea ec bd", "bd dd", "ae"),
    ],
)
def test_chains(rows: str, ends: str, disputed: str) -> None:
    found = follow(table([(a, b) for a, b in rows.split()]))
    assert found.ends == dict(map(tuple, ends.split()))
    assert found.disputed == set(disputed)


def table(rows: list[tuple[str, str]]) -> dict[str, list[str]]:
    roots: dict[str, list[str]] = {}
    for name, root in rows:
        several = roots.setdefault(name, [])
        if root not in several:
            several.append(root)
    return roots


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12))
def test_chains_against_the_oracle(rows: list[tuple[str, str]]) -> None:
    pairs: list[Pair] = [(Literal(a), Literal(b)) for a, b in rows]
    kept = undisputed(pairs)
    expected = roots((), pairs)
    found = follow(table(rows))
    event(f"{len(found.disputed)} in dispute")
    assert found.disputed == {a for a, _ in rows} - {a.value for a, _ in kept}
    assert found.ends == {name.value: expected(name).value for pair in kept for name in pair}


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12), st.data())
def test_that_the_order_of_rows_says_nothing(
    rows: list[tuple[str, str]], drawn: st.DataObject
) -> None:
    assert follow(table(rows)) == follow(table(drawn.draw(st.permutations(rows))))


def test_that_long_chains_need_no_stack() -> None:
    names = [str(number) for number in range(50_000)]
    rows = {a: [b] for a, b in pairwise(names)}
    assert follow(rows).ends["0"] == "49999"
    rows["25000"].append("other")
    found = follow(rows)
    assert (found.ends["0"], found.disputed) == ("25000", {"25000"})

"""The algorithms' loops without numba: the same functions, and the same answers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphmatch.published.jit import kernel

MATCH = """
import sys
sys.modules["numba"] = None
from pyoxigraph import NamedNode
from graphmatch.published import make
from graphmatch.published.base import Conjunction, Event, Interval, Tally
from semantic import Ontology
p, q = NamedNode("urn:p"), NamedNode("urn:q")
matcher = make(sys.argv[1], Ontology(), domain=(0, 100))
for number in range(100):
    row = {p: Interval(number, number + 9), q: Interval(0, number)}
    matcher.add(Conjunction(str(number), p, (row,)))
print(sorted(matcher.matched(Event({}, {p: 50.0, q: 45.0}), Tally())))
"""


def test_that_what_is_compiled_can_be_run_as_it_is() -> None:
    def double(number: int) -> int:
        return 2 * number

    assert kernel(double)(4) == double(4)


@pytest.mark.parametrize("name", ["betree", "htree"])
def test_that_matchers_do_without_numba(name: str) -> None:
    command = [sys.executable, "-c", MATCH, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([45, 46, 47, 48, 49, 50])

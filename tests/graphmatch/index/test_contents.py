"""Numbers by hash against a dictionary."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.index.contents import Contents


@given(st.integers(0, 2**32).map(Random))
def test_coming_and_going(random: Random) -> None:
    contents, known = Contents(), dict[int, int]()
    free = list(range(80))
    hashes = [random.choice((0, 1, 2**31, 2**32 - 1)) + random.randrange(-9, 9) for _ in range(30)]
    hashes = [hash_ % 2**32 for hash_ in hashes]
    for _ in range(60):
        if free and random.random() < 0.7:
            count = random.randint(1, min(3, len(free)))
            numbers = [free.pop(random.randrange(len(free))) for _ in range(count)]
            new = {number: random.choice(hashes) for number in numbers}
            contents.put(np.array(numbers, np.int32), np.array(list(new.values()), np.uint32))
            known |= new
        elif known:
            number = random.choice(list(known))
            contents.remove(number)
            free.append(number)
            del known[number]
        assert len(contents) == len(known)
        found = contents.found(np.array(hashes, np.uint32)).tolist()
        for hash_, number in zip(hashes, found, strict=True):
            assert known[number] == hash_ if number >= 0 else hash_ not in known.values()


def test_bytes() -> None:
    contents = Contents()
    contents.put(np.arange(10_000, dtype=np.int32), np.arange(10_000, dtype=np.uint32) << 18)
    assert contents.nbytes < 10 * len(contents)
    for number in range(10_000, 11_000):
        contents.put(np.array([number], np.int32), np.array([number], np.uint32))
    assert contents.nbytes < 13 * len(contents)


def test_without_compiling() -> None:
    if os.environ.get("NUMBA_DISABLE_JIT"):
        pytest.skip("this is the run without compiling")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]

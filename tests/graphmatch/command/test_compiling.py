"""The line about compiling comes when a loop is compiled, once, and not otherwise."""

from __future__ import annotations

import numba
import pytest

from graphmatch.command import compiling
from graphmatch.command.compiling import COMPILING, telling, told


def plus_one(number: float) -> float:
    return number + 1


def test_that_it_is_said_once_and_only_when_something_is_compiled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    loop = numba.njit(plus_one)
    with telling():
        loop(1)
        loop(1.5)  # is compiled again
    assert capsys.readouterr().err == f"{COMPILING}\n"
    with telling():
        assert loop(2) == 3
    loop(True)  # nobody listens any more
    assert capsys.readouterr().err == ""


def test_that_a_command_says_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "telling", telling)  # which is silent in other tests
    loop = numba.njit(plus_one)

    @told
    def run(number: int) -> int:
        return int(loop(number))

    assert run(1) == run(1) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"{COMPILING}\n")

"""Turns: who shares one, who has it alone, and that nobody waits for ever."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Barrier, Event, Thread
from types import FrameType

import pytest

from graphmatch.turn import Turn

SECONDS = 20.0
"""After so long a thread that should have come is given up."""


def started(what: Callable[[], None]) -> Thread:
    thread = Thread(target=what, daemon=True)
    thread.start()
    return thread


def until(true: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    tick = Event()
    for _ in range(int(SECONDS / 0.001)):
        if true():
            return
        tick.wait(0.001)
    raise AssertionError("it did not come")


def test_that_a_shared_turn_is_shared() -> None:
    turn, together = Turn(), Barrier(3, timeout=SECONDS)
    came: list[int] = []

    def match() -> None:
        with turn.shared():
            came.append(together.wait())

    threads = [started(match) for _ in range(3)]
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(came) == [0, 1, 2]


def test_that_nobody_is_in_beside_one_that_is_alone() -> None:
    turn, start = Turn(), Barrier(6, timeout=SECONDS)
    inside: list[str] = []
    seen: list[tuple[str, ...]] = []

    def go(name: str, entered: Callable[[], AbstractContextManager[None]]) -> None:
        start.wait()
        for _ in range(300):
            with entered():
                inside.append(name)
                seen.append(tuple(inside))
                inside.remove(name)

    threads = [started(lambda: go("shared", turn.shared)) for _ in range(3)]
    threads += [started(lambda: go("alone", turn.alone)) for _ in range(3)]
    for thread in threads:
        thread.join(SECONDS)
    assert len(seen) == 6 * 300
    assert all(several == ("alone",) for several in seen if "alone" in several)


def test_that_the_order_of_asking_is_kept() -> None:
    """Whoever asks after one that wants to be alone waits for it, and it for those before."""
    turn, leave = Turn(), Event()
    order: list[str] = []

    def enter(name: str, *, alone: bool) -> Thread:
        def go() -> None:
            with turn.alone() if alone else turn.shared():
                order.append(name)
                if name == "first":
                    leave.wait(SECONDS)

        waiting = turn.waiting
        thread = started(go)
        until(lambda: turn.waiting == waiting + (name != "first") or not thread.is_alive())
        return thread

    threads = [enter("first", alone=False)]
    until(lambda: order == ["first"])
    threads += [enter("change", alone=True), enter("match", alone=False)]
    threads += [enter("change again", alone=True)]
    assert (order, turn.waiting) == (["first"], 3)
    leave.set()
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["first", "change", "match", "change again"]
    assert turn.waiting == 0


def test_that_a_turn_ends_with_an_error() -> None:
    turn = Turn()
    with pytest.raises(ValueError, match="wrong"), turn.alone():
        raise ValueError("wrong")
    with pytest.raises(ValueError, match="wrong"), turn.shared():
        raise ValueError("wrong")
    with turn.alone():
        pass


@pytest.mark.parametrize("alone", [True, False])
def test_that_a_thread_that_is_interrupted_while_it_waits_is_not_waited_for(alone: bool) -> None:
    turn, leave, inside = Turn(), Event(), Event()

    def hold() -> None:
        with turn.alone():
            inside.set()
            leave.wait(SECONDS)

    def interrupt() -> None:
        until(lambda: turn.waiting == 1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def handle(number: int, frame: FrameType | None) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        holder = started(hold)
        inside.wait(SECONDS)
        interrupter = started(interrupt)
        with pytest.raises(InterruptedError), turn.alone() if alone else turn.shared():
            pass
        interrupter.join(SECONDS)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert turn.waiting == 0
    leave.set()
    holder.join(SECONDS)
    with turn.alone():
        pass

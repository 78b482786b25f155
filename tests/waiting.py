"""Waiting for conditions. Default tests look at a clock only here (`test_house_rules.py`)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic, sleep

SECONDS = 120.0
"""Default deadline. It is long, so that only a condition that never holds reaches it."""


def wait(
    condition: Callable[[], object], seconds: float = SECONDS, what: str = "the condition"
) -> None:
    """Wait until a condition holds."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, f"{what} does not hold after {seconds:g} s"
        sleep(0.01)


def pause(seconds: float) -> None:
    """Let time pass: a test then shows that nothing has happened, or that a peer was patient."""
    sleep(seconds)


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = SECONDS) -> None:
    """Wait until a condition holds, while other tasks run."""
    end = monotonic() + seconds
    while True:
        found = condition()
        if found if isinstance(found, bool) else await found:
            return
        assert monotonic() < end, f"the condition does not hold after {seconds:g} s"
        await asyncio.sleep(0.005)


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text(encoding="utf-8").split()[2] == "Z")

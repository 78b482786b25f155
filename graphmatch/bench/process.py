"""Measurements in separate processes, so that memory is that of one measurement alone.

``python -m graphmatch.bench.process MODULE ARGUMENT…`` calls the module's function ``measure`` with
the arguments (strings), and prints the result as JSON.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
"""One measurement: numbers and strings by name."""


def in_own_process(module: str, *arguments: str) -> Row:
    """Return the result of ``module.measure(*arguments)`` in a new process.

    A failed process gives a row with only ``failed``: the last line that it wrote.
    """
    command = [sys.executable, "-m", __name__, module, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if ran.returncode:
        return {"failed": (ran.stderr.strip() or f"exit status {ran.returncode}").splitlines()[-1]}
    row: Row = json.loads(ran.stdout.splitlines()[-1])
    return row


@contextmanager
def one_core() -> Iterator[None]:
    """Run the block on the last one of the process's cores only, if the system allows it."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()
    if before:
        os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        if before:
            os.sched_setaffinity(0, before)


def resident_bytes() -> int | None:
    """Return the process's resident memory, after releasing free memory; ``None`` if unknown."""
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # glibc keeps free memory
        trim(0)
    if arrow := sys.modules.get("pyarrow"):  # the pool keeps free memory, too
        arrow.default_memory_pool().release_unused()
    return memory("VmRSS:")


def memory(field: str, process: int | str = "self") -> int | None:
    """Return a field of a process's status in bytes: ``VmRSS:``; ``None`` if unknown.

    Only Linux has this file.
    """
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        return None
    return int(status.read_text(encoding="ascii").partition(field)[2].split()[0]) * 1024


if __name__ == "__main__":
    measured = import_module(sys.argv[1]).measure(*sys.argv[2:])
    sys.stdout.write(json.dumps(measured) + "\n")
    sys.stdout.flush()
    os._exit(0)  # threads of an engine may still run, and some crash as the interpreter ends

"""Measuring in a process of its own, so that memory is that of one thing alone.

``python -m graphmatch.bench.process MODULE ARGUMENT…`` calls the module's function ``measure`` with
the arguments (texts), and prints what it returns, with the peak of memory, as JSON.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
"""One measurement: names to numbers and texts."""


def in_own_process(
    module: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> Row:
    """Return what ``module.measure(*arguments)`` measures in a new process.

    A process that fails gives a row with only ``failed``: the last line that it wrote.
    """
    ran = subprocess.run(  # noqa: S603 - this interpreter, and modules of ours
        [sys.executable, "-m", __name__, module, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
        check=False,
    )
    if ran.returncode:
        lines = ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"]
        return {"failed": lines[-1]}
    row: Row = json.loads(ran.stdout.splitlines()[-1])
    return row


def medians(rows: Sequence[Row]) -> Row:
    """Return one row of several: the median of each number, and what else the first one says.

    Examples
    --------
    >>> medians([{"of": "a", "s": 1.0}, {"of": "a", "s": 5.0}, {"of": "a", "s": 2.0}])
    {'of': 'a', 's': 2.0}
    """
    for row in rows:
        if "failed" in row:
            return row
    return {
        name: median(row[name] for row in rows) if isinstance(value, float) else value
        for name, value in rows[0].items()
    }


class OneCore:
    """Holds the process on one of its cores, where the system lets it."""

    def __enter__(self) -> None:
        """Choose the last core."""
        self._before: set[int] = set()
        if hasattr(os, "sched_setaffinity"):
            self._before = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {max(self._before)})

    def __exit__(self, *_: object) -> None:
        """Allow all cores again."""
        if self._before:
            os.sched_setaffinity(0, self._before)


def resident_bytes() -> int | None:
    """Return the process's resident memory, after giving back what is free; ``None`` if unknown.

    Only Linux says what a process has now.
    """
    gc.collect()
    status = Path("/proc/self/statm")
    if not status.exists():
        return None
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc keeps what is free
        trim(0)
    return int(status.read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def peak_megabytes() -> float:
    """Return the most memory that this process has had so far.

    Linux's own figure where there is one: `getrusage` also counts what the starting process had.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def main(module: str, *arguments: str) -> None:
    """Measure, and print."""
    row = import_module(module).measure(*arguments)
    row.setdefault("peak_mb", peak_megabytes())
    sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

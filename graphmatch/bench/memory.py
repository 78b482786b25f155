"""How much memory this process has now, as far as the system says it."""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path


def resident_bytes() -> int | None:
    """Return the process's resident memory, after giving back what is free; ``None`` if unknown.

    Only Linux says what a process has now.
    """
    gc.collect()
    status = Path("/proc/self/statm")
    if not status.exists():
        return None
    _trim()
    pages = int(status.read_text(encoding="ascii").split()[1])
    import resource

    return pages * resource.getpagesize()


def _trim() -> None:
    """Let glibc give free memory back; other libraries have no such function."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)

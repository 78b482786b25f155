"""How the index's loops are compiled: as `semantic.jit` says."""

from semantic.jit import at, kernel, part

__all__ = ["at", "kernel", "part"]

"""Public names of a package, imported on first use, so that a program loads only what it needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

_IMPORT = re.compile(r"^from (\S+) import (\w+) as \w+$", re.MULTILINE)


def lazy_exports(package: str, file: str) -> tuple[Callable[[str], object], list[str]]:
    """Return a package's ``__getattr__``, which imports names on first use, and ``__all__``.

    Parameters
    ----------
    package
        The name of the package.
    file
        Its ``__init__.py``. The stub file next to it imports the public names, one per line, so
        that type checkers and this function read the same list.

    Examples
    --------
    >>> import semantic
    >>> get, names = lazy_exports("semantic", semantic.__file__)
    >>> "Publication" in names, get("Publication").__module__
    (True, 'semantic.publication')
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    modules = {name: module for module, name in _IMPORT.findall(stub)}

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return get, sorted(modules)

"""Public names of a package, imported on first use, so that a program loads only what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def lazy_exports(
    package: str, exports: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], object], list[str]]:
    """Return a package's ``__getattr__`` and ``__all__``.

    Parameters
    ----------
    package
        The name of the package.
    exports
        Modules, with the names that the package exports from them.

    Examples
    --------
    >>> get, names = lazy_exports("semantic", {"semantic.terms": ["compact"]})
    >>> names, get("compact").__module__
    (['compact'], 'semantic.terms')
    """
    modules = {name: module for module, names in exports.items() for name in names}

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return get, sorted(modules)

"""Match new RDF graphs against many standing SPARQL subscriptions, with solutions.

Public names are imported on first use, so that the command starts fast.
"""

from semantic.exports import lazy_exports

_get, __all__ = lazy_exports(__name__, __file__)


def __getattr__(name: str) -> object:
    """Import a public name from its module; the version is that of the installed package."""
    if name == "__version__":
        from importlib.metadata import version

        return version("graphmatch")
    return _get(name)


def __dir__() -> list[str]:
    """Return all public names, imported or not."""
    return sorted({*globals(), *__all__, "__version__"})

"""Says which of many standing subscriptions a new RDF graph matches, and with which bindings.

What is named here is imported when it is first used, so that the command starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmatch.engine import Engine
    from graphmatch.matcher import Match, Matcher, MatchReport
    from semantic.terms import Solution

__all__ = ["Engine", "Match", "MatchReport", "Matcher", "Solution"]


def __getattr__(name: str) -> object:
    """Import a public name from the module that has it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = {"Engine": "graphmatch.engine", "Solution": "semantic.terms"}
    return getattr(import_module(modules.get(name, "graphmatch.matcher")), name)

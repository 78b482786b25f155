"""Match new RDF graphs against many standing subscriptions, with solutions.

Public names are imported on first use, so that the command starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmatch.engine import Engine
    from graphmatch.matcher import Matcher
    from graphmatch.report import Match, MatchReport
    from graphmatch.subscribing import read_subscriptions, subscribe_topics
    from graphmatch.subscription import AttributeSubscription, Subscription, SubscriptionParser
    from graphmatch.topics import Topics
    from semantic.terms import Solution

    __version__: str

_MODULES = {
    "AttributeSubscription": "graphmatch.subscription",
    "Engine": "graphmatch.engine",
    "Match": "graphmatch.report",
    "MatchReport": "graphmatch.report",
    "Matcher": "graphmatch.matcher",
    "Solution": "semantic.terms",
    "Subscription": "graphmatch.subscription",
    "SubscriptionParser": "graphmatch.subscription",
    "Topics": "graphmatch.topics",
    "read_subscriptions": "graphmatch.subscribing",
    "subscribe_topics": "graphmatch.subscribing",
}

__all__ = [
    "AttributeSubscription",
    "Engine",
    "Match",
    "MatchReport",
    "Matcher",
    "Solution",
    "Subscription",
    "SubscriptionParser",
    "Topics",
    "read_subscriptions",
    "subscribe_topics",
]


def __getattr__(name: str) -> object:
    """Import a public name from its module; the version is that of the installed package."""
    if name == "__version__":
        from importlib.metadata import version

        return version("graphmatch")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return all public names, imported or not."""
    return sorted({*globals(), *__all__, "__version__"})

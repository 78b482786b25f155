"""What things mean: RDF terms, publications, ontologies, subscriptions. Knows no matching.

What is named here is imported when it is first used: a program pays for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from semantic.attributes.events import read_events
    from semantic.attributes.subscription import AttributeSubscription
    from semantic.cut import Cut
    from semantic.errors import GraphMatchError, Place, Problem, ProblemWarning
    from semantic.limits import Limits
    from semantic.ontology.ontology import Ontology
    from semantic.publication import Publication
    from semantic.reading import read_publications
    from semantic.sparql.files import read_subscriptions
    from semantic.sparql.parse import SubscriptionParser
    from semantic.subscription import Subscription
    from semantic.tables import publications_of_table

_MODULES = {
    "AttributeSubscription": "attributes.subscription",
    "Cut": "cut",
    "GraphMatchError": "errors",
    "Limits": "limits",
    "Ontology": "ontology.ontology",
    "Place": "errors",
    "Problem": "errors",
    "ProblemWarning": "errors",
    "Publication": "publication",
    "Subscription": "subscription",
    "SubscriptionParser": "sparql.parse",
    "publications_of_table": "tables",
    "read_events": "attributes.events",
    "read_publications": "reading",
    "read_subscriptions": "sparql.files",
}

__all__ = [
    "AttributeSubscription",
    "Cut",
    "GraphMatchError",
    "Limits",
    "Ontology",
    "Place",
    "Problem",
    "ProblemWarning",
    "Publication",
    "Subscription",
    "SubscriptionParser",
    "publications_of_table",
    "read_events",
    "read_publications",
    "read_subscriptions",
]


def __getattr__(name: str) -> object:
    """Import a public name from the module that has it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"semantic.{_MODULES[name]}"), name)

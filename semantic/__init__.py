"""What things mean: RDF terms, publications, ontologies, subscriptions. Knows no matching."""

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

"""Model of RDF terms, publications, ontologies and attributes, without matching.

Public names are imported on first use, so that a program loads only the modules it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from semantic.attributes.events import read_events
    from semantic.errors import GraphMatchError, Place, Problem, ProblemWarning
    from semantic.limits import Limits
    from semantic.ontology.ontology import Ontology
    from semantic.publication import Publication
    from semantic.reading import Cut, read_publications
    from semantic.tables import publications_of_table

_MODULES = {
    "Cut": "reading",
    "GraphMatchError": "errors",
    "Limits": "limits",
    "Ontology": "ontology.ontology",
    "Place": "errors",
    "Problem": "errors",
    "ProblemWarning": "errors",
    "Publication": "publication",
    "publications_of_table": "tables",
    "read_events": "attributes.events",
    "read_publications": "reading",
}

__all__ = [
    "Cut",
    "GraphMatchError",
    "Limits",
    "Ontology",
    "Place",
    "Problem",
    "ProblemWarning",
    "Publication",
    "publications_of_table",
    "read_events",
    "read_publications",
]


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"semantic.{_MODULES[name]}"), name)

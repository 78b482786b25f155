"""Model of RDF terms, publications, ontologies and attributes, without matching.

Public names are imported on first use, so that a program loads only the modules it needs.
"""

from semantic.exports import lazy_exports

__getattr__, __all__ = lazy_exports(__name__, __file__)

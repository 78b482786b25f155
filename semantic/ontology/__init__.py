"""Ontologies: taxonomies, synonyms, labels, and what follows from them."""

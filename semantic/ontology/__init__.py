"""Ontologies: taxonomies, synonyms, labels and inference."""

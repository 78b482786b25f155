"""Mapping functions: SPARQL CONSTRUCT queries that add to a publication."""

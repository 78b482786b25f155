"""Annotation: find the labels of an ontology in feed items."""

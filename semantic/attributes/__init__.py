"""Attribute subscriptions and events: attribute/value pairs, read and written as RDF."""

"""SPARQL text to subscriptions."""

"""Text to concepts: the labels of an ontology found in feed items."""

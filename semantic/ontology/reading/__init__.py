"""Files to an ontology: RDF, OWL/XML and synonyms, what they import, and what a reasoner infers."""

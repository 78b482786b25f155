"""Namespaces that the project reads and writes, and prefixes for displaying them."""

from __future__ import annotations

from pyoxigraph import NamedNode


class Namespace:
    """An IRI prefix; indexing it returns a term.

    Examples
    --------
    >>> Namespace("http://example.org/")["a"]
    <NamedNode value=http://example.org/a>
    """

    __slots__ = ("iri",)

    def __init__(self, iri: str) -> None:
        self.iri = iri

    def __getitem__(self, name: str) -> NamedNode:
        return NamedNode(self.iri + name)


RDF = Namespace("http://www.w3.org/1999/02/22-rdf-syntax-ns#")
RDFS = Namespace("http://www.w3.org/2000/01/rdf-schema#")
OWL = Namespace("http://www.w3.org/2002/07/owl#")
XSD = Namespace("http://www.w3.org/2001/XMLSchema#")
SKOS = Namespace("http://www.w3.org/2004/02/skos/core#")
RSS = Namespace("http://purl.org/rss/1.0/")
CONTENT = Namespace("http://purl.org/rss/1.0/modules/content/")
ENCLOSURE = Namespace("http://purl.oclc.org/net/rss_2.0/enc#")
DC = Namespace("http://purl.org/dc/elements/1.1/")
DCTERMS = Namespace("http://purl.org/dc/terms/")
FOAF = Namespace("http://xmlns.com/foaf/0.1/")
GM = Namespace("urn:graphmatch:")
ATTRIBUTE = Namespace("urn:graphmatch:attribute:")
ISA = Namespace("urn:graphmatch:isa:")
OP = Namespace("urn:graphmatch-operator:")
GEO = Namespace("http://www.opengis.net/ont/geosparql#")
GEOF = Namespace("http://www.opengis.net/def/function/geosparql/")

TYPE = RDF["type"]
SUBCLASS = RDFS["subClassOf"]
SUBPROPERTY = RDFS["subPropertyOf"]
DOMAIN = RDFS["domain"]
RANGE = RDFS["range"]
LABEL = RDFS["label"]
EQUIVALENT_CLASS = OWL["equivalentClass"]
EQUIVALENT_PROPERTY = OWL["equivalentProperty"]
SAME_AS = OWL["sameAs"]
INVERSE_OF = OWL["inverseOf"]
BROADER = SKOS["broader"]
NARROWER = SKOS["narrower"]
BROADER_TRANSITIVE = SKOS["broaderTransitive"]

RESERVED = (RDF.iri, RDFS.iri, OWL.iri, SKOS.iri)
"""Vocabularies that describe the ontology itself: a concept that is the object of one of their
properties does not imply its broader concepts.
"""

PREFIXES: dict[str, str] = {
    "rdf": RDF.iri,
    "rdfs": RDFS.iri,
    "owl": OWL.iri,
    "xsd": XSD.iri,
    "skos": SKOS.iri,
    "rss": RSS.iri,
    "content": CONTENT.iri,
    "enc": ENCLOSURE.iri,
    "dc": DC.iri,
    "dcterms": DCTERMS.iri,
    "gm": GM.iri,
    "attribute": ATTRIBUTE.iri,
    "isa": ISA.iri,
    "foaf": FOAF.iri,
    "schema": "https://schema.org/",
    "dbo": "http://dbpedia.org/ontology/",
    "geo": GEO.iri,
    "geof": GEOF.iri,
    "op": OP.iri,
    "sosa": "http://www.w3.org/ns/sosa/",
    "cdt": "https://w3id.org/cdt/",
    "qudt": "http://qudt.org/schema/qudt/",
    "unit": "http://qudt.org/vocab/unit/",
}
"""Prefixes for displaying terms, which subscriptions may use without declaring them."""

"""The namespaces of feeds, common misspellings included, and short names for what is in them."""

from __future__ import annotations

from semantic.vocabulary import CONTENT, DC, DCTERMS, RDF, RSS

RSS_090 = "http://my.netscape.com/rdf/simple/0.9/"
RSS_NAMESPACES = (
    RSS.iri,
    RSS_090,
    "http://backend.userland.com/rss2",
    "http://backend.userland.com/RSS2",
    "http://my.netscape.com/publish/formats/rss-0.91.dtd",
)
ATOM_NAMESPACES = (
    "http://www.w3.org/2005/Atom",
    "https://www.w3.org/2005/Atom",
    "http://purl.org/atom/ns#",
)
NAMESPACES = {  # the right one first
    "rss": RSS_NAMESPACES,
    "atom": ATOM_NAMESPACES,
    "content": (CONTENT.iri,),
    "dc": (DC.iri,),
    "dcterms": (DCTERMS.iri,),
    "itunes": (
        "http://www.itunes.com/dtds/podcast-1.0.dtd",
        "http://www.itunes.com/DTDs/Podcast-1.0.dtd",
        "http://www.itunes.com/DTDs/PodCast-1.0.dtd",
    ),
    "media": ("http://search.yahoo.com/mrss/", "http://search.yahoo.com/mrss"),
    "rdf": (RDF.iri,),
    "xhtml": ("http://www.w3.org/1999/xhtml",),
}
_PREFIXES = {iri: prefix for prefix, iris in NAMESPACES.items() for iri in iris}


def short_name(tag: str) -> str:
    """Return an element's name with the usual prefix, whatever the document's own is.

    Examples
    --------
    >>> short_name("{http://search.yahoo.com/mrss}title"), short_name("{urn:a}b"), short_name("b")
    ('media:title', '{urn:a}b', 'b')
    """
    namespace, _, local = tag.rpartition("}")
    prefix = _PREFIXES.get(namespace[1:])
    return f"{prefix}:{local}" if prefix else tag

"""RDF terms: their types, parsing and display.

A term is a pyoxigraph object (immutable, hashable, equal by RDF term), and a
triple is a plain tuple of three of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Variable
from pyoxigraph import Triple as TripleTerm

from semantic.vocabulary import PREFIXES

Term: TypeAlias = NamedNode | BlankNode | Literal | TripleTerm
"""An RDF term. `TripleTerm` (RDF 1.2) is passed through without inspection."""

Triple: TypeAlias = tuple[Term, Term, Term]
"""Subject, predicate, object."""

Derived: TypeAlias = dict[Triple, tuple[str, Triple] | None]
"""Map from triples to the rule and the triple that derived each; ``None`` for given triples."""

Mention: TypeAlias = tuple[Term | None, Term | None]
"""A property and an object that a pattern asks for; ``None`` means any."""

Node: TypeAlias = Term | Variable
"""A term or variable of a triple pattern."""

Solution: TypeAlias = Mapping[str, Term]
"""Map from variable names, without question mark, to the bound terms."""


SURROGATE = re.compile("[\ud800-\udfff]")
"""A lone surrogate, which JSON can escape but no term can contain."""

SURROGATE_REMEDY = "Write the complete character."

_LAST_PART = re.compile(r"[^/#:?]+(?=[/#]?$)")


def compact(term: Node, prefixes: Mapping[str, str] = PREFIXES) -> str:
    """Return a term for display: a prefixed name if a prefix fits, otherwise N-Triples.

    Examples
    --------
    >>> compact(NamedNode("http://www.w3.org/2004/02/skos/core#Concept"))
    'skos:Concept'
    >>> compact(NamedNode("http://example.org/a/b")), compact(Literal("Klima", language="de"))
    ('<http://example.org/a/b>', '"Klima"@de')
    >>> compact(Literal("5", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer")))
    '5'
    """
    if isinstance(term, NamedNode):
        return _compact_iri(term.value, prefixes)
    if isinstance(term, Literal) and term.language is None:
        datatype = _compact_iri(term.datatype.value, prefixes)
        if datatype == "xsd:integer":
            return term.value
        if datatype != "xsd:string":
            quoted = str(Literal(term.value))
            return f"{quoted}^^{datatype}"
    return written(term)


def expanded(name: str, prefixes: Mapping[str, str]) -> NamedNode:
    """Parse an IRI or a prefixed name; raise `ValueError` if it is neither.

    Examples
    --------
    >>> print(expanded("skos:Concept", PREFIXES), expanded("<urn:a>", PREFIXES))
    <http://www.w3.org/2004/02/skos/core#Concept> <urn:a>
    """
    iri = name.removeprefix("<").removesuffix(">")
    prefix, colon, local = iri.partition(":")
    if colon and prefix in prefixes and not local.startswith("//"):
        return NamedNode(prefixes[prefix] + local)
    return NamedNode(iri)


def written(term: Node) -> str:
    """Return a term in canonical N-Triples, or a variable in SPARQL.

    Examples
    --------
    >>> written(TripleTerm(NamedNode("urn:s"), NamedNode("urn:p"), Literal("o")))
    '<<( <urn:s> <urn:p> "o" )>>'
    """
    return f"<<( {term} )>>" if isinstance(term, TripleTerm) else str(term)


def _compact_iri(iri: str, prefixes: Mapping[str, str]) -> str:
    best: tuple[str, str] | None = None
    for prefix, namespace in prefixes.items():
        if iri.startswith(namespace) and (best is None or len(namespace) > len(best[1])):
            local = iri[len(namespace) :]
            if local and not set(local) & set("/#?&=:"):
                best = prefix, namespace
    return f"<{iri}>" if best is None else f"{best[0]}:{iri[len(best[1]) :]}"


def local_name(term: NamedNode) -> str:
    """Return the last part of an IRI, or the whole IRI if it has no parts.

    Examples
    --------
    >>> [local_name(NamedNode(iri)) for iri in ("http://e.org/shop#LaptopPC", "urn:e:price")]
    ['LaptopPC', 'price']
    """
    found = _LAST_PART.search(term.value)
    return found[0] if found else term.value

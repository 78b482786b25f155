"""RDF terms: what they are here, and how they are written.

A term is a pyoxigraph object (immutable, hashable, equal by RDF term), and a
triple is a plain tuple of three of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, RdfFormat, Variable, parse
from pyoxigraph import Triple as TripleTerm

from semantic.guards import triple_term_depth
from semantic.limits import DEFAULT_LIMITS
from semantic.vocabulary import PREFIXES

Term: TypeAlias = NamedNode | BlankNode | Literal | TripleTerm
"""An RDF term. `TripleTerm` is RDF 1.2's; it is carried through, never looked into."""

Triple: TypeAlias = tuple[Term, Term, Term]
Mention: TypeAlias = tuple[Term | None, Term | None]
"""A property and an object that a pattern asks for; ``None`` for any."""
"""Subject, predicate, object."""

Node: TypeAlias = Term | Variable
"""A place of a triple pattern."""

Solution: TypeAlias = Mapping[str, Term]
"""Variable name, without its question mark, to the term that it is bound to."""


_LAST_PART = re.compile(r"[^/#:?]+(?=[/#]?$)")
_Term = TypeVar("_Term")
_BEFORE, _AFTER = b"<urn:s> <urn:p> ", b" .\n"


def compact(term: Node, prefixes: Mapping[str, str] = PREFIXES) -> str:
    """Write a term for a person: a prefixed name where a prefix fits, N-Triples otherwise.

    Parameters
    ----------
    term
        The term or variable.
    prefixes
        Prefix to namespace; the longest namespace that fits wins.

    Examples
    --------
    >>> compact(NamedNode("http://www.w3.org/2004/02/skos/core#Concept"))
    'skos:Concept'
    >>> compact(NamedNode("http://example.org/a/b"))
    '<http://example.org/a/b>'
    >>> compact(Literal("Klima", language="de"))
    '"Klima"@de'
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


def written(term: Node) -> str:
    """Write a term as canonical N-Triples does, a variable as SPARQL.

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
    """Return the last part of an IRI, or all of it where it has no parts.

    Examples
    --------
    >>> local_name(NamedNode("http://example.org/shop#LaptopPC"))
    'LaptopPC'
    >>> local_name(NamedNode("urn:example:price"))
    'price'
    """
    found = _LAST_PART.search(term.value)
    return found[0] if found else term.value


def read_terms(
    texts: Sequence[str], prefix: str = "", nesting: int = DEFAULT_LIMITS.nesting
) -> list[Term | None]:
    """Return the terms that texts say, as N-Triples writes them; ``None`` for what is none.

    Parameters
    ----------
    prefix
        Comes before the names of blank nodes.
    nesting
        How deep triple terms may nest.

    Examples
    --------
    >>> read_terms(["<urn:a>", "_:b", "urn:a"], "x")
    [<NamedNode value=urn:a>, <BlankNode value=xb>, None]
    """
    written = [text.encode("utf-8", "replace") for text in texts]
    try:
        found: Sequence[Term | None] = _read(written, nesting)
    except SyntaxError:
        found = [_read_alone(text, nesting) for text in written]
    return [renamed(term, prefix) for term in found] if prefix else list(found)


def _read_alone(text: bytes, nesting: int) -> Term | None:
    try:
        return _read([text], nesting)[0]
    except SyntaxError:
        return None


def _read(texts: Sequence[bytes], nesting: int) -> list[Term]:
    """Parse texts, each as the object of a triple.

    Raises
    ------
    SyntaxError
        When any of them is no term.
    """
    document = b"".join((_BEFORE, (_AFTER + _BEFORE).join(texts), _AFTER)) if texts else b""
    if triple_term_depth(document)[0] > nesting:
        raise SyntaxError(f"triple terms nest more than {nesting} deep")
    terms = [quad.object for quad in parse(document, format=RdfFormat.N_TRIPLES)]
    if len(terms) != len(texts):
        raise SyntaxError("not one term each")
    for text, term in zip(texts, terms, strict=True):
        if b"#" in text and str(term).encode() != text and _has_comment(text):
            raise SyntaxError("a comment")
    return terms


def _has_comment(text: bytes) -> bool:
    """Whether what comes after a text would be a part of its comment."""
    (quad,) = parse(_BEFORE + text + b" <urn:g>" + _AFTER, format=RdfFormat.N_QUADS)
    return isinstance(quad.graph_name, DefaultGraph)


def renamed(term: _Term, prefix: str) -> _Term:
    """Return a term with a prefix before the names of its blank nodes.

    Examples
    --------
    >>> renamed(BlankNode("b"), "x")
    <BlankNode value=xb>
    """
    if isinstance(term, BlankNode):
        return type(term)(prefix + term.value)
    if isinstance(term, TripleTerm):
        subject, object_ = renamed(term.subject, prefix), renamed(term.object, prefix)
        return type(term)(subject, term.predicate, object_)
    return term

"""One RDF document of an ontology: what it states, what it is called, and what it imports.

Parsing is `semantic.reading`'s, and for OWL's own XML that of
`semantic.ontology.reading.owlxml`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from pyoxigraph import NamedNode, RdfFormat

from semantic.errors import InputError, OnProblem, Place, Problem
from semantic.files import pieces, read_whole
from semantic.guards import recode_xml
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.reading.owlxml import is_owlxml, read_owlxml
from semantic.reading import read_rdf
from semantic.syntax import HEAD_BYTES, tell_syntax
from semantic.terms import Triple
from semantic.vocabulary import OWL, TYPE

_REMEDY = "Give RDF (Turtle, RDF/XML, JSON-LD, N-Triples, …), OWL/XML or a file of synonyms (.csv)."
_ONTOLOGY = OWL["Ontology"]
_VERSION = OWL["versionIRI"]
_IMPORTS = OWL["imports"]


@dataclass(frozen=True, slots=True)
class Document:
    """What one document says.

    Parameters
    ----------
    source
        Its name as the user wrote it, or its address.
    triples
        As stated; blank nodes are its own.
    prefixes
        Prefix to namespace.
    names
        The IRIs that it goes by: those of the ontologies that it declares, and their versions'.
    imports
        The IRIs of the ontologies that it imports, in order.
    """

    source: str
    triples: list[Triple]
    prefixes: dict[str, str]
    names: tuple[str, ...]
    imports: tuple[str, ...]


def read_file(path: Path, on_problem: OnProblem, limits: Limits = DEFAULT_LIMITS) -> Document:
    """Read one file. Relative IRIs in it are relative to its own address (``file:``).

    Raises
    ------
    InputError
        When it is no RDF, or has a fault.
    OSError
        When the system refuses.
    """
    with path.open("rb") as stream:
        return read_document(
            stream,
            str(path),
            on_problem=on_problem,
            limits=limits,
            base_iri=path.absolute().as_uri(),
        )


def read_document(
    stream: IO[bytes],
    source: str,
    *,
    on_problem: OnProblem,
    limits: Limits = DEFAULT_LIMITS,
    syntax: RdfFormat | None = None,
    base_iri: str | None = None,
) -> Document:
    """Read one document.

    Parameters
    ----------
    stream
        At its beginning, and seekable.
    syntax
        Where it is known; else name and content tell.
    base_iri
        What relative IRIs are relative to, where the document does not say.

    Raises
    ------
    InputError
        When it is no RDF, or has a fault.

    Examples
    --------
    >>> import io
    >>> from semantic.errors import warn_problem
    >>> text = b"<urn:o> a <http://www.w3.org/2002/07/owl#Ontology> ."
    >>> read_document(io.BytesIO(text), "o.ttl", on_problem=warn_problem).names
    ('urn:o',)
    """
    head = stream.read(HEAD_BYTES)
    stream.seek(0)
    if not head.strip():
        raise InputError(Problem("the file is empty", Place(source), _REMEDY))
    prefixes: dict[str, str] = {}
    if is_owlxml(head):
        data = read_whole(pieces(stream), source, limits)
        triples = read_owlxml(data, source, on_problem, prefixes, limits)
    else:
        told = syntax or tell_syntax(head, source, _REMEDY)
        data_ = pieces(stream)
        if told == RdfFormat.RDF_XML:
            data_ = iter([recode_xml(read_whole(data_, source, limits), source)])
        found = read_rdf(
            data_,
            told,
            source,
            on_problem=_raise,
            base_iri=base_iri,
            limits=replace(limits, publication_triples=sys.maxsize),
            prefixes=prefixes,
            may_be_empty=True,
        )
        triples = [triple for document in found for triple in document.given]
    return _document(source, triples, prefixes)


def _document(source: str, triples: list[Triple], prefixes: dict[str, str]) -> Document:
    names: dict[str, None] = {}
    imports: dict[str, None] = {}
    for subject, predicate, object_ in triples:
        if predicate == TYPE:
            if object_ == _ONTOLOGY and isinstance(subject, NamedNode):
                names[subject.value] = None
        elif predicate == _VERSION:
            if isinstance(object_, NamedNode):
                names[object_.value] = None
        elif predicate == _IMPORTS and isinstance(object_, NamedNode):
            imports[object_.value] = None
    return Document(source, triples, prefixes, tuple(names), tuple(imports))


def _raise(problem: Problem) -> None:
    """Raise the first fault; no option names the syntax of an ontology."""
    remedy = problem.remedy.replace(", or name its format with --format", "")
    raise InputError(replace(problem, remedy=remedy))

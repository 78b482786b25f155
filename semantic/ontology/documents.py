"""One RDF document of an ontology: its triples, names and imports.

`semantic.reading` parses RDF, and `semantic.ontology.owlxml` parses OWL/XML.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from pyoxigraph import Literal, NamedNode, RdfFormat

from semantic.errors import InputError, OnProblem, Place, Problem
from semantic.files import pieces, read_whole
from semantic.limits import DEFAULT_LIMITS, Limits, too_long
from semantic.ontology.owlxml import is_owlxml, read_owlxml
from semantic.reading import read_rdf
from semantic.safe_xml import recode_xml, root_prefixes
from semantic.syntax_detection import HEAD_BYTES, tell_syntax
from semantic.terms import Triple
from semantic.vocabulary import OWL, TYPE

_REMEDY = "Give RDF (Turtle, RDF/XML, JSON-LD, N-Triples, …), OWL/XML or a table (.csv)."
_ONTOLOGY = OWL["Ontology"]
_VERSION = OWL["versionIRI"]
_IMPORTS = OWL["imports"]


@dataclass(frozen=True, slots=True)
class OntologyDocument:
    """The content of one ontology document: its triples, prefixes, names and imports.

    `source` is its name as the user wrote it. Its blank nodes occur in no other document. `names`
    are the IRIs of the ontologies that it declares, and of their versions. `imports` are the IRIs
    of the ontologies that it imports.
    """

    source: str
    triples: list[Triple]
    prefixes: dict[str, str]
    names: tuple[str, ...]
    imports: tuple[str, ...]


def read_file(
    path: Path, on_problem: OnProblem, limits: Limits = DEFAULT_LIMITS
) -> OntologyDocument:
    """Read one file; resolve its relative IRIs against its own address (``file:``).

    Raise `InputError` if it is not RDF or has an error, and `OSError` if the system refuses to read
    it.
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
    base_iri: str | None = None,
) -> OntologyDocument:
    """Read one document from a seekable stream.

    The name and content decide the syntax. Relative IRIs are resolved against `base_iri`, unless
    the document declares a base. Raise `InputError` if it is not RDF or has an error.

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
        told = tell_syntax(head, source, _REMEDY)
        parts = pieces(stream)
        if told == RdfFormat.RDF_XML:
            data = recode_xml(read_whole(parts, source, limits), source)
            parts = iter([data])
        found = read_rdf(
            parts,
            told,
            source,
            on_problem=_raise,
            base_iri=base_iri,
            limits=replace(limits, publication_triples=sys.maxsize),
            prefixes=prefixes,
            may_be_empty=True,
        )
        triples = [triple for document in found for triple in document.given]
        if told == RdfFormat.RDF_XML:
            prefixes.update(root_prefixes(data))
    if stream.tell() > limits.text_characters:
        texts = (len(o.value) for _, _, o in triples if isinstance(o, Literal))
        if max(texts, default=0) > limits.text_characters:
            raise InputError(too_long("a text", Place(source), limits))
    prefixes = {name: iri for name, iri in prefixes.items() if _is_iri(iri)}
    return _document(source, triples, prefixes)


def _is_iri(text: str) -> bool:
    try:
        NamedNode(text)
    except ValueError:
        return False
    return True


def _document(source: str, triples: list[Triple], prefixes: dict[str, str]) -> OntologyDocument:
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
    return OntologyDocument(source, triples, prefixes, tuple(names), tuple(imports))


def _raise(problem: Problem) -> None:
    """Raise the problem as `InputError`, without the advice to name a format: no option does so."""
    remedy = problem.remedy.replace(", or name its format (`format=` or `--format`)", "")
    raise InputError(replace(problem, remedy=remedy))

"""One RDF document of an ontology: its triples, names and imports.

A document is a file, or is fetched over http or https, but only if the user asks for this.
`semantic.reading` parses RDF, and `semantic.ontology.owlxml` parses OWL/XML.
"""

from __future__ import annotations

import io
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

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

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

_REMEDY = "Give RDF (Turtle, RDF/XML, JSON-LD, N-Triples, …), OWL/XML or a file of synonyms (.csv)."
_ONTOLOGY = OWL["Ontology"]
_VERSION = OWL["versionIRI"]
_IMPORTS = OWL["imports"]
_ACCEPT = (
    "text/turtle, application/rdf+xml;q=0.9, application/n-triples;q=0.9, "
    "application/ld+json;q=0.8, application/owl+xml;q=0.7, */*;q=0.1"
)
_PIECE = 1 << 16
_NOT_FETCHED = "Its statements are left out. Save it in a file, and load that file, too."


@dataclass(frozen=True, slots=True)
class OntologyDocument:
    """The content of one ontology document: its triples, prefixes, names and imports.

    `source` is its name as the user wrote it, or its address. Its blank nodes occur in no other
    document. `names` are the IRIs of the ontologies that it declares, and of their versions.
    `imports` are the IRIs of the ontologies that it imports.
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
    syntax: RdfFormat | None = None,
    base_iri: str | None = None,
) -> OntologyDocument:
    """Read one document from a seekable stream.

    Without `syntax`, the name and content decide. Relative IRIs are resolved against `base_iri`,
    unless the document declares a base. Raise `InputError` if it is not RDF or has an error.

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


# -- fetching -------------------------------------------------------------------------------


def fetch_document(address: str, on_problem: OnProblem, limits: Limits) -> OntologyDocument:
    """Fetch a document over http or https, and read it.

    `Limits.document_bytes` applies, and `Limits.fetch_seconds` bounds the whole download. Raise
    `InputError` if the download fails (unknown address, too large, too slow, neither http nor
    https), or if the document is not RDF or has an error.
    """
    # A thread fetches the document, because neither name lookups nor servers that send a byte now
    # and then have a time limit. An abandoned thread ends at its next piece, or when the server
    # closes the connection.
    answer: Queue[_Fetched | InputError] = Queue()

    def fetch() -> None:
        try:
            answer.put(_fetch(address, limits))
        except InputError as error:
            answer.put(error)

    Thread(target=fetch, daemon=True).start()
    try:
        got = answer.get(timeout=limits.fetch_seconds)
    except Empty:
        raise _not_fetched(address, _too_slow(limits)) from None
    if isinstance(got, InputError):
        raise got
    return read_document(
        io.BytesIO(got.data),
        address,
        on_problem=on_problem,
        limits=limits,
        syntax=got.syntax,
        base_iri=got.address,
    )


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A fetched document: its address after redirects, content and syntax (``None`` if unknown)."""

    address: str
    data: bytes
    syntax: RdfFormat | None


def _fetch(address: str, limits: Limits) -> _Fetched:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request

    end = time.monotonic() + limits.fetch_seconds
    try:
        if urlsplit(address).scheme not in ("http", "https"):
            raise _not_fetched(address, "neither http nor https")
        headers = {"Accept": _ACCEPT, "User-Agent": "graphmatch"}
        request = Request(address, headers=headers)  # noqa: S310 -- checked above
        with _opener().open(request, timeout=limits.fetch_seconds) as response:
            data = bytearray()
            while piece := response.read1(_PIECE):
                data += piece
                if len(data) > limits.document_bytes:
                    raise _not_fetched(address, f"larger than {limits.document_bytes:,} bytes")
                if time.monotonic() > end:
                    raise _not_fetched(address, _too_slow(limits))
            media_type = response.headers.get_content_type()
            # Servers use text/plain for unknown file types.
            is_told = media_type != "text/plain"
            syntax = RdfFormat.from_media_type(media_type) if is_told else None
            return _Fetched(response.url, bytes(data), syntax)
    except (URLError, HTTPException, OSError, ValueError) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise _not_fetched(address, f"it could not be fetched: {error}") from error


def _not_fetched(address: str, what: str) -> InputError:
    return InputError(Problem(what, Place(address), _NOT_FETCHED))


def _too_slow(limits: Limits) -> str:
    return f"it took more than {limits.fetch_seconds:g} seconds"


def _opener() -> OpenerDirector:
    """Return an opener for http and https only: no files, no FTP."""
    from urllib import request

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.UnknownHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPRedirectHandler,
        request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener

"""Which syntax a document is in, and its quads with every fault placed.

A name's extension or a media type decides where it is one that RDF syntaxes have;
otherwise the content does. Parsing is pyoxigraph's. What is added here: places in
error messages, the XML guard, relative IRIs as errors in every syntax (JSON-LD
would drop them), and going on after a bad line where a syntax has lines.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import IO

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from semantic.errors import InputError, OnProblem, Place, Problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.xml_guard import check_xml

LINE_FORMATS = frozenset({RdfFormat.N_TRIPLES, RdfFormat.N_QUADS})
"""Formats in which a bad line leaves the next one readable."""

HEAD_BYTES = 8192
"""How much of a document is looked at to tell its syntax."""

_RELATIVE = "http://relative.invalid/"
_COMMENT = re.compile(rb"\A(?:\s+|#[^\n]*(?:\n|\Z))*")
_STATEMENT = re.compile(rb"\A(?:<[^>\s]*>|_:\S+)\s+<[^>\s]*>\s+(?:<[^>\s]*>|_:\S+|\").*")
_IN_QUOTES = re.compile(r"'([^']*)'")


def format_of_name(name: str) -> RdfFormat | None:
    """Return the format that a file name's extension says, if it says one.

    Examples
    --------
    >>> format_of_name("a/b.ttl"), format_of_name("feed.xml"), format_of_name("notes")
    (<RdfFormat Turtle>, None, None)
    """
    extension = name.rpartition("/")[2].rpartition(".")[2].lower()
    if extension in ("xml", "json", name):
        return None  # may be a feed: the content decides
    return RdfFormat.RDF_XML if extension == "owl" else RdfFormat.from_extension(extension)


def format_of_media_type(media_type: str) -> RdfFormat:
    """Return the format of a media type (``text/turtle``) or an extension (``ttl``).

    Raises
    ------
    InputError
        When it names no RDF syntax.
    """
    found = RdfFormat.from_media_type(media_type)
    found = found or RdfFormat.from_extension(media_type.lstrip("."))
    if found is None:
        raise InputError(
            Problem(
                f"no RDF syntax is called {media_type!r}",
                Place("format"),
                "Give a media type such as text/turtle or an extension such as nq.",
            )
        )
    return found


def format_of_content(head: bytes) -> RdfFormat | None:
    """Return the format that a document's beginning looks like; ``None`` where it is no RDF.

    Examples
    --------
    >>> format_of_content(b"@prefix a: <urn:a> .")
    <RdfFormat TriG>
    >>> format_of_content(b"<urn:a> <urn:b> <urn:c> .")
    <RdfFormat N-Quads>
    >>> format_of_content(b"<!DOCTYPE html><html>") is None
    True
    """
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    lowered = body[:1024].lower()
    if lowered.startswith((b"<!doctype html", b"<html")):
        return None
    if lowered.startswith((b"<?xml", b"<!doctype", b"<!--", b"<rdf:rdf")):
        return RdfFormat.RDF_XML if b"rdf-syntax-ns#" in head else None
    if body.startswith((b"{", b"[")) and b'"' in body[:64]:
        return RdfFormat.JSON_LD
    body = body[_match_end(body) :]
    if _STATEMENT.match(body):
        first = body.splitlines()[0].rstrip()
        return RdfFormat.N_QUADS if first.endswith(b".") else RdfFormat.TRIG
    if re.match(rb"(?i)@?(prefix|base)\b|[<_\[(@\w:]", body):
        return RdfFormat.TRIG
    return None


def _match_end(body: bytes) -> int:
    found = _COMMENT.match(body)
    return found.end() if found else 0


def is_html(head: bytes) -> bool:
    """Whether a document begins like an HTML page."""
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:256].lower()
    return body.startswith((b"<!doctype html", b"<html"))


def read_quads(
    stream: IO[bytes],
    syntax: RdfFormat,
    source: str,
    *,
    on_problem: OnProblem,
    base_iri: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    prefixes: dict[str, str] | None = None,
) -> Iterator[Quad]:
    """Yield the quads of a document as they are parsed.

    Blank nodes are renamed, so that documents can be put together. A bad line of N-Triples or
    N-Quads is reported and passed over. `prefixes`, where it is given, gets those of the document.

    Raises
    ------
    InputError
        At the first fault of a document that has no lines.
    """
    if syntax in LINE_FORMATS:
        stream = io.BufferedReader(_LineGuard(stream, source, on_problem))
    else:
        stream = _checked(stream, syntax, source, limits)
    base = base_iri or (_RELATIVE if syntax == RdfFormat.JSON_LD else None)
    quads = parse(stream, format=syntax, base_iri=base, rename_blank_nodes=True)
    while True:
        try:
            quad = next(quads, None)
        except SyntaxError as error:
            problem = _problem(error, syntax, source)
            if syntax not in LINE_FORMATS:
                raise InputError(problem) from error
            on_problem(problem)
            continue
        if quad is None:
            if prefixes is not None:
                prefixes.update(quads.prefixes)
            return
        if base == _RELATIVE:
            _refuse_relative(quad, source)
        yield quad


def _checked(stream: IO[bytes], syntax: RdfFormat, source: str, limits: Limits) -> IO[bytes]:
    """Guard an XML document; other syntaxes pass through."""
    if syntax != RdfFormat.RDF_XML:
        return stream
    data = read_whole(stream, source, limits)
    check_xml(data, source, limits)
    return io.BytesIO(data)


def read_whole(stream: IO[bytes], source: str, limits: Limits) -> bytes:
    """Read a document that has to be held in memory.

    Raises
    ------
    InputError
        When it is larger than ``limits.document_bytes``.
    """
    data = stream.read(limits.document_bytes + 1)
    if len(data) > limits.document_bytes:
        raise InputError(
            Problem(
                f"larger than {limits.document_bytes:,} bytes",
                Place(source),
                "Raise the limit `document_bytes`, or give the data as N-Quads, which is streamed.",
            )
        )
    return data


def _problem(error: SyntaxError, syntax: RdfFormat, source: str) -> Problem:
    message = str(error.args[0] if error.args else error)
    message = re.sub(r"^Parser error (?:at|between) .*?: ", "", message)
    if "No scheme found" in message:
        found = _IN_QUOTES.search(message)
        what = f"a relative IRI ({found[1]})" if found else "a relative IRI"
        remedy = "Write the whole IRI, or give the document's base with --base."
        return Problem(what, Place(source, error.lineno, error.offset), remedy)
    if "LoadDocumentCallback" in message:
        remedy = "Put the context into the document: nothing is fetched."
        return Problem("a remote JSON-LD context", Place(source), remedy)
    what = f"not valid {syntax.name}: {message}"
    remedy = "Correct the document there, or name its format with --format."
    return Problem(what, Place(source, error.lineno, error.offset), remedy)


def _refuse_relative(quad: Quad, source: str) -> None:
    for term in (quad.subject, quad.predicate, quad.object, quad.graph_name):
        if isinstance(term, NamedNode) and term.value.startswith(_RELATIVE):
            name = term.value.removeprefix(_RELATIVE)
            remedy = "Write the whole IRI, or give the document's base with --base."
            raise InputError(Problem(f"a relative IRI ({name})", Place(source), remedy))


class _LineGuard(io.RawIOBase):
    """A stream of lines in which each that is not UTF-8 is reported and made empty."""

    def __init__(self, stream: IO[bytes], source: str, on_problem: OnProblem) -> None:
        self._stream = stream
        self._source = source
        self._on_problem = on_problem
        self._line = 0
        self._ready = b""

    def readable(self) -> bool:
        """Return that this stream can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer with whole checked blocks of lines."""
        if not self._ready:
            block = self._stream.read(1 << 20)
            if block and not block.endswith(b"\n"):
                block += self._stream.readline()
            self._ready = self._check(block)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _check(self, block: bytes) -> bytes:
        try:
            block.decode()
        except UnicodeDecodeError:
            block = b"".join(
                self._checked_line(number, line)
                for number, line in enumerate(block.splitlines(keepends=True), self._line + 1)
            )
        self._line += block.count(b"\n")
        return block

    def _checked_line(self, number: int, line: bytes) -> bytes:
        try:
            line.decode()
        except UnicodeDecodeError as error:
            place = Place(self._source, line=number, column=error.start + 1)
            self._on_problem(Problem("not UTF-8", place, "Save the file as UTF-8; line skipped."))
            return b"\n"
        return line

"""A document's quads, with every fault placed.

Parsing is pyoxigraph's. What is added here: places and remedies in messages, limits on what is
held and on nesting, XML in any encoding, relative IRIs as errors in every syntax (JSON-LD would
drop them), and going on after a bad line where a syntax has lines (`semantic.lines`).
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from typing import IO, NoReturn
from xml.parsers import expat

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from semantic.errors import InputError, OnProblem, Place, Problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.lines import read_line_runs, read_lines
from semantic.nesting import json_depth, triple_term_depth
from semantic.runs import Run, runs_of
from semantic.stream import Pieces, Readable, pieces
from semantic.syntax_error import problem_of, relative_iri
from semantic.term_texts import TermTexts
from semantic.xml_guard import check_xml, recode_xml

LINE_FORMATS = frozenset({RdfFormat.N_TRIPLES, RdfFormat.N_QUADS})
"""Formats in which a bad line leaves the next one readable."""

_HELD = frozenset({RdfFormat.RDF_XML, RdfFormat.JSON_LD})
_RELATIVE = "http://relative.invalid/"
_IN_QUOTES = re.compile(r"'([^']*)'")
_NAMING = rb'(?:"@id"\s*:|(?:about|resource|datatype|ID)\s*=)'
_REMOTE = re.compile(rb'"@context"\s*:\s*\[?\s*"')


def read_quads(
    stream: Readable,
    syntax: RdfFormat,
    source: str,
    *,
    on_problem: OnProblem,
    base_iri: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    prefixes: dict[str, str] | None = None,
    remedy: str = "Correct the document there.",
) -> Iterator[Quad]:
    """Yield the quads of a document as they are parsed.

    Blank nodes are renamed, so that documents can be put together. A bad line of N-Triples or
    N-Quads is reported and passed over. `prefixes`, where it is given, gets those of the document.

    Parameters
    ----------
    remedy
        What the message of a syntax error advises.

    Raises
    ------
    InputError
        At the first fault of a document that has no lines.
    """
    if syntax in LINE_FORMATS:
        text = _unmarked(pieces(stream))
        yield from read_lines(text, syntax, source, on_problem=on_problem, limits=limits)
        return
    if syntax != RdfFormat.RDF_XML:  # there the mark may contradict the declaration: it holds
        stream = io.BufferedReader(Pieces(_unmarked(pieces(stream))))
    if syntax in _HELD:
        yield from _held(stream, syntax, source, base_iri, limits, prefixes, remedy)
        return
    guard = _TermGuard(stream, limits)
    guarded = io.BufferedReader(Pieces(iter(guard)))
    try:
        yield from _parsed(guarded, syntax, base_iri, prefixes)
    except SyntaxError as error:
        guard.check(source)
        place = Place(source, error.lineno, error.offset)
        raise InputError(problem_of(error, syntax, place, remedy)) from error
    guard.check(source)


def read_runs(
    data: Iterator[bytes],
    syntax: RdfFormat,
    source: str,
    *,
    on_problem: OnProblem,
    texts: TermTexts,
    base_iri: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    remedy: str = "Correct the document there.",
) -> Iterator[Run]:
    """Yield the same by runs of one graph.

    Parameters
    ----------
    data
        The document, piece by piece.
    texts
        Remembers the texts of terms.

    Raises
    ------
    InputError
        As `read_quads`.
    """
    if syntax in LINE_FORMATS:
        return read_line_runs(
            _unmarked(data), syntax, source, on_problem=on_problem, limits=limits, texts=texts
        )
    return runs_of(
        read_quads(
            io.BufferedReader(Pieces(data)),
            syntax,
            source,
            on_problem=on_problem,
            base_iri=base_iri,
            limits=limits,
            remedy=remedy,
        )
    )


def _unmarked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Leave out UTF-8's byte order mark, which is no part of any syntax."""
    yield next(pieces, b"").removeprefix(codecs.BOM_UTF8)
    yield from pieces


def _parsed(
    data: bytes | IO[bytes],
    syntax: RdfFormat,
    base_iri: str | None,
    prefixes: dict[str, str] | None,
) -> Iterator[Quad]:
    quads = parse(data, format=syntax, base_iri=base_iri, rename_blank_nodes=True)
    yield from quads
    if prefixes is not None:
        prefixes.update(quads.prefixes)


class _TermGuard:
    """The pieces of a text, up to where triple terms nest too deep for a recursive parser."""

    def __init__(self, stream: Readable, limits: Limits) -> None:
        self._stream = stream
        self._limit = limits.nesting
        self._deepest = 0

    def __iter__(self) -> Iterator[bytes]:
        depth, tail = 0, b""
        for piece in pieces(self._stream):
            seen = tail + piece
            deepest, depth = triple_term_depth(seen, depth)
            if deepest > self._limit:
                self._deepest = deepest
                return
            tail = b"" if seen.endswith((b"<<(", b")>>")) else seen[-2:]
            yield piece

    def check(self, source: str) -> None:
        """Raise when the text was cut short."""
        if self._deepest:
            _refuse_nesting("its triple terms nest", source, self._limit)


def _held(
    stream: Readable,
    syntax: RdfFormat,
    source: str,
    base_iri: str | None,
    limits: Limits,
    prefixes: dict[str, str] | None,
    remedy: str,
) -> Iterator[Quad]:
    """Yield the quads of a document that is held whole, which is looked through first."""
    data = read_whole(pieces(stream), source, limits)
    if syntax == RdfFormat.RDF_XML:
        fault = check_xml(data, source, limits)
        data = recode_xml(data, source)
        if fault is not None:  # where its parser, at an early end, would say nothing
            what = f"not valid XML: {expat.ErrorString(fault.code)}"
            place = Place(source, fault.lineno, fault.offset + 1)
            raise InputError(Problem(what, place, remedy))
    elif json_depth(data, limits.nesting) > limits.nesting:
        _refuse_nesting("its objects and lists nest", source, limits.nesting)
    drops_relative = syntax == RdfFormat.JSON_LD and base_iri is None
    base = _RELATIVE if drops_relative else base_iri
    try:
        for quad in _parsed(data, syntax, base, prefixes):
            if drops_relative:
                _refuse_relative(quad, data, source)
            yield quad
    except SyntaxError as error:
        place = _place(error, data, source)
        raise InputError(problem_of(error, syntax, place, remedy)) from error


def read_whole(data: Iterable[bytes], source: str, limits: Limits) -> bytes:
    """Read a document that has to be held in memory, from its pieces.

    Raises
    ------
    InputError
        When it is larger than ``limits.document_bytes``.
    """
    held: list[bytes] = []
    size = 0
    for piece in data:
        held.append(piece)
        size += len(piece)
        if size > limits.document_bytes:
            what = f"larger than {limits.document_bytes:,} bytes"
            remedy = (
                "Raise the limit `document_bytes`, or give the data as N-Quads, which is streamed."
            )
            raise InputError(Problem(what, Place(source), remedy))
    return b"".join(held)


def _place(error: SyntaxError, data: bytes, source: str) -> Place:
    """Return where an error is; what the parser does not say is looked for."""
    if error.lineno is not None:
        return Place(source, error.lineno, error.offset)
    if (found := _IN_QUOTES.search(str(error))) and "No scheme found" in str(error):
        return _place_of_name(found[1], data, source)
    if (context := _REMOTE.search(data)) and "LoadDocumentCallback" in str(error):
        return _at(data, context.start(), source)
    return Place(source)


def _refuse_relative(quad: Quad, data: bytes, source: str) -> None:
    for term in (quad.subject, quad.predicate, quad.object, quad.graph_name):
        if isinstance(term, NamedNode) and term.value.startswith(_RELATIVE):
            name = term.value.removeprefix(_RELATIVE)
            raise InputError(relative_iri(name, _place_of_name(name, data, source)))


def _place_of_name(name: str, data: bytes, source: str) -> Place:
    """Return where a document says a relative IRI, if it is written there as it was read."""
    quoted = re.escape(name.removeprefix("#").encode())
    found = re.search(_NAMING + rb"\s*([\"'])#?" + quoted + rb"\1", data)
    return _at(data, found.start(), source) if found else Place(source)


def _at(data: bytes, offset: int, source: str) -> Place:
    before = data[:offset]
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", errors="replace")) + 1
    return Place(source, before.count(b"\n") + 1, column)


def _refuse_nesting(what: str, source: str, limit: int) -> NoReturn:
    remedy = "If you trust the document, raise the limit `nesting`."
    raise InputError(Problem(f"{what} more than {limit} deep", Place(source), remedy))

"""A document's quads, with every fault placed.

Parsing is pyoxigraph's. What is added here: places and remedies in messages, limits on what is
held and on nesting, XML in any encoding, relative IRIs as errors in every syntax (JSON-LD would
drop them), and going on after a bad line of N-Triples and N-Quads.

Of these two, blocks of whole lines are parsed at once. Where a block has a fault it is parsed
again, a line at a time, so that each bad line is one problem with its own place, whatever a parser
would make of the lines after it. Blank nodes keep one name throughout, which no other document has.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import IO, NoReturn
from uuid import uuid4
from xml.parsers import expat

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from semantic.errors import InputError, OnProblem, Place, Problem
from semantic.guards import check_xml, json_depth, recode_xml, triple_term_depth
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.stream import Pieces, Readable, pieces
from semantic.terms import renamed

LINE_FORMATS = frozenset({RdfFormat.N_TRIPLES, RdfFormat.N_QUADS})
"""Formats in which a bad line leaves the next one readable."""

HOPELESS = 100
"""After so many bad lines and not one good one, a document is given up."""

BASE_REMEDY = "Write the whole IRI, or give the document a base: in it, or with --base."
LINE_REMEDY = "Correct the line; it was skipped."

_HELD = frozenset({RdfFormat.RDF_XML, RdfFormat.JSON_LD})
_RELATIVE = "http://relative.invalid/"
_POSITION = re.compile(r"^Parser error (?:at|between) .*?: ")
_NOT_UTF8 = ("Invalid UTF-8", "decode input using UTF-8")
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
    names: str | None = None,
) -> Iterator[Quad]:
    """Yield the quads of a document as they are parsed.

    Blank nodes are renamed, so that documents can be put together. A bad line of N-Triples or
    N-Quads is reported and passed over. `prefixes`, where it is given, gets those of the document.

    Parameters
    ----------
    remedy
        What the message of a syntax error advises.
    names
        What blank nodes' names begin with in a document of lines; by default what no other
        document's do.

    Raises
    ------
    InputError
        At the first fault of a document that has no lines; of one that has, when its first lines
        are all bad, or one is longer than ``limits.document_bytes``.
    """
    if syntax in LINE_FORMATS:
        lines = _Lines(syntax, source, on_problem, limits, names)
        for block in _blocks(_unmarked(pieces(stream)), source, limits):
            yield from lines.quads(block)
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


# -- lines ----------------------------------------------------------------------------------


def _blocks(pieces: Iterable[bytes], source: str, limits: Limits) -> Iterator[bytes]:
    """Yield the document in pieces of whole lines."""
    pending: list[bytes] = []
    size = 0
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join((*pending, piece[:end]))
            pending, size = [], 0
        pending.append(piece[end:])
        size += len(piece) - end
        if size > limits.document_bytes:
            what = f"a line of more than {limits.document_bytes:,} bytes"
            remedy = "Raise the limit `document_bytes`, if it is meant to be so long."
            raise InputError(Problem(what, Place(source), remedy))
    if rest := b"".join(pending):
        yield rest


class _Lines:
    """What is known of a document while its blocks are parsed."""

    def __init__(
        self,
        syntax: RdfFormat,
        source: str,
        on_problem: OnProblem,
        limits: Limits,
        names: str | None = None,
    ) -> None:
        self._syntax = syntax
        self._source = source
        self._on_problem = on_problem
        self._limits = limits
        self._line = 1
        self._bad = 0
        self._any = False
        self._names = names

    @cached_property
    def names(self) -> str:
        """What blank nodes' names begin with."""
        return f"b{uuid4().hex}" if self._names is None else self._names

    def quads(self, block: bytes) -> list[Quad]:
        """Parse the next block."""
        try:
            quads = self._parse(block)
        except SyntaxError:
            quads = list(self._line_by_line(block))
        self._line += block.count(b"\n")
        return [self._renamed(quad) for quad in quads] if b"_:" in block else quads

    def _parse(self, text: bytes) -> list[Quad]:
        if triple_term_depth(text)[0] > self._limits.nesting:
            raise SyntaxError(f"its triple terms nest more than {self._limits.nesting} deep")
        quads = list(parse(text, format=self._syntax))
        self._any |= bool(quads)
        return quads

    def _line_by_line(self, block: bytes) -> Iterator[Quad]:
        for number, line in enumerate(block.splitlines(), self._line):
            try:
                yield from self._parse(line)
            except SyntaxError as error:
                self._report(number, error)

    def _report(self, number: int, error: SyntaxError) -> None:
        self._bad += 1
        place = Place(self._source, number, error.offset)
        self._on_problem(problem_of(error, self._syntax, place, LINE_REMEDY))
        if self._bad == HOPELESS and not self._any:
            what = f"none of its first {HOPELESS} lines is {self._syntax.name}"
            raise InputError(Problem(what, Place(self._source), "Name its syntax with --format."))

    def _renamed(self, quad: Quad) -> Quad:
        subject, object_ = renamed(quad.subject, self.names), renamed(quad.object, self.names)
        return Quad(subject, quad.predicate, object_, renamed(quad.graph_name, self.names))


# -- other syntaxes -------------------------------------------------------------------------


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


# -- what is told ---------------------------------------------------------------------------


def problem_of(error: SyntaxError, syntax: RdfFormat, place: Place, remedy: str) -> Problem:
    """Return what pyoxigraph's error says.

    Parameters
    ----------
    place
        Where it is, as far as that is known.
    remedy
        What to do where nothing better is known.

    Examples
    --------
    >>> error = SyntaxError("Parser error at line 2 column 1: a dot is expected")
    >>> print(problem_of(error, RdfFormat.TURTLE, Place("a.ttl", 2, 1), "Correct it there."))
    a.ttl:2:1: not valid Turtle: a dot is expected. Correct it there.
    """
    message = _POSITION.sub("", str(error.args[0] if error.args else error)).rstrip(".")
    if "No scheme found" in message:
        found = _IN_QUOTES.search(message)
        return relative_iri(found[1] if found else "", place, lines=remedy == LINE_REMEDY)
    if "LoadDocumentCallback" in message:
        remedy = "Put the context into the document: nothing is fetched."
        return Problem("a remote JSON-LD context", place, remedy)
    if any(words in message for words in _NOT_UTF8):
        remedy = remedy if remedy == LINE_REMEDY else "Save the document as UTF-8."
        return Problem("not UTF-8", place, remedy)
    return Problem(f"not valid {syntax.name}: {message}", place, remedy)


def relative_iri(name: str, place: Place, *, lines: bool = False) -> Problem:
    """Return the problem of an IRI that is not whole, in a document of lines or another."""
    what = f"a relative IRI ({name})" if name else "a relative IRI"
    return Problem(what, place, f"Write the whole IRI. {LINE_REMEDY}" if lines else BASE_REMEDY)

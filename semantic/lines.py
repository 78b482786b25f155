"""N-Triples and N-Quads, line by line: a bad one is reported, and the next one is read.

Blocks of whole lines are parsed at once. Where a block has a fault it is parsed again, a line at
a time, so that each bad line is one problem with its own place, whatever a parser would make of
the lines after it. Blank nodes keep one name throughout, which no other document has.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeVar
from uuid import uuid4

from pyoxigraph import BlankNode, Quad, RdfFormat, Triple, parse

from semantic.errors import InputError, OnProblem, Place, Problem
from semantic.limits import Limits
from semantic.nesting import triple_term_depth
from semantic.stream import Readable, pieces
from semantic.syntax_error import LINE_REMEDY, problem_of

HOPELESS = 100
"""After so many bad lines and not one good one, a document is given up."""

_Node = TypeVar("_Node")


def read_lines(
    stream: Readable,
    syntax: RdfFormat,
    source: str,
    *,
    on_problem: OnProblem,
    limits: Limits,
) -> Iterator[Quad]:
    """Yield the quads of a document of lines; see the module.

    Raises
    ------
    InputError
        When its first lines are all bad, or one is longer than ``limits.document_bytes``.
    """
    reader = _Lines(syntax, source, on_problem, limits)
    return chain.from_iterable(map(reader.quads, _blocks(stream, source, limits)))


def _blocks(stream: Readable, source: str, limits: Limits) -> Iterator[bytes]:
    """Yield the document in pieces of whole lines."""
    pending: list[bytes] = []
    size = 0
    for piece in pieces(stream):
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
        self, syntax: RdfFormat, source: str, on_problem: OnProblem, limits: Limits
    ) -> None:
        self._syntax = syntax
        self._source = source
        self._on_problem = on_problem
        self._limits = limits
        self._line = 1
        self._bad = 0
        self._any = False
        self._names = f"b{uuid4().hex}"

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
        name = self._name
        return Quad(name(quad.subject), quad.predicate, name(quad.object), name(quad.graph_name))

    def _name(self, node: _Node) -> _Node:
        if isinstance(node, BlankNode):
            return type(node)(f"{self._names}{node.value}")
        if isinstance(node, Triple):
            return type(node)(self._name(node.subject), node.predicate, self._name(node.object))
        return node

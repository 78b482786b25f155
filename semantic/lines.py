"""N-Triples and N-Quads, line by line: a bad one is reported, and the next one is read.

Blocks of whole lines are parsed at once. Where a block has a fault it is parsed again, a line at
a time, so that each bad line is one problem with its own place, whatever a parser would make of
the lines after it. Blank nodes keep one name throughout, which no other document has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from uuid import uuid4

from pyoxigraph import Quad, RdfFormat, parse

from semantic.errors import InputError, OnProblem, Place, Problem
from semantic.limits import Limits
from semantic.nesting import triple_term_depth
from semantic.runs import Run, runs_of
from semantic.syntax_error import LINE_REMEDY, problem_of
from semantic.term_texts import TermTexts, renamed

HOPELESS = 100
"""After so many bad lines and not one good one, a document is given up."""


def read_lines(
    pieces: Iterable[bytes],
    syntax: RdfFormat,
    source: str,
    *,
    on_problem: OnProblem,
    limits: Limits,
) -> Iterator[Quad]:
    """Yield the quads of a document of lines; see the module.

    Parameters
    ----------
    pieces
        Its bytes.

    Raises
    ------
    InputError
        When its first lines are all bad, or one is longer than ``limits.document_bytes``.
    """
    reader = _Lines(syntax, source, on_problem, limits)
    return chain.from_iterable(map(reader.quads, _blocks(pieces, source, limits)))


def read_line_runs(
    pieces: Iterable[bytes],
    syntax: RdfFormat,
    source: str,
    *,
    on_problem: OnProblem,
    limits: Limits,
    texts: TermTexts,
    names: str | None = None,
) -> Iterator[Run]:
    """Yield the same by runs of one graph; what is written plainly is looked up, not parsed.

    Parameters
    ----------
    texts
        Remembers texts.
    names
        What blank nodes' names begin with; by default what no other document's do.

    Raises
    ------
    InputError
        As `read_lines`.
    """
    from semantic.plain_lines import PlainLines

    reader = _Lines(syntax, source, on_problem, limits, names)
    has_graphs = syntax == RdfFormat.N_QUADS
    plain = PlainLines(has_graphs, texts, lambda: reader.names, limits.nesting)
    for block in _blocks(pieces, source, limits):
        runs = plain.runs(block)
        if runs is None:
            yield from runs_of(reader.quads(block))
        else:
            reader.pass_over(sum(run.size for run in runs))
            yield from runs


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

    def pass_over(self, lines: int) -> None:
        """Go on behind lines that were read otherwise."""
        self._line += lines
        self._any = True

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

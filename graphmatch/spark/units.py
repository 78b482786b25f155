"""Units: what one task reads at a time, and how.

=========  =====================================  ======================
unit       is                                     a publication is
=========  =====================================  ======================
table      row groups of a Parquet file           the rows with one id
lines      a range of bytes of a file of N-Quads  the lines of one graph
document   a file in any other syntax, or a feed  as `semantic.reading` says
=========  =====================================  ======================

Tables and lines are read in parts, so rows of one publication may be in several units; documents
are read whole. A task opens its files itself, through Arrow's file systems: rows do not go through
Spark before they are matched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from hashlib import blake2b
from itertools import chain
from typing import IO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, parse

from semantic.errors import InputError, OnProblem, Place, Problem, Severity
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.publication import Publication
from semantic.reading import Cut, read_publications, read_rdf, too_large
from semantic.tables import COLUMNS, publications_of_table
from semantic.terms import Term, Triple

_GraphName: TypeAlias = NamedNode | BlankNode | DefaultGraph

_GRAPH = re.compile(rb"[ \t](<[^<>\"{}|^`\\\s]*>)[ \t]*\.[ \t]*\r?$")
"""The graph of a plain line of N-Quads, or the object of one without a graph."""
_COMMENT = re.compile(rb"[ \t.]#")
_COUNTED = 1 << 20


class Kind(Enum):
    """What a unit is a part of."""

    TABLE = "table"
    LINES = "lines"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Unit:
    """What is read at once.

    Parameters
    ----------
    kind
        How it is read.
    path
        The file's name or address.
    size
        In bytes, as it is stored.
    begin, end
        Row groups of a table, or bytes of lines.
    first
        The number of rows before it in the file.
    """

    kind: Kind
    path: str
    size: int
    begin: int = 0
    end: int = 0
    first: int = 0

    @property
    def parted(self) -> bool:
        """Whether other units may have parts of its publications."""
        return self.kind is not Kind.DOCUMENT


@dataclass(frozen=True, slots=True)
class How:
    """How units are read.

    Parameters
    ----------
    columns
        What the columns publication, subject, predicate and object are called in tables.
    cut, format, base
        Of documents: as `semantic.read_publications` has them.
    limits
        What one input may cost.
    """

    columns: tuple[str, str, str, str] = COLUMNS
    cut: Cut = Cut.AUTO
    format: str | None = None
    base: str | None = None
    limits: Limits = DEFAULT_LIMITS


def system(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a name or an address, and what the file is called there.

    Raises
    ------
    InputError
        When there is no such file system here.
    """
    try:
        return fs.FileSystem.from_uri(path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        what = f"its file system cannot be reached: {error}"
        raise InputError(Problem(what, Place(path), "Check the address.")) from error


def publications(unit: Unit, how: How, on_problem: OnProblem) -> Iterator[Publication]:
    """Yield the publications of a unit; of one that is in several units, what this one has of it.

    Raises
    ------
    InputError
        When the file cannot be read at all.
    """
    try:
        match unit.kind:
            case Kind.TABLE:
                yield from _of_table(unit, how, on_problem)
            case Kind.LINES:
                yield from _of_lines(unit, how, on_problem)
            case Kind.DOCUMENT:
                yield from _of_document(unit, how, on_problem)
    except (OSError, pa.ArrowInvalid) as error:
        raise _unreadable(unit, error) from error


def _unreadable(unit: Unit, error: Exception) -> InputError:
    return InputError(Problem(f"cannot be read: {error}", Place(unit.path), "Check the file."))


def ids(unit: Unit, how: How) -> set[str]:
    """Return the ids of the publications of a table or of lines, and maybe of a few more.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    try:
        if unit.kind is Kind.TABLE:
            column = _table(unit, how.columns[:1]).column(0)
            return {id for id in column.unique().to_pylist() if id is not None}
        graphs = set(_graphs(_bytes(unit)))
    except (OSError, pa.ArrowInvalid) as error:
        raise _unreadable(unit, error) from error
    return {_id(graph, unit.path) for graph in graphs} | {unit.path}


# -- tables ---------------------------------------------------------------------------------


def _table(unit: Unit, columns: Iterable[str]) -> pa.Table:
    """Read columns of row groups, as places among their different values."""
    system_, path = system(unit.path)
    wanted = list(columns)
    has = pq.read_schema(path, filesystem=system_).names
    for name in wanted:
        if name not in has:
            remedy = f"It has {', '.join(has)}. Say which is which with --columns."
            raise InputError(Problem(f"no column {name!r}", Place(unit.path), remedy))
    with pq.ParquetFile(path, filesystem=system_, read_dictionary=wanted) as file:
        return file.read_row_groups(list(range(unit.begin, unit.end)), columns=wanted)


def _of_table(unit: Unit, how: How, on_problem: OnProblem) -> Iterator[Publication]:
    def report(problem: Problem) -> None:
        item = problem.where.item
        if item is not None and (row := item.removeprefix("row ")) != item:
            item = f"row {unit.first + int(row)}"
        on_problem(replace(problem, where=Place(unit.path, item=item)))

    table = _table(unit, how.columns).select(list(how.columns)).rename_columns(list(COLUMNS))
    for publication in publications_of_table(
        table, on_problem=report, limits=how.limits, names="b"
    ):
        yield publication.called(source=Place(unit.path, item=publication.id))


# -- lines ----------------------------------------------------------------------------------


def _bytes(unit: Unit) -> bytes:
    """Read the lines that begin in a range of a file."""
    system_, path = system(unit.path)
    with system_.open_input_file(path) as file:
        begin = _line_start(file, unit.begin)
        end = _line_start(file, unit.end)
        file.seek(begin)
        return bytes(file.read(end - begin))


def _line_start(file: IO[bytes] | pa.NativeFile, place: int) -> int:
    """Return where the first line begins that begins at a place or behind it."""
    if place == 0:
        return 0
    place -= 1
    file.seek(place)
    while piece := bytes(file.read(_COUNTED)):
        if (found := piece.find(b"\n")) >= 0:
            return place + found + 1
        place += len(piece)
    return place


def _lines_before(unit: Unit) -> int:
    """Return how many lines come before a range."""
    system_, path = system(unit.path)
    count, left = 0, 0
    with system_.open_input_file(path) as file:
        left = _line_start(file, unit.begin)
        file.seek(0)
        while left and (piece := bytes(file.read(min(left, _COUNTED)))):
            count += piece.count(b"\n")
            left -= len(piece)
    return count


def _of_lines(unit: Unit, how: How, on_problem: OnProblem) -> Iterator[Publication]:
    before: list[int] = []

    def report(problem: Problem) -> None:
        if problem.severity is Severity.WARNING:
            return  # a graph in several parts, which are put together
        if not before:
            before.append(_lines_before(unit))
        where = problem.where
        line = None if where.line is None else where.line + before[0]
        on_problem(replace(problem, where=replace(where, line=line)))

    parts: dict[str, list[Triple]] = {}
    for part in read_rdf(
        [_bytes(unit)],
        RdfFormat.N_QUADS,
        unit.path,
        on_problem=report,
        cut=Cut.GRAPH,
        limits=how.limits,
        names=_names(unit.path),
        may_be_empty=True,
    ):
        parts.setdefault(part.id, []).extend(part.given)
    for id, triples in parts.items():
        place = Place(unit.path, item=id)
        publication = Publication.of(id, triples, place)
        if (size := len(publication.triples)) > how.limits.publication_triples:
            report(too_large(place, how.limits, size))
        else:
            yield publication


def _names(path: str) -> str:
    """Return what the blank nodes of a file are called: in all of its units alike."""
    return f"f{blake2b(path.encode(), digest_size=8).hexdigest()}"


def _id(graph: _GraphName, path: str) -> str:
    if isinstance(graph, NamedNode):
        return graph.value
    return f"{path}#{graph.value}" if isinstance(graph, BlankNode) else path


def _graphs(text: bytes) -> Iterator[_GraphName]:
    """Yield the graphs that lines are in; an object may be among them."""
    seen: set[bytes] = set()
    for line in text.split(b"\n"):
        plain = None if _COMMENT.search(line) else _GRAPH.search(line)
        if plain is None:
            yield from (quad.graph_name for quad in _parsed(line))
        elif plain[1] not in seen:
            seen.add(plain[1])
            yield NamedNode(plain[1][1:-1].decode("utf-8", "replace"))


def _parsed(line: bytes) -> list[Quad]:
    try:
        return list(parse(line, format=RdfFormat.N_QUADS))
    except SyntaxError:
        return []


# -- documents ------------------------------------------------------------------------------


class _Named:
    """A file of Arrow's, which messages call by a name."""

    def __init__(self, file: pa.NativeFile, name: str) -> None:
        self._file = file
        self.name = name

    def read(self, size: int = -1, /) -> bytes:
        """Return at most so many bytes."""
        return bytes(self._file.read(None if size < 0 else size))


def _of_document(unit: Unit, how: How, on_problem: OnProblem) -> Iterator[Publication]:
    system_, path = system(unit.path)
    with system_.open_input_stream(path) as file:
        yield from read_publications(
            _Named(file, unit.path),
            cut=how.cut,
            format=how.format,
            base_iri=how.base,
            on_problem=on_problem,
            limits=how.limits,
        )


def lines_of(publication: Publication, written: Callable[[Term], str] = str) -> bytes:
    """Return a publication's triples as N-Triples; each distinct term is written once.

    Parameters
    ----------
    written
        Writes a term.
    """
    triples = publication.triples
    said = {term: written(term) for term in dict.fromkeys(chain.from_iterable(triples))}
    return "".join(f"{said[s]} {said[p]} {said[o]} .\n" for s, p, o in triples).encode()

"""Publications from files, folders, standard input and memory, one after the other.

N-Quads, N-Triples and TriG are streamed: a publication is yielded when its last
triple is read, and forgotten when the caller drops it. One unreadable document is
reported and the rest goes on.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyoxigraph import NamedNode, Quad, RdfFormat

from semantic.cut import (
    Cut,
    by_component,
    by_document,
    by_graph,
    by_item,
    by_subject,
    too_large,
)
from semantic.errors import InputError, OnProblem, Place, Problem, Severity, warn_problem
from semantic.feeds import FeedFormat, read_feed, sniff_feed
from semantic.folders import files_in, unreadable
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.publication import Publication
from semantic.quads import read_quads, read_whole
from semantic.stream import Pieces, Readable, pieces
from semantic.syntax import BLANK, HEAD_BYTES, format_of_media_type, refuse_foreign, tell_syntax

if TYPE_CHECKING:
    import rdflib

Source: TypeAlias = "str | Path | Readable | rdflib.Graph"

_DATASETS = frozenset({RdfFormat.N_QUADS, RdfFormat.TRIG, RdfFormat.JSON_LD})
_STDIN = "<stdin>"
_NOT_PUBLICATIONS = {
    ".rq": ("a file of a subscription", "Give it with --subscriptions."),
    ".jsonl": ("a file of subscriptions", "Give it with --subscriptions."),
    ".csv": ("a file of synonyms", "Give it with --ontology."),
}


@dataclass(frozen=True, slots=True)
class _Options:
    cut: Cut
    format: RdfFormat | None
    base_iri: str | None
    on_problem: OnProblem
    limits: Limits


def read_publications(
    *sources: Source,
    cut: Cut | str = Cut.AUTO,
    format: str | None = None,
    base_iri: str | None = None,
    on_problem: OnProblem = warn_problem,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Publication]:
    r"""Yield the publications of the sources, in their order.

    Parameters
    ----------
    sources
        File names, folders (all files in them, sorted by name), ``"-"`` for standard input,
        open binary files, or `rdflib.Graph` objects. The syntax is told by name or content.
    cut
        How a document becomes publications; see `semantic.cut`.
    format
        Media type or extension of the RDF syntax, where neither name nor content tells.
    base_iri
        What relative IRIs are resolved against; without one they are errors.
    on_problem
        Called with each document, line or item that is passed over.
    limits
        What one input may cost.

    Examples
    --------
    >>> import io
    >>> line = b"<urn:a> <urn:p> <urn:b> <urn:g%d> .\n"
    >>> stream = io.BytesIO(line % 1 + line % 2)
    >>> [(p.id, len(p.triples)) for p in read_publications(stream)]
    [('urn:g1', 1), ('urn:g2', 1)]
    """
    syntax = None if format is None else format_of_media_type(format)
    if base_iri is not None:
        check_base(base_iri)
    options = _Options(Cut(cut), syntax, base_iri, on_problem, limits)
    for source in sources:
        for publication in _from_source(source, options):
            if (size := len(publication.triples)) > limits.publication_triples:
                on_problem(too_large(publication.source, limits, size))
            else:
                yield publication


def documents(name: str | Path, on_problem: OnProblem) -> Iterator[tuple[str, Readable]]:
    """Yield the documents of a file, a folder or standard input (``"-"``), open, with their names.

    What cannot be read is reported, and the rest goes on.
    """
    if str(name) == "-":
        if sys.stdin is None:
            what, remedy = "standard input is closed", "Pipe a document into it."
            on_problem(Problem(what, Place(_STDIN), remedy))
        else:
            yield _STDIN, sys.stdin.buffer
        return
    for path in files_in(name, on_problem):
        try:
            with path.open("rb") as stream:
                yield str(path), stream
        except OSError as error:
            on_problem(unreadable(str(path), error))


def check_base(base_iri: str) -> None:
    """Raise `InputError` for a base that is none."""
    try:
        NamedNode(base_iri)
    except ValueError as error:
        what = f"the base {base_iri!r} is not an absolute IRI"
        remedy = "Give one such as https://example.org/."
        raise InputError(Problem(what, Place("base"), remedy)) from error


def _from_source(source: Source, options: _Options) -> Iterator[Publication]:
    if isinstance(source, str | Path):
        yield from _from_path(str(source), options)
    elif isinstance(source, io.BufferedIOBase) or isinstance(source, Readable):  # noqa: SIM101
        yield from _from_stream(source, str(getattr(source, "name", "<stream>")), options)
    else:
        yield Publication.from_rdflib(source)


def _from_path(name: str, options: _Options) -> Iterator[Publication]:
    if name == "-":
        yield from _from_stdin(options)
        return
    for path in files_in(name, options.on_problem):
        try:
            with path.open("rb") as stream:
                yield from _from_stream(stream, str(path), options)
        except OSError as error:
            options.on_problem(unreadable(str(path), error))


def _from_stdin(options: _Options) -> Iterator[Publication]:
    if sys.stdin is None:
        what, remedy = "standard input is closed", "Pipe a document into it."
        options.on_problem(Problem(what, Place(_STDIN), remedy))
        return
    try:
        yield from _from_stream(sys.stdin.buffer, _STDIN, options)
    except OSError as error:
        options.on_problem(unreadable(_STDIN, error))


def _from_stream(stream: Readable, source: str, options: _Options) -> Iterator[Publication]:
    """Yield a document's publications; report the fault that ends it early, or that it has none."""
    told: list[Problem] = []
    found = False

    def report(problem: Problem) -> None:
        told.append(problem)
        options.on_problem(problem)

    try:
        for publication in _document(stream, source, options, report):
            found = True
            yield publication
    except InputError as error:
        report(error.problem)
    if not found and not told:
        what = f"it holds no publication, with the cut `{options.cut.value}`"
        remedy = "Check that it is the right file, or use another cut."
        report(Problem(what, Place(source), remedy, Severity.WARNING))


def _document(
    stream: Readable, source: str, options: _Options, report: OnProblem
) -> Iterator[Publication]:
    rest = pieces(stream)
    head = _head(rest, 1 if options.format else HEAD_BYTES)
    whole = chain([head], rest)
    if not head.strip(BLANK):
        raise InputError(_empty(source))
    feed = sniff_feed(head) if options.format is None else None
    if feed is not None and options.cut in (Cut.AUTO, Cut.ITEM):
        data = read_whole(whole, source, options.limits)
        yield from read_feed(data, source, on_problem=report, limits=options.limits)
        return
    syntax = options.format or syntax_of(head, source)
    if options.format is not None:
        refuse_foreign(head, source)
    quads = read_quads(
        io.BufferedReader(Pieces(whole)),
        syntax,
        source,
        on_problem=report,
        base_iri=options.base_iri,
        limits=options.limits,
        remedy="Correct the document there, or name its format with --format.",
    )
    if syntax == RdfFormat.JSON_LD:
        quads = _of_json(quads, source)
    yield from _cut(quads, syntax, source, options, report)


def _of_json(quads: Iterator[Quad], source: str) -> Iterator[Quad]:
    """Refuse JSON of which nothing becomes a triple: most JSON is no JSON-LD."""
    first = next(quads, None)
    if first is None:
        what = "JSON that is neither a feed nor JSON-LD: nothing in it is a triple"
        remedy = "Give it a @context that makes its names IRIs."
        raise InputError(Problem(what, Place(source), remedy))
    yield first
    yield from quads


def _head(rest: Iterator[bytes], size: int) -> bytes:
    """Take at least so many bytes, or all there are."""
    head = b""
    while len(head) < size and (piece := next(rest, b"")):
        head += piece
    return head


def _empty(source: str) -> Problem:
    if source == _STDIN:
        return Problem("nothing came in", Place(source), "Pipe a document into it.")
    return Problem("the file is empty", Place(source), "Remove or fill it.")


def syntax_of(head: bytes, source: str) -> RdfFormat:
    """Return the RDF syntax of a document of publications, by its name and beginning.

    Raises
    ------
    InputError
        When it is none, with what it is instead; when it is a feed, which has a reader of its own.
    """
    if sniff_feed(head) not in (None, FeedFormat.RSS1):
        what, remedy = "a feed can only be cut into items", "Use the cut `item` or `auto`."
        raise InputError(Problem(what, Place(source), remedy))
    if (other := _NOT_PUBLICATIONS.get(Path(source).suffix.lower())) is not None:
        raise InputError(Problem(f"{other[0]}, not of publications", Place(source), other[1]))
    return tell_syntax(head, source)


def _cut(
    quads: Iterator[Quad], syntax: RdfFormat, source: str, options: _Options, report: OnProblem
) -> Iterator[Publication]:
    match options.cut:
        case Cut.SUBJECT:
            return by_subject(quads, source)
        case Cut.COMPONENT:
            return by_component(quads, source)
        case Cut.ITEM:
            return by_item(quads, source)
        case Cut.GRAPH:
            return by_graph(quads, source, report, options.limits)
        case Cut.AUTO if syntax in _DATASETS:
            return by_graph(quads, source, report, options.limits)
        case _:
            return by_document(quads, source, report, options.limits)

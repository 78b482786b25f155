"""Publications from files, folders, standard input and memory, one after the other.

N-Quads, N-Triples and TriG are streamed: a publication is yielded when its last
triple is read, and forgotten when the caller drops it. One unreadable document is
reported and the rest goes on.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from pyoxigraph import Quad, RdfFormat

from semantic.cut import Cut, by_component, by_document, by_graph, by_item, by_subject
from semantic.errors import InputError, OnProblem, Place, Problem, Severity, warn_problem
from semantic.feeds import FeedFormat, read_feed, sniff_feed
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.publication import Publication
from semantic.syntax import (
    HEAD_BYTES,
    format_of_content,
    format_of_media_type,
    format_of_name,
    is_html,
    read_quads,
    read_whole,
)

if TYPE_CHECKING:
    import rdflib


@runtime_checkable
class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, fewer only at the end."""


Source: TypeAlias = "str | Path | Readable | rdflib.Graph"

_DATASETS = frozenset({RdfFormat.N_QUADS, RdfFormat.TRIG, RdfFormat.JSON_LD})


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
    options = _Options(Cut(cut), syntax, base_iri, on_problem, limits)
    for source in sources:
        for publication in _from_source(source, options):
            if len(publication.triples) > limits.publication_triples:
                on_problem(_too_large(publication, limits))
            else:
                yield publication


def _from_source(source: Source, options: _Options) -> Iterator[Publication]:
    if isinstance(source, str | Path):
        yield from _from_path(str(source), options)
    elif isinstance(source, Readable):
        yield from _from_stream(source, str(getattr(source, "name", "<stream>")), options)
    else:
        yield Publication.from_rdflib(source)


def _from_path(name: str, options: _Options) -> Iterator[Publication]:
    if name == "-":
        yield from _from_stream(sys.stdin.buffer, "<stdin>", options)
        return
    for path in _files(name, options.on_problem):
        try:
            with path.open("rb") as stream:
                yield from _from_stream(stream, str(path), options)
        except OSError as error:
            options.on_problem(_unreadable(str(path), error))


def _files(name: str, on_problem: OnProblem) -> Iterable[Path]:
    path = Path(name)
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.is_file() and not f.name.startswith("."))
        if not files:
            what, remedy = "the folder has no files", "Give a folder with publications in it."
            on_problem(Problem(what, Place(name), remedy, Severity.WARNING))
        return files
    return [path]


def _unreadable(name: str, error: OSError) -> Problem:
    reason = error.strerror or str(error)
    return Problem(f"cannot be read: {reason}", Place(name), "Check the name and permissions.")


def _from_stream(stream: Readable, source: str, options: _Options) -> Iterator[Publication]:
    """Yield a document's publications; report the fault that ends it early."""
    head = stream.read(HEAD_BYTES)
    whole = io.BufferedReader(_Rewound(head, stream))
    try:
        yield from _document(head, whole, source, options)
    except InputError as error:
        options.on_problem(error.problem)


def _document(
    head: bytes, stream: IO[bytes], source: str, options: _Options
) -> Iterator[Publication]:
    if not head.strip(b" \t\r\n\xef\xbb\xbf\0"):
        raise InputError(Problem("the file is empty", Place(source), "Remove or fill it."))
    feed = sniff_feed(head) if options.format is None else None
    if feed is not None and options.cut in (Cut.AUTO, Cut.ITEM):
        data = read_whole(stream, source, options.limits)
        yield from read_feed(data, source, on_problem=options.on_problem, limits=options.limits)
        return
    syntax = options.format or _syntax(head, source, feed)
    quads = read_quads(
        stream,
        syntax,
        source,
        on_problem=options.on_problem,
        base_iri=options.base_iri,
        limits=options.limits,
    )
    yield from filter(lambda publication: publication.triples, _cut(quads, syntax, source, options))


def _syntax(head: bytes, source: str, feed: FeedFormat | None) -> RdfFormat:
    if feed not in (None, FeedFormat.RSS1):
        raise InputError(
            Problem(
                "a feed can only be cut into items", Place(source), "Use the cut `item` or `auto`."
            )
        )
    if is_html(head):
        raise InputError(
            Problem(
                "an HTML page, not RDF or a feed",
                Place(source),
                "Give the address of the data itself; a page often names its feed in a <link>.",
            )
        )
    found = format_of_name(source) or format_of_content(head)
    if found is None:
        raise InputError(
            Problem(
                "neither its name nor its content tells an RDF syntax or a feed format",
                Place(source),
                "Name the syntax with --format (for example turtle, nq, jsonld, rdf).",
            )
        )
    return found


def _cut(
    quads: Iterator[Quad], syntax: RdfFormat, source: str, options: _Options
) -> Iterator[Publication]:
    match options.cut:
        case Cut.DOCUMENT:
            return by_document(quads, source)
        case Cut.SUBJECT:
            return by_subject(quads, source)
        case Cut.COMPONENT:
            return by_component(quads, source)
        case Cut.ITEM:
            return by_item(quads, source)
        case Cut.GRAPH:
            return by_graph(quads, source, options.on_problem)
        case Cut.AUTO:
            if syntax in _DATASETS:
                return by_graph(quads, source, options.on_problem)
            return by_document(quads, source)


def _too_large(publication: Publication, limits: Limits) -> Problem:
    return Problem(
        f"a publication of {len(publication.triples):,} triples, "
        f"more than {limits.publication_triples:,}",
        publication.source,
        "Raise the limit `publication_triples`, or cut the document into smaller publications.",
    )


class _Rewound(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        """Return that this stream can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer from the head while there is some, then from the rest."""
        piece = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)

"""Matching of documents and tables: their publications are matched as they are read.

The core reads and matches RDF documents in batches of publications. A document in memory that is
one publication takes one call of the core, if its format is given or it is N-Quads. Feeds, and
documents that are split by items, subjects or components, are read in Python and matched one
publication after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pyoxigraph import RdfFormat

from graphmatch import _native
from graphmatch.report import EventReports, MatchReport
from semantic.clock import Clock, moment
from semantic.errors import InputError, OnProblem, Problem
from semantic.feeds import FeedFormat
from semantic.files import (
    PIECE,
    Pieces,
    Readable,
    documents,
    may_wait,
    missing,
    pieces,
    plain,
    unreadable,
)
from semantic.limits import Limits
from semantic.publication import Publication
from semantic.reading import Fault, SplitBy, problem_of, publications_of, recognise
from semantic.syntax_detection import BLANK, HEAD_BYTES

if TYPE_CHECKING:
    import numpy as np
    import rdflib
    from numpy.typing import NDArray

    from semantic.arrow import ArrowStream
    from semantic.attributes.events import Event

_TURN = 32
"""Maximum number of publications that are read before they are matched."""
Document: TypeAlias = "bytes | str | Path | Readable | rdflib.Graph"
"""Sources that `Engine.filter` reads."""
Found: TypeAlias = "_native.Report | _native.EnrichmentRequest | _native.CallRequest"
"""The core's result for a publication: its report, or a request for Python's steps."""


class Pipeline(NamedTuple):
    """The parts of an engine that match a document, and the options of its reader.

    Parameters
    ----------
    core, clock, limits
        Those of the engine.
    on_problem
        Called for each problem of the document.
    match
        Matches one publication or event.
    report
        Returns the report of a publication that the core read; see `Engine.filter`.
    split_by, syntax, base
        As for `Engine.filter`.
    """

    core: _native.Core
    clock: Clock
    limits: Limits
    on_problem: OnProblem
    match: Callable[[Publication | Event], MatchReport]
    report: Callable[[Found, Publication | None, datetime, str], MatchReport]
    split_by: SplitBy = SplitBy.DOCUMENT
    syntax: RdfFormat | None = None
    base: str | None = None

    def report_faults(self, faults: Iterable[Fault], name: str) -> None:
        """Pass each fault of the document `name` to `on_problem`, as a problem."""
        for fault in faults:
            self.on_problem(problem_of(fault, name))


def match_source(
    source: str | Path | Readable | rdflib.Graph, name: str | None, via: Pipeline
) -> Iterator[MatchReport]:
    """Match the publications of a source other than bytes; see `Engine.filter`.

    Raise `InputError` if a named file does not exist.
    """
    if isinstance(source, str | Path):
        if str(source) != "-" and (problem := missing(source)) is not None:
            raise InputError(problem)
        opened = documents(source, via.on_problem)
        return (report for own, one in opened for report in _match_stream(one, own, via))
    if hasattr(source, "read"):  # Faster than `isinstance` with a protocol.
        return _match_stream(source, name or str(getattr(source, "name", "<stream>")), via)
    return map(via.match, tuple(Publication.of_rdflib(source)))


def match_bytes(data: bytes, name: str, via: Pipeline) -> Iterator[MatchReport]:
    """Match a document in memory, in one call of the core if it is RDF with one publication."""
    now = via.clock()
    found = None
    if data[:HEAD_BYTES].strip(BLANK):
        extension = None if via.syntax is None else via.syntax.file_extension
        found = via.core.match_bytes(
            data, plain(name), moment(now), extension, via.split_by.value, via.base
        )
    if found is not None:  # ``None``: a feed, several publications, or an unknown syntax.
        outcome, faults = found
        if faults:
            via.report_faults(faults, name)
        if outcome is not None:
            yield via.report(outcome, None, now, name)
        return
    yield from _match_pieces(iter([data]), name, via, waits=False)


def _match_stream(stream: Readable, name: str, via: Pipeline) -> Iterator[MatchReport]:
    """Match a document from a stream; read a short one into memory first.

    A read error is passed to `on_problem`.
    """
    waits = may_wait(stream)
    enough = PIECE if not waits else HEAD_BYTES if via.syntax is None else 1
    rest = pieces(stream)
    try:
        head = next(rest, b"")
        while (is_more := len(head) < enough) and (piece := next(rest, b"")):
            head += piece
    except OSError as error:
        via.on_problem(unreadable(name, error))
        return
    if is_more:
        yield from match_bytes(head, name, via)
    else:
        yield from _match_pieces(chain([head], rest), name, via, waits=waits)


def _match_pieces(
    data: Iterator[bytes], name: str, via: Pipeline, *, waits: bool
) -> Iterator[MatchReport]:
    """Match a document while it is read.

    The core reads and matches RDF in batches. Python reads feeds, and RDF that is split by item,
    subject or component; these publications are matched one by one. `waits` says whether a read
    may wait for the sender.
    """
    split_by, base = via.split_by, via.base
    try:
        syntax, data = recognise(data, name, via.syntax, split_by, via.limits)
    except InputError as error:
        via.on_problem(error.problem)
        return
    except OSError as error:
        via.on_problem(unreadable(name, error))
        return
    if isinstance(syntax, FeedFormat) or split_by.needs_objects:
        turn: list[Publication | Problem] = []
        read = publications_of(data, syntax, name, split_by, base, turn.append, via.limits)
        # Reading and matching share the processor's caches badly, so items take turns.
        most = _TURN if isinstance(syntax, FeedFormat) else 1
        for publication in read:
            turn.append(publication)
            if len(turn) >= most:
                yield from _match_turn(turn, via)
        yield from _match_turn(turn, via)
        return
    document = via.core.document(
        Pieces(data, name), plain(name), syntax.file_extension, split_by.value, waits, base
    )
    goes_on = True
    while goes_on:
        now = via.clock()
        outcomes, before, faults, goes_on = document.next(moment(now))
        for place, outcome in enumerate(outcomes):
            if place == before:
                via.report_faults(faults, name)
            yield via.report(outcome, None, now, name)
        if before == len(outcomes):
            via.report_faults(faults, name)


def _match_turn(turn: list[Publication | Problem], via: Pipeline) -> Iterator[MatchReport]:
    """Match publications and report problems in their order, and empty the list."""
    for one in turn:
        if isinstance(one, Problem):
            via.on_problem(one)
        else:
            yield via.match(one)
    turn.clear()


def match_table(table: ArrowStream, via: Pipeline) -> Iterator[MatchReport]:
    """Match the publications of a table of triples; see `Engine.match_table`."""
    from semantic.tables import TripleTable

    rows = TripleTable(table)
    for id, lines, numbers in rows.publications(via.on_problem):

        def report_row(problem: Problem, numbers: NDArray[np.int64] = numbers) -> None:
            via.on_problem(rows.fault(numbers, problem))

        lines_via = via._replace(on_problem=report_row, syntax=RdfFormat.N_TRIPLES)
        yield from match_bytes(lines, id, lines_via)


def match_events(table: ArrowStream, id: str, via: Pipeline) -> EventReports:
    """Match the events of a table; see `Engine.match_events`."""
    from semantic.arrow import batches
    from semantic.attributes.events import EventColumns

    parts, before = [], 0
    for batch in batches(table):
        events = EventColumns(batch, id, before)
        ids = events.ids.data, events.ids.offsets
        found = via.core.match_events(ids, events.columns() or [], moment(via.clock()))
        others = {row: via.match(events.event(row)) for row in found.pending()}
        parts.append((events.ids, found, others))
        before += batch.num_rows
    return EventReports(parts, via.core, via.on_problem)

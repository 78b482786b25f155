"""The engine itself, the whole way through its public interface: all ids of a report are read.

Forms: bytes of a syntax (``nt``, ``turtle``, ``rdfxml``, ``jsonld``, ``feed``); ``objects``, which
are an id and triples of pyoxigraph's terms, or the publications of a feed; ``arrow``, a table of
events, of which the numbers of subscriptions are read as one array; ``dicts``, one event each.
``core`` is the core alone: publications that have been made and matched before, and a report whose
ids are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Asked, Peer
from graphmatch.bench.workloads.graph import SYNTAXES
from graphmatch.bench.workloads.workload import Workload, ids
from graphmatch.engine import Engine
from graphmatch.matcher import MatchReport
from semantic.attributes.events import Event
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication

_TABULAR = ("arrow", "dicts", "core")


class EnginePeer(Peer):
    """`graphmatch.Engine`, with the workload's ontology."""

    name: ClassVar = "graphmatch"
    forms: ClassVar = {
        "graph": (*SYNTAXES, "objects", "core"),
        "keywords": ("feed", "objects", "core"),
        **dict.fromkeys(("attributes", "concepts", "ranges", "trees", "equalities"), _TABULAR),
    }

    def given(self, workload: Workload) -> tuple[Ontology, Any]:
        """Return the ontology, and rows of ids and SPARQL texts or a table of constraints."""
        if workload.tabular:
            return workload.ontology(), workload.table()
        texts = workload.texts()
        return workload.ontology(), list(zip(ids(len(texts)), texts, strict=True))

    def build(self, given: tuple[Ontology, Any]) -> None:
        """Subscribe all."""
        ontology, subscriptions = given
        self.engine = Engine(ontology)
        take_in(self.engine, subscriptions)

    def prepare(self, workload: Workload, asked: Sequence[Asked], form: str) -> list[Any]:
        """Return one table for all, or an event each."""
        if form == "arrow":
            return [workload.events_table([number for number, _ in asked])]
        return super().prepare(workload, asked, form)

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> Any:
        """Return bytes and their format, publications, or a dictionary."""
        if form == "feed":
            return workload.document(number, form), None
        if form in SYNTAXES:
            return workload.document(number, form, serial), SYNTAXES[form].file_extension
        if workload.tabular:
            event = f"urn:e:{number}", workload.attributes(number)
            if form == "dicts":
                return event
            publications = [Event(*event).publication()]
        else:
            publications = workload.publications(number, serial)
        if form == "core":
            for publication in publications:
                len(self.engine.match(publication))
            return publications
        return [(publication.id, publication.triples) for publication in publications]

    def match(self, event: Any, form: str) -> Sequence[Any]:
        """Match, and read all ids."""
        match form:
            case "arrow":
                found = self.engine.match_events(event)
                numbers, offsets = found.numbers, found.offsets.tolist()
                return [numbers[begin:end] for begin, end in pairwise(offsets)]
            case "dicts":
                return [list(self.engine.match(Event(*event)).subscriptions)]
            case "core":
                return [[self.engine.match(publication) for publication in event]]
            case "objects":
                made = (Publication.of(id, triples) for id, triples in event)
                return [_read(map(self.engine.match, made))]
        return [_read(self.engine.filter(BytesIO(event[0]), format=event[1]))]

    def numbers(self, answer: Any) -> NDArray[np.int64]:
        """Return the ids as numbers."""
        if isinstance(answer, np.ndarray):
            answer = self.engine.names(answer)
        elif answer and isinstance(answer[0], MatchReport):
            answer = _read(answer)
        return super().numbers(answer)


def take_in(engine: Engine, subscriptions: Any) -> None:
    """Subscribe rows of ids and texts, or a table.

    Raises
    ------
    GraphMatchError
        When one of them is refused.
    """
    many = engine.subscribe_many if isinstance(subscriptions, list) else engine.subscribe_table
    for error in many(subscriptions):
        raise error


def _read(reports: Iterable[MatchReport]) -> list[str]:
    """Read the ids of all reports of a document."""
    found: list[str] = []
    for report in reports:
        found += report.subscriptions
    return found

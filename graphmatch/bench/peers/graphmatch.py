"""The engine itself, by its public way in: SPARQL texts, and publications or documents.

What a user does with a report is in the time, too: all ids are read, and the solutions of one match
in ten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.ingest import FORMATS, IngestWorkload
from graphmatch.bench.workloads.workload import Workload
from graphmatch.engine import Engine
from graphmatch.matcher import Counters, MatchReport
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.reading import read_publications
from semantic.sparql.query import Query
from semantic.term_texts import TermTexts

Given: TypeAlias = tuple[Ontology, list[tuple[str, str]]]

LOOKED_AT = 10
"""Of so many matches, the solutions of one are read."""


@dataclass(frozen=True, slots=True)
class Document:
    """Bytes, and their syntax where it is not told by them."""

    data: bytes
    format: str | None

    def publications(self, texts: TermTexts) -> Iterable[Publication]:
        """Read what is in it, one after the other; texts of terms are remembered."""
        return read_publications(BytesIO(self.data), format=self.format, texts=texts)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a user has of one publication's report."""

    ids: list[str]
    counters: Counters


class GraphMatchPeer(Peer):
    """`graphmatch.Engine`, with the workload's ontology."""

    name: ClassVar = "graphmatch"
    workloads: ClassVar = frozenset({"graph", "attributes", "concepts", "keywords", "ingest"})

    def given(self, workload: Workload) -> Given:
        """Return the ontology, and ids with texts."""
        return workload.ontology(), [(str(n), text) for n, text in enumerate(workload.texts())]

    def build(self, given: Given) -> None:
        """Subscribe all."""
        ontology, subscriptions = given
        self.engine = Engine(ontology)
        self._texts = TermTexts()
        take_in(self.engine, subscriptions)

    def event(self, workload: Workload, number: int) -> Publication | Document:
        """Return the publication, or the document."""
        if isinstance(workload, IngestWorkload):
            format = FORMATS.get(workload.syntax)
            return Document(workload.document(number), format and format.file_extension)
        return workload.publication(number)

    def match(self, event: Publication | Document) -> list[Seen]:
        """Match it, and look at what is found."""
        if isinstance(event, Publication):
            return [seen(self.engine.match(event))]
        publications = event.publications(self._texts)
        return [seen(self.engine.match(publication)) for publication in publications]

    def numbers(self, found: list[Seen]) -> NDArray[np.int64]:
        """Return the ids as numbers."""
        return np.array([int(id) for one in found for id in one.ids], np.int64)

    def counters(self, found: list[Seen]) -> Mapping[str, int]:
        """Return the reports' counters, added up."""
        total = Counter(asdict(Counters()))
        for one in found:
            total.update(asdict(one.counters))
        return total


def seen(report: MatchReport) -> Seen:
    """Read a report: ids first, then some solutions."""
    ids = list(report.subscriptions)
    for place in range(0, len(ids), LOOKED_AT):
        for solution in report.matches[place].solutions:
            dict(solution)
    return Seen(ids, report.counters)


def take_in(engine: Engine, rows: Iterable[tuple[str, str] | tuple[str, Query]]) -> None:
    """Subscribe many at once: ids with texts, or with queries.

    Raises
    ------
    GraphMatchError
        When one of them is refused.
    """
    for error in engine.subscribe_many(rows):
        raise error

"""Bounded questions to the engine: backtests, facts, reasons, terms and health.

All of them run in threads. Each has a time limit. Those that take long wait for each other in a
lane of their own, and a full lane refuses more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from ctypes import CDLL
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from graphmatch.broker.app.errors import BusyError
from graphmatch.broker.db import queries
from graphmatch.broker.db.dead_letters import count_dead_letters
from graphmatch.broker.db.tables import subscriptions
from graphmatch.broker.insight import query_by_example as example
from graphmatch.broker.insight import views
from graphmatch.broker.insight.backtest import BacktestResult, Scan, backtest
from graphmatch.broker.insight.explanations import Reasons, readable, reasons
from graphmatch.broker.insight.query_by_example import FactHierarchies
from graphmatch.broker.insight.subscription_health import (
    broker_findings,
    sink_findings,
    subscription_findings,
)
from graphmatch.broker.insight.what_if import LISTED, Difference, what_if
from graphmatch.broker.models.findings import FindingKind, HealthReport
from graphmatch.broker.models.stored_publication import StoredPublication
from graphmatch.broker.service.backtester import Backtester
from graphmatch.broker.service.broker import Broker
from semantic.errors import GraphMatchError, OntologyError, Place, Problem
from semantic.ontology.ontology import Ontology

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, RowMapping

PREVIEW_SECONDS, BACKTEST_SECONDS, FACTS_SECONDS, WHAT_IF_SECONDS = 1.5, 8.0, 1.5, 10.0
"""Time limits in seconds; the last publication may exceed them."""
WAITING, WAITING_LONG = 20, 4
"""Maximum numbers of short and of long questions that run or wait."""
BACKTEST_PUBLICATIONS, BACKTEST_BYTES = 100_000, 10_000_000_000
"""Maximum number and total size of the publications of a backtest."""
EXAMINED = 10_000
"""Maximum number of subscriptions in a health report, the newest."""
_SUFFIXES = frozenset({".csv", ".jsonld", ".n3", ".nt", ".owl", ".owx", ".rdf", ".ttl", ".xml"})
P = ParamSpec("P")
T = TypeVar("T")


class Upload(NamedTuple):
    """An uploaded file."""

    name: str
    data: bytes


@dataclass(slots=True)
class Lane:
    """Questions that wait for each other: their maximum number, and how many run or wait."""

    limit: int
    turns: asyncio.Semaphore
    waiting: int = 0


class InsightService:
    """Questions to the engine and the store of a broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.short = Lane(WAITING, asyncio.Semaphore(2))
        self.long = Lane(WAITING_LONG, asyncio.Semaphore(1))
        self._backtester = Backtester(broker.engine)
        self._roots, self._labels = lru_cache(1)(views.roots), lru_cache(1)(views.labels)

    async def ask(self, question: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a question in a thread.

        Raises
        ------
        BusyError
            If too many questions wait.
        """
        lane = self.long if question in (self.backtest, self.what_if) else self.short
        if lane.waiting >= lane.limit:
            what, remedy = "too many requests are running", "Try again in a few seconds."
            raise BusyError(Problem(what, Place("the broker"), remedy))
        lane.waiting += 1
        try:
            async with lane.turns:
                return await asyncio.to_thread(question, *args, **options)
        finally:
            lane.waiting -= 1
            if lane is self.long:
                await asyncio.to_thread(return_memory)

    # -- backtests --------------------------------------------------------------------------

    def preview(self, definition: Mapping[str, Any], root: str = "") -> BacktestResult:
        """Return the matches of a subscription among recent publications.

        Parameters
        ----------
        root
            The base URL of the API.

        Raises
        ------
        SubscriptionError
            If the query is not a valid subscription.
        InvalidRequestError
            If the definition is invalid.
        """
        query, engine = self.broker.subscriptions.sparql(definition), self.broker.engine
        recent = queries.Recent(self.broker.store, root=root)
        return backtest(engine, query, recent, PREVIEW_SECONDS, self._backtester)

    def backtest(self, definition: Mapping[str, Any], root: str = "") -> BacktestResult:
        """Return its matches among all stored publications, as far as time permits.

        Errors are those of `preview`. Previews do not wait for it.
        """
        query, engine = self.broker.subscriptions.sparql(definition), self.broker.engine
        stored = queries.Recent(self.broker.store, BACKTEST_PUBLICATIONS, BACKTEST_BYTES, root=root)
        return backtest(engine, query, stored, BACKTEST_SECONDS)

    # -- one publication --------------------------------------------------------------------

    def facts(self, publication: StoredPublication, *, count: bool = True) -> FactHierarchies:
        """Return the facts of a publication with the steps up from each, counted if wanted."""
        engine, backtester = self.broker.engine, self._backtester
        groups = example.hierarchies(engine, publication)
        recent = queries.Recent(self.broker.store)
        scan = Scan(recent, backtester.timer() + FACTS_SECONDS, backtester.timer)
        counts = example.count_facts(backtester, chain.from_iterable(groups), scan) if count else {}
        return example.describe(engine.ontology, publication, groups, counts, scan)

    def query_of(self, publication: StoredPublication, keys: Iterable[str]) -> str:
        """Return the query for the facts with some keys; empty if there are none."""
        engine, chosen = self.broker.engine, frozenset(keys)
        steps = chain.from_iterable(example.hierarchies(engine, publication))
        facts = [step for step in steps if step.key in chosen]
        return example.query_of(facts, engine.ontology.prefixes) if facts else ""

    def reasons(self, id: str, query: str, publication: StoredPublication) -> Reasons:
        """Return why a subscription matches a publication, or which condition fails first."""
        return reasons(self._backtester, id, query, publication)

    def why(self, query: str, publication: StoredPublication) -> Reasons:
        """Return the same with readable texts."""
        prefixes = self.broker.engine.ontology.prefixes
        return readable(self.reasons("it", query, publication), prefixes)

    def graph(self, publication: StoredPublication) -> views.Graph:
        """Return the triples of a publication, and those that the ontology adds."""
        return views.publication_graph(self.broker.engine, publication)

    # -- the ontology -----------------------------------------------------------------------

    def roots(self) -> list[views.TermView]:
        """Return the terms of the ontology without a broader term."""
        return self._roots(self.broker.engine.ontology)

    def children(self, iri: str) -> list[views.TermView]:
        """Return the terms directly below a term."""
        return views.children(self.broker.engine.ontology, iri)

    def search(self, text: str, limit: int = views.MAX_TERMS) -> list[views.TermView]:
        """Return the terms with a label that contains a text."""
        ontology = self.broker.engine.ontology
        return views.search(ontology, self._labels(ontology), text, limit)

    def what_if(
        self, files: Sequence[Upload], owner: int | None = None, root: str = ""
    ) -> Difference:
        """Return the effects of another ontology on recent matches; imports are not fetched.

        Parameters
        ----------
        owner
            List only the subscriptions of this owner.
        """
        store, recent = self.broker.store, queries.Recent(self.broker.store, root=root)

        def rows(ids: Sequence[str]) -> dict[str, RowMapping]:
            numbers = subscriptions.c.number.in_([int(id) for id in ids[:LISTED]])
            whose = numbers if owner is None else subscriptions.c.owner == owner
            living = store.read_now(lambda db: queries.living(db, whose, EXAMINED))
            return {str(row["number"]): row for row in living}

        engine, ontology = self.broker.engine, _ontology(files)
        return what_if(engine, ontology, recent, rows, limit_seconds=WHAT_IF_SECONDS)

    # -- health -----------------------------------------------------------------------------

    def health(self, whose: ColumnElement[bool], *, includes_broker: bool = False) -> HealthReport:
        """Return the probable faults of subscriptions and their sinks.

        Parameters
        ----------
        whose
            Condition of the subscriptions' rows.
        includes_broker
            Whether to report faults of the broker too: feeds, dead letters, and the disk.
        """
        store = self.broker.store
        rows, count, sinks, feeds, letters = store.read_now(
            lambda db: (
                queries.living(db, whose, EXAMINED),
                queries.how_many(db, whose),
                queries.failing(db, whose),
                queries.kept_feeds(db),
                count_dead_letters(db),
            )
        )
        others = broker_findings(feeds, letters, store.free_bytes) if includes_broker else ()
        examined = subscription_findings(self.broker.engine, rows, self.broker.clock())
        order = list(FindingKind)
        findings = [*others, *sink_findings(sinks, rows), *examined]
        findings.sort(key=lambda finding: order.index(finding.kind))
        known = {id for finding in findings for id in finding.subscriptions}
        return HealthReport(
            findings=findings,
            names={row["id"]: row["name"] for row in rows if row["id"] in known},
            subscriptions=count,
            examined=len(rows),
        )


def return_memory() -> None:
    """Return free memory to the system, because the C library keeps that of threads."""
    with suppress(OSError, AttributeError):  # Only glibc has this function.
        CDLL(None).malloc_trim(0)


def _ontology(files: Sequence[Upload]) -> Ontology:
    """Load an ontology from uploaded files.

    Raises
    ------
    OntologyError
        If a file is not a valid ontology.
    """
    with TemporaryDirectory(prefix="graphmatch-") as folder:
        paths: dict[str, str] = {}
        for number, file in enumerate(files):
            suffix = Path(file.name).suffix.lower()
            if suffix not in _SUFFIXES:
                what = f"a file with the name {file.name[:100]!r} cannot be an ontology"
                remedy = f"Upload a file that ends in {', '.join(sorted(_SUFFIXES))}."
                raise OntologyError(Problem(what, Place("file"), remedy))
            path = Path(folder) / f"{number}{suffix}"
            path.write_bytes(file.data)
            paths[str(path)] = file.name
        try:
            return Ontology.load(*paths, cache=False, on_problem=lambda _: None)
        except GraphMatchError as error:
            where = error.problem.where
            place = Place(paths.get(where.source, "file")[:200], where.line)
            raise OntologyError(Problem(error.problem.what, place, error.problem.remedy)) from error

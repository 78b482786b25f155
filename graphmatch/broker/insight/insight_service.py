"""What page and API ask of the engine: trials, facts, reasons, terms. All of it runs in threads.

Questions are bounded: each has a time limit, one runs at a time in a backtester, and beyond
`WAITING` that wait, more are refused. Those that take long wait for each other only. What is typed
on replaces what was asked before (in the browser), so nobody has many.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from ctypes import CDLL
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from pyoxigraph import NamedNode

from graphmatch.broker.app.errors import BusyError, InvalidRequestError
from graphmatch.broker.db import queries
from graphmatch.broker.insight.backtest import (
    BacktestResult,
    Day,
    Difference,
    backtest,
    what_if,
    why,
)
from graphmatch.broker.insight.query_by_example import (
    Fact,
    FactCounts,
    Sort,
    count_facts,
    facts,
    generalisations,
    subscription_of,
)
from graphmatch.broker.insight.subscription_health import doubts, health
from graphmatch.broker.insight.views import (
    LANGUAGE,
    FactHierarchies,
    FactHierarchy,
    Graph,
    Preview,
    Step,
    TermPage,
    TermView,
    Why,
    label_of,
    mark_of,
    near_of,
    proof_of,
    summary_of,
    triple_view,
)
from graphmatch.broker.models.findings import Finding, Kind
from graphmatch.broker.models.stored_publication import Stored
from graphmatch.broker.service.backtester import Backtester
from graphmatch.broker.service.broker import Broker
from graphmatch.engine import Engine
from graphmatch.lint import Linter
from semantic.errors import GraphMatchError, OntologyError, Place, Problem, SubscriptionError
from semantic.ontology.ontology import Ontology
from semantic.terms import Term
from semantic.vocabulary import DCTERMS, RESERVED, TYPE

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, RowMapping

PREVIEW_SECONDS = 1.5
TRY_SECONDS = 8.0
"""Time limit of a trial; the last publication may exceed it."""
LADDER_SECONDS = 1.5
WHAT_IF_SECONDS = 10.0
HEALTH_SECONDS = 2.0
WAITING = 20
"""So many questions are asked or wait, at most."""
WAITING_LONG = 4
"""So many of those that take long."""
FACTS = 30
"""So many facts of an item are shown with their steps."""
TRIPLES = 150
"""So many triples of an item are drawn."""
ROOTS = 200
"""So many terms that nothing is above are shown."""
FOUND = 60
"""So many terms a search gives, and a list of children has."""
TRIED, TRIED_BYTES = 100_000, 10_000_000_000
"""So many publications a subscription is tried on, and of so many bytes, if there is time."""
_EXAMINED = 10_000
"""So many of somebody's subscriptions are examined, the newest of them."""
LONG_SECONDS = 1.0
"""A question that takes longer may have used much memory."""
_DAYS = 14
_SUFFIXES = frozenset({".csv", ".jsonld", ".n3", ".nt", ".owl", ".owx", ".rdf", ".ttl", ".xml"})
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent."""

    name: str
    data: bytes


@dataclass(slots=True)
class Lane:
    """Questions that wait for each other."""

    most: int
    turn: asyncio.Semaphore
    waiting: int = 0


@dataclass(slots=True)
class InsightService:
    """Questions to a broker's engine.

    Parameters
    ----------
    broker
        Has the engine and the store.
    """

    broker: Broker
    _rehearsal: Backtester | None = None
    _of: Engine | None = None
    _known: _Known | None = None
    _linter: Linter | None = None
    short: Lane = field(default_factory=lambda: Lane(WAITING, asyncio.Semaphore(2)))
    long: Lane = field(default_factory=lambda: Lane(WAITING_LONG, asyncio.Semaphore(1)))

    async def ask(self, question: Callable[..., T], *given: Any) -> T:
        """Run a question in a thread.

        Raises
        ------
        BusyError
            When too many wait already.
        """
        lane = self.long if question in (self.trial, self.what_if) else self.short
        if lane.waiting >= lane.most:
            what, remedy = "too many requests are running", "Try again in a few seconds."
            raise BusyError(Problem(what, Place("the broker"), remedy))
        lane.waiting += 1
        begun = perf_counter()
        try:
            async with lane.turn:
                return await asyncio.to_thread(question, *given)
        finally:
            lane.waiting -= 1
            if perf_counter() - begun > LONG_SECONDS:
                await asyncio.to_thread(give_back_memory)

    @property
    def engine(self) -> Engine:
        """The broker's: it may be replaced when a snapshot is opened."""
        return self.broker.engine

    def backtester(self) -> Backtester:
        """Return where queries are tried."""
        engine = self.engine
        if self._rehearsal is None or self._of is not engine:
            self._rehearsal, self._of = Backtester(engine), engine
        return self._rehearsal

    # -- trying -----------------------------------------------------------------------------

    def preview(self, given: Mapping[str, Any]) -> Preview:
        """Return what a subscription would have matched of what is recent: while it is typed."""
        stored = queries.Recent(self.broker.store)
        return self._tried(given, self.backtester(), stored, PREVIEW_SECONDS)

    def trial(self, given: Mapping[str, Any]) -> Preview:
        """Return what it would have matched of all that is kept, as far as there is time."""
        stored = queries.Recent(self.broker.store, TRIED, TRIED_BYTES)
        return self._tried(given, Backtester(self.engine), stored, TRY_SECONDS)

    def _tried(
        self,
        given: Mapping[str, Any],
        backtester: Backtester,
        stored: queries.Recent,
        seconds: float,
    ) -> Preview:
        try:
            query = self.broker.subscriptions.sparql(given)
        except (SubscriptionError, InvalidRequestError) as error:
            return Preview("", BacktestResult(error.problem))
        if not query.strip():
            return Preview("", None)
        trial = backtest(
            self.engine,
            query,
            stored,
            limit_seconds=seconds,
            language=LANGUAGE,
            backtester=backtester,
        )
        trial = replace(trial, complete=trial.complete and stored.whole)
        ids = [hit.id for hit in trial.newest] + [near.id for near in trial.relaxed_matches]
        seqs = self.broker.store.read_now(lambda db: queries.seqs_of(db, ids)) if ids else {}
        today = self.broker.clock().date()
        days = {day.day: day for day in trial.days}
        several = [today - timedelta(n) for n in reversed(range(_DAYS))]
        bars = [days.get(day, Day(day, 0, 0)) for day in several]
        marked = mark_of(query, trial.problem) if trial.problem else None
        found = () if trial.problem else self._doubts(query)
        return Preview(query, trial, seqs, bars, marked, found)

    def _doubts(self, query: str) -> tuple[Finding, ...]:
        """Return what the linter finds of a query."""
        linter = self._linter
        if linter is None or linter.ontology is not self.engine.ontology:
            self._linter = linter = Linter(self.engine.ontology, duplicates=False)
        with self.backtester().subscribed([("it", query)]) as (trying, _):
            return tuple(chain.from_iterable(doubts(linter, one) for one in trying.subscriptions))

    # -- an example -------------------------------------------------------------------------

    def ladders(self, one: Stored, *, count: bool = True) -> FactHierarchies:
        """Return the facts of an item with the steps up from each; how many have it, if wanted."""
        found = self._facts(one)
        ways = [(f, generalisations(self.engine, f, language=LANGUAGE)) for f in found]
        if not count:
            return FactHierarchies(
                [FactHierarchy(f, tuple(Step(s, key_of(s)) for s in up)) for f, up in ways]
            )
        steps = [step for _, up in ways for step in up]
        counted = self._counted(steps)
        numbers = iter(counted.counts)
        ladders = [
            FactHierarchy(f, tuple(Step(s, key_of(s), next(numbers)) for s in up)) for f, up in ways
        ]
        ladders = [replace(one, is_common=one.steps[0].count == counted.scanned) for one in ladders]
        ladders.sort(key=lambda one: one.is_common)
        return FactHierarchies(ladders, counted.scanned, counted.complete)

    def _counted(self, steps: Sequence[Fact]) -> FactCounts:
        """Count the recent publications that have each of some facts."""
        stored = queries.Recent(self.broker.store)
        found = count_facts(
            self.engine,
            steps,
            stored,
            limit_seconds=LADDER_SECONDS,
            backtester=self.backtester(),
        )
        return replace(found, complete=found.complete and stored.whole)

    def _facts(self, one: Stored) -> list[Fact]:
        found = facts(self.engine, one.read(), language=LANGUAGE)[:FACTS]
        return sorted(found, key=lambda fact: fact.sort is Sort.TYPE)

    def query_of(self, one: Stored, keys: Iterable[str]) -> str:
        """Return the query of the facts that were chosen; empty where there are none."""
        wanted = frozenset(keys)
        steps = (
            step
            for fact in self._facts(one)
            for step in generalisations(self.engine, fact, language=LANGUAGE)
        )
        chosen = [step for step in steps if key_of(step) in wanted]
        return subscription_of(chosen, self.engine.ontology.prefixes) if chosen else ""

    # -- one item ---------------------------------------------------------------------------

    def why(self, query: str, one: Stored) -> Why:
        """Say why a query matches a publication, or what failed first."""
        backtester = self.backtester()
        with backtester.subscribed([("it", query)]) as (trying, refused):
            if "it" in refused:
                return Why(matches=False, failure=str(refused["it"].what))
            backtester.at(one)
            said = trying.explain("it", one.read(), LANGUAGE)
        prefixes = trying.ontology.prefixes
        return Why(
            said.match is not None,
            said.failure or "",
            tuple(proof_of(each, prefixes, one.id) for each in said.evidence),
            tuple(proof_of(each, prefixes, one.id) for each in said.held),
            tuple(near_of(each, prefixes, one.id) for each in said.nearest),
            tuple(said.calls),
        )

    def reasons(self, id: str, query: str, one: Stored) -> dict[str, object]:
        """Say the same as what JSON has."""
        kept = self.backtester()
        return why(self.engine, id, one, query=query, language=LANGUAGE, backtester=kept)

    def graph(self, one: Stored) -> Graph:
        """Return the triples of a publication, and what the ontology adds to them."""
        ontology, publication = self.engine.ontology, one.read()
        enriched = self.engine.enrich(publication)
        stated = frozenset(publication.triples)
        said = list(islice(dict.fromkeys(publication.triples), TRIPLES))
        added = [triple for triple in enriched.visible_to_all if triple not in stated]
        drawn = added[: TRIPLES - len(said)]
        ends = {triple[2] for triple in drawn}
        ups = {(t, up) for t in ends for up in ontology.parents(t) if up in ends}
        above = {up for _, up in ups}
        rows = [triple_view(ontology, triple, False) for triple in said]
        rows += [triple_view(ontology, triple, True, triple[2] in above) for triple in drawn]
        return Graph(
            tuple(rows),
            len(publication.triples) + len(added) - len(rows),
            summary_of(publication),
            " ".join((one.title or "").split()),
            tuple(sorted((str(below), str(up)) for below, up in ups)),
        )

    # -- the ontology -----------------------------------------------------------------------

    def roots(self) -> list[TermView]:
        """Return the terms that nothing is above: those that have some below first."""
        known = self._known
        if known is None or known.ontology is not self.engine.ontology:
            self._known = known = self._learnt(self.engine.ontology)
        return list(known.roots)

    def _learnt(self, ontology: Ontology) -> _Known:
        """Return what is looked up of an ontology again and again."""
        names = [(label.text.casefold(), label.concept) for label in ontology.labels()]
        found: list[Term] = []
        for tree in (ontology.concepts, ontology.classes):
            found += [t for t in tree if not tree.parents(t) and isinstance(t, NamedNode)]
        shown = [self.term(term) for term in dict.fromkeys(found)]
        shown.sort(key=lambda each: (each.below == 0, each.label.casefold()))
        return _Known(ontology, names, tuple(shown[:ROOTS]))

    def children(self, iri: str) -> list[TermView]:
        """Return the terms directly below one."""
        found = self.engine.ontology.children(_named(iri))
        shown = [self.term(term) for term in found if isinstance(term, NamedNode)]
        return sorted(shown, key=lambda each: each.label.casefold())[: 10 * FOUND]

    def term(self, term: Term) -> TermView:
        """Return what a term is called."""
        ontology = self.engine.ontology
        below = sum(1 for _ in ontology.children(term))
        return TermView(str(getattr(term, "value", term)), label_of(ontology, term), below)

    def search(self, words: str, most: int = FOUND) -> list[TermView]:
        """Return the terms with a label that has some text; those that begin with it first."""
        wanted = words.casefold().strip()
        if not wanted:
            return []
        self.roots()  # learns the names
        assert self._known is not None
        found: dict[Term, int] = {}
        for text, concept in self._known.names:
            if wanted in text and isinstance(concept, NamedNode):
                worth = 0 if text == wanted else 1 if text.startswith(wanted) else 2
                found[concept] = min(worth, found.get(concept, worth))
        terms = [(worth, self.term(term)) for term, worth in found.items()]
        terms.sort(key=lambda each: (each[0], each[1].label.casefold()))
        return [term for _, term in terms[:most]]

    def term_page(self, iri: str) -> TermPage | None:
        """Return what is shown of a term; ``None`` where the ontology has none of that name."""
        ontology, term = self.engine.ontology, _named(iri)
        is_class = term in ontology.classes
        if not (is_class or term in ontology.concepts or ontology.parents(term)):
            return None
        fact = Fact((TYPE,), term, Sort.TYPE) if is_class else about(term)
        counted = self._counted([fact])
        named = ontology.shown_names.labels(term, LANGUAGE)
        parents = [self.term(each) for each in ontology.parents(term)]
        return TermPage(
            self.term(term),
            tuple((label.value, label.language or "") for label in named[1:FOUND]),
            tuple(each for each in parents if not each.iri.startswith(RESERVED)),
            tuple(self.children(iri)[:FOUND]),
            subscription_of([fact], ontology.prefixes),
            counted.counts[0],
            counted.scanned,
            counted.complete,
        )

    def what_if(self, files: Sequence[Upload]) -> Difference:
        """Say who would gain and lose with another ontology; nothing is fetched for it."""
        with TemporaryDirectory(prefix="graphmatch-") as folder:
            paths: list[Path] = []
            for number, file in enumerate(files):
                suffix = Path(file.name).suffix.lower()
                if suffix not in _SUFFIXES:
                    what = f"a file called {file.name[:100]!r} is no ontology"
                    remedy = f"Send one of {', '.join(sorted(_SUFFIXES))}."
                    raise OntologyError(Problem(what, Place("file"), remedy))
                path = Path(folder) / f"{number}{suffix}"
                path.write_bytes(file.data)
                paths.append(path)
            try:
                ontology = Ontology.load(*paths, cache=False, on_problem=lambda _: None)
            except GraphMatchError as error:
                raise OntologyError(_called(error.problem, files)) from error
        stored = queries.Recent(self.broker.store)
        found = what_if(self.engine, ontology, stored, limit_seconds=WHAT_IF_SECONDS)
        return replace(found, complete=found.complete and stored.whole)

    def health(
        self, whose: ColumnElement[bool]
    ) -> tuple[list[Finding], dict[str, RowMapping], int]:
        """Return what is wrong with subscriptions, these by number, and how many there are.

        Parameters
        ----------
        whose
            A condition of rows: which subscriptions.
        """
        rows, there, failing = self.broker.store.read_now(
            lambda db: (
                queries.living(db, whose, _EXAMINED),
                queries.how_many(db, whose),
                queries.failing(db, whose),
            )
        )
        began, last = queries.ages(rows)
        found = health(
            self.engine,
            now=self.broker.clock(),
            subscribed=began,
            last_matched=last,
            failing=[state for state in failing if state.subscription in began],
            limit_seconds=HEALTH_SECONDS,
        )
        named = {str(row["number"]): row for row in rows}
        return [_worded(finding, named) for finding in found], named, there


@dataclass(frozen=True, slots=True)
class _Known:
    """Names in lower case with their terms, and roots, of an ontology."""

    ontology: Ontology
    names: Sequence[tuple[str, Term]]
    roots: tuple[TermView, ...]


def give_back_memory() -> None:
    """Return free memory to the system: the C library keeps that of threads for later."""
    with suppress(OSError, AttributeError):  # Only glibc has this function.
        CDLL(None).malloc_trim(0)


def key_of(fact: Fact) -> str:
    """Return what a form calls a fact: the same for the same fact."""
    return sha256(fact.pattern().encode()).hexdigest()[:16]


def about(term: NamedNode) -> Fact:
    """Return that an item is about a concept."""
    return Fact((DCTERMS["subject"],), term, Sort.CONCEPT)


def _named(iri: str) -> NamedNode:
    try:
        return NamedNode(iri)
    except ValueError as error:
        problem = Problem("no IRI", Place(iri[:200]), "Choose a term of the ontology.")
        raise OntologyError(problem) from error


def _worded(finding: Finding, named: Mapping[str, RowMapping]) -> Finding:
    """Return a finding that calls the other subscription by its name."""
    if finding.kind is not Kind.DUPLICATE:
        return finding
    other = finding.subscriptions[0]
    name = named[other]["name"]
    text = re.sub(rf"\b{re.escape(other)}\b", lambda _: f"“{name}”", finding.text, count=1)
    return replace(finding, text=text)


def _called(problem: Problem, files: Sequence[Upload]) -> Problem:
    """Return a problem with the name that the user's file has."""
    stem = Path(problem.where.source).stem
    name = files[int(stem)].name if stem.isdecimal() and int(stem) < len(files) else "file"
    return Problem(problem.what, Place(name[:200], problem.where.line), problem.remedy)

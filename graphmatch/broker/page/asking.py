"""What the page asks of the engine: previews, facts, reasons, terms. All of it runs in threads.

Questions are bounded: each has a time limit, one runs at a time in a rehearsal, and beyond
`WAITING` that wait, more are refused. What is typed on replaces what was asked before
(in the browser), so nobody has many.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from pyoxigraph import BlankNode, Literal, NamedNode

from graphmatch.broker.example import (
    Fact,
    Sort,
    facts,
    generalisations,
    subscription_of,
    volumes,
)
from graphmatch.broker.health import Finding, Kind, health
from graphmatch.broker.insight import (
    Day,
    Difference,
    Rehearsal,
    Stored,
    Trial,
    try_subscription,
    what_if,
)
from graphmatch.broker.page import reading
from graphmatch.broker.page.session import BusyError, Upload
from graphmatch.broker.service import Broker
from graphmatch.engine import Engine
from graphmatch.explain.evidence import Evidence
from graphmatch.explain.nearest import Near
from graphmatch.topics import Topics, known_concepts
from semantic.errors import GraphMatchError, OntologyError, Place, Problem, SubscriptionError
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Term, Triple, compact
from semantic.vocabulary import DCTERMS, RESERVED, RSS, TYPE

PREVIEW_SECONDS = 1.5
LADDER_SECONDS = 1.5
WHAT_IF_SECONDS = 10.0
HEALTH_SECONDS = 2.0
WAITING = 20
"""So many questions are asked or wait, at most."""
FACTS = 30
"""So many facts of an item are shown with their steps."""
TRIPLES = 150
"""So many triples of an item are drawn."""
ROOTS = 200
"""So many terms that nothing is above are shown."""
FOUND = 60
"""So many terms a search gives, and a list of children has."""
LANGUAGE = "en"
_DAYS = 14
_SUFFIXES = frozenset({".csv", ".jsonld", ".n3", ".nt", ".owl", ".owx", ".rdf", ".ttl", ".xml"})
_DESCRIPTION = 20_000
_DRAWN = 100
_TAG = re.compile(r"<[^<>]{0,2000}>")
T = TypeVar("T")


@dataclass(slots=True)
class Asking:
    """Questions to a broker's engine.

    Parameters
    ----------
    broker
        Has the engine and the store.
    """

    broker: Broker
    _rehearsal: Rehearsal | None = None
    _of: Engine | None = None
    _known: _Known | None = None
    _waiting: int = 0
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))

    async def ask(self, question: Callable[..., T], *given: Any) -> T:
        """Run a question in a thread.

        Raises
        ------
        BusyError
            When too many wait already.
        """
        if self._waiting >= WAITING:
            what, remedy = "many others are asking", "Try again in a few seconds."
            raise BusyError(Problem(what, Place("the broker"), remedy))
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(question, *given)
        finally:
            self._waiting -= 1

    @property
    def engine(self) -> Engine:
        """The broker's: it may be replaced when a snapshot is opened."""
        return self.broker.engine

    def rehearsal(self) -> Rehearsal:
        """Return where queries are tried."""
        engine = self.engine
        if self._rehearsal is None or self._of is not engine:
            self._rehearsal, self._of = Rehearsal(engine), engine
        return self._rehearsal

    # -- trying -----------------------------------------------------------------------------

    def query(self, given: Mapping[str, Any]) -> str:
        """Return the SPARQL of what is asked for; checked no further.

        Raises
        ------
        SubscriptionError
            When a topic is unknown, say.
        """
        if "query" in given:
            return str(given["query"])
        row = Topics.of_row(given, Place("subscription"))
        return row.query(known_concepts(self.engine.ontology))

    def preview(self, given: Mapping[str, Any]) -> Preview:
        """Return what a subscription would have matched."""
        try:
            query = self.query(given)
        except SubscriptionError as error:
            return Preview("", Trial(error.problem))
        if not query.strip():
            return Preview("", None)
        if len(query) > self.broker.limits.query_characters:
            most = self.broker.limits.query_characters
            problem = Problem(
                f"it has more than {most:,} characters", Place("subscription"), "Shorten it."
            )
            return Preview("", Trial(problem))
        trial = try_subscription(
            self.engine,
            query,
            reading.recent(self.broker.store),
            limit_seconds=PREVIEW_SECONDS,
            language=LANGUAGE,
            rehearsal=self.rehearsal(),
        )
        ids = [hit.id for hit in trial.newest] + [near.id for near in trial.near]
        seqs = self.broker.store.read_now(lambda db: reading.seqs_of(db, ids)) if ids else {}
        today = self.broker.clock().date()
        days = {day.day: day for day in trial.days}
        several = [today - timedelta(n) for n in reversed(range(_DAYS))]
        bars = [days.get(day, Day(day, 0, 0)) for day in several]
        marked = _marked(query, trial.problem) if trial.problem else None
        return Preview(query, trial, seqs, bars, marked)

    # -- an example -------------------------------------------------------------------------

    def ladders(self, one: Stored, *, count: bool = True) -> tuple[list[Ladder], str]:
        """Return the facts of an item with the steps up from each, and what was counted."""
        found = self._facts(one)
        ways = [(f, generalisations(self.engine, f, language=LANGUAGE)) for f in found]
        if not count:
            several = [Ladder(f, tuple(Step(s, key_of(s), None) for s in up)) for f, up in ways]
            return several, ""
        steps = [step for _, up in ways for step in up]
        counted = volumes(
            self.engine,
            steps,
            reading.recent(self.broker.store),
            limit_seconds=LADDER_SECONDS,
            rehearsal=self.rehearsal(),
        )
        numbers = iter(counted.counts)
        ladders = [
            Ladder(f, tuple(Step(s, key_of(s), next(numbers)) for s in up)) for f, up in ways
        ]
        ladders = [replace(one, is_common=one.steps[0].count == counted.looked) for one in ladders]
        ladders.sort(key=lambda one: one.is_common)
        whole = "all" if counted.complete else "the newest"
        return ladders, f"{whole} {counted.looked:,} items"

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
        rehearsal = self.rehearsal()
        with rehearsal.asking([("it", query)]) as (trying, refused):
            if "it" in refused:
                return Why(matches=False, failure=str(refused["it"].what))
            rehearsal.at(one)
            said = trying.explain("it", one.read(), LANGUAGE)
        prefixes = trying.ontology.prefixes
        return Why(
            said.match is not None,
            said.failure or "",
            tuple(_proof(each, prefixes, one.id) for each in said.evidence),
            tuple(_proof(each, prefixes, one.id) for each in said.held),
            tuple(_near(each, prefixes, one.id) for each in said.nearest),
            tuple(said.calls),
        )

    def graph(self, one: Stored) -> Graph:
        """Return the triples of a publication, and what the ontology adds to them."""
        ontology, publication = self.engine.ontology, one.read()
        enriched = self.engine.enrich(publication)
        stated = frozenset(publication.triples)
        said = list(islice(dict.fromkeys(publication.triples), TRIPLES))
        added = [triple for triple in enriched.seen_by_any if triple not in stated]
        drawn = added[: TRIPLES - len(said)]
        ends = {triple[2] for triple in drawn}
        ups = {(t, up) for t in ends for up in ontology.parents(t) if up in ends}
        above = {up for _, up in ups}
        rows = [_row(ontology, triple, False) for triple in said]
        rows += [_row(ontology, triple, True, triple[2] in above) for triple in drawn]
        return Graph(
            tuple(rows),
            len(publication.triples) + len(added) - len(rows),
            _summary(publication),
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
        counted = volumes(
            self.engine,
            [fact],
            reading.recent(self.broker.store),
            limit_seconds=LADDER_SECONDS,
            rehearsal=self.rehearsal(),
        )
        named = ontology.shown_names.labels(term, LANGUAGE)
        parents = [self.term(each) for each in ontology.parents(term)]
        return TermPage(
            self.term(term),
            tuple((label.value, label.language or "") for label in named[1:FOUND]),
            tuple(each for each in parents if not each.iri.startswith(RESERVED)),
            tuple(self.children(iri)[:FOUND]),
            subscription_of([fact], ontology.prefixes),
            counted.counts[0],
            counted.looked,
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
        return what_if(
            self.engine,
            ontology,
            reading.recent(self.broker.store),
            limit_seconds=WHAT_IF_SECONDS,
        )

    def health(self, owner: int) -> list[Finding]:
        """Return what is wrong with somebody's subscriptions."""
        store = self.broker.store
        rows = store.read_now(lambda db: reading.mine(db, owner))
        began, last = reading.ages(rows)
        found = health(
            self.engine,
            now=self.broker.clock(),
            subscribed=began,
            last_matched=last,
            failing=store.read_now(lambda db: reading.failing(db, owner)),
            limit_seconds=HEALTH_SECONDS,
        )
        named = {str(row["number"]): row["name"] for row in rows}
        mine = (f for f in found if not f.subscriptions or named.keys() & {*f.subscriptions})
        return [_worded(finding, named) for finding in mine]


# -- what is shown ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """Names in lower case with their terms, and roots, of an ontology."""

    ontology: Ontology
    names: Sequence[tuple[str, Term]]
    roots: tuple[TermView, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """What a subscription would have matched.

    Parameters
    ----------
    query
        Its SPARQL.
    trial
        ``None`` where nothing is asked for yet.
    seqs
        The numbers of the publications that it names.
    bars
        Days, the oldest first.
    marked
        The line of a problem, and below it where it stands.
    """

    query: str
    trial: Trial | None
    seqs: Mapping[str, int] = field(default_factory=dict)
    bars: Sequence[Day] = ()
    marked: Marked | None = None


@dataclass(frozen=True, slots=True)
class Marked:
    """A line of a query, and where in it a problem is: what is before, at and after it."""

    line: int
    column: int
    before: str
    at: str
    after: str


@dataclass(frozen=True, slots=True)
class Step:
    """A fact that can be chosen, and how many items have it."""

    fact: Fact
    key: str
    count: int | None


@dataclass(frozen=True, slots=True)
class Ladder:
    """A fact of an item, the steps up from it, and whether all items have it."""

    fact: Fact
    steps: tuple[Step, ...]
    is_common: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """A condition, what meets it, and why that holds."""

    pattern: str
    by: str
    because: tuple[str, ...]
    but: str = ""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a query matches a publication, or what failed first."""

    matches: bool
    failure: str = ""
    evidence: tuple[Proof, ...] = ()
    held: tuple[Proof, ...] = ()
    nearest: tuple[Proof, ...] = ()
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TripleView:
    """A triple: ids and labels of its ends.

    Parameters
    ----------
    is_added
        Whether the ontology added it.
    is_above
        Whether that follows from another that it added, of something below.
    """

    subject: str
    subject_label: str
    property: str
    object: str
    object_label: str
    is_literal: bool
    is_added: bool
    is_above: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """What is shown of a publication's triples.

    Parameters
    ----------
    rows
        The triples.
    more
        How many are not shown.
    summary, title
        Those of a feed item.
    ups
        Which of the terms are directly above which.
    """

    rows: tuple[TripleView, ...]
    more: int
    summary: str
    title: str = ""
    ups: tuple[tuple[str, str], ...] = ()

    def elements(self) -> dict[str, Any]:
        """Return what Cytoscape draws: what is above hangs on what is below, not on the item."""
        nodes: dict[str, dict[str, Any]] = {}
        edges: list[dict[str, Any]] = []

        def node(id: str, label: str, kind: str) -> None:
            nodes.setdefault(id, {"id": id, "label": label[:_DRAWN], "kind": kind})

        def edge(source: str, target: str, label: str, *, added: bool) -> None:
            ends = {"id": f"e{len(edges)}", "source": source, "target": target, "label": label}
            edges.append({"data": {**ends, "added": 1} if added else ends})

        for row in self.rows:
            if f"<{row.object_label}>" == row.subject:
                continue  # its own address
            if not nodes:
                node(row.subject, self.title or row.subject_label, "item")
            node(row.subject, row.subject_label, "thing")
            kind = "text" if row.is_literal else "term" if row.is_added else "thing"
            node(row.object, row.object_label, kind)
            if not row.is_above:
                edge(row.subject, row.object, row.property, added=row.is_added)
        for below, up in self.ups:
            edge(below, up, "below", added=True)
        return {"nodes": [{"data": data} for data in nodes.values()], "edges": edges}


@dataclass(frozen=True, slots=True)
class TermView:
    """A term, what it is called, and how many are directly below."""

    iri: str
    label: str
    below: int


@dataclass(frozen=True, slots=True)
class TermPage:
    """What is shown of a term."""

    term: TermView
    names: tuple[tuple[str, str], ...]
    parents: tuple[TermView, ...]
    children: tuple[TermView, ...]
    query: str
    count: int
    looked: int
    complete: bool


def key_of(fact: Fact) -> str:
    """Return what a form calls a fact: the same for the same fact."""
    return sha256(fact.pattern().encode()).hexdigest()[:16]


def about(term: NamedNode) -> Fact:
    """Return that an item is about a concept."""
    return Fact((DCTERMS["subject"],), term, Sort.CONCEPT)


def label_of(ontology: Ontology, term: Term) -> str:
    """Return what a term is called, without its IRI where it has a label."""
    if isinstance(term, Literal):
        return term.value
    if isinstance(term, BlankNode):
        return "(no name)"
    labels = ontology.shown_names.labels(term, LANGUAGE)
    return labels[0].value if labels else compact(term, ontology.prefixes).strip("<>")


def _named(iri: str) -> NamedNode:
    try:
        return NamedNode(iri)
    except ValueError as error:
        problem = Problem("no IRI", Place(iri[:200]), "Choose a term of the ontology.")
        raise OntologyError(problem) from error


def _marked(query: str, problem: Problem) -> Marked | None:
    line, column = problem.where.line, problem.where.column
    lines = query.split("\n")
    if line is None or not 0 < line <= len(lines):
        return None
    text, at = lines[line - 1], max((column or 1) - 1, 0)
    end = at + 1
    while end < len(text) and not text[end].isspace():
        end += 1
    begin = max(at - 60, 0)
    return Marked(line, at + 1, text[begin:at], text[at:end] or "⏎", text[end : end + 60])


def _triple(triple: Triple, prefixes: Mapping[str, str], item: str) -> str:
    """Write a triple; what it is said of is the item."""
    own = f"<{item}>"
    return " ".join("the item" if str(t) == own else compact(t, prefixes) for t in triple)


def _proof(each: Evidence, prefixes: Mapping[str, str], item: str) -> Proof:
    by = "" if each.triple is None else _triple(each.triple, prefixes, item)
    if each.value is not None and not by:
        by = compact(each.value, prefixes)
    return Proof(each.write(prefixes), by, each.reasons)


def _near(each: Near, prefixes: Mapping[str, str], item: str) -> Proof:
    return Proof("", _triple(each.triple, prefixes, item), each.reasons, each.why)


def _row(ontology: Ontology, triple: Triple, is_added: bool, is_above: bool = False) -> TripleView:
    subject, property_, object_ = triple
    is_literal = isinstance(object_, Literal)
    # A text is a node of its own, or all that say "en" would hang together.
    said = f"{subject} {property_} {object_}"
    object_id = sha256(said.encode()).hexdigest()[:16] if is_literal else str(object_)
    return TripleView(
        str(subject),
        label_of(ontology, subject)[:500],
        label_of(ontology, property_),
        object_id,
        label_of(ontology, object_)[:2000],
        is_literal,
        is_added,
        is_above,
    )


def _summary(publication: Publication) -> str:
    """Return the description of a feed item, as plain text."""
    for _, property_, object_ in publication.triples:
        if property_ == RSS["description"] and isinstance(object_, Literal):
            return " ".join(_TAG.sub(" ", object_.value[:_DESCRIPTION]).split())[:600]
    return ""


def _worded(finding: Finding, named: Mapping[str, str]) -> Finding:
    """Return a finding that calls the other subscription by its name."""
    if finding.kind is not Kind.DUPLICATE:
        return finding
    other = finding.subscriptions[0]
    name = f"“{named[other]}”" if other in named else "another"
    return replace(finding, text=re.sub(rf"\b{re.escape(other)}\b", name, finding.text, count=1))


def _called(problem: Problem, files: Sequence[Upload]) -> Problem:
    """Return a problem with the name that the user's file has."""
    stem = Path(problem.where.source).stem
    name = files[int(stem)].name if stem.isdecimal() and int(stem) < len(files) else "file"
    return Problem(problem.what, Place(name[:200], problem.where.line), problem.remedy)

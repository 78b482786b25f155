"""What a subscriber wants to know before and after: trials, why, why not, and what if.

Functions over an engine and stored publications, newest first; they know neither HTTP nor a
database. Nothing here changes the engine that is asked about: queries are tried in a `Rehearsal`,
another engine of the same ontology, in which ``NOW()`` is the time at which a publication came. So
a trial says what matching said, or would have said.

Cost: 0.4 ms to read and annotate a feed item of 4 KB. Near misses are found in the same pass: the
query is matched once more without each of its conditions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import chain, islice
from threading import RLock
from time import perf_counter
from typing import TypeAlias

from pyoxigraph import NamedNode

from graphmatch.broker.conditions import Condition, conditions
from graphmatch.engine import Engine
from graphmatch.explain.evidence import distinct_reasons
from graphmatch.explain.explanation import Explanation
from graphmatch.report import MatchReport
from semantic.annotation.annotate import Annotator
from semantic.clock import utc_now
from semantic.errors import Problem, SubscriptionError
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.reading import SplitBy, read_publications
from semantic.terms import Node

Timer: TypeAlias = Callable[[], float]
"""Returns seconds, from any beginning."""

DESCRIBED_BYTES = 2_000_000
"""Largest publication that reasons are looked for in, in bytes of N-Triples: 2 MB take a second."""
_WHOLE = "the whole query"


@dataclass(frozen=True, slots=True)
class Stored:
    """A publication that came in before.

    Parameters
    ----------
    id
        What it was matched under.
    text
        Its triples, in N-Triples.
    received
        When it came, with its zone.
    title, link
        Those of a feed item.
    """

    id: str
    text: bytes
    received: datetime
    title: str | None = None
    link: str | None = None

    def read(self) -> Publication:
        """Return the publication."""
        (found,) = read_publications(self.text, split_by=SplitBy.DOCUMENT, format="nt")
        return found.with_id(self.id)


class Rehearsal:
    """An engine of the same ontology in which queries are tried on stored publications.

    It may be kept as long as the engine: when the engine's ontology has been replaced, the next
    question makes it anew. It answers one question at a time, from any thread.

    Parameters
    ----------
    engine
        The one that matches; only its ontology and options are used.
    timer
        Says how long something took.
    """

    def __init__(self, engine: Engine, *, timer: Timer = perf_counter) -> None:
        self.timer = timer
        self._model = engine
        self._now = utc_now()
        self._changing = RLock()
        self._made: Engine | None = None

    @property
    def engine(self) -> Engine:
        """The engine in which queries are tried."""
        if self._made is None or self._made.ontology is not self._model.ontology:
            self._made = self._model.empty_copy(clock=lambda: self._now, on_problem=lambda _: None)
        return self._made

    @contextmanager
    def asking(
        self, queries: Iterable[tuple[str, str]]
    ) -> Iterator[tuple[Engine, dict[str, Problem]]]:
        """Have some queries subscribed, by their ids; yield the engine and what was refused."""
        with self._changing:
            engine = self.engine
            refused: dict[str, Problem] = {}
            taken: list[str] = []
            try:
                for id, query in queries:
                    try:
                        engine.subscribe(id, query)
                    except SubscriptionError as error:
                        refused[id] = error.problem
                    else:
                        taken.append(id)
                yield engine, refused
            finally:
                for id in taken:
                    engine.unsubscribe(id)

    def reports(self, stored: Iterable[Stored]) -> Iterator[tuple[Stored, MatchReport]]:
        """Match publications, each at the time at which it came."""
        for one in stored:
            self.at(one)
            for report in self.engine.filter(one.text, "nt", SplitBy.DOCUMENT, name=one.id):
                yield one, report

    def at(self, one: Stored) -> None:
        """Let the clock be at the arrival of a publication."""
        self._now = one.received


@dataclass(slots=True)
class Scan:
    """Goes over stored publications until time is up.

    Attributes
    ----------
    looked, complete
        How many it gave, and whether these are all.
    timed_out
        Whether it ended because time was up.
    """

    stored: Iterable[Stored]
    until: float
    timer: Timer
    looked: int = 0
    complete: bool = False
    timed_out: bool = False

    def __iter__(self) -> Iterator[Stored]:
        for one in self.stored:
            if self.timer() >= self.until:
                self.timed_out = True
                return
            self.looked += 1
            yield one
        self.complete = True


# -- trying a query -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hit:
    """A publication that a query matches, and why."""

    id: str
    received: datetime
    title: str | None
    link: str | None
    because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A publication that a query matches without one of its conditions.

    Parameters
    ----------
    condition
        The one, as the query has it.
    failure, but
        What fails of it, and by how much the nearest missed it; empty where time ran out.
    """

    id: str
    received: datetime
    title: str | None
    link: str | None
    condition: str
    failure: str = ""
    but: str = ""


@dataclass(frozen=True, slots=True)
class Missed:
    """A condition of a query, and how many more publications it would match without it."""

    condition: str
    line: int
    column: int
    count: int


@dataclass(frozen=True, slots=True)
class Day:
    """How many publications of a day, in the zone of their times, matched."""

    day: date
    matched: int
    looked: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What a query gave on stored publications.

    Parameters
    ----------
    problem
        Why the text is no subscription, with line and column; nothing was matched then.
    looked, complete
        How many publications were looked at, and whether these are all.
    matched
        How many matched.
    unknown
        Of how many operators left it open.
    failed
        Of how many the query could not be evaluated within the limits.
    days
        The days of those that were looked at, the newest first.
    newest
        The newest that matched.
    missed
        The conditions without which it would match more, the rarest first.
    near
        Near misses: of the rarest conditions first, and of these the newest.
    truncated
        The limits that ended the trial or left reasons out.
    """

    problem: Problem | None = None
    looked: int = 0
    complete: bool = True
    matched: int = 0
    unknown: int = 0
    failed: int = 0
    days: tuple[Day, ...] = ()
    newest: tuple[Hit, ...] = ()
    missed: tuple[Missed, ...] = ()
    near: tuple[NearMiss, ...] = ()
    truncated: tuple[str, ...] = ()


def try_subscription(
    engine: Engine,
    query: str,
    stored: Iterable[Stored],
    *,
    limit_seconds: float,
    newest: int = 10,
    near: int = 5,
    language: str = "en",
    rehearsal: Rehearsal | None = None,
) -> Trial:
    """Say what a query would have matched: what `Engine.filter` says of each publication.

    Parameters
    ----------
    query
        The text of a query, finished or not.
    stored
        Publications, the newest first.
    limit_seconds
        After this time no more are looked at.
    newest, near
        How many matches and near misses are described; with ``near=0`` none are looked for.
    language
        The reader's: in which labels terms are shown.
    rehearsal
        One that is kept for the engine, for questions that are asked one after the other.

    Examples
    --------
    >>> from datetime import UTC
    >>> line = b'<urn:%d> <http://purl.org/dc/elements/1.1/subject> "Food" .'
    >>> stored = [Stored(f"urn:{n}", line % n, datetime(2026, 1, n, tzinfo=UTC)) for n in (2, 1)]
    >>> trial = try_subscription(Engine(), 'ASK { ?x dc:subject "Food" }', stored, limit_seconds=1)
    >>> trial.matched, trial.looked, [hit.id for hit in trial.newest]
    (2, 2, ['urn:2', 'urn:1'])
    >>> str(try_subscription(Engine(), "ASK { ?x", stored, limit_seconds=1).problem.where)
    'the query:1:9'
    """
    rehearsal = rehearsal or Rehearsal(engine)
    timer = rehearsal.timer
    until = timer() + limit_seconds
    problem, parts = _conditions(engine, query, near)
    if problem is not None:
        return Trial(problem)
    queries = [(_WHOLE, query), *((str(n), part.without) for n, part in enumerate(parts))]
    with rehearsal.asking(queries) as (trying, refused):
        if _WHOLE in refused:
            return Trial(refused[_WHOLE])
        scan = Scan(stored, until, timer)
        days, looked, missed = Counter[date](), Counter[date](), Counter[int]()
        hits: list[tuple[Stored, MatchReport]] = []
        close: defaultdict[int, list[Stored]] = defaultdict(list)
        unknown = failed = 0
        for one, report in rehearsal.reports(scan):
            day = one.received.date()
            looked[day] += 1
            unknown += any(each.subscription == _WHOLE for each in report.undecided)
            failed += any(each.what.startswith(f"{_WHOLE}: ") for each in report.problems)
            matched = report.subscriptions
            if _WHOLE in matched:
                days[day] += 1
                if len(hits) < newest:
                    hits.append((one, report))
                continue
            for number in map(int, matched):
                missed[number] += 1
                if len(close[number]) < near:
                    close[number].append(one)
        rarest = sorted(missed, key=lambda number: (missed[number], number))
        nearest = {s.id: (s, n) for n in reversed(rarest) for s in reversed(close[n])}
        chosen = list(islice(reversed(nearest.values()), near))
        describing = _Describing(rehearsal, trying, until, language)
        described = tuple(describing.hit(*hit) for hit in hits)
        nearly = tuple(describing.near_miss(one, parts[number]) for one, number in chosen)
        timed_out = [f"the time limit of {limit_seconds:g} s"] if scan.timed_out else []
        return Trial(
            None,
            scan.looked,
            scan.complete,
            days.total(),
            unknown,
            failed,
            tuple(Day(day, days[day], looked[day]) for day in sorted(looked, reverse=True)),
            described,
            tuple(_missed(parts[number], missed[number]) for number in rarest),
            nearly,
            (*timed_out, *sorted(describing.truncated)),
        )


def _conditions(
    engine: Engine, query: str, near: int
) -> tuple[Problem | None, tuple[Condition, ...]]:
    """Return why a text is no query, or its conditions."""
    try:
        engine.parser.query("the query", query)
    except SubscriptionError as error:
        return error.problem, ()
    return None, conditions(query) if near else ()


def _missed(part: Condition, count: int) -> Missed:
    return Missed(part.text, part.line, part.column, count)


@dataclass(frozen=True, slots=True)
class _Describing:
    """Says of publications why they match, or what is amiss, until time is up."""

    rehearsal: Rehearsal
    engine: Engine
    until: float
    language: str
    truncated: set[str] = field(default_factory=set)

    def _can(self, one: Stored) -> bool:
        """Whether there is time and memory to describe a publication."""
        if len(one.text) > DESCRIBED_BYTES:
            self.truncated.add(f"reasons in publications of more than {DESCRIBED_BYTES:,} bytes")
            return False
        if self.rehearsal.timer() >= self.until:
            self.truncated.add("reasons for which there was no time")
            return False
        return True

    def hit(self, one: Stored, report: MatchReport) -> Hit:
        """Return a match with its reasons."""
        because: list[str] = []
        if self._can(one):
            found = self.engine.evidence(report, (_WHOLE,), self.language)
            because = distinct_reasons(found[_WHOLE])
        return Hit(one.id, one.received, one.title, one.link, tuple(because))

    def near_miss(self, one: Stored, part: Condition) -> NearMiss:
        """Return a near miss with what fails first."""
        failure, but = "", ""
        if self._can(one):
            self.rehearsal.at(one)
            said = self.engine.explain(_WHOLE, one.read(), self.language)
            failure, but = said.failure, said.nearest[0].why if said.nearest else ""
        return NearMiss(one.id, one.received, one.title, one.link, part.text, failure, but)


# -- why, and why not -----------------------------------------------------------------------


def why(
    engine: Engine,
    subscription: str,
    stored: Stored,
    *,
    query: str | None = None,
    language: str = "en",
    rehearsal: Rehearsal | None = None,
) -> dict[str, object]:
    """Say why a subscription matched a publication, or what failed first: as what JSON has.

    Parameters
    ----------
    query
        What it asks; by default what the engine has under its id.

    Returns
    -------
    What ``graphmatch explain --json`` writes (docs/reference/command.md), without how the engine
    indexes it; with ``labels``, those of the terms that it speaks of, by IRI.

    Raises
    ------
    UnknownSubscriptionError
        When there is no subscription with this id.

    Examples
    --------
    >>> from datetime import UTC
    >>> line = b'<urn:1> <http://purl.org/dc/elements/1.1/subject> "Food" .'
    >>> stored = Stored("urn:1", line, datetime(2026, 1, 1, tzinfo=UTC))
    >>> engine = Engine()
    >>> engine.subscribe("alice", 'ASK { ?x dc:subject "food" }')
    >>> told = why(engine, "alice", stored)
    >>> told["matches"], told["failure"]
    (False, 'no triple matches ?x dc:subject "food"')
    >>> told["nearest"][0]["but"]
    'the strings differ only in upper and lower case'
    """
    rehearsal = rehearsal or Rehearsal(engine)
    text = engine.subscription(subscription).query.text if query is None else query
    with rehearsal.asking([(subscription, text)]) as (trying, refused):
        if subscription in refused:  # a unit or class is unknown now: it waits for an ontology
            return _suspended(subscription, stored, refused[subscription])
        rehearsal.at(stored)
        said = trying.explain(subscription, stored.read(), language)
        told = said.as_json()
        del told["index"]
        return {**told, "labels": _labels(said, trying.ontology, language)}


def _suspended(subscription: str, stored: Stored, problem: Problem) -> dict[str, object]:
    return {
        "subscription": subscription,
        "publication": stored.id,
        "matches": False,
        "filing": [],
        "evidence": [],
        "calls": [],
        "failure": f"{problem.what}: it matches nothing now",
        "held": [],
        "nearest": [],
        "labels": {},
    }


def _labels(said: Explanation, ontology: Ontology, language: str) -> dict[str, str]:
    """Return the labels of what an explanation speaks of, by IRI."""
    proved = (*said.evidence, *said.held)
    terms: list[Node | None] = [each.value for each in proved]
    terms += chain.from_iterable(each.triple for each in proved if each.triple is not None)
    terms += chain.from_iterable(near.triple for near in said.nearest)
    for branch in said.plan.subscription.branches:
        terms += chain.from_iterable(branch.patterns)
    named = dict.fromkeys(term for term in terms if isinstance(term, NamedNode))
    found = ((term, ontology.shown_names.labels(term, language)) for term in named)
    return {term.value: labels[0].value for term, labels in found if labels}


# -- another ontology -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Changed:
    """What a subscription gains or loses: how many publications, and the newest of them."""

    gained: int = 0
    lost: int = 0
    newest_gained: tuple[str, ...] = ()
    newest_lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """What another ontology would change.

    Parameters
    ----------
    looked, complete
        How many publications were matched by both ontologies, and whether these are all.
    matches_before, matches_after
        How many matches they have.
    changed
        The subscriptions that gain or lose something, those with the most first.
    problems
        Subscriptions that could not be used any more, and what the change reports.
    """

    looked: int
    complete: bool
    matches_before: int
    matches_after: int
    changed: Mapping[str, Changed]
    problems: tuple[Problem, ...] = ()


def what_if(
    engine: Engine,
    ontology: Ontology,
    stored: Iterable[Stored],
    *,
    limit_seconds: float,
    annotator: Annotator | None = None,
    newest: int = 10,
    timer: Timer = perf_counter,
) -> Difference:
    """Say which subscriptions would gain or lose publications if the ontology were replaced.

    A copy of the engine matches the publications, goes over to the new ontology as
    `Engine.replace_ontology` does, and matches them again. Cost: a snapshot of the engine, the
    texts of the publications in memory, and matching them twice.

    Parameters
    ----------
    stored
        Publications, the newest first.
    limit_seconds
        After half of this time no more are matched by the old ontology, and after the whole by the
        new one; what only the old one matched is left out.
    annotator
        As `Engine.replace_ontology` has it.
    newest
        How many ids are named of what a subscription gains, and loses.
    """
    now = [utc_now()]
    problems: list[Problem] = []
    begin = timer()
    copy = engine.copy(clock=lambda: now[0], on_problem=problems.append)

    def matched(one: Stored) -> frozenset[str]:
        now[0] = one.received
        found = copy.filter(one.text, "nt", SplitBy.DOCUMENT, name=one.id)
        return frozenset(id for report in found for id in report.subscriptions)

    scan = Scan(stored, begin + limit_seconds / 2, timer)
    before = [(one, matched(one)) for one in scan]
    problems.clear()
    copy.replace_ontology(ontology, annotator)
    reported = tuple(problems)
    gained, lost = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    again = Scan((one for one, _ in before), begin + limit_seconds, timer)
    matches_before = matches_after = 0
    for one, (_, old) in zip(again, before, strict=False):
        new = matched(one)
        matches_before, matches_after = matches_before + len(old), matches_after + len(new)
        for id in new - old:
            gained[id].append(one.id)
        for id in old - new:
            lost[id].append(one.id)
    order = sorted({*gained, *lost}, key=lambda id: (-len(gained[id]) - len(lost[id]), id))
    changed = {
        id: Changed(
            len(gained[id]), len(lost[id]), tuple(gained[id][:newest]), tuple(lost[id][:newest])
        )
        for id in order
    }
    complete = scan.complete and again.complete
    return Difference(again.looked, complete, matches_before, matches_after, changed, reported)

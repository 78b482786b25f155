"""Trials of queries, explanations of matches, and effects of another ontology.

The functions take an engine and stored publications, newest first. They use neither HTTP nor a
database, and they do not change the engine. Queries are tried in a `Backtester`, which is another
engine with the same ontology. Its ``NOW()`` is the time at which a publication arrived, so a trial
gives the result that matching gave or would have given at that time.

Cost: 0.4 ms to read and annotate a feed item of 4 KB. Near misses are found in the same pass: for
each condition of the query, a copy of the query without this condition is matched too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import chain, islice
from time import perf_counter

from pyoxigraph import NamedNode

from graphmatch.broker.insight.conditions import Condition, conditions
from graphmatch.broker.models.stored_publication import Stored
from graphmatch.broker.service.backtester import Backtester, Timer
from graphmatch.engine import Engine
from graphmatch.explain.evidence import distinct_reasons
from graphmatch.explain.explanation import Explanation
from graphmatch.report import MatchReport
from semantic.annotation.annotate import Annotator
from semantic.clock import utc_now
from semantic.errors import Problem, SubscriptionError
from semantic.ontology.ontology import Ontology
from semantic.reading import SplitBy
from semantic.terms import Node

DESCRIBED_BYTES = 2_000_000
"""Maximum size of a publication whose matches are explained, in bytes of N-Triples.

Explaining 2 MB takes a second.
"""
_WHOLE = "the whole query"
"""Id under which the tried query is subscribed; copies without a condition have numbers."""


@dataclass(slots=True)
class Scan:
    """An iterator over stored publications that stops at a deadline.

    Attributes
    ----------
    until
        The deadline, as a time of `timer`.
    scanned, complete
        Number of publications it yielded so far, and whether these were all.
    timed_out
        Whether it stopped because of the deadline.
    """

    stored: Iterable[Stored]
    until: float
    timer: Timer
    scanned: int = 0
    complete: bool = False
    timed_out: bool = False

    def __iter__(self) -> Iterator[Stored]:
        for one in self.stored:
            if self.timer() >= self.until:
                self.timed_out = True
                return
            self.scanned += 1
            yield one
        self.complete = True


# -- trials of a query ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hit:
    """A publication that a query matches, with the reasons."""

    id: str
    received: datetime
    title: str | None
    link: str | None
    because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelaxedMatch:
    """A publication that a query would match if one condition were removed.

    Parameters
    ----------
    condition
        Source text of this condition.
    failure, but
        The first failure of the whole query, and the difference between the nearest triple and the
        query. Both are empty if the time was up or the publication exceeds `DESCRIBED_BYTES`.
    """

    id: str
    received: datetime
    title: str | None
    link: str | None
    condition: str
    failure: str = ""
    but: str = ""


@dataclass(frozen=True, slots=True)
class RelaxedCondition:
    """A condition, and the number of additional matches that the query would have without it."""

    condition: str
    line: int
    column: int
    count: int


@dataclass(frozen=True, slots=True)
class Day:
    """Numbers of publications of a day that were examined and that matched.

    The day is in the time zone of `Stored.received`.
    """

    day: date
    matched: int
    scanned: int


@dataclass(frozen=True, slots=True)
class BacktestResult:
    """Result of trying a query on stored publications.

    Parameters
    ----------
    problem
        Why the query is not a valid subscription, with line and column. If it is set, nothing was
        matched.
    scanned, complete
        Number of publications examined, and whether these were all.
    matched
        Number of publications that matched.
    unknown
        Number of publications for which an operator could not decide.
    failed
        Number of publications on which the query could not be evaluated within the limits.
    days
        Counts for each day with examined publications, newest day first.
    newest
        The newest matches.
    missed
        Conditions whose removal gives more matches. Those that give the fewest come first.
    near
        Near misses, chosen in the order of `missed`, newest first.
    truncated
        Limits that ended the trial or omitted reasons.
    """

    problem: Problem | None = None
    scanned: int = 0
    complete: bool = True
    matched: int = 0
    undecided: int = 0
    failed: int = 0
    days: tuple[Day, ...] = ()
    newest: tuple[Hit, ...] = ()
    relaxations: tuple[RelaxedCondition, ...] = ()
    relaxed_matches: tuple[RelaxedMatch, ...] = ()
    truncated: tuple[str, ...] = ()


def backtest(
    engine: Engine,
    query: str,
    stored: Iterable[Stored],
    *,
    limit_seconds: float,
    newest: int = 10,
    near: int = 5,
    language: str = "en",
    backtester: Backtester | None = None,
) -> BacktestResult:
    """Try a query: return the matches that `Engine.filter` would find in stored publications.

    Parameters
    ----------
    query
        Text of the query. It may be incomplete, for example while a user types it.
    stored
        Publications, the newest first.
    limit_seconds
        Time limit of the trial.
    newest, near
        Maximum numbers of matches and near misses in the result. With ``near=0``, the trial does
        not look for near misses and is faster.
    language
        Language of the labels in reasons.
    backtester
        Backtester of this engine, to reuse in several trials. By default, a new one.

    Examples
    --------
    >>> from datetime import UTC
    >>> line = b'<urn:%d> <http://purl.org/dc/elements/1.1/subject> "Food" .'
    >>> stored = [Stored(f"urn:{n}", line % n, datetime(2026, 1, n, tzinfo=UTC)) for n in (2, 1)]
    >>> trial = try_subscription(Engine(), 'ASK { ?x dc:subject "Food" }', stored, limit_seconds=1)
    >>> trial.matched, trial.scanned, [hit.id for hit in trial.newest]
    (2, 2, ['urn:2', 'urn:1'])
    >>> str(try_subscription(Engine(), "ASK { ?x", stored, limit_seconds=1).problem.where)
    'the query:1:9'
    """
    backtester = backtester or Backtester(engine)
    timer = backtester.timer
    until = timer() + limit_seconds
    problem, parts = _conditions(engine, query, near)
    if problem is not None:
        return BacktestResult(problem)
    queries = [(_WHOLE, query), *((str(n), part.without) for n, part in enumerate(parts))]
    with backtester.subscribed(queries) as (trying, refused):
        if _WHOLE in refused:
            return BacktestResult(refused[_WHOLE])
        scan = Scan(stored, until, timer)
        days, scanned, missed = Counter[date](), Counter[date](), Counter[int]()
        hits: list[tuple[Stored, MatchReport]] = []
        close: defaultdict[int, list[Stored]] = defaultdict(list)
        unknown = failed = 0
        for one, report in backtester.reports(scan):
            day = one.received.date()
            scanned[day] += 1
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
        describing = _Describing(backtester, trying, until, language)
        described = tuple(describing.hit(*hit) for hit in hits)
        nearly = tuple(describing.near_miss(one, parts[number]) for one, number in chosen)
        timed_out = [f"the time limit of {limit_seconds:g} s"] if scan.timed_out else []
        return BacktestResult(
            None,
            scan.scanned,
            scan.complete,
            days.total(),
            unknown,
            failed,
            tuple(Day(day, days[day], scanned[day]) for day in sorted(scanned, reverse=True)),
            described,
            tuple(_missed(parts[number], missed[number]) for number in rarest),
            nearly,
            (*timed_out, *sorted(describing.truncated)),
        )


def _conditions(
    engine: Engine, query: str, near: int
) -> tuple[Problem | None, tuple[Condition, ...]]:
    """Return the problem of an invalid query, or the conditions of a valid one."""
    try:
        engine.parser.query("the query", query)
    except SubscriptionError as error:
        return error.problem, ()
    return None, conditions(query) if near else ()


def _missed(part: Condition, count: int) -> RelaxedCondition:
    return RelaxedCondition(part.text, part.line, part.column, count)


@dataclass(frozen=True, slots=True)
class _Describing:
    """Explains matches and near misses until a deadline, and records omissions in `truncated`."""

    backtester: Backtester
    engine: Engine
    until: float
    language: str
    truncated: set[str] = field(default_factory=set)

    def _can(self, one: Stored) -> bool:
        """Return whether a publication is small enough to explain, and time is left."""
        if len(one.text) > DESCRIBED_BYTES:
            self.truncated.add(f"reasons in publications of more than {DESCRIBED_BYTES:,} bytes")
            return False
        if self.backtester.timer() >= self.until:
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

    def near_miss(self, one: Stored, part: Condition) -> RelaxedMatch:
        """Return a near miss with the first failure of the query."""
        failure, but = "", ""
        if self._can(one):
            self.backtester.at(one)
            said = self.engine.explain(_WHOLE, one.read(), self.language)
            failure, but = said.failure, said.nearest[0].why if said.nearest else ""
        return RelaxedMatch(one.id, one.received, one.title, one.link, part.text, failure, but)


# -- explanations ---------------------------------------------------------------------------


def why(
    engine: Engine,
    subscription: str,
    stored: Stored,
    *,
    query: str | None = None,
    language: str = "en",
    backtester: Backtester | None = None,
) -> dict[str, object]:
    """Explain, as a JSON object, why a subscription matches a publication or what fails first.

    Parameters
    ----------
    query
        Text of its query; by default that of the subscription with this id in the engine.

    Returns
    -------
    The object that ``graphmatch explain --json`` writes (docs/reference/command.md), without
    ``index``. The additional ``labels`` maps the IRIs of mentioned terms to labels.

    Raises
    ------
    UnknownSubscriptionError
        If `query` is ``None`` and the engine has no subscription with this id.

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
    backtester = backtester or Backtester(engine)
    text = engine.subscription(subscription).query.text if query is None else query
    with backtester.subscribed([(subscription, text)]) as (trying, refused):
        if subscription in refused:  # The current ontology lacks a unit or class of the query.
            return _suspended(subscription, stored, refused[subscription])
        backtester.at(stored)
        said = trying.explain(subscription, stored.read(), language)
        told = said.as_json()
        del told["index"]
        return {**told, "labels": _labels(said, trying.ontology, language)}


def _suspended(subscription: str, stored: Stored, problem: Problem) -> dict[str, object]:
    """Return the explanation of a subscription that cannot match with the current ontology."""
    return {
        "subscription": subscription,
        "publication": stored.id,
        "matches": False,
        "plan": [],
        "evidence": [],
        "calls": [],
        "failure": f"{problem.what}: it matches nothing now",
        "held": [],
        "nearest": [],
        "labels": {},
    }


def _labels(said: Explanation, ontology: Ontology, language: str) -> dict[str, str]:
    """Return the labels of the terms that an explanation mentions, by IRI."""
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
    """Publications that a subscription gains or loses: their numbers, and the newest ids."""

    gained: int = 0
    lost: int = 0
    newest_gained: tuple[str, ...] = ()
    newest_lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Effects of another ontology on the matches of stored publications.

    Parameters
    ----------
    scanned, complete
        Number of publications evaluated with both ontologies, and whether these were all.
    matches_before, matches_after
        Number of their matches with the old and with the new ontology.
    changed
        Subscriptions that gain or lose publications. Those with the most changes come first.
    problems
        Problems that the replacement reported, such as subscriptions that become unusable.
    """

    scanned: int
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
    """Return which subscriptions would gain or lose publications if the ontology were replaced.

    A copy of the engine matches the publications, replaces its ontology with
    `Engine.replace_ontology`, and matches them again. Cost: a snapshot of the engine, memory for
    the texts of the publications, and the time to match them twice.

    Parameters
    ----------
    stored
        Publications, the newest first.
    limit_seconds
        Time limit. Half of it is for matching with the old ontology. Publications that are not
        evaluated with the new ontology in time are not counted.
    annotator
        Annotator for the new ontology, see `Engine.replace_ontology`.
    newest
        Maximum number of ids of gained publications, and of lost ones, for each subscription.
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
    return Difference(again.scanned, complete, matches_before, matches_after, changed, reported)

"""Threads: many match, one changes, and every answer is right at some moment of its match.

A match does not depend on other subscriptions. So one answer of the naive matcher for each kind of
subscription gives the right answers after any number of changes.
"""

from __future__ import annotations

import os
import random
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from threading import Barrier, Event, Thread
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine, MatchReport, Subscription, SubscriptionParser
from graphmatch.enrichment import EnrichedPublication, Enricher
from graphmatch.operators import Operator
from graphmatch.published.naive import Naive
from semantic import Ontology, Publication
from semantic.annotation.annotate import Annotator
from semantic.attributes.names import attribute
from semantic.mapping import MappingFunction
from semantic.ontology.synonyms import SynonymOptions, SynonymPairs
from semantic.terms import Triple
from semantic.vocabulary import ATTRIBUTE, LABEL, RSS, SUBCLASS, SUBPROPERTY, TYPE, Namespace
from tests.oracle import to_sparql
from tests.strategies import FULL, Scenario, scenarios
from tests.test_agreement import ontology_of
from tests.test_contract import normal
from tests.waiting import pause

EX = Namespace("http://example.org/")
SECONDS, LONG = 20.0, 1500.0
"""Timeouts in seconds: to meet another thread, and to end."""
CLASSES = 12


def together(*several: Callable[[], None]) -> None:
    """Run each function in its own thread, and raise any error."""
    start = Barrier(len(several), timeout=SECONDS)
    errors: list[BaseException] = []

    def run(one: Callable[[], None]) -> None:
        try:
            start.wait()
            one()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [Thread(target=run, args=[one], daemon=True) for one in several]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()
    for error in errors:
        raise error


# -- Matching during changes -----------------------------------------------------------------


def known() -> Ontology:
    """Return an ontology with a chain of classes, labels, sub-properties and a function."""
    triples: list[Triple] = [(EX[f"C{n}"], SUBCLASS, EX[f"C{n + 1}"]) for n in range(CLASSES - 1)]
    triples += [(EX[f"C{n}"], LABEL, Literal(f"kind{n}")) for n in range(CLASSES)]
    triples += [(EX[f"p{n}"], SUBPROPERTY, EX[f"q{n}"]) for n in range(8)]
    text = f"PREFIX ex: <{EX.iri}> CONSTRUCT {{ ?x ex:dear true }} {{ ?x ex:cost ?v }}"
    dear = MappingFunction("dear", text)
    return Ontology(triples, mapping=[dear])


def item(number: int) -> Publication:
    """Return a feed item that subscriptions of each kind can match."""
    x = EX[f"item{number}"]
    text = f"Of word{number} and word{number + 2}, and kind{number + 2}"
    return Publication.of(
        x.value,
        [
            (x, TYPE, RSS["item"]),
            (x, TYPE, EX[f"C{number}"]),
            (x, RSS["title"], Literal(text)),
            *((x, EX[f"p{n}"], Literal(n + number)) for n in range(8)),
            *([(x, EX["cost"], Literal(number))] if number % 8 == 0 else []),
        ],
    )


def queries() -> tuple[str, ...]:
    """Return subscriptions of every kind; some match the items, most do not."""
    wheres = (
        *(f"?x a ex:C{n}" for n in range(CLASSES)),
        *(f"?x dcterms:subject ex:C{n}" for n in range(CLASSES)),
        *(f"?x ex:q{n % 8} ?v FILTER(?v > {n})" for n in range(10)),
        *(f'?x rss:title ?t FILTER(CONTAINS(?t, "word{n}"))' for n in range(80)),
        *(f"?x ex:p{n % 8} {n} OPTIONAL {{ ?x ex:sale ?s }}" for n in range(12)),
        *(f"?x ex:q1 ?v FILTER NOT EXISTS {{ ?x a ex:C{n} }}" for n in (3, 11)),
        *("?x ex:dear ?d", "?x ex:dear ?d ; ex:q2 ?v"),
        "?x a ?c FILTER(gm:descendantOf(?c, ex:C6))",
        *(f"?x <{attribute(name).value}> ?v" for name in ("p2", "q3", "cost", "sale")),
    )
    every = "ASK { ?x ?p 7 }"  # This query requires all derived triples.
    return (every, *(f"PREFIX ex: <{EX.iri}> SELECT * {{ {where} }}" for where in wheres))


@dataclass(frozen=True)
class Change:
    """A subscription that is added or removed, and its query's number."""

    subscription: Subscription
    kind: int
    comes: bool


def changes(count: int, seed: int) -> list[Change]:
    """Draw additions and removals that keep about 80 subscriptions."""
    draw = random.Random(seed)
    parser = SubscriptionParser()
    parsed = [parser.parse("", text) for text in queries()]
    standing: list[Change] = []
    made = []
    for number in range(count):
        if draw.random() < len(standing) / 160:
            change = replace(standing.pop(draw.randrange(len(standing))), comes=False)
        else:
            kind = draw.randrange(len(parsed))
            change = Change(replace(parsed[kind], id=str(number)), kind, comes=True)
            standing.append(change)
        made.append(change)
    return made


@dataclass
class Done:
    """Numbers of started and ended changes, and whether all have ended."""

    began: int = 0
    ended: int = 0
    all: bool = False


@dataclass(frozen=True)
class Seen:
    """A report, with the changes ended before and started until its end."""

    publication: int
    least: int
    most: int
    report: MatchReport


Right: TypeAlias = list[dict[int, object]]
"""For each publication, the answers by query number."""


def right_answers(publications: Sequence[Publication]) -> Right:
    """Ask the naive matcher, or for attributes, which it lacks, a single-threaded engine."""
    ontology = known()
    naive = Naive(ontology, annotator=Annotator(ontology.labels()))
    engine = Engine(ontology)
    for number, text in enumerate(queries()):
        matcher = engine if ATTRIBUTE.iri in text else naive
        matcher.subscribe(SubscriptionParser().parse(str(number), text))
    return [
        {int(id): answer for m in (naive, engine) for id, *answer in normal(m.match(publication))}
        for publication in publications
    ]


def moments(made: Sequence[Change], right: dict[int, object]) -> list[tuple[int, dict[str, int]]]:
    """Return the history of a publication's matches: the change number, and the matches."""
    now: dict[str, int] = {}
    found = [(0, dict(now))]
    for number, change in enumerate(made, 1):
        if change.kind in right:
            if change.comes:
                now[change.subscription.id] = change.kind
            else:
                del now[change.subscription.id]
            found.append((number, dict(now)))
    return found


def check(seen: Iterable[Seen], made: Sequence[Change], right: Right) -> int:
    """Check that each report was right at some moment of its match; count the matches."""
    histories = [moments(made, answers) for answers in right]
    matches = 0
    for one in seen:
        answers, history = right[one.publication], histories[one.publication]
        found = {id: answer for id, *answer in normal(one.report)}
        first = bisect_right(history, one.least, key=lambda moment: moment[0]) - 1
        last = bisect_right(history, one.most, key=lambda moment: moment[0])
        possible = [moment for _, moment in history[first:last]]
        kinds = next((kinds for kinds in possible if list(kinds) == list(found)), None)
        assert kinds is not None, (list(found), one.least, one.most)
        assert found == {id: answers[kind] for id, kind in kinds.items()}
        matches += len(found)
    return matches


@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.long)])
def test_that_every_report_is_right_at_some_moment(count: int) -> None:
    """Two threads match while another changes subscriptions."""
    publications = [item(number) for number in range(8)]
    right = right_answers(publications)
    assert all(len(answers) >= 15 for answers in right)
    engine, made, done = Engine(known()), changes(count, seed=1), Done()
    seen: list[Seen] = []

    def change() -> None:
        try:
            for one in made:
                done.began += 1
                if one.comes:
                    engine.subscribe(one.subscription)
                else:
                    engine.unsubscribe(one.subscription.id)
                done.ended += 1
                pause(0.002)  # Let the others match in between.
        finally:
            done.all = True

    def match(seed: int) -> None:
        draw = random.Random(seed)
        while not done.all:
            number, least = draw.randrange(len(publications)), done.ended
            report = engine.match(publications[number])
            seen.append(Seen(number, least, done.began, report))

    together(change, lambda: match(2), lambda: match(3))
    assert check(seen, made, right) > len(seen) > count
    assert any(report.report.counters.mapped for report in seen)
    assert any(report.report.counters.evaluated for report in seen)


# -- Concurrent matching ---------------------------------------------------------------------


@settings(max_examples=15)
@given(scenarios(FULL, publications=3))
def test_that_three_threads_find_what_one_does(scenario: Scenario) -> None:
    """Equal ids and SPARQL evaluation must not mix the triples of publications."""
    engine = Engine(ontology_of(scenario))
    for number, query in enumerate(scenario.queries):
        engine.subscribe(str(number), to_sparql(query))
    expected = [normal(engine.match(publication)) for publication in scenario.publications]
    found: dict[tuple[int, int], object] = {}

    def match(first: int) -> None:
        for round_ in range(3):
            for number in range(3):
                chosen = (first + number) % len(expected)
                report = engine.match(scenario.publications[chosen])
                found[first, 3 * round_ + number] = chosen, normal(report)

    together(*(lambda first=first: match(first) for first in range(3)))
    assert len(found) == 27
    assert all(report == expected[chosen] for chosen, report in found.values())


EVALUATED = f"SELECT * {{ ?x {EX['p']} ?v OPTIONAL {{ ?x {EX['q']} ?w }} }}"


def valued(value: int) -> Publication:
    return Publication.of(
        "urn:p", [(EX["x"], EX["p"], Literal(value)), (EX["x"], EX["q"], Literal(-value))]
    )


def test_that_publications_are_evaluated_by_several_threads() -> None:
    engine = Engine()
    engine.subscribe("s", EVALUATED)
    found: dict[int, object] = {}

    def match(value: int) -> None:
        for again in range(value, 40, 10):
            (one,) = engine.match(valued(again)).matches
            found[again] = one.solutions

    together(*(lambda value=value: match(value) for value in (1, 2, 3)))
    assert found == {
        n: ({"x": EX["x"], "v": Literal(n), "w": Literal(-n)},)
        for value in (1, 2, 3)
        for n in range(value, 40, 10)
    }


def test_explanations_do_not_block_matching(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, matched, enrich = Event(), Event(), Enricher.enrich

    def enriched(self: Enricher, *given: Any) -> EnrichedPublication:
        asking.set()
        assert matched.wait(SECONDS)
        return enrich(self, *given)

    monkeypatch.setattr(Enricher, "enrich", enriched)
    engine = Engine()
    engine.subscribe("s", EVALUATED)
    other = Publication.of("urn:p", [(EX["x"], EX["q"], Literal(1))])
    found: list[object] = []

    def match() -> None:
        assert asking.wait(SECONDS)
        found.append(bool(engine.match(valued(2))))
        matched.set()

    together(lambda: found.append(engine.explain("s", other).match is not None), match)
    assert found == [True, False]


# -- Changes during a match ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "graph", "first"),
    [
        ("nq", "<urn:s> <urn:p> <urn:o> <urn:g%d> .\n", ("before",)),
        # A document in TriG is matched after it has been read.
        ("trig", "<urn:g%d> { <urn:s> a 1 }\n", ("before", "after")),
    ],
)
def test_a_silent_pipe_does_not_block_changes(
    format: str, graph: str, first: tuple[str, ...]
) -> None:
    reading, writing = os.pipe()
    engine = Engine()
    engine.subscribe("before", "ASK { ?s ?p ?o }")
    found: list[tuple[str, ...]] = []

    def read() -> None:
        with os.fdopen(reading, "rb") as stream:
            found.extend(tuple(report.subscriptions) for report in engine.filter(stream, format))

    def write() -> None:
        with os.fdopen(writing, "wb") as stream:
            begun, rest = (graph % 0)[:-12].encode(), (graph % 0)[-12:].encode()
            stream.write("".join(graph % n for n in range(1, 2000)).encode() + begun)
            stream.flush()
            pause(0.2)  # Now the reader waits in the middle of a statement.
            subscribe = Thread(target=engine.subscribe, args=("after", "ASK { ?s ?p ?o }"))
            subscribe.start()
            subscribe.join(SECONDS)
            assert not subscribe.is_alive()
            stream.write(rest)

    together(read, write)
    assert (found[0], found[-1], len(found)) == (first, ("before", "after"), 2000)


# -- Python callbacks from the core ------------------------------------------------------------


class Callback:
    """An operator's index whose `matches` calls a function; every operator call is true.

    Parameters
    ----------
    function
        Called without arguments for each look-up.
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function

    def add(self, constants: object) -> int:
        return 0

    def remove(self, key: int) -> None:
        pass

    def matches(self, argument: object) -> list[int]:
        self.function()
        return [0]


CALLING = "ASK { ?x <urn:p> ?v FILTER(<urn:op:true>(?v, 1)) }"


def calling(function: Callable[[], object], ontology: Ontology | None = None) -> Engine:
    """Return an engine with two operators; the first one's index calls a function."""
    indexes = [Callback(function), Callback(lambda: None)]
    operators = [
        Operator(iri, lambda value, one: True, index=lambda index=index: index)
        for iri, index in zip(("urn:op:true", "urn:op:other"), indexes, strict=True)
    ]
    engine = Engine(ontology or Ontology(), operators=operators)
    engine.subscribe("calling", CALLING)
    return engine


def plain(number: int) -> Publication:
    x = NamedNode(f"urn:{number}")
    return Publication.of(x.value, [(x, NamedNode("urn:p"), Literal(number))])


def changed_by_another_thread(engine: Engine) -> None:
    subscribe = Thread(target=engine.subscribe, args=("other", "ASK { ?x <urn:p> 1 }"))
    subscribe.start()
    subscribe.join(SECONDS)
    assert not subscribe.is_alive(), "the core held its lock while it called Python"


def test_an_index_of_an_operator_does_not_keep_others_from_subscribing() -> None:
    engines: list[Engine] = []

    def change() -> None:
        if "other" not in engines[0]:
            changed_by_another_thread(engines[0])

    engines.append(calling(change))
    assert list(engines[0].match(plain(1)).subscriptions) == ["calling", "other"]


def test_a_slow_file_does_not_keep_others_from_subscribing() -> None:
    class Slow(BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 1 << 17 and "other" not in engine:  # The core has begun to read.
                changed_by_another_thread(engine)
            return super().read1(size)

    engine = Engine()
    engine.subscribe("all", "ASK { ?x <urn:p> ?y }")
    lines = b"".join(b"<urn:s> <urn:p> <urn:o> <urn:g%d> .\n" % number for number in range(10_000))
    found = [list(report.subscriptions) for report in engine.filter(Slow(lines))]
    assert found == [["all"]] * len(found)
    assert len(found) == 10_000
    assert "other" in engine


def test_an_interrupt_in_an_index_of_an_operator_ends_the_call() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calling(interrupt).match(plain(1))


def test_constants_that_change_while_an_index_is_asked() -> None:
    """Other constants keep their results, and the engine asks the index once."""
    engines: list[Engine] = []
    calls = 0

    def change() -> None:
        nonlocal calls
        calls += 1
        (engine,) = engines
        for _ in range(2):  # The second change frees the terms of the first.
            engine.subscribe("more", CALLING.replace("true>(?v, 1)", f'other>(?v, "{calls}")'))
            engine.unsubscribe("more")

    engines.append(calling(change))
    assert list(engines[0].match(plain(1)).subscriptions) == ["calling"]
    assert calls == 1


@pytest.mark.parametrize("rounds", [150, pytest.param(30_000, marks=pytest.mark.long)])
def test_threads_of_all_kinds_do_not_wait_for_each_other_for_ever(rounds: int) -> None:
    """One thread matches, one subscribes, one holds reports, and one runs Python callbacks."""
    synonyms = SynonymPairs(texts={"Straße": "street"})
    options = SynonymOptions(casefold=True, nfkc=True)
    triples = [(EX["C0"], SUBCLASS, EX["C1"]), (EX["C0"], LABEL, Literal("Straße"))]
    engine = calling(lambda: Event().wait(0.001), Ontology(triples, synonyms, options=options))
    for number, text in enumerate(queries()):
        engine.subscribe(f"standing{number}", text)
    item_ = Publication.of("urn:i", [*item(1).given, (EX["i"], EX["p1"], Literal("STRASSE"))])

    def repeat(work: Callable[[int], object]) -> Callable[[], None]:
        def run() -> None:
            for number in range(rounds):
                work(number)

        return run

    def change(number: int) -> None:
        engine.subscribe("new", f"ASK {{ ?x <urn:p> {number} }}")
        engine.unsubscribe("new")

    reports: deque[MatchReport] = deque(maxlen=20)

    def hold(number: int) -> None:
        reports.append(engine.match(item_))
        assert "standing2" in reports[number % len(reports)].subscriptions

    together(
        repeat(lambda number: engine.match(valued(number))),
        repeat(change),
        repeat(hold),
        repeat(lambda number: engine.match(plain(number))),
    )

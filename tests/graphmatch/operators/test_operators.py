"""Subscriptions that call operators, and their matches in any order of calls."""

from __future__ import annotations

import asyncio
import random
import re
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from graphmatch.engine import Engine
from graphmatch.operators import MissingOperatorError, Operator, load_operators, operator
from graphmatch.report import MatchReport
from graphmatch.snapshot import SavedError, opened
from semantic.errors import InputError, Problem, SubscriptionError
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Term

P, Q = NamedNode("urn:p"), NamedNode("urn:q")
X, Y = NamedNode("urn:x"), NamedNode("urn:y")


def dice(*parts: object) -> int:
    """Return a number that depends only on the arguments."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=4).digest())


def say(name: str, argument: str, constant: str) -> bool | None:
    """Return a generated operator's result: false half of the time, and sometimes None."""
    number = dice(name, argument, constant) % 10
    return None if number == 0 else number < 5


def made(name: str, counts: dict[tuple[str, ...], int]) -> Operator:
    def function(argument: Term, constant: Term) -> bool:
        key = (name, argument.value, constant.value)
        counts[key] = counts.get(key, 0) + 1
        truth = say(*key)
        if truth is None:
            raise RuntimeError("nobody knows")
        return truth

    async def later(argument: Term, constant: Term) -> bool:
        await asyncio.sleep(0)
        return function(argument, constant)

    def several(calls: list[tuple[Term, Term]]) -> list[object]:
        # One error in a batch would fail all calls.
        return [None if say(name, a.value, c.value) is None else function(a, c) for a, c in calls]

    if name == "later":
        return Operator("urn:op:later", later)
    if name == "batch":
        return Operator("urn:op:batch", several, batch=7, timeout=5.0)
    return Operator(f"urn:op:{name}", function, timeout=None if name == "here" else 5.0)


NAMES = ("here", "thread", "batch", "later")


@dataclass
class Generated:
    """A subscription as a tree: patterns, and calls by variable, some of them negated."""

    id: str
    patterns: list[tuple[str, str, str]]
    calls: list[tuple[str, str, str, bool]]
    ask: bool
    either: list[tuple[str, str, str, bool]]

    def text(self) -> str:
        def call(one: tuple[str, str, str, bool]) -> str:
            name, variable, constant, negated = one
            return f'{"!" * negated}<urn:op:{name}>(?{variable}, "{constant}")'

        where = " ".join(f"?{s} <{p}> ?{o} ." for s, p, o in self.patterns)
        where += "".join(f" FILTER({call(one)})" for one in self.calls)
        if self.either:
            where += f" FILTER({' || '.join(map(call, self.either))})"
        return f"ASK {{ {where} }}" if self.ask else f"SELECT * {{ {where} }}"

    def solutions(self, triples: set[tuple[str, str, str]]) -> list[dict[str, str]]:
        rows: list[dict[str, str]] = [{}]
        for (s, p, o), _ in [(pattern, 0) for pattern in self.patterns]:
            rows = [
                row | {s: ts, o: to}
                for row, (ts, tp, to) in product(rows, triples)
                if tp == p and row.get(s, ts) == ts and row.get(o, to) == to
            ]
        return rows

    def truth(self, row: dict[str, str]) -> bool | None:
        def of(one: tuple[str, str, str, bool]) -> bool | None:
            name, variable, constant, negated = one
            truth = say(name, row[variable], constant)
            return None if truth is None else truth != negated

        truths = [of(one) for one in self.calls]
        if self.either:
            some = [of(one) for one in self.either]
            truths.append(True if True in some else None if None in some else False)
        return False if False in truths else None if None in truths else True


def generated(rng: random.Random, id: str) -> Generated:
    patterns = [("x", f"urn:p{rng.randrange(3)}", "t")]
    if rng.random() < 0.5:
        patterns.append(("x", f"urn:p{rng.randrange(3)}", "u"))
    variables = sorted({name for s, _, o in patterns for name in (s, o)})

    def call() -> tuple[str, str, str, bool]:
        constant = "c" + str(min(rng.randrange(12), rng.randrange(12)))
        return rng.choice(NAMES), rng.choice(variables), constant, rng.random() < 0.2

    calls = [call() for _ in range(rng.randint(1, 4))]
    either = [call() for _ in range(rng.choice([0, 0, 0, 2]))]
    return Generated(id, patterns, calls, rng.random() < 0.3, either)


def publication(rng: random.Random, id: str) -> set[tuple[str, str, str]]:
    nodes = [f"urn:n{n}" for n in range(3)]
    return {
        (rng.choice(nodes), f"urn:p{rng.randrange(3)}", f"v{rng.randrange(6)}")
        for _ in range(rng.randint(1, 6))
    }


def as_publication(id: str, triples: set[tuple[str, str, str]]) -> Publication:
    return Publication.of(id, [(NamedNode(s), NamedNode(p), Literal(o)) for s, p, o in triples])


def check(subscriptions: list[Generated], triples: set[tuple[str, str, str]], report: MatchReport):
    found = {match.subscription: match.solutions for match in report}
    undecided = {one.subscription: one.matched for one in report.undecided}
    for one in subscriptions:
        rows = one.solutions(triples)
        truths = [one.truth(row) for row in rows]
        true = [row for row, truth in zip(rows, truths, strict=True) if truth]
        text = one.text()
        if one.either and undecided.get(one.id) is False:
            asked = [*one.calls, *one.either]
            assert any(None in [say(n, r[v], c) for n, v, c, _ in asked] for r in rows), text
            assert one.id not in found
            continue
        if one.ask:
            assert (one.id in found) == bool(true), text
            assert (one.id in undecided) == (not true and None in truths) or one.id in found, text
            continue
        got = sorted(
            tuple(sorted((k, v.value) for k, v in s.items())) for s in found.get(one.id, ())
        )
        assert got == sorted(tuple(sorted(row.items())) for row in true), text
        assert (one.id in undecided) == (None in truths), text
        assert undecided.get(one.id, bool(true)) == bool(true)


@pytest.mark.parametrize("seed", range(6))
def test_that_every_order_gives_what_evaluating_everything_gives(seed: int) -> None:
    rng = random.Random(seed)
    subscriptions = [generated(rng, f"s{n}") for n in range(60)]
    counts: dict[tuple[str, ...], int] = {}
    problems: list[Problem] = []
    engine = Engine(operators=[made(name, counts) for name in NAMES], on_problem=problems.append)
    rng.shuffle(subscriptions)
    assert not engine.subscribe_many((one.id, one.text()) for one in subscriptions)
    events = [(f"e{n}", publication(rng, f"e{n}")) for n in range(12)]
    for id, triples in events:
        report = engine.match(as_publication(id, triples))
        check(subscriptions, triples, report)
        assert tuple(problems) == report.problems
        problems.clear()
        assert report.counters.called == sum(not call.cached for call in report.calls)
        assert len({(c.operator, c.arguments) for c in report.calls}) == len(report.calls)
        assert list(report.subscriptions) == [
            s.id for s in engine.subscriptions if s.id in set(report.subscriptions)
        ]
    # A pure operator is called once for all publications, unless it failed.
    assert all(n == 1 or say(*key) is None for key, n in counts.items())
    for one in subscriptions[::2]:
        engine.unsubscribe(one.id)
    id, triples = events[0]
    check(subscriptions[1::2], triples, engine.match(as_publication(id, triples)))


def test_that_threads_get_the_same() -> None:
    rng = random.Random(77)
    subscriptions = [generated(rng, f"s{n}") for n in range(50)]
    problems: list[Problem] = []
    engine = Engine(operators=[made(name, {}) for name in NAMES], on_problem=problems.append)
    engine.subscribe_many((one.id, one.text()) for one in subscriptions)
    events = [publication(rng, "e") for _ in range(24)]
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(engine.match, [as_publication("e", one) for one in events]))
    for triples, report in zip(events, reports, strict=True):
        check(subscriptions, triples, report)
    assert len(problems) == sum(len(report.problems) for report in reports)


# -- Positions of calls ---------------------------------------------------------------------


@operator("urn:op:length", pure=True)
def length(text: Term) -> int:
    return len(text.value)


@operator("urn:op:long")
def is_long(text: Term) -> bool:
    return len(text.value) > 4


ALL = [length, is_long]


def written(query: str) -> str:
    for name, text in (
        ("TEXT", "?x <urn:p> ?t"),
        ("LONG", "<urn:op:long>"),
        ("SIZE", "<urn:op:length>"),
    ):
        query = query.replace(name, text)
    return query


@pytest.fixture
def ask() -> Callable[..., list[dict[str, str]] | None]:
    def asked(query: str, *texts: str) -> list[dict[str, str]] | None:
        engine = Engine(operators=ALL)
        engine.subscribe("s", query)
        told = [(X, P, Literal(text)) for text in texts]
        [*matches] = engine.match(Publication.of("p", told))
        if not matches:
            return None
        return [{k: v.value for k, v in row.items()} for row in matches[0].solutions]

    return asked


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("ASK { TEXT FILTER(LONG(?t)) }", [{}]),
        ("SELECT ?t { TEXT FILTER(LONG(?t)) }", [{"t": "one two"}]),
        ("SELECT ?t { TEXT FILTER(!LONG(?t)) }", [{"t": "one"}]),
        ("SELECT ?t { TEXT FILTER(SIZE(?t) < 4) }", [{"t": "one"}]),
        ("SELECT ?t { TEXT FILTER(4 < SIZE(?t)) }", [{"t": "one two"}]),
        ("SELECT ?n { TEXT BIND(SIZE(?t) AS ?n) FILTER(?n > 3) }", [{"n": "7"}]),
        ("SELECT ?n { TEXT BIND(SIZE(?t) AS ?n) } ORDER BY ?n", [{"n": "3"}, {"n": "7"}]),
        ("SELECT (SIZE(?t) + 1 AS ?n) { TEXT } ORDER BY DESC(?n) LIMIT 1", [{"n": "8"}]),
        ("SELECT (COUNT(*) AS ?n) { TEXT FILTER(LONG(?t)) }", [{"n": "1"}]),
        ("SELECT (SUM(SIZE(?t)) AS ?n) { TEXT }", [{"n": "10"}]),
        (
            "SELECT ?t { TEXT FILTER(LONG(?t) || ?t = 'one') } ORDER BY ?t",
            [{"t": "one"}, {"t": "one two"}],
        ),
        ("SELECT ?t { { TEXT FILTER(LONG(?t)) } UNION { ?x <urn:q> ?t } }", [{"t": "one two"}]),
        ("SELECT ?t { TEXT OPTIONAL { ?x <urn:q> ?q } FILTER(LONG(?t)) }", [{"t": "one two"}]),
        (
            "SELECT ?t ?u { TEXT OPTIONAL { ?x <urn:p> ?u FILTER(LONG(?u) && ?u != ?t) } }"
            "ORDER BY ?t",
            [{"t": "one", "u": "one two"}, {"t": "one two"}],
        ),
        ("ASK { TEXT FILTER NOT EXISTS { ?x <urn:p> ?u FILTER(SIZE(?u) > 9) } }", [{}]),
        ("ASK { TEXT FILTER NOT EXISTS { ?x <urn:p> ?u FILTER(LONG(?u)) } }", None),
        (
            "SELECT ?n { TEXT BIND(SIZE(?t) AS ?s) BIND(SIZE(STR(?s)) + ?s AS ?n) FILTER(?n > 4) }",
            [{"n": "8"}],
        ),
        ("SELECT ?t { TEXT FILTER(SIZE(STR(SIZE(?t))) = 1 && LONG(?t)) }", [{"t": "one two"}]),
        (
            "SELECT ?t { TEXT BIND(SIZE(?t) AS ?n) ?x <urn:p> ?u FILTER(?n > 3 && ?u = 'one') }",
            [{"t": "one two"}],
        ),
        ("CONSTRUCT { ?x <urn:long> ?t } { TEXT FILTER(LONG(?t)) }", []),
    ],
)
def test_where_calls_may_stand(ask, query: str, expected: object) -> None:
    assert ask(written(query), "one", "one two") == expected


def test_that_the_ontology_may_meet_a_pattern() -> None:
    ontology = Ontology([(X, Q, Literal("a long text")), (Y, Q, Literal("abc"))])
    engine = Engine(ontology, operators=ALL)
    engine.subscribe("s", "SELECT ?z { ?z <urn:p> ?o . ?o <urn:q> ?t FILTER(<urn:op:long>(?t)) }")
    for node, expected in ((X, ["s"]), (Y, [])):
        report = engine.match(Publication.of("p", [(NamedNode("urn:z"), P, node)]))
        assert list(report.subscriptions) == expected


def test_that_all_ways_in_make_calls(tmp_path: Path) -> None:
    engine = Engine(operators=ALL)
    engine.subscribe("s", "SELECT ?t { ?x <urn:p> ?t FILTER(<urn:op:long>(?t)) }")
    one = b'<urn:x> <urn:p> "a long text" .\n'
    (tmp_path / "a.nt").write_bytes(one)
    many = b"".join(one.replace(b" .", b" <urn:g%d> ." % n) for n in range(3))
    assert [list(r.subscriptions) for r in engine.filter(one)] == [["s"]]
    assert [list(r.subscriptions) for r in engine.filter(tmp_path)] == [["s"]]
    found = list(engine.filter(many))
    assert [(r.publication, list(r.subscriptions)) for r in found] == [
        (f"urn:g{n}", ["s"]) for n in range(3)
    ]
    assert found[0].read().triples == ((X, P, Literal("a long text")),)
    assert [r.counters.recalled for r in found] == [1, 1, 1]


def test_that_subscriptions_may_change_while_calls_are_made() -> None:
    changed = []

    @operator("urn:op:change")
    def change(text: Term) -> bool:
        if not changed:
            changed.append(text)
            engine.unsubscribe("gone")
            engine.subscribe("new", "ASK { ?x <urn:p> ?t FILTER(<urn:op:long>(?t)) }")
            engine.update_ontology([(X, Q, Literal("more"))])
        return True

    engine = Engine(operators=[change, is_long])
    engine.subscribe("gone", "ASK { ?x <urn:p> ?t FILTER(<urn:op:change>(?t)) }")
    engine.subscribe("stays", "ASK { ?x <urn:p> ?t FILTER(<urn:op:change>(?t)) }")
    report = engine.match(Publication.of("p", [(X, P, Literal("a long text"))]))
    assert list(report.subscriptions) == ["stays", "new"]


def test_that_a_snapshot_needs_its_operators(tmp_path: Path) -> None:
    engine = Engine(operators=ALL)
    engine.subscribe("s", "ASK { ?x <urn:p> ?t FILTER(<urn:op:long>(?t)) }")
    told = Publication.of("p", [(X, P, Literal("a long text"))])
    engine.match(told)
    engine.save(tmp_path / "saved")
    with pytest.raises(SavedError, match="urn:op:long"):
        Engine.open(tmp_path / "saved", operators=[length])
    other = Operator("urn:op:length", length.function, index=Modulo)
    with pytest.raises(SavedError, match="differs from the saved one"):
        Engine.open(tmp_path / "saved", operators=[is_long, other])
    again = Engine.open(tmp_path / "saved", operators=ALL)
    again.save(tmp_path / "again")
    measured = opened(tmp_path / "saved", None, ALL).options.measured
    assert opened(tmp_path / "again", None, ALL).options.measured == measured
    assert measured["predicates"]["urn:op:long\n?"][2:] == [1, 1]
    assert list(again.match(told).subscriptions) == ["s"]


def test_that_operators_make_sense() -> None:
    with pytest.raises(InputError, match="two operators"):
        Engine(operators=[length, length])
    for options in ({"cost": 0}, {"timeout": -1.0}, {"batch": 0}):
        with pytest.raises(InputError):
            Operator("urn:op:x", len, **options)
    with pytest.raises(InputError, match="absolute IRI"):
        Operator("x y", len)
    with pytest.raises(InputError, match="reserved"):
        Operator("urn:graphmatch:x", len)


def test_that_explanations_know_indexes() -> None:
    class Same:
        def __init__(self) -> None:
            self.values: dict[int, str] = {}

        def add(self, constants: list[Term]) -> int:
            key = max(self.values, default=0) + 1
            self.values[key] = " ".join(one.value for one in constants)
            return key

        def remove(self, key: int) -> None:
            del self.values[key]

        def matches(self, argument: Term) -> object:
            return np.array([k for k, value in self.values.items() if value == argument.value], int)

    called: list[str] = []

    def same(text: Term, *others: Term) -> bool:
        called.append(text.value)
        return text.value == " ".join(one.value for one in others)

    engine = Engine(operators=[Operator("urn:op:same", same, index=Same), is_long])
    test = "<urn:op:same>(?t, 'a', 'b')"
    engine.subscribe("one", f"SELECT ?t {{ ?x <urn:p> ?t FILTER({test}) }}")
    engine.subscribe("both", f"ASK {{ ?x <urn:p> ?t FILTER(!<urn:op:long>(?t) && {test}) }}")
    engine.subscribe("not", f"ASK {{ ?x <urn:p> ?t FILTER(!<urn:op:long>(?t) && !{test}) }}")
    yes, no = (Publication.of("p", [(X, P, Literal(text))]) for text in ("a b", "a c"))
    report = engine.match(yes)
    assert list(report.subscriptions) == ["one", "both"]
    assert list(engine.match(no).subscriptions) == ["not"]
    # Next to other calls, it is called once.
    assert sorted(called) == ["a b", "a c"]
    assert engine.evidence(report)["one"][0].triple == (X, P, Literal("a b"))
    plan = engine.index_plan("one")
    assert [str(pattern.predicate) for pattern in plan.entries[0].patterns] == [
        "<urn:p>",
        "<urn:op:same>",
    ]
    assert plan.exact
    assert plan.subscription == engine.subscription("one")
    assert not engine.index_plan("not").exact
    assert "FILTER <urn:op:same>" in str(engine.explain("one", no))
    assert '<urn:op:same>("a c", "a", "b") is false' in str(engine.explain("both", no))


def test_that_queries_with_units_may_call_operators_with_an_index() -> None:
    class Same:
        def add(self, constants: list[Term]) -> int:
            return len(constants)

        def remove(self, key: int) -> None:
            pass

        def matches(self, argument: Term) -> object:
            return np.array([1] if argument.value == "a" else [], int)

    size, ucum = NamedNode("urn:size"), NamedNode("https://w3id.org/cdt/ucum")
    ontology = Ontology([(size, NamedNode("urn:graphmatch:baseUnit"), Literal("GB"))])
    same = Operator("urn:op:same", lambda text, other: text.value == other.value, index=Same)
    engine = Engine(ontology, operators=[same])
    tests = f"<urn:op:same>(?t, 'a') && ?s > '1 TB'^^{ucum}"
    engine.subscribe("s", f"ASK {{ ?x <urn:p> ?t ; <urn:size> ?s FILTER({tests}) }}")
    large = (X, size, Literal("2000 GB", datatype=ucum))
    assert engine.match(Publication.of("p", [(X, P, Literal("a")), large])).subscriptions == ("s",)
    assert not engine.match(Publication.of("p", [(X, P, Literal("b")), large])).subscriptions


def test_that_events_make_calls() -> None:
    from semantic.attributes.events import Event

    engine = Engine(operators=ALL)
    engine.subscribe("s", "ASK { ?e attribute:title ?t FILTER(<urn:op:long>(?t)) }")
    for title, expected in (("a long title", ["s"]), ("abc", [])):
        assert list(engine.match(Event("e", {"title": title})).subscriptions) == expected


def test_the_command(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from graphmatch.cli import app

    (tmp_path / "mine.py").write_text(
        "from graphmatch.operators import operator\n"
        "@operator('urn:op:long')\n"
        "def is_long(text): return len(text.value) > 4\n"
    )
    (tmp_path / "s.rq").write_text("ASK { ?x <urn:p> ?t FILTER(<urn:op:long>(?t)) }")
    (tmp_path / "p.nt").write_text('<urn:x> <urn:p> "a long text" .\n')
    data, query = str(tmp_path / "p.nt"), str(tmp_path / "s.rq")
    given = ["--operators", f"{tmp_path / 'mine.py'}:is_long"]

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, [*arguments])
        return result.output

    assert "1 match in 1 publication" in run("filter", data, "-s", query, *given)
    assert "calls <urn:op:long>: 10 ms per call" in run("check", query, *given)
    assert '<urn:op:long>("a long text") is true' in run("explain", "s", data, "-s", query, *given)
    assert "not supported" in run("check", query)
    (tmp_path / "bad.py").write_text(
        "from graphmatch.operators import operator\n"
        "@operator('urn:op:long')\n"
        "def is_long(text): raise ValueError('boo')\n"
    )
    bad = run("filter", data, "-s", query, "--operators", f"{tmp_path / 'bad.py'}:is_long")
    assert "s: whether it matches could not be determined" in bad
    assert "ValueError: boo" in bad
    (tmp_path / "raises.py").write_text("1 / 0")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)")
    (tmp_path / "makes.py").write_text(
        "from graphmatch.operators.operator import needed\n"
        "def fails(): raise KeyError('boo')\n"
        "def needs(shapes): return []\n"
        "def misses(): return needed('no_such_module', 'geo')\n"
    )
    for name, said in (
        ("none", "it does not name an operator"),
        ("none:none", "cannot be loaded"),
        ("json:loads", "is not an operator"),
        (f"{tmp_path / 'none.py'}:x", "cannot be loaded"),
        (f"{tmp_path / 'raises.py'}:x", "cannot be loaded: ZeroDivisionError"),
        (f"{tmp_path / 'leaves.py'}:x", "cannot be loaded: SystemExit"),
        (f"{tmp_path / 'makes.py'}:fails", "calling it failed: KeyError"),
        (f"{tmp_path / 'makes.py'}:needs", "missing 1 required"),
        (f"{tmp_path / 'makes.py'}:misses", "needs no_such_module"),
    ):
        with pytest.raises(MissingOperatorError, match=said):
            load_operators([name])


class Modulo:
    """An index of the numbers that divide a length."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def add(self, constants: list[Term]) -> int:
        self.numbers.append(int(constants[0].value) + int(constants[1].value))
        return len(self.numbers) - 1

    def remove(self, key: int) -> None:
        self.numbers[key] = 0

    def matches(self, argument: Term) -> object:
        size = len(argument.value)
        return np.array([k for k, n in enumerate(self.numbers) if n and size % n == 0], int)


def divides(text: Term, one: Term, other: Term) -> bool:
    return len(text.value) % (int(one.value) + int(other.value)) == 0


SHAPES = [
    "ASK { ?x <urn:p> ?t FILTER(CALL(?t)) }",
    "SELECT ?t { ?x <urn:p> ?t FILTER(!CALL(?t)) }",
    "SELECT ?t { ?x <urn:p> ?t . ?y <urn:q> ?t FILTER(CALL(?t)) }",
    "SELECT ?x { ?x <urn:p> ?t FILTER(CALL(?x) && CALL(?t)) }",
    "SELECT ?p { ?x ?p ?t FILTER(CALL(?p)) }",
    "SELECT ?t { ?x <urn:p> ?t FILTER(CALL(?t) || CALL(?x)) }",
    "SELECT ?t { { ?x <urn:p> ?t FILTER(CALL(?t)) } UNION { ?t <urn:q> ?x FILTER(CALL(?x)) } }",
    "SELECT ?x ?t { ?x <urn:p> ?s OPTIONAL { ?x <urn:q> ?t FILTER(CALL(?t)) } FILTER(CALL(?s)) }",
    "SELECT ?t { ?x <urn:p> ?t MINUS { ?y <urn:q> ?t FILTER(CALL(?t)) } }",
    "SELECT ?t { ?x <urn:p> ?t FILTER EXISTS { ?y <urn:q> ?u FILTER(CALL(?u)) } }",
    "SELECT ?t { ?x <urn:p>|<urn:q> ?t FILTER(CALL(?t)) }",
    "SELECT ?t { ?x <urn:p>/<urn:q>? ?t FILTER(CALL(?t)) }",
    "SELECT ?t { ?x <urn:p>* ?t . ?x <urn:q> ?z FILTER(CALL(?t)) }",
    "SELECT (COUNT(?t) AS ?n) { ?x <urn:p> ?t FILTER(CALL(?t)) }",
    "SELECT ?x (COUNT(?t) AS ?n) { ?x <urn:p> ?t } GROUP BY ?x HAVING(CALL(?x))",
    "SELECT ?t { ?x <urn:q> ?z { SELECT ?x ?t { ?x <urn:p> ?t FILTER(CALL(?t)) } } }",
    "SELECT ?t { ?x <urn:p> ?t BIND(CALL(?t) AS ?b) FILTER(?b) }",
    "SELECT ?t { ?x <urn:p> ?t FILTER(CALL(?t)) } ORDER BY ?t LIMIT 1",
    "SELECT ?t { VALUES ?t { 'ab' 'abcd' } ?x <urn:p> ?t FILTER(CALL(?t)) }",
    "SELECT ?k { ?x <urn:p> ?o . ?o <urn:known> ?k FILTER(CALL(?k)) }",
    "ASK { ?o <urn:known> ?k FILTER(CALL(?k)) }",
]


@pytest.mark.parametrize("seed", range(4))
def test_that_an_index_changes_no_answer(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    nodes = [NamedNode(f"urn:{'n' * size}") for size in range(1, 6)]
    known = [(rng.choice(nodes), NamedNode("urn:known"), Literal("k" * n)) for n in (2, 3, 5)]
    ontology = Ontology(known)
    plain = Engine(ontology, operators=[Operator("urn:op:d", divides, timeout=None)])
    indexed = Engine(ontology, operators=[Operator("urn:op:d", divides, index=Modulo)])
    for n in range(80):
        call = f"<urn:op:d>(\\1, {rng.randint(0, 2)}, {rng.randint(1, 2)})"
        text = re.sub(r"CALL\((\?\w)\)", call, rng.choice(SHAPES))
        for engine in (plain, indexed):
            engine.subscribe(f"s{n}", text)
    objects = [*nodes, *(Literal("abcdef"[:n]) for n in range(1, 6))]
    for round_ in range(25):
        told = {
            (rng.choice(nodes), rng.choice([P, Q, NamedNode("urn:known")]), rng.choice(objects))
            for _ in range(rng.randint(1, 5))
        }
        reports = [e.match(Publication.of("p", sorted(told, key=str))) for e in (plain, indexed)]
        one, other = (
            {
                m.subscription: sorted(str(sorted(row.items(), key=str)) for row in m.solutions)
                for m in report
            }
            for report in reports
        )
        assert one == other
        assert not reports[0].undecided
        assert not reports[1].undecided
        if round_ == 6:
            for engine in (plain, indexed):
                engine.update_ontology([(nodes[0], NamedNode("urn:known"), Literal("kkkk"))])
        if round_ == 18:
            indexed.save(tmp_path / "saved")
            saved = Operator("urn:op:d", divides, index=Modulo)
            indexed = Engine.open(tmp_path / "saved", operators=[saved])
        if round_ == 12:
            for n in range(0, 80, 3):
                for engine in (plain, indexed):
                    engine.unsubscribe(f"s{n}")


def test_the_cache_holds_hashes_of_long_texts() -> None:
    made: list[Term] = []
    engine = Engine(operators=[Operator("urn:op:long", lambda text: not made.append(text))])
    engine.subscribe("s", "ASK { ?x <urn:p> ?t FILTER(<urn:op:long>(?t)) }")
    tracemalloc.start()
    for letter in "aba":
        publication = Publication.of("p", [(X, P, Literal(letter * 1_000_000))])
        assert list(engine.match(publication).subscriptions)
        del publication
    firsts = [text.value[0] for text in made]
    made.clear()
    assert firsts == ["a", "b"]
    assert tracemalloc.get_traced_memory()[0] < 100_000
    tracemalloc.stop()


def test_that_an_index_says_truths_and_no_values() -> None:
    class Least:
        """Index of the numbers that are at most the argument."""

        def __init__(self) -> None:
            self.numbers: list[float] = []

        def add(self, constants: Sequence[Term]) -> int:
            self.numbers.append(float(constants[0].value))
            return len(self.numbers) - 1

        def remove(self, key: int) -> None:
            self.numbers[key] = float("inf")

        def matches(self, argument: Term) -> NDArray[np.intp]:
            return np.flatnonzero(np.array(self.numbers) <= float(argument.value))

    def difference(a: Term, b: Term) -> float:
        return max(0.0, float(a.value) - float(b.value))

    engine = Engine(operators=[Operator("urn:op:above", difference, index=Least)])
    call = "<urn:op:above>(?y, 5)"
    for id, text in {
        "truth": f"FILTER({call})",
        "false": f"FILTER({call} = 0)",
        "value": f"FILTER({call} > 3)",
        "both": f"FILTER({call}) FILTER({call} > 3)",
        "bound": f"FILTER({call}) BIND({call} AS ?s)",
    }.items():
        engine.subscribe(id, f"SELECT * {{ ?x <urn:p> ?y {text} }}")
    for number, expected in ((4, {"false"}), (7, {"truth", "bound"}), (9.5, ALL_BUT_FALSE)):
        report = engine.match(Publication.of("p", [(X, P, Literal(number))]))
        assert set(report.subscriptions) == set(expected)
        bound = (match.solutions for match in report if match.subscription == "bound")
        values = [row["s"] for rows in bound for row in rows]
        assert values == [Literal(number - 5.0)][: number > 5]


ALL_BUT_FALSE = {"truth", "value", "both", "bound"}


@pytest.mark.parametrize(
    "left",
    [
        "BIND(1 AS ?k) ?x <urn:p> [] ; <urn:p> ?t",
        "OPTIONAL { ?x <urn:q> [] } ?x <urn:p>/<urn:q> ?t",
    ],
)
def test_unnamed_variables_are_distinct(left: str) -> None:
    engine = Engine(operators=ALL)
    engine.subscribe("s", f"SELECT * {{ {left} FILTER(<urn:op:length>(?t) != 77) }}")
    told = [(X, P, Y), (X, Q, Y), (Y, Q, Literal("abc")), (X, P, Literal("abc"))]
    assert list(engine.match(Publication.of("p", told)).subscriptions) == ["s"]


@pytest.mark.parametrize(
    ("test", "reason"),
    [("<urn:op:none>(?t)", "not supported"), ("<urn:op:length>(?t) > RAND()", "RAND")],
)
def test_unanswerable_calls_are_refused(test: str, reason: str) -> None:
    engine = Engine(operators=ALL)
    with pytest.raises(SubscriptionError, match=reason):
        engine.subscribe("s", f"ASK {{ ?x <urn:p> ?t FILTER({test}) }}")
    assert len(engine) == 0

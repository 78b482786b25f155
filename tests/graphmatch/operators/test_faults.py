"""Operators that hang, raise, fork or return nonsense delay no other matches."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Event

import pytest
from pyoxigraph import Literal, NamedNode

from graphmatch.engine import Engine
from graphmatch.operators import Operator
from graphmatch.operators.runner import ABANDONED
from graphmatch.report import MatchReport
from semantic.errors import Problem
from semantic.limits import Limits
from semantic.publication import Publication
from semantic.terms import Term
from tests.waiting import wait

P = NamedNode("urn:p")


def hangs(_: Term) -> bool:
    Event().wait()
    return True


async def waits(_: Term) -> bool:
    from asyncio import sleep

    await sleep(600)
    return True


async def blocks(_: Term) -> bool:
    Event().wait(3)
    return True


def throws(_: Term) -> bool:
    raise ValueError("boo")


def leaves(_: Term) -> bool:
    raise SystemExit(3)


def nonsense(_: Term) -> object:
    return {"a": 1}


def nothing(_: Term) -> None:
    return None


def one_text(several: list[tuple[Term]]) -> str:
    return "x" * len(several)


def too_few(_: list[tuple[Term]]) -> list[bool]:
    return []


def says(text: Term) -> bool:
    return text.value == "a"


def engine_with(bad: Operator, seconds: float = 60) -> tuple[Engine, list[Problem]]:
    problems: list[Problem] = []
    good = Operator("urn:op:says", says)
    limits = Limits(operator_seconds=seconds)
    engine = Engine(operators=[bad, good], on_problem=problems.append, limits=limits)
    call = "FILTER(<urn:op:bad>(?t))"
    engine.subscribe("bad", f"SELECT * {{ ?x <urn:p> ?t . {call} }}")
    engine.subscribe("not bad", f"ASK {{ ?x <urn:p> ?t . {call} FILTER(<urn:op:says>(?t)) }}")
    engine.subscribe("good", "ASK { ?x <urn:p> ?t FILTER(<urn:op:says>(?t)) }")
    engine.subscribe("plain", "ASK { ?x <urn:p> ?t }")
    return engine, problems


def told(text: str, number: int = 0) -> Publication:
    return Publication.of("p", [(NamedNode(f"urn:x{number}"), P, Literal(text))])


def check(report: MatchReport, said: str) -> None:
    assert list(report.subscriptions) == ["good", "plain"]
    assert {one.subscription for one in report.undecided} == {"bad", "not bad"}
    assert all(said in one.calls[0].why for one in report.undecided)
    assert not any(one.matched for one in report.undecided)


@pytest.mark.parametrize(
    ("function", "said", "options"),
    [
        (hangs, "no answer within", {"timeout": 0.2}),
        (waits, "no answer within", {"timeout": 0.2}),
        (blocks, "no answer within", {"timeout": 0.2}),
        (throws, "ValueError: boo", {}),
        (throws, "ValueError: boo", {"timeout": None}),
        (leaves, "SystemExit", {}),
        (nonsense, "returned a dict", {}),
        (nothing, "returned a NoneType", {}),
        (too_few, "instead of 1 results", {"batch": 5}),
        (one_text, "returned a str for a batch", {"batch": 5}),
    ],
)
def test_that_a_fault_leaves_only_its_own_open(
    function: Callable[..., object], said: str, options: dict[str, object]
) -> None:
    engine, _ = engine_with(Operator("urn:op:bad", function, **options))
    check(engine.match(told("a")), said)
    # Only the faulty subscription is undecided.
    other = engine.match(told("b"))
    assert [one.subscription for one in other.undecided] == ["bad"]


def test_that_a_fork_ends_at_once() -> None:
    ours = os.getpid()

    def forks(_: Term) -> bool:
        os.fork()
        assert os.getpid() == ours or True
        return True

    engine, _ = engine_with(Operator("urn:op:bad", forks))
    report = engine.match(told("a"))
    assert {"good", "plain"} <= set(report.subscriptions)
    assert os.getpid() == ours
    assert os.waitpid(-1, 0)[1] == 0  # The child process has ended.


def test_that_the_time_of_a_publication_holds() -> None:
    calls: list[Term] = []

    def slow(term: Term) -> bool:
        calls.append(term)
        Event().wait(0.05)
        return True

    engine, _ = engine_with(Operator("urn:op:bad", slow, pure=False), seconds=0.3)
    triples = [(NamedNode("urn:x"), P, Literal(text)) for text in "abcdefghijklmnopqrst"]
    report = engine.match(Publication.of("p", triples))
    assert len(calls) < len(triples)
    assert {"good", "plain"} <= set(report.subscriptions)
    assert "bad" in {one.subscription for one in report.undecided}
    assert any("operator_seconds" in call.why for one in report.undecided for call in one.calls)


def test_that_all_rounds_of_a_publication_share_its_time() -> None:
    """The core matches five times, because each call needs the result of the previous one."""
    engine = Engine(
        operators=[Operator("urn:op:next", lambda text: Literal(text.value + "."))],
        limits=Limits(publication_seconds=1),
        on_problem=lambda _: None,
    )
    nested = "<urn:op:next>(" * 4 + "?t" + ")" * 4
    engine.subscribe("nested", f"SELECT ?v {{ ?x <urn:p> ?t BIND({nested} AS ?v) }}")
    pairs = " ".join(f"?a{n} <urn:q> ?b{n} ." for n in range(8))
    for number in range(20):
        engine.subscribe(f"slow{number}", f"SELECT (COUNT(*) AS ?n{number}) {{ {pairs} }}")
    many = [(NamedNode("urn:x"), NamedNode("urn:q"), Literal(str(n))) for n in range(50)]
    report = engine.match(Publication.of("p", [*many, (NamedNode("urn:x"), P, Literal("a"))]))
    (match,) = report.matches
    assert match.solutions == ({"v": Literal("a....")},)
    assert len(report.problems) == 20


def test_that_an_operator_that_never_returns_is_given_up() -> None:
    engine, problems = engine_with(Operator("urn:op:bad", hangs, timeout=0.05))
    for _ in range(ABANDONED):
        engine.match(told("a"))
    check(engine.match(told("a")), "is suspended")
    sources = [problem.where.source for problem in problems]
    assert (sources.count("p"), sources.count("urn:op:bad")) == (len(sources) - 1, 1)


class Broken:
    """An index that raises an error."""

    def add(self, constants: object) -> int:
        return 0

    def remove(self, key: int) -> None:
        pass

    def matches(self, argument: Term) -> object:
        raise RuntimeError("broken")


def test_that_an_index_that_fails_leaves_only_its_own_open() -> None:
    bad = Operator("urn:op:bad", lambda text, other: True, index=Broken)
    good = Operator("urn:op:says", says)
    problems: list[Problem] = []
    engine = Engine(operators=[bad, good], on_problem=problems.append)
    engine.subscribe("bad", "ASK { ?x <urn:p> ?t FILTER(<urn:op:bad>(?t, 1)) }")
    engine.subscribe("good", "ASK { ?x <urn:p> ?t FILTER(<urn:op:says>(?t)) }")
    engine.subscribe("plain", "ASK { ?x <urn:p> ?t }")
    report = engine.match(told("a"))
    assert list(report.subscriptions) == ["good", "plain"]
    [undecided] = report.undecided
    assert undecided.subscription == "bad"
    assert "broken" in undecided.calls[0].why
    assert tuple(problems) == report.problems


def tagged(text: Term) -> Literal:
    return Literal(text.value, language="en")


def equal(several: list[tuple[Term, Term]]) -> list[bool]:
    return [one == other for one, other in several]


def test_that_results_are_terms_and_batches_are_lists() -> None:
    tag = Operator("urn:op:tagged", tagged)
    same = Operator("urn:op:equal", equal, batch=10)
    engine = Engine(operators=[tag, same])
    engine.subscribe("tag", "SELECT ?v { ?x <urn:p> ?t BIND(<urn:op:tagged>(?t) AS ?v) }")
    for letter in "ab":
        engine.subscribe(letter, f'ASK {{ ?x <urn:p> ?t FILTER(<urn:op:equal>(?t, "{letter}")) }}')
    report = engine.match(told("b\n"))
    found = {match.subscription: match.solutions for match in report}
    assert found == {"tag": ({"v": Literal("b\n", language="en")},)}
    assert list(engine.match(told("b")).subscriptions) == ["tag", "b"]


def test_that_calls_that_return_late_do_not_count_for_ever() -> None:
    def slow(text: Term) -> bool:
        Event().wait(0.05)
        return True

    engine, _ = engine_with(Operator("urn:op:bad", slow, pure=False), seconds=0.12)
    many = [(NamedNode("urn:x"), P, Literal(text)) for text in "abcdefgh"]
    for _ in range(ABANDONED + 1):
        assert engine.match(Publication.of("p", many)).undecided
    wait(lambda: "bad" in engine.match(told("a")).subscriptions)


def test_that_calls_that_run_together_take_their_time_once() -> None:
    async def waits_a_little(_: Term) -> bool:
        from asyncio import sleep

        await sleep(0.1)
        return True

    engine, _ = engine_with(Operator("urn:op:bad", waits_a_little), seconds=2.0)
    # It needs only one solution, so its calls run singly.
    engine.unsubscribe("not bad")
    many = [(NamedNode("urn:x"), P, Literal(str(n))) for n in range(40)]
    assert not engine.match(Publication.of("p", many)).undecided


async def cancelled(_: Term) -> bool:
    from asyncio import CancelledError

    raise CancelledError


async def leaves_a_loop(_: Term) -> bool:
    raise SystemExit(3)


async def times_out(_: Term) -> bool:
    raise TimeoutError("no route")


def bytes_of(_: Term) -> object:
    return b"no term"


@pytest.mark.parametrize(
    ("function", "said", "options"),
    [
        (cancelled, "CancelledError", {}),
        (leaves_a_loop, "SystemExit: 3", {}),
        (times_out, "TimeoutError: no route", {}),
        (bytes_of, "returned a bytes", {"timeout": None}),
    ],
)
def test_the_reason_why_a_call_ended_is_reported(
    function: Callable[..., object], said: str, options: dict[str, object]
) -> None:
    engine, _ = engine_with(Operator("urn:op:bad", function, **options))
    for _ in range(2):
        check(engine.match(told("a")), said)


def test_that_ctrl_c_ends_a_call_on_the_thread_that_matches() -> None:
    def interrupted(_: Term) -> bool:
        raise KeyboardInterrupt

    engine, _ = engine_with(Operator("urn:op:bad", interrupted, timeout=None))
    with pytest.raises(KeyboardInterrupt):
        engine.match(told("a"))


class Careless:
    """An index that raises errors for some constants, and otherwise returns `gives`."""

    gives: object = None

    def __init__(self) -> None:
        self.numbers: dict[int, str] = {}

    def add(self, constants: list[Term]) -> int:
        key = len(self.numbers) if constants[0].value != "same" else 0
        self.numbers[key] = constants[0].value
        return key

    def remove(self, key: int) -> None:
        raise RuntimeError("no way back")

    def matches(self, argument: Term) -> object:
        return list(self.numbers) if self.gives is None else self.gives


def careless(problems: list[Problem], gives: object = None) -> Engine:
    index = type("Index", (Careless,), {"gives": gives})
    operator = Operator("urn:op:bad", lambda *_: True, index=index)
    return Engine(operators=[operator], on_problem=problems.append)


def calls(constant: str) -> str:
    return f"ASK {{ ?x <urn:p> ?t FILTER(<urn:op:bad>(?t{constant})) }}"


def test_that_an_index_that_raises_loses_no_other_constants() -> None:
    problems: list[Problem] = []
    engine = careless(problems)
    rows = [("none", calls("")), ("a", calls(", 'a'")), ("b", calls(", 'same'"))]
    assert not engine.subscribe_many(rows)
    assert ["IndexError" in p.what or "in use" in p.what for p in problems] == [True, True]
    assert list(engine.match(told("x")).subscriptions) == ["a"]
    engine.unsubscribe("a")
    assert "no way back" in problems[-1].what
    assert not list(engine.match(told("x")).subscriptions)


@pytest.mark.parametrize("gives", [(0,), [True], [0.0], {0}, 0])
def test_that_an_index_gives_numbers(gives: object) -> None:
    problems: list[Problem] = []
    engine = careless(problems, gives)
    engine.subscribe("a", calls(", 'a'"))
    report = engine.match(told("x"))
    if gives == (0,):
        assert list(report.subscriptions) == ["a"]
    else:
        assert "an array of numbers" in report.undecided[0].calls[0].why

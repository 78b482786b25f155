"""Taking in many subscriptions at once comes to the same as taking them in one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine
from graphmatch import intake as intake_module
from graphmatch.bulk import Constants, Sheet
from graphmatch.index.records import Flag
from graphmatch.matcher import DuplicateError
from semantic import Ontology, Publication, SubscriptionParser
from semantic.attributes.events import event
from semantic.attributes.subscription import AttributeParser
from semantic.errors import InputError, Problem, SubscriptionError
from semantic.sparql.columns import Group
from semantic.sparql.query import Query
from semantic.terms import Term
from tests.oracle import to_sparql
from tests.strategies import FULL, Scenario, pairs_of, scenarios

PARSER = SubscriptionParser()


@pytest.fixture(autouse=True)
def _never_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_module, "_FEW", 0)


def ontology_of(scenario: Scenario) -> Ontology:
    pairs = pairs_of(scenario.synonyms)
    return Ontology(scenario.ontology, pairs, on_problem=lambda _: None)


def variants(scenario: Scenario, random: Random) -> Iterator[tuple[str, Query]]:
    """Yield the scenario's queries, each also with its constants in other places."""
    for number, query in enumerate(scenario.queries):
        read = PARSER.parse(str(number), to_sparql(query)).query
        yield str(number), read
        for other in range(3):
            yield f"{number}.{other}", Query(read.skeleton, exchanged(read.constants, random))


def exchanged(constants: Sequence[Term], random: Random) -> tuple[Term, ...]:
    """Return constants in another order, IRIs in the places of IRIs."""
    found = list(constants)
    for kind in (NamedNode, Literal):
        places = [n for n, constant in enumerate(constants) if isinstance(constant, kind)]
        for place, other in zip(places, random.sample(places, len(places)), strict=True):
            found[place] = constants[other]
    return tuple(found)


def state(engine: Engine) -> tuple[object, ...]:
    """Return what there is of subscriptions, but for numbers."""
    standing = engine._standing
    numbers = standing.store.numbers()
    return (
        [one.id for one in engine.subscriptions],
        len(standing.index),
        frozenset(standing.index.terms.ids),
        standing.mentions._objects_of,
        standing.mentions._objects,
        standing.mentions.anything,
        [len(standing.store.flagged(flag)) for flag in Flag],
        sorted(str(standing.store.query(n, filed=True).constants) for n in numbers.tolist()),
    )


@settings(max_examples=40)
@given(scenarios(FULL, publications=2), st.integers(0, 1000), st.integers(1, 9))
def test_at_once_is_one_by_one(scenario: Scenario, seed: int, chunk: int) -> None:
    random = Random(seed)
    rows = list(variants(scenario, random))
    ontology = ontology_of(scenario)
    alone, together = Engine(ontology), Engine(ontology)
    for id, query in rows:
        alone.subscribe(id, query.text())
    given_rows = [(id, query if random.random() < 0.5 else query.text()) for id, query in rows]
    for begin in range(0, len(rows), chunk):
        assert together.subscribe_many(given_rows[begin : begin + chunk]) == ()
    assert state(together) == state(alone)
    for publication in scenario.publications:
        mine, theirs = together.match(publication), alone.match(publication)
        assert list(mine.subscriptions) == list(theirs.subscriptions)
        for one, other in zip(mine, theirs, strict=True):
            assert sorted(map(repr, one.solutions)) == sorted(map(repr, other.solutions))
    empty = state(Engine(ontology))
    for id, _ in rows:
        together.unsubscribe(id)
    assert state(together) == empty


def numbered(count: int) -> list[tuple[str, str]]:
    return [(f"s{n}", f"ASK {{ ?x <urn:p> <urn:o:{n}> }}") for n in range(count)]


def published(number: int) -> Publication:
    triple = (NamedNode("urn:x"), NamedNode("urn:p"), NamedNode(f"urn:o:{number}"))
    return Publication.of("p", [triple])


def test_that_few_of_a_skeleton_are_taken_in_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once: list[int] = []

    class Counted(Sheet):
        def __init__(self, group: Group, constants: Constants) -> None:
            super().__init__(group, constants)
            at_once.append(len(group.ids))

    monkeypatch.setattr(intake_module, "_FEW", 4)
    monkeypatch.setattr(intake_module, "Sheet", Counted)
    rows = numbered(5)
    rows[1:1] = [(f"few{n}", f"ASK {{ ?x <urn:p> ?v FILTER(?v > {n}) }}") for n in range(3)]
    rows[3:3] = [("s0", "ASK { ?x ?y ?z }"), ("one", "SELECT * { ?x <urn:p> <urn:o:1> }")]
    alone, together = Engine(), Engine()
    (refused,) = together.subscribe_many(rows)
    assert isinstance(refused, DuplicateError)
    for id, text in rows:
        if id not in [one.id for one in alone.subscriptions]:
            alone.subscribe(id, text)
    assert at_once == [5]
    assert state(together) == state(alone)
    assert list(together.match(published(1)).subscriptions) == ["one", "s1"]


def test_what_is_refused_is_said_in_order_and_the_rest_goes_on() -> None:
    engine = Engine()
    engine.subscribe("s3", "ASK { ?x <urn:p> <urn:other> }")
    rows = numbered(6)
    rows[1] = ("broken", "ASK {")
    rows[4] = ("s2", "ASK { ?x <urn:p> <urn:again> }")
    refused = engine.subscribe_many(rows)
    assert [type(error) for error in refused] == [
        SubscriptionError,
        DuplicateError,
        DuplicateError,
    ]
    assert [error.problem.where.source for error in refused] == ["broken", "s3", "s2"]
    assert [one.id for one in engine.subscriptions] == ["s3", "s0", "s2", "s5"]
    published = Publication.of(
        "p", [(NamedNode("urn:x"), NamedNode("urn:p"), NamedNode("urn:o:2"))]
    )
    assert list(engine.match(published).subscriptions) == ["s2"]


def test_a_unit_that_is_unknown_is_refused_like_one_by_one() -> None:
    engine = Engine()
    text = 'ASK {{ ?x <urn:size> ?s FILTER(?s > "{}"^^<https://w3id.org/cdt/ucum>) }}'
    refused = engine.subscribe_many([("good", text.format("4 m")), ("bad", text.format("4 nix"))])
    assert [error.problem.where.source for error in refused] == ["bad"]
    with pytest.raises(SubscriptionError) as raised:
        engine.subscribe("bad", text.format("4 nix"))
    assert raised.value.problem == refused[0].problem
    assert "good" in engine


def test_comments_are_kept() -> None:
    engine = Engine()
    parsed = [PARSER.parse(id, text, f"about {id}") for id, text in numbered(5)]
    assert engine.subscribe_many(parsed) == ()
    assert [one.comment for one in engine.subscriptions] == [f"about s{n}" for n in range(5)]


def test_patterns_that_constants_make_equal_are_one() -> None:
    text = "SELECT * {{ ?x <urn:{}> ?y . ?x <urn:{}> ?y OPTIONAL {{ ?y <urn:q> ?z }} }}".format
    alone, together = Engine(), Engine()
    rows = [(a + b, text(a, b)) for a in "pqr" for b in "pqr"]
    for row in rows:
        alone.subscribe(*row)
    assert together.subscribe_many(rows) == ()
    assert state(together) == state(alone)


def test_equal_ones_share_a_row() -> None:
    engine = Engine()
    rows = [(str(n), f"ASK {{ ?v{n} <urn:p> <urn:o:{n % 3}> }}") for n in range(30)]
    engine.subscribe_many(rows)
    assert len(engine._standing.index) == 3
    published = Publication.of(
        "p", [(NamedNode("urn:x"), NamedNode("urn:p"), NamedNode("urn:o:1"))]
    )
    report = engine.match(published)
    assert (report.counters.joins, report.counters.matched) == (1, 10)


def test_lines_and_tables_are_taken_in_like_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = [(f"s{n}", {"price": {"<=": n % 7, ">": 1}, "brand": f"b{n % 3}"}) for n in range(40)]
    lines = tmp_path / "subscriptions.jsonl"
    written = [json.dumps({"id": id, "where": where}) for id, where in (*rows, ("bad", {}))]
    lines.write_text("\n".join(written))
    attributes, problems = AttributeParser(PARSER), list[Problem]()
    alone, by_lines, by_table = Engine(), Engine(on_problem=problems.append), Engine()
    for id, where in rows:
        alone.subscribe(id, attributes.query(id, where).text())
    assert by_lines.subscribe_lines(lines) == ()
    assert [problem.where.line for problem in problems] == [41]
    columns = {
        "id": [id for id, _ in rows],
        "price <=": [n % 7 for n in range(40)],
        "price >": [1] * 40,
        "brand": [f"b{n % 3}" for n in range(40)],
    }
    assert by_table.subscribe_table(pyarrow.table(columns)) == ()
    assert by_table.subscribe_table(pyarrow.table(columns))[39].problem.where.source == "s39"
    assert state(by_lines)[0] == state(by_table)[0] == state(alone)[0]
    for price in range(9):
        published = event("e", {"price": price, "brand": "b1"})
        expected = list(alone.match(published).subscriptions)
        assert list(by_lines.match(published).subscriptions) == expected
        assert list(by_table.match(published).subscriptions) == expected


def test_a_table_of_texts_is_taken_in() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    ids, texts = zip(*numbered(5), ("broken", "ASK {"), strict=True)
    engine = Engine()
    (refused,) = engine.subscribe_table(pyarrow.table({"id": ids, "query": texts}))
    assert refused.problem.where.source == "broken"
    assert len(engine) == 5
    with pytest.raises(InputError, match="no columns called 'name'"):
        engine.subscribe_table(pyarrow.table({"id": ids, "query": texts}), id="name")

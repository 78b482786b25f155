"""Who shares a row and a shape, against a comparison of all subscriptions with each other."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch import Engine
from graphmatch.index.plans import Compiled, compiled
from semantic import Ontology, Publication
from tests.oracle import to_sparql
from tests.strategies import FULL, Scenario, pairs_of, scenarios

A, P, B = (NamedNode(f"urn:{name}") for name in "apb")
FEW = settings(max_examples=settings().max_examples // 8)


def entries_of(engine: Engine, id: str) -> set[tuple[Compiled, bool]]:
    """Return what is filed of a subscription, without the names of its variables."""
    filed = engine.filing(id)
    asked = [compiled(entry) for entry in filed.entries]
    return {(Compiled(c.program, (), c.constants), filed.any_will_do) for c in asked}


@FEW
@given(scenarios(FULL, publications=1, queries=6), st.booleans())
def test_sharing_is_what_comparing_all_finds(scenario: Scenario, many: bool) -> None:
    texts = [(str(n), to_sparql(query)) for n, query in enumerate(scenario.queries)]
    texts += [(f"again {id}", text.replace("?v", "?w")) for id, text in texts]
    pairs = pairs_of(scenario.synonyms)
    engine = Engine(Ontology(scenario.ontology, pairs, on_problem=lambda _: None))
    if many:
        assert not engine.subscribe_many(texts)
    for id, text in texts if not many else ():
        engine.subscribe(id, text)
    entries = {id: entries_of(engine, id) for id, _ in texts}
    shapes = {id: {c.program for c, _ in own} for id, own in entries.items()}
    for id, _ in texts:
        placements = engine.explain(id, scenario.publications[0]).placements
        assert len(placements) == len(entries[id])
        for placement in placements:
            assert placement.subscriptions == len(texts)
            asked = compiled(placement.entry)
            own = (Compiled(asked.program, (), asked.constants), engine.filing(id).any_will_do)
            assert placement.same == sum(own in other for other in entries.values())
            assert placement.alike == sum(asked.program in other for other in shapes.values())
            assert placement.variables == len(placement.entry.variables)


def lines(engine: Engine, id: str) -> list[str]:
    text = str(engine.explain(id, Publication.of("urn:p", [])))
    return [line.strip() for line in text.splitlines() if "indexed" not in line]


def test_lines_for_people() -> None:
    engine = Engine()
    publication = Publication.of("urn:p", [(A, P, B)])
    engine.subscribe("one", "SELECT * { ?x <urn:p> <urn:b> ; <urn:q> ?t FILTER(?t > 5) }")
    shape = "shape: 2 patterns, 1 filter, 2 variables: that of"
    assert lines(engine, "one")[2:5] == [
        "gate: ?x <urn:p> <urn:b>: guessed by its kind at 0.1 %; 1 row is filed there",
        "rather than ?x <urn:q> ?t: no gate, guessed by its kind at 30 %",
        f"{shape} no other subscription",
    ]
    engine.subscribe("two", "SELECT * { ?y <urn:p> <urn:c> ; <urn:q> ?u FILTER(?u > 7) }")
    engine.subscribe("same", "SELECT * { ?y <urn:p> <urn:b> ; <urn:q> ?u FILTER(?u > 5) }")
    for _ in range(3):
        engine.match(publication)
    text = lines(engine, "one")  # which was explained before: four publications so far
    assert text[2].endswith("met by 3 of 4 publications, reckoned at 5.65 %; 1 row is filed there")
    assert text[4] == f"{shape} 3 of 3 subscriptions, 2 with these constants"
    assert f"{shape} 3 of 3 subscriptions, no other with these constants" in lines(engine, "two")
    for _ in range(50):
        engine.match(publication)
    assert lines(engine, "one")[4].startswith("which was so when it was filed; by now ")


def test_a_test_of_text_is_a_gate() -> None:
    engine = Engine()
    engine.subscribe("s", 'ASK { ?x <urn:p> ?t FILTER(CONTAINS(?t, "sea")) }')
    assert lines(engine, "s")[2:4] == [
        'gate: FILTER(CONTAINS(?t, "sea")): guessed by its kind at 0.1 %; 1 row is filed there',
        "rather than ?x <urn:p> ?t: no gate, guessed by its kind at 30 %",
    ]


def test_that_each_branch_has_a_gate() -> None:
    engine = Engine()
    engine.subscribe(
        "s", "ASK { { ?x <urn:p> ?t } UNION { ?x <urn:q> 5 } UNION { ?z <urn:p> ?s } }"
    )
    gates = [line for line in lines(engine, "s") if line.startswith("gate")]
    assert [gate.partition(": ")[2].partition(": ")[0] for gate in gates] == [
        "?x <urn:p> ?t",
        "?x <urn:q> 5",
    ]


def test_that_what_is_not_indexed_has_no_gate() -> None:
    sub = NamedNode("http://www.w3.org/2000/01/rdf-schema#subClassOf")
    engine = Engine(Ontology([(A, sub, B)]))
    engine.subscribe("s", "SELECT * { ?x rdfs:subClassOf+ <urn:b> }")
    assert engine.filing("s").unindexed
    assert engine.explain("s", Publication.of("urn:p", [])).placements == ()


def test_that_a_row_of_a_table_is_told() -> None:
    engine = Engine()
    rows = [(str(n), f"ASK {{ ?x a <urn:c> ; <urn:q> ?t FILTER(?t > {n}) }}") for n in range(300)]
    engine.subscribe_many([*rows, ("again", rows[-1][1])])
    assert "128 rows are filed there, and 172 in its table" in lines(engine, "0")[2]
    tabled = [line for id, _ in rows for line in lines(engine, id) if "this one among" in line]
    assert len(tabled) == 172
    (shape,) = (line for line in lines(engine, "again") if line.startswith("shape"))
    assert shape.endswith("that of 301 of 301 subscriptions, 2 with these constants")

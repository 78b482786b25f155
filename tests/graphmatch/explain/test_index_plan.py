"""The text form of a subscription's index plan."""

from __future__ import annotations

from pyoxigraph import NamedNode

from graphmatch import Engine
from semantic import Publication

A, P, B = (NamedNode(f"urn:{name}") for name in "apb")


def lines(engine: Engine, id: str) -> list[str]:
    found = engine.explain(id, Publication.of("urn:p", [])).internals
    return [line.strip() for line in found if "indexed" not in line]


def test_rows_that_share_a_template_and_an_access_pattern() -> None:
    engine = Engine()
    engine.subscribe("one", "SELECT * { ?x <urn:p> <urn:b> ; <urn:q> ?t FILTER(?t > 5) }")
    (alone,) = engine.explain("one", Publication.of("urn:p", [(A, P, B)])).plan.rows
    assert (alone.access, alone.second) == ([None, "<urn:p>", "<urn:b>"], [None, "<urn:q>", None])
    assert (alone.postings, alone.alike) == (1, 1)
    engine.subscribe("two", "SELECT * { ?x <urn:p> <urn:b> ; <urn:q> ?t FILTER(?t > 6) }")
    engine.subscribe("three", "SELECT * { ?x <urn:p> <urn:c> ; <urn:q> ?t FILTER(?t > 6) }")
    (shared,) = engine.explain("one", Publication.of("urn:p", [(A, P, B)])).plan.rows
    assert (shared.postings, shared.alike) == (2, 3)
    found = lines(engine, "one")
    assert any(line.startswith("access pattern: * <urn:p> <urn:b>:") for line in found)
    assert "query template: shared with 2 other rows" in found


def test_one_row_for_each_branch() -> None:
    engine = Engine()
    engine.subscribe("s", "SELECT * { { ?x <urn:p> ?y } UNION { ?x <urn:q> ?y } }")
    rows = engine.explain("s", Publication.of("urn:p", [(A, P, B)])).plan.rows
    assert [row.access[1] for row in rows] == ["<urn:p>", "<urn:q>"]
    engine.subscribe("path", "ASK { ?x !<urn:p> ?y }")
    assert engine.match(Publication.of("urn:q", [(A, NamedNode("urn:r"), B)])).matches

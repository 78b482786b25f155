"""The text form of a subscription's index plan."""

from __future__ import annotations

from pyoxigraph import Literal, NamedNode

from graphmatch import Engine
from semantic import Publication
from semantic.units.quantities import QUDT, UNIT

A, P, B = (NamedNode(f"urn:{name}") for name in "apb")


def plan(engine: Engine, id: str) -> tuple[str, ...]:
    found = engine.index_plan(id)
    return found.describe(engine.ontology.prefixes)


def test_one_row_for_each_branch() -> None:
    engine = Engine()
    engine.subscribe("s", "SELECT * { { ?x <urn:p> ?y } UNION { ?x <urn:q> ?y } }")
    assert [line for line in plan(engine, "s") if line.startswith("indexed")] == [
        "indexed: ?x <urn:p> ?y",
        "indexed: ?x <urn:q> ?y",
    ]
    engine.subscribe("path", "ASK { ?x !<urn:p> ?y }")
    assert engine.match(Publication.of("urn:q", [(A, NamedNode("urn:r"), B)])).matches


def test_properties_in_a_named_unit_are_shown_as_written() -> None:
    engine = Engine()
    kilos = "?q qudt:numericValue ?v ; qudt:unit unit:KiloGM FILTER(?v > 5)"
    engine.subscribe("s", f"SELECT ?v {{ {kilos} }}")
    engine.subscribe("similar", "ASK { ?x <urn:graphmatch:attribute:in-unit.x> ?y }")
    assert plan(engine, "s")[:3] == (
        "indexed: ?q qudt:numericValue ?v . ?q qudt:unit unit:KiloGM",
        "indexed: FILTER(?v > 5)",
        "numbers are converted to unit:KiloGM",
    )
    assert "in-unit.x" in plan(engine, "similar")[0]
    number, unit, gram = QUDT["numericValue"], QUDT["unit"], UNIT["GM"]
    stated = [
        (A, number, Literal(1900)),
        (A, unit, gram),
    ]
    text = str(engine.explain("s", Publication.of("urn:p", stated)))
    assert "FILTER(?v > 5) is not true: ?v is" in text
    assert 'because 1900 is "1.9"^^xsd:decimal in unit:KiloGM' in text
    assert "in-unit" not in text

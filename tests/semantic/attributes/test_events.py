"""Events from dictionaries, JSON Lines and Arrow tables."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from graphmatch import AttributeSubscription, Engine
from semantic import Ontology, Publication
from semantic.attributes.events import event, read_events
from semantic.attributes.names import name_of
from semantic.errors import InputError
from semantic.vocabulary import EQUIVALENT_CLASS, LABEL, SUBCLASS, TYPE, XSD, Namespace

EX = Namespace("http://example.org/")


def pairs(publication: Publication) -> list[tuple[str | None, str]]:
    return [(name_of(p), getattr(o, "value", "")) for _, p, o in publication.triples]


def test_nested_objects_are_paths_and_lists_are_values() -> None:
    found = event(
        "e", {"a": {"b": [1, 2], "c": {"d": "x"}}, "e.f": None, "g": [{"h": 1}, {"h": 2}]}
    )
    assert pairs(found) == [("a.b", "1"), ("a.b", "2"), ("a.c.d", "x"), ("g.h", "1"), ("g.h", "2")]


def test_an_attribute_may_be_called_value() -> None:
    assert pairs(event("e", {"price": {"value": 5}})) == [("price.value", "5")]
    assert pairs(event("e", {"price": {"value": 5, "currency": "$"}})) == [
        ("price.value", "5"),
        ("price.currency", "$"),
    ]


@pytest.mark.parametrize(
    ("value", "text", "datatype"),
    [
        (5, "5", "integer"),
        (5.5, "5.5", "decimal"),
        (1e300, "1e+300", "double"),
        (Decimal("3.50"), "3.50", "decimal"),
        (True, "true", "boolean"),
        ("2026-01-31", "2026-01-31", "date"),
        ("2026-01-31T12:00:00+01:00", "2026-01-31T12:00:00+01:00", "dateTime"),
        ("2026-02-31", "2026-02-31", "string"),
        (date(2026, 1, 31), "2026-01-31", "date"),
        (datetime(2026, 1, 31, tzinfo=UTC), "2026-01-31T00:00:00+00:00", "dateTime"),
        ("5", "5", "string"),
        ({"value": "5", "datatype": "xsd:integer"}, "5", "integer"),
        ({"value": 5, "datatype": "xsd:string"}, "5", "string"),
    ],
)
def test_values(value: object, text: str, datatype: str) -> None:
    ((_, _, found),) = event("e", {"a": value}).triples
    assert found == Literal(text, datatype=XSD[datatype])


def test_subjects() -> None:
    assert event("http://e/1", {"a": 1}).triples[0][0] == NamedNode("http://e/1")
    assert event("e 1", {"a": 1}).triples[0][0] == BlankNode("event")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "no attributes"),
        ({"a": float("nan")}, "attribute 'a': nan cannot be compared"),
        ({"a": 10**5000}, "attribute 'a': a number has more than 4,300 digits"),
        ({"a": Decimal("1e999999999")}, "a number has more than 4,300 digits"),
        ({"a": object}, "attribute 'a': <class 'object'> is not a valid value"),
        ({"a": {5: 1}}, "5 is not a valid attribute name"),
        ({"a": {"": 1}}, "'a.' is not a valid attribute name"),
    ],
)
def test_invalid_events_are_refused(attributes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        event("e", attributes)


def test_numbers_of_json_are_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 5, "b": 5.0, "c": 5e0, "d": -0}\r\n')
    (found,) = read_events(str(path))
    assert [str(o) for _, _, o in found.triples] == [
        f'"{text}"^^{XSD[datatype]}'
        for text, datatype in (
            ("5", "integer"),
            ("5.0", "decimal"),
            ("5e0", "double"),
            ("-0", "integer"),
        )
    ]
    assert (found.id, found.source.line) == (f"{path}:1", 1)


# --- With an ontology -------------------------------------------------------------------------


def test_an_event_keeps_what_it_says() -> None:
    """A string that names a class stays a string; no class is added to it."""
    engine = Engine(Ontology([(EX["Laptop"], SUBCLASS, EX["Computer"])]))
    wheres: dict[str, Any] = {
        "isa": {"target": {"isa": "Computer"}},
        "text": {"target": "Laptop"},
        "other": {"target": {"!=": "Laptop"}},
        "class": {"target": {"iri": EX["Laptop"].value}},
    }
    for name, where in wheres.items():
        engine.subscribe(AttributeSubscription.of(name, where))
    found = {m.subscription: m.solutions for m in engine.match(event("e", {"target": "Laptop"}))}
    assert found.keys() == {"isa", "text"}
    assert len(found["isa"]) == 1
    by_iri = event("e", {"target": {"iri": EX["Laptop"].value}})
    assert {m.subscription for m in engine.match(by_iri)} == {"isa", "other", "class"}


def test_new_subclasses_match_after_an_update() -> None:
    engine = Engine(Ontology([(EX["Laptop"], SUBCLASS, EX["Computer"])]))
    engine.subscribe(AttributeSubscription.of("s", {"target": {"isa": "Computer"}}))
    tablet = event("e", {"target": "Tablet"})
    assert not engine.match(tablet).matches
    engine.update_ontology(added=[(EX["Tablet"], SUBCLASS, EX["Computer"])])
    assert engine.match(tablet).matches


@pytest.mark.parametrize("entailment", ["rdfs", "none"])
def test_other_names_of_classes(entailment: str) -> None:
    names = [(EX["Laptop"], EQUIVALENT_CLASS, EX["Notebook"])]
    ontology = Ontology([(EX["Laptop"], SUBCLASS, EX["Computer"]), *names])
    engine = Engine(ontology, entailment=entailment)
    for name in ("Computer", "Laptop", "Notebook"):
        engine.subscribe(AttributeSubscription.of(name, {"target": {"isa": name}}))
    for value in ("Notebook", {"iri": EX["Notebook"].value}):
        assert len(engine.match(event("e", {"target": value})).matches) == 3
    item = Publication.of(
        "p", [(EX["offer"], EX["target"], BlankNode("x")), (BlankNode("x"), TYPE, EX["Notebook"])]
    )
    assert len(engine.match(item).matches) == 3


def test_a_class_name_is_looked_up_again_after_an_update() -> None:
    label = (EX["K1"], LABEL, Literal("Computer"))
    engine = Engine(Ontology([(EX["K1"], SUBCLASS, EX["T"]), (EX["K2"], SUBCLASS, EX["T"]), label]))
    engine.subscribe(AttributeSubscription.of("s", {"target": {"isa": "Computer"}}))
    first, second = (event("e", {"target": {"iri": EX[name].value}}) for name in ("K1", "K2"))
    assert engine.match(first).matches
    engine.update_ontology(added=[(EX["K2"], LABEL, Literal("Computer"))], removed=[label])
    assert not engine.match(first).matches
    assert engine.match(second).matches

"""Attribute names as IRIs, and the properties that path steps name."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine
from semantic import Ontology
from semantic.attributes.events import Event
from semantic.attributes.names import (
    AttributeNameError,
    attribute,
    encoded,
    isa,
    isa_name_of,
    name_of,
    steps,
)
from semantic.terms import Term
from semantic.vocabulary import EQUIVALENT_PROPERTY, SUBPROPERTY, TYPE, Namespace

EX, OTHER = Namespace("http://example.org/"), Namespace("http://other.example/#")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_a_part_of_an_iri(text: str) -> None:
    iri = NamedNode(f"urn:x:{encoded(text)}")
    assert unquote(iri.value.removeprefix("urn:x:")) == text


@given(
    st.lists(st.text(st.characters(exclude_characters=".<>"), min_size=1), min_size=1, max_size=5)
)
def test_a_name_is_its_steps(several: list[str]) -> None:
    name = ".".join(several)
    if not name.isprintable() or ":" in name:
        return
    assert list(steps(name)) == several
    assert name_of(attribute(name)) == name
    assert isa_name_of(isa(name)) == name
    assert isa_name_of(attribute(name)) is None


@pytest.mark.parametrize(
    "name", ["", ".", "a.", ".a", "a..b", "<a", "a>b", "a<b>", "a\nb", "\ud800"]
)
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(AttributeNameError):
        attribute(name)


def test_an_iri_is_one_step() -> None:
    assert steps("maker.<http://e.org/v1.0/name>") == ("maker", "<http://e.org/v1.0/name>")
    assert attribute("foaf:name") == attribute("<http://xmlns.com/foaf/0.1/name>")
    assert attribute("nowhere:name") != attribute("name")


def test_a_step_means_every_property_of_its_name_and_of_its_synonyms() -> None:
    ontology = Ontology(
        [
            (EX["phone"], TYPE, NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#Property")),
            (EX["phone"], EQUIVALENT_PROPERTY, EX["mobile"]),
            (OTHER["phone"], SUBPROPERTY, OTHER["contact"]),
        ]
    )

    def meant(step: str) -> set[Term]:
        event = Event("e", {step: 1}).publication()
        found = Engine(ontology).enrich(event).triples
        return {p for _, p, _ in found} - {event.triples[0][1], OTHER["contact"]}

    assert meant("phone") == {EX["phone"], OTHER["phone"]}
    assert meant("mobile") == {EX["phone"]}
    assert meant("<http://example.org/mobile>") == {EX["phone"]}
    assert meant("<http://other.example/#phone>") == {OTHER["phone"]}
    assert meant("unheard") == set()


def test_only_properties_of_attributes_have_names() -> None:
    assert name_of(Literal("urn:graphmatch:attribute:a")) is None
    assert name_of(EX["a"]) is None

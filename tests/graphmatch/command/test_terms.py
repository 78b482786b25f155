"""Terms by name: resolving one, and the order of search results."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch.command.terms import HOW, OntologyView, folded, resolve, search
from semantic.errors import GraphMatchError
from semantic.ontology.ontology import Ontology
from semantic.terms import Triple
from semantic.vocabulary import LABEL, OWL, SAME_AS, SUBCLASS, TYPE

EX = "http://example.org/"


def iri(name: str) -> NamedNode:
    return NamedNode(EX + name)


def view(*labels: tuple[str, str], more: tuple[Triple, ...] = ()) -> OntologyView:
    """Return an ontology of classes with one label each."""
    triples: list[Triple] = [*more]
    for name, label in labels:
        triples += [
            (iri(name), TYPE, OWL["Class"]),
            (iri(name), LABEL, Literal(label, language="en")),
        ]
    return OntologyView(Ontology(triples, prefixes={"ex": EX}))


SOLAR = view(
    ("SolarPower", "power of the sun"),
    ("Power", "power"),
    ("Superpower", "superpower"),
    ("Powerful", "powerful"),
    ("Wind", "wind power"),
    ("Coal", "coal"),
)


@pytest.mark.parametrize(
    "text", [f"{EX}Coal", f"<{EX}Coal>", "ex:Coal", "Coal", "coal", "COAL", " coal"]
)
def test_a_term_has_many_names(text: str) -> None:
    assert resolve(SOLAR, text) == iri("Coal")


def test_local_names_go_before_labels_and_case_before_none() -> None:
    names = view(("a", "b"), ("b", "c"), ("C", "d"))
    assert resolve(names, "b") == iri("b")
    assert resolve(names, "c") == iri("b")  # The label with the same case wins.
    assert resolve(names, "d") == iri("C")
    assert resolve(names, "A") == iri("a")


def test_another_name_leads_to_its_root() -> None:
    names = view(("Car", "car"), more=((iri("Auto"), SAME_AS, iri("Car")),))
    assert {resolve(names, text) for text in ("Auto", "ex:Auto", f"{EX}Auto")} == {iri("Car")}


def test_a_name_of_several_terms_lists_them() -> None:
    names = view(("river", "bank"), ("money", "bank"))
    with pytest.raises(GraphMatchError, match="2 terms are called 'bank': ex:money, ex:river"):
        resolve(names, "bank")


def test_a_name_of_many_terms_lists_some() -> None:
    names = view(*((f"n{n:02}", "same") for n in range(13)))
    with pytest.raises(GraphMatchError, match=r"13 terms are called 'same': ex:n00.* and 3 more"):
        resolve(names, "same")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("Koal", "Is ex:Coal meant?"),
        ("xyzzy", "Load the ontology that defines it, or give its IRI."),
    ],
)
def test_a_name_of_nothing(text: str, advice: str) -> None:
    with pytest.raises(GraphMatchError) as caught:
        resolve(SOLAR, text)
    assert str(caught.value) == f"{text}: the ontology has no term called '{text}'. {advice}"


def test_results_are_ordered_by_kind_of_match() -> None:
    found = [(each.term.value[len(EX) :], each.how) for each in search(SOLAR, "Power")]
    assert found == [
        ("Power", "exact"),
        ("Powerful", "prefix"),
        ("SolarPower", "prefix"),
        ("Wind", "word"),
        ("Superpower", "part"),
    ]


def test_the_parts_of_a_local_name_are_words() -> None:
    names = view(("RDFStore", "x"), ("hard_disk", "y"))
    assert [(f.term, f.how, f.name.local) for f in search(names, "rdf store")] == [
        (iri("RDFStore"), "exact", True)
    ]
    assert [f.how for f in search(names, "DISK")] == ["word"]


def test_nothing_is_found_by_nothing() -> None:
    assert search(SOLAR, "  ") == []
    assert search(SOLAR, "xyzzy") == []


def test_a_property_is_found_by_its_label() -> None:
    below = (iri("cell"), SUBCLASS, iri("phone"))
    property_ = (iri("mobile"), TYPE, OWL["DatatypeProperty"])
    label = (iri("mobile"), LABEL, Literal("Handy", language="de"))
    names = view(more=(below, property_, label))
    assert [(f.term, str(f.name)) for f in search(names, "handy")] == [
        (iri("mobile"), "“Handy”@de")
    ]


TEXTS = st.lists(st.sampled_from(["ab", "a b", "b", "Ab c", "cab", "ba"]), min_size=1, max_size=4)


@given(TEXTS, st.sampled_from(["a", "ab", "b", "c", "a b"]))
def test_search_is_what_looking_at_every_name_finds(labels: list[str], wanted: str) -> None:
    names = view(*((f"n{n}", label) for n, label in enumerate(labels)))
    expected = {iri(f"n{n}") for n, label in enumerate(labels) if wanted in folded(label)}
    found = search(names, wanted)
    assert {each.term for each in found} == expected
    assert len(found) == len(expected)
    ranks = [HOW.index(each.how) for each in found]
    assert ranks == sorted(ranks)

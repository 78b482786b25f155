from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semantic.errors import SubscriptionError
from semantic.sparql import parse
from semantic.sparql.basic import skeleton_of
from semantic.sparql.lexer import tokenize
from semantic.sparql.parse import SubscriptionParser
from semantic.sparql.pieces import cut_constants
from semantic.sparql.slots import SlottedText

SUBJECTS = ("?a", "?b", "?c1", "?gm_0", "?Z", "<urn:a>", "<urn:b>", "skos:a")
PREDICATES = ("a", "?p", "?a", "<urn:p>", "<urn:q>", "rdf:type", "<urn:p>", "<urn:q>")
OBJECTS = (*SUBJECTS, "'x'", '"y"@en', "5", "-7.5", "true", "'1'^^xsd:int", "'4 m'^^cdt:ucum")


def pieces_of(text: str) -> list[str]:
    return cut_constants(tokenize(text))[0]


@st.composite
def queries(draw: st.DrawFn) -> str:
    pick = lambda items: draw(st.sampled_from(items))  # noqa: E731
    triples: list[str] = []
    for _ in range(draw(st.integers(1, 9))):
        pairs = []
        for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
            objects = [pick(OBJECTS) for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3])))]
            pairs.append(f"{pick(PREDICATES)} {' , '.join(objects)}")
        triples.append(f"{pick(SUBJECTS)} {' ; '.join(pairs)}")
    names = draw(st.lists(st.sampled_from((*SUBJECTS[:5], "?other")), min_size=1, unique=True))
    head = pick(("ASK", "ask WHERE", "SELECT *", "SELECT DISTINCT * WHERE", "{}", "distinct {}"))
    head = head if "{}" not in head else f"SELECT {head.format(' '.join(names))}"
    return f"{head} {{ {' . '.join(triples)}{pick(('', ' .'))} }}"


def plain(value: Any) -> Any:
    """Return a skeleton as what can be compared: slotted texts are equal by what is in them."""
    if isinstance(value, SlottedText):
        return value._pieces, value._numbers
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def by_rdflib(text: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parse, "skeleton_of", lambda _: None)
        return SubscriptionParser().read("id", text).query.skeleton


@settings(max_examples=250)
@given(queries())
def test_that_it_is_the_skeleton_of_the_general_way(text: str) -> None:
    try:
        expected = by_rdflib(text)
    except SubscriptionError:
        assert skeleton_of(pieces_of(text)) is None
        return
    found = skeleton_of(pieces_of(text))
    if found is None:
        assert "*" in text
        assert not any(c == "?" for c in text)
        return
    for name, value in plain(found)[1].items():
        assert value == plain(expected)[1][name], name


@pytest.mark.parametrize(
    "text",
    [
        "ASK { }",
        "ASK { ?s ?p }",
        "ASK { ?s ?p ?o ?q }",
        "ASK { ?s ?p ?o . . }",
        "ASK { ?s ?p ?o ; }",
        "ASK { ?s ?p ?o , }",
        "ASK { ?s ?p ?o ; ; ?q 5 }",
        "ASK { ?s ?p ?o FILTER(?o > 5) }",
        "ASK { { ?s ?p ?o } }",
        "ASK { ?s ?p _:b }",
        "ASK { ?s ?p [] }",
        "ASK { ?s ?p ( 1 ) }",
        "ASK { ?s <urn:p>+ ?o }",
        "ASK { ?s ^<urn:p> ?o }",
        "ASK { 5 ?p ?o }",
        "ASK { ?s 5 ?o }",
        "ASK { a ?p ?o }",
        "ASK { ?s ?p a }",
        "ASK { ?s A ?o }",
        "ASK { ?s ?p ?größe }",
        "ASK { ?s ?p ?5 }",
        "ASK { ?s ?p ?o } LIMIT 1",
        "ASK FROM <urn:g> { ?s ?p ?o }",
        "SELECT * { <urn:s> <urn:p> 5 }",
        "SELECT ?s ?s { ?s ?p ?o }",
        "SELECT { ?s ?p ?o }",
        "SELECT ?s * { ?s ?p ?o }",
        "SELECT REDUCED ?s { ?s ?p ?o }",
        "SELECT (5 AS ?x) { ?s ?p ?o }",
        "CONSTRUCT WHERE { ?s ?p ?o }",
        "DESCRIBE ?s { ?s ?p ?o }",
        "ASK",
        "{ ?s ?p ?o }",
    ],
)
def test_what_is_left_to_the_general_way(text: str) -> None:
    assert skeleton_of(pieces_of(text)) is None


def test_that_rdflib_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "parseQuery", None)
    subscription = SubscriptionParser().parse("id", "SELECT ?x { ?x a <urn:C> ; <urn:p> 5 }")
    assert subscription.exact


def test_that_what_the_evaluator_refuses_is_refused() -> None:
    parser = SubscriptionParser()
    for text in ("SELECT ?s { ?s <urn:p> e:a\\(b }", "PREFIX a_: <urn:> ASK { ?s a a_.:b }"):
        with pytest.raises(SubscriptionError):
            parser.parse("id", text)

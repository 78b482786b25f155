from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semantic.errors import SubscriptionError
from semantic.sparql import parse
from semantic.sparql.basic import skeleton_of
from semantic.sparql.parse import SubscriptionParser
from tests.semantic.sparql.ways import pieces_of, taken_quickly

SUBJECTS = ("?a", "?b", "?c1", "?gm_0", "?Z", "<urn:a>", "<urn:b>", "skos:a")
PREDICATES = ("a", "?p", "?a", "<urn:p>", "<urn:q>", "rdf:type", "<urn:p>", "<urn:q>")
OBJECTS = (*SUBJECTS, "'x'", '"y"@en', "5", "-7.5", "true", "'1'^^xsd:int", "'4 m'^^cdt:ucum")


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


@settings(max_examples=250)
@given(queries())
def test_that_it_is_the_skeleton_of_the_general_way(text: str) -> None:
    if not taken_quickly(text):
        assert "*" in text
        assert not any(c == "?" for c in text)


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
        "ASK { ?s ?p ?o OPTIONAL { ?o ?q ?r } }",
        "ASK { ?s ?p ?o BIND(5 AS ?x) }",
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

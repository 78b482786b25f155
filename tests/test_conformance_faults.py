"""Conformance errors once found by the W3C suites for SPARQL 1.1 and 1.2 and RDF 1.2."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import pytest
from pyoxigraph import BaseDirection, Literal, NamedNode, Triple

from graphmatch import Engine
from semantic import Publication, read_publications
from semantic.errors import Problem, SubscriptionError
from semantic.terms import Term
from semantic.vocabulary import XSD

S, P, Q = (NamedNode(f"urn:{name}") for name in "spq")
FIVE = Literal("5", datatype=XSD["integer"])


def solutions(query: str, *objects: Term) -> list[dict[str, Term]] | None:
    """Return the solutions of a query on triples with these objects, or `None` without a match."""
    engine = Engine()
    engine.subscribe("s", f"PREFIX : <urn:> {query}")
    report = engine.match(Publication.of("p", [(S, P, object_) for object_ in objects]))
    assert report.problems == ()
    return list(report.matches[0].solutions) if report.matches else None


# --- VALUES in every place, with any number of rows --------------------------------------------


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("SELECT * { ?s ?p ?o VALUES ?o { } }", 0),
        ("SELECT * { VALUES ?o { } ?s ?p ?o }", 0),
        ("SELECT * { ?s ?p ?o VALUES () { } }", 0),
        ("SELECT * { ?s ?p ?o VALUES () { () } }", 1),
        ("SELECT * { ?s ?p ?o VALUES () { () () } }", 2),
        ("SELECT * { ?s ?p ?o } VALUES () { }", 0),
        ("SELECT * { ?s ?p ?o } VALUES ?o { }", 0),
        ("SELECT * { ?s ?p ?o } VALUES () { () }", 1),
        ("SELECT * { ?s ?p ?o } VALUES (?s ?o) { (:s 5) (:s UNDEF) (:t 5) }", 2),
        ("SELECT * { ?s ?p ?o OPTIONAL { VALUES ?x { } } }", 1),
        ("SELECT * { ?s ?p ?o MINUS { VALUES ?o { } } }", 1),
        ("SELECT * { ?s ?p ?o FILTER EXISTS { VALUES ?x { } } }", 0),
        ("SELECT * { ?s ?p ?o FILTER NOT EXISTS { VALUES ?x { } } }", 1),
        ("SELECT * { { ?s ?p ?o } UNION { ?s ?p ?o VALUES ?o { } } }", 1),
        ("SELECT * { ?s ?p ?o { SELECT ?s { ?s ?p ?o } VALUES ?s { } } }", 0),
        ("SELECT * { ?s ?p ?o GRAPH ?g { VALUES ?o { 5 6 } } }", 1),
        ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s VALUES ?s { :s :t }", 1),
        ("ASK { ?s ?p ?o VALUES ?o { 5 } }", 1),
        ("ASK { ?s ?p ?o VALUES ?o { } }", 0),
    ],
)
def test_values(query: str, count: int) -> None:
    assert len(solutions(query, FIVE) or ()) == count


def test_that_values_alone_are_refused_and_the_others_go_on() -> None:
    engine = Engine()
    refused = engine.subscribe_many(
        [("a", "ASK { VALUES () { () } }"), ("b", "ASK { ?s ?p ?o VALUES ?o { } }")]
    )
    assert [error.problem.where.source for error in refused] == ["a"]
    assert "b" in engine


# --- Literals with a base direction ------------------------------------------------------------

LEFT = Literal("abc", language="en", direction=BaseDirection.LTR)
PLAIN, TAGGED = Literal("abc"), Literal("abc", language="en")


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ('CONTAINS(?o, "b")', [PLAIN, TAGGED, LEFT]),
        ('STRSTARTS(?o, "a")', [PLAIN, TAGGED, LEFT]),
        ('STRENDS(STR(?o), "c")', [PLAIN, TAGGED, LEFT]),
        ('CONTAINS(?o, "b"@en)', [TAGGED]),
        ('LANG(?o) = "en"', [TAGGED, LEFT]),
        ('LANGMATCHES(LANG(?o), "en")', [TAGGED, LEFT]),
        ('LANGDIR(?o) = "ltr"', [LEFT]),
        ("hasLANGDIR(?o)", [LEFT]),
        ("?o = 'abc'@en--ltr", [LEFT]),
        ("sameTerm(?o, 'abc'@en)", [TAGGED]),
    ],
)
def test_base_directions(expression: str, found: Sequence[Term]) -> None:
    rows = solutions(f"SELECT ?o {{ ?s ?p ?o FILTER({expression}) }}", PLAIN, TAGGED, LEFT)
    assert [row["o"] for row in rows or ()] == found


def test_that_a_pattern_tells_directions_apart() -> None:
    assert solutions("ASK { ?s ?p 'abc'@en--ltr }", LEFT)
    assert not solutions("ASK { ?s ?p 'abc'@en--ltr }", TAGGED)


# --- Lexical forms of numbers ------------------------------------------------------------------


def test_that_a_number_in_a_triple_term_stays_as_it_is_written() -> None:
    padded = Triple(S, Q, Literal("05", datatype=XSD["integer"]))
    query = "SELECT * { ?s ?p ?t FILTER NOT EXISTS { ?s :none ?t } BIND(OBJECT(?t) AS ?o) }"
    rows = solutions(query, padded)
    assert rows is not None
    assert rows[0]["t"] == padded
    assert solutions("SELECT ?t { ?s ?p ?t } ORDER BY ?t", padded) == [{"t": padded}]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Literal("1E0", datatype=XSD["double"]), "1"),
        (Literal("01", datatype=XSD["integer"]), "1"),
        (Literal("1", datatype=XSD["boolean"]), "true"),
    ],
)
def test_that_a_cast_to_a_string_gives_the_canonical_form(value: Literal, text: str) -> None:
    rows = solutions("SELECT (xsd:string(?o) AS ?x) (STR(?o) AS ?y) { ?s ?p ?o }", value)
    assert rows == [{"x": Literal(text), "y": Literal(value.value)}]


# --- Messages for common mistakes ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT ?s ?o { ?s ?p ?o } GROUP BY ?s", "that is unbound"),
        ("SELECT ?s ?s { ?s ?p ?o }", "Duplicated"),
        ("SELECT (?o AS ?s) { ?s ?p ?o }", "overrides an existing variable"),
        ("SELECT * { ?s ?p ?o BIND(1 AS ?s) }", "BIND is"),
        ("SELECT * { ?s ?p ?o } GROUP BY ?s", "SELECT *"),
    ],
)
def test_that_a_common_mistake_is_named(query: str, what: str) -> None:
    with pytest.raises(SubscriptionError) as caught:
        Engine().subscribe("s", query)
    assert what in str(caught.value)
    assert "too early" not in str(caught.value)
    assert caught.value.problem.where.line == 1


# --- Syntax detection ----------------------------------------------------------------------------

RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
DOCUMENTS = {
    "RDF/XML without rdf:RDF": f'<e:C {RDF} xmlns:e="urn:" rdf:about="urn:s"><e:p>5</e:p></e:C>',
    "Turtle with a prefix and full IRIs": (
        "@prefix e: <urn:> .\n<urn:s> a <urn:C> .\n<urn:s> <urn:p> '5' .\n"
    ),
    "BASE without a space": "BASE<urn:>\n<s> a <C> ; <p> '5' .\n",
    "N-Quads with triple terms": (
        "<urn:s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:C> <urn:g> .\n"
        '<urn:s> <urn:p> <<( <urn:a> <urn:b> "5" )>> <urn:g> .\n'
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_that_the_syntax_of_a_document_is_recognised(name: str) -> None:
    data = DOCUMENTS[name].encode()
    problems: list[Problem] = []
    (publication,) = read_publications(BytesIO(data), on_problem=problems.append)
    assert len(publication.triples) == 2
    engine = Engine(on_problem=problems.append)
    engine.subscribe("s", "ASK { ?s a <urn:C> ; <urn:p> ?o }")
    assert [list(report.subscriptions) for report in engine.filter(data)] == [["s"]]
    assert problems == []


# --- SPARQL 1.2 ----------------------------------------------------------------------------------

SAID = Triple(S, Q, FIVE)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("SELECT * { ?s :p <<( ?a :q ?n )>> }", 1),
        ("SELECT * { ?s :p <<( ?a :q 6 )>> }", 0),
        ("SELECT * { ?s :p ?t FILTER(isTRIPLE(?t) && OBJECT(?t) = 5) }", 1),
        ("SELECT * { ?s :p ?t FILTER(SUBJECT(?t) = :s) }", 1),
        ('VERSION "1.2" ASK { ?s :p ?t }', 1),
    ],
)
def test_triple_terms(query: str, count: int) -> None:
    if query.startswith("VERSION"):
        query = query.replace("ASK", "PREFIX : <urn:> ASK")
        engine = Engine()
        engine.subscribe("s", query)
        assert len(engine.match(Publication.of("p", [(S, P, SAID)]))) == count
        return
    assert len(solutions(query, SAID) or ()) == count


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { << ?s :q ?n >> :by ?who }",
        "SELECT * { ?s :q ?n {| :by ?who |} }",
        "SELECT * { ?s :q ?n ~ ?r . ?r :by ?who }",
    ],
)
def test_annotations(query: str) -> None:
    engine = Engine()
    engine.subscribe("s", f"PREFIX : <urn:> {query}")
    data = b"PREFIX : <urn:> :s :q 5 {| :by :alice |} ."
    (report,) = engine.filter(data, format="ttl")
    (match,) = report.matches
    assert match.solutions[0]["who"] == NamedNode("urn:alice")

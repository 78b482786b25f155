"""Parameterized queries with columns of terms, compared with one query per row."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine
from graphmatch.matcher import DuplicateSubscriptionError
from semantic import Ontology
from semantic.attributes.values import term_of
from semantic.errors import InputError, SubscriptionError
from semantic.vocabulary import RDFS, TYPE

QUERIES = [
    ("SELECT ?item { ?item a ?class }", ["class"], [["<urn:A>", "<urn:B>"]]),
    ("SELECT * { ?item ?p ?o }", ["p", "o"], [["<urn:p>"] * 3, ["<urn:A>", '"a"', '"a"@en']]),
    ("ASK { ?s <urn:p> ?v FILTER(?v > ?low && ?v <= ?high) }", ["low", "high"], [[1, 2], [3, 4]]),
    ("ASK { ?s <urn:p> ?t FILTER(CONTAINS(LCASE(?t), ?word)) }", ["word"], [['"a\\"b"', '"x"']]),
    ("ASK { ?s <urn:p> ?v FILTER(?v IN (?a, ?b, 5)) }", ["a", "b"], [[1.5, 1e30], ["<urn:c>"] * 2]),
    ("SELECT ?x { { ?x a ?c } UNION { ?x <urn:p> ?c } MINUS { ?x ?p ?c } }", ["c"], [["<urn:c>"]]),
    ("CONSTRUCT { ?x a ?c } { ?x <urn:p>* ?c FILTER(?x != ?c) }", ["c"], [["<urn:c>", "<urn:d>"]]),
    ("SELECT (COUNT(?x) AS ?n) { ?x a ?c } GROUP BY ?z HAVING(?n > ?m)", ["c", "m"], [[], []]),
    ("ASK { GRAPH ?g { ?s <urn:on> ?d } }", ["g", "d"], [["<urn:g>"], [date(2026, 1, 31)]]),
    (
        "ASK { ?s <urn:p> ?v FILTER(?v > ?q) }",
        ["q"],
        [['"4 kg"^^<https://w3id.org/cdt/ucum>', '"5"']],
    ),
]


def put(query: str, parameters: list[str], row: tuple[Any, ...]) -> str:
    """Insert a row's terms into the query."""
    for name, term in zip(parameters, row, strict=True):
        written = str(term_of(term)) if isinstance(term, date) else str(term)
        query = query.replace("SELECT * ", "SELECT ?item ").replace(f"?{name}", written)
    return query


@pytest.mark.parametrize(("query", "parameters", "columns"), QUERIES)
def test_rows_are_what_their_queries_are(
    query: str, parameters: list[str], columns: list[list[Any]]
) -> None:
    engine, expected = Engine(), Engine()
    rows = list(zip(*columns, strict=True))
    ids = [f"s{number}" for number in range(len(rows))]
    refused = engine.prepare(query, parameters).subscribe(ids, list(map(pa.array, columns)))
    texts = (put(query, parameters, row) for row in rows)
    wrong = expected.subscribe_many(zip(ids, texts, strict=True))
    assert [error.problem.where.source for error in refused] == [
        error.problem.where.source for error in wrong
    ]
    texts_of = [{s.id: s.query.text for s in one.subscriptions} for one in (engine, expected)]
    assert texts_of[0] == texts_of[1]


def test_columns_may_be_sequences_and_chunks() -> None:
    engine = Engine()
    prepared = engine.prepare("ASK { ?s ?p ?o }", ["?p", "?o"])
    chunks = pa.chunked_array([["<urn:p>"], ["<urn:q>"]])
    assert (
        prepared.subscribe(["a", "b"], [chunks, [Literal("x", language="en"), NamedNode("urn:o")]])
        == ()
    )
    assert prepared.subscribe([], [[], []]) == ()
    coded = pa.array(["<urn:r>", "<urn:r>"]).dictionary_encode()
    assert prepared.subscribe(pa.array(["c", "d"]), [coded, [True, False]]) == ()
    texts = [subscription.query.text for subscription in engine.subscriptions]
    assert texts[0] == 'ASK WHERE { ?s <urn:p> "x"@en . }'
    assert '<urn:r> "true"^^<http://www.w3.org/2001/XMLSchema#boolean>' in texts[2]


def test_rows_that_are_refused() -> None:
    engine = Engine()
    engine.subscribe("b", "ASK { ?s a <urn:A> }")
    prepared = engine.prepare("ASK { ?s ?p ?o }", ["p", "o"])
    properties = ["<urn:p>", "<urn:p>", '"p"', None, "_:b", "<urn:p>", "<p>"]
    refused = prepared.subscribe(list("abcdefg"), [properties, [1, 2, 3, 4, 5, None, 7]])
    assert engine.subscriptions[0].id == "b"
    assert [subscription.id for subscription in engine.subscriptions] == ["b", "a"]
    assert isinstance(refused[0], DuplicateSubscriptionError)
    none = "has no IRI or literal in this row. Write terms in N-Triples syntax, or numbers."
    assert list(map(str, refused[1:])) == [
        "c: the parameter ?p is where a constant is not allowed. Use it in triple patterns and "
        "expressions; a property is an IRI.",
        f"d: ?p {none}",
        f"e: ?p {none}",
        f"f: ?o {none}",
        f"g: ?p {none}",
    ]


@pytest.mark.parametrize(
    ("query", "parameters", "message"),
    [
        ("ASK { ?s ?p ?o", ["p"], "not SPARQL: it ends too early"),
        ("ASK { ?s ?p ?o }", ["q"], r"the parameter \?q is not in the query"),
        ("SELECT ?s { ?s ?p ?o } GROUP BY ?s", ["s"], r"the parameter \?s is where"),
        ("ASK { ?s ?p ?o BIND(1 AS ?x) }", ["x"], r"the parameter \?x is where"),
        ("ASK { ?s ?p ?o FILTER(BOUND(?o)) }", ["o"], r"the parameter \?o is where"),
        ("SELECT ?p { ?s a ?p }", ["p"], r"the parameter \?p is where"),
        ("DESCRIBE ?p ?s { ?s a ?p }", ["p"], r"the parameter \?p is where"),
        ("ASK { ?s a ?o { SELECT ?p { ?s a ?p } } }", ["p"], r"the parameter \?p is where"),
    ],
)
def test_queries_that_are_refused(query: str, parameters: list[str], message: str) -> None:
    with pytest.raises(SubscriptionError, match=message):
        Engine().prepare(query, parameters)


def test_rows_without_ids_and_numbers() -> None:
    engine = Engine()
    prepared = engine.prepare("ASK { ?s <urn:p> ?o }", ["o"])
    refused = prepared.subscribe(pa.array(["a", None, "c", ""]), [[float("nan"), 1, None, 2]])
    assert [error.problem.where.source for error in refused] == ["row 2", "c", "row 4"]
    assert [subscription.id for subscription in engine.subscriptions] == ["a"]
    assert len(prepared.subscribe(["d", "e"], [[None, None]])) == 2
    mixed = [Literal("x"), 5, "<urn:o>"]
    assert prepared.subscribe(["f", "g", "h"], [mixed]) == ()
    with pytest.raises(InputError, match="the ids are not strings"):
        prepared.subscribe(["\ud800"], [[1]])


def test_no_constant_is_taken_for_a_parameter() -> None:
    engine = Engine()
    text = 'ASK { ?s <urn:graphmatch:parameter:0> ?o FILTER(CONTAINS(?o, ">parameter 0")) }'
    prepared = engine.prepare(text.replace("?s", "?p"), ["p"])
    assert prepared.subscribe(["a"], [["<urn:s>"]]) == ()
    assert text.split("FILTER")[1][:-2] in engine.subscription("a").query.text
    table = pa.table({"id": ["x"], "urn:graphmatch:parameter:9 >": [1]})
    assert engine.subscribe_table(table) == ()


def test_columns_that_are_refused() -> None:
    prepared = Engine().prepare("ASK { ?s ?p ?o }", ["p"])
    with pytest.raises(InputError, match="2 columns for 1 parameters"):
        prepared.subscribe(["a"], [["<urn:p>"], ["<urn:p>"]])
    with pytest.raises(InputError, match=r"the column of \?p has 2 terms for 1 ids"):
        prepared.subscribe(["a"], [["<urn:p>"] * 2])
    with pytest.raises(InputError, match=r"the column of \?p has values that are not terms"):
        prepared.subscribe(["a"], [pa.array([[1]])])
    with pytest.raises(InputError, match="the ids are not strings but int64"):
        prepared.subscribe(pa.array([1]), [["<urn:p>"]])


def test_units_and_synonyms_are_found() -> None:
    same = Ontology(
        [
            (NamedNode("urn:A"), TYPE, RDFS["Class"]),
            (
                NamedNode("urn:B"),
                NamedNode("http://www.w3.org/2002/07/owl#sameAs"),
                NamedNode("urn:A"),
            ),
        ]
    )
    engine = Engine(same)
    assert (
        engine.prepare("ASK { ?s a ?c }", ["c"]).subscribe(["a", "b"], [["<urn:A>", "<urn:B>"]])
        == ()
    )
    (report,) = engine.filter(b"<urn:s> a <urn:B> .", format="ttl")
    assert list(report.subscriptions) == ["a", "b"]
    quantities = ['"4 kg"^^<https://w3id.org/cdt/ucum>', '"9000 g"^^<https://w3id.org/cdt/ucum>']
    text = "ASK { ?s <urn:weight> ?w FILTER(?w > ?least) }"
    assert engine.prepare(text, ["least"]).subscribe(["c", "d"], [quantities]) == ()
    data = b'<urn:s> <urn:weight> "5 kg"^^<https://w3id.org/cdt/ucum> .'
    (report,) = engine.filter(data, format="ttl")
    assert list(report.subscriptions) == ["c"]

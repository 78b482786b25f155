"""Delta solutions, derived by hand from section 4 of the contract.

The ontology is data (entailment is off): it states the *o* triples, the publication the *p* ones.
"""

from __future__ import annotations

import pytest
from pyoxigraph import NamedNode, RdfFormat, parse

from graphmatch import Engine, SubscriptionParser
from graphmatch.matcher import Matcher
from graphmatch.published.naive import Naive
from semantic import Ontology, Publication
from semantic.terms import Triple

ONTOLOGY = ":a :o :b . :b :o :c . :a :both :b . :c :cycle :c ."
PUBLICATION = ":x :p :a . :b :p :x . :a :both :b . :x :q 5, 7 ."


def triples(turtle: str) -> list[Triple]:
    quads = parse(f"PREFIX : <urn:> {turtle}", format=RdfFormat.TURTLE)
    return [(quad.subject, quad.predicate, quad.object) for quad in quads]


def matchers() -> list[Matcher]:
    ontology = Ontology(triples(ONTOLOGY))
    return [Engine(ontology, entailment="none"), Naive(ontology, entailment=False)]


def answers(query: str) -> list[str] | None:
    """Return each solution as a string, or ``None`` if there is no match."""
    subscription = SubscriptionParser().parse("s", f"PREFIX : <urn:> {query}")
    found = []
    for matcher in matchers():
        matcher.subscribe(subscription)
        matches = matcher.match(Publication.of("urn:id", triples(PUBLICATION))).matches
        found.append(
            sorted(
                " ".join(
                    str(getattr(term, "value", term)).removeprefix("urn:")
                    for term in solution.values()
                )
                for match in matches
                for solution in match.solutions
            )
            if matches
            else None
        )
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("?s :o ?z", None),  # Only the ontology states it.
        ("?s :p ?z", ["b x", "x a"]),
        ("?s :both ?z", ["a b"]),  # Both state it.
        ("?s :o ?z . ?z :p ?y", ["a b x"]),
        ("?s :p ?z . ?z :o ?y", ["x a b"]),
        # The union's branch that holds counts.
        ("{ ?s :o ?z } UNION { ?s :p ?z }", ["b x", "x a"]),
        ("?s :o :b { :b :o ?z } UNION { ?z :p :a }", ["a x"]),
        # The optional part of the solution is in the publication.
        ("?s :o ?z OPTIONAL { ?z :p ?y }", ["a b x"]),
        ("?s :o ?z OPTIONAL { ?z :p ?y OPTIONAL { ?y :q 5 } }", ["a b x"]),
        ("?s :o ?z OPTIONAL { ?z :none ?y }", None),
        ("?s :p ?z OPTIONAL { ?z :none ?y }", ["b x", "x a"]),
        # Triples outside the solution do not count.
        ("?s :o ?z MINUS { ?s :p ?y }", None),
        ("?s :o ?z FILTER EXISTS { ?z :p ?y }", None),
        ("?s :o ?z FILTER NOT EXISTS { ?s :p ?y }", None),
        ("?s :p ?z FILTER NOT EXISTS { ?s :o ?y }", ["x a"]),
        # GRAPH sees the publication.
        ("GRAPH ?g { ?s :p ?z }", ["b x id", "x a id"]),
        ("GRAPH <urn:id> { ?s :o ?z }", None),
        ("GRAPH ?g { ?s :both ?z } ?z :o ?y", ["a b id c"]),
        ("GRAPH <urn:other> { ?s :p ?z }", None),
        # A blank node of the query stands for any term that satisfies its patterns.
        ("?s :o [ :p ?z ]", ["a x"]),
        ("?s :o []", None),
        ("?s :o [ :o ?z ]", None),
        ("?s :o _:b . _:b :p []", ["a"]),
        # Other solutions do not count for this one.
        ("?s :o ?z . ?x :q ?y", ["a 5 x b", "a 7 x b", "b 5 x c", "b 7 x c"]),
        ("VALUES ?s { :a :x } ?s ?y ?z", ["a both b", "x p a", "x q 5", "x q 7"]),
        ("?s :o ?z BIND(:x AS ?y)", None),
    ],
)  # fmt: skip
def test_patterns(where: str, expected: list[str] | None) -> None:
    found = answers(f"SELECT * {{ {where} }}")
    if expected is None:
        assert found is None
    else:
        # The evaluator chooses the order of columns.
        assert found is not None
        assert sorted(sorted(row.split()) for row in found) == sorted(
            sorted(row.split()) for row in expected
        )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (":o/:p", ["a x"]),
        (":p/:o", ["x b"]),
        (":o/:o", None),
        (":o|:p", ["b x", "x a"]),
        ("^:p", ["a x", "x b"]),
        ("^:o", None),
        (":o+", None),
        (":p+", ["b a", "b x", "x a"]),
        (":o/:p+", ["a a", "a x"]),
        ("(:o/:p)+", ["a x"]),
        # Paths around a -o- b -p- x -p- a may all use a step of the publication.
        ("(:o|:p)+", ["a a", "a b", "a c", "a x", "b a", "b b",
          "b c", "b x", "x a", "x b", "x c", "x x"]),
        ("!:o", ["a b", "b x", "x 5", "x 7", "x a"]),
        ("!(:o|:p|:q|:cycle)", ["a b"]),
        ("!(:o|^:o|:q|^:q|:p|:cycle|^:cycle|:both|^:both)", ["a x", "x b"]),
        ("!^:p", ["5 x", "7 x", "b a"]),
        (":o/:cycle", None),
        (":p/:o/:o", ["x c"]),
        (":p/:o?", ["b x", "x a", "x b"]),
        (":p/:o*", ["b x", "x a", "x b", "x c"]),
    ],
)  # fmt: skip
def test_paths(path: str, expected: list[str] | None) -> None:
    assert answers(f"SELECT DISTINCT ?s ?z {{ ?s {path} ?z }}") == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("?s :o? ?z . :a :o ?s", None),
        (":x :p? ?z . :a :o :b", ["a"]),  # The path of one step counts, the empty one does not.
        (":x :p* ?z . :a :o :b", ["a"]),
        ("?s :cycle ?s . ?s :o* ?z", None),
    ],
)
def test_walks_of_no_steps(where: str, expected: list[str] | None) -> None:
    assert answers(f"SELECT DISTINCT ?z {{ {where} }}") == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # Rows are computed over all solutions if one of them is a delta solution.
        ("SELECT (COUNT(*) AS ?n) { ?s :o ?z }", None),
        ("SELECT (COUNT(*) AS ?n) { ?s :p ?z }", ["2"]),
        ("SELECT (COUNT(*) AS ?n) { ?s :o|:p ?z }", ["4"]),
        ("SELECT ?s (COUNT(*) AS ?n) { ?s :o|:p ?z } GROUP BY ?s", ["a 1", "b 2", "x 1"]),
        ("SELECT ?s { ?s :o|:p ?z } GROUP BY ?s HAVING (COUNT(*) > 1)", ["b"]),
        ("SELECT ?s { ?s :p ?z } GROUP BY ?s HAVING (COUNT(*) > 1)", None),
        # A subquery needs a solution, and a triple of the publication that matches a pattern.
        ("SELECT ?s { ?s :o ?z { SELECT ?z { ?z :p ?y } } }", ["a"]),
        ("SELECT ?s { ?s :o ?z { SELECT ?z { ?z :o ?y } } }", None),
        ("SELECT ?s { ?s :o ?z { SELECT (COUNT(?y) AS ?n) { ?x :q ?y } } FILTER(?n = 2) }",
         ["a", "b"]),
        ("SELECT ?s { ?s :o ?z { SELECT (COUNT(?y) AS ?n) { ?x :none ?y } } }", None),
        # Limits apply afterwards.
        ("SELECT ?s { ?s :o|:p ?z } ORDER BY ?s LIMIT 1", ["b"]),
        ("SELECT DISTINCT ?z { { ?s :o ?z } UNION { ?z :p ?s } }", ["b", "x"]),
        ("ASK { ?s :o ?z }", None),
        ("ASK { ?s :o ?z . ?z :p ?y }", [""]),
        ("SELECT * { ?s :o|:p ?z } VALUES ?s { :a }", None),
    ],
)  # fmt: skip
def test_queries(query: str, expected: list[str] | None) -> None:
    assert answers(query) == expected


@pytest.mark.parametrize(
    "name",
    [
        "urn:graphmatch:ontology",
        "urn:graphmatch:rest",
        "urn:graphmatch:publication",
        "",
        "a b",
        "<x>",
        "é",
    ],
)
def test_that_any_id_will_do(name: str) -> None:
    """An id that is an IRI becomes the graph's name; other ids change nothing."""
    for matcher in matchers():
        query = "PREFIX : <urn:> SELECT ?g { GRAPH ?g { ?s :p ?z } OPTIONAL { ?z :o ?y } }"
        matcher.subscribe(SubscriptionParser().parse("s", query))
        matcher.subscribe(SubscriptionParser().parse("t", "ASK { ?s <urn:p> ?z . ?z <urn:o> ?y }"))
        for _ in range(2):
            report = matcher.match(Publication.of(name, triples(PUBLICATION)))
            assert [match.subscription for match in report] == ["s", "t"]
            assert report.publication == name
            graph = name if name.startswith("urn:") else "urn:graphmatch:publication"
            assert {s["g"] for s in report.matches[0].solutions} == {NamedNode(graph)}

"""Which solutions rest on the publication: worked out by hand from the contract, section 4.

The ontology is data (entailment is off): *o* triples are its, *p* triples the publication's.
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
    """Return each solution as a text; ``None`` where there is no match."""
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
        ("?s :o ?z", None),  # the ontology alone
        ("?s :p ?z", ["b x", "x a"]),
        ("?s :both ?z", ["a b"]),  # stated by both
        ("?s :o ?z . ?z :p ?y", ["a b x"]),
        ("?s :p ?z . ?z :o ?y", ["x a b"]),
        # the union's branch that holds
        ("{ ?s :o ?z } UNION { ?s :p ?z }", ["b x", "x a"]),
        ("?s :o :b { :b :o ?z } UNION { ?z :p :a }", ["a x"]),
        # a solution whose optional part is in the publication
        ("?s :o ?z OPTIONAL { ?z :p ?y }", ["a b x"]),
        ("?s :o ?z OPTIONAL { ?z :p ?y OPTIONAL { ?y :q 5 } }", ["a b x"]),
        ("?s :o ?z OPTIONAL { ?z :none ?y }", None),
        ("?s :p ?z OPTIONAL { ?z :none ?y }", ["b x", "x a"]),
        # what is not part of a solution does not count
        ("?s :o ?z MINUS { ?s :p ?y }", None),
        ("?s :o ?z FILTER EXISTS { ?z :p ?y }", None),
        ("?s :o ?z FILTER NOT EXISTS { ?s :p ?y }", None),
        ("?s :p ?z FILTER NOT EXISTS { ?s :o ?y }", ["x a"]),
        # GRAPH sees the publication
        ("GRAPH ?g { ?s :p ?z }", ["b x id", "x a id"]),
        ("GRAPH <urn:id> { ?s :o ?z }", None),
        ("GRAPH ?g { ?s :both ?z } ?z :o ?y", ["a b id c"]),
        ("GRAPH <urn:other> { ?s :p ?z }", None),
        # blank nodes of the query: any term for which their neighbours hold
        ("?s :o [ :p ?z ]", ["a x"]),
        ("?s :o []", None),
        ("?s :o [ :o ?z ]", None),
        ("?s :o _:b . _:b :p []", ["a"]),
        # other solutions do not count for this one
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
        # the order of columns is the evaluator's
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
        # walks around a -o- b -p- x -p- a may all use a step of the publication
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
        (":x :p? ?z . :a :o :b", ["a"]),  # the walk of one step; the one of none is no news
        (":x :p* ?z . :a :o :b", ["a"]),
        ("?s :cycle ?s . ?s :o* ?z", None),
    ],
)
def test_walks_of_no_steps(where: str, expected: list[str] | None) -> None:
    assert answers(f"SELECT DISTINCT ?z {{ {where} }}") == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # rows are computed over all solutions, once some solution rests on the publication
        ("SELECT (COUNT(*) AS ?n) { ?s :o ?z }", None),
        ("SELECT (COUNT(*) AS ?n) { ?s :p ?z }", ["2"]),
        ("SELECT (COUNT(*) AS ?n) { ?s :o|:p ?z }", ["4"]),
        ("SELECT ?s (COUNT(*) AS ?n) { ?s :o|:p ?z } GROUP BY ?s", ["a 1", "b 2", "x 1"]),
        ("SELECT ?s { ?s :o|:p ?z } GROUP BY ?s HAVING (COUNT(*) > 1)", ["b"]),
        ("SELECT ?s { ?s :p ?z } GROUP BY ?s HAVING (COUNT(*) > 1)", None),
        # a subquery: a solution, and some triple of the publication that meets a pattern
        ("SELECT ?s { ?s :o ?z { SELECT ?z { ?z :p ?y } } }", ["a"]),
        ("SELECT ?s { ?s :o ?z { SELECT ?z { ?z :o ?y } } }", None),
        ("SELECT ?s { ?s :o ?z { SELECT (COUNT(?y) AS ?n) { ?x :q ?y } } FILTER(?n = 2) }",
         ["a", "b"]),
        ("SELECT ?s { ?s :o ?z { SELECT (COUNT(?y) AS ?n) { ?x :none ?y } } }", None),
        # limits come after
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
    """A publication's id is the name of its graph where it is an IRI, and disturbs nothing."""
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

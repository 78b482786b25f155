from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    RdfFormat,
    Store,
)

from graphmatch import Engine, Subscription, SubscriptionParser
from semantic import Ontology, Publication
from semantic.branch import QueryForm
from semantic.errors import SubscriptionError
from semantic.limits import Limits
from semantic.ontology.synonyms import SynonymPairs
from semantic.terms import Triple
from semantic.vocabulary import EQUIVALENT_PROPERTY, PREFIXES, RDF
from tests.real_data import DATA

SUITES = DATA / "sparql"

REFUSED = re.compile(r"a subscription cannot read other data|an empty graph")
"""Reasons for which the contract refuses valid SPARQL."""


def parse(query: str, id: str = "s") -> Subscription:
    return SubscriptionParser().parse(id, query)


def patterns(subscription: Subscription) -> list[str]:
    return [" . ".join(map(str, branch.patterns)) for branch in subscription.branches]


# --------------------------------------------------------------------------------------
# W3C queries


def data_beside(query: Path) -> Store:
    store = Store()
    for path in sorted(query.parent.glob("*")):
        if path.suffix in (".ttl", ".nt") and "manifest" not in path.name:
            try:
                store.load(
                    path=path, format=RdfFormat.from_extension(path.suffix[1:]), base_iri="urn:b:"
                )
            except SyntaxError:
                continue  # The suites contain invalid files on purpose.
    return store


def outcome(answer: object) -> object:
    """Return a comparable form of a result, in which all blank nodes are equal."""
    if isinstance(answer, QueryBoolean):
        return bool(answer)
    if isinstance(answer, QuerySolutions):
        names = [v.value for v in answer.variables]
        return sorted(names), Counter(
            frozenset((name, shown(row[name])) for name in names) for row in answer
        )
    assert isinstance(answer, QueryTriples)
    return Counter((shown(t.subject), shown(t.predicate), shown(t.object)) for t in answer)


def shown(term: object) -> str:
    return "blank" if isinstance(term, BlankNode) else str(term)


@pytest.mark.data
@pytest.mark.parametrize(
    "path", [pytest.param(p, id=str(p.relative_to(SUITES))) for p in sorted(SUITES.rglob("*.rq"))]
)
def test_that_a_query_keeps_its_meaning(path: Path) -> None:
    text = "BASE <urn:b:>\n" + path.read_text(encoding="utf-8")
    store = data_beside(path)
    try:
        expected = store.query(text, prefixes=PREFIXES)
    except SyntaxError:
        with pytest.raises(SubscriptionError):
            parse(text)
        return
    except RuntimeError:
        pytest.skip("reaches out, or calls a function of the test's own")
    try:
        query = parse(text).query
    except SubscriptionError as problem:
        refused: str | None = str(problem)
    else:
        refused = None
    if refused is not None:
        assert REFUSED.search(refused)
        return
    assert outcome(store.query(query.text)) == outcome(expected), query.text


# --------------------------------------------------------------------------------------
# Skeletons


def test_that_queries_which_differ_in_constants_share_a_skeleton() -> None:
    parser, skeletons = SubscriptionParser(), set()
    for n in range(100):
        sign = "-+ "[n % 3]
        subscription = parser.parse(
            str(n),
            f"PREFIX p{n}: <urn:{n}:> SELECT ?x {{ ?x p{n}:p <urn:o{n}> ; a p{n}:C ; "
            f'<urn:v> ?v, "{n}"@en, {sign}{n} FILTER(?v > {sign}{n}.5 && ?x != "{n}") }}',
        )
        (branch,) = subscription.branches
        assert {o for _, p, o in branch.patterns if p == NamedNode(f"urn:{n}:p")} == {
            NamedNode(f"urn:o{n}")
        }
        assert str(branch.filters[0].constant.value) == f"{sign}{n}.5".strip()  # type: ignore[union-attr]
        skeletons.add(subscription.query.skeleton)
    assert len(skeletons) == 1


# --------------------------------------------------------------------------------------
# Signs, lists, calls, bases


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("?x -5 = 2", True),
        ("?x-5 = 2", True),
        ("?x - 5 = 2", True),
        ("?x - -5 = 12", True),
        ("?x --5 = 12", True),
        ("-5 + ?x = 2", True),
        ("(?x) -5 = 2", True),
        ("(?x) * 2 = 14", True),
        ("(?x)*2=14", True),
        ("ABS(?x) +5 = 12", True),
        ("5 -?x = -2", True),
        ("?x IN (-7, +7)", True),
        ("?x > -5 && -?x < -5", True),
        ("<urn:a> + 1 = 2 || ?x = 7", True),
        ("!?x = 7", False),
        ("!(?x = 7)", False),
        ("1 = 2 || ?x = 7 && 1 = 2", False),
        ("?x<8&&?x>6", True),
        ("COALESCE (?none, ?x) = 7", True),
        ("CONCAT ('a', 'b') = 'ab'", True),
        ("isBLANK(BNODE())", True),
        ("STRLEN(STRUUID()) > 5", True),
    ],
)
def test_expressions(expression: str, holds: bool) -> None:
    query = f"SELECT * {{ ?s <urn:p> ?x FILTER({expression}) }}"
    graph = [(NamedNode("urn:s"), NamedNode("urn:p"), Literal(7))]
    for extra in (
        [],
        [(NamedNode("urn:s"), NamedNode("urn:q"), Literal("07", datatype=Literal(7).datatype))],
    ):
        engine = Engine()
        engine.subscribe("s", query)
        assert bool(engine.match(Publication.of("p", [*graph, *extra]))) is holds


def test_that_constants_before_a_list_have_roots() -> None:
    old, new = NamedNode("urn:old"), NamedNode("urn:new")
    ontology = Ontology([(new, RDF["type"], RDF["Property"]), (old, EQUIVALENT_PROPERTY, new)])
    first, rest = RDF["first"], RDF["rest"]
    cell = BlankNode("b")
    graph: list[Triple] = [
        (NamedNode("urn:s"), new, cell),
        (cell, first, Literal("x")),
        (cell, rest, RDF["nil"]),
    ]
    engine = Engine(ontology)
    engine.subscribe("s", "SELECT ?s { ?s <urn:old> ('x') }")
    engine.subscribe(
        "t",
        "SELECT ?s { ?s <urn:old> ('x') FILTER <http://www.w3.org/2001/XMLSchema#boolean>('1') }",
    )
    assert [m.subscription for m in engine.match(Publication.of("p", graph))] == ["s", "t"]


@pytest.mark.parametrize("name", ["a.b.c", "a..b..c", r"a\.b.c.d", r"a.b.c\."])
def test_dots_in_names(name: str) -> None:
    iri = NamedNode("urn:" + name.replace("\\", ""))
    for end in (" }", ". }", ".?s ?p ?o }"):
        subscription = parse(f"PREFIX n: <urn:> SELECT * {{ ?s ?p n:{name}{end}")
        assert subscription.branches[0].patterns[0].object == iri


def test_iris_made_of_relative_ones() -> None:
    engine = Engine()
    engine.subscribe("s", "BASE <http://e/x> SELECT * { ?s ?p ?o FILTER(?o = IRI('y')) }")
    engine.subscribe("t", "BASE <http://f/x> SELECT * { ?s ?p ?o FILTER(?o = URI('y')) }")
    triple = (NamedNode("urn:s"), NamedNode("urn:p"), NamedNode("http://e/y"))
    assert [m.subscription for m in engine.match(Publication.of("p", [triple]))] == ["s"]
    assert engine.explain("s", Publication.of("p", [triple])).match is not None


def test_roots_of_literals_where_they_are_replaced_and_where_not() -> None:
    ontology = Ontology([], SynonymPairs(texts={"US": "United States"}))
    queries = {
        "pattern": "ASK { ?s ?p 'US' }",
        "values": "ASK { VALUES ?o { 'US' } ?s ?p ?o }",
        "last values": "SELECT * { ?s ?p ?o } VALUES ?o { 'US' }",
        "=": "ASK { ?s ?p ?o FILTER(?o = 'US') }",
        "in": "ASK { ?s ?p ?o FILTER(?o IN ('x', 'US')) }",
        "exists": "ASK { ?s ?p ?o FILTER EXISTS { ?s ?p 'US' } }",
        "if": "ASK { ?s ?p ?o FILTER(IF(?o = 'US', true, false)) }",
        "not !=": "ASK { ?s ?p ?o FILTER(?o != 'US') }",
        "not contains": "ASK { ?s ?p ?o FILTER(CONTAINS(?o, 'US')) }",
    }
    engine = Engine(ontology)
    for id, query in queries.items():
        engine.subscribe(id, query)
    triple = (NamedNode("urn:s"), NamedNode("urn:p"), Literal("US", language="en"))
    found = [match.subscription for match in engine.match(Publication.of("p", [triple]))]
    assert found == [id for id in queries if not id.startswith("not")]


# --------------------------------------------------------------------------------------
# Branches and residuals


@pytest.mark.parametrize(
    ("query", "form"),
    [
        ("ASK { ?s ?p ?o }", QueryForm.ASK),
        ("SELECT * { ?s ?p ?o }", QueryForm.SELECT),
        ("CONSTRUCT { ?o ?p ?s } WHERE { ?s ?p ?o }", QueryForm.CONSTRUCT),
        ("CONSTRUCT WHERE { ?s ?p ?o }", QueryForm.CONSTRUCT),
        ("DESCRIBE ?s { ?s ?p ?o }", QueryForm.DESCRIBE),
        ("DESCRIBE <urn:a> ?s WHERE { ?s ?p ?o }", QueryForm.DESCRIBE),
    ],
)
def test_forms(query: str, form: QueryForm) -> None:
    subscription = parse(query)
    assert subscription.form is form
    assert subscription.exact is (form in (QueryForm.ASK, QueryForm.SELECT))


@pytest.mark.parametrize(
    ("where", "branches", "remainder"),
    [
        ("?s <urn:p> ?o", ["?s <urn:p> ?o"], []),
        ("?s <urn:p> [ <urn:q> ?o ]", ["?_0 <urn:q> ?o . ?s <urn:p> ?_0"], []),
        ("?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?z }", ["?s <urn:p> ?o"], ["OPTIONAL"]),
        ("?s <urn:p> ?o MINUS { ?s <urn:q> ?z }", ["?s <urn:p> ?o"], ["MINUS"]),
        ("{ ?s <urn:p> ?o } UNION { ?s <urn:q> ?o }",
         ["?s <urn:p> ?o", "?s <urn:q> ?o"], ["UNION"]),
        ("GRAPH ?g { ?s <urn:p> ?o }", ["?s <urn:p> ?o"], ["GRAPH"]),
        ("?s <urn:p> ?o BIND(1 AS ?x)", ["?s <urn:p> ?o"], ["BIND or expression"]),
        ("VALUES ?o { 1 } ?s <urn:p> ?o", ["?s <urn:p> ?o"], ["VALUES"]),
        ("?s <urn:p> ?o { SELECT ?s { ?s <urn:q> ?o } }",
         ["?s <urn:p> ?o"], ["subquery"]),
        ("?s <urn:p> ?o { SELECT (COUNT(?s) AS ?n) { ?s <urn:q> ?o } }",
         ["?s <urn:p> ?o"], ["subquery", "aggregate", "BIND or expression"]),
        ("?s <urn:p> ?o { SELECT ?s (COUNT(?x) AS ?n) { ?s <urn:q> ?x } GROUP BY ?s }",
         ["?s <urn:p> ?o"], ["subquery", "aggregate", "BIND or expression"]),
        ("{ ?s <urn:p> ?o OPTIONAL { ?o <urn:q> ?z } } ?z <urn:q> ?s",
         ["?s <urn:p> ?o . ?z <urn:q> ?s"], ["OPTIONAL"]),
    ],
)  # fmt: skip
def test_branches(where: str, branches: list[str], remainder: list[str]) -> None:
    subscription = parse(f"SELECT * {{ {where} }}")
    assert sorted(patterns(subscription)) == sorted(branches)
    assert sorted(subscription.remainder) == sorted(remainder)


def test_that_unions_are_bounded() -> None:
    union = "{ { ?s <urn:a> ?o } UNION { ?s <urn:b> ?o } } "
    text = f"SELECT * {{ ?s <urn:p> 1 . {union * 6} }}"
    subscription = SubscriptionParser(limits=Limits(subscription_branches=4)).parse("s", text)
    assert len(subscription.branches) == 4
    assert all(branch.startswith("?s <urn:p> 1 . ?s ") for branch in patterns(subscription))
    assert "more branches than subscription_branches" in subscription.remainder


# --------------------------------------------------------------------------------------
# Refused queries


@pytest.mark.parametrize(
    ("query", "where", "what"),
    [
        ("SELECT * { BIND(1 AS ?x) }", "s", "an empty graph"),
        ("SELECT * { FILTER EXISTS { ?s ?p ?o } }", "s", "an empty graph"),
        ("SELECT * { { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } }", "s", "an empty graph"),
        ("SELECT * { ?s <urn:p>* ?o }", "s", "an empty graph"),
        ("SELECT * { { ?s ?p ?o } UNION {} }", "s", "an empty graph"),
        ("SELECT * FROM NAMED <urn:g> { ?s ?p ?o }", "s", "FROM"),
        ("PREFIX e: <urn:> DELETE WHERE { ?s e:p ?o }", "s:1:18", "cannot begin with “DELETE”"),
        ("SELECT ?x ?x2 { ?s\n un:known 1 }", "s:2:2", "prefix"),
        ("ASK { _\u00e9b <urn:p> ?o }", "s:1:", "not SPARQL"),
        ("SELECT * { ?s ?p ?o\n LATERAL { ?o ?q ?z } }", "s:2:2", "LATERAL is not SPARQL 1.1"),
        ("PREFIX 1: <urn:> ASK { ?s ?p ?o }", "s:1:", "the prefix : is not declared"),
        ("PREFIX _a: <urn:> ASK { ?s ?p ?o }", "s:1:", "not SPARQL"),
        ("PREFIX \u0301a: <urn:> ASK { ?s ?p ?o }", "s:1:", "not SPARQL"),
        ("PREFIX <urn:> ASK { ?s ?p ?o }", "s:1:", "not SPARQL"),
        ("PREFIX a<urn:> ASK { ?s ?p ?o }", "s:1:", "not SPARQL"),
        ('VERSION """1.2""" ASK { ?s ?p ?o }', "s:1:", "not SPARQL"),
        ("VERSION '''1.2''' ASK { ?s ?p ?o }", "s:1:", "not SPARQL"),
        ("ASK { ?s ?p ?o FILTER(" + "(" * 9999 + "?o" + ")" * 9999 + ") }", "s:1:", "`nesting`"),
        ("ASK { ?s ?p ?o FILTER(?o" + "+ 1" * 50_000 + ") }", "s:1:", "`subscription_operators`"),
        ("ASK { ?s <urn:p>" + "/<urn:p>" * 5_000 + " ?o }", "s:1:", "`subscription_operators`"),
    ],
)
def test_refusals(query: str, where: str, what: str) -> None:
    parser = SubscriptionParser()
    for _ in range(2):
        with pytest.raises(SubscriptionError, match=re.escape(what)) as caught:
            parser.parse("s", query)
        assert str(caught.value).startswith(where)
    assert caught.value.problem.remedy


def many(make: Callable[[int], str], count: int, between: str = " ") -> str:
    return between.join(make(number) for number in range(count))


CHAIN = many(lambda n: f"?x{n} <urn:p> ?x{n + 1} .", 20_000)
PATTERNS, OPERATORS = "subscription_patterns` (1000)", "subscription_operators` (1000)"


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        (f"SELECT * {{ {CHAIN} }}", PATTERNS),
        (f"ASK {{ ?s ?p ?o FILTER EXISTS {{ {CHAIN} }} }}", PATTERNS),
        (f"ASK {{ ?s ?p ?o MINUS {{ {CHAIN} }} }}", PATTERNS),
        (f"ASK {{ ?s ?p ?o OPTIONAL {{ {CHAIN} }} }}", PATTERNS),
        (f"CONSTRUCT WHERE {{ {CHAIN} }}", PATTERNS),
        (f"CONSTRUCT {{ {CHAIN} }} WHERE {{ ?x0 <urn:p> ?x1 }}", PATTERNS),
        ("SELECT * { " + many(lambda n: f"?x{n} ?y{n} ?z{n} .", 1_001) + " }", PATTERNS),
        ("ASK { " + many(lambda n: f"<urn:{n}> a 1 .", 20_000) + " }", PATTERNS),
        ("ASK { " + many(lambda n: f"_:b{n} a [] .", 20_000) + " }", PATTERNS),
        ("ASK { ?s <urn:p> " + many(str, 20_000, ", ") + " }", PATTERNS),
        ("ASK { ?s " + many(lambda n: f"<urn:{n}> 1", 20_000, "; ") + " }", PATTERNS),
        ("ASK { ?s <urn:p> (" + many(str, 20_000) + ") }", PATTERNS),
        ("SELECT * { " + many(lambda n: f"?x <urn:p>/<urn:q> ?y{n} .", 501) + " }", PATTERNS),
        ("ASK { ?s ?p 1, 2, 3 . " + many(lambda n: f"?x{n} <urn:p>* ?s .", 998) + " }", PATTERNS),
        ("ASK { ?s ?p ?o VALUES (" + many(lambda n: f"?x{n}", 20_000) + ") {} }", PATTERNS),
        ("SELECT " + many(lambda n: f"?x{n}", 20_000) + " { ?s ?p ?o }", PATTERNS),
        ("ASK { " + many(lambda n: "{ <urn:s> a 1 }", 20_000) + " }", PATTERNS),
        ("ASK { ?s ?p ?o " + many(lambda n: "{| <urn:p> 1 |}", 20_000) + " }", PATTERNS),
        ("DESCRIBE " + many(lambda n: f"<urn:{n}>", 20_000) + " { ?s ?p ?o }", OPERATORS),
        ("ASK { " + many(lambda n: "{ <urn:s> a 1 }", 1_001, " UNION ") + " }", OPERATORS),
    ],
)
def test_queries_of_very_many_parts_are_refused(query: str, limit: str) -> None:
    with pytest.raises(SubscriptionError, match=re.escape(f"exceeds the limit `{limit}")):
        SubscriptionParser().parse("s", query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { " + many(lambda n: f"?x{n} <urn:p> ?x{n + 1} .", 1_000) + " }",
        "SELECT * { " + many(lambda n: f"?x ?y{n} ?z{n} .", 1_000) + " }",
        "ASK { " + many(lambda n: f"?x{n} <urn:p> ?x{(n + 1) % 1_000} .", 1_000) + " }",
        "ASK { " + many(lambda n: f"{{ ?x{n} <urn:p> ?x{n + 1} }}", 1_000) + " }",
        "ASK { ?s ?p ?o MINUS { " + many(lambda n: f"?x{n} <urn:q> ?o .", 999) + " } }",
    ],
)
def test_queries_of_as_many_patterns_as_are_allowed_are_matched(query: str) -> None:
    engine = Engine()
    engine.subscribe("s", query)
    loop = Publication.of("p", [(NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:a"))])
    assert list(engine.match(loop).subscriptions) == ["s"]


def test_that_a_long_query_is_refused() -> None:
    with pytest.raises(SubscriptionError, match="text_characters"):
        SubscriptionParser(limits=Limits(text_characters=10)).parse("s", "SELECT * { ?s ?p ?o }")


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("CONSTRUCT {} WHERE { ?s ?p ?o }", True),
        ("CONSTRUCT {} WHERE { ?s ?p ?o } VALUES ?o { 7 }", True),
        ("CONSTRUCT {} WHERE { ?s ?p ?o } VALUES ?o { 8 }", False),
        ("CONSTRUCT {} WHERE { ?s ?p ?o } LIMIT 0", False),
        ("CONSTRUCT { ?o <urn:p> 1 } WHERE { ?s ?p ?o } OFFSET 1", False),
        # It makes no triple, because 7 cannot be a subject.
        ("CONSTRUCT { ?o <urn:p> 1 } WHERE { ?s ?p ?o }", True),
        ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", True),
        ("SELECT ?o { ?s ?p ?o } GROUP BY ?o HAVING (COUNT(*) > 1)", False),
    ],
)
def test_that_a_match_is_a_solution_of_the_whole_query(query: str, matches: bool) -> None:
    engine = Engine()
    engine.subscribe("s", query)
    triple = (NamedNode("urn:s"), NamedNode("urn:p"), Literal(7))
    assert bool(engine.match(Publication.of("p", [triple]))) is matches


def test_a_base_that_templates_use_is_refused() -> None:
    with pytest.raises(SubscriptionError, match="the base <slot:0> is reserved"):
        parse("BASE <slot:0> ASK { ?s <urn:p> ?o }")


@pytest.mark.parametrize(
    ("object_", "written"),
    [("+5.e:a <urn:q> 1", '"+5"'), ("+1.5e3", '"+1.5e3"'), ("+.5", '"+.5"'), ("+5.", '"+5"')],
)
def test_numbers_with_a_sign(object_: str, written: str) -> None:
    text = parse(f"PREFIX e: <urn:e:> ASK {{ ?s <urn:p> {object_} }}").query.text
    assert f"<urn:p> {written}^^" in text

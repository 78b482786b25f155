"""Attributes that a subscription names stay hidden from patterns with variable properties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from graphmatch import AttributeSubscription, Engine, SubscriptionParser
from graphmatch.report import MatchReport
from semantic import Ontology, Publication
from semantic.attributes.events import event
from semantic.attributes.names import attribute
from semantic.terms import Term, Triple
from semantic.vocabulary import LABEL, SUBCLASS, SUBPROPERTY, TYPE, XSD
from tests.oracle import Answer, Pattern, Query, World, answer_in, to_sparql
from tests.strategies import EX as NAMES
from tests.strategies import FULL, Scenario, pairs_of, scenarios

PARSER = SubscriptionParser()
OFFER, PRICE, AMOUNT = NAMES["offer"], NAMES["price"], NAMES["amount"]
SEVEN = Literal("7", datatype=XSD["integer"])
LAPTOP, COMPUTER = NAMES["Laptop"], NAMES["Computer"]
ONTOLOGY: tuple[Triple, ...] = (
    (LAPTOP, SUBCLASS, COMPUTER),
    (LAPTOP, LABEL, Literal("Laptop")),
    (PRICE, LABEL, Literal("price")),
)
GRAPH = Publication.of(
    "http://example.org/offer",
    [
        (OFFER, PRICE, NAMES["sum"]),
        (NAMES["sum"], AMOUNT, SEVEN),
        (OFFER, NAMES["item"], NAMES["thing"]),
        (NAMES["thing"], TYPE, LAPTOP),
        (OFFER, NAMES["name"], Literal("Laptop")),
    ],
)
OTHERS = {
    "amounts": "SELECT ?x { ?x attribute:price.amount ?v }",
    "names": "SELECT ?x { ?x attribute:name ?v }",
    "items": f"SELECT ?x {{ ?x isa:item {COMPUTER} ; isa:name ?c }}",
}
GENERAL = (
    "SELECT * { ?x ?p 7 }",
    "SELECT * { ?x ?p ?v }",
    "SELECT * { ?x ?p ?v . ?y ?p ?w }",
    "SELECT * { ?x ?p ?v . ?v ?q ?w }",
    f"SELECT * {{ {OFFER} ?p ?v }}",
    f"SELECT * {{ {OFFER} ?p {COMPUTER} }}",
    "SELECT * { ?x ?p ?v FILTER(?v > 5) }",
    "ASK { <http://example.org/offer> ?p 7 }",
    # These are evaluated.
    "SELECT * { ?x ?p 7 OPTIONAL { ?x ?q ?w FILTER(?w = 7) } }",
    "SELECT * { ?x ?p 7 MINUS { ?x ?p ?v . <http://example.org/offer> ?r 7 } }",
    f"SELECT * {{ ?y {AMOUNT} ?v FILTER NOT EXISTS {{ ?x ?q ?v FILTER(?x != ?y) }} }}",
    "SELECT ?p (COUNT(*) AS ?n) { ?x ?p ?v } GROUP BY ?p",
    "SELECT (COUNT(*) AS ?n) { ?x ?p ?v }",
    "SELECT * { ?x !<urn:none> ?v }",
    "SELECT * { ?x ^!(<urn:none>|^<urn:other>) ?v }",
    "SELECT * { ?x (!<urn:none>)+ ?v }",
    "SELECT * { ?x ?p 7 . ?y <urn:none>* ?z }",
    "SELECT * { GRAPH ?g { ?x ?p 7 . ?y <urn:none>* ?z } }",
    "SELECT * { GRAPH ?g { ?x ?p ?v } }",
    "SELECT * { { SELECT ?p { ?x ?p 7 } } }",
    "CONSTRUCT { ?x ?p ?v } { ?x ?p ?v }",
    "CONSTRUCT WHERE { ?x ?p ?v }",
    f"DESCRIBE {OFFER} {{ {OFFER} ?p ?v }}",
    f"DESCRIBE ?x {{ ?x {PRICE} ?v }}",
    # These name attributes themselves.
    "SELECT * { ?x attribute:price.amount ?v ; ?p ?w }",
    "SELECT * { ?x attribute:price.amount ?v ; ?p ?v }",
    "SELECT * { ?x attribute:price.amount ?v OPTIONAL { ?x ?p ?v } }",
    "SELECT * { ?x attribute:name ?v . VALUES ?p { attribute:name } OPTIONAL { ?x ?p ?w } }",
    "SELECT * { ?x attribute:name ?v , ?w ; ?p [ ?q 7 ] ; (^!<urn:a>)* ?z . ?z !(<urn:a>|^a) ?u }",
    "SELECT * { ?x attribute:price.amount|attribute:name ?v MINUS { ?x ?p 7 } }",
    "SELECT * { ?x (attribute:name|!<urn:none>)+ ?v }",
    "SELECT * { GRAPH ?g { ?x attribute:name ?v ; ?p ?v } }",
    "SELECT ?p (COUNT(*) AS ?n) { ?x attribute:name ?v ; ?p ?w } GROUP BY ?p",
    "SELECT * { ?x attribute:name ?v { SELECT ?p { ?x ?p 7 } } }",
    f"SELECT * {{ ?y {AMOUNT} ?v FILTER EXISTS {{ ?x attribute:price.amount ?v }}"
    " FILTER NOT EXISTS { ?x ?p ?v FILTER(?x != ?y) } }",
    f"SELECT * {{ ?x isa:item {COMPUTER} ; ?p ?c }}",
    "SELECT * { ?x isa:name ?c ; ?p ?c }",
    "DESCRIBE ?x { ?x attribute:price.amount ?v }",
    "CONSTRUCT { ?x attribute:price.amount ?v ; ?p ?w } { ?x attribute:price.amount ?v ; ?p ?w }",
    "CONSTRUCT WHERE { ?x attribute:price.amount ?v ; ?p ?w }",
)  # fmt: skip


def said(report: MatchReport, id: str) -> object:
    """Return a subscription's result in a comparable form."""
    for match in report:
        if match.subscription == id:
            solutions = Counter(frozenset(s.items()) for s in match.solutions)
            return solutions, None if match.graph is None else frozenset(match.graph)
    return None


def alone(query: str, ontology: tuple[Triple, ...] = ONTOLOGY) -> Engine:
    engine = Engine(Ontology(ontology))
    engine.subscribe("s", query)
    return engine


def among_others(query: str, ontology: tuple[Triple, ...] = ONTOLOGY) -> Engine:
    engine = Engine(Ontology(ontology))
    for id, other in OTHERS.items():
        engine.subscribe(id, other)
    engine.subscribe("s", query)
    return engine


@pytest.mark.parametrize("ontology", [ONTOLOGY, ()], ids=["ontology", "none"])
@pytest.mark.parametrize("query", GENERAL)
def test_answers_do_not_depend_on_who_else_asks(query: str, ontology: tuple[Triple, ...]) -> None:
    """Without an ontology, the index answers more of the queries."""
    report = among_others(query, ontology).match(GRAPH)
    assert said(report, "s") == said(alone(query, ontology).match(GRAPH), "s")
    expected = OTHERS.keys() if ontology else {"amounts", "names"}
    assert {match.subscription for match in report} >= expected


@pytest.mark.parametrize("query", GENERAL)
def test_explanations_do_not_depend_on_who_else_asks(query: str) -> None:
    found = among_others(query).explain("s", GRAPH)
    expected = alone(query).explain("s", GRAPH)
    assert (found.evidence, found.failure, found.nearest) == (
        expected.evidence,
        expected.failure,
        expected.nearest,
    )


def test_attributes_match_only_by_name() -> None:
    """A variable property matches stated and derived triples, but attributes must be named."""
    engine = among_others("SELECT * { ?x attribute:price.amount ?v ; ?p ?w }")
    solutions = {match.subscription: match.solutions for match in engine.match(GRAPH)}["s"]
    assert {solution["p"] for solution in solutions} == {PRICE, NAMES["item"], NAMES["name"]}
    assert {solution["x"] for solution in solutions} == {OFFER}
    assert {solution["v"] for solution in solutions} == {SEVEN}


@pytest.mark.parametrize("more", ["", "OPTIONAL { ?x a ?c }"], ids=["indexed", "evaluated"])
def test_stated_attributes_match_variable_properties(more: str) -> None:
    """An event states its attributes; derived ones next to them do not match."""
    publication = event("http://example.org/offer", {"price": {"amount": 7}})
    ontology = Ontology([*ONTOLOGY, (AMOUNT, SUBPROPERTY, NAMES["number"])])
    engine = Engine(ontology)
    engine.subscribe("other", "SELECT * { ?x attribute:price.number ?v }")
    engine.subscribe("s", f"SELECT * {{ ?x ?p 7 {more} }}")
    found = {match.subscription: match.solutions for match in engine.match(publication)}
    assert [solution["v"] for solution in found["other"]] == [SEVEN]
    properties = Counter(solution["p"] for solution in found["s"])
    assert properties == Counter([attribute("price.amount"), AMOUNT, NAMES["number"]])


def test_a_property_that_is_bound_elsewhere_is_a_variable_still() -> None:
    """The index knows the attribute from the publication, but must not look it up."""
    asks = (NAMES["form"], NAMES["asks"], attribute("price.amount"))
    stated = (NAMES["form"], attribute("price.amount"), SEVEN)
    query = f"SELECT * {{ ?form {NAMES['asks']} ?p . ?x ?p ?v }}"
    for more, count in (([asks], 0), ([asks, stated], 1)):
        publication = Publication.of(GRAPH.id, [*GRAPH.triples, *more])
        report = among_others(query, ()).match(publication)
        assert report.counters.evaluated == 0
        found = {match.subscription: match.solutions for match in report}
        assert len(found.get("s", ())) == count
        assert "amounts" in found


# --- Generated subscriptions ------------------------------------------------------------------

STEPS = ("p", "q", "r", "s", "t")
ATTRIBUTES = st.lists(st.sampled_from(STEPS), min_size=1, max_size=2).map(".".join)


@st.composite
def mixed(draw: st.DrawFn, query: Query) -> Query:
    """Add an attribute pattern to a query, with a new subject or one of its own."""
    subjects = [p.subject for p in query.where.patterns if isinstance(p.subject, Variable)]
    subject = draw(st.sampled_from([*subjects, Variable("event")]))
    objects = [n for p in query.where.patterns for n in p if isinstance(n, Variable)]
    value = draw(st.sampled_from([*objects, Variable("value")]))
    more = Pattern(subject, attribute(draw(ATTRIBUTES)), value)
    where = replace(query.where, patterns=(*query.where.patterns, more))
    return replace(query, where=where)


def world_of(scenario: Scenario, publication: Publication) -> World:
    """Return a world with all attributes that a subscription could name.

    A step can have the name of any synonym of its property; derived names use the root.
    """
    world = World.of(scenario.ontology, publication.triples, scenario.synonyms)
    stated = Publication.of(
        publication.id, sorted(world.roots.triples(publication.triples), key=str)
    )
    paths = [path for size in (1, 2) for path in product(STEPS, repeat=size)]
    found = frozenset(
        (root, attribute(".".join(path)), value)
        for root, own, value in flattened(stated.with_derived(sorted(world.news, key=str)))
        for path in paths
        if own == tuple(root_name(world, step) for step in path)
    )
    return replace(world, attributes=found - world.news)


def flattened(publication: Publication) -> Iterator[tuple[Term, tuple[str, ...], Term]]:
    """Yield roots, paths of one or two steps, and values, as the reference defines them."""
    triples, stated = publication.triples, set(publication.triples) - publication.derived
    reached = {s: {o for t, _, o in triples if t == s} for s, _, _ in triples}
    for _ in reached:
        for several in reached.values():
            several |= {far for near in several for far in reached.get(near, ())}
    if publication.graph_name() in reached:
        roots = {publication.graph_name()}
    else:
        tops = {s for s, _, _ in stated if not any(o == s != t for t, _, o in stated)}
        behind = tops.union(*(reached[top] for top in tops))
        roots = tops | {s for s, _, _ in stated if s not in behind}

    def values(term: Term) -> set[Term]:
        types = {o for s, p, o in stated if s == term and p == TYPE}
        return types if isinstance(term, BlankNode) else {term}

    for root, p, near in ((s, p, o) for s, p, o in triples if s in roots):
        yield from ((root, (local_name(p),), value) for value in values(near))
        for q, far in ((q, o) for s, q, o in triples if s == near != root):
            yield from ((root, (local_name(p), local_name(q)), value) for value in values(far))


def local_name(term: Term) -> str:
    return str(term)[1:-1].rpartition("/")[2]


def root_name(world: World, step: str) -> str:
    root = world.roots(NAMES[step])
    assert isinstance(root, NamedNode)
    return root.value.rpartition("/")[2]


def answers(report: MatchReport) -> dict[str, Answer]:
    return {
        match.subscription: Counter(frozenset(s.items()) for s in match.solutions)
        for match in report
    }


@given(scenarios(FULL), st.lists(ATTRIBUTES, max_size=3), st.data())
def test_generated_subscriptions_do_not_depend_on_attributes(
    scenario: Scenario, names: list[str], data: st.DataObject
) -> None:
    """Subscriptions on attributes do not change the oracle's answers for others."""
    asked = [
        data.draw(mixed(query)) if data.draw(st.integers(0, 2)) == 0 else query
        for query in scenario.queries
    ]
    engine = Engine(
        Ontology(scenario.ontology, pairs_of(scenario.synonyms), on_problem=lambda _: None)
    )
    for number, name in enumerate(names):
        test = {"exists": True} if number else {"isa": NAMES["A"].value}
        engine.subscribe(AttributeSubscription.of(f"other {number}", {name: test}))
    for number, query in enumerate(asked):
        engine.subscribe(PARSER.parse(str(number), to_sparql(query)))
    for publication in scenario.publications:
        world = world_of(scenario, publication)
        expected = {str(n): answer_in(query, world) for n, query in enumerate(asked)}
        found = answers(engine.match(publication))
        note(f"attributes: {len(world.attributes) > 0}")
        assert {id: found.get(id, Counter()) for id in expected} == expected

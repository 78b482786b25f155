"""The laws of the Matcher protocol, for every matcher there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch import Engine
from graphmatch.matcher import (
    Capabilities,
    DuplicateError,
    Matcher,
    MatchReport,
    UnknownError,
    UnsupportedError,
)
from graphmatch.published import MATCHERS, make
from semantic import Ontology, Publication, SubscriptionParser
from semantic.vocabulary import SUBCLASS, TYPE
from tests.oracle import to_sparql
from tests.strategies import Profile, Scenario, scenarios

ROOT = Path(__file__).parents[1]
PARSER = SubscriptionParser()
EX = "http://example.org/"
A, B, C, P, Q = (NamedNode(EX + name) for name in "ABCpq")

FACTORIES: dict[str, Callable[[Ontology], Matcher]] = {
    "engine": Engine,
    **{name: lambda ontology, name=name: make(name, ontology) for name in MATCHERS},
}


@pytest.fixture(params=sorted(FACTORIES))
def factory(request: pytest.FixtureRequest) -> Callable[[Ontology], Matcher]:
    return FACTORIES[request.param]


@pytest.fixture
def matcher(factory: Callable[[Ontology], Matcher]) -> Matcher:
    return factory(Ontology())


def subscribe(matcher: Matcher, **queries: str) -> None:
    for id, query in queries.items():
        matcher.subscribe(PARSER.parse(id, f"PREFIX : <{EX}> {query}"))


def publication(*triples: tuple[NamedNode, NamedNode, NamedNode]) -> Publication:
    return Publication.of(EX + "publication", triples)


def ids(report: MatchReport) -> list[str]:
    return [match.subscription for match in report]


def normal(report: MatchReport) -> list[tuple[str, Counter[frozenset[object]], object]]:
    return [
        (m.subscription, Counter(frozenset(s.items()) for s in m.solutions), m.graph)
        for m in report
    ]


def test_that_a_duplicate_id_is_refused_and_changes_nothing(matcher: Matcher) -> None:
    subscribe(matcher, s="SELECT ?x { ?x :p :B }")
    with pytest.raises(DuplicateError, match="has a subscription already"):
        subscribe(matcher, s="SELECT ?x { ?x :q :B }")
    assert ids(matcher.match(publication((A, P, B)))) == ["s"]
    assert ids(matcher.match(publication((A, Q, B)))) == []
    assert len(matcher) == 1


def test_that_an_unknown_id_is_refused(matcher: Matcher) -> None:
    with pytest.raises(UnknownError, match="no subscription has this id"):
        matcher.unsubscribe("nobody")


def test_that_unsubscribing_frees_the_id(matcher: Matcher) -> None:
    subscribe(matcher, s="SELECT ?x { ?x :p :B }", t="SELECT ?x { ?x :p :B }")
    matcher.unsubscribe("s")
    assert "s" not in matcher
    assert ids(matcher.match(publication((A, P, B)))) == ["t"]
    subscribe(matcher, s="SELECT ?x { ?x :q :B }")
    assert "s" in matcher
    assert ids(matcher.match(publication((A, P, B), (A, Q, B)))) == ["t", "s"]


def test_that_an_empty_matcher_matches_nothing(matcher: Matcher) -> None:
    report = matcher.match(publication((A, P, B)))
    assert len(report) == len(matcher) == 0
    assert report.counters.matched == 0
    assert report.publication == EX + "publication"


def test_that_an_empty_publication_matches_nothing(matcher: Matcher) -> None:
    subscribe(matcher, s="SELECT ?x { ?x :p :B }")
    assert ids(matcher.match(publication())) == []


def test_that_matches_are_in_the_order_of_subscribing(matcher: Matcher) -> None:
    subscribe(matcher, z="ASK { ?x :p ?y }", a="ASK { :A :p ?y }", m="ASK { ?x :p :B }")
    assert ids(matcher.match(publication((A, P, B)))) == ["z", "a", "m"]


def test_that_matching_leaves_no_trace(matcher: Matcher) -> None:
    subscribe(matcher, s="SELECT * { ?x :p ?y . ?y :q ?z }", t="SELECT ?x { ?x :p ?x }")
    first = publication((A, P, B), (B, Q, C))
    half = publication((A, P, B))
    before = (first.id, first.triples, first.derived)
    expected = normal(matcher.match(first))
    assert [id for id, *_ in expected] == ["s"]
    assert normal(matcher.match(half)) == []
    assert normal(matcher.match(publication((B, Q, C)))) == []
    assert normal(matcher.match(first)) == expected
    assert (first.id, first.triples, first.derived) == before


def test_that_match_many_is_match_of_each(matcher: Matcher) -> None:
    subscribe(matcher, s="SELECT * { ?x :p ?y }", t="SELECT * { ?x :q ?y }")
    several = [publication((A, P, B)), publication((A, Q, B)), publication()]
    lazily = matcher.match_many(iter(several))
    assert [normal(r) for r in lazily] == [normal(matcher.match(p)) for p in several]


def test_that_the_counters_count_the_matches(matcher: Matcher) -> None:
    subscribe(matcher, s="ASK { ?x :p ?y }", t="ASK { ?x :p ?y }", u="ASK { ?x :q ?y }")
    counters = matcher.match(publication((A, P, B))).counters
    assert counters.matched == 2
    assert counters.candidates >= 1  # equal subscriptions may be looked at together


@pytest.mark.parametrize(
    ("capability", "query"),
    [
        ("property_variables", "SELECT * { ?x ?p :B }"),
        ("comparisons", "SELECT * { ?x :p ?y FILTER(?y > 5) }"),
        ("taxonomy", "SELECT * { ?x :p ?y FILTER(gm:descendantOf(?y, :C)) }"),
        ("full_sparql", "SELECT * { ?x :p ?y OPTIONAL { ?y :q ?z } }"),
    ],
)
def test_that_what_is_not_a_capability_is_refused(
    matcher: Matcher, capability: str, query: str
) -> None:
    if getattr(matcher.capabilities, capability):
        subscribe(matcher, s=query)
        assert "s" in matcher
    else:
        with pytest.raises(UnsupportedError):
            subscribe(matcher, s=query)
        assert len(matcher) == 0


def test_that_entailment_is_as_declared(factory: Callable[[Ontology], Matcher]) -> None:
    matcher = factory(Ontology([(A, SUBCLASS, B)]))
    subscribe(matcher, s="SELECT ?x { ?x a :B }")
    matched = ids(matcher.match(publication((C, TYPE, A)))) == ["s"]
    assert matched is matcher.capabilities.entailment


@given(scenarios(Profile(variable_properties=False)), st.data())
@pytest.mark.parametrize("name", sorted(FACTORIES))
def test_that_history_does_not_matter(name: str, scenario: Scenario, data: st.DataObject) -> None:
    """Any order of subscribing, and removing and adding again, gives the same matches."""
    ontology = Ontology(scenario.ontology, on_problem=lambda _: None)
    subscriptions = [PARSER.parse(str(n), to_sparql(q)) for n, q in enumerate(scenario.queries)]
    plain, shuffled = FACTORIES[name](ontology), FACTORIES[name](ontology)
    if not plain.capabilities.full_sparql:
        subscriptions = [s for s in subscriptions if s.exact]
    for subscription in subscriptions:
        plain.subscribe(subscription)
    for subscription in data.draw(st.permutations(subscriptions)):
        shuffled.subscribe(subscription)
    removed = [s for s in subscriptions if data.draw(st.booleans())]
    for subscription in removed:
        shuffled.unsubscribe(subscription.id)
    for publication_ in scenario.publications:
        gone = {s.id for s in removed}
        left = [m for m in normal(plain.match(publication_)) if m[0] not in gone]
        assert sorted(normal(shuffled.match(publication_)), key=str) == sorted(left, key=str)
    for subscription in removed:
        shuffled.subscribe(subscription)
    for publication_ in scenario.publications:
        again = normal(shuffled.match(publication_))
        assert sorted(again, key=str) == sorted(normal(plain.match(publication_)), key=str)


# -- the audit: a matcher that these suites pass over is found out ---------------------------


def test_that_every_algorithm_is_listed() -> None:
    files = {p.stem for p in (ROOT / "graphmatch" / "published").glob("*.py")} - {"__init__"}
    assert set(MATCHERS) == files


def test_that_every_matcher_declares_its_capabilities() -> None:
    for name, factory_ in FACTORIES.items():
        assert isinstance(factory_(Ontology()).capabilities, Capabilities), name


def test_that_every_matcher_is_compared_with_the_oracle() -> None:
    text = (ROOT / "tests" / "test_agreement.py").read_text(encoding="utf-8")
    for name in MATCHERS:
        assert f"def test_{name}" in text, f"{name} is not in tests/test_agreement.py"

"""The laws of the Matcher protocol, for every matcher."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine, SubscriptionParser
from graphmatch.matcher import (
    Capabilities,
    DuplicateSubscriptionError,
    Matcher,
    UnknownSubscriptionError,
    UnsupportedError,
)
from graphmatch.published import MATCHERS, ORDERS, make
from graphmatch.published.attribute_matcher import Below, Equal, Interval, Present
from graphmatch.report import MatchReport
from graphmatch.subscription import Subscription
from semantic import Ontology, Publication
from semantic.terms import Term
from semantic.vocabulary import SUBCLASS, TYPE
from tests.graphmatch.published.conjunctions import conjunctions
from tests.oracle import to_sparql
from tests.strategies import Profile, Scenario, pairs_of, scenarios

ROOT = Path(__file__).parents[1]
PARSER = SubscriptionParser()
EX = "http://example.org/"
A, B, C = (NamedNode(EX + name) for name in "ABC")

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


def publication(*triples: tuple[NamedNode, NamedNode, Term]) -> Publication:
    return Publication.of(EX + "publication", triples)


class Language:
    """The same subscriptions and publications, in terms that a matcher supports.

    Nodes are IRIs. For a matcher that knows only numbers, objects are numbers, which are far apart
    because some matchers round.
    """

    def __init__(self, matcher: Matcher) -> None:
        self.terms = matcher.capabilities.terms

    def asks(self, *pairs: str) -> str:
        """Return a query: ``pB`` asks for property p with value B, ``p`` for any value."""
        patterns = (self._pattern(number, *pair) for number, pair in enumerate(pairs))
        return f"SELECT ?x {{ {' '.join(patterns)} }}"

    def _pattern(self, number: int, property_: str, value: str = "") -> str:
        if self.terms and value:
            return f"?x :{property_} :{value} ."
        test = f"= {self._number(value)}" if value else "> 0"
        return f"?x :{property_} ?v{number} FILTER(?v{number} {test})"

    def _number(self, value: str) -> int:
        return 10_000 * ord(value)

    def says(self, *edges: str) -> Publication:
        """Return a publication: ``ApB`` is the triple A p B."""
        return publication(*(self._triple(*edge) for edge in edges))

    def _triple(
        self, subject: str, property_: str, value: str
    ) -> tuple[NamedNode, NamedNode, Term]:
        object_ = NamedNode(EX + value) if self.terms else Literal(self._number(value))
        return NamedNode(EX + subject), NamedNode(EX + property_), object_


@pytest.fixture
def language(matcher: Matcher) -> Language:
    return Language(matcher)


def ids(report: MatchReport) -> list[str]:
    return [match.subscription for match in report]


def normal(report: MatchReport) -> list[tuple[str, Counter[frozenset[object]], object]]:
    return [
        (m.subscription, Counter(frozenset(s.items()) for s in m.solutions), m.graph)
        for m in report
    ]


def test_that_a_duplicate_id_is_refused_and_changes_nothing(
    matcher: Matcher, language: Language
) -> None:
    subscribe(matcher, s=language.asks("pB"))
    with pytest.raises(
        DuplicateSubscriptionError, match="a subscription with this id already exists"
    ):
        subscribe(matcher, s=language.asks("qB"))
    assert ids(matcher.match(language.says("ApB"))) == ["s"]
    assert ids(matcher.match(language.says("AqB"))) == []
    assert len(matcher) == 1


def test_that_an_unknown_id_is_refused(matcher: Matcher) -> None:
    with pytest.raises(UnknownSubscriptionError, match="no subscription has this id"):
        matcher.unsubscribe("nobody")


def test_that_unsubscribing_frees_the_id(matcher: Matcher, language: Language) -> None:
    subscribe(matcher, s=language.asks("pB"), t=language.asks("pB"))
    matcher.unsubscribe("s")
    assert "s" not in matcher
    assert ids(matcher.match(language.says("ApB"))) == ["t"]
    subscribe(matcher, s=language.asks("qB"))
    assert "s" in matcher
    assert ids(matcher.match(language.says("ApB", "AqB"))) == ["t", "s"]


def test_that_an_empty_matcher_matches_nothing(matcher: Matcher, language: Language) -> None:
    report = matcher.match(language.says("ApB"))
    assert len(report) == len(matcher) == 0
    assert report.counters.matched == 0
    assert report.publication == EX + "publication"


def test_that_an_empty_publication_matches_nothing(matcher: Matcher, language: Language) -> None:
    subscribe(matcher, s=language.asks("pB"))
    assert ids(matcher.match(publication())) == []


def test_that_matches_are_in_the_order_of_subscribing(matcher: Matcher, language: Language) -> None:
    subscribe(matcher, z=language.asks("pB"), a=language.asks("pB", "qC"), m=language.asks("pB"))
    assert ids(matcher.match(language.says("ApB", "AqC"))) == ["z", "a", "m"]


def test_that_matching_leaves_no_trace(matcher: Matcher, language: Language) -> None:
    subscribe(matcher, s=language.asks("pB", "qC"), t=language.asks("pA"))
    first = language.says("ApB", "AqC")
    before = (first.id, first.triples, first.derived)
    expected = normal(matcher.match(first))
    assert [id for id, *_ in expected] == ["s"]
    assert normal(matcher.match(language.says("ApB"))) == []
    assert normal(matcher.match(language.says("AqC"))) == []
    assert normal(matcher.match(first)) == expected
    assert (first.id, first.triples, first.derived) == before


def test_that_the_counters_count_the_matches(matcher: Matcher, language: Language) -> None:
    subscribe(matcher, s=language.asks("pB"), t=language.asks("pB"), u=language.asks("qB"))
    counters = matcher.match(language.says("ApB")).counters
    assert counters.matched == 2
    assert counters.candidates >= 1  # Equal subscriptions may share a candidate.


ASKING_FOR = {
    "property_variables": "SELECT * { ?x ?p :B }",
    "joins": "SELECT * { ?x :p ?y . ?y :q ?z FILTER(?z > 5) }",
    "terms": "SELECT * { ?x :p :B }",
    "presence": "SELECT * { ?x :p ?y }",
    "comparisons": "SELECT * { ?x :p ?y FILTER(?y > 5) }",
    "taxonomy": "SELECT * { ?x :p ?y FILTER(gm:descendantOf(?y, :C)) }",
    "text": 'SELECT * { ?x :p ?y FILTER(CONTAINS(?y, "a")) }',
    "full_sparql": "SELECT * { ?x :p ?y OPTIONAL { ?y :q ?z } }",
}
"""For each capability, a query that requires it."""


def test_queries_beyond_the_capabilities_are_refused(matcher: Matcher) -> None:
    for capability, query in ASKING_FOR.items():
        if getattr(matcher.capabilities, capability):
            subscribe(matcher, **{capability: query})
            assert capability in matcher, capability
        else:
            with pytest.raises(UnsupportedError):
                subscribe(matcher, **{capability: query})
            assert capability not in matcher, capability
    assert len(matcher) == sum(getattr(matcher.capabilities, name) for name in ASKING_FOR)


def test_that_entailment_is_as_declared(factory: Callable[[Ontology], Matcher]) -> None:
    matcher = factory(Ontology([(A, SUBCLASS, B)]))
    if not matcher.capabilities.terms:
        assert not matcher.capabilities.entailment
        return
    subscribe(matcher, s="SELECT ?x { ?x a :B }")
    matched = ids(matcher.match(publication((C, TYPE, A)))) == ["s"]
    assert matched is matcher.capabilities.entailment


# -- Generated subscriptions ------------------------------------------------------------------


def spoken_by(can: Capabilities) -> st.SearchStrategy[Scenario]:
    """Return a strategy for all subscriptions that a matcher claims to support."""
    if can.joins:
        return scenarios(
            Profile(
                variable_properties=can.property_variables,
                comparisons=can.comparisons,
                taxonomic=can.taxonomy,
                texts=can.text,
                everything=can.full_sparql,
            )
        )
    constraints = (
        (Interval, can.comparisons),
        (Equal, can.terms),
        (Below, can.taxonomy),
        (Present, can.presence),
    )
    return conjunctions([kind for kind, there in constraints if there])


@pytest.mark.parametrize("name", sorted(FACTORIES))
def test_that_history_does_not_matter(name: str) -> None:
    """Any history of adding and removing the same subscriptions gives the same matches.

    Matches are unique and in the order of subscribing, and enough cases are generated.
    """
    can = FACTORIES[name](Ontology()).capabilities
    count = Counter[str]()

    @settings(max_examples=max(25, settings().max_examples))
    @given(spoken_by(can), st.data())
    def holds(scenario: Scenario, data: st.DataObject) -> None:
        pairs = pairs_of(scenario.synonyms)
        ontology = Ontology(scenario.ontology, pairs, on_problem=lambda _: None)
        parsed = [PARSER.parse(str(n), to_sparql(q)) for n, q in enumerate(scenario.queries)]
        plain, shuffled = FACTORIES[name](ontology), FACTORIES[name](ontology)
        subscriptions = [s for s in parsed if _taken(plain, s)]
        order = data.draw(st.permutations(subscriptions))
        removed = [s for s in subscriptions if data.draw(st.booleans())]
        for subscription in order:
            shuffled.subscribe(subscription)
        for subscription in removed:
            shuffled.unsubscribe(subscription.id)
        gone = {s.id for s in removed}
        left = [s.id for s in order if s.id not in gone]
        expected = [by_id(plain.match(p)) for p in scenario.publications]
        for report, all_ in zip(shuffled.match_many(scenario.publications), expected, strict=True):
            assert by_id(report) == {id: all_[id] for id in all_.keys() - gone}
            assert ids(report) == [id for id in left if id in all_]
        for subscription in removed:
            shuffled.subscribe(subscription)
        assert [by_id(shuffled.match(p)) for p in scenario.publications] == expected
        count["generated"] += len(parsed)
        count["accepted"] += len(subscriptions)
        count["matched"] += sum(map(len, expected))

    holds()
    least = 0.5 if can.joins else 1.0
    assert count["accepted"] >= least * count["generated"], count
    assert count["matched"] >= 0.05 * count["accepted"], count


def by_id(report: MatchReport) -> dict[str, object]:
    return {id: rest for id, *rest in normal(report)}


def _taken(matcher: Matcher, subscription: Subscription) -> bool:
    """Subscribe, and return whether the matcher supports the subscription."""
    try:
        matcher.subscribe(subscription)
    except UnsupportedError:
        assert not matcher.capabilities.full_sparql
        return False
    return True


# -- The audit finds matchers that these suites miss ------------------------------------------


def modules() -> set[str]:
    """Return the module names of the algorithms."""
    classes = (*MATCHERS.values(), *ORDERS.values())
    return {where.partition(":")[0].rpartition(".")[2] for where in classes}


def test_that_every_algorithm_is_listed() -> None:
    published = ROOT / "graphmatch" / "published"
    files = {p.stem for folder in ("", "reconstructed") for p in (published / folder).glob("*.py")}
    assert modules() == files - {"__init__", "attribute_matcher", "graph_matcher", "jit"}


def test_that_every_algorithm_is_in_the_documentation() -> None:
    folder = ROOT / "docs" / "algorithms"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    assert {name for name in (*MATCHERS, *ORDERS) if f"`{name}`" not in listed} == set()
    assert {p.stem for p in folder.glob("*.md")} - {"README"} <= modules()

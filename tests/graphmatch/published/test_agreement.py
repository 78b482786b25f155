"""Every published algorithm gives the oracle's answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, Store

from graphmatch import SubscriptionParser
from graphmatch.matcher import Matcher, UnsupportedError
from graphmatch.published import MATCHERS, make
from graphmatch.published.attribute_matcher import (
    AttributeEvent,
    AttributeMatcher,
    Below,
    Conjunction,
    Equal,
    Interval,
    Present,
    Tally,
)
from graphmatch.published.naive import Naive
from graphmatch.report import MatchReport
from semantic import Ontology, Publication
from semantic.mapping import MappingFunction
from semantic.terms import Term, Triple
from semantic.vocabulary import EQUIVALENT_CLASS, EQUIVALENT_PROPERTY, SUBCLASS, SUBPROPERTY, TYPE
from tests.graphmatch.published.conjunctions import (
    ATTRIBUTES,
    CLASSES,
    DOMAIN,
    TREE,
    conjunctions,
)
from tests.oracle import (
    Answer,
    Entailment,
    Query,
    World,
    answer_in,
    to_sparql,
)
from tests.strategies import EX, Profile, Scenario, pairs_of, scenarios

Options: TypeAlias = dict[str, Any]

PARSER = SubscriptionParser()
P, Q, R, S, T = ATTRIBUTES
D = CLASSES[3]
KINDS = [Interval, Equal, Below, Present]
ATTRIBUTE_TREE: tuple[Triple, ...] = ((Q, SUBPROPERTY, P), (R, SUBPROPERTY, P))
HIERARCHY: tuple[Triple, ...] = (
    *TREE,
    (Q, SUBPROPERTY, P),
    (S, SUBPROPERTY, R),
    (S, SUBPROPERTY, Q),
    (D, SUBCLASS, CLASSES[2]),
    (CLASSES[6], EQUIVALENT_CLASS, CLASSES[4]),
    (T, EQUIVALENT_PROPERTY, EX["tee"]),
)
MORE: tuple[Triple, ...] = (
    *HIERARCHY[-4:],
    (R, SUBPROPERTY, P),
    (S, SUBPROPERTY, R),
    (T, SUBPROPERTY, P),
    (CLASSES[5], EQUIVALENT_CLASS, EX["Z"]),
)
"""Optional additional parents and synonyms."""


@st.composite
def concepts(draw: st.DrawFn) -> Scenario:
    """Draw trees with extra parents and synonyms, and instances in place of some classes."""
    more = draw(st.lists(st.sampled_from(MORE), unique=True))
    scenario = draw(conjunctions(KINDS, (*TREE, ATTRIBUTE_TREE[0], *more)))
    chosen = draw(st.lists(st.sampled_from(CLASSES), max_size=2))
    instances: dict[Term, Term] = {class_: EX[f"of-{class_.value[-1]}"] for class_ in chosen}

    def renamed(triple: Triple) -> tuple[Triple, ...]:
        subject, attribute, value = triple
        instance = instances.get(value)
        if instance is None:
            return (triple,)
        return (subject, attribute, instance), (instance, TYPE, value)

    publications = tuple(
        Publication.of(p.id, dict.fromkeys(new for t in p.triples for new in renamed(t)))
        for p in scenario.publications
    )
    return replace(scenario, publications=publications)


GRAPHS = scenarios(Profile(variable_properties=False), entailment="none")
"""Basic graph patterns with comparisons, string tests and taxonomy operators."""
RANGES = conjunctions([Interval])
DEXIN = ("dexin", "dexin-exclusive", "dexin-inclusive", "dexin-optimal")


def cases() -> Iterator[tuple[str, Options, st.SearchStrategy[Scenario]]]:
    """Return each algorithm with its options and the scenarios that it must solve."""
    yield from ((name, {}, GRAPHS) for name in ("gtopss", "ops", "mic", "ibroker"))
    for ontology in (TREE, HIERARCHY):
        yield "stopss", {}, conjunctions(KINDS, ontology)
    for cells in (1, 3, 10):
        yield "ctps", {"domain": DOMAIN, "cells": cells}, concepts()
    yield "opindex", {}, RANGES
    ranges: list[tuple[str, Options]] = [
        *(("tama", {"layers": layers}) for layers in (1, 3, 13)),
        *(("rein", {"buckets": buckets}) for buckets in (1, 4, 1000)),
        *(("gem", {"boxes": boxes}) for boxes in (1, 4, 50)),
        *((name, {"slots": 4}) for name in DEXIN),
        ("dexin", {"slots": 1}),
        ("dexin", {"slots": 1500}),
        ("htree", {}),
        ("htree", {"levels": 1, "cells": 1}),
        ("htree", {"levels": 2, "cells": 5, "copies": 4}),
        ("htree", {"levels": 5, "cells": 13, "copies": 5000}),
        ("htree", {"indexed": ATTRIBUTES[3:], "cells": 4}),
    ]
    for name, options in ranges:
        yield name, {"domain": DOMAIN, **options}, RANGES
    for capacity, atom in ((None, None), (1, 0.25), (2, 5), (1, 100)):
        options = {"capacity": capacity, "atom": atom} if capacity else {}
        yield "betree", {"domain": DOMAIN, **options}, conjunctions([Interval, Equal, Present])
    for index, attributes, collapse, successors in product(
        (0, 1, 2), (0, 5), (True, False), (True, False)
    ):
        options = {"index": ATTRIBUTES[:index], "attributes": ATTRIBUTES[:attributes]}
        options |= {"collapse": collapse, "successors": successors}
        yield "gryphon", options, conjunctions([Equal])
    for kinds in ([Interval], [Equal], [Interval, Interval, Equal, Present]):
        for order in ((), ATTRIBUTES[::-1]):
            yield "gryphon-general", {"attributes": order}, conjunctions(kinds)


def answers(report: MatchReport) -> dict[str, Answer]:
    return {
        match.subscription: Counter(frozenset(s.items()) for s in match.solutions)
        for match in report
    }


def expected(
    scenario: Scenario,
    publication: Publication,
    queries: dict[str, Query],
    entailment: Entailment = "none",
) -> dict[str, Answer]:
    """Return the oracle's answers from the publication, without the ontology's own triples."""
    world = World.of(
        scenario.ontology, publication.triples, scenario.synonyms, entailment=entailment
    )
    alone = replace(world, background=frozenset())
    found = {id: answer_in(query, alone) for id, query in queries.items()}
    return {id: answer for id, answer in found.items() if answer}


def test_the_cases_have_every_algorithm() -> None:
    assert {name for name, *_ in cases()} == MATCHERS.keys() - {"naive"}


@pytest.mark.parametrize(("name", "options", "strategy"), list(cases()))
@given(data=st.data())
def test_every_algorithm_agrees_with_the_oracle(
    name: str, options: Options, strategy: st.SearchStrategy[Scenario], data: st.DataObject
) -> None:
    """Compare first all subscriptions, then only some of them, then all again."""
    scenario = data.draw(strategy)
    pairs = pairs_of(scenario.synonyms)
    ontology = Ontology(scenario.ontology, pairs, on_problem=lambda _: None)
    entailment: Entailment = "rdfs" if name.startswith(("ctps", "stopss")) else "none"
    matcher = make(name, ontology, **options)
    queries: dict[str, Query] = {}
    for number, query in enumerate(scenario.queries):
        subscription = PARSER.parse(str(number), to_sparql(query))
        if subscription.exact:
            matcher.subscribe(subscription)
            queries[subscription.id] = query
        else:
            with pytest.raises(UnsupportedError):
                matcher.subscribe(subscription)
    event(f"{len(queries)} of {len(scenario.queries)} expressible")
    gone = [id for id in queries if data.draw(st.booleans())]
    compare(matcher, scenario, queries, entailment)
    for id in gone:
        matcher.unsubscribe(id)
    left = {id: query for id, query in queries.items() if id not in gone}
    compare(matcher, scenario, left, entailment)
    for id in reversed(gone):
        matcher.subscribe(PARSER.parse(id, to_sparql(queries[id])))
    compare(matcher, scenario, queries, entailment)


def compare(
    matcher: Matcher, scenario: Scenario, queries: dict[str, Query], entailment: Entailment
) -> None:
    for publication in scenario.publications:
        report = matcher.match(publication)
        found, right = answers(report), expected(scenario, publication, queries, entailment)
        event(f"matched: {min(len(right), 2)}")
        if not matcher.capabilities.exact:
            for id, answer in right.items():
                assert answer <= found[id]
            assert found.keys() <= queries.keys()
            continue
        assert found == right
        if isinstance(matcher, AttributeMatcher) and len({s for s, *_ in publication.triples}) == 1:
            # No candidate was rejected.
            assert report.counters.verified == report.counters.matched


# --- Mapping functions ----------------------------------------------------------------------------


FUNCTIONS = {
    "class": f"CONSTRUCT {{ ?x {S} {D} }} {{ ?x {R} ?n FILTER(?n < 5) }}",
    "more": f"CONSTRUCT {{ ?x {R} ?more }} {{ ?x {T} ?n BIND(?n + 1 AS ?more) }}",
}


@given(conjunctions(KINDS, HIERARCHY))
def test_stopss_agrees_if_functions_feed_each_other(scenario: Scenario) -> None:
    """The oracle lacks mapping functions, but `Naive` has them, and evaluates all as SPARQL."""
    functions = [MappingFunction(name, text) for name, text in FUNCTIONS.items()]
    ontology = Ontology(scenario.ontology, mapping=functions)
    stopss, naive = make("stopss", ontology), Naive(ontology)
    for number, query in enumerate(scenario.queries):
        for matcher in (stopss, naive):
            matcher.subscribe(PARSER.parse(str(number), to_sparql(query)))
    for publication in scenario.publications:
        found, right = (answers(one.match(publication)) for one in (stopss, naive))
        # The naive matcher's store has one literal for several with equal values.
        assert {id: by_value(answer) for id, answer in found.items()} == {
            id: set(answer) for id, answer in right.items()
        }


def by_value(answer: Answer) -> set[frozenset[tuple[str, Term]]]:
    """Return an answer with literals as the naive matcher's store returns them."""
    return {frozenset((name, stored(term)) for name, term in solution) for solution in answer}


def stored(term: Term) -> Term:
    store = Store()
    store.add(Quad(NamedNode("urn:s"), NamedNode("urn:p"), term))
    return next(iter(store)).object


# --- Many subscriptions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["betree", "ctps", "gem", "gryphon-general", "htree", "opindex", "rein", *DEXIN]
)
def test_many_subscriptions_match_as_each_alone(name: str) -> None:
    """Cells hold several subscriptions, and arrays grow."""
    options: Options = {} if name in ("gryphon-general", "opindex") else {"domain": DOMAIN}
    made = make(name, Ontology(), **options)
    assert isinstance(made, AttributeMatcher)
    random = Random(5)
    rows: list[dict[NamedNode, Interval]] = []
    for number in range(300):
        asked = {*[P] * (number < 100), *random.sample([P, Q, R], random.randint(1, 3))}
        ends = {attribute: sorted(random.choices(range(11), k=2)) for attribute in sorted(asked)}
        rows.append(
            {
                attribute: Interval(
                    random.choice([low, low, -inf]), random.choice([high, high, inf])
                )
                for attribute, (low, high) in ends.items()
            }
        )
        made.add(Conjunction(str(number), P, (rows[-1],)))
    for _ in range(50):
        numbers = {a: random.uniform(-1, 11) for a in (P, Q, R) if random.random() < 0.9}
        right = [
            number
            for number, row in enumerate(rows)
            if all(a in numbers and i.holds(numbers[a]) for a, i in row.items())
        ]
        terms = {attribute: Literal(number) for attribute, number in numbers.items()}
        assert sorted(made.matched(AttributeEvent.of(terms), Tally())) == right

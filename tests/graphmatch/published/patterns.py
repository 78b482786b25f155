"""Graph algorithms, compared with the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import event
from hypothesis import strategies as st

from graphmatch import SubscriptionParser
from graphmatch.matcher import Matcher, UnsupportedError
from graphmatch.report import MatchReport
from semantic import Ontology
from tests.oracle import Answer, Query, World, answer_in, to_sparql
from tests.strategies import Profile, Scenario, pairs_of

PARSER = SubscriptionParser()
GRAPHS = Profile(variable_properties=False)
"""Basic graph patterns with comparisons, string tests and taxonomy operators."""


def answers(report: MatchReport) -> dict[str, Answer]:
    return {
        match.subscription: Counter(frozenset(s.items()) for s in match.solutions)
        for match in report
    }


def agree(make: Callable[[Ontology], Matcher], scenario: Scenario, data: st.DataObject) -> None:
    """Compare a matcher with the oracle: first, without some subscriptions, and with them again.

    The matcher knows the ontology only as a taxonomy, so ontology triples match no pattern.
    """
    pairs = pairs_of(scenario.synonyms)
    matcher = make(Ontology(scenario.ontology, pairs, on_problem=lambda _: None))
    taken: dict[str, Query] = {}
    parsed = [PARSER.parse(str(n), to_sparql(query)) for n, query in enumerate(scenario.queries)]
    for subscription, query in zip(parsed, scenario.queries, strict=True):
        if subscription.exact:
            matcher.subscribe(subscription)
            taken[subscription.id] = query
        else:
            with pytest.raises(UnsupportedError):
                matcher.subscribe(subscription)
    event(f"{len(taken)} of {len(scenario.queries)} expressible")
    gone = [s for s in parsed if s.id in taken and data.draw(st.booleans())]
    _check(matcher, scenario, taken)
    for subscription in gone:
        matcher.unsubscribe(subscription.id)
    left = taken.keys() - {subscription.id for subscription in gone}
    _check(matcher, scenario, {id: taken[id] for id in left})
    for subscription in reversed(gone):
        matcher.subscribe(subscription)
    _check(matcher, scenario, taken)


def _check(matcher: Matcher, scenario: Scenario, queries: dict[str, Query]) -> None:
    for publication in scenario.publications:
        world = World.of(
            scenario.ontology, publication.triples, scenario.synonyms, entailment="none"
        )
        alone = replace(world, background=frozenset())
        found = {id: answer_in(query, alone) for id, query in queries.items()}
        right = {id: answer for id, answer in found.items() if answer}
        event(f"matched: {min(len(right), 2)}")
        assert answers(matcher.match(publication)) == right

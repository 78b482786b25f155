"""W3C's SPARQL 1.0 evaluation tests: query = subscription, data = publication, entailment off."""

from __future__ import annotations

import pytest

from graphmatch import Engine
from graphmatch.matcher import Matcher
from graphmatch.published.naive import Naive
from semantic import Ontology, SubscriptionParser, read_publications
from tests.conformance.w3c import SUITES, EvaluationTest, read_manifest, read_result, same_rows

DIRECTORIES = (
    "basic",
    "triple-match",
    "open-world",
    "bnode-coreference",
    "ask",
    "bound",
    "optional",
    "expr-ops",
    "expr-equals",
    "regex",
    "distinct",
)
EXPECTED_TESTS = 127
"""How many tests the eleven directories hold."""

_ONE_GRAPH = "it asks several named graphs: a publication is one graph"
_NO_PATTERN = "no triple pattern is necessary, so every publication would match: it is refused"
_ZONES = "the evaluator calls a date with a zone and one without unequal; the test, undecided"

IMPOSSIBLE: dict[str, str] = {
    "optional/dawg-optional-complex-2": _ONE_GRAPH,
    "optional/dawg-optional-complex-3": _ONE_GRAPH,
    "optional/dawg-optional-complex-4": _ONE_GRAPH,
    "expr-ops/add-literals": _NO_PATTERN,
    "open-world/date-2": _ZONES,
}
"""Test to the reason why a standing query cannot pass it."""


def collect() -> list[EvaluationTest]:
    return [
        test
        for directory in DIRECTORIES
        if (SUITES / "sparql10" / directory).is_dir()
        for test in read_manifest(SUITES / "sparql10" / directory / "manifest.ttl")
    ]


TESTS = collect()
needs_suites = pytest.mark.skipif(not SUITES.is_dir(), reason="the W3C suites are not here")


@needs_suites
def test_that_all_suites_are_read() -> None:
    assert len(TESTS) == EXPECTED_TESTS
    assert set(IMPOSSIBLE) <= {test.name for test in TESTS}


@pytest.fixture(params=["engine", "naive"])
def matcher(request: pytest.FixtureRequest) -> Matcher:
    if request.param == "engine":
        return Engine(entailment="none")
    return Naive(Ontology(), entailment=False)


def cases() -> list[object]:
    return [
        pytest.param(
            test,
            id=test.name,
            marks=[pytest.mark.xfail(reason=IMPOSSIBLE[test.name], strict=True)]
            if test.name in IMPOSSIBLE
            else [],
        )
        for test in TESTS
    ]


@needs_suites
@pytest.mark.parametrize("case", cases())
def test_same_solutions(case: EvaluationTest, matcher: Matcher) -> None:
    matcher.subscribe(SubscriptionParser().parse("s", case.query_text()))
    expected = read_result(case.result)
    assert case.data is not None
    publications = list(read_publications(case.data, cut="document", base_iri=case.data.as_uri()))
    matches = [match for p in publications for match in matcher.match(p)]
    if isinstance(expected, bool):
        assert bool(matches) is expected
    else:
        found = [solution for match in matches for solution in match.solutions]
        assert same_rows(found, expected)

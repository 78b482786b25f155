"""W3C's SPARQL 1.0 evaluation tests: query = subscription, data = publication, entailment off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from pyoxigraph import Dataset

from graphmatch import Engine, SubscriptionParser
from graphmatch.matcher import Matcher
from graphmatch.published.naive import Naive
from semantic import Ontology, read_publications
from semantic.terms import Term
from tests.conformance.w3c import (
    SUITES,
    EvaluationTest,
    canonical,
    read_manifest,
    read_result,
    same_order,
    same_rows,
)

EXPECTED_TESTS = 283
"""Number of evaluation tests."""

_ONE_GRAPH = "it asks several named graphs: a publication is one graph"
_NO_PATTERN = "no triple pattern is necessary, so every publication would match: it is refused"
_ZONES = "the evaluator calls a date with a zone and one without unequal; the test, undecided"
_FROM = "FROM names the data: a subscription's data are the publications"

IMPOSSIBLE: dict[str, str] = {
    "optional/dawg-optional-complex-2": _ONE_GRAPH,
    "optional/dawg-optional-complex-3": _ONE_GRAPH,
    "optional/dawg-optional-complex-4": _ONE_GRAPH,
    "expr-ops/add-literals": _NO_PATTERN,
    "open-world/date-2": _ZONES,
    "algebra/join-combo-2": _ONE_GRAPH,
    "expr-builtin/case-insensitive-booleans": _NO_PATTERN,
    **{
        f"graph/dawg-graph-{n}": _ONE_GRAPH
        for n in ["02", "03", "04", "06", "07", "08", "09", "10b", "11"]
    },
    **{f"graph/graph-{name}": _ONE_GRAPH for name in ("variable-join", "optional")},
    **{
        f"graph/graph-{name}": _NO_PATTERN
        for name in ("empty", "exist", "not-exist", "variable-scope")
    },
    **{f"dataset/dawg-dataset-{n:02}": _FROM for n in (*range(1, 9), 11)},
    **{f"dataset/dawg-dataset-{n}": _FROM for n in ("09b", "10b", "12b")},
}
"""For each test, the reason why a standing query cannot pass it."""


def collect() -> list[EvaluationTest]:
    manifests = sorted((SUITES / "sparql10").glob("*/manifest.ttl"))
    return [test for manifest in manifests for test in read_manifest(manifest)]


TESTS = collect()


@pytest.mark.data
def test_that_all_suites_are_read() -> None:
    assert len(TESTS) == EXPECTED_TESTS
    assert set(IMPOSSIBLE) <= {test.name for test in TESTS}


def engine() -> Matcher:
    return Engine(entailment="none")


def naive() -> Matcher:
    return Naive(Ontology(), entailment=False)


def marks(name: str) -> list[pytest.MarkDecorator]:
    reason = IMPOSSIBLE.get(name)
    return [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]


def cases() -> list[object]:
    return [
        pytest.param(test, matcher, id=f"{matcher.__name__}-{test.name}", marks=marks(test.name))
        for matcher in (engine, naive)
        for test in TESTS
    ]


@pytest.mark.data
@pytest.mark.parametrize(("case", "made"), cases())
def test_same_solutions(case: EvaluationTest, made: Callable[[], Matcher]) -> None:
    matcher = made()
    matcher.subscribe(SubscriptionParser().parse("s", case.query_text()))
    expected = read_result(case.result)
    assert case.data is not None
    publications = list(
        read_publications(case.data, split_by="document", base_iri=case.data.as_uri())
    )
    matches = [match for p in publications for match in matcher.match(p)]
    if isinstance(expected, bool):
        assert bool(matches) is expected
        return
    if isinstance(expected, Dataset):
        assert canonical(triple for match in matches for triple in match.graph or ()) == expected
        return
    found = [solution for match in matches for solution in match.solutions]
    if case.lax:
        assert {*map(_row, found)} == {*map(_row, expected)}
        assert not Counter(map(_row, found)) - Counter(map(_row, expected))
    else:
        assert same_rows(found, expected)
        assert same_order(found, expected) or not case.name.startswith("sort/")


def _row(solution: Mapping[str, Term]) -> frozenset[tuple[str, Term]]:
    return frozenset(solution.items())

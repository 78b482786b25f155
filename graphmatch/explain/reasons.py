"""Explanations of an engine's reports: why subscriptions match, or which condition fails.

Each query is evaluated again, on the publication as it was matched, or with all derived triples if
the subscription does not match.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from graphmatch import _native
from graphmatch.enrichment import EnrichedPublication, Enricher
from graphmatch.explain.evidence import Evidence, evidence
from graphmatch.explain.index_plan import IndexPlan
from graphmatch.explain.provenance import Provenance
from graphmatch.operators.evaluator import OperatorEvaluator
from graphmatch.report import CoreMatches, MatchReport
from graphmatch.subscription import Query, Subscription
from semantic.errors import GraphMatchError, OnProblem, Place, Problem, Severity
from semantic.limits import Limits
from semantic.publication import Publication

if TYPE_CHECKING:
    from graphmatch.explain.explanation import Explanation


def explained(
    plan: IndexPlan,
    report: MatchReport,
    publication: Publication,
    enricher: Enricher,
    operators: OperatorEvaluator,
    now: datetime,
    language: str,
) -> Explanation:
    """Explain why a report contains a match of a subscription, or why not; see `Engine.explain`.

    Raises
    ------
    GraphMatchError
        If the query of the subscription cannot be evaluated.
    """
    from graphmatch.explain.explanation import explain

    matches, id = report.matches, plan.subscription.id
    assert isinstance(matches, CoreMatches)
    if why := dict(matches.failed).get(id):
        raise GraphMatchError(_unexplained(id, publication.id, why))
    place = next((n for n, one in enumerate(matches.subscriptions) if one == id), None)
    try:
        if place is not None:
            match = matches[place]
            enricher, enriched = matches.enriched()
            evaluation = matches.found.evaluation
        else:
            match = None
            enriched = enricher.enrich(publication, now)
            evaluation = partial(enricher.evaluation, enriched.publication, now)
        query = plan.subscription.query
        found = _evaluation(evaluation, enriched, publication, [query], report, operators)
        explanation = explain(plan, match, found, Provenance(enricher, enriched, language))
    except _native.EvaluationFailedError as error:
        raise GraphMatchError(_unexplained(id, publication.id, str(error))) from error
    return replace(explanation, calls=operators.calls_of(plan.subscription, report.calls))


def evidence_of(
    report: MatchReport,
    matches: CoreMatches,
    subscriptions: Collection[str] | None,
    core: _native.Core,
    operators: OperatorEvaluator,
    limits: Limits,
    on_problem: OnProblem,
    language: str,
) -> Mapping[str, tuple[Evidence, ...]]:
    """Return the evidence of a report's matches by subscription id; see `Engine.evidence`.

    If the publication is too large or a query fails, call `on_problem`; the evidence is empty.

    Raises
    ------
    GraphMatchError
        If another engine made the report, or it can no longer be read.
    """
    if matches.core is not core:
        what, remedy = "another engine made this report", "Ask that engine for the evidence."
        raise GraphMatchError(Problem(what, Place(report.publication), remedy))
    try:
        ids = matches.subscriptions
        places = [n for n, id in enumerate(ids) if subscriptions is None or id in subscriptions]
        found: dict[str, tuple[Evidence, ...]] = {ids[place]: () for place in places}
        if not places:
            return found
        enricher, enriched = matches.enriched()
        if report.counters.triples > limits.reason_triples:
            what = f"no reasons: the publication has more than {limits.reason_triples:,} triples"
            remedy = "Raise the limit `reason_triples`, or explain one subscription."
            on_problem(Problem(what, Place(report.publication), remedy, Severity.WARNING))
            return found
        queries = [matches.found.query(place) for place in places]
        publication = report.read() if operators.all else None
        evaluation = _evaluation(
            matches.found.evaluation, enriched, publication, queries, report, operators
        )
    except _native.EvaluationFailedError as error:
        remedy = "Ask for the evidence right after the match, or raise the limit."
        problem = Problem(f"no reasons: {error}", Place(report.publication), remedy)
        raise GraphMatchError(problem) from error
    provenance = Provenance(enricher, enriched, language)
    for place, query in zip(places, queries, strict=True):
        one = Subscription.of(ids[place], query)
        try:
            match = next(matches.made(place, place + 1, 1))
            found[one.id] = tuple(evidence(one, match, evaluation, provenance))
        except _native.EvaluationFailedError as error:
            on_problem(_unexplained(one.id, report.publication, str(error)))
    return found


def _evaluation(
    evaluation: Callable[[_native.Calls], _native.Evaluation],
    enriched: EnrichedPublication,
    publication: Publication | None,
    queries: Iterable[Query],
    report: MatchReport,
    operators: OperatorEvaluator,
) -> _native.Evaluation:
    """Return an evaluation of an enriched publication that has all operator calls of the queries.

    Reuse the calls of `report`, and make the missing ones.
    """
    session = operators.begin(publication, enriched.publication.source.source)
    session.repeat(report.calls)
    found = evaluation(session.native)
    while any(operators.miss(session, found, query) for query in queries):
        found = evaluation(session.native)
    return found


def _unexplained(id: str, publication: str, why: str) -> Problem:
    """Return the problem of a subscription that cannot be explained: its evaluation failed."""
    remedy = "Simplify the query or the publication, or raise the limit."
    what = f"{id}: cannot be explained: {why}"
    return Problem(what, Place(publication), remedy, Severity.WARNING)

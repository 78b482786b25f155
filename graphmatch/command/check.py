"""``graphmatch check``: the index plan of each subscription, and its probable mistakes."""

from __future__ import annotations

from collections.abc import Sequence

from graphmatch.command.options import EngineOptions, SubscriptionOptions, Verbosity
from graphmatch.command.session import REFUSED, Session
from graphmatch.console import styled
from graphmatch.explain.evidence import in_ntriples
from graphmatch.explain.index_plan import UNINDEXED, IndexPlan
from graphmatch.lint import Linter, LintWarning
from graphmatch.subscription import Subscription
from semantic.errors import plural


def run(
    subscription_options: SubscriptionOptions,
    engine_options: EngineOptions,
    verbosity: Verbosity,
    *,
    json: bool,
    strict: bool,
) -> int:
    """Print each subscription's index plan, calls and lint warnings; return the exit status.

    Calls are those of operators. If `strict`, warnings make the status 1.
    """
    with Session(verbosity) as session:
        engine = session.engine(engine_options)
        session.take_in(engine, subscription_options)
        linter, warnings = Linter(engine.ontology), 0
        for subscription in engine.subscriptions:
            plan, warned = engine.index_plan(subscription.id), linter.lint(subscription)
            calls = engine.operator_calls(subscription.id)
            warnings += len(warned)
            if json:
                session.out.write_json(_json(subscription, plan, warned, calls))
                continue
            session.out.print(
                styled((f"✓ {subscription.id}", "green"), "  ", (subscription.comment, "dim"))
            )
            for line in (*plan.describe(engine.ontology.prefixes), *calls):
                session.out.print(styled(f"    {line}"))
            for found in warned:
                text = f"  {found.code}: {found.what}. {found.remedy}"
                session.out.print(styled(("    warning", "yellow"), text))
        session.show_warnings()
        session.note(
            f"{len(engine)} accepted, {session.refused} refused, {plural(warnings, 'warning')}"
        )
        return REFUSED if strict and warnings else session.status


def _json(
    subscription: Subscription, plan: IndexPlan, warned: Sequence[LintWarning], calls: Sequence[str]
) -> dict[str, object]:
    return {
        "id": subscription.id,
        "query": subscription.query.text,
        "form": subscription.form.value,
        "indexed": [
            {
                "patterns": [in_ntriples(pattern) for pattern in entry.patterns],
                "filters": [filter_.write({}) for filter_ in entry.filters],
            }
            for entry in plan.entries
        ],
        "unindexed": [UNINDEXED] if plan.unindexed else [],
        "evaluated": list(plan.residual),
        "calls": list(calls),
        "warnings": [
            {"code": found.code, "what": found.what, "remedy": found.remedy} for found in warned
        ],
    }

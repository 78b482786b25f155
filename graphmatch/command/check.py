"""``graphmatch check``: what becomes of each subscription, and what is probably wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.text import Text

from graphmatch.command.console import plural, styled
from graphmatch.command.session import REFUSED, Knowing, Session
from graphmatch.explain.filing import Filed
from graphmatch.lint import Linter, Warned
from semantic.errors import GraphMatchError


def run(subscriptions: Sequence[Path], knowing: Knowing, *, json: bool, strict: bool) -> int:
    """Check, show, sum up; return the exit status.

    Parameters
    ----------
    strict
        Whether the status of warnings is that of something refused.
    """
    session = Session()
    try:
        engine = session.engine(knowing)
    except GraphMatchError as error:
        return session.fail(error)
    session.subscribe(engine, subscriptions)
    linter, skeletons, warnings = Linter(engine.ontology), set(), 0
    for subscription in engine.subscriptions:
        skeletons.add(subscription.query.skeleton)
        filed, warned = engine.filing(subscription.id), linter.lint(subscription)
        warnings += len(warned)
        if json:
            session.out.write_json(_json(filed, warned))
            continue
        for line in _text(filed, warned, engine.ontology.prefixes):
            session.out.print(line)
    session.err.print(
        f"{len(engine)} accepted, {session.refused} refused, {plural(warnings, 'warning')}, "
        f"{plural(len(skeletons), 'different query', 'different queries')} "
        "but for their constants"
    )
    return REFUSED if strict and warnings else session.status


def _text(filed: Filed, warned: Sequence[Warned], prefixes: Mapping[str, str]) -> Iterator[Text]:
    subscription = filed.subscription
    yield styled((f"✓ {subscription.id}", "green"), "  ", (subscription.comment, "dim"))
    for line in filed.describe(prefixes):
        yield styled(f"    {line}")
    for found in warned:
        yield styled(("    warning", "yellow"), f"  {found.code}: {found.what}. {found.remedy}")


def _json(filed: Filed, warned: Sequence[Warned]) -> dict[str, object]:
    return {
        "id": filed.subscription.id,
        "form": filed.subscription.form.value,
        "indexed": [
            {
                "patterns": [" ".join(map(str, pattern)) for pattern in entry.patterns],
                "filters": [filter_.write({}) for filter_ in entry.filters],
            }
            for entry in filed.entries
        ],
        "unindexed": list(filed.unindexed),
        "evaluated": list(filed.checks),
        "warnings": [
            {"code": found.code, "what": found.what, "remedy": found.remedy} for found in warned
        ],
    }

"""``graphmatch check``: what becomes of each subscription."""

from __future__ import annotations

import json as json_
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from graphmatch.command.session import Session
from graphmatch.engine import Engine
from graphmatch.explain import describe_filing
from semantic.errors import GraphMatchError


def run(
    subscriptions: Sequence[Path], ontologies: Sequence[Path], entailment: str, *, json: bool
) -> int:
    """Check, show, sum up; return the exit status."""
    session = Session()
    try:
        engine = session.engine(ontologies, entailment=entailment)
    except GraphMatchError as error:
        return session.fail(error)
    session.subscribe(engine, subscriptions)
    for subscription in engine.subscriptions:
        line = _json(engine, subscription.id) if json else _text(engine, subscription.id)
        session.out.print(line, markup=not json)
    session.err.print(
        f"{len(engine)} accepted, {session.refused} refused, "
        f"{engine.parser.skeletons} different queries but for their constants"
    )
    return session.status


def _text(engine: Engine, id: str) -> str:
    filed = engine.filing(id)
    lines = [f"[green]✓ {escape(id)}[/]  [dim]{escape(filed.subscription.comment)}[/]"]
    lines += [f"    {escape(line)}" for line in describe_filing(filed, engine.ontology.prefixes)]
    return "\n".join(lines)


def _json(engine: Engine, id: str) -> str:
    filed = engine.filing(id)
    row = {
        "id": id,
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
    }
    return json_.dumps(row, ensure_ascii=False)

"""``graphmatch check``: what becomes of each subscription."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from graphmatch.command.console import plural, styled
from graphmatch.command.session import Knowing, Session
from graphmatch.engine import Engine
from semantic.errors import GraphMatchError


def run(subscriptions: Sequence[Path], knowing: Knowing, *, json: bool) -> int:
    """Check, show, sum up; return the exit status."""
    session = Session()
    try:
        engine = session.engine(knowing)
    except GraphMatchError as error:
        return session.fail(error)
    session.subscribe(engine, subscriptions)
    skeletons = set()
    for subscription in engine.subscriptions:
        skeletons.add(subscription.query.skeleton)
        if json:
            session.out.write_json(_json(engine, subscription.id))
            continue
        for line in _text(engine, subscription.id):
            session.out.print(line)
    session.err.print(
        f"{len(engine)} accepted, {session.refused} refused, "
        f"{plural(len(skeletons), 'different query', 'different queries')} "
        "but for their constants"
    )
    return session.status


def _text(engine: Engine, id: str) -> Iterator[Text]:
    filed = engine.filing(id)
    yield styled((f"✓ {id}", "green"), "  ", (filed.subscription.comment, "dim"))
    for line in filed.describe(engine.ontology.prefixes):
        yield styled(f"    {line}")


def _json(engine: Engine, id: str) -> dict[str, object]:
    filed = engine.filing(id)
    return {
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

"""``graphmatch check``: what becomes of each subscription."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pyoxigraph import NamedNode
from rich.text import Text

from graphmatch.command.console import plural, styled
from graphmatch.command.options import Subscribing
from graphmatch.command.session import Knowing, Session
from graphmatch.engine import Engine
from semantic.errors import GraphMatchError
from semantic.terms import compact


def run(subscribing: Subscribing, knowing: Knowing, *, json: bool, sparql: bool) -> int:
    """Check, show, sum up; return the exit status."""
    session = Session()
    try:
        engine = session.engine(knowing)
        session.take_in(engine, subscribing)
    except GraphMatchError as error:
        return session.fail(error)
    skeletons = set()
    for subscription in engine.subscriptions:
        skeletons.add(subscription.query.skeleton)
        if json:
            session.out.write_json(_json(engine, subscription.id))
            continue
        for line in _text(engine, subscription.id):
            session.out.print(line)
        if sparql:
            text = _compacted(subscription.query.text, engine.ontology.prefixes)
            session.out.print(styled((f"    {text}", "dim")))
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


def _compacted(query: str, prefixes: Mapping[str, str]) -> str:
    """Write the IRIs of a query by their prefixes; what stands in a text is left as it is."""

    def short(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else f" {compact(NamedNode(found[1]), prefixes)}"

    return re.sub(r'"(?:[^"\\]|\\.)*"|\s*<([^<>\s"]*:[^<>\s"]*)>', short, query)


def _json(engine: Engine, id: str) -> dict[str, object]:
    filed = engine.filing(id)
    return {
        "id": id,
        "query": filed.subscription.query.text,
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

"""``graphmatch check``: what becomes of each subscription, and what is probably wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pyoxigraph import NamedNode
from rich.text import Text

from graphmatch.command.console import plural, styled
from graphmatch.command.options import Knowing, Subscribing, Verbosity
from graphmatch.command.session import REFUSED, Session
from graphmatch.explain.indexing import Filed
from graphmatch.lint import Linter, Warned
from semantic.terms import compact


def run(
    subscribing: Subscribing,
    knowing: Knowing,
    verbosity: Verbosity,
    *,
    json: bool,
    sparql: bool,
    strict: bool,
) -> int:
    """Check, show, sum up; return the exit status."""
    with Session(verbosity) as session:
        engine = session.engine(knowing)
        session.take_in(engine, subscribing)
        linter, skeletons, warnings = Linter(engine.ontology), set(), 0
        for subscription in engine.subscriptions:
            skeletons.add(subscription.query.skeleton)
            filed, warned = engine.filing(subscription.id), linter.lint(subscription)
            warnings += len(warned)
            if json:
                session.out.write_json(_json(filed, warned, engine.calls(subscription.id)))
                continue
            calls = engine.calls(subscription.id)
            for line in _text(filed, warned, calls, engine.ontology.prefixes):
                session.out.print(line)
            if sparql:
                text = _compacted(subscription.query.text, engine.ontology.prefixes)
                session.out.print(styled((f"    {text}", "dim")))
        session.show_warnings()
        session.note(
            f"{len(engine)} accepted, {session.refused} refused, {plural(warnings, 'warning')}, "
            f"{plural(len(skeletons), 'different query', 'different queries')} "
            "but for their constants"
        )
        return REFUSED if strict and warnings else session.status


def _text(
    filed: Filed, warned: Sequence[Warned], calls: Sequence[str], prefixes: Mapping[str, str]
) -> Iterator[Text]:
    subscription = filed.subscription
    yield styled((f"✓ {subscription.id}", "green"), "  ", (subscription.comment, "dim"))
    for line in filed.describe(prefixes):
        yield styled(f"    {line}")
    for line in calls:
        yield styled(f"    {line}")
    for found in warned:
        yield styled(("    warning", "yellow"), f"  {found.code}: {found.what}. {found.remedy}")


def _compacted(query: str, prefixes: Mapping[str, str]) -> str:
    """Write the IRIs of a query by their prefixes; what stands in a text is left as it is."""

    def short(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else f" {compact(NamedNode(found[1]), prefixes)}"

    return re.sub(r'"(?:[^"\\]|\\.)*"|\s*<([^<>\s"]*:[^<>\s"]*)>', short, query)


def _json(filed: Filed, warned: Sequence[Warned], calls: Sequence[str]) -> dict[str, object]:
    return {
        "id": filed.subscription.id,
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
        "calls": list(calls),
        "warnings": [
            {"code": found.code, "what": found.what, "remedy": found.remedy} for found in warned
        ],
    }

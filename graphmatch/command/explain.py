"""``graphmatch explain``: why, and why not."""

from __future__ import annotations

import json as json_
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from graphmatch.command.filter import Reading
from graphmatch.command.session import FAILED, Session
from graphmatch.engine import Engine
from graphmatch.explain import Explanation
from graphmatch.matcher import UnknownError
from semantic.cut import Cut
from semantic.errors import GraphMatchError


def run(
    subscription: str,
    reading: Reading,
    subscriptions: Sequence[Path],
    ontologies: Sequence[Path],
    entailment: str,
    *,
    publication: str | None,
    json: bool,
) -> int:
    """Explain one subscription for each publication; return the exit status."""
    session = Session()
    try:
        engine = session.engine(ontologies, entailment=entailment)
        reading.checked()
        session.subscribe(engine, subscriptions)
        if subscription not in engine:
            raise UnknownError(subscription)
    except GraphMatchError as error:
        return session.fail(error)
    shown = _explain_all(session, engine, subscription, reading, publication, json=json)
    if not shown:
        wanted = f" with the id {publication}" if publication is not None else ""
        session.err.print(f"[red]error[/]    no publication{escape(wanted)} was read")
        return FAILED
    return session.status


def _explain_all(
    session: Session,
    engine: Engine,
    subscription: str,
    reading: Reading,
    wanted: str | None,
    *,
    json: bool,
) -> int:
    shown = 0
    for publication in session.publications(
        reading.sources, cut=Cut(reading.cut), format=reading.format, base=reading.base
    ):
        if wanted is None or publication.id == wanted:
            explanation = engine.explain(subscription, publication)
            text = _json(explanation) if json else str(explanation)
            session.out.print(text, markup=False)
            shown += 1
    return shown


def _json(explanation: Explanation) -> str:
    row = {
        "subscription": explanation.subscription,
        "publication": explanation.publication,
        "matches": explanation.match is not None,
        "filing": explanation.filing,
        "evidence": [
            {
                "pattern": evidence.pattern.write({}),
                "triple": evidence.triple and " ".join(map(str, evidence.triple)),
                "because": evidence.reasons,
            }
            for evidence in explanation.evidence
        ],
        "failure": explanation.failure or None,
        "nearest": [" ".join(map(str, triple)) for triple in explanation.nearest],
    }
    return json_.dumps(row, ensure_ascii=False)

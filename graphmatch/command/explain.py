"""``graphmatch explain``: why a subscription matches, or does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial

from graphmatch.command.filter import check
from graphmatch.command.options import EngineOptions, InputOptions, SubscriptionOptions, Verbosity
from graphmatch.command.session import Session
from graphmatch.console import reader_language
from semantic.errors import GraphMatchError, Place, Problem, listed
from semantic.html import visible
from semantic.publication import Publication
from semantic.reading import SplitBy, read_publications


def run(
    subscription: str,
    input_options: InputOptions,
    subscription_options: SubscriptionOptions,
    engine_options: EngineOptions,
    verbosity: Verbosity,
    *,
    publication: str | None,
    json: bool,
) -> int:
    """Print why a subscription matches publications or fails; return the exit status.

    `publication` is the id or link of the publications to explain; ``None`` means each.
    """
    with Session(verbosity) as session:
        check(input_options)
        engine = session.subscribed_engine(engine_options, subscription_options)
        if subscription not in engine:
            known = [one.id for one in engine.subscriptions]
            near = get_close_matches(subscription, known, 1)
            what = "no subscription has this id"
            remedy = f"Is {near[0]} meant?" if near else f"Known ids: {listed(known, 5)}."
            raise GraphMatchError(Problem(what, Place(subscription), remedy))
        found = False
        for each in _publications(session, input_options):
            if publication not in (None, each.id, each.link):
                continue
            found = True
            explanation = engine.explain(subscription, each, reader_language(os.environ))
            if json:
                session.out.write_json(explanation.as_json())
                continue
            session.out.print(visible(str(explanation), lines=True))
        if not found:
            what, remedy = "no publication was read", "Give a file with one."
            if publication is not None:
                what = f"no publication has the id or link {publication}"
                remedy = "Leave --publication out to see them all."
            sources = (*(input_options.publications or ()), *(input_options.events or ()))
            raise GraphMatchError(Problem(what, Place(" ".join(sources)), remedy))
        return session.status


def _publications(session: Session, input_options: InputOptions) -> Iterator[Publication]:
    """Yield the publications to read, then the events."""
    read = partial(
        read_publications,
        split_by=SplitBy(input_options.split_by),
        format=input_options.format,
        base_iri=input_options.base,
        on_problem=session.report,
    )
    yield from session.read(input_options.publications or (), read)
    yield from session.events(input_options.events or ())

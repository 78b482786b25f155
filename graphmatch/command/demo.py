"""``graphmatch demo``: the main job on the samples."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from graphmatch.command.console import plural
from graphmatch.command.filter import Reading, filter_all
from graphmatch.command.session import Knowing, Session
from semantic.errors import GraphMatchError, InputError, Place, Problem


def run(folder: Path) -> int:
    """Filter the samples in a folder; return the exit status."""
    session = Session()
    try:
        ontologies = sorted((folder / "ontologies").glob("*.*"))
        if not ontologies:
            what = "there are no samples: no `ontologies` folder"
            remedy = "Run it in a clone of the project, or name the clone's folder."
            return session.fail(InputError(Problem(what, Place(str(folder)), remedy)))
        engine = session.engine(Knowing(ontologies))
    except GraphMatchError as error:
        return session.fail(error)
    data = folder / "data"
    session.subscribe(engine, [data / "subscriptions", data / "subscriptions.jsonl"])
    sources = [str(data / "feeds"), str(data / "publications")]
    tally = filter_all(session, engine, Reading(sources, "auto", None, None), json=False)
    called = os.path.relpath(sys.argv[0]) if Path(sys.argv[0]).is_file() else "graphmatch"
    session.out.print(
        f"{plural(tally.publications, 'publication')} met "
        f"{plural(len(engine), 'subscription')}: {plural(tally.matches, 'match', 'matches')}. "
        "The same, step by step:\n\n"
        f"  {called} ontology ontologies/news.ttl\n"
        f"  {called} check data/subscriptions --ontology ontologies/news.ttl\n"
        f"  {called} filter data/feeds --ontology ontologies/news.ttl "
        "--subscriptions data/subscriptions\n"
        f"  {called} explain feeds-environment data/feeds/science.atom "
        "--ontology ontologies/news.ttl --subscriptions data/subscriptions\n"
    )
    return session.status

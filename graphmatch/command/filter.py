"""``graphmatch filter``: the main job."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from graphmatch.command.console import plural, reader_language
from graphmatch.command.session import Knowing, Session
from graphmatch.command.show import as_json, as_text
from graphmatch.engine import Engine
from graphmatch.matcher import Match, MatchReport
from graphmatch.subscription import Subscription
from semantic.cut import Cut
from semantic.errors import GraphMatchError, InputError, Place, Problem
from semantic.publication import Publication
from semantic.reading import check_base
from semantic.syntax import format_of_media_type
from semantic.vocabulary import DCTERMS


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read, and how, as the command line says it."""

    sources: Sequence[str]
    cut: str
    format: str | None
    base: str | None
    events: Sequence[str] = ()

    def checked(self) -> Reading:
        """Return itself when its options mean something.

        Raises
        ------
        InputError
            When the format or the base does not, and when nothing is to be read.
        """
        if not self.sources and not self.events:
            what, remedy = "there is nothing to read", "Name feeds and RDF files, or --events."
            raise InputError(Problem(what, Place("PUBLICATIONS"), remedy))
        if self.format is not None:
            format_of_media_type(self.format)
        if self.base is not None:
            check_base(self.base)
        return self


@dataclass(slots=True)
class _Tally:
    publications: int = 0
    matched: int = 0
    matches: int = 0


def run(
    reading: Reading,
    subscriptions: Sequence[Path],
    knowing: Knowing,
    *,
    json: bool,
) -> int:
    """Filter, show, sum up; return the exit status."""
    session = Session()
    try:
        reading.checked()
        engine = session.engine(knowing)
    except GraphMatchError as error:
        return session.fail(error)
    session.subscribe(engine, subscriptions)
    if not len(engine):
        what, remedy = "there is no subscription to match", "Give some with --subscriptions."
        return session.fail(InputError(Problem(what, Place("--subscriptions"), remedy)))
    if not knowing.files and knowing.annotate and any(map(_asks_for_topics, engine.subscriptions)):
        session.err.print("note     without --ontology no item has topics (dcterms:subject)")
    started = time.perf_counter()
    tally = filter_all(session, engine, reading, json=json)
    seconds = time.perf_counter() - started
    session.err.print(
        f"{plural(tally.publications, 'publication')}, {plural(len(engine), 'subscription')}: "
        f"{plural(tally.matches, 'match', 'matches')} in "
        f"{plural(tally.matched, 'publication')}, "
        f"{session.refused} refused, {seconds:.2f} s"
    )
    return session.status


def _asks_for_topics(subscription: Subscription) -> bool:
    patterns = (pattern for branch in subscription.branches for pattern in branch.patterns)
    return any(pattern.predicate == DCTERMS["subject"] for pattern in patterns)


def read(session: Session, reading: Reading) -> Iterator[Publication]:
    """Yield what is to be read: publications, then events."""
    yield from session.publications(
        reading.sources, cut=Cut(reading.cut), format=reading.format, base=reading.base
    )
    yield from session.events(reading.events)


def filter_all(session: Session, engine: Engine, reading: Reading, *, json: bool) -> _Tally:
    """Match every publication and show its matches."""
    tally = _Tally()
    comments = {s.id: s.comment for s in engine.subscriptions if s.comment}
    for report in _reports(session, engine, reading):
        tally.publications += 1
        tally.matches += len(report)
        tally.matched += bool(report)
        if report:
            _show(session, engine, report.read(), report.matches, comments, json=json)
    return tally


def _reports(session: Session, engine: Engine, reading: Reading) -> Iterator[MatchReport]:
    """Match what is to be read: documents, then events."""
    for source in session.tracked(reading.sources):
        yield from engine.filter(source, reading.format, reading.cut, reading.base)
    yield from map(engine.match, session.events(reading.events))


def _show(
    session: Session,
    engine: Engine,
    publication: Publication,
    matches: Sequence[Match],
    comments: Mapping[str, str],
    *,
    json: bool,
) -> None:
    language = reader_language(os.environ)
    evidence = engine.evidence(publication, matches, language)
    if json:
        for match in matches:
            session.out.write_json(as_json(publication, match, evidence[match.subscription]))
        return
    lines = as_text(publication, matches, evidence, comments, engine.ontology.prefixes)
    session.out.print(Text("\n").join(lines))

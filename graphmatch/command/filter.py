"""``graphmatch filter``, ``index``, which saves an engine, and ``demo``."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from graphmatch.command.options import (
    EngineOptions,
    InputOptions,
    ResultOptions,
    SubscriptionOptions,
    Verbosity,
)
from graphmatch.command.output import Alert, TextWriter, Writer, described, writer, written
from graphmatch.command.session import Session
from graphmatch.console import CommandConsole, reader_language
from graphmatch.engine import Engine
from graphmatch.explain.evidence import distinct_reasons
from graphmatch.report import MatchReport
from semantic.clock import utc_now
from semantic.errors import InputError, Place, Problem, plural
from semantic.files import files_in, is_special
from semantic.publication import Publication
from semantic.vocabulary import DCTERMS

if TYPE_CHECKING:
    from graphmatch.command.misses import NearMisses
    from graphmatch.command.seen import Seen


@dataclass(slots=True)
class FilterCounts:
    """The counts of a run: publications, those with matches that were written, and these matches.

    `older` counts matching publications that were left out because of their date, and `known`
    matches that were delivered before.
    """

    publications: int = 0
    matched: int = 0
    matches: int = 0
    older: int = 0
    known: int = 0


def run(
    input_options: InputOptions,
    subscription_options: SubscriptionOptions,
    engine_options: EngineOptions,
    result_options: ResultOptions,
    verbosity: Verbosity,
    config: Path | None = None,
) -> int:
    """Match all input against the subscriptions, and print or save the matches and a summary.

    Return the exit status. `config` is the configuration file, if any: it must not be overwritten.
    """
    with Session(verbosity) as session:
        form = _form(result_options)
        check(input_options)
        inputs: list[str | Path | None] = [
            *(input_options.publications or ()),
            *(input_options.events or ()),
            *(subscription_options.subscriptions or ()),
            *(engine_options.files or ()),
            *(name.rpartition(":")[0] for name in engine_options.operators or ()),
            *(engine_options.saved, engine_options.ontology_options.imports, config),
        ]
        _refuse_inputs("--seen", result_options.seen, inputs)
        _refuse_inputs("--output", result_options.output, [*inputs, result_options.seen])
        engine = session.subscribed_engine(engine_options, subscription_options)
        _note_topics(session, engine, engine_options)
        started = time.perf_counter()
        now = engine_options.now or utc_now()
        tally = _delivered(session, engine, input_options, result_options, form, now)
        seconds = time.perf_counter() - started
        session.show_warnings()
        session.note(_summary(session, engine, tally, seconds))
        return session.status


def _refuse_inputs(option: str, path: Path | None, inputs: Iterable[str | Path | None]) -> None:
    """Raise `InputError` if an option's file is an input, or in a folder of inputs."""
    if path is None or is_special(path):
        return
    for name in inputs:
        for file in files_in("/dev/stdin" if name == "-" else name, lambda _: None) if name else ():
            if realpath(file) == realpath(path):
                what = f"{option} names a file that is also an input, {file}"
                raise InputError(Problem(what, Place(str(path)), "Name another file."))


def check(input_options: InputOptions) -> None:
    """Raise `InputError` if no input is named, or the format or base is invalid."""
    if not input_options.publications and not input_options.events:
        what, remedy = "there is nothing to read", "Name feeds and RDF files, or --events."
        raise InputError(Problem(what, Place("PUBLICATIONS"), remedy))
    input_options.check()


def _form(result_options: ResultOptions) -> str:
    if result_options.json and result_options.form not in (None, "jsonl"):
        what = f"--json and --as {result_options.form} are given both"
        raise InputError(Problem(what, Place("--as"), "Leave one of them out."))
    form = result_options.form or ("jsonl" if result_options.json else "text")
    if result_options.explain_misses and form != "text":
        what = "near misses are written as text only"
        raise InputError(Problem(what, Place("--explain-misses"), "Leave out --json and --as."))
    return form


def _note_topics(session: Session, engine: Engine, engine_options: EngineOptions) -> None:
    branches = (branch for one in engine.subscriptions for branch in one.branches)
    if all(p.predicate != DCTERMS["subject"] for branch in branches for p in branch.patterns):
        return
    if engine_options.entailment == "none":
        session.note("note     with --entailment none, narrower topics are not found; use rdfs")
    elif engine_options.annotate and not (engine_options.files or engine_options.saved):
        session.note("note     without --ontology no item has topics (dcterms:subject)")


def _delivered(
    session: Session,
    engine: Engine,
    input_options: InputOptions,
    result_options: ResultOptions,
    form: str,
    now: datetime,
) -> FilterCounts:
    """Match all input and write the matches; return the counts.

    With ``--seen``, record the matches as delivered after all are written.
    """
    cutoff = None if result_options.since is None else result_options.since(now)
    remembered: AbstractContextManager[Seen | None] = nullcontext()
    if result_options.seen is not None:
        from graphmatch.command.seen import open_seen  # import SQLite only if necessary

        remembered = open_seen(result_options.seen, lambda: now)
    with remembered as seen, written(result_options.output, session.out) as console:
        made = writer(form, console, engine)
        misses = None
        if result_options.explain_misses:
            from graphmatch.command.misses import NearMisses

            misses = NearMisses(engine, reader_language(os.environ))
        tally = filter_all(session, engine, input_options, made, cutoff, seen, misses)
        for line in () if misses is None else misses.lines():
            console.print(line)
        return tally


def _summary(session: Session, engine: Engine, tally: FilterCounts, seconds: float) -> str:
    left_out = ""
    if tally.older:
        left_out += f", {plural(tally.older, 'older publication')} left out"
    if tally.known:
        left_out += f", {plural(tally.known, 'match', 'matches')} delivered before"
    return (
        f"{plural(tally.publications, 'publication')}, {plural(len(engine), 'subscription')}: "
        f"{plural(tally.matches, 'match', 'matches')} in "
        f"{plural(tally.matched, 'publication')}{left_out}, "
        f"{session.refused} refused, {seconds:.2f} s"
    )


def filter_all(
    session: Session,
    engine: Engine,
    input_options: InputOptions,
    results: Writer,
    cutoff: datetime | None = None,
    seen: Seen | None = None,
    misses: NearMisses | None = None,
) -> FilterCounts:
    """Match every publication, write its matches, and return the counts.

    Parameters
    ----------
    cutoff
        Leave out publications with an older date.
    seen
        Also leave out matches that were delivered before.
    misses
        Collects the near misses, except those of older publications.
    """
    alerts = Alerts(engine, results, cutoff, seen)
    for report in _reports(session, engine, input_options):
        alerts.add(report)
        if misses is not None and not (cutoff and is_older(report.read(), cutoff)):
            misses.add(report)
    alerts.write()
    return alerts.tally


MAX_STORIES = 10_000
"""The number of names of stories after which alerts are written, and sources are forgotten."""


@dataclass(slots=True)
class Alerts:
    """Writes matches: those of feed items when `write` is called, others at once.

    Copies of an item in several sources are one alert, which names those sources that were read
    before it is written. A subscription gets one alert of a story.

    Parameters
    ----------
    cutoff
        Leave out publications with an older date.
    seen
        Leave out matches that it has, and record the others in it.
    """

    engine: Engine
    results: Writer
    cutoff: datetime | None = None
    seen: Seen | None = None
    tally: FilterCounts = field(default_factory=FilterCounts)
    _alerts: dict[str, Alert] = field(default_factory=dict)
    _unwritten: list[Alert] = field(default_factory=list)

    def add(self, report: MatchReport) -> None:
        """Count a publication, and add its matches to an alert."""
        self.tally.publications += 1
        if not report:
            return
        publication = report.read()
        if self.cutoff is not None and is_older(publication, self.cutoff):
            self.tally.older += 1
            return
        story, seen = publication.story, self.seen
        known = (self._alerts[name] for name in story if name in self._alerts)
        alert = next(known, None) or Alert(publication)
        if publication.source.source not in alert.sources:
            alert.sources.append(publication.source.source)
        matches = [match for match in report.matches if match.subscription not in alert.evidence]
        if seen is not None:
            names = seen.names(publication)
            alert.names.update(names)
            new = [match for match in matches if seen.is_new(match.subscription, names)]
            self.tally.known += len(matches) - len(new)
            matches = new
        if not matches:
            return
        if not alert.matches:
            self._unwritten.append(alert)
        subscriptions = {match.subscription for match in matches}
        alert.matches += matches
        alert.evidence |= dict.fromkeys(subscriptions, ())
        alert.evidence |= self.engine.evidence(report, subscriptions, reader_language(os.environ))
        self._alerts |= dict.fromkeys(story, alert)
        if not story or len(self._alerts) > MAX_STORIES:
            self.write()

    def write(self) -> None:
        """Write the alerts that are not written; forget all if they have too many names."""
        for alert in self._unwritten:
            self.results.write(alert)
            self.tally.matches += len(alert.matches)
            self.tally.matched += 1
            if self.seen is not None:
                self.seen.add(alert)
            alert.matches = []
        self._unwritten = []
        if len(self._alerts) > MAX_STORIES:
            self._alerts.clear()


def is_older(publication: Publication, cutoff: datetime) -> bool:
    """Return whether a publication's date, if any, is before a time; a day counts until its end."""
    text = described(publication).date or ""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return False
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    if re.fullmatch(r"[\d-]+", text):
        date = date.replace(hour=23, minute=59, second=59)
    return date < cutoff


def _reports(
    session: Session, engine: Engine, input_options: InputOptions
) -> Iterator[MatchReport]:
    """Yield the reports of the documents, then of the events; report unreadable sources."""

    def read(source: str) -> Iterator[MatchReport]:
        try:
            yield from engine.filter(
                source, input_options.format, input_options.split_by, input_options.base
            )
        except InputError as error:
            session.report(error.problem)

    yield from session.read(input_options.publications or (), read)
    yield from map(engine.match, session.events(input_options.events or ()))


# --- graphmatch index ----------------------------------------------------------------------------


def index(
    subscription_options: SubscriptionOptions,
    engine_options: EngineOptions,
    output: Path,
    verbosity: Verbosity,
) -> int:
    """Save an engine with its ontology and subscriptions to a file; return the exit status."""
    with Session(verbosity) as session:
        engine = session.engine(engine_options)
        session.take_in(engine, subscription_options)
        engine.save(output)
        session.show_warnings()
        size = output.stat().st_size
        session.note(
            f"{plural(len(engine), 'subscription')} in {output}, {size / 1e6:.1f} MB, "
            f"{session.refused} refused"
        )
        return session.status


# --- graphmatch demo -----------------------------------------------------------------------------

_DEMO_LINES = 24
"""The maximum number of lines of matches in the demo; it counts the rest."""


class _FirstWriter(TextWriter):
    """Writes each publication's match with the most reasons, up to `_DEMO_LINES` lines in all."""

    def __init__(self, console: CommandConsole, engine: Engine) -> None:
        super().__init__(console, engine)
        self._room = _DEMO_LINES

    def write(self, alert: Alert) -> None:
        """Write the match with the most reasons, if its lines still fit."""
        proof = alert.evidence
        best = max(alert.matches, key=lambda one: len(distinct_reasons(proof[one.subscription])))
        lines = self.lines(replace(alert, matches=[best]))
        self._room -= len(lines)
        if self._room >= 0:
            self._console.print(Text("\n").join(lines))


def demo(folder: Path) -> int:
    """Match the samples in a folder; print matches and next commands; return the exit status."""
    session = Session()
    ontologies = sorted((folder / "ontologies").glob("*.*"))
    if not ontologies:
        what = "there are no samples: no `ontologies` folder"
        remedy = "Run it in a clone of the project, or name the clone's folder."
        raise InputError(Problem(what, Place(str(folder)), remedy))
    engine = session.engine(EngineOptions(ontologies))
    data = folder / "data"
    session.subscribe(engine, [data / "subscriptions", data / "subscriptions.jsonl"])
    input_options = InputOptions(publications=[str(data / "feeds"), str(data / "publications")])
    tally = filter_all(session, engine, input_options, _FirstWriter(session.out, engine))
    called = os.path.relpath(sys.argv[0]) if Path(sys.argv[0]).is_file() else "graphmatch"
    session.out.print(
        f"… {plural(tally.matches, 'match', 'matches')}: "
        f"{plural(tally.publications, 'publication')}, {plural(len(engine), 'subscription')}. "
        "Try next:\n\n"
        f"  {called} filter data/feeds -o ontologies/news.ttl -s data/subscriptions\n"
        f"  {called} filter data/feeds -o ontologies/news.ttl --topic Energy --not-word coal\n"
        f"  {called} explain feeds-environment data/feeds/science.atom "
        "-o ontologies/news.ttl -s data/subscriptions\n"
        f"  {called} check data/subscriptions -o ontologies/news.ttl\n"
        f"  {called} ontology ontologies/news.ttl"
    )
    return session.status

"""One run of the command: its engine, its problems, and the exit status.

Refusals go to standard error at once, at most `LISTED` per source. Warnings are counted by kind,
and listed at the end of the run with an example each; `--verbose` lists each at once. The exit
status tells whether anything was refused.
"""

from __future__ import annotations

import gc
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Self, TypeVar

from graphmatch.command.options import (
    EngineOptions,
    OntologyOptions,
    SubscriptionOptions,
    Verbosity,
)
from graphmatch.console import CommandConsole, styled
from graphmatch.engine import Engine
from graphmatch.operators import load_operators
from graphmatch.subscription_files import subscribe_files, subscribe_topics
from graphmatch.topics import Topics
from semantic.annotation.annotate import Annotator
from semantic.clock import utc_now
from semantic.errors import InputError, OntologyError, Place, Problem, Severity, plural
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import SynonymOptions
from semantic.progress import Progress, ignore
from semantic.publication import Publication

_Publication = TypeVar("_Publication")
LISTED = 20
"""The maximum number of listed refusals per source; --verbose lists all."""
DONE, REFUSED = 0, 1
"""Exit statuses: done; done, with items refused and listed. The status of an error is 2."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_VARIES = re.compile(r"(?<!\w)'.*?'(?!\w)|“.*?”|\".*?\"|<[^>\s]*>|\w+://\S+|\d+")


@dataclass(slots=True)
class Session:
    """The output, problems and exit status of a run; a ``with`` block ends by printing warnings.

    Parameters
    ----------
    verbosity
        Quiet: neither warnings nor notes nor progress are shown. Verbose, the default of this
        class: each warning is shown at once.
    """

    verbosity: Verbosity = field(default_factory=lambda: Verbosity(verbose=True))
    out: CommandConsole = field(default_factory=CommandConsole)
    err: CommandConsole = field(default_factory=lambda: CommandConsole(stderr=True))
    refused: int = 0
    """The number of reported refusals."""
    problems: list[Problem] | None = None
    """Reported problems are added to it, if it is a list."""
    _warned: dict[str, tuple[Problem, int]] = field(default_factory=dict)
    _refused: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Use one console if both are terminals, so that progress stays below the output."""
        if self.out.is_terminal and self.err.is_terminal:
            self.err = self.out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Print the remaining warnings, unless the output was closed early."""
        if not isinstance(error, BrokenPipeError):
            self.show_warnings()

    def report(self, problem: Problem) -> None:
        """Count and print a refusal at once; print another problem at once if verbose.

        Unless verbose, print at most `LISTED` refusals per source.
        """
        if self.problems is not None:
            self.problems.append(problem)
        if problem.severity is Severity.REFUSED:
            self.refused += 1
            self._refused[problem.where.source] += 1
            if self.verbosity.verbose or self._refused[problem.where.source] <= LISTED:
                self.err.print(styled(("refused", "red"), f"  {problem}"))
        elif self.verbosity.verbose and not self.verbosity.quiet:
            self.err.print(styled(("warning", "yellow"), f"  {problem}"))
        elif not self.verbosity.quiet:
            first, number = self._warned.get(kind_of(problem), (problem, 0))
            self._warned[kind_of(problem)] = first, number + 1

    def show_warnings(self) -> None:
        """Print the numbers of unlisted refusals, and the new warnings; forget both.

        Warnings have a line for each kind, with the first of them.
        """
        for source, refused in self._refused.items():
            if refused > LISTED and not self.verbosity.verbose:
                more = f"  {source}: {refused - LISTED:,} more. --verbose lists each."
                self.err.print(styled(("refused", "red"), more))
        self._refused.clear()
        several = False
        for first, number in self._warned.values():
            several = several or number > 1
            times = f"{number:,} times, first: " if number > 1 else ""
            self.err.print(styled(("warning", "yellow"), f"  {times}{first}"))
        self._warned.clear()
        if several:
            self.note("--verbose lists each warning")

    def note(self, text: str) -> None:
        """Print a text that is neither a result nor a problem, unless quiet."""
        if not self.verbosity.quiet:
            self.err.print(styled(text))

    @property
    def status(self) -> int:
        """The exit status so far: `REFUSED` if anything was refused, otherwise `DONE`."""
        return REFUSED if self.refused else DONE

    def ontology(self, files: Sequence[Path], options: OntologyOptions) -> Ontology:
        """Load files as one ontology and report their problems; without files it is empty."""
        if options.no_cache and options.cache is not None:
            what, remedy = "--cache and --no-cache are given both", "Leave one of them out."
            raise OntologyError(Problem(what, Place("--no-cache"), remedy))
        if not files:
            return Ontology(on_problem=self.report)
        limits = DEFAULT_LIMITS
        if options.reason_seconds is not None:
            limits = replace(limits, reasoning_seconds=options.reason_seconds)
        with self.waiting("Loading the ontology") as show:
            return Ontology.load(
                *files,
                imports=options.imports,
                reason=options.reason,
                cache=False if options.no_cache else options.cache,
                taxonomies=tuple(options.taxonomy or ()),
                synonyms=SynonymOptions(options.nfkc, options.casefold),
                on_problem=self.report,
                on_progress=show,
                limits=limits,
            )

    def engine(self, engine_options: EngineOptions, limits: Limits | None = None) -> Engine:
        """Return an engine for the ontology files, without subscriptions, or open the saved one."""
        now = engine_options.now
        clock = utc_now if now is None else lambda: now
        saved = engine_options.checked().saved
        operators = load_operators(engine_options.operators or ())
        if saved is not None:
            return Engine.open(
                saved, clock=clock, on_problem=self.report, operators=operators, limits=limits
            )
        was_enabled = gc.isenabled()
        gc.disable()  # Otherwise it scans the terms again and again, for a fifth of the time.
        try:
            ontology = self.ontology(engine_options.files or (), engine_options.ontology_options)
            if unused := ontology.unused_axioms(engine_options.entailment):
                self.note(f"note     {unused}")
            annotator = None if engine_options.annotate else Annotator([])
            if engine_options.annotate and not engine_options.stem:
                annotator = Annotator(ontology.labels(), stem=False)
            return Engine(
                ontology,
                entailment=engine_options.entailment,
                annotator=annotator,
                clock=clock,
                on_problem=self.report,
                operators=operators,
                limits=limits or DEFAULT_LIMITS,
            )
        finally:
            if was_enabled:
                gc.enable()

    def subscribed_engine(
        self, engine_options: EngineOptions, subscription_options: SubscriptionOptions
    ) -> Engine:
        """Return an engine with subscriptions; raise `InputError` if there are none."""
        engine = self.engine(engine_options)
        self.take_in(engine, subscription_options)
        if not len(engine):
            what = "there is no subscription to match"
            remedy = "Use --subscriptions FILE, --topic or --word."
            raise InputError(Problem(what, Place("--subscriptions"), remedy))
        return engine

    def subscribe(self, engine: Engine, paths: Iterable[Path]) -> None:
        """Add the subscriptions of files and folders; report refused ones."""
        with self.waiting("Reading subscriptions") as show:
            subscribe_files(engine, paths, self.report, show)

    def take_in(self, engine: Engine, subscription_options: SubscriptionOptions) -> None:
        """Add to an engine the subscriptions in files, and the one of topics and words."""
        self.subscribe(engine, subscription_options.subscriptions or ())
        chosen = subscription_options
        listed = (chosen.topic, chosen.word, chosen.not_topic, chosen.not_word)
        texts = [tuple(one or ()) for one in listed]
        if any(texts):
            keys = ("--topic", "--word", "--not-topic", "--not-word")
            subscribe_topics(engine, Topics(*texts, any_of=chosen.any_of), keys=keys)

    def read(
        self, sources: Sequence[str], read: Callable[[str], Iterable[_Publication]]
    ) -> Iterator[_Publication]:
        """Yield the publications (or reports) that `read` returns for each source.

        Show the progress on a terminal; report and leave out addresses.
        """
        files = [source for source in sources if not self._is_address(source)]
        numbers = count(1)
        with self.waiting("Reading publications") as show:
            for done, source in enumerate(files):
                if not self._shows_progress:
                    yield from read(source)
                    continue
                counted = Progress("files", done, len(files))
                for publication in read(source):
                    show(f"{counted}, {plural(next(numbers), 'publication')}")
                    yield publication

    def _is_address(self, source: str) -> bool:
        if _ADDRESS.match(source) is None or Path(source).exists():
            return False
        what = "an address, not a file"
        remedy = f"Pipe it in: curl -sL {shlex.quote(source)} | graphmatch filter - …"
        self.report(Problem(what, Place(source), remedy))
        return True

    def events(self, sources: Sequence[str]) -> Iterator[Publication]:
        """Yield the events in JSON Lines files as publications; report their problems."""
        for source in sources:
            from semantic.attributes.events import read_events

            yield from read_events(source, on_problem=self.report)

    @contextmanager
    def waiting(self, what: str) -> Iterator[Callable[[object], None]]:
        """Show `what` and a spinner on a terminal while the block runs, unless quiet.

        Yield a function that also shows a `Progress` or a text, at most ten times a second.
        """
        if not self._shows_progress:
            yield ignore
            return
        due = 0.0
        with self.err.status(f"{what} …") as status:

            def show(progress: object) -> None:
                nonlocal due
                if (now := monotonic()) >= due:
                    due = now + 0.1
                    status.update(f"{what}: {progress} …")

            yield show

    @property
    def _shows_progress(self) -> bool:
        return self.err.is_terminal and not self.verbosity.quiet


def kind_of(problem: Problem) -> str:
    """Return a problem's text with ``…`` for its variable parts; warnings are grouped by it.

    Examples
    --------
    >>> kind_of(Problem("the link 'a b' of item 3 is no IRI", Place("a.rss"), "It is left out."))
    'the link … of item … is no IRI'
    """
    return _VARIES.sub("…", problem.what)

"""One run of the command: what was read, what was refused, and the exit status.

Problems go to standard error as they come and are counted, so that nothing is lost
silently; the exit status says whether there were any.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from graphmatch.command.console import CommandConsole, styled
from graphmatch.command.options import Loading
from graphmatch.engine import Engine
from graphmatch.subscribing import subscribe_files
from semantic.annotation.annotate import Annotator
from semantic.clock import utc_now
from semantic.cut import Cut
from semantic.errors import GraphMatchError, Problem, Severity
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.reading import read_publications

DONE, REFUSED, FAILED = 0, 1, 2
"""Exit statuses: done; done, with items refused and listed; could not run."""


@dataclass(frozen=True, slots=True)
class Knowing:
    """What an engine knows beside the subscriptions, as the command line says it.

    Parameters
    ----------
    files, loading
        The ontology's, and how they are loaded.
    now
        The time of mapping functions; ``None`` for the machine's.
    """

    files: Sequence[Path]
    loading: Loading = field(default_factory=Loading)
    entailment: str = "rdfs"
    annotate: bool = True
    stem: bool = True
    now: datetime | None = None


@dataclass(slots=True)
class Session:
    """The state of a run.

    Parameters
    ----------
    out, err
        Where results and everything else go.
    problems
        Whatever was reported.
    quiet
        Problems are remembered only: the command shows them itself.
    """

    out: CommandConsole = field(default_factory=CommandConsole)
    err: CommandConsole = field(default_factory=lambda: CommandConsole(stderr=True))
    problems: list[Problem] = field(default_factory=list)
    quiet: bool = False

    def __post_init__(self) -> None:
        """Write to one console where both are a terminal: progress stays below what is printed."""
        if self.out.is_terminal and self.err.is_terminal:
            self.err = self.out

    def report(self, problem: Problem) -> None:
        """Show a problem at once, and remember it."""
        self.problems.append(problem)
        if self.quiet:
            return
        refused = problem.severity is Severity.REFUSED
        word = ("refused", "red") if refused else ("warning", "yellow")
        self.err.print(styled(word, f"  {problem}"))

    @property
    def refused(self) -> int:
        """How many items were passed over."""
        return sum(problem.severity is Severity.REFUSED for problem in self.problems)

    @property
    def status(self) -> int:
        """The exit status so far."""
        return REFUSED if self.refused else DONE

    def fail(self, error: GraphMatchError) -> int:
        """Show the error that ends the run, and return its exit status."""
        self.err.print(styled(("error", "red"), f"    {error}"))
        return FAILED

    def ontology(self, files: Sequence[Path], loading: Loading) -> Ontology:
        """Load the ontology files.

        Raises
        ------
        OntologyError
            When a file cannot be read.
        """
        from graphmatch.command.loading import load

        with self.waiting("Loading the ontology") if files else _nothing():
            return load(files, loading, self.report)

    def engine(self, knowing: Knowing) -> Engine:
        """Load the ontology files and make an engine.

        Raises
        ------
        OntologyError
            When a file cannot be read.
        """
        now = knowing.now
        with _uncollected():
            ontology = self.ontology(knowing.files, knowing.loading)
            annotator = None if knowing.annotate else Annotator([])
            if knowing.annotate and not knowing.stem:
                annotator = Annotator(ontology.labels(), stem=False)
            return Engine(
                ontology,
                entailment=knowing.entailment,
                annotator=annotator,
                clock=utc_now if now is None else lambda: now,
                on_problem=self.report,
            )

    def subscribe(self, engine: Engine, paths: Iterable[Path]) -> None:
        """Take in the subscriptions of files and folders; refused ones are reported."""
        with self.waiting("Reading subscriptions"):
            subscribe_files(engine, paths, self.report)

    def publications(
        self, sources: Sequence[str], *, cut: Cut, format: str | None, base: str | None
    ) -> Iterator[Publication]:
        """Yield the publications of the sources, with a progress bar on a terminal."""
        for source in self.tracked(sources):
            yield from read_publications(
                source, cut=cut, format=format, base_iri=base, on_problem=self.report
            )

    def tracked(self, sources: Sequence[str]) -> Iterable[str]:
        """Yield the sources, with a progress bar on a terminal."""
        from rich.progress import track

        return track(sources, "Filtering", console=self.err, disable=not self.err.is_terminal)

    def events(self, sources: Sequence[str]) -> Iterator[Publication]:
        """Yield the events of files of JSON Lines."""
        from semantic.attributes.events import read_events

        for source in sources:
            yield from read_events(source, on_problem=self.report)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show on a terminal what is being waited for."""
        if not self.err.is_terminal:
            yield
            return
        with self.err.status(f"{what} …"):
            yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector from what is made: an ontology stays until the process ends.

    It would go over the terms of a large one again and again, for a fifth of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

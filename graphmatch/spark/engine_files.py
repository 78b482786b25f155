"""The files that an engine is made of, and whether they have changed.

Cost: a look at names, times and sizes; where these differ, all is read for a digest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from semantic.annotation.annotate import Annotator
from semantic.errors import OnProblem, Problem
from semantic.files import files_in
from semantic.ontology.ontology import Ontology

Load: TypeAlias = Callable[[Sequence[Path], OnProblem], Ontology]


def load(files: Sequence[Path], on_problem: OnProblem) -> Ontology:
    """Load an ontology as `Ontology.load` does by default."""
    return Ontology.load(*files, on_problem=on_problem)


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """What an engine is made of.

    Parameters
    ----------
    subscriptions
        ``.rq`` and ``.jsonl`` files, or folders of them.
    ontology
        Its files.
    load
        How they become an ontology.
    beside
        Files and folders that the ontology's imports are looked up in.
    options
        What else the ontology depends on, as a text.
    entailment, annotator
        As `graphmatch.Engine` has them.
    """

    subscriptions: Sequence[Path]
    ontology: Sequence[Path] = ()
    load: Load = load
    beside: Sequence[Path] = ()
    options: str = ""
    entailment: str = "rdfs"
    annotator: Annotator | None = None

    def signature(self) -> list[tuple[str, int, int]]:
        """Return names, times and sizes of all files: while they stay, nothing has changed."""
        found = []
        for file in (*self._known(), *self._asked()):
            try:
                about = file.stat()
            except OSError:
                found.append((str(file), -1, -1))
            else:
                found.append((str(file), about.st_mtime_ns, about.st_size))
        return found

    def known(self) -> str:
        """Return a digest of what the ontology depends on."""
        return _digest(self._known(), self.options, self.entailment, str(self.annotator is None))

    def asked(self) -> str:
        """Return a digest of the subscriptions' files."""
        return _digest(self._asked())

    def _known(self) -> Iterator[Path]:
        yield from self.ontology
        for path in self.beside:
            yield from files_in(path, _nothing)

    def _asked(self) -> Iterator[Path]:
        for path in self.subscriptions:
            yield from files_in(path, _nothing, (".rq", ".jsonl"))


def _digest(files: Iterable[Path], *options: str) -> str:
    """Return a digest of names and contents; a file that is not there counts as that."""
    hashed = blake2b(digest_size=16)
    for option in (version("graphmatch"), *options):
        hashed.update(option.encode() + b"\0")
    for file in files:
        hashed.update(os.fsencode(file) + b"\0")
        if file.is_file():
            with file.open("rb") as stream:
                hashed.update(file_digest(stream, "sha256").digest())
    return hashed.hexdigest()


def _nothing(_: Problem) -> None:
    """Say nothing: reading says it."""

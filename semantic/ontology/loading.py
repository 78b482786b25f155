"""Load triples, synonyms and rules from ontology files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from os.path import realpath
from pathlib import Path
from stat import S_ISREG

from semantic.errors import InputError, OnProblem, OntologyError, Place, Problem
from semantic.files import decoded, is_folder, unreadable
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.csv_tables import CsvTable, read_csv
from semantic.ontology.documents import read_file
from semantic.ontology.imports import Folder, imports_closure
from semantic.ontology.reasoner import ReasonerName, infer
from semantic.ontology.synonyms import SynonymPairs, SynonymRows, merged, read_synonyms
from semantic.ontology.topic_tables import topic_triples
from semantic.progress import OnProgress, Progress, ignore
from semantic.terms import Triple
from semantic.vocabulary import PREFIXES


@dataclass(frozen=True, slots=True)
class Sources:
    """The content of an ontology's files.

    `triples` come from all files and their imports, and from the reasoner. If two files declare a
    prefix differently, the first file wins. `rules` are mapping rules: the file and its text.
    """

    triples: list[Triple]
    synonyms: SynonymPairs
    prefixes: dict[str, str]
    rules: list[tuple[Path, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options for reading RDF files.

    `imports` is the folder that is searched for ``owl:imports``. `reason` is the reasoner, and
    `cache` is the folder of its earlier results.
    """

    imports: Path | None = None
    reason: ReasonerName | None = None
    cache: Path | None = None


def read_sources(
    paths: Iterable[Path],
    on_problem: OnProblem,
    limits: Limits = DEFAULT_LIMITS,
    options: LoadOptions = LoadOptions(),
    on_progress: OnProgress = ignore,
) -> Sources:
    """Read the files of one ontology, with their imports and a reasoner's inferences.

    The files contain RDF, OWL/XML, synonyms or topics (``.csv``) or mapping rules (``.rq``). A file
    that is named twice is read once.

    Raises
    ------
    OntologyError
        If a file cannot be read (an incomplete ontology would silently give wrong answers), or if
        reasoning fails.
    """
    rdf: list[Path] = []
    synonyms: list[SynonymRows] = []
    topics: list[CsvTable] = []
    rules: list[tuple[Path, str]] = []
    different = {realpath(path): path for path in paths}.values()
    done = count(1)

    def step() -> None:
        on_progress(Progress("ontology files", next(done), len(different)))

    try:
        for path in different:
            _refuse_folder(path)
            if path.suffix.lower() == ".rq":
                rules.append((path, decoded(path.read_bytes(), str(path))))
                step()
            elif path.suffix.lower() == ".csv":
                table = read_csv(path, on_problem)
                if "topic" in table.columns:
                    topics.append(table)
                else:
                    synonyms.append(read_synonyms(table, on_problem))
                step()
            else:
                rdf.append(path)
        triples, prefixes = _read(rdf, on_problem, limits, options, step)
        triples += topic_triples(topics, triples, {**prefixes, **PREFIXES}, on_problem)
    except InputError as error:
        raise OntologyError(error.problem) from error
    except OSError as error:
        raise OntologyError(unreadable(str(error.filename), error)) from error
    if options.reason is not None:
        triples += infer(triples, options.reason, on_problem, limits, options.cache)
    return Sources(triples, merged(synonyms, on_problem), prefixes, rules)


def _refuse_folder(path: Path) -> None:
    if is_folder(path):
        what, remedy = "a folder, not a file", "Name the files that make up the ontology."
        raise InputError(Problem(what, Place(str(path)), remedy))


def _read(
    paths: Sequence[Path],
    on_problem: OnProblem,
    limits: Limits,
    options: LoadOptions,
    step: Callable[[], None],
) -> tuple[list[Triple], dict[str, str]]:
    """Return the triples and prefixes of RDF files and their imports; `step` after each file."""
    imports = options.imports
    if imports is not None and S_ISREG(imports.stat().st_mode):
        remedy = "Name the folder that has the imported files."
        raise InputError(Problem("a file, not a folder", Place(str(imports)), remedy))
    folder = None if imports is None else Folder(imports, on_problem, limits)
    given = []
    for path in paths:
        given.append((path, read_file(path, on_problem, limits)))
        step()
    triples: list[Triple] = []
    prefixes: dict[str, str] = {}
    for document in imports_closure(given, folder, on_problem, limits):
        triples += document.triples
        prefixes = document.prefixes | prefixes
    return triples, prefixes

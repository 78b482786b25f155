"""Ontology files to triples, synonyms and rules.

What RDF files say, with their imports and what a reasoner infers from both, is cached
(`semantic.ontology.cache`), for reading a large one takes seconds and reasoning minutes. Synonyms
and mapping functions are short, and read each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from semantic.errors import InputError, OnProblem, OntologyError, Place, Problem
from semantic.files import is_folder, unreadable
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology import cache
from semantic.ontology.cache import Cached
from semantic.ontology.synonyms import SynonymPairs, SynonymRows, merged
from semantic.syntax import HEAD_BYTES
from semantic.terms import Triple

if TYPE_CHECKING:
    from semantic.ontology.reasoner import Reasoner

_SMALL = 64 * 1024
"""Files of fewer bytes together are read as fast as from the cache."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What the files of an ontology hold together.

    Parameters
    ----------
    triples
        Those of all files and their imports, and those inferred.
    synonyms
        The pairs of all synonym files.
    prefixes
        Prefix to namespace; of two files that differ the first holds.
    inferred
        Which of the triples a reasoner inferred.
    rules
        Mapping rules: the file and its text.
    """

    triples: list[Triple]
    synonyms: SynonymPairs
    prefixes: dict[str, str]
    inferred: list[Triple] = field(default_factory=list)
    rules: list[tuple[Path, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Loading:
    """How RDF files are read.

    Parameters
    ----------
    imports
        A folder, or an XML catalogue, in which ``owl:imports`` are looked for.
    fetch
        Whether imports that are not there are fetched over http or https.
    reason
        The reasoner that is asked what follows.
    cache
        The folder of the cache; ``None`` for none.
    """

    imports: Path | None = None
    fetch: bool = False
    reason: Reasoner | None = None
    cache: Path | None = None


def loading(
    imports: str | Path | None, fetch: bool, reason: str | None, folder: Path | str | bool | None
) -> Loading:
    """Return the options as `Ontology.load` takes them.

    Raises
    ------
    OntologyError
        There is no such reasoner.
    """
    reasoner: Reasoner | None = None
    if reason is not None:
        from semantic.ontology.reasoner import Reasoner

        try:
            reasoner = Reasoner(reason)
        except ValueError:
            what = f"no reasoner is called {reason!r}"
            raise OntologyError(Problem(what, Place("reason"), "Use hermit or pellet.")) from None
    where = None if imports is None else Path(imports)
    return Loading(where, fetch, reasoner, cache.cache_folder(folder))


def read_sources(
    paths: Iterable[Path],
    on_problem: OnProblem,
    limits: Limits = DEFAULT_LIMITS,
    options: Loading = Loading(),
) -> Sources:
    """Read the files that together make one ontology.

    These are RDF and OWL/XML, synonyms (``.csv``; ``.json``) and mapping rules (``.rq``). A file
    that is named twice is read once.

    Raises
    ------
    OntologyError
        At the first file that cannot be read: an ontology with a part missing would answer
        wrongly without a word. When reasoning fails.
    """
    rdf: list[Path] = []
    synonyms: list[SynonymRows] = []
    rules: list[tuple[Path, str]] = []
    try:
        for path in _different(paths):
            if is_folder(path):
                _refuse_folder(path)
            if path.suffix.lower() == ".rq":
                rules.append((path, _text(path)))
            elif _is_of_synonyms(path):
                from semantic.ontology.synonym_files import read_synonyms

                synonyms.append(read_synonyms(path, on_problem, limits))
            else:
                rdf.append(path)
        read = _cached(rdf, on_problem, limits, options)
    except InputError as error:
        raise OntologyError(error.problem) from error
    except OSError as error:
        raise OntologyError(unreadable(str(error.filename), error)) from error
    inferred = read.triples[len(read.triples) - read.inferred :]
    pairs = merged(synonyms, on_problem)
    return Sources(read.triples, pairs, read.prefixes, inferred, rules)


def _different(paths: Iterable[Path]) -> Iterable[Path]:
    found: dict[str, Path] = {}
    for path in paths:
        found.setdefault(realpath(path), path)
    return found.values()


def _refuse_folder(path: Path) -> NoReturn:
    what, remedy = "a folder, not a file", "Name the files that make up the ontology."
    raise InputError(Problem(what, Place(str(path)), remedy))


def _is_of_synonyms(path: Path) -> bool:
    if path.suffix.lower() == ".json":
        from semantic.ontology.synonym_files import is_synonym_json

        with path.open("rb") as stream:
            return is_synonym_json(stream.read(HEAD_BYTES))
    return path.suffix.lower() == ".csv"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"not UTF-8 at byte {error.start}"
        raise InputError(Problem(what, Place(str(path)), "Save the file as UTF-8.")) from error


def _cached(
    paths: Sequence[Path], on_problem: OnProblem, limits: Limits, options: Loading
) -> Cached:
    """Return what the files say: from the cache, or else by reading them."""
    name = _cache_name(paths, limits, options)
    if name is None or options.cache is None:
        return _read(paths, on_problem, limits, options)[0]
    found = cache.load(options.cache, name)
    if found is not None:
        for problem in found.problems:
            on_problem(problem)
        return found
    read, fetched = _read(paths, on_problem, limits, options)
    # What was fetched may change there, and no digest would tell. A file that changed while it was
    # read gives another digest now; what was read may be either.
    if not fetched and _name_now(paths, limits, options) == name:
        cache.save(options.cache, name, read)
    return read


def _name_now(paths: Sequence[Path], limits: Limits, options: Loading) -> str | None:
    try:
        return _cache_name(paths, limits, options)
    except (InputError, OSError):
        return None  # a file has gone since it was read


def _cache_name(paths: Sequence[Path], limits: Limits, options: Loading) -> str | None:
    """Return the name in the cache; ``None`` where it is not worth it."""
    if options.cache is None:
        return None
    files = list(paths)
    unread: list[Path] = []
    if options.imports is not None:
        from semantic.ontology.imports import importable

        for file in importable(options.imports, limits):
            readable = file.is_file() and os.access(file, os.R_OK)
            (files if readable else unread).append(file)
        if any(file.stat().st_size > limits.document_bytes for file in files[len(paths) :]):
            return None  # it may never be read, and to digest it could take long
    if not all(file.is_file() for file in paths):
        return None  # a pipe can be read only once
    if options.reason is None and sum(file.stat().st_size for file in files) < _SMALL:
        return None
    settings = (len(paths), str(options.imports), options.fetch, options.reason, limits, unread)
    return cache.digest(files, settings)


def _read(
    paths: Sequence[Path], on_problem: OnProblem, limits: Limits, options: Loading
) -> tuple[Cached, list[str]]:
    """Read files and imports, and reason; return also what was fetched."""
    from semantic.ontology.documents import read_file  # not needed for what is in the cache
    from semantic.ontology.imports import Closure, places_of

    problems: list[Problem] = []

    def report(problem: Problem) -> None:
        problems.append(problem)
        on_problem(problem)

    places = None if options.imports is None else places_of(options.imports, report, limits)
    given = [(path, read_file(path, report, limits)) for path in paths]
    closure = Closure(given, places, report, may_fetch=options.fetch, limits=limits)
    triples: list[Triple] = []
    prefixes: dict[str, str] = {}
    for document in closure.documents:
        triples += document.triples
        for prefix, namespace in document.prefixes.items():
            prefixes.setdefault(prefix, namespace)
    inferred: list[Triple] = []
    if options.reason is not None:
        from semantic.ontology.reasoner import infer

        inferred = infer(triples, options.reason, report, limits)
    read = Cached(triples + inferred, len(inferred), prefixes, tuple(problems))
    return read, closure.fetched

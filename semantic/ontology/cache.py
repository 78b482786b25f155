"""Ontologies that were read before: what reading and reasoning gave, quick to load.

A file holds a digest of the rest, and JSON: the distinct terms, the triples as their numbers, the
prefixes, and the problems that reading reported, which are reported again. It can be wrong, but it
runs nothing; what is damaged anywhere is not looked into, and is made again.

Its name is a digest of all that went in: the bytes of the files and of those that imports may
come from, the options, and the versions of the programs. So nothing in it can be out of date, and
a file is never changed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode

from semantic.errors import Place, Problem, Severity
from semantic.terms import Term, Triple

_FORMAT = 3
"""To be raised with each change of what is written or of what reading gives."""

_KEPT, _BYTES = 32, 1 << 30
"""So many files, and bytes, are kept; of more, those that were written first go."""

_MAGIC = b"graphmatch ontology\n"
_SUFFIX = ".ontology"
_BROKEN = (AttributeError, IndexError, KeyError, OSError, TypeError, ValueError)
"""What reading a file may raise that is none of ours, though its digest holds."""


@dataclass(frozen=True, slots=True)
class Cached:
    """What a file holds.

    Parameters
    ----------
    triples
        The ontology's, its imports' and the inferred ones, in this order.
    inferred
        How many of them, at the end, a reasoner inferred.
    prefixes
        Prefix to namespace.
    problems
        What reading reported.
    """

    triples: list[Triple]
    inferred: int
    prefixes: dict[str, str]
    problems: tuple[Problem, ...]


def cache_folder(cache: Path | str | bool | None) -> Path | None:
    """Return the folder of the cache: the one named, the user's own, or none."""
    if cache is False:
        return None
    if cache is None or cache is True:
        from platformdirs import user_cache_path

        return user_cache_path("graphmatch", appauthor=False) / "ontologies"
    return Path(cache)


def digest(files: Sequence[Path], options: Iterable[object]) -> str:
    """Return the name under which an ontology is kept.

    Parameters
    ----------
    files
        All that it is read from. Their names count, too, for messages have them, and so do
        their addresses, to which relative IRIs are relative.
    options
        All else that changes the result.

    Raises
    ------
    OSError
        When a file cannot be read.
    """
    hashed = hashlib.sha256()
    programs = [_version(name) for name in ("graphmatch", "pyoxigraph", "owlready2")]
    for part in (_FORMAT, *programs, *options):
        hashed.update(repr(part).encode() + b"\0")
    for file in files:
        with file.open("rb") as stream:
            for each in (file, file.absolute()):
                hashed.update(str(each).encode("utf-8", "surrogateescape") + b"\0")
            hashed.update(hashlib.file_digest(stream, "sha256").digest())
    return hashed.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def load(folder: Path, name: str) -> Cached | None:
    """Return what was kept; ``None`` where there is nothing, or the file is damaged."""
    try:
        data = (folder / f"{name}{_SUFFIX}").read_bytes()
        start = len(_MAGIC) + hashlib.sha256().digest_size
        if data[:start] != _MAGIC + _seal(name, data[start:]):
            return None
        said = json.loads(data[start:])
        iris, blanks, literals = said["terms"]
        terms: list[Term] = [
            *map(NamedNode, iris),
            *map(BlankNode, blanks),
            *map(_literal, literals),
        ]
        term = map(terms.__getitem__, said["triples"])
        problems = tuple(_problem(*each) for each in said["problems"])
        triples = list(zip(term, term, term, strict=True))
        return Cached(triples, said["inferred"], said["prefixes"], problems)
    except _BROKEN:
        return None


def save(folder: Path, name: str, read: Cached) -> None:
    """Write what was read, whole or not at all.

    Where the folder cannot be written nothing happens: the ontology is there all the same. Nor
    does it where a term is a triple term of RDF 1.2.
    """
    terms = dict.fromkeys(term for triple in read.triples for term in triple)
    iris = [term for term in terms if isinstance(term, NamedNode)]
    blanks = [term for term in terms if isinstance(term, BlankNode)]
    literals = [term for term in terms if isinstance(term, Literal)]
    numbers = {term: number for number, term in enumerate((*iris, *blanks, *literals))}
    if len(numbers) < len(terms):
        return
    said = {
        "terms": [
            [iri.value for iri in iris],
            [blank.value for blank in blanks],
            [_said_of(literal) for literal in literals],
        ],
        "triples": [numbers[term] for triple in read.triples for term in triple],
        "inferred": read.inferred,
        "prefixes": read.prefixes,
        "problems": [_told(problem) for problem in read.problems],
    }
    content = json.dumps(said).encode()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / f"{name}{_SUFFIX}", _MAGIC + _seal(name, content) + content)
        _prune(folder)


def _seal(name: str, content: bytes) -> bytes:
    """Return a digest of a file's content and name: under another's name it is not that one."""
    hashed = hashlib.sha256(name.encode() + b"\0")
    hashed.update(content)
    return hashed.digest()


def _write(path: Path, data: bytes) -> None:
    with NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        try:
            file.write(data)
            file.close()
            os.replace(file.name, path)  # noqa: PTH105 -- the file's name is a string
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _prune(folder: Path) -> None:
    files = [(file.stat(), file) for file in folder.glob(f"*{_SUFFIX}")]
    files.sort(key=lambda each: each[0].st_mtime, reverse=True)
    size = 0
    for number, (stat, file) in enumerate(files):
        size += stat.st_size
        if number >= _KEPT or (number and size > _BYTES):
            file.unlink(missing_ok=True)


def _said_of(literal: Literal) -> list[str]:
    if literal.direction is not None:
        return [literal.value, literal.language or "", literal.direction.value]
    if literal.language is not None:
        return [literal.value, literal.language]
    return [literal.value, "", "", literal.datatype.value]


def _literal(said: list[str]) -> Literal:
    if len(said) == 4:
        return Literal(said[0], datatype=NamedNode(said[3]))
    direction = BaseDirection(said[2]) if len(said) == 3 else None
    return Literal(said[0], language=said[1], direction=direction)


def _told(problem: Problem) -> list[object]:
    where = problem.where
    place = [where.source, where.line, where.column, where.item]
    return [problem.what, place, problem.remedy, problem.severity.value]


def _problem(what: str, where: list[Any], remedy: str, severity: str) -> Problem:
    return Problem(what, Place(*where), remedy, Severity(severity))

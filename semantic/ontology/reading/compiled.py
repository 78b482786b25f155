"""Compiled ontologies: what reading and reasoning gave, in a file that is quick to load.

A file holds the distinct terms (their kinds, one text and where each term's part of it begins),
the triples as three columns of integers, the prefixes, and the problems that reading reported,
which are reported again. It is numpy's `npz`, without pickled objects, behind a SHA-256 digest of
it: what is damaged anywhere is not looked into. A file that somebody else wrote can give a wrong
ontology, and can run nothing.

Its name is a digest of all that went in: the bytes of the files and of those that imports may
come from, the options, and the versions of the programs. So nothing in it can be out of date, and
a file is never changed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from zipfile import BadZipFile

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.errors import Place, Problem, Severity
from semantic.terms import Term, Triple
from semantic.vocabulary import XSD

_FORMAT = 2
"""To be raised with each change of what is written or of what reading gives."""

_KEPT = 32
"""So many files are kept; of more, those that were written first go."""

_IRI, _BLANK, _TEXT, _LANGUAGE, _TYPED = range(5)
_STRING = XSD["string"]
_MAGIC = b"graphmatch ontology\n"
_SUFFIX = ".compiled"
_BROKEN = (BadZipFile, EOFError, IndexError, KeyError, OSError, TypeError, ValueError)
"""What reading a file may raise that is none of ours, though its digest holds."""


@dataclass(frozen=True, slots=True)
class Compiled:
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
    """Return the folder of compiled ontologies: the one named, the user's own, or none."""
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


def load(folder: Path, name: str) -> Compiled | None:
    """Return a compiled ontology; ``None`` where there is none, or its file is damaged."""
    import numpy as np

    try:
        content = _whole(_path(folder, name).read_bytes(), name)
        if content is None:
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            terms = _terms(file, header["tags"])
            columns = (map(terms.__getitem__, column.tolist()) for column in file["triples"])
            triples = list(zip(*columns, strict=True))
        problems = tuple(_problem(**each) for each in header["problems"])
        return Compiled(triples, header["inferred"], header["prefixes"], problems)
    except _BROKEN:
        return None


def save(folder: Path, name: str, compiled: Compiled) -> None:
    """Write a compiled ontology, whole or not at all.

    Where the folder cannot be written nothing happens: the ontology is there all the same. Nor
    does it where a term is one that the format has not (RDF 1.2's triple terms).
    """
    import numpy as np

    ids: dict[Term, int] = {}
    rows = [[ids.setdefault(term, len(ids)) for term in triple] for triple in compiled.triples]
    parts = [_part(term) for term in ids]
    if None in parts:
        return
    known = [part for part in parts if part is not None]
    tags = {tag: number for number, tag in enumerate(dict.fromkeys(tag for _, tag, _ in known))}
    header = {
        "tags": list(tags),
        "inferred": compiled.inferred,
        "prefixes": compiled.prefixes,
        "problems": [_fields(problem) for problem in compiled.problems],
    }
    arrays = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "kinds": np.array([kind for kind, _, _ in known], np.uint8),
        "tags": np.array([tags[tag] for _, tag, _ in known], np.int32),
        "ends": np.fromiter(accumulate(len(text) for _, _, text in known), np.int64),
        "text": np.frombuffer("".join(text for _, _, text in known).encode(), np.uint8),
        "triples": np.array(rows, np.int32).reshape(-1, 3).T,
    }
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _write(_path(folder, name), _sealed(_packed(arrays), name))
        _prune(folder)


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}{_SUFFIX}"


def _sealed(content: bytes, name: str) -> bytes:
    """Return what a file consists of: a mark, a digest of the rest, and the rest."""
    return _MAGIC + _seal(content, name) + content


def _whole(data: bytes, name: str) -> bytes | None:
    """Return the content of a file; ``None`` where a single bit of it is not as it was written."""
    start = len(_MAGIC) + hashlib.sha256().digest_size
    content = data[start:]
    return content if data[:start] == _MAGIC + _seal(content, name) else None


def _seal(content: bytes, name: str) -> bytes:
    hashed = hashlib.sha256(name.encode() + b"\0")  # a file under another's name is not that one
    hashed.update(content)
    return hashed.digest()


def _packed(arrays: dict[str, Any]) -> bytes:
    import numpy as np

    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    return packed.getvalue()


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
    files = sorted(folder.glob(f"*{_SUFFIX}"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[_KEPT:]:
        file.unlink(missing_ok=True)


def _part(term: Term) -> tuple[int, str, str] | None:
    """Return a term's kind, its language or datatype, and its text."""
    if isinstance(term, NamedNode):
        return _IRI, "", term.value
    if isinstance(term, BlankNode):
        return _BLANK, "", term.value
    if not isinstance(term, Literal) or term.direction is not None:
        return None
    if term.language is not None:
        return _LANGUAGE, term.language, term.value
    if term.datatype == _STRING:
        return _TEXT, "", term.value
    return _TYPED, term.datatype.value, term.value


def _terms(file: Any, tags: list[str]) -> list[Term]:
    text = file["text"].tobytes().decode()
    ends = file["ends"].tolist()
    if ends and ends[-1] != len(text):
        raise ValueError("the text was cut off")
    datatypes = {tag: NamedNode(tag) for tag in tags if ":" in tag}
    terms: list[Term] = []
    start = 0
    columns = (file["kinds"].tolist(), file["tags"].tolist(), ends)
    for kind, tag, end in zip(*columns, strict=True):
        value = text[start:end]
        start = end
        if kind == _IRI:
            terms.append(NamedNode(value))
        elif kind == _TEXT:
            terms.append(Literal(value))
        elif kind == _LANGUAGE:
            terms.append(Literal(value, language=tags[tag]))
        elif kind == _TYPED:
            terms.append(Literal(value, datatype=datatypes[tags[tag]]))
        else:
            terms.append(BlankNode(value))
    return terms


def _fields(problem: Problem) -> dict[str, object]:
    where = problem.where
    return {
        "what": problem.what,
        "where": [where.source, where.line, where.column, where.item],
        "remedy": problem.remedy,
        "severity": problem.severity.value,
    }


def _problem(*, what: str, where: list[Any], remedy: str, severity: str) -> Problem:
    return Problem(what, Place(*where), remedy, Severity(severity))

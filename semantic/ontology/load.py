"""Ontology files to triples and synonyms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from semantic.errors import InputError, OnProblem, OntologyError, Place, Problem
from semantic.folders import is_folder, unreadable
from semantic.limits import Limits
from semantic.ontology.synonyms import SynonymPairs, merge_pairs, read_synonyms
from semantic.quads import LINE_FORMATS, read_quads
from semantic.syntax import HEAD_BYTES, tell_syntax
from semantic.terms import Triple

_REMEDY = "Give RDF (Turtle, RDF/XML, JSON-LD, N-Triples, …) or a CSV file of synonyms."


@dataclass(frozen=True, slots=True)
class Sources:
    """What the files of an ontology hold together."""

    triples: list[Triple]
    synonyms: SynonymPairs
    prefixes: dict[str, str]


def read_sources(paths: Sequence[Path], on_problem: OnProblem, limits: Limits) -> Sources:
    """Read RDF files and synonym files (``.csv``), which together make one ontology.

    Raises
    ------
    OntologyError
        At the first file that cannot be read: an ontology with a part missing would answer
        wrongly without a word.
    """
    triples: list[Triple] = []
    synonyms: list[SynonymPairs] = []
    prefixes: dict[str, str] = {}
    for path in paths:
        try:
            if is_folder(path):
                _refuse_folder(path)
            if path.suffix.lower() == ".csv":
                synonyms.append(read_synonyms(path, on_problem))
            else:
                triples += _read_rdf(path, prefixes, on_problem, limits)
        except InputError as error:
            raise OntologyError(error.problem) from error
        except OSError as error:
            raise OntologyError(unreadable(str(path), error)) from error
    return Sources(triples, merge_pairs(synonyms, on_problem), prefixes)


def _refuse_folder(path: Path) -> NoReturn:
    what, remedy = "a folder, not a file", "Name the files that make up the ontology."
    raise InputError(Problem(what, Place(str(path)), remedy))


def _read_rdf(
    path: Path, prefixes: dict[str, str], on_problem: OnProblem, limits: Limits
) -> list[Triple]:
    source = str(path)
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        if not head.strip():
            raise InputError(Problem("the file is empty", Place(source), _REMEDY))
        syntax = tell_syntax(head, source, _REMEDY)
        stream.seek(0)
        strict = _raise if syntax in LINE_FORMATS else on_problem
        own: dict[str, str] = {}
        quads = read_quads(stream, syntax, source, on_problem=strict, limits=limits, prefixes=own)
        triples: list[Triple] = [(q.subject, q.predicate, q.object) for q in quads]
        for prefix, namespace in own.items():
            prefixes.setdefault(prefix, namespace)  # of two files that differ the first is shown
        return triples


def _raise(problem: Problem) -> None:
    raise InputError(problem)

"""From the options of loading to an ontology."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode, RdfFormat, parse

from graphmatch.command.options import Loading
from semantic.errors import InputError, OnProblem, OntologyError, Place, Problem
from semantic.limits import DEFAULT_LIMITS
from semantic.ontology.ontology import Ontology
from semantic.syntax import HEAD_BYTES, tell_syntax
from semantic.vocabulary import PREFIXES

_NOT_RDF = frozenset({".csv", ".rq"})
_XML_PREFIX = re.compile(rb"""xmlns:([\w.-]+)\s*=\s*["']([^"'&]+)["']""")
_PREFIXED = re.compile(r"([^\s:/]*):([^\s/].*)?")


def load(files: Sequence[Path], loading: Loading, on_problem: OnProblem) -> Ontology:
    """Load files as the options say.

    Raises
    ------
    OntologyError
        When a file cannot be read, or an option means nothing.
    """
    arguments = _arguments(files, loading)
    if not files:
        return Ontology(on_problem=on_problem)
    return Ontology.load(*files, on_problem=on_problem, **arguments)


def _arguments(files: Sequence[Path], loading: Loading) -> dict[str, Any]:
    """Return what differs from the defaults, as `Ontology.load` calls it."""
    if loading.no_cache and loading.cache is not None:
        what, remedy = "--cache and --no-cache are given both", "Leave one of them out."
        raise OntologyError(Problem(what, Place("--no-cache"), remedy))
    given: dict[str, Any] = {}
    if loading.imports is not None:
        given["imports"] = loading.imports
    if loading.fetch_imports:
        given["fetch"] = True
    if loading.reason is not None:
        given["reason"] = loading.reason
    if loading.reason_seconds is not None:
        given["limits"] = replace(DEFAULT_LIMITS, reasoning_seconds=loading.reason_seconds)
    if loading.no_cache or loading.cache is not None:
        given["cache"] = False if loading.no_cache else loading.cache
    if loading.taxonomy:
        given["taxonomies"] = tuple(taxonomies(loading.taxonomy, files))
    if loading.nfkc or loading.casefold or loading.label_synonyms:
        from semantic.ontology.synonyms import SynonymOptions

        given["synonyms"] = SynonymOptions(
            nfkc=loading.nfkc, casefold=loading.casefold, labels=loading.label_synonyms
        )
    return given


def taxonomies(names: Sequence[str], files: Sequence[Path]) -> Iterator[NamedNode]:
    """Yield the properties that ``--taxonomy`` names, by IRI or by a prefix that a file declares.

    Raises
    ------
    OntologyError
        When a name is neither.
    """
    declared: Mapping[str, str] = PREFIXES
    if any(_split(name)[0] not in declared for name in names):
        declared = {**_declared(files), **PREFIXES}
    for name in names:
        prefix, local = _split(name)
        if prefix in declared:
            yield NamedNode(declared[prefix] + local)
            continue
        try:
            yield _iri(name)
        except ValueError as error:
            what = "not an IRI, and no file declares its prefix"
            remedy = "Give the property's whole IRI."
            raise OntologyError(Problem(what, Place(f"--taxonomy {name}"), remedy)) from error


def _split(name: str) -> tuple[str, str]:
    found = _PREFIXED.fullmatch(name)
    return ("", name) if found is None else (found[1], found[2] or "")


def _iri(name: str) -> NamedNode:
    iri = name.removeprefix("<").removesuffix(">")
    if "://" not in iri and not iri.startswith("urn:"):
        raise ValueError(name)
    return NamedNode(iri)


def _declared(files: Sequence[Path]) -> dict[str, str]:
    """Return the prefixes that the files declare before they state anything."""
    prefixes: dict[str, str] = {}
    for path in files:
        if path.suffix.lower() not in _NOT_RDF:
            prefixes = {**_prefixes(path), **prefixes}
    return prefixes


def _prefixes(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            syntax = tell_syntax(head, str(path))
            if syntax == RdfFormat.RDF_XML:
                found = _XML_PREFIX.findall(head)
                return {prefix.decode(): iri.decode() for prefix, iri in found}
            stream.seek(0)
            quads = parse(stream, format=syntax)
            next(quads, None)
            return quads.prefixes
    except (InputError, OSError, SyntaxError, UnicodeDecodeError):
        return {}  # loading it says what is wrong

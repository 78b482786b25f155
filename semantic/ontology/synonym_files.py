"""Synonym files, CSV and JSON, to rows; what says nothing usable is reported and passed over.

JSON is an object of roots with lists of their synonyms, as search engines have it. It is told from
JSON-LD by content: keys with ``@``.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from semantic.errors import OnProblem, OntologyError, Place, Problem
from semantic.limits import DEFAULT_LIMITS, Limits, too_long
from semantic.ontology.synonyms import SynonymRow, SynonymRows
from semantic.terms import SURROGATE

_FORM = 'Write {"root": ["synonym", …], …}.'
_KEYWORD = re.compile(rb'"@[a-z]+"\s*:')
_VALUE = re.compile(rb'"|-?[0-9]|(?:true|false|null)\s*\Z')
"""What JSON begins with that is neither an object nor a list; nothing in RDF begins so."""
_FEED = re.compile(rb'"version"\s*:\s*"https?:(?:\\?/){2}jsonfeed\.org')


def is_synonym_json(head: bytes) -> bool:
    """Whether a document begins as JSON that is neither JSON-LD nor a feed.

    A number or a text by itself is, too: it is no synonyms, and nothing else either.

    Examples
    --------
    >>> is_synonym_json(b'{"United States": ["US", "U.S."]}')
    True
    >>> is_synonym_json(b'{"@context": {"US": "http://example.org/us"}}')
    False
    """
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _VALUE.match(head):
        return True  # reading it says what is wrong
    return head[:1] in (b"{", b"[") and not _KEYWORD.search(head) and not _FEED.search(head)


def read_synonyms(
    path: Path, on_problem: OnProblem, limits: Limits = DEFAULT_LIMITS
) -> SynonymRows:
    """Read a synonym file: CSV with the columns ``term`` and ``root``, or JSON (``.json``).

    A name is an IRI when it begins with a scheme that IRIs of terms have (``http:``, ``https:``,
    ``urn:``), and a text otherwise. A text whose root is an IRI is a label of that term. Rows that
    say nothing usable are reported and passed over.

    Raises `OntologyError` when the file is no such CSV or JSON, is not UTF-8, or is JSON beyond the
    limits ``document_bytes`` and ``nesting``.
    """
    collector = _Collector(Place(str(path)), on_problem, limits)
    try:
        if path.suffix.lower() == ".json":
            _read_json(path, collector, limits)
        else:
            _read_csv(path, collector)
    except UnicodeDecodeError as error:
        what = f"not UTF-8 at byte {error.start}"
        raise _refused(what, path, "Save the file as UTF-8.") from error
    labels = tuple(dict.fromkeys(collector.labels))
    return SynonymRows(tuple(collector.terms), tuple(collector.texts), labels)


def _refused(what: str, path: Path, remedy: str, line: int | None = None) -> OntologyError:
    return OntologyError(Problem(what, Place(str(path), line=line), remedy))


def _read_csv(path: Path, collector: _Collector) -> None:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {"term", "root"} <= set(rows.fieldnames or ()):
                what = "the first line does not name the columns `term` and `root`"
                raise _refused(what, path, "Write `term,root` above the pairs.", line=1)
            for row in rows:
                term, root = ((row[name] or "").strip() for name in ("term", "root"))
                collector.add(term, root, replace(collector.where, line=rows.line_num))
    except csv.Error as error:
        raise _refused(f"not CSV: {error}", path, "Write `term,root` on each line.") from error


def _read_json(path: Path, collector: _Collector, limits: Limits) -> None:
    with path.open("rb") as file:
        data = file.read(limits.document_bytes + 1)
    if len(data) > limits.document_bytes:
        what = f"larger than {limits.document_bytes:,} bytes"
        raise _refused(what, path, "Raise the limit `document_bytes`, or give CSV.")
    try:
        document = json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_Object,
            parse_int=float,  # no number is of use, and an int may have too many digits
        )
    except json.JSONDecodeError as error:
        what = f"not JSON: {error.msg}"
        raise _refused(what, path, "Correct the file there.", line=error.lineno) from error
    except RecursionError as error:
        raise _refused("its objects and lists nest too deep", path, _FORM) from error
    if not isinstance(document, _Object):
        raise _refused("not an object of lists", path, _FORM)
    for root, synonyms in document:
        where = replace(collector.where, item=_short(root))
        if not isinstance(synonyms, list) or isinstance(synonyms, _Object):
            collector.report("the value of a root is not a list of its synonyms", where)
            continue
        for synonym in synonyms:
            if isinstance(synonym, str):
                collector.add(synonym.strip(), root.strip(), where)
            else:
                collector.report("a synonym is not a text", where)


class _Object(list[tuple[str, Any]]):
    """A JSON object with all of its keys, those that come twice, too."""

    __slots__ = ()


class _Collector:
    """Sorts rows into pairs of terms, pairs of texts, and labels."""

    def __init__(self, where: Place, on_problem: OnProblem, limits: Limits) -> None:
        self.where = where
        self.terms: list[SynonymRow[NamedNode]] = []
        self.texts: list[SynonymRow[str]] = []
        self.labels: list[tuple[str, NamedNode]] = []
        self._limits = limits
        self._on_problem = on_problem

    def add(self, term: str, root: str, where: Place) -> None:
        """Add a pair, and where it stands."""
        if not term or not root:
            self.report("a row needs both a term and a root", where)
        elif max(len(term), len(root)) > self._limits.text_characters:
            self._on_problem(too_long("a text", where, self._limits))
        elif SURROGATE.search(term + root):
            self.report("half of a surrogate pair is no text", where)
        elif (iri := _iri(root)) is not None:
            if (name := _iri(term)) is None:
                self.labels.append((term, iri))
            else:
                self.terms.append(SynonymRow(name, iri, where))
        elif _iri(term) is not None:
            self.report(f"the IRI {term} cannot have the text {root!r} as its root", where)
        else:
            self.texts.append(SynonymRow(term, root, where))

    def report(self, what: str, where: Place) -> None:
        """Report a row that says nothing usable."""
        self._on_problem(Problem(what, where, "Correct or remove the row; it was skipped."))


def _short(root: str) -> str:
    """Name an entry of JSON, which has no line: by its key, printable and not too long."""
    name = ascii(root) if not root.isprintable() else repr(root)
    return name if len(name) <= 60 else f"{name[:57]}…"


def _iri(name: str) -> NamedNode | None:
    if not name.startswith(("http:", "https:", "urn:")):
        return None
    try:
        return NamedNode(name)
    except ValueError:
        return None

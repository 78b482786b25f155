"""Synonyms: every name of a thing is replaced by its root before anything else.

S-ToPSS translates attributes and values to a root term in its first step, and
CTPS keeps a hash table from each name to its root word (section 4). Here names are
IRIs (``owl:sameAs``, equivalent classes and properties, is-a cycles, pairs of a
file) and whole literals (pairs of a file: ``US`` for ``United States``). A chain
is followed to its end.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import networkx as nx
from pyoxigraph import Literal, NamedNode

from semantic.errors import OnProblem, OntologyError, Place, Problem, Severity
from semantic.terms import Term, Triple
from semantic.vocabulary import RDF, RESERVED, XSD

_Name = TypeVar("_Name", NamedNode, str)
_FIXED = (*RESERVED, XSD.iri)
"""Vocabularies whose terms are their own roots: what they mean is built in."""

_TEXT_TYPES = frozenset({XSD["string"].value, RDF["langString"].value})


@dataclass(frozen=True, slots=True)
class SynonymPairs:
    """What a synonym file says.

    Parameters
    ----------
    terms
        IRI to the IRI that is its root.
    texts
        Literal text to the text that is its root.
    labels
        Further labels for a term: text and IRI. They are found in text, and rewrite nothing.
    """

    terms: Mapping[NamedNode, NamedNode] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[tuple[str, NamedNode], ...] = ()


class Roots:
    """The root of every term that has more than one name.

    Parameters
    ----------
    groups
        Pairs of IRIs that mean the same.
    pairs
        The synonym files' pairs, which also say which name is the root.
    declared
        Terms that make better roots than others.

    Examples
    --------
    >>> pairs = SynonymPairs(texts={"US": "United States", "U.S.": "US"})
    >>> Roots([], pairs, frozenset()).root(Literal("U.S.", language="en")).value
    'United States'
    """

    def __init__(
        self,
        groups: Iterable[tuple[NamedNode, NamedNode]],
        pairs: SynonymPairs,
        declared: frozenset[Term],
    ) -> None:
        graph: nx.Graph[NamedNode] = nx.Graph()
        graph.add_edges_from(groups)
        graph.add_edges_from(pairs.terms.items())
        better = (*_named(pairs.terms), declared)
        self._terms: dict[Term, Term] = {}
        for component in nx.connected_components(graph):
            fixed = [term for term in component if _is_fixed(term)]
            root = _first(fixed, ()) if fixed else _first(component, better)
            self._terms.update((t, root) for t in component if t != root and t not in fixed)
        self._texts = _text_roots(pairs.texts)

    def __len__(self) -> int:
        """Return how many names have another name as their root."""
        return len(self._terms) + sum(text != end.value for text, end in self._texts.items())

    def root(self, term: Term) -> Term:
        """Return the term that stands for this one; the term itself where it has no synonyms."""
        if isinstance(term, Literal):
            if self._texts and is_text(term):
                return self._texts.get(term.value, term)
            return term
        return self._terms.get(term, term)

    def rewrite(self, triples: Iterable[Triple]) -> list[Triple]:
        """Return the triples with every term replaced by its root, repeated ones left out."""
        if not self._terms and not self._texts:
            return list(dict.fromkeys(triples))
        root = self.root
        return list(dict.fromkeys((root(s), root(p), root(o)) for s, p, o in triples))

    def names(self, root: Term) -> tuple[Term, ...]:
        """Return the other names of a root."""
        others = [term for term, end in self._terms.items() if end == root]
        texts = [text for text, end in self._texts.items() if end == root and text != end.value]
        return (*others, *map(Literal, texts))


def is_text(literal: Literal) -> bool:
    """Whether a literal is a text, in a language or none: what a name can be."""
    return literal.datatype.value in _TEXT_TYPES


def _is_fixed(term: NamedNode) -> bool:
    return term.value.startswith(_FIXED)


def _named(pairs: Mapping[_Name, _Name]) -> tuple[frozenset[_Name], frozenset[_Name]]:
    """Return the ends of the chains of pairs, and all that some pair names as a root."""
    roots = frozenset(pairs.values())
    return frozenset(root for root in roots if pairs.get(root, root) == root), roots


def _first(names: Iterable[_Name], better: Iterable[Container[Term | str]]) -> _Name:
    """Return the first in code point order of the names in the first set that has any."""
    ordered = sorted(names, key=_spelling)
    chosen = ([name for name in ordered if name in some] for some in better)
    return next((few[0] for few in chosen if few), ordered[0])


def _spelling(name: NamedNode | str) -> str:
    return name if isinstance(name, str) else name.value


def _text_roots(pairs: Mapping[str, str]) -> dict[str, Literal]:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_edges_from(pairs.items())
    better = _named(pairs)
    found: dict[str, Literal] = {}
    for component in nx.connected_components(graph):
        root = Literal(_first(component, better))
        found.update(dict.fromkeys(component, root))
    return found


def read_synonyms(path: Path, on_problem: OnProblem) -> SynonymPairs:
    """Read a CSV file with the columns ``term`` and ``root``.

    A name is an IRI when it begins with a scheme that IRIs of terms have (``http:``,
    ``https:``, ``urn:``), and a text otherwise. A text whose root is an IRI is a label of that
    term. Rows that say nothing usable are reported and passed over.

    Raises
    ------
    OntologyError
        When the file has no such columns or is not UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {"term", "root"} <= set(rows.fieldnames or ()):
                raise OntologyError(
                    Problem(
                        "the first line does not name the columns `term` and `root`",
                        Place(str(path), line=1),
                        "Write `term,root` above the pairs.",
                    )
                )
            collector = _Collector(str(path), on_problem)
            for row in rows:
                term, root = ((row[name] or "").strip() for name in ("term", "root"))
                collector.add(term, root, rows.line_num)
    except csv.Error as error:
        raise OntologyError(
            Problem(f"not CSV: {error}", Place(str(path)), "Write `term,root` on each line.")
        ) from error
    except UnicodeDecodeError as error:
        raise OntologyError(
            Problem(f"not UTF-8 at byte {error.start}", Place(str(path)), "Save the file as UTF-8.")
        ) from error
    return collector.pairs()


class _Collector:
    """Sorts the rows of a synonym file into pairs of terms, pairs of texts, and labels."""

    def __init__(self, source: str, on_problem: OnProblem) -> None:
        self._source = source
        self._on_problem = on_problem
        self._terms: dict[NamedNode, NamedNode] = {}
        self._texts: dict[str, str] = {}
        self._labels: defaultdict[str, list[NamedNode]] = defaultdict(list)

    def add(self, term: str, root: str, line: int) -> None:
        if not term or not root:
            self._report("a row needs both a term and a root", line)
        elif (iri := _iri(root)) is not None:
            if (name := _iri(term)) is None:
                self._labels[term].append(iri)
            else:
                self._pair(self._terms, name, iri, line)
        elif _iri(term) is not None:
            self._report(f"the IRI {term} cannot have the text {root!r} as its root", line)
        else:
            self._pair(self._texts, term, root, line)

    def _pair(self, table: dict[_Name, _Name], term: _Name, root: _Name, line: int) -> None:
        if table.setdefault(term, root) != root:
            self._report(f"{term} has the root {table[term]} already, not {root}", line)

    def _report(self, what: str, line: int) -> None:
        place = Place(self._source, line=line)
        self._on_problem(Problem(what, place, "Correct or remove the row; it was skipped."))

    def pairs(self) -> SynonymPairs:
        labels = tuple((text, iri) for text, iris in self._labels.items() for iri in iris)
        return SynonymPairs(self._terms, self._texts, labels)


def _iri(name: str) -> NamedNode | None:
    if not name.startswith(("http:", "https:", "urn:")):
        return None
    try:
        return NamedNode(name)
    except ValueError:
        return None


def merge_pairs(several: Iterable[SynonymPairs], on_problem: OnProblem) -> SynonymPairs:
    """Put the pairs of several files together; of two roots for one name the first holds."""
    terms: dict[NamedNode, NamedNode] = {}
    texts: dict[str, str] = {}
    labels: list[tuple[str, NamedNode]] = []
    for pairs in several:
        _merge(terms, pairs.terms, on_problem)
        _merge(texts, pairs.texts, on_problem)
        labels.extend(pairs.labels)
    return SynonymPairs(terms, texts, tuple(dict.fromkeys(labels)))


def _merge(table: dict[_Name, _Name], more: Mapping[_Name, _Name], on_problem: OnProblem) -> None:
    for term, root in more.items():
        if table.setdefault(term, root) != root:
            what = f"{term} has two roots: {table[term]} and {root}"
            remedy = "Keep one of the rows; the first was used."
            on_problem(Problem(what, Place("synonyms"), remedy, Severity.WARNING))

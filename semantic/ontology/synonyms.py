"""Synonyms: replace every name by its root before all other steps.

S-ToPSS translates attributes and values to a root term in its first step, and CTPS keeps a hash
table from each name to its root word (section 4). Here, names are IRIs and whole literals. IRIs are
joined by ``owl:sameAs``, equivalent classes and properties, is-a cycles, and pairs of a file.
Literals are joined by pairs of a file (``US`` for ``United States``). A chain is followed to its
end. A name with several roots is ambiguous: it is reported and gets no root.

Cost: building the roots is linear in the pairs (a union-find over IRIs, chains for texts). After
that, each term needs one lookup.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Generic, TypeVar

from pyoxigraph import Literal, NamedNode

from semantic.errors import OnProblem, OntologyError, Place, Problem
from semantic.ontology.csv_tables import SKIPPED, CsvTable, iri_of
from semantic.terms import Term, Triple
from semantic.vocabulary import RDF, RESERVED, XSD

_Key = TypeVar("_Key", bound=Hashable)
_Name = TypeVar("_Name", NamedNode, str)

_FIXED = (*RESERVED, XSD.iri)
"""Vocabularies whose terms are always their own roots, because their meaning is built in."""

_TEXT_TYPES = frozenset({XSD["string"].value, RDF["langString"].value})


@dataclass(frozen=True, slots=True)
class SynonymOptions:
    """Rules that decide which texts are equal.

    Parameters
    ----------
    nfkc
        True if texts with the same Unicode compatibility form are equal: full-width ``US`` is
        ``US``.
    casefold
        True if texts that differ only in case are equal: ``us`` is ``US``.
    """

    nfkc: bool = False
    casefold: bool = False

    @property
    def folds(self) -> bool:
        """True if different texts may count as equal."""
        return self.nfkc or self.casefold

    def fold(self, text: str) -> str:
        """Return the lookup key of a text; texts with the same key count as equal.

        Source: The Unicode Standard, section 3.13, D146 (compatibility caseless match).
        """
        if not self.folds:
            return text
        if text.isascii():
            return text.casefold() if self.casefold else text
        if not self.nfkc:
            return text.casefold()
        if self.casefold:
            text = unicodedata.normalize("NFD", text).casefold()
            text = unicodedata.normalize("NFKD", text).casefold()
        return unicodedata.normalize("NFKC", text)


DEFAULT_SYNONYM_OPTIONS = SynonymOptions()


@dataclass(frozen=True, slots=True)
class SynonymPairs:
    """Names with one root each; `merged` makes them from the rows of files.

    `terms` and `texts` map IRIs and texts to their roots. `labels` are further labels of terms:
    they are found in texts, but rewrite nothing.
    """

    terms: Mapping[NamedNode, NamedNode] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[tuple[str, NamedNode], ...] = ()


@dataclass(frozen=True, slots=True)
class SynonymRow(Generic[_Name]):
    """The statement that a name has a root, and its place: a row of a file, or a label."""

    name: _Name
    root: _Name
    where: Place


@dataclass(frozen=True, slots=True)
class SynonymRows:
    """The rows of synonym files.

    Rows may contradict each other. `labels` are texts that label one or several terms.
    """

    terms: tuple[SynonymRow[NamedNode], ...] = ()
    texts: tuple[SynonymRow[str], ...] = ()
    labels: tuple[tuple[str, NamedNode], ...] = ()


# -- files ----------------------------------------------------------------------------------


def read_synonyms(table: CsvTable, on_problem: OnProblem) -> SynonymRows:
    """Return the rows of a table of synonyms, which has the columns ``term`` and ``root``.

    A name is an IRI if it begins with ``http:``, ``https:``, ``urn:`` or ``<``, otherwise a text.
    A text whose root is an IRI is a label of that term. Unusable rows are reported and skipped.

    Raise `OntologyError` if the table lacks a column.
    """
    if not {"term", "root"} <= table.columns:
        what = "the first line does not name the columns `term` and `root`"
        remedy = "Write `term,root`, or `topic,label,language,broader`, in the first line."
        raise OntologyError(Problem(what, Place(table.path, line=1), remedy))
    terms: list[SynonymRow[NamedNode]] = []
    texts: list[SynonymRow[str]] = []
    labels: dict[tuple[str, NamedNode], None] = {}
    for line, row in table.rows.items():
        term, root, where = row["term"], row["root"], Place(table.path, line)
        name, iri = iri_of(term), iri_of(root)
        wrong = ""
        if not term or not root:
            wrong = "a row needs both a term and a root"
        elif iri is None and name is not None:
            wrong = f"the IRI {term} cannot have the text {root!r} as its root"
        elif iri is None:
            texts.append(SynonymRow(term, root, where))
        elif name is None:
            labels[term, iri] = None
        else:
            terms.append(SynonymRow(name, iri, where))
        if wrong:
            on_problem(Problem(wrong, where, SKIPPED))
    return SynonymRows(tuple(terms), tuple(texts), tuple(labels))


# -- rows to pairs --------------------------------------------------------------------------


def merged(several: Sequence[SynonymRows], on_problem: OnProblem) -> SynonymPairs:
    """Merge the rows of several files; report and skip names with several roots."""
    labels = dict.fromkeys(label for rows in several for label in rows.labels)
    return SynonymPairs(
        unambiguous((row for rows in several for row in rows.terms), on_problem),
        unambiguous((row for rows in several for row in rows.texts), on_problem),
        tuple(labels),
    )


def normalized(pairs: SynonymPairs, options: SynonymOptions, on_problem: OnProblem) -> SynonymPairs:
    """Return the synonym pairs without the texts that have several roots when folded.

    Report these texts.
    """
    if not options.folds:
        return pairs
    rows = (SynonymRow(name, root, Place("synonyms")) for name, root in pairs.texts.items())
    texts = unambiguous(rows, on_problem, options.fold)
    return replace(pairs, texts=texts)


def unambiguous(
    rows: Iterable[SynonymRow[_Name]],
    on_problem: OnProblem,
    fold: Callable[[_Name], _Name] = lambda name: name,
) -> dict[_Name, _Name]:
    """Return the root of each name that has only one root; report names that have several.

    A row that maps a name to itself is ignored. Names and roots are compared after `fold`.

    Examples
    --------
    >>> here = Place("synonyms.csv")
    >>> rows = [("US", "USA"), ("US", "ultrasound"), ("UK", "Great Britain")]
    >>> unambiguous((SynonymRow(name, root, here) for name, root in rows), lambda _: None)
    {'UK': 'Great Britain'}
    """
    by_name: defaultdict[_Name, dict[_Name, SynonymRow[_Name]]] = defaultdict(dict)
    saying = [row for row in rows if fold(row.name) != fold(row.root)]
    for row in saying:
        by_name[fold(row.name)].setdefault(fold(row.root), row)
    for several in by_name.values():
        if len(several) > 1:
            on_problem(_ambiguous(*list(several.values())[:2]))
    return {row.name: row.root for row in saying if len(by_name[fold(row.name)]) == 1}


def _ambiguous(first: SynonymRow[_Name], second: SynonymRow[_Name]) -> Problem:
    """Return the problem of a name to which two rows give different roots."""
    name, other = _spelling(first.name), _spelling(second.name)
    roots = f"{_spelling(first.root)} ({first.where}) and {_spelling(second.root)}"
    what = f"{name} has two roots: {roots}"
    if name != other:
        what = f"{name} and {other} are the same after folding and have two roots: {roots}"
    remedy = "These rows were skipped. Keep those with one root."
    return Problem(what, second.where, remedy)


class Roots:
    """Finds the root of each term: the one term that stands for all its synonyms.

    `groups` are pairs of equivalent IRIs. `pairs` come from synonym files, are `normalized` under
    the options, and also decide which name is the root. Terms in `declared` are preferred as roots.

    Examples
    --------
    >>> pairs = SynonymPairs(texts={"US": "United States", "U.S.": "US"})
    >>> folded = Roots([], pairs, frozenset(), SynonymOptions(casefold=True))
    >>> folded.root(Literal("u.s.")).value, folded.root(Literal("who is us?")).value
    ('United States', 'who is us?')
    """

    def __init__(
        self,
        groups: Iterable[tuple[NamedNode, NamedNode]],
        pairs: SynonymPairs,
        declared: frozenset[Term],
        options: SynonymOptions = DEFAULT_SYNONYM_OPTIONS,
    ) -> None:
        self.options = options
        self._fold = options.fold if options.folds else None
        ends = _ends(pairs.terms, attrgetter("value"))
        named = frozenset(ends.values())
        self._terms: dict[Term, Term] = {}
        for component in _components((*groups, *ends.items())):
            fixed = [term for term in component if term.value.startswith(_FIXED)]
            better = fixed or [t for t in component if t in named]
            better = better or [t for t in component if t in declared] or component
            root = min(better, key=attrgetter("value"))
            self._terms.update((t, root) for t in component if t != root and t not in fixed)
        self._texts = _text_roots(pairs.texts, options)
        self._spelled = dict.fromkeys((*pairs.texts, *pairs.texts.values()))

    def __len__(self) -> int:
        """Return the number of names that have another root."""
        texts = sum(map(len, self._text_names.values()))
        return len(self._terms) + texts

    @property
    def is_identity(self) -> bool:
        """True if every term is its own root."""
        return not self._terms and not self._texts

    def root(self, term: Term) -> Term:
        """Return the root of a term; without synonyms, return the term itself."""
        if isinstance(term, Literal):
            if self._texts and is_text(term):
                text = term.value
                return self._texts.get(self._fold(text) if self._fold else text, term)
            return term
        return self._terms.get(term, term)

    def rewrite(self, triples: Iterable[Triple]) -> list[Triple]:
        """Return the distinct triples after replacing each term by its root."""
        if self.is_identity:
            return list(dict.fromkeys(triples))
        terms, root, has_texts = self._terms, self.root, bool(self._texts)
        found: dict[Triple, None] = {}
        for triple in triples:
            s, p, o = triple
            is_named = s in terms or p in terms or o in terms
            if is_named or (has_texts and isinstance(o, Literal)):
                found[root(s), root(p), root(o)] = None
            else:
                found[triple] = None
        return list(found)

    def pairs(self) -> Iterator[tuple[Term, Term]]:
        """Yield names that have another root, with this root; texts appear as their lookup keys."""
        yield from self._terms.items()
        yield from ((Literal(text), root) for text, root in self._texts.items())

    def names(self, root: Term) -> tuple[Term, ...]:
        """Return the synonyms of a root, without the root itself."""
        return (*self._term_names.get(root, ()), *self._text_names.get(root, ()))

    @cached_property
    def _term_names(self) -> Mapping[Term, list[Term]]:
        names: defaultdict[Term, list[Term]] = defaultdict(list)
        for term, root in self._terms.items():
            names[root].append(term)
        return names

    @cached_property
    def _text_names(self) -> Mapping[Term, list[Term]]:
        names: defaultdict[Term, list[Term]] = defaultdict(list)
        for literal in map(Literal, self._spelled):
            root = self.root(literal)
            if root != literal:
                names[root].append(literal)
        return names


def is_text(literal: Literal) -> bool:
    """Return whether a literal can be a name: a text with or without a language."""
    return literal.datatype.value in _TEXT_TYPES


def _spelling(name: NamedNode | str) -> str:
    return name if isinstance(name, str) else name.value


def _text_roots(texts: Mapping[str, str], options: SynonymOptions) -> dict[str, Literal]:
    """Map lookup keys of texts to roots; the root's spelling that sorts first is used."""
    spelled: dict[str, str] = {}
    for root in texts.values():
        key = options.fold(root)
        spelled[key] = min(root, spelled.get(key, root))
    links = {options.fold(text): options.fold(root) for text, root in texts.items()}
    return {key: Literal(spelled[end]) for key, end in _ends(links, str).items()}


def _ends(links: Mapping[_Key, _Key], spelling: Callable[[_Key], str]) -> dict[_Key, _Key]:
    """Map every name to the end of its chain; in a cycle, that is the name that sorts first."""
    ends: dict[_Key, _Key] = {}
    for start in links:
        way: dict[_Key, None] = {}
        name = start
        while name not in ends and name not in way and name in links:
            way[name] = None
            name = links[name]
        if name in way:  # Names before a cycle lead into it.
            names = list(way)
            end = min(names[names.index(name) :], key=spelling)
        else:
            end = ends.setdefault(name, name)
        ends.update(dict.fromkeys(way, end))
    return ends


def _components(pairs: Iterable[tuple[NamedNode, NamedNode]]) -> Iterable[list[NamedNode]]:
    """Return the groups of terms that pairs join, directly or through other terms.

    To save time, the smaller of two groups is always merged into the larger one.
    """
    groups: dict[NamedNode, list[NamedNode]] = {}
    for one, other in pairs:
        small, large = groups.setdefault(one, [one]), groups.setdefault(other, [other])
        if small is not large:
            if len(small) > len(large):
                small, large = large, small
            large += small
            groups.update(dict.fromkeys(small, large))
    return {id(group): group for group in groups.values()}.values()

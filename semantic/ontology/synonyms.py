"""Synonyms: replace every name by its root before all other steps.

S-ToPSS translates attributes and values to a root term in its first step, and CTPS keeps a hash
table from each name to its root word (section 4). Here, names are IRIs and whole literals. IRIs are
joined by ``owl:sameAs``, equivalent classes and properties, is-a cycles, and pairs of a file.
Literals are joined by pairs of a file and by SKOS labels (``US`` for ``United States``). A chain is
followed to its end. A name with several roots is ambiguous: it is reported and gets no root.

Cost: building the roots is linear in the pairs (a union-find over IRIs, chains for texts). After
that, each term needs one lookup.

Source: SKOS Reference section 5 (lexical labels).
"""

from __future__ import annotations

import csv
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Generic, TypeVar

from pyoxigraph import Literal, NamedNode

from semantic.errors import OnProblem, OntologyError, Place, Problem, Severity
from semantic.limits import DEFAULT_LIMITS, Limits, too_long
from semantic.terms import Term, Triple
from semantic.vocabulary import RDF, RESERVED, SKOS, XSD

_Key = TypeVar("_Key", bound=Hashable)
_Name = TypeVar("_Name", NamedNode, str)

_FIXED = (*RESERVED, XSD.iri)
"""Vocabularies whose terms are always their own roots, because their meaning is built in."""

_PREFERRED = SKOS["prefLabel"]
_LABELS = frozenset({_PREFERRED, SKOS["altLabel"], SKOS["hiddenLabel"]})
_TEXT_TYPES = frozenset({XSD["string"].value, RDF["langString"].value})


@dataclass(frozen=True, slots=True)
class SynonymOptions:
    """Rules: which texts are equal, and whether SKOS labels are synonyms, too.

    Parameters
    ----------
    nfkc
        True if texts with the same Unicode compatibility form are equal: full-width ``US`` is
        ``US``.
    casefold
        True if texts that differ only in case are equal: ``us`` is ``US``.
    labels
        True if a label of a SKOS concept, as a whole literal, is a synonym of its preferred label.
    """

    nfkc: bool = False
    casefold: bool = False
    labels: bool = False

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


def read_synonyms(
    path: Path, on_problem: OnProblem, limits: Limits = DEFAULT_LIMITS
) -> SynonymRows:
    """Return the rows of a synonym file: CSV with the columns ``term`` and ``root``.

    A name is an IRI if it begins with a scheme of term IRIs (``http:``, ``https:``, ``urn:``),
    otherwise a text. A text whose root is an IRI is a label of that term. Unusable rows are
    reported and skipped.

    Raise `OntologyError` if the file is not such a CSV file, or is not UTF-8.
    """
    terms: list[SynonymRow[NamedNode]] = []
    texts: list[SynonymRow[str]] = []
    labels: dict[tuple[str, NamedNode], None] = {}
    for term, root, where in _rows(path):
        name, iri = _iri(term), _iri(root)
        wrong = ""
        if not term or not root:
            wrong = "a row needs both a term and a root"
        elif max(len(term), len(root)) > limits.text_characters:
            on_problem(too_long("a text", where, limits))
        elif iri is None and name is not None:
            wrong = f"the IRI {term} cannot have the text {root!r} as its root"
        elif iri is None:
            texts.append(SynonymRow(term, root, where))
        elif name is None:
            labels[term, iri] = None
        else:
            terms.append(SynonymRow(name, iri, where))
        if wrong:
            on_problem(Problem(wrong, where, "The row was skipped. Correct or remove it."))
    return SynonymRows(tuple(terms), tuple(texts), tuple(labels))


def _rows(path: Path) -> Iterator[tuple[str, str, Place]]:
    """Yield term, root and place of each row; raise `OntologyError` if the file is not valid."""
    where = Place(str(path))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {"term", "root"} <= set(rows.fieldnames or ()):
                what = "the first line does not name the columns `term` and `root`"
                remedy = "Write `term,root` in the first line."
                raise OntologyError(Problem(what, replace(where, line=1), remedy))
            for row in rows:
                term, root = ((row[name] or "").strip() for name in ("term", "root"))
                yield term, root, replace(where, line=rows.line_num)
    except csv.Error as error:
        problem = Problem(f"not CSV: {error}", where, "Write `term,root` on each line.")
        raise OntologyError(problem) from error
    except UnicodeDecodeError as error:
        what = f"not UTF-8 at byte {error.start}"
        raise OntologyError(Problem(what, where, "Save the file as UTF-8.")) from error


def _iri(name: str) -> NamedNode | None:
    if not name.startswith(("http:", "https:", "urn:")):
        return None
    try:
        return NamedNode(name)
    except ValueError:
        return None


# -- rows to pairs --------------------------------------------------------------------------


def merged(several: Sequence[SynonymRows], on_problem: OnProblem) -> SynonymPairs:
    """Merge the rows of several files; report and skip names with several roots."""
    labels = dict.fromkeys(label for rows in several for label in rows.labels)
    return SynonymPairs(
        unambiguous((row for rows in several for row in rows.terms), on_problem),
        unambiguous((row for rows in several for row in rows.texts), on_problem),
        tuple(labels),
    )


def normalized(
    pairs: SynonymPairs, options: SynonymOptions, triples: Iterable[Triple], on_problem: OnProblem
) -> SynonymPairs:
    """Return the synonym pairs under these options, with labels added and ambiguous texts removed.

    SKOS labels in the ontology's triples are added if `options.labels` is true. Texts that have
    several roots when folded are reported and removed.
    """
    if not options.labels and not options.folds:
        return pairs
    rows = [SynonymRow(name, root, Place("synonyms")) for name, root in pairs.texts.items()]
    if options.labels:
        where = Place("ontology", item="skos:prefLabel")
        labels = label_synonyms(triples, on_problem, options)
        rows += (SynonymRow(name, root, where) for name, root in labels.items())
    texts = unambiguous(rows, on_problem, options.fold)
    return SynonymPairs(pairs.terms, texts, pairs.labels)


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


def label_synonyms(
    triples: Iterable[Triple],
    on_problem: OnProblem,
    options: SynonymOptions = DEFAULT_SYNONYM_OPTIONS,
) -> dict[str, str]:
    """Return the labels of SKOS concepts, each with the preferred label as its root.

    The root is the ``skos:prefLabel`` without a language, otherwise the English one, otherwise the
    one whose language sorts first. A text that labels concepts with different roots is reported and
    gets no root.

    Examples
    --------
    >>> us, tagged = NamedNode("urn:us"), Literal("United States", language="en")
    >>> said = [(us, SKOS["prefLabel"], tagged), (us, SKOS["altLabel"], Literal("US"))]
    >>> label_synonyms(said, print)["US"]
    'United States'
    """
    preferred: dict[Term, Literal] = {}
    labels: dict[tuple[Term, str], None] = {}
    for subject, predicate, object_ in triples:
        if predicate in _LABELS and isinstance(object_, Literal) and is_text(object_):
            labels[subject, object_.value] = None
            if predicate == _PREFERRED:
                known = preferred.get(subject, object_)
                preferred[subject] = min(known, object_, key=_preference)
    roots: defaultdict[str, dict[str, tuple[Term, str]]] = defaultdict(dict)
    for subject, text in labels:
        if subject in preferred:
            root = preferred[subject].value
            roots[options.fold(text)].setdefault(options.fold(root), (subject, text))
    for several in roots.values():
        if len(several) > 1:
            (one, text), (other, _) = list(several.values())[:2]
            what = f"{text!r} is a label of {one} and of {other}, whose preferred labels differ"
            remedy = "It is not used as a synonym. To use it, remove one of the labels."
            on_problem(Problem(what, Place("ontology"), remedy, Severity.WARNING))
    return {
        text: preferred[subject].value
        for subject, text in labels
        if subject in preferred and len(roots[options.fold(text)]) == 1
    }


def _preference(label: Literal) -> tuple[int, str, str]:
    language = label.language or ""
    english = language == "en" or language.startswith("en-")
    return 0 if not language else 1 if english else 2, language, label.value


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

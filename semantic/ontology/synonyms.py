"""Synonyms: every name of a thing is replaced by its root before anything else.

S-ToPSS translates attributes and values to a root term in its first step, and
CTPS keeps a hash table from each name to its root word (section 4). Here names are
IRIs (``owl:sameAs``, equivalent classes and properties, is-a cycles, pairs of a
file) and whole literals (pairs of a file, labels of SKOS: ``US`` for ``United
States``). A chain is followed to its end. A name to which rows give several roots is
ambiguous: it is reported, and has none of them.

Cost: making the roots is linear in the pairs (a union-find over IRIs; texts follow
their chains); one look-up a term after that.

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
"""Vocabularies whose terms are their own roots: what they mean is built in."""

_PREFERRED = SKOS["prefLabel"]
_LABELS = frozenset({_PREFERRED, SKOS["altLabel"], SKOS["hiddenLabel"]})
_TEXT_TYPES = frozenset({XSD["string"].value, RDF["langString"].value})


@dataclass(frozen=True, slots=True)
class SynonymOptions:
    """How texts are looked up, and what else gives texts a root.

    Parameters
    ----------
    nfkc
        Texts are the same when their Unicode compatibility forms are: ``US`` in full-width letters
        is ``US``.
    casefold
        Texts are the same when they differ in case only: ``us`` is ``US``.
    labels
        A label of a SKOS concept is a synonym of its preferred label, wherever it is a literal.
    """

    nfkc: bool = False
    casefold: bool = False
    labels: bool = False

    @property
    def folds(self) -> bool:
        """Whether texts that differ may be the same."""
        return self.nfkc or self.casefold

    def fold(self, text: str) -> str:
        """Return what a text is looked up by.

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
    """Names with one root each; `merged` makes it of the rows of files.

    `terms` and `texts` have the root of each IRI and of each text. `labels` are further labels for
    a term: they are found in text, and rewrite nothing.
    """

    terms: Mapping[NamedNode, NamedNode] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[tuple[str, NamedNode], ...] = ()


@dataclass(frozen=True, slots=True)
class SynonymRow(Generic[_Name]):
    """One name, its root, and where this is said."""

    name: _Name
    root: _Name
    where: Place


@dataclass(frozen=True, slots=True)
class SynonymRows:
    """What synonym files say, row by row.

    Names with their roots need not agree with each other. `labels` are texts that are labels of a
    term: of one or of several.
    """

    terms: tuple[SynonymRow[NamedNode], ...] = ()
    texts: tuple[SynonymRow[str], ...] = ()
    labels: tuple[tuple[str, NamedNode], ...] = ()


# -- files ----------------------------------------------------------------------------------


def read_synonyms(
    path: Path, on_problem: OnProblem, limits: Limits = DEFAULT_LIMITS
) -> SynonymRows:
    """Read a synonym file: CSV with the columns ``term`` and ``root``.

    A name is an IRI when it begins with a scheme that IRIs of terms have (``http:``, ``https:``,
    ``urn:``), and a text otherwise. A text whose root is an IRI is a label of that term. Rows that
    say nothing usable are reported and passed over.

    Raises `OntologyError` when the file is no such CSV, or is not UTF-8.
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
            on_problem(Problem(wrong, where, "Correct or remove the row; it was skipped."))
    return SynonymRows(tuple(terms), tuple(texts), tuple(labels))


def _rows(path: Path) -> Iterator[tuple[str, str, Place]]:
    """Yield terms and roots, and where they stand."""
    where = Place(str(path))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {"term", "root"} <= set(rows.fieldnames or ()):
                what = "the first line does not name the columns `term` and `root`"
                remedy = "Write `term,root` above the pairs."
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
    """Put the rows of several files together; names with several roots are reported."""
    labels = dict.fromkeys(label for rows in several for label in rows.labels)
    return SynonymPairs(
        unambiguous((row for rows in several for row in rows.terms), on_problem),
        unambiguous((row for rows in several for row in rows.texts), on_problem),
        tuple(labels),
    )


def normalized(
    pairs: SynonymPairs, options: SynonymOptions, triples: Iterable[Triple], on_problem: OnProblem
) -> SynonymPairs:
    """Return what pairs of files say under these options.

    Labels that are found in the ontology's triples are added, and what folds together is reported.
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
    """Return the names to which rows give one root, with it; those with several are reported.

    A row that gives a name itself says nothing.

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
    """Describe the first two rows of a name that have different roots."""
    name, other = _spelling(first.name), _spelling(second.name)
    roots = f"{_spelling(first.root)} ({first.where}) and {_spelling(second.root)}"
    what = f"{name} has two roots: {roots}"
    if name != other:
        what = f"{name} and {other} are the same when folded, and have two roots: {roots}"
    remedy = "None of these rows is used: keep those with one root."
    return Problem(what, second.where, remedy)


def label_synonyms(
    triples: Iterable[Triple],
    on_problem: OnProblem,
    options: SynonymOptions = DEFAULT_SYNONYM_OPTIONS,
) -> dict[str, str]:
    """Return the labels of SKOS concepts, each with the preferred label as its root.

    The root is the ``skos:prefLabel`` without a language; else the English one; else the one whose
    language comes first. A text that is a label of concepts with different roots is reported, and
    has none.

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
            remedy = "It is not taken as a synonym: remove one of the labels if it should be."
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
    """The root of every term that has more than one name.

    `groups` are pairs of IRIs that mean the same; `pairs` are those of synonym files, `normalized`
    under the options, and also say which name is the root; terms that are `declared` make better
    roots than others.

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
        """Return how many names have another name as their root."""
        texts = sum(map(len, self._text_names.values()))
        return len(self._terms) + texts

    @property
    def is_identity(self) -> bool:
        """Whether every term is its own root."""
        return not self._terms and not self._texts

    def root(self, term: Term) -> Term:
        """Return the term that stands for this one; the term itself where it has no synonyms."""
        if isinstance(term, Literal):
            if self._texts and is_text(term):
                text = term.value
                return self._texts.get(self._fold(text) if self._fold else text, term)
            return term
        return self._terms.get(term, term)

    def rewrite(self, triples: Iterable[Triple]) -> list[Triple]:
        """Return the triples with every term replaced by its root, repeated ones left out."""
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
        """Yield names that have another root, with it; texts by what they are looked up by."""
        yield from self._terms.items()
        yield from ((Literal(text), root) for text, root in self._texts.items())

    def names(self, root: Term) -> tuple[Term, ...]:
        """Return the other names of a root."""
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
    """Whether a literal is a text, in a language or none: what a name can be."""
    return literal.datatype.value in _TEXT_TYPES


def _spelling(name: NamedNode | str) -> str:
    return name if isinstance(name, str) else name.value


def _text_roots(texts: Mapping[str, str], options: SynonymOptions) -> dict[str, Literal]:
    """Return what each text's key has as its root; of two spellings of a root the first."""
    spelled: dict[str, str] = {}
    for root in texts.values():
        key = options.fold(root)
        spelled[key] = min(root, spelled.get(key, root))
    links = {options.fold(text): options.fold(root) for text, root in texts.items()}
    return {key: Literal(spelled[end]) for key, end in _ends(links, str).items()}


def _ends(links: Mapping[_Key, _Key], spelling: Callable[[_Key], str]) -> dict[_Key, _Key]:
    """Return every name with the end of its chain; in a circle that is the first of its names."""
    ends: dict[_Key, _Key] = {}
    for start in links:
        way: dict[_Key, None] = {}
        name = start
        while name not in ends and name not in way and name in links:
            way[name] = None
            name = links[name]
        if name in way:  # a circle: what of the way comes before it leads there all the same
            names = list(way)
            end = min(names[names.index(name) :], key=spelling)
        else:
            end = ends.setdefault(name, name)
        ends.update(dict.fromkeys(way, end))
    return ends


def _components(pairs: Iterable[tuple[NamedNode, NamedNode]]) -> Iterable[list[NamedNode]]:
    """Return the terms that pairs join: the smaller group goes into the larger one."""
    groups: dict[NamedNode, list[NamedNode]] = {}
    for one, other in pairs:
        small, large = groups.setdefault(one, [one]), groups.setdefault(other, [other])
        if small is not large:
            if len(small) > len(large):
                small, large = large, small
            large += small
            groups.update(dict.fromkeys(small, large))
    return {id(group): group for group in groups.values()}.values()

"""Rows of synonym files and labels of SKOS to synonym pairs, disputes reported.

A name with two roots whose chains do not meet is in dispute (see `chains`): it is reported with
both roots and where they stand, and has no root by these rows, for either would be a guess.

Source: SKOS Reference section 5 (lexical labels).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyoxigraph import Literal, NamedNode

from semantic.errors import OnProblem, Place, Problem, Severity
from semantic.ontology.chains import follow
from semantic.ontology.synonyms import (
    DEFAULT_SYNONYM_OPTIONS,
    SynonymOptions,
    SynonymPairs,
    is_text,
)
from semantic.terms import Term, Triple
from semantic.vocabulary import SKOS

_Name = TypeVar("_Name", NamedNode, str)
_PREFERRED = SKOS["prefLabel"]
_LABELS = frozenset({_PREFERRED, SKOS["altLabel"], SKOS["hiddenLabel"]})
_UNKNOWN = Place("synonyms")
_REMEDY = "None of these rows is used: keep those with one root."


@dataclass(frozen=True, slots=True)
class SynonymRow(Generic[_Name]):
    """One name, its root, and where this is said."""

    name: _Name
    root: _Name
    where: Place


@dataclass(frozen=True, slots=True)
class SynonymRows:
    """What one synonym file says, row by row.

    Parameters
    ----------
    terms, texts
        IRIs and texts with their roots, which need not agree with each other.
    labels
        Texts that are labels of a term: of one or of several.
    """

    terms: tuple[SynonymRow[NamedNode], ...] = ()
    texts: tuple[SynonymRow[str], ...] = ()
    labels: tuple[tuple[str, NamedNode], ...] = ()

    @classmethod
    def of(cls, pairs: SynonymPairs, where: Place = _UNKNOWN) -> SynonymRows:
        """Return pairs as rows, all at one place."""
        return cls(
            tuple(SynonymRow(name, root, where) for name, root in pairs.terms.items()),
            tuple(SynonymRow(name, root, where) for name, root in pairs.texts.items()),
            pairs.labels,
        )


def merge_pairs(
    several: Iterable[SynonymRows],
    on_problem: OnProblem,
    options: SynonymOptions = DEFAULT_SYNONYM_OPTIONS,
) -> SynonymPairs:
    """Put the rows of several files together, each name with the end of its chain.

    Parameters
    ----------
    several
        What each file says.
    on_problem
        Called with each name in dispute.
    options
        Which texts are the same.

    Examples
    --------
    >>> from semantic.ontology.synonyms import SynonymPairs
    >>> first = SynonymRows.of(SynonymPairs(texts={"US": "USA", "UK": "Great Britain"}))
    >>> second = SynonymRows.of(SynonymPairs(texts={"USA": "America", "UK": "Ukraine"}))
    >>> merge_pairs([first, second], print).texts
    synonyms: UK has two roots: Great Britain (synonyms) and Ukraine. None of these rows is used: \
keep those with one root.
    {'US': 'America', 'USA': 'America'}
    """
    held = list(several)
    labels = dict.fromkeys(label for rows in held for label in rows.labels)
    return SynonymPairs(
        _settle([row for rows in held for row in rows.terms], _same, on_problem),
        _settle([row for rows in held for row in rows.texts], options.fold, on_problem),
        tuple(labels),
    )


def settle(
    pairs: SynonymPairs, options: SynonymOptions, triples: Iterable[Triple], on_problem: OnProblem
) -> SynonymPairs:
    """Return what pairs say under these options: labels added, and what folds together reported.

    Parameters
    ----------
    pairs
        Those of the synonym files.
    triples
        The ontology's, in which SKOS labels are looked for if ``options.labels``.
    """
    if not options.labels and not options.folds:
        return pairs
    held = [SynonymRows.of(pairs)]
    if options.labels:
        labels = label_synonyms(triples, on_problem, options)
        held.append(SynonymRows.of(labels, Place("ontology", item="skos:prefLabel")))
    return merge_pairs(held, on_problem, options)


def label_synonyms(
    triples: Iterable[Triple],
    on_problem: OnProblem,
    options: SynonymOptions = DEFAULT_SYNONYM_OPTIONS,
) -> SynonymPairs:
    """Return the labels of SKOS concepts as synonyms of their preferred labels.

    The root is the ``skos:prefLabel`` without a language; else the English one; else the one
    whose language comes first. A text that is a label of concepts with different roots is
    reported, and has none.

    Examples
    --------
    >>> from semantic.vocabulary import Namespace
    >>> ex = Namespace("http://example.org/")
    >>> labels = label_synonyms(
    ...     [
    ...         (ex["us"], SKOS["prefLabel"], Literal("United States", language="en")),
    ...         (ex["us"], SKOS["prefLabel"], Literal("États-Unis", language="fr")),
    ...         (ex["us"], SKOS["altLabel"], Literal("US")),
    ...     ],
    ...     print,
    ... )
    >>> labels.texts["US"], labels.texts["États-Unis"]
    ('United States', 'United States')
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
    found: dict[str, str] = {}
    for several in roots.values():
        if len(several) > 1:
            (one, text), (other, _) = list(several.values())[:2]
            what = f"{text!r} is a label of {one} and of {other}, whose preferred labels differ"
            remedy = "It is not taken as a synonym: remove one of the labels if it should be."
            on_problem(Problem(what, Place("ontology"), remedy, Severity.WARNING))
    for subject, text in labels:
        if subject in preferred and len(roots[options.fold(text)]) == 1:
            found[text] = preferred[subject].value
    return SynonymPairs(texts=found)


def _preference(label: Literal) -> tuple[int, str, str]:
    language = label.language or ""
    english = language == "en" or language.startswith("en-")
    return 0 if not language else 1 if english else 2, language, label.value


def _same(term: NamedNode) -> NamedNode:
    return term


def _settle(
    rows: Iterable[SynonymRow[_Name]], key: Callable[[_Name], _Name], on_problem: OnProblem
) -> dict[_Name, _Name]:
    """Return each name's end of the chain, those in dispute reported and left out."""
    by_key: defaultdict[_Name, dict[_Name, SynonymRow[_Name]]] = defaultdict(dict)
    spelled: dict[_Name, _Name] = {}
    names: dict[_Name, _Name] = {}
    for row in rows:
        name, root = key(row.name), key(row.root)
        by_key[name].setdefault(root, row)
        spelled[root] = min(row.root, spelled.get(root, row.root), key=_spelling)
        names[row.name] = name
    chains = follow(by_key, _spelling)
    for name, several in by_key.items():
        if name in chains.disputed:
            on_problem(_dispute(several, chains.ends))
    return {
        spelling: spelled[chains.ends[name]]
        for spelling, name in names.items()
        if name not in chains.disputed
    }


def _dispute(several: Mapping[_Name, SynonymRow[_Name]], ends: Mapping[_Name, _Name]) -> Problem:
    """Describe the first two rows of a name whose chains end differently."""
    rows = list(several.items())
    end_of = {root: ends.get(root, root) for root, _ in rows}
    first_root, first = rows[0]
    differing = (row for root, row in rows[1:] if end_of[root] != end_of[first_root])
    second = next(differing, rows[1][1])
    name, other = _spelling(first.name), _spelling(second.name)
    roots = f"{_spelling(first.root)} ({first.where}) and {_spelling(second.root)}"
    if name == other:
        what = f"{name} has two roots: {roots}"
    else:
        what = f"{name} and {other} are the same when folded, and have two roots: {roots}"
    return Problem(what, second.where, _REMEDY)


def _spelling(name: NamedNode | str) -> str:
    return name if isinstance(name, str) else name.value

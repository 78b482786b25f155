"""Synonyms: every name of a thing is replaced by its root before anything else.

S-ToPSS translates attributes and values to a root term in its first step, and
CTPS keeps a hash table from each name to its root word (section 4). Here names are
IRIs (``owl:sameAs``, equivalent classes and properties, is-a cycles, pairs of a
file) and whole literals (pairs of a file, labels of SKOS: ``US`` for ``United
States``). A chain is followed to its end.

Cost: making the roots is linear in the pairs (a union-find over IRIs; texts follow
their chains); one look-up a term after that.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from pyoxigraph import Literal, NamedNode

from semantic.ontology.chains import follow
from semantic.terms import Term, Triple
from semantic.vocabulary import RDF, RESERVED, XSD

_Key = TypeVar("_Key", bound=Hashable)
_Root = TypeVar("_Root", bound=Term)

_FIXED = (*RESERVED, XSD.iri)
"""Vocabularies whose terms are their own roots: what they mean is built in."""

_TEXT_TYPES = frozenset({XSD["string"].value, RDF["langString"].value})


@dataclass(frozen=True, slots=True)
class SynonymOptions:
    r"""How texts are looked up, and what else gives texts a root.

    Parameters
    ----------
    nfkc
        Texts are the same when their Unicode compatibility forms are: ``US`` in
        full-width letters is ``US``.
    casefold
        Texts are the same when they differ in case only: ``us`` is ``US``.
    labels
        A label of a SKOS concept is a synonym of its preferred label, wherever it is a literal.

    Examples
    --------
    >>> SynonymOptions(nfkc=True, casefold=True).fold("\uff35\uff33")
    'us'
    >>> SynonymOptions().fold("Us")
    'Us'
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
    """What synonym files say, with nothing in it in dispute; `merge_pairs` makes it of rows.

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
    options
        How texts are looked up. Texts that fold to one key and have different roots have none
        (`settle` reports them).

    Examples
    --------
    >>> pairs = SynonymPairs(texts={"US": "United States", "U.S.": "US"})
    >>> Roots([], pairs, frozenset()).root(Literal("U.S.", language="en")).value
    'United States'
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
        ends = follow({term: (root,) for term, root in pairs.terms.items()}, _spelling).ends
        named = frozenset(ends.values())
        self._terms: dict[Term, Term] = {}
        for component in _components((*groups, *ends.items())):
            fixed = [term for term in component if term.value.startswith(_FIXED)]
            better = fixed or [t for t in component if t in named]
            better = better or [t for t in component if t in declared] or component
            root = min(better, key=_spelling)
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


def _spelling(name: NamedNode) -> str:
    return name.value


def _text_roots(texts: Mapping[str, str], options: SynonymOptions) -> dict[str, Literal]:
    """Return what each text's key has as its root; of two spellings of a root the first."""
    rows: dict[str, tuple[str, ...]] = {}
    spelled: dict[str, str] = {}
    for text, root in texts.items():
        name, key = options.fold(text), options.fold(root)
        known = rows.get(name, ())
        if key not in known:
            rows[name] = (*known, key)
        spelled[key] = min(root, spelled.get(key, root))
    return {key: Literal(spelled[end]) for key, end in follow(rows).ends.items()}


def _components(pairs: Iterable[tuple[NamedNode, NamedNode]]) -> Iterable[list[NamedNode]]:
    """Return the terms that pairs join, by union-find with path halving, joined by size."""
    above: dict[NamedNode, NamedNode] = {}
    members: dict[NamedNode, list[NamedNode]] = {}

    def top(term: NamedNode) -> NamedNode:
        if term not in above:
            above[term] = term
            members[term] = [term]
            return term
        while (over := above[term]) is not term:
            above[term] = term = above[over]
        return term

    for one, other in pairs:
        small, large = top(one), top(other)
        if small is not large:
            if len(members[small]) > len(members[large]):
                small, large = large, small
            above[small] = large
            members[large] += members.pop(small)
    return members.values()

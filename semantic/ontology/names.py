"""Names of an ontology's terms: labels in texts, literals that stand for terms, display names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode

from semantic.annotation.annotate import Label
from semantic.annotation.languages import primary_subtag
from semantic.ontology.synonyms import Roots, SynonymPairs
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term, Triple, compact, local_name
from semantic.vocabulary import LABEL, SKOS, Namespace

LABELS = (LABEL, SKOS["prefLabel"], SKOS["altLabel"], SKOS["hiddenLabel"])
"""Properties whose values are names."""
TOPIC = Namespace("urn:graphmatch:topic:")
"""The IRIs of topics that a table names; the rest is the name, percent-encoded."""
_RANKED = (SKOS["prefLabel"], LABEL, SKOS["altLabel"], SKOS["hiddenLabel"])


Said: TypeAlias = tuple[str, str | None, NamedNode]
"""A text, its language, and the term that it names."""


def said_by(triples: Iterable[Triple]) -> list[Said]:
    """Return text, language and subject of triples, all with a property in `LABELS`.

    Triples with a blank node or without a literal are skipped.
    """
    return [
        (o.value, o.language, s)
        for s, _, o in triples
        if isinstance(o, Literal) and isinstance(s, NamedNode)
    ]


class Names:
    """Collects the names of terms, from labels and synonym files.

    The root of a term or text is the term that stands for all its synonyms.
    """

    def __init__(self, pairs: SynonymPairs, roots: Roots) -> None:
        self._pairs = pairs
        self._roots = roots
        self._fold = roots.options.fold
        self._written: defaultdict[str, dict[NamedNode, None]] = defaultdict(dict)
        self._by_text: defaultdict[str, dict[NamedNode, None]] = defaultdict(dict)
        for text, iri in pairs.labels:
            for name in (text, self._text(text)):
                self._written[name][self._resource(iri)] = None
                self._by_text[self._fold(name)][self._resource(iri)] = None

    def _text(self, text: str) -> str:
        root = self._roots.root(Literal(text))
        assert isinstance(root, Literal)
        return root.value

    def _resource(self, iri: NamedNode) -> NamedNode:
        root = self._roots.root(iri)
        return root if isinstance(root, NamedNode) else iri

    def labels(
        self, said: Sequence[Said], is_topic: Callable[[Term], bool], proper: Container[Term]
    ) -> Iterable[Label]:
        """Return all labels that a text may use for a topic: a term that `is_topic` accepts.

        The labels of terms in `proper` are proper names.

        These are the ontology's labels (`said`) in every language, and the texts that synonym files
        give for a term or for one of its labels.
        """
        terms = {term for _, _, term in said}.union(*self._written.values())
        topics = frozenset[Term](filter(is_topic, terms))
        told = self._told(said, topics.__contains__)
        return dict.fromkeys(Label(*row, row[2] in proper) for row in told)

    def called(self, tree: Taxonomy, said: Sequence[Said]) -> Iterator[tuple[str, Term]]:
        """Yield names and terms of a tree: labels (`said`), and local names of synonyms."""
        for text, _, term in self._told(said, tree.__contains__):
            yield text, term
        for root in tree:
            for other in self._roots.names(root):
                if isinstance(other, NamedNode):
                    yield local_name(other), root

    def _told(self, said: Sequence[Said], is_wanted: Callable[[Term], bool]) -> Iterator[Said]:
        """Yield names of terms, each with its language and term.

        These are, for terms that `is_wanted` accepts, the labels in `said`, their synonyms in
        synonym files, and the texts that synonym files give for the terms.
        """
        wanted = [row for row in said if is_wanted(row[2])]
        yield from wanted
        for text, terms in self._written.items():
            yield from ((text, None, term) for term in terms if is_wanted(term))
        if not self._pairs.texts:
            return
        by_text: defaultdict[str, list[NamedNode]] = defaultdict(list)
        for text, _, term in wanted:
            by_text[text].append(term)
        for text in self._pairs.texts:
            yield from ((text, None, term) for term in by_text[self._text(text)])

    def pairs(self) -> Iterator[tuple[Term, Term]]:
        """Yield the texts that synonym files give for terms, as folded literals, and the terms."""
        for text, terms in self._by_text.items():
            yield from ((Literal(text), term) for term in terms)


class ShownNames:
    """Chooses the label to display for a term, by property and language.

    Labels that may be shown alone (``skos:prefLabel`` and ``rdfs:label``) come first. Among these,
    the user's language precedes no language, English, and all others. Then ``skos:prefLabel`` comes
    first. The labels are taken from triples with `LABELS`, and `prefixes` shorten IRIs.

    Examples
    --------
    >>> solar, known = NamedNode("http://e/voc/4711"), {"voc": "http://e/voc/"}
    >>> labels = [Literal("Solar power", language="en"), Literal("Solarenergie", language="de")]
    >>> names = ShownNames([(solar, SKOS["prefLabel"], label) for label in labels], known)
    >>> names.shown(solar), names.shown(solar, "de"), names.shown(NamedNode("http://e/voc/a"))
    ('Solar power (voc:4711)', 'Solarenergie (voc:4711)', 'voc:a')
    """

    def __init__(self, triples: Iterable[Triple], prefixes: Mapping[str, str]) -> None:
        self._prefixes = prefixes
        self._labels: defaultdict[Term, dict[Literal, int]] = defaultdict(dict)
        ranks: dict[Term, int] = {property_: rank for rank, property_ in enumerate(_RANKED)}
        for subject, predicate, label in triples:
            if isinstance(label, Literal) and isinstance(subject, NamedNode):
                rank, known = ranks.get(predicate, 1), self._labels[subject]
                known[label] = min(rank, known.get(label, rank))

    def labels(self, term: Term, language: str = "en") -> tuple[Literal, ...]:
        """Return all labels of a term, best first for readers of this language."""
        several = self._labels.get(term)
        if several is None:
            return ()
        order = (language, None, "en")

        def worth(label: Literal) -> tuple[bool, int, int]:
            tag, rank = primary_subtag(label.language), several[label]
            return rank > 1, order.index(tag) if tag in order else len(order), rank

        return tuple(sorted(several, key=worth))

    def shown(self, term: Term, language: str = "en") -> str:
        """Return a term for display: label and IRI, or the IRI alone if the label adds nothing.

        The label adds nothing if it equals the local name, except for case and punctuation. A topic
        of a table is displayed by the name that it has there.
        """
        if isinstance(term, NamedNode) and term.value.startswith(TOPIC.iri):
            return unquote(term.value.removeprefix(TOPIC.iri))
        written, several = compact(term, self._prefixes), self.labels(term, language)
        if not several or not isinstance(term, NamedNode):
            return written
        label = several[0].value
        return written if _bare(local_name(term)) == _bare(label) else f"{label} ({written})"


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


class TermNames:
    """Finds the terms of hierarchies by their names.

    A name is a string: a local name (without percent encoding), a label, or a text of a synonym
    file. If several terms share a name, all are returned, because a choice would be a guess.
    `names` are all names except local names. `root` returns the root of a text and its synonyms.

    Source: CTPS (Zhang, Wang, Huang and Yung), section 4.1 (the hash table from names to nodes of
    trees).
    """

    def __init__(
        self,
        trees: Iterable[Taxonomy],
        names: Iterable[tuple[str, Term]] = (),
        root: Callable[[Term], Term] = lambda term: term,
    ) -> None:
        self._root = root
        named = (term for tree in trees for term in tree if isinstance(term, NamedNode))
        own = ((unquote(local_name(term)), term) for term in named)
        self._terms: dict[str, tuple[Term, ...]] = {}
        shared: dict[str, dict[Term, None]] = {}
        for name, term in chain(names, own):
            known = self._terms.setdefault(name, (term,))
            if known[0] is not term and known[0] != term:
                shared.setdefault(name, {known[0]: None})[term] = None
        self._terms.update((name, tuple(terms)) for name, terms in shared.items())

    def __iter__(self) -> Iterator[str]:
        """Yield all names that stand for a term."""
        return iter(self._terms)

    def terms(self, name: str) -> tuple[Term, ...]:
        """Return the terms with this name, otherwise those named by its root; none if unknown."""
        if name in self._terms:
            return self._terms[name]
        text = self._root(Literal(name))
        return self._terms.get(text.value, ()) if isinstance(text, Literal) else ()

"""CTPS's concept trees: from a name to its terms, and from these to the roots of their trees.

CTPS (section 3.1) sorts attributes and values into trees and speaks of the root of a name:
``root(computer) = product``. An index (section 4.1) begins at a hash table from names to the
nodes of the trees. The trees are taxonomies here: those of properties for attributes, those of
classes and of concepts for values. This root is the top of a tree; the root of a *synonym*
is `synonyms.Roots`.

Cost: the table is linear in the terms; `root` walks up, `tree` down what it returns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode

from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term

if TYPE_CHECKING:
    import networkx as nx

_LAST_PART = re.compile(r"[^/#:?]+(?=[/#]?$)")


class ConceptTrees:
    """The attribute trees or the value trees of an ontology, and the names of what is in them.

    A name is text: the last part of a term's IRI, a label, a text of a synonym file. It may stand
    for several terms; then all are given, for choosing would be a guess.

    Parameters
    ----------
    trees
        The taxonomy of properties for attributes; those of classes and concepts for values.
    names
        Texts and the terms that they name, beside the last parts of IRIs.
    root
        Gives the term that stands for a term or a text and its synonyms.

    Examples
    --------
    >>> from semantic.vocabulary import Namespace
    >>> ex = Namespace("http://example.org/")
    >>> laptop, computer, product = ex["LaptopPC"], ex["Computer"], ex["Product"]
    >>> classes = Taxonomy([(laptop, computer), (computer, product)], members=[ex["MoneyValue"]])
    >>> values = ConceptTrees([classes], [("laptop PC", laptop)])
    >>> [root.value for root in values.root("laptop PC")]
    ['http://example.org/Product']
    >>> [root.value for root in values.root("MoneyValue")]
    ['http://example.org/MoneyValue']
    >>> sorted(values.tree(computer).edges()) == [(laptop, computer)]
    True

    References
    ----------
    Zhang, Wang, Huang and Yung: CTPS, sections 3.1 and 4.1 (figures 1 and 4, algorithm 1).
    """

    def __init__(
        self,
        trees: Iterable[Taxonomy],
        names: Iterable[tuple[str, Term]] = (),
        root: Callable[[Term], Term] = lambda term: term,
    ) -> None:
        self._trees = tuple(trees)
        self._root = root
        own = (
            (local_name(term), term)
            for tree in self._trees
            for term in tree
            if isinstance(term, NamedNode)
        )
        self._terms: dict[str, tuple[Term, ...]] = {}
        shared: dict[str, dict[Term, None]] = {}
        for name, term in chain(names, own):
            known = self._terms.setdefault(name, (term,))
            if known[0] != term:
                shared.setdefault(name, {known[0]: None})[term] = None
        self._terms.update((name, tuple(terms)) for name, terms in shared.items())

    def names(self) -> Iterable[str]:
        """Return all names that stand for a term."""
        return self._terms.keys()

    def terms(self, name: str) -> tuple[Term, ...]:
        """Return the terms that a name stands for; none for an unknown name."""
        if name in self._terms:
            return self._terms[name]
        text = self._root(Literal(name))
        return self._terms.get(text.value, ()) if isinstance(text, Literal) else ()

    def root(self, name: str | Term) -> tuple[Term, ...]:
        """Return the tops of the trees that a name or a term is in: CTPS's ``root(name)``.

        A term that nothing with a name is above is its own root, in a tree or not; so is each
        term of a circle. A name that stands for no term is its own root, as a text.
        """
        found: dict[Term, None] = {}
        terms = self.terms(name) if isinstance(name, str) else (self._root(name),)
        for term in terms:
            for tree in [tree for tree in self._trees if term in tree]:
                tops = (t for t in _named_above(tree, term) if not _named_above(tree, t))
                found.update(dict.fromkeys(list(tops) or [term]))
            if not any(term in tree for tree in self._trees):
                found[term] = None
        if isinstance(name, str) and not terms:
            found[self._root(Literal(name))] = None
        return tuple(found)

    def tree(self, root: Term) -> nx.DiGraph[Any]:
        """Return the tree under a term: a graph with an edge from each child to each parent."""
        import networkx as nx

        root = self._root(root)
        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_node(root)
        for tree in self._trees:
            inside = {root, *tree.descendants(root)}
            graph.add_nodes_from(inside)
            graph.add_edges_from(
                (child, parent) for parent in inside for child in tree.children(parent)
            )
        return graph


def local_name(term: NamedNode) -> str:
    """Return the last part of an IRI, or all of it where it has no parts.

    Examples
    --------
    >>> local_name(NamedNode("http://example.org/shop#LaptopPC"))
    'LaptopPC'
    >>> local_name(NamedNode("urn:example:price"))
    'price'
    """
    found = _LAST_PART.search(term.value)
    return found[0] if found else term.value


def _named_above(tree: Taxonomy, term: Term) -> list[Term]:
    return [t for t in tree.ancestors(term) if isinstance(t, NamedNode) and t != term]

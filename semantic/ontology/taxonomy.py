"""One is-a hierarchy: a directed graph of terms with several parents.

Terms have small integer ids; what is above what is known of the ids, in flat arrays
(`semantic.ontology.hierarchy`). A cycle is no hierarchy: `find_cycles` names those of
a set of edges, and whoever builds the taxonomy folds each into one term first. The
terms of a cycle that is left are all above each other, and above themselves.

Cost: building is linear in the edges, and keeps no object for an edge; `parents` and
`children` are look-ups; `ancestors` and `descendants` walk what they return; `ancestors`
are remembered, up to `REMEMBERED` terms in all.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from semantic.ontology.hierarchy import SMALL, Hierarchy
from semantic.terms import Term

if TYPE_CHECKING:
    import networkx as nx

REMEMBERED = 2_000_000
"""How many terms the remembered answers of `Taxonomy.ancestors` hold together."""


class Taxonomy:
    """Terms under terms.

    Parameters
    ----------
    edges
        Pairs of child and parent; loops are ignored.
    members
        Terms that belong to the taxonomy even without an edge.
    small
        Up to how many terms nothing is compiled; see `Hierarchy`.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> names = ("laptop", "computer", "product")
    >>> laptop, computer, product = (NamedNode(f"urn:{name}") for name in names)
    >>> taxonomy = Taxonomy([(laptop, computer), (computer, product)])
    >>> taxonomy.is_a(laptop, product), taxonomy.is_a(product, laptop)
    (True, False)
    >>> [term.value for term in taxonomy.ancestors(laptop)]
    ['urn:computer', 'urn:product']
    """

    def __init__(
        self,
        edges: Iterable[tuple[Term, Term]],
        members: Iterable[Term] = (),
        *,
        small: int = SMALL,
    ) -> None:
        ids = {term: number for number, term in enumerate(dict.fromkeys(members))}
        children, parents = array("i"), array("i")
        for child, parent in edges:
            if child != parent:
                children.append(ids.setdefault(child, len(ids)))
                parents.append(ids.setdefault(parent, len(ids)))
        self._keep(tuple(ids), ids, Hierarchy(len(ids), children, parents, small=small))

    @classmethod
    def from_arrays(
        cls, terms: Sequence[Term], children: ArrayLike, parents: ArrayLike, *, small: int = SMALL
    ) -> Taxonomy:
        """Make a taxonomy of terms and of edges between their places in that sequence.

        Parameters
        ----------
        terms
            All terms, each once.
        children, parents
            Shape ``(edges,)``, integers: ``terms[children[i]]`` is below ``terms[parents[i]]``.
        small
            See `Hierarchy`.

        Raises
        ------
        ValueError
            When a term comes twice, the arrays differ in length, or a number is no place in
            `terms`.

        Examples
        --------
        >>> from pyoxigraph import NamedNode
        >>> a, b, c = (NamedNode(f"urn:{n}") for n in "abc")
        >>> Taxonomy.from_arrays([a, b, c], [0, 1], [1, 2]).is_a(a, c)
        True
        """
        ids = {term: number for number, term in enumerate(terms)}
        if len(ids) != len(terms):
            raise ValueError("a term comes twice")
        made = cls.__new__(cls)
        made._keep(tuple(terms), ids, Hierarchy(len(ids), children, parents, small=small))
        return made

    def _keep(self, terms: tuple[Term, ...], ids: dict[Term, int], hierarchy: Hierarchy) -> None:
        self._terms = terms
        self._ids = ids
        self.hierarchy = hierarchy
        self._ancestors: dict[int, tuple[Term, ...]] = {}
        self._room = REMEMBERED

    def id_of(self, term: Term) -> int | None:
        """Return a term's number in the arrays of `hierarchy`, or None for an unknown term."""
        return self._ids.get(term)

    def term(self, id: int) -> Term:
        """Return the term that has a number.

        Raises
        ------
        IndexError
            When no term has it.
        """
        return self._terms[id]

    def __contains__(self, term: object) -> bool:
        return term in self._ids

    def __iter__(self) -> Iterator[Term]:
        """Yield the terms in the order in which they came."""
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)

    @property
    def edge_count(self) -> int:
        """How many child-parent pairs there are."""
        return self.hierarchy.link_count

    @property
    def tops(self) -> tuple[Term, ...]:
        """The terms without parents."""
        return self._named(self.hierarchy.tops)

    def _named(self, ids: Iterable[int]) -> tuple[Term, ...]:
        return tuple(map(self._terms.__getitem__, ids))

    def parents(self, term: Term) -> tuple[Term, ...]:
        """Return the terms directly above; none for a term that is not in the taxonomy."""
        id = self._ids.get(term)
        return () if id is None else self._named(self.hierarchy.parents[id])

    def children(self, term: Term) -> tuple[Term, ...]:
        """Return the terms directly below."""
        id = self._ids.get(term)
        return () if id is None else self._named(self.hierarchy.children[id])

    def ancestors(self, term: Term) -> tuple[Term, ...]:
        """Return all terms above, nearest first, without the term itself if it is in no cycle."""
        id = self._ids.get(term)
        if id is None:
            return ()
        found = self._ancestors.get(id)
        if found is None:
            found = self._named(self.hierarchy.ancestors(id))
            if len(found) > self._room:
                self._ancestors, self._room = {}, REMEMBERED
            if len(found) <= self._room:
                self._room -= len(found)
                self._ancestors[id] = found
        return found

    def descendants(self, term: Term) -> tuple[Term, ...]:
        """Return all terms below, nearest first, without the term itself if it is in no cycle."""
        id = self._ids.get(term)
        return () if id is None else self._named(self.hierarchy.descendants(id))

    def is_a(self, term: Term, other: Term) -> bool:
        """Whether `term` is `other` or below it; an unknown term is only itself."""
        if term == other:
            return True
        id, other_id = self._ids.get(term), self._ids.get(other)
        return id is not None and other_id is not None and self.hierarchy.is_a(id, other_id)

    def is_a_many(self, terms: ArrayLike, others: ArrayLike) -> NDArray[np.bool_]:
        """Answer `is_a` for many pairs of ids, shape ``(pairs,)`` each; see `id_of`.

        Raises
        ------
        ValueError
            When the arrays differ in length, or a number is no term's.

        Examples
        --------
        >>> from pyoxigraph import NamedNode
        >>> a, b, c = (NamedNode(f"urn:{n}") for n in "abc")
        >>> Taxonomy.from_arrays([a, b, c], [0, 1], [1, 2]).is_a_many([0, 2], [2, 0]).tolist()
        [True, False]
        """
        return self.hierarchy.is_a_many(terms, others)

    def depth(self, term: Term) -> int:
        """Return the longest way down to a term from a top: 0 for a top and for an unknown term."""
        id = self._ids.get(term)
        return 0 if id is None else int(self.hierarchy.depth[id])

    def lowest_common_ancestors(self, term: Term, other: Term) -> tuple[Term, ...]:
        """Return the common ancestors-or-self with no common ancestor-or-self below them.

        There may be several, as there may be several parents; none where nothing is above
        both. The terms of a cycle count as one: all of them are returned, or none.

        Examples
        --------
        >>> from pyoxigraph import NamedNode
        >>> a, b, c, d = (NamedNode(f"urn:{n}") for n in "abcd")
        >>> taxonomy = Taxonomy([(a, c), (b, c), (c, d)])
        >>> [t.value for t in taxonomy.lowest_common_ancestors(a, b)]
        ['urn:c']
        """
        id, other_id = self._ids.get(term), self._ids.get(other)
        if id is None or other_id is None:
            return (term,) if term == other else ()
        return self._named(self.hierarchy.lowest_common_ancestors(id, other_id))

    @cached_property
    def cycles(self) -> tuple[tuple[Term, ...], ...]:
        """The groups of terms that are all above each other, each in code point order."""
        groups = (tuple(sorted(self._named(ids), key=str)) for ids in self.hierarchy.cycles)
        return tuple(sorted(groups, key=str))

    def path(self, term: Term, other: Term) -> tuple[Term, ...]:
        """Return a shortest way up from `term` to `other`, both ends included; empty if none.

        Examples
        --------
        >>> from pyoxigraph import NamedNode
        >>> a, b, c = (NamedNode(f"urn:{n}") for n in "abc")
        >>> [t.value for t in Taxonomy([(a, b), (b, c)]).path(a, c)]
        ['urn:a', 'urn:b', 'urn:c']
        """
        return shortest_path(term, other, self.parents)

    def to_networkx(self) -> nx.DiGraph[Any]:
        """Return a `networkx.DiGraph` with an edge from each child to each parent."""
        import networkx as nx

        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_nodes_from(self._terms)
        graph.add_edges_from((t, parent) for t in self._terms for parent in self.parents(t))
        return graph


def shortest_path(
    term: Term, other: Term, parents: Callable[[Term], Iterable[Term]]
) -> tuple[Term, ...]:
    """Return a shortest way up from one term to another, both included; empty if none."""
    came_from: dict[Term, Term] = {}
    queue = [term]
    for current in queue:
        if current == other:
            way = [current]
            while way[-1] != term:
                way.append(came_from[way[-1]])
            return tuple(reversed(way))
        for parent in parents(current):
            if parent not in came_from and parent != term:
                came_from[parent] = current
                queue.append(parent)
    return ()


def find_cycles(edges: Iterable[tuple[Term, Term]]) -> list[tuple[Term, ...]]:
    """Return the groups of terms that are all above each other, each in code point order.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> a, b, c = (NamedNode(f"urn:{n}") for n in "abc")
    >>> find_cycles([(a, b), (b, a), (b, c)])
    [(<NamedNode value=urn:a>, <NamedNode value=urn:b>)]
    """
    return list(Taxonomy(edges).cycles)

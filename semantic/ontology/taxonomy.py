"""One is-a hierarchy: a directed graph of terms with several parents.

Terms have small integer ids inside, and neighbours are tuples of ids, so that a
walk touches integers only. A cycle is no hierarchy: `find_cycles` names those of
a set of edges, and whoever builds the taxonomy folds each into one term first. The
terms of a cycle that is left are all above each other, and above themselves.

Cost: building is linear in the edges; `parents` and `children` are look-ups;
`ancestors` and `descendants` walk what they return; `ancestors` is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import networkx as nx

from semantic.terms import Term


class Taxonomy:
    """Terms under terms.

    Parameters
    ----------
    edges
        Pairs of child and parent; loops are ignored.
    members
        Terms that belong to the taxonomy even without an edge.

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

    def __init__(self, edges: Iterable[tuple[Term, Term]], members: Iterable[Term] = ()) -> None:
        self._ids: dict[Term, int] = {}
        self._terms: list[Term] = []
        self._parents: list[tuple[int, ...]] = []
        self._children: list[tuple[int, ...]] = []
        self._ancestors: dict[int, tuple[Term, ...]] = {}
        distinct = dict.fromkeys(edge for edge in edges if edge[0] != edge[1])
        for term in members:
            self._id(term)
        for child, parent in distinct:
            self._link(self._id(child), self._id(parent))

    def _id(self, term: Term) -> int:
        if term not in self._ids:
            self._ids[term] = len(self._terms)
            self._terms.append(term)
            self._parents.append(())
            self._children.append(())
        return self._ids[term]

    def _link(self, child: int, parent: int) -> None:
        self._parents[child] += (parent,)
        self._children[parent] += (child,)

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
        return sum(map(len, self._parents))

    @property
    def tops(self) -> tuple[Term, ...]:
        """The terms without parents."""
        return tuple(t for t, above in zip(self._terms, self._parents, strict=True) if not above)

    def parents(self, term: Term) -> tuple[Term, ...]:
        """Return the terms directly above; none for a term that is not in the taxonomy."""
        return self._neighbours(term, self._parents)

    def children(self, term: Term) -> tuple[Term, ...]:
        """Return the terms directly below."""
        return self._neighbours(term, self._children)

    def _neighbours(self, term: Term, table: list[tuple[int, ...]]) -> tuple[Term, ...]:
        position = self._ids.get(term)
        return () if position is None else tuple(self._terms[i] for i in table[position])

    def ancestors(self, term: Term) -> tuple[Term, ...]:
        """Return all terms above, nearest first, without the term itself if it is in no cycle."""
        position = self._ids.get(term)
        if position is None:
            return ()
        if position not in self._ancestors:
            self._ancestors[position] = self._reach(position, self._parents)
        return self._ancestors[position]

    def descendants(self, term: Term) -> tuple[Term, ...]:
        """Return all terms below, nearest first, without the term itself if it is in no cycle."""
        position = self._ids.get(term)
        return () if position is None else self._reach(position, self._children)

    def _reach(self, start: int, table: list[tuple[int, ...]]) -> tuple[Term, ...]:
        seen = dict.fromkeys(table[start])
        queue = list(seen)
        for position in queue:
            for neighbour in table[position]:
                if neighbour not in seen:
                    seen[neighbour] = None
                    queue.append(neighbour)
        return tuple(self._terms[i] for i in queue)

    def is_a(self, term: Term, other: Term) -> bool:
        """Whether `term` is `other` or below it."""
        return term == other or other in self.ancestors(term)

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
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_edges_from(edges)
    groups = nx.strongly_connected_components(graph)
    return sorted((tuple(sorted(g, key=str)) for g in groups if len(g) > 1), key=str)

"""One is-a hierarchy: a directed graph of terms with several parents.

A cycle is no hierarchy: `find_cycles` names those of a set of edges, and whoever builds the
taxonomy folds each into one term first. The terms of a cycle that is left are all above each
other, and above themselves.

Cost: building is linear in the edges; `parents` and `children` are look-ups; `ancestors` and
`descendants` walk what they return; `ancestors` are cached, up to `CACHED` terms in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from semantic.terms import Term

if TYPE_CHECKING:
    import networkx as nx

CACHED = 2_000_000
"""How many terms the cached answers of `Taxonomy.ancestors` hold together."""


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
        self._terms = dict.fromkeys(members)
        parents: dict[Term, dict[Term, None]] = {}
        children: dict[Term, dict[Term, None]] = {}
        for child, parent in edges:
            if child != parent:
                parents.setdefault(child, {})[parent] = None
                children.setdefault(parent, {})[child] = None
                self._terms[child] = self._terms[parent] = None
        self._parents = {term: tuple(above) for term, above in parents.items()}
        self._children = {term: tuple(below) for term, below in children.items()}
        self._ancestors: dict[Term, tuple[Term, ...]] = {}
        self._room = CACHED

    def __contains__(self, term: object) -> bool:
        return term in self._terms

    def __iter__(self) -> Iterator[Term]:
        """Yield the terms in the order in which they came."""
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)

    @property
    def tops(self) -> tuple[Term, ...]:
        """The terms without parents."""
        return tuple(term for term in self._terms if term not in self._parents)

    def parents(self, term: Term) -> tuple[Term, ...]:
        """Return the terms directly above; none for a term that is not in the taxonomy."""
        return self._parents.get(term, ())

    def children(self, term: Term) -> tuple[Term, ...]:
        """Return the terms directly below."""
        return self._children.get(term, ())

    def ancestors(self, term: Term) -> tuple[Term, ...]:
        """Return all terms above, nearest first, without the term itself if it is in no cycle."""
        if term not in self._parents:
            return ()
        found = self._ancestors.get(term)
        if found is None:
            found = _reached(term, self._parents)
            if len(found) > self._room:
                self._ancestors, self._room = {}, CACHED
            if len(found) <= self._room:
                self._room -= len(found)
                self._ancestors[term] = found
        return found

    def descendants(self, term: Term) -> tuple[Term, ...]:
        """Return all terms below, nearest first, without the term itself if it is in no cycle."""
        return _reached(term, self._children)

    def is_a(self, term: Term, other: Term) -> bool:
        """Whether `term` is `other` or below it; an unknown term is only itself."""
        return term == other or other in self.ancestors(term)

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
        ours = dict.fromkeys([term, *self.ancestors(term)])
        common = ours.keys() & {other, *self.ancestors(other)}
        above = {
            far for one in common for far in self.ancestors(one) if one not in self.ancestors(far)
        }
        return tuple(one for one in ours if one in common and one not in above)

    @cached_property
    def cycles(self) -> tuple[tuple[Term, ...], ...]:
        """The groups of terms that are all above each other, each in code point order."""
        left = _left_over(_left_over(self._parents.keys(), self._parents), self._children)
        if not left:
            return ()
        import networkx as nx

        graph: nx.DiGraph[Any] = nx.DiGraph(
            (term, above) for term in left for above in self._parents[term] if above in left
        )
        groups = (
            tuple(sorted(group, key=str)) for group in nx.strongly_connected_components(graph)
        )
        return tuple(sorted((group for group in groups if len(group) > 1), key=str))

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


def _reached(term: Term, links: Mapping[Term, tuple[Term, ...]]) -> tuple[Term, ...]:
    """Return what can be reached in one step or more, nearest first."""
    seen = dict.fromkeys(links.get(term, ()))
    queue = list(seen)
    for current in queue:
        for other in links.get(current, ()):
            if other not in seen:
                seen[other] = None
                queue.append(other)
    return tuple(queue)


def _left_over(terms: Iterable[Term], links: Mapping[Term, tuple[Term, ...]]) -> dict[Term, int]:
    """Take away terms without links to others that are left, again and again (Kahn 1962).

    What is left is on a cycle, or leads to one.
    """
    left = dict.fromkeys(terms, 0)
    pointing: dict[Term, list[Term]] = {}
    for term in left:
        for other in links.get(term, ()):
            if other in left:
                left[term] += 1
                pointing.setdefault(other, []).append(term)
    agenda = [term for term, count in left.items() if not count]
    for term in agenda:
        del left[term]
        for other in pointing.get(term, ()):
            left[other] -= 1
            if not left[other]:
                agenda.append(other)
    return left


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

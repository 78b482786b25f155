"""One is-a hierarchy: a directed graph of terms with several parents.

Callers fold each cycle into one term first, because cycles are not hierarchical. The terms of a
remaining cycle are all above each other and themselves.

Cost: construction is linear in the edges. `parents` and `children` are lookups; `ancestors` and
`descendants` visit the terms that they return.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal

from semantic.terms import Term, Triple
from semantic.vocabulary import BROADER, BROADER_TRANSITIVE, NARROWER, SUBCLASS, SUBPROPERTY

if TYPE_CHECKING:
    import networkx as nx


class Taxonomy:
    """A hierarchy of terms, each with its parents and children.

    `edges` are pairs of child and parent; loops are ignored. `members` belong to the taxonomy even
    without an edge.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> names = ("laptop", "computer", "product")
    >>> laptop, computer, product = (NamedNode(f"urn:{name}") for name in names)
    >>> taxonomy = Taxonomy([(laptop, computer), (computer, product)])
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

    def __contains__(self, term: object) -> bool:
        return term in self._terms

    def __iter__(self) -> Iterator[Term]:
        """Yield the terms in the order in which they were added."""
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)

    def parents(self, term: Term) -> tuple[Term, ...]:
        """Return the terms directly above; none if the term is not in the taxonomy."""
        return self._parents.get(term, ())

    def children(self, term: Term) -> tuple[Term, ...]:
        """Return the terms directly below."""
        return self._children.get(term, ())

    def ancestors(self, term: Term) -> tuple[Term, ...]:
        """Return all terms above, nearest first; the term itself only if it is in a cycle."""
        return reached(term, self.parents)

    def descendants(self, term: Term) -> tuple[Term, ...]:
        """Return all terms below, nearest first; the term itself only if it is in a cycle."""
        return reached(term, self.children)

    @cached_property
    def cycles(self) -> tuple[tuple[Term, ...], ...]:
        """Groups of terms that are all above each other, each in code point order."""
        try:
            TopologicalSorter(self._parents).prepare()
        except CycleError:
            import networkx as nx

            groups = map(tuple, nx.strongly_connected_components(self.to_networkx()))
            cycles = (tuple(sorted(group, key=str)) for group in groups if len(group) > 1)
            return tuple(sorted(cycles, key=str))
        return ()

    def to_networkx(self) -> nx.DiGraph[Any]:
        """Return a `networkx.DiGraph` with an edge from each child to each parent."""
        import networkx as nx

        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_nodes_from(self._terms)
        graph.add_edges_from((t, parent) for t in self._terms for parent in self.parents(t))
        return graph


def reached(term: Term, following: Callable[[Term], Iterable[Term]]) -> tuple[Term, ...]:
    """Return the terms that are one step or more from `term`, nearest first.

    `following` returns the terms one step from a term.
    """
    seen = dict.fromkeys(following(term))
    queue = list(seen)
    for current in queue:
        for other in following(current):
            if other not in seen:
                seen[other] = None
                queue.append(other)
    return tuple(queue)


def shortest_path(
    term: Term, other: Term, parents: Callable[[Term], Iterable[Term]]
) -> tuple[Term, ...]:
    """Return a shortest path up from one term to another, with both; empty if there is none."""
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


def grouped(pairs: Iterable[tuple[Term, Term]]) -> Mapping[Term, tuple[Term, ...]]:
    """Group pairs by their first terms: map each to the distinct second terms."""
    table: defaultdict[Term, dict[Term, None]] = defaultdict(dict)
    for key, value in pairs:
        table[key][value] = None
    return {key: tuple(values) for key, values in table.items()}


_KINDS: Mapping[Term, str] = {
    SUBCLASS: "classes",
    SUBPROPERTY: "properties",
    BROADER: "concepts",
    NARROWER: "concepts",
    BROADER_TRANSITIVE: "concepts",
}


def edges_of(triples: Iterable[Triple]) -> dict[str, list[tuple[Term, Term]]]:
    """Return the pairs of child and parent in is-a triples, by hierarchy.

    The hierarchies are ``classes``, ``properties`` and ``concepts``. Other triples are ignored.
    """
    edges: dict[str, list[tuple[Term, Term]]] = {kind: [] for kind in _KINDS.values()}
    for subject, predicate, object_ in triples:
        kind = _KINDS.get(predicate)
        if kind is not None and not isinstance(object_, Literal):
            is_down = predicate == NARROWER
            edges[kind].append((object_, subject) if is_down else (subject, object_))
    return edges

"""The shortest ways between two terms of a hierarchy: up, down, or over what both are under.

Two searches upwards meet in the lowest common ancestors: those common ancestors, the terms
themselves included, that are no parent of another common ancestor (every parent of a common
ancestor is one, too). For each of these, all shortest ways are combined.

Cost: linear in what is above the two terms, and in the ways that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from semantic.terms import Term

Parents = Callable[[Term], Sequence[Term]]

WAYS = 100
"""How many shortest ways up to one term are looked for: there may be exponentially many."""


@dataclass(frozen=True, slots=True)
class Way:
    """Terms from one to another; it goes up to `terms[top]`, and down from there.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> a, b, c = (NamedNode(f"urn:{n}") for n in "abc")
    >>> above = {a: (c,), b: (c,)}
    >>> (way,) = ways(a, b, lambda term: above.get(term, ()))
    >>> [t.value for t in way.terms], way.meet.value
    (['urn:a', 'urn:c', 'urn:b'], 'urn:c')
    """

    terms: tuple[Term, ...]
    top: int

    @property
    def meet(self) -> Term:
        """The term that both ends are under, or one of the ends."""
        return self.terms[self.top]


def ways(one: Term, other: Term, parents: Parents) -> Iterator[Way]:
    """Yield the ways, for each lowest common ancestor the shortest, nearest ancestors first."""
    left, right = _distances(one, parents), _distances(other, parents)
    for meet in lowest(left, right, parents):
        ups = _shortest(meet, left, parents)
        downs = [way[::-1] for way in _shortest(meet, right, parents)]
        for up, down in product(ups, downs):
            yield Way((*up, *down[1:]), len(up) - 1)


def lowest(left: Mapping[Term, int], right: Mapping[Term, int], parents: Parents) -> list[Term]:
    """Return the lowest common ancestors, the nearest to both first."""
    common = left.keys() & right.keys()
    upper = {parent for term in common for parent in parents(term) if parent != term}
    found = common - upper or common  # in a cycle every term is above another
    return sorted(found, key=lambda term: (left[term] + right[term], str(term)))


def _distances(start: Term, parents: Parents) -> dict[Term, int]:
    distances = {start: 0}
    queue = [start]
    for term in queue:
        for parent in parents(term):
            if parent not in distances:
                distances[parent] = distances[term] + 1
                queue.append(parent)
    return distances


def _shortest(end: Term, distances: Mapping[Term, int], parents: Parents) -> list[tuple[Term, ...]]:
    """Return all shortest ways up from the start of the distances to `end`, at most `WAYS`."""
    below: dict[Term, list[Term]] = {}
    for term, distance in distances.items():
        for parent in parents(term):
            if distances[parent] == distance + 1:
                below.setdefault(parent, []).append(term)
    found: list[tuple[Term, ...]] = []
    stack: list[tuple[Term, ...]] = [(end,)]
    while stack and len(found) < WAYS:
        way = stack.pop()
        if distances[way[0]] == 0:
            found.append(way)
            continue
        stack.extend((term, *way) for term in sorted(below[way[0]], key=str, reverse=True))
    return found

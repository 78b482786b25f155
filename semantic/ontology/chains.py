"""Chains of synonyms: from each name by its roots to the end, with disputes left out.

A row gives a name a root; roots may have roots. A name with several roots whose chains do not
all end at the same name is *in dispute*: which of them is meant cannot be known, so none of its
rows is used, and the name is the end of the chains that lead to it. Disputes at the ends of
chains are found first, so that a chain that leads to one is not in dispute itself. Names in a
circle of rows end at the first of them.

Cost: linear in the rows. Only what can be reached from a name with several roots is looked at as
a graph (strongly connected components, from the ends up).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Chains(Generic[_Name]):
    """Where chains end.

    Parameters
    ----------
    ends
        Every name that a usable row has, as a name or as a root, to the end of its chain: itself
        where it is an end.
    disputed
        The names in dispute.
    """

    ends: Mapping[_Name, _Name]
    disputed: frozenset[_Name]


def follow(
    roots: Mapping[_Name, Collection[_Name]], spelling: Callable[[_Name], str] = str
) -> Chains[_Name]:
    """Follow the chains of names to their roots.

    Parameters
    ----------
    roots
        Name to its roots, without repetition; at least one each.
    spelling
        What names are ordered by, where one in a circle has to be chosen.

    Examples
    --------
    >>> chains = follow({"U.S.": ["US"], "US": ["USA", "U.S.A."], "USA": ["U.S.A."]})
    >>> chains.ends["U.S."], chains.disputed
    ('U.S.A.', frozenset())
    >>> chains = follow({"U.S.": ["US"], "US": ["United States", "ultrasound"]})
    >>> chains.ends["U.S."], chains.disputed
    ('US', frozenset({'US'}))
    """
    single = {name: next(iter(several)) for name, several in roots.items() if len(several) == 1}
    disputed: frozenset[_Name] = frozenset()
    if len(single) < len(roots):
        decided = _decide(roots, spelling)
        disputed = frozenset(roots.keys() - single.keys() - decided.keys())
        single |= decided
    return Chains(_ends(single, spelling), disputed)


def _ends(single: Mapping[_Name, _Name], spelling: Callable[[_Name], str]) -> dict[_Name, _Name]:
    ends: dict[_Name, _Name] = {}
    for start in single:
        way: dict[_Name, None] = {}
        name = start
        while name not in ends and name not in way and name in single:
            way[name] = None
            name = single[name]
        if name in way:  # a circle: what of the way comes before it leads there all the same
            names = list(way)
            end = min(names[names.index(name) :], key=spelling)
        else:
            end = ends.setdefault(name, name)
        ends.update(dict.fromkeys(way, end))
    return ends


def _decide(
    roots: Mapping[_Name, Collection[_Name]], spelling: Callable[[_Name], str]
) -> dict[_Name, _Name]:
    """Return the end of each name that has several roots and is not in dispute."""
    import networkx as nx

    several = {name for name, own in roots.items() if len(own) > 1}
    graph: nx.DiGraph[Any] = nx.DiGraph()
    agenda = dict.fromkeys(name for name in roots if name in several)
    queue = list(agenda)
    for name in queue:
        for root in roots.get(name, ()):
            graph.add_edge(name, root)
            if root not in agenda:
                agenda[root] = None
                queue.append(root)
    condensed = nx.condensation(graph)
    ends: dict[_Name, _Name] = {}
    disputed: set[_Name] = set()
    for component in reversed(list(nx.topological_sort(condensed))):
        members: set[_Name] = condensed.nodes[component]["members"]
        below = {ends[root] for name in members for root in graph[name] if root not in members}
        if len(below) > 1:
            disputed |= members & several
            ends.update(_ends_inside(members, several, roots))
        else:
            end = below.pop() if below else min(members, key=spelling)
            ends.update(dict.fromkeys(members, end))
    return {name: ends[name] for name in several - disputed}


def _ends_inside(
    members: Set[_Name], several: Set[_Name], roots: Mapping[_Name, Collection[_Name]]
) -> dict[_Name, _Name]:
    """Return where chains end that lead to the names in dispute among the members of a circle."""
    ends = {name: name for name in members & several}
    for start in members - several:
        way, name = [start], start
        while name not in ends:
            name = next(iter(roots[name]))
            way.append(name)
        ends.update(dict.fromkeys(way, ends[name]))
    return ends

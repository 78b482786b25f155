"""What shape a hierarchy has: depth, width, branching."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from pyoxigraph import NamedNode

from graphmatch.command.view import View, named
from semantic.ontology.taxonomy import Taxonomy
from semantic.vocabulary import GM, TYPE


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of one hierarchy's named terms.

    Parameters
    ----------
    depth
        The longest way down from a top, in links.
    widest
        How many terms the level with the most of them has, and which level that is, from 0.
    most_children
        The term with the most children, and how many; ``None`` where there is no link.
    """

    terms: int
    links: int
    tops: int
    leaves: int
    several_parents: int
    depth: int
    widest: tuple[int, int]
    most_children: tuple[NamedNode, int] | None

    @classmethod
    def of(cls, taxonomy: Taxonomy) -> Shape:
        """Measure a taxonomy."""
        above = {term: tuple(named(taxonomy.parents(term))) for term in named(taxonomy)}
        children = Counter(parent for parents in above.values() for parent in parents)
        levels = Counter(depths(above).values())
        most = min(children.items(), key=lambda each: (-each[1], str(each[0])), default=None)
        level, width = min(levels.items(), key=lambda each: (-each[1], each[0]), default=(0, 0))
        return cls(
            terms=len(above),
            links=sum(map(len, above.values())),
            tops=sum(not parents for parents in above.values()),
            leaves=len(above) - len(children),
            several_parents=sum(len(parents) > 1 for parents in above.values()),
            depth=max(levels, default=0),
            widest=(width, level),
            most_children=most,
        )


def depths(above: Mapping[NamedNode, Iterable[NamedNode]]) -> dict[NamedNode, int]:
    """Return each term's longest way down from a top, all its ancestors being given.

    In a cycle, which a hierarchy has only where it goes through blank nodes or reserved terms,
    nothing is deeper than 0.

    Examples
    --------
    >>> a, b, c = (NamedNode(f"urn:{n}") for n in "abc")
    >>> depths({a: [b, c], b: [c], c: []})[a]
    2
    """
    try:
        order = tuple(TopologicalSorter(above).static_order())
    except CycleError:
        return dict.fromkeys(above, 0)
    found: dict[NamedNode, int] = {}
    for term in order:
        found[term] = max((found[parent] + 1 for parent in above.get(term, ())), default=0)
    return found


def declared_taxonomies(view: View) -> list[NamedNode]:
    """Return the properties that the ontology declares as taxonomies."""
    stated = (s for s, p, o in view.ontology.triples if p == TYPE and o == GM["Taxonomy"])
    return sorted(named(stated), key=str)

"""The terms around one term: some levels up, some levels down, so many of each.

What is left out is counted on the box that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from pyoxigraph import NamedNode

from graphmatch.command.statistics import depths
from graphmatch.command.view import View

LEVEL = 8
"""How many boxes one level may have."""
INSTANCES = 3
"""How many of them may be instances."""

Near = Callable[[NamedNode], Sequence[NamedNode]]


@dataclass(frozen=True, slots=True)
class Box:
    """A term of the picture.

    Parameters
    ----------
    label, name
        What it is called, or ``None``; and its prefixed name or the last part of its IRI.
    level
        Negative above the centre, 0 for it, positive below.
    more
        How many of its neighbours, farther from the centre, are not shown.
    """

    term: NamedNode
    label: str | None
    name: str
    level: int
    is_instance: bool
    more: int


@dataclass(frozen=True, slots=True)
class Link:
    """From a term up to one that is directly above it; `is_type` from an instance to its class."""

    lower: NamedNode
    upper: NamedNode
    is_type: bool


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Boxes, the centre first, and the links between them."""

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]


def neighbourhood(view: View, centre: NamedNode, radius: int) -> Neighbourhood:
    """Choose what is shown around a term.

    Parameters
    ----------
    radius
        How many links up and down; terms with the most children are taken first.
    """

    def below(term: NamedNode) -> Sequence[NamedNode]:
        several = sorted(view.children(term), key=lambda child: -len(view.children(child)))
        if term != centre:
            return several
        instances = [each for each in view.instances(term) if each not in several]
        return (*several[: LEVEL - min(INSTANCES, len(instances))], *instances[:INSTANCES])

    above = _walk(centre, view.parents, radius, {centre})
    under = _walk(centre, below, radius, {centre, *above})
    levels = {centre: 0} | _levels(centre, above, view.parents)
    upwards = {term: view.parents(term) for term in (centre, *above, *under)}
    for term, level in depths(_among(upwards, {centre, *under})).items():
        levels.setdefault(term, level)
    shown = (centre, *above, *under)
    return Neighbourhood(
        tuple(_box(view, term, levels[term], frozenset(shown)) for term in shown),
        tuple(
            Link(term, parent, parent in view.types(term))
            for term in shown
            for parent in upwards[term]
            if parent in levels and parent != term
        ),
    )


def _walk(start: NamedNode, near: Near, radius: int, seen: set[NamedNode]) -> list[NamedNode]:
    """Return what is reached level by level, each term of a level having its turn."""
    found: list[NamedNode] = []
    level = [start]
    for _ in range(radius):
        turns = chain.from_iterable(zip_longest(*(near(term) for term in level)))
        new = dict.fromkeys(term for term in turns if term is not None and term not in seen)
        level = list(new)[:LEVEL]
        seen.update(level)
        found += level
    return found


def _levels(centre: NamedNode, above: Iterable[NamedNode], near: Near) -> dict[NamedNode, int]:
    """Return how far above the centre terms are, by the longest way."""
    shown = {centre, *above}
    children: dict[NamedNode, list[NamedNode]] = {term: [] for term in shown}
    for term in shown:
        for parent in near(term):
            if parent in shown:
                children[parent].append(term)
    return {term: -depth for term, depth in depths(children).items() if term != centre}


def _among(
    upwards: Mapping[NamedNode, Sequence[NamedNode]], shown: set[NamedNode]
) -> dict[NamedNode, list[NamedNode]]:
    return {term: [parent for parent in upwards[term] if parent in shown] for term in shown}


def _box(view: View, term: NamedNode, level: int, shown: frozenset[NamedNode]) -> Box:
    if level < 0:
        near: set[NamedNode] = set(view.parents(term))
    else:
        near = {*view.children(term), *view.instances(term)}
    return Box(
        term=term,
        label=view.label(term),
        name=view.brief(term),
        level=level,
        is_instance="instance" in view.kinds(term) and len(view.kinds(term)) == 1,
        more=len(near - shown),
    )

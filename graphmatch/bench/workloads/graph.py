"""``graph``: the workload of G-ToPSS, as described in docs/benchmarks.md.

Petrovic, Liu, Jacobsen: "G-ToPSS: Fast Filtering of Graph-based Metadata", WWW 2005, section 5 and
table 1. Edges outside of the path are at the same places in each group (drawn from the seed). About
30 of the overlapping subscriptions are taken from each graph that is never published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from random import Random
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, RdfFormat, Triple, serialize

from graphmatch.bench.workloads import Workload, distinct_rows
from semantic.publication import Publication

Ids: TypeAlias = NDArray[np.int32]
Pair: TypeAlias = tuple[int, int]
Edges: TypeAlias = tuple[int, ...]
Edge: TypeAlias = tuple[NamedNode, NamedNode, NamedNode]

NODES, EDGES, NAMES, PROPERTIES = 35, 90, 2000, 50
GROUP, GROUPS = 5, 7
WITH_VARIABLES, VARIABLES = 0.9, 2
TOPOLOGIES = 10
"""The number of sets of edges of subscriptions without variables."""
OWN_VARIABLES = (2, 3)
"""The numbers of variables of subscriptions with a shape of their own."""
TOGETHER = 30
"""The number of overlapping subscriptions taken from one graph that is never published."""
SYNTAXES = {
    "nt": RdfFormat.N_TRIPLES,
    "turtle": RdfFormat.TURTLE,
    "rdfxml": RdfFormat.RDF_XML,
    "jsonld": RdfFormat.JSON_LD,
}
PREFIXES = {"n": "urn:n:", "p": "urn:p:"}
"""The prefixes in Turtle and RDF/XML."""


@dataclass(eq=False)
class GraphWorkload(Workload):
    """Publications are graphs of 90 edges; subscriptions have 4 (a tree) to 12 edges.

    A publication matches a share of the subscriptions (`matching`), or a number (`matches`). Apart
    from constants, subscriptions have `shapes` different shapes (0: one each). The share `overlap`
    has edges in common with others.

    `patterns` has shape ``(subscriptions, edges, 3)``: subject, property and object of each triple
    pattern, as int32. Negative numbers are variables. `graphs` has shape ``(publications, 90, 3)``.
    Event *e* is publication *e* modulo their number.
    """

    edges: int = 8
    matching: float = 0.001
    matches: int | None = None
    shapes: int = 100
    overlap: float = 0.5
    renews: ClassVar = True

    def __post_init__(self) -> None:
        size = self.size
        random = np.random.default_rng(size.seed)
        cut, published = size.planted(self.matching, self.matches)
        self._motif = _motif(random)
        edges, variables, named = _shapes(self._motif, self, size.subscriptions, random)
        names, properties = _names(random, published)
        self.graphs = _edges(self._motif, names, properties)
        nodes, labels = self._cut(random, cut, names, properties)
        shape_of = _spread(random, size.subscriptions, len(variables), named)
        stars, edge_of = variables[shape_of], edges[shape_of]
        nodes = np.where(stars > 0, -stars, nodes).astype(np.int32)
        ends = np.array(self._motif, np.int8)[edge_of]
        self.patterns = np.empty((*edge_of.shape, 3), np.int32)
        self.patterns[:, :, 0] = np.take_along_axis(nodes, ends[:, :, 0], axis=1)
        self.patterns[:, :, 1] = np.take_along_axis(labels, edge_of, axis=1)
        self.patterns[:, :, 2] = np.take_along_axis(nodes, ends[:, :, 1], axis=1)

    def _cut(
        self, random: np.random.Generator, cut: int, names: Ids, properties: Ids
    ) -> tuple[Ids, Ids]:
        """Draw each subscription's node and property ids.

        `cut` of them are taken from each published graph, and match it. Others are taken from
        unpublished graphs (`overlap`), or are random. Set `_planted`: for each graph, the positions
        of its subscriptions.
        """
        count, width = self.size.subscriptions, len(self._motif)
        hidden = max(0, int(count * self.overlap) - cut * len(names))
        parts = [_groups(random, names, properties, np.repeat(np.arange(len(names)), cut), width)]
        if hidden:
            unseen = max(1, hidden // TOGETHER)
            of = random.integers(0, unseen, hidden)
            parts.append(_groups(random, *_names(random, unseen), of, width))
        rest = count - cut * len(names) - hidden
        drawn = distinct_rows(random, rest, GROUP, NAMES)
        parts.append((drawn, random.integers(0, PROPERTIES, (rest, width), dtype=np.int32)))
        order = random.permutation(count)
        self._planted = np.argsort(order)[: cut * len(names)].reshape(len(names), cut)
        nodes, labels = (np.concatenate(part)[order] for part in zip(*parts, strict=True))
        return nodes, labels

    def texts(self) -> list[str]:
        """Return the subscriptions: SELECT of the variables, or ASK without variables."""
        last = -int(self.patterns.min(initial=0))
        nodes = [f"<urn:n:{name}>" for name in range(NAMES)]
        nodes += [f"?x{star}" for star in range(last, 0, -1)]  # -1 is the last
        properties = [f" <urn:p:{number}> " for number in range(PROPERTIES)]
        stars = -self.patterns[:, :, ::2].min(axis=(1, 2), initial=0)
        heads = [f"SELECT {' '.join(nodes[: -n - 1 : -1])} WHERE {{ " for n in range(4)]
        heads[0] = "ASK { "
        several = zip(stars.tolist(), self.rows(), strict=True)
        return [
            heads[n] + " . ".join([nodes[s] + properties[p] + nodes[o] for s, p, o in rows]) + " }"
            for n, rows in several
        ]

    def rows(self) -> Iterator[list[list[int]]]:
        """Yield the triple patterns of each subscription as a list of numbers."""
        return map(np.ndarray.tolist, self.patterns)

    def publications(self, number: int, serial: int | None = None) -> list[Publication]:
        """Return the graph of an event as one publication."""
        id = f"urn:e:{number}" if serial is None else f"urn:new:{serial}"
        return [Publication.of(id, self._triples(number, serial))]

    def document(self, number: int, syntax: str, serial: int | None = None) -> bytes:
        """Return the graph of an event as bytes in one of `SYNTAXES`."""
        form = SYNTAXES[syntax]
        triples = (Triple(*triple) for triple in self._triples(number, serial))
        prefixes = PREFIXES if syntax in ("turtle", "rdfxml") else None
        written = serialize(triples, format=form, prefixes=prefixes)
        assert written is not None
        return written

    def _triples(self, number: int, serial: int | None) -> list[Edge]:
        return [
            (NamedNode(f"urn:n:{s}"), NamedNode(f"urn:p:{p}"), NamedNode(f"urn:n:{o}"))
            for s, p, o in self.graph(number, serial).tolist()
        ]

    def graph(self, number: int, serial: int | None = None) -> Ids:
        """Return an event's triples, shape ``(90, 3)``.

        With a serial number, nodes that its subscriptions do not name get new names, from `NAMES`
        up.
        """
        place = number % len(self.graphs)
        found: Ids = self.graphs[place]
        if serial is not None:
            nodes = found[:, ::2]
            names = np.unique(nodes)
            new = NAMES + serial * NODES + np.arange(names.size)
            put = np.where(np.isin(names, self.patterns[self._planted[place], :, ::2]), names, new)
            found = found.copy()
            found[:, ::2] = put[np.searchsorted(names, nodes)]
        return found


def _shapes(
    motif: list[Pair], made: GraphWorkload, count: int, random: np.random.Generator
) -> tuple[NDArray[np.intp], Ids, int]:
    """Draw distinct query shapes; raise `ValueError` if there are none or not enough.

    Return the edges of each, ``(shapes, edges)``; its nodes' variables, ``(shapes, 5)``, 0 for
    none; and the number of shapes without a variable, which come first.
    """
    if not GROUP - 1 <= made.edges <= len(motif):
        raise ValueError(f"a subscription has from {GROUP - 1} to {len(motif)} edges")
    if made.shapes == 1:
        raise ValueError("there are at least two shapes: with variables, and without")
    whole = [s for s in combinations(range(len(motif)), made.edges) if _spans(motif, s)]
    if not made.shapes:
        return *_starred(motif, whole, OWN_VARIABLES, count, random), 0
    named = random.permutation(whole)[:TOPOLOGIES]
    edges, stars = _starred(motif, whole, (VARIABLES,), made.shapes - 1, random)
    none = np.zeros((len(named), GROUP), np.int32)
    return np.concatenate([named, edges]), np.concatenate([none, stars]), len(named)


def _starred(
    motif: list[Pair],
    whole: list[Edges],
    variables: Sequence[int],
    count: int,
    random: np.random.Generator,
) -> tuple[NDArray[np.intp], Ids]:
    """Draw `count` distinct shapes with variables; raise `ValueError` if there are too few.

    Return the edges of each in order, from one of `whole`, and its nodes' variables, 0 for none.
    `variables` has the possible numbers of variables.
    """
    draw = Random(int(random.integers(1 << 32)))  # noqa: S311 - no secrets
    choices = [choice for several in variables for choice in combinations(range(GROUP), several)]
    drawn: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
    for _ in range(50 * count + 100_000):
        if len(drawn) == count:
            edges, stars = zip(*drawn.values(), strict=True)
            return np.array(edges, np.intp), np.array(stars, np.int32)
        own = draw.choice(whole)
        ordered, chosen = draw.sample(own, len(own)), draw.choice(choices)
        called = dict.fromkeys(range(GROUP), 0)  # variables are numbered in order of use
        for node in (node for edge in ordered for node in motif[edge]):
            if node in chosen and not called[node]:
                called[node] = max(called.values()) + 1
        seen = tuple([called[node] for edge in ordered for node in motif[edge]])
        drawn[seen] = ordered, list(called.values())
    raise ValueError(f"there are {len(drawn):,} shapes, too few for {count:,} subscriptions")


def _motif(random: np.random.Generator) -> list[Pair]:
    """Draw the edges of a group: the path's, and 8 between other pairs."""
    path = [(node, node + 1) for node in range(GROUP - 1)]
    others = [pair for pair in permutations(range(GROUP), 2) if pair not in path]
    more = (EDGES - NODES + 1) // GROUPS
    return path + [others[i] for i in random.permutation(len(others))[:more]]


def _spans(motif: list[Pair], edges: tuple[int, ...]) -> bool:
    """Return whether some edges of the motif connect all nodes of a group."""
    reached = {0}
    for _ in edges:
        for start, end in (motif[edge] for edge in edges):
            if start in reached or end in reached:
                reached |= {start, end}
    return len(reached) == GROUP


def _names(random: np.random.Generator, count: int) -> tuple[Ids, Ids]:
    """Draw the names of the nodes of `count` graphs, and the properties of their edges."""
    names = distinct_rows(random, count, NODES, NAMES)
    return names, random.integers(0, PROPERTIES, (count, EDGES), dtype=np.int32)


def _edges(motif: list[Pair], names: Ids, properties: Ids) -> Ids:
    """Return graphs as triples: the groups' edges, and the path's between groups."""
    pairs = [(GROUP * g + start, GROUP * g + end) for g in range(GROUPS) for start, end in motif]
    ends = np.array([*pairs, *((GROUP * g - 1, GROUP * g) for g in range(1, GROUPS))])
    return np.stack([names[:, ends[:, 0]], properties, names[:, ends[:, 1]]], axis=2)


def _groups(
    random: np.random.Generator, names: Ids, properties: Ids, of: NDArray[np.int64], width: int
) -> tuple[Ids, Ids]:
    """Draw a group of each graph in `of`; return the names of its nodes and its properties.

    `of` has positions in `names` and `properties`; `width` is the number of a group's edges.
    """
    group = random.integers(0, GROUPS, of.size)[:, None]
    nodes = names[of[:, None], group * GROUP + np.arange(GROUP)]
    return nodes, properties[of[:, None], group * width + np.arange(width)]


def _spread(random: np.random.Generator, count: int, shapes: int, named: int) -> Ids:
    """Draw the position of a shape for each subscription.

    Exactly the share `WITH_VARIABLES` gets a shape with variables. If all shapes have some (`named`
    is 0), each subscription has a shape of its own.
    """
    if not named:
        return np.arange(count, dtype=np.int32)
    starred = round(count * WITH_VARIABLES) if shapes > named else 0
    some = random.integers(named, max(shapes, named + 1), starred)
    drawn = np.concatenate([some, random.integers(0, named, count - starred)])
    return random.permutation(drawn).astype(np.int32)

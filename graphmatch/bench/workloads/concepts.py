"""``concepts`` (``trees`` in experiments): the workload of CTPS, as in docs/benchmarks.md.

Zhang, Wang, Huang, Yung: CTPS, section 6; the paper does not print all values of its table of
parameters. Each attribute has a tree of its own. Subscriptions taken from an event match it; the
others match almost nothing. Classes are numbered by a walk of their tree from the top, so that the
descendants of a class are an interval. Engines that only support numbers get that interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from graphmatch.bench.workloads import Column, TabularData, TabularWorkload
from semantic.vocabulary import SUBCLASS

if TYPE_CHECKING:
    from semantic.ontology.ontology import Ontology

Numbers: TypeAlias = NDArray[np.int64]

TREES, STRINGS, RANGES = 3, 2, 2
TEXTS = 100
LARGEST = 1_000_000


@dataclass(eq=False)
class ConceptWorkload(TabularWorkload):
    """Classes, strings and ranges: seven columns.

    `height` is the number of links from a tree's top to its leaves. An event matches a share of the
    subscriptions (`matching`), or a number (`matches`).
    """

    height: int = 5
    matching: float = 0.001
    matches: int | None = None

    def __post_init__(self) -> None:
        size = self.size
        height = self.height
        if not 1 <= height <= 20:
            raise ValueError("a tree's height is from 1 to 20")
        random = np.random.default_rng(size.seed)
        cut, used = size.planted(self.matching, self.matches)
        events, of = _drawn(random, used, height), np.repeat(np.arange(used), cut)
        others, ends = (_drawn(random, size.subscriptions - of.size, height) for _ in range(2))
        own, near = events[of, :TREES], events[of, -RANGES:]
        up = own >> random.integers(0, _depth(own), endpoint=True)
        below = (near * random.random(near.shape)).astype(np.int64)
        above = near + ((LARGEST - near) * random.random(near.shape)).astype(np.int64)
        rows = np.concatenate([np.concatenate([up, events[of, TREES:]], axis=1), others])
        first, last = _interval(rows[:, :TREES], height)
        strings, numbers = (
            rows[:, TREES:-RANGES],
            np.sort([others[:, -RANGES:], ends[:, -RANGES:]], 0),
        )
        low, high = np.concatenate([below, numbers[0]]), np.concatenate([above, numbers[1]])
        order = random.permutation(size.subscriptions)
        values = np.concatenate(
            [_interval(events[:, :TREES], height)[0], events[:, TREES:]], axis=1
        )
        self.rows = TabularData(
            np.concatenate([first, strings, low], axis=1)[order].T.astype(np.int32),
            np.concatenate([last, strings, high], axis=1)[order].T.astype(np.int32),
            values[np.arange(size.events) % used].astype(np.int32),
        )
        places = np.argsort(_interval(np.arange(1, 2 ** (height + 1)), height)[0]) + 1
        iris = [[f"urn:t:{i}:{place}" for place in places.tolist()] for i in range(TREES)]
        self.columns = [
            *(Column(f"c{i}", names, classes=True) for i, names in enumerate(iris)),
            *(Column(f"s{i}", [f"s{text}" for text in range(TEXTS)]) for i in range(STRINGS)),
            *(Column(f"r{i}") for i in range(RANGES)),
        ]

    def ontology(self) -> Ontology:
        """Return an ontology with the trees of classes, by rdfs:subClassOf."""
        from semantic.ontology.ontology import Ontology

        return Ontology(
            (NamedNode(f"urn:t:{tree}:{k}"), SUBCLASS, NamedNode(f"urn:t:{tree}:{k // 2}"))
            for tree in range(TREES)
            for k in range(2, 2 ** (self.height + 1))
        )


def _drawn(random: np.random.Generator, count: int, height: int) -> Numbers:
    """Draw rows of classes (1 is the top, 2k and 2k + 1 are below k), strings and numbers."""
    ends = [2 ** (height + 1)] * TREES + [TEXTS] * STRINGS + [LARGEST + 1] * RANGES
    return random.integers([1] * TREES + [0] * (STRINGS + RANGES), ends, (count, len(ends)))


def _depth(places: Numbers) -> Numbers:
    return np.frexp(places.astype(np.float64))[1].astype(np.int64) - 1


def _interval(places: Numbers, height: int) -> tuple[Numbers, Numbers]:
    """Return the first and last descendant of each class, as numbered by a walk from the top."""
    depth = _depth(places)
    first = np.zeros_like(places)
    for level in range(1, height + 1):
        inside = level <= depth
        right = (places >> np.maximum(depth - level, 0)) & 1
        first += np.where(inside, 1 + right * (2 ** (height - level + 1) - 1), 0)
    return first, first + 2 ** (height - depth + 1) - 2

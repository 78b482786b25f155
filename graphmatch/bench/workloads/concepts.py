"""``concepts``: classes, strings and numbers, as CTPS is measured.

Zhang, Wang, Huang, Yung: CTPS, section 6. The paper's table of parameters is not printed with all
of its values; what stands here is said by its text: events and subscriptions have 3 attributes
with a class of a complete binary tree of height h (each attribute has its own tree, so a
subscription stands for up to (2^(h+1) - 1)^3 combinations), 2 with one of 100 strings, and 2
with a number, for which a subscription has a range.

An event's values are drawn uniformly; a class may be any of its tree. Some subscriptions are cut
out of each event, so that they match it: the same strings, a class from the way up, a range
around the number. The others are drawn uniformly, and match next to nothing.

A class is numbered by a walk of its tree from the top, so that those below it are an interval
(`rows`): peers that know numbers only are given that, and nothing of the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from graphmatch.bench.workloads.workload import Rows, Size, Workload, ids
from semantic.publication import Publication
from semantic.vocabulary import SUBCLASS, TYPE

if TYPE_CHECKING:
    import pyarrow as pa

    from semantic.ontology.ontology import Ontology

Numbers: TypeAlias = NDArray[np.int64]

TREES, STRINGS, RANGES = 3, 2, 2
TEXTS = 100
LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class ConceptParameters:
    """What can be chosen.

    Parameters
    ----------
    height
        Links from the top of a tree to its leaves.
    matching, matches
        Which share of the subscriptions an event matches, or how many of them.
    """

    height: int = 5
    matching: float = 0.001
    matches: int | None = None


class ConceptWorkload(Workload):
    """Classes, strings and ranges.

    Parameters
    ----------
    size
        How much is generated.
    parameters
        See `ConceptParameters`.

    Attributes
    ----------
    classes, strings
        Shapes ``(subscriptions, 3)`` and ``(subscriptions, 2)``. A class is its place in its tree:
        1 is the top, and 2k and 2k + 1 are below k.
    rows
        Seven columns: classes as intervals, strings, ranges.

    Examples
    --------
    >>> made = ConceptWorkload(Size(100, 5), ConceptParameters(height=2))
    >>> made.rows.low.shape, len(made.publication(0).triples), len(made.ontology().stated)
    ((7, 100), 10, 18)
    """

    name: ClassVar = "concepts"
    parameters_class: ClassVar = ConceptParameters
    tabular: ClassVar = True
    parameters: ConceptParameters

    def __init__(self, size: Size, parameters: ConceptParameters) -> None:
        super().__init__(size, parameters)
        if not 1 <= parameters.height <= 20:
            raise ValueError("a tree's height is from 1 to 20")
        random = np.random.default_rng(size.seed)
        cut, used = size.planted(parameters.matching, parameters.matches)
        self._classes, self._strings, self._numbers = _drawn(random, used, parameters.height)
        of = np.repeat(np.arange(used), cut)
        rest = size.subscriptions - of.size
        classes, strings, numbers = _drawn(random, rest, parameters.height)
        others = random.integers(0, LARGEST, (rest, RANGES), endpoint=True)
        near = self._numbers[of]
        below = (near * random.random(near.shape)).astype(np.int64)
        above = near + ((LARGEST - near) * random.random(near.shape)).astype(np.int64)
        order = random.permutation(size.subscriptions)
        up = _upwards(random, self._classes[of])
        self.classes = np.concatenate([up, classes])[order]
        self.strings = np.concatenate([self._strings[of], strings])[order]
        low = np.concatenate([below, np.minimum(numbers, others)])[order]
        high = np.concatenate([above, np.maximum(numbers, others)])[order]
        self.rows = self._as_rows(low, high)

    def _as_rows(self, low: Numbers, high: Numbers) -> Rows:
        first, last = _interval(self.classes, self.parameters.height)
        own, _ = _interval(self._classes, self.parameters.height)
        event = np.concatenate([own, self._strings, self._numbers], axis=1).astype(np.int32)
        again = np.arange(self.size.events) % len(event)
        return Rows(
            np.concatenate([first, self.strings, low], axis=1).T.astype(np.int32),
            np.concatenate([last, self.strings, high], axis=1).T.astype(np.int32),
            event[again],
        )

    def texts(self) -> list[str]:
        """Return the subscriptions, all of one form."""
        parts = [f"?e <urn:c:{i}> ?c{i} . ?c{i} a <urn:t:{i}:%d> ." for i in range(TREES)]
        parts += [f'?e <urn:s:{i}> "s%d" .' for i in range(STRINGS)]
        parts += [f"?e <urn:r:{i}> ?r{i} FILTER(?r{i} >= %d && ?r{i} <= %d)" for i in range(RANGES)]
        form = f"SELECT ?e WHERE {{ {' '.join(parts)} }}"
        ranges = [self.rows.low[-2], self.rows.high[-2], self.rows.low[-1], self.rows.high[-1]]
        numbers = np.concatenate([self.classes.T, self.strings.T, ranges]).T.tolist()
        return [form % tuple(row) for row in numbers]

    def table(self) -> pa.Table:
        """Return the subscriptions: columns of classes, of strings, of lower and upper bounds."""
        import pyarrow as pa

        columns: dict[str, pa.Array[Any]] = {"id": pa.array(ids(self.size.subscriptions))}
        for i, classes in enumerate(self.classes.T.tolist()):
            columns[f"c{i} isa"] = pa.array([f"urn:t:{i}:{class_}" for class_ in classes])
        for i, strings in enumerate(self.strings.T.tolist()):
            columns[f"s{i}"] = pa.array([f"s{text}" for text in strings])
        for i in range(RANGES):
            columns[f"r{i} >="] = pa.array(self.rows.low[i - RANGES])
            columns[f"r{i} <="] = pa.array(self.rows.high[i - RANGES])
        return pa.table(columns)

    def attributes(self, number: int) -> dict[str, object]:
        """Return an event as attributes and values."""
        of = number % len(self._classes)
        classes = enumerate(self.event_classes(number))
        return (
            {f"c{i}": {"iri": f"urn:t:{i}:{class_}"} for i, class_ in classes}
            | {f"s{i}": f"s{text}" for i, text in enumerate(self._strings[of].tolist())}
            | {f"r{i}": value for i, value in enumerate(self._numbers[of].tolist())}
        )

    def publication(self, number: int) -> Publication:
        """Return an event; what stands for a class is an instance of it."""
        return Publication.of(f"urn:e:{number}", self._triples(number, closed=False))

    def materialised(self, number: int) -> Publication:
        """Return an event whose instances have all classes above theirs, too."""
        return Publication.of(f"urn:e:{number}", self._triples(number, closed=True))

    def event_classes(self, number: int) -> list[int]:
        """Return an event's classes."""
        return [int(c) for c in self._classes[number % len(self._classes)]]

    def _triples(
        self, number: int, *, closed: bool
    ) -> list[tuple[NamedNode, NamedNode, NamedNode | Literal]]:
        of = number % len(self._classes)
        event = NamedNode(f"urn:e:{number}")
        triples: list[tuple[NamedNode, NamedNode, NamedNode | Literal]] = []
        for tree, own in enumerate(self.event_classes(number)):
            instance = NamedNode(f"urn:i:{number}:{tree}")
            triples.append((event, NamedNode(f"urn:c:{tree}"), instance))
            classes = way_up(own) if closed else [own]
            triples += [(instance, TYPE, NamedNode(f"urn:t:{tree}:{c}")) for c in classes]
        for place, text in enumerate(self._strings[of].tolist()):
            triples.append((event, NamedNode(f"urn:s:{place}"), Literal(f"s{text}")))
        for place, value in enumerate(self._numbers[of].tolist()):
            triples.append((event, NamedNode(f"urn:r:{place}"), Literal(value)))
        return triples

    def ontology(self) -> Ontology:
        """Return the trees."""
        from semantic.ontology.ontology import Ontology

        return Ontology(
            (NamedNode(f"urn:t:{tree}:{k}"), SUBCLASS, NamedNode(f"urn:t:{tree}:{k // 2}"))
            for tree in range(TREES)
            for k in range(2, 2 ** (self.parameters.height + 1))
        )


def way_up(class_: int) -> list[int]:
    """Return a class and those above it.

    Examples
    --------
    >>> way_up(11)
    [11, 5, 2, 1]
    """
    return [class_ >> steps for steps in range(class_.bit_length())]


def _drawn(
    random: np.random.Generator, count: int, height: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Draw classes, strings and numbers."""
    return (
        random.integers(1, 2 ** (height + 1), (count, TREES)),
        random.integers(0, TEXTS, (count, STRINGS)),
        random.integers(0, LARGEST, (count, RANGES), endpoint=True),
    )


def _depth(classes: Numbers) -> Numbers:
    return np.frexp(classes.astype(np.float64))[1].astype(np.int64) - 1


def _upwards(random: np.random.Generator, classes: Numbers) -> Numbers:
    """Return one of each class and those above it."""
    return classes >> random.integers(0, _depth(classes), endpoint=True)


def _interval(classes: Numbers, height: int) -> tuple[Numbers, Numbers]:
    """Return the first and last below each class, as a walk from the top numbers them."""
    depth = _depth(classes)
    first = np.zeros_like(classes)
    for level in range(1, height + 1):
        inside = level <= depth
        right = (classes >> np.maximum(depth - level, 0)) & 1
        first += np.where(inside, 1 + right * (2 ** (height - level + 1) - 1), 0)
    return first, first + 2 ** (height - depth + 1) - 2

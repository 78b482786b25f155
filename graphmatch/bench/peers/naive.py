"""The floor in plain Python: a dictionary on the rarest part of a subscription, and a check.

``graph``
    On one edge, the rarest among the subscriptions, those with two constants first; each
    subscription found is checked by backtracking over the publication's edges. It carries ids
    only: no solutions.
``concepts``
    On the two strings; classes and ranges are checked one after the other.
``keywords``
    All words are looked for in one pass (Aho-Corasick). The dictionary is on a subscription's
    rarest word, the others are checked.

Cost: the look-ups of an event, and the subscriptions whose rarest part is met.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, TypeAlias

import numpy as np
from ahocorasick_rs import AhoCorasick, MatchKind
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.concepts import STRINGS, TREES, ConceptWorkload, way_up
from graphmatch.bench.workloads.graph import NAMES, PROPERTIES, GraphWorkload
from graphmatch.bench.workloads.keywords import KeywordWorkload, titles
from graphmatch.bench.workloads.workload import Workload

Edge: TypeAlias = tuple[int, int, int]

_PAIRS = NAMES * PROPERTIES

_STRINGS, _RANGES = slice(TREES, TREES + STRINGS), slice(TREES + STRINGS, None)
"""Which columns of the concepts' rows are what."""


class NaivePeer(Peer):
    """A dictionary and a check, of the kind that the workload needs."""

    name: ClassVar = "naive"
    workloads: ClassVar = frozenset({"graph", "concepts", "keywords"})

    def given(self, workload: Workload) -> Workload:
        """Return the workload."""
        return workload

    def build(self, given: Workload) -> None:
        """Make the dictionary."""
        self._index: _Index = _INDEXES[given.name](given)

    def event(self, workload: Workload, number: int) -> Any:
        """Return the event's numbers, or its titles."""
        return self._index.event(workload, number)

    def match(self, event: Any) -> list[int]:
        """Look up, and check."""
        return list(self._index.match(event))

    def numbers(self, found: list[int]) -> NDArray[np.int64]:
        """Return them as an array."""
        return np.array(found, np.int64)


class _Index(ABC):
    @abstractmethod
    def event(self, workload: Any, number: int) -> Any:
        """Return an event as the index takes it."""

    @abstractmethod
    def match(self, event: Any) -> Iterator[int]:
        """Yield the subscriptions that match, each once."""


# --- Graphs --------------------------------------------------------------------------------------


class _Graphs(_Index):
    def __init__(self, workload: GraphWorkload) -> None:
        keys = _gates(workload.patterns)
        order = np.argsort(keys, kind="stable")
        self._patterns = workload.patterns.copy()
        self._filed: dict[int, list[int]] = {}
        for key, number in zip(keys[order].tolist(), order.tolist(), strict=True):
            self._filed.setdefault(key, []).append(number)

    def event(self, workload: GraphWorkload, number: int) -> list[Edge]:
        """Return the edges."""
        return [(s, p, o) for s, p, o in workload.graph(number).tolist()]

    def match(self, event: list[Edge]) -> Iterator[int]:
        """Probe three keys for each edge, and check what is found."""
        edges = _Edges(event)
        probed = {s * PROPERTIES * NAMES + p * NAMES + o for s, p, o in event}
        probed.update([~(s * PROPERTIES + p) for s, p, _ in event])
        probed.update([~(_PAIRS + p * NAMES + o) for _, p, o in event])
        for key in self._filed.keys() & probed:
            for number in self._filed[key]:
                if edges.meet(self._patterns[number].tolist()):
                    yield number


def _gates(patterns: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return each subscription's key: its rarest edge, of those with two constants if it has any.

    Keys with a variable are negative, so that the three kinds differ.
    """
    s, p, o = np.moveaxis(patterns.astype(np.int64), 2, 0)
    pair, turned = s * PROPERTIES + p, _PAIRS + p * NAMES + o
    keys = np.where(s < 0, ~turned, np.where(o < 0, ~pair, pair * NAMES + o))
    _, kind, count = np.unique(keys, return_inverse=True, return_counts=True)
    often = count[kind.reshape(keys.shape)]
    stars = (s < 0).astype(np.int64) + (o < 0)
    best = np.argmin(often + stars * keys.size, axis=1)
    found: NDArray[np.int64] = np.take_along_axis(keys, best[:, None], axis=1)[:, 0]
    return found


class _Edges:
    """A publication's edges; what is looked up in them is made at the first need."""

    def __init__(self, edges: list[Edge]) -> None:
        self._edges = edges
        self._all: set[Edge] = set()
        self._by_property: dict[int, list[Edge]] = {}

    def meet(self, patterns: list[list[int]]) -> bool:
        """Say whether patterns, with negative numbers for variables, have a solution."""
        if not self._all:
            self._all = set(self._edges)
            for edge in self._edges:
                self._by_property.setdefault(edge[1], []).append(edge)
        with_one: list[Edge] = []
        with_two: list[Edge] = []
        for s, p, o in patterns:
            if s >= 0 and o >= 0:
                if (s, p, o) not in self._all:
                    return False
            elif p not in self._by_property:
                return False
            else:
                (with_two if s < 0 and o < 0 else with_one).append((s, p, o))
        return self._solve(with_one + with_two, 0, {})

    def _solve(self, patterns: list[Edge], place: int, bound: dict[int, int]) -> bool:
        """Try each edge that meets the pattern at a place, then the patterns after it."""
        if place == len(patterns):
            return True
        s, p, o = patterns[place]
        start, end = bound.get(s, s), bound.get(o, o)
        if start >= 0 and end >= 0:
            return (start, p, end) in self._all and self._solve(patterns, place + 1, bound)
        for found, _, reached in self._by_property[p]:
            if (start >= 0 and start != found) or (end >= 0 and end != reached):
                continue
            if s == o and found != reached:
                continue
            if self._solve(patterns, place + 1, {**bound, s: found, o: reached}):
                return True
        return False


# --- Concepts ------------------------------------------------------------------------------------


class _Concepts(_Index):
    def __init__(self, workload: ConceptWorkload) -> None:
        low, high = workload.rows.low[_RANGES], workload.rows.high[_RANGES]
        numbers = np.arange(len(workload.classes))
        columns = [numbers, *workload.classes.T, low[0], high[0], low[1], high[1]]
        rows = np.stack(columns, axis=1).tolist()
        self._filed: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for strings, row in zip(workload.strings.tolist(), rows, strict=True):
            self._filed.setdefault(tuple(strings), []).append(tuple(row))

    def event(
        self, workload: ConceptWorkload, number: int
    ) -> tuple[tuple[int, ...], list[set[int]], list[int]]:
        """Return the strings, the classes with those above them, and the numbers."""
        values = workload.rows.values[number]
        above = [set(way_up(class_)) for class_ in workload.event_classes(number)]
        return tuple(values[_STRINGS].tolist()), above, values[_RANGES].tolist()

    def match(self, event: tuple[tuple[int, ...], list[set[int]], list[int]]) -> Iterator[int]:
        """Look the strings up, and check the rest."""
        strings, (first, second, third), (one, other) = event
        for number, a, b, c, low, high, least, most in self._filed.get(strings, ()):
            if (
                a in first
                and b in second
                and c in third
                and low <= one <= high
                and least <= other <= most
            ):
                yield number


# --- Keywords ------------------------------------------------------------------------------------


class _Keywords(_Index):
    def __init__(self, workload: KeywordWorkload) -> None:
        often = Counter(word for words in workload.subscriptions for word in words)
        self._words = list(often)
        self._automaton = AhoCorasick(self._words, matchkind=MatchKind.Standard)
        self._filed: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        for number, words in enumerate(workload.subscriptions):
            rarest = min(words, key=often.__getitem__)
            others = tuple(word for word in words if word != rarest)
            self._filed.setdefault(rarest, []).append((number, others))

    def event(self, workload: KeywordWorkload, number: int) -> list[str]:
        """Return the titles."""
        return titles(workload.publication(number))

    def match(self, event: list[str]) -> Iterator[int]:
        """Find all words of each title, and check what is filed under them."""
        found = set()
        for title in event:
            places = self._automaton.find_matches_as_indexes(title, overlapping=True)
            words = {self._words[place] for place, _, _ in places}
            for word in words:
                for number, others in self._filed.get(word, ()):
                    if words.issuperset(others):
                        found.add(number)
        yield from found


_INDEXES: dict[str, Any] = {"graph": _Graphs, "concepts": _Concepts, "keywords": _Keywords}

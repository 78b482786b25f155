"""The plain dictionary: what a programmer writes in an afternoon, in Python.

``graph``
    A subscription is filed under one edge, its rarest, in a dictionary keyed by (subject,
    property, object) with ``None`` for variables; those found are joined by recursion over
    dictionaries of the publication's edges. All terms are given as integers already: that is its
    advantage. It yields ids only, no solutions.
``concepts``
    On the two strings; classes and ranges are checked one after the other.
``keywords``
    All words are looked for in one pass (Aho-Corasick). The dictionary is on a subscription's
    rarest word, the others are checked.

Cost: the look-ups of an event, and the subscriptions whose rarest part is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.concepts import RANGES, TREES, ConceptWorkload, way_up
from graphmatch.bench.workloads.graph import NAMES, PROPERTIES, GraphWorkload
from graphmatch.bench.workloads.keywords import KeywordWorkload, titles
from graphmatch.bench.workloads.workload import Workload

Key: TypeAlias = tuple[int | None, int | None, int | None]

CHUNK = 10_000
"""So many subscriptions are made Python objects at a time."""


class DictionaryPeer(Peer):
    """A dictionary and a check, of the kind that the workload needs."""

    name: ClassVar = "dictionary"
    requires: ClassVar = "ahocorasick_rs"
    forms: ClassVar = {"graph": ("integers",), "concepts": ("integers",), "keywords": ("titles",)}

    @classmethod
    def takes(cls, parameters: Mapping[str, Any]) -> bool:
        """Say whether there are no topics."""
        return not parameters.get("topics")

    def given(self, workload: Workload) -> Workload:
        """Return the workload: its arrays are taken from there."""
        return workload

    def build(self, given: Workload) -> None:
        """Make the dictionary."""
        kinds: dict[str, Any] = {"graph": _Graphs, "concepts": _Concepts, "keywords": _Keywords}
        self._index = kinds[given.name](given)

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> Any:  # noqa: ARG002
        """Return the event's integers, or its titles."""
        return self._index.event(workload, number, serial)

    def match(self, event: Any, form: str) -> list[list[int]]:  # noqa: ARG002 - there is one
        """Look up, and check."""
        return [list(self._index.match(event))]


class _Graphs:
    def __init__(self, workload: GraphWorkload) -> None:
        patterns = workload.patterns
        rarest = np.take_along_axis(patterns, _rarest(patterns)[:, None, None], axis=1)[:, 0]
        stars = (patterns[:, :, ::2] < 0).sum(axis=2)
        order = np.argsort(stars, axis=1, kind="stable")[:, :, None]  # constants first
        count = int(patterns.max(initial=0)) + 1
        numbers = [*range(count), *range(-3, 0)]  # each number is one object
        self._filed: dict[Key, list[tuple[int, tuple[int, ...]]]] = {}
        for start in range(0, len(patterns), CHUNK):
            some = slice(start, start + CHUNK)
            rows = np.take_along_axis(patterns[some], order[some], axis=1)
            flat = rows.reshape(len(rows), -1).tolist()
            for number, (key, row) in enumerate(
                zip(rarest[some].tolist(), flat, strict=True), start
            ):
                s, p, o = (numbers[part] if part >= 0 else None for part in key)
                joined = tuple([numbers[part] for part in row])
                self._filed.setdefault((s, p, o), []).append((number, joined))

    def event(self, workload: GraphWorkload, number: int, serial: int | None) -> list[list[int]]:
        found: list[list[int]] = workload.graph(number, serial).tolist()
        return found

    def match(self, event: list[list[int]]) -> Iterator[int]:
        keys: set[Key] = set()
        edges: set[tuple[int, int, int]] = set()
        by_start: dict[tuple[int, int], list[int]] = {}
        by_end: dict[tuple[int, int], list[int]] = {}
        by_property: dict[int, list[tuple[int, int]]] = {}
        for s, p, o in event:
            keys.update(((s, p, o), (None, p, o), (s, p, None), (None, p, None)))
            edges.add((s, p, o))
            by_start.setdefault((s, p), []).append(o)
            by_end.setdefault((p, o), []).append(s)
            by_property.setdefault(p, []).append((s, o))

        def join(flat: tuple[int, ...], place: int, bound: dict[int, int]) -> bool:
            if place == len(flat):
                return True
            s, p, o = flat[place : place + 3]
            start, end = bound.get(s, s), bound.get(o, o)
            if start >= 0 and end >= 0:
                return (start, p, end) in edges and join(flat, place + 3, bound)
            if start >= 0:
                reached = by_start.get((start, p), ())
                return any(join(flat, place + 3, {**bound, o: found}) for found in reached)
            if end >= 0:
                reached = by_end.get((p, end), ())
                return any(join(flat, place + 3, {**bound, s: found}) for found in reached)
            return any(
                join(flat, place + 3, {**bound, s: first, o: last})
                for first, last in by_property.get(p, ())
                if s != o or first == last
            )

        for key in self._filed.keys() & keys:
            for number, flat in self._filed[key]:
                if join(flat, 0, {}):
                    yield number


def _rarest(patterns: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return which edge of each subscription is the rarest, those with two constants first."""
    s, p, o = np.moveaxis(patterns.astype(np.int64), 2, 0)
    keys = (np.maximum(s, -1) * PROPERTIES + p) * (NAMES + 1) + np.maximum(o, -1)
    _, kind, count = np.unique(keys, return_inverse=True, return_counts=True)
    often = count[kind.reshape(keys.shape)]
    stars = (s < 0).astype(np.int64) + (o < 0)
    found: NDArray[np.int64] = np.argmin(often + stars * keys.size, axis=1)
    return found


class _Concepts:
    def __init__(self, workload: ConceptWorkload) -> None:
        low, high = workload.rows.low[-RANGES:], workload.rows.high[-RANGES:]
        numbers = np.arange(len(workload.classes))
        columns = [numbers, *workload.classes.T, low[0], high[0], low[1], high[1]]
        rows = np.stack(columns, axis=1).tolist()
        self._filed: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for strings, row in zip(workload.strings.tolist(), rows, strict=True):
            self._filed.setdefault(tuple(strings), []).append(tuple(row))

    def event(self, workload: ConceptWorkload, number: int, serial: int | None) -> Any:  # noqa: ARG002
        values = workload.rows.values[number].tolist()
        above = [set(way_up(class_)) for class_ in workload.event_classes(number)]
        return tuple(values[TREES:-RANGES]), above, values[-RANGES:]

    def match(self, event: Any) -> Iterator[int]:
        strings, (first, second, third), (one, other) = event
        for number, a, b, c, low, high, least, most in self._filed.get(strings, ()):
            if low <= one <= high and least <= other <= most:  # noqa: SIM102 - as one reads it
                if a in first and b in second and c in third:
                    yield number


class _Keywords:
    def __init__(self, workload: KeywordWorkload) -> None:
        from ahocorasick_rs import AhoCorasick, MatchKind

        often = Counter(word for words in workload.subscriptions for word in words)
        self._words = list(often)
        self._automaton = AhoCorasick(self._words, matchkind=MatchKind.Standard)
        self._filed: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        for number, words in enumerate(workload.subscriptions):
            rarest = min(words, key=often.__getitem__)
            others = tuple(word for word in words if word != rarest)
            self._filed.setdefault(rarest, []).append((number, others))

    def event(self, workload: KeywordWorkload, number: int, serial: int | None) -> list[list[str]]:
        return [titles(item) for item in workload.publications(number, serial)]

    def match(self, event: list[list[str]]) -> Iterator[int]:
        for several in event:
            found = set()
            for title in several:
                places = self._automaton.find_matches_as_indexes(title, overlapping=True)
                words = {self._words[place] for place, _, _ in places}
                for word in words:
                    for number, others in self._filed.get(word, ()):
                        if words.issuperset(others):
                            found.add(number)
            yield from found

"""Alternatives to the engine: a dictionary, a scan, DuckDB.

The dictionary is an afternoon's work in Python. Its cost: the look-ups of an event, and the
subscriptions whose rarest part it has. The scan is compiled; its cost is linear in the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.adapters import TABULAR, Adapter
from graphmatch.bench.workloads import TabularWorkload, Workload
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.bench.workloads.keywords import KeywordWorkload

Ids: TypeAlias = NDArray[np.int32]
Key: TypeAlias = tuple[int | None, int, int | None]

SAMPLED_EVENTS, SAMPLED_ROWS = 20, 5000
BLOCK = 4096
"""The number of rows that the scan tests per column at a time: they fit into a cache."""


class _Dictionary(Adapter):
    """A Python dictionary of subscriptions with a check: `_Graphs` or `_Keywords`."""

    topics = False
    forms = MappingProxyType({"graph": ("integers",), "keywords": ("titles",)})

    def build(self, given: GraphWorkload | KeywordWorkload) -> None:
        self._index: Any = _Graphs(given) if isinstance(given, GraphWorkload) else _Keywords(given)

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> Any:  # noqa: ARG002
        return self._index.event(workload, number, serial)

    def match(self, event: Any, form: str) -> list[list[int]]:  # noqa: ARG002 - only one form
        return [list(self._index.match(event))]


class _Graphs:
    """The dictionary for graphs: a subscription is under its rarest edge, ``None`` for variables.

    Candidates are joined by recursion over dictionaries of the publication's edges. Its advantage
    is that all terms are already integers. It yields ids only, no solutions.
    """

    def __init__(self, workload: GraphWorkload) -> None:
        often = Counter(key for row in workload.rows() for key in map(_key, row))
        numbers = list(range(int(workload.patterns.max(initial=0)) + 1))
        numbers += range(int(workload.patterns.min(initial=0)), 0)  # each number is one object
        self._index: dict[Key, list[tuple[int, tuple[int, ...]]]] = {}
        for number, row in enumerate(workload.rows()):
            row.sort(key=lambda edge: _key(edge).count(None))
            rarest = min(map(_key, row), key=lambda key: (key.count(None), often[key]))
            joined = tuple([numbers[part] for edge in row for part in edge])
            self._index.setdefault(rarest, []).append((number, joined))

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

        for key in self._index.keys() & keys:
            for number, flat in self._index[key]:
                if join(flat, 0, {}):
                    yield number


def _key(edge: list[int]) -> Key:
    s, p, o = edge
    return s if s >= 0 else None, p, o if o >= 0 else None


class _Keywords:
    """The dictionary for titles: a subscription is under its rarest word.

    One pass over a title finds all words (Aho-Corasick).
    """

    def __init__(self, workload: KeywordWorkload) -> None:
        from ahocorasick_rs import AhoCorasick, MatchKind

        often = Counter(word for words in workload.subscriptions for word in words)
        self._words = list(often)
        self._automaton = AhoCorasick(self._words, matchkind=MatchKind.Standard)
        self._index: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        for number, words in enumerate(workload.subscriptions):
            rarest = min(words, key=often.__getitem__)
            others = tuple(word for word in words if word != rarest)
            self._index.setdefault(rarest, []).append((number, others))

    def event(self, workload: KeywordWorkload, number: int, serial: int | None) -> list[list[str]]:
        return [workload.titles(item) for item in workload.publications(number, serial)]

    def match(self, event: list[list[str]]) -> Iterator[int]:
        for several in event:
            found = set()
            for title in several:
                places = self._automaton.find_matches_as_indexes(title, overlapping=True)
                words = {self._words[place] for place, _, _ in places}
                for word in words:
                    for number, others in self._index.get(word, ()):
                        if words.issuperset(others):
                            found.add(number)
            yield from found


class _Scan(Adapter):
    """A loop over columns, compiled by numba, on integers.

    In each block, the first column's interval selects rows, the second one selects from these, and
    so on until none are left. The columns that select the fewest in a sample come first.
    """

    forms = dict.fromkeys(TABULAR, ("integers",))

    def build(self, given: TabularWorkload) -> None:
        rows = given.rows
        low, high = rows.low[:, :SAMPLED_ROWS, None], rows.high[:, :SAMPLED_ROWS, None]
        values = rows.values[:SAMPLED_EVENTS].T[:, None, :]
        self._order = np.argsort(((low <= values) & (values <= high)).mean(axis=(1, 2)))
        self._low = np.ascontiguousarray(rows.low[self._order])
        self._high = np.ascontiguousarray(rows.high[self._order])
        self._found = np.empty(rows.low.shape[1], np.int32)
        self._scan = _compiled()

    def event(self, workload: Any, number: int, serial: int | None, form: str) -> Any:  # noqa: ARG002
        return workload.rows.values[number][self._order]

    def match(self, event: Ids, form: str) -> list[Ids]:  # noqa: ARG002 - only one form
        count = self._scan(self._low, self._high, event, self._found)
        return [self._found[:count].copy()]

    def nbytes(self) -> int:
        return self._low.nbytes + self._high.nbytes + self._found.nbytes


def scan(low: Ids, high: Ids, values: Ids, found: Ids) -> int:
    """Write to `found` the numbers of rows whose intervals all contain the values.

    Return the count. `low` and `high` have shape ``(columns, rows)``, `found` has room for all
    rows. This is compiled; as plain Python it does the same.
    """
    columns, rows = low.shape
    count = 0
    left = np.empty(BLOCK, np.int32)
    for start in range(0, rows, BLOCK):
        end = min(start + BLOCK, rows)
        value, lows, highs = values[0], low[0], high[0]
        alive = 0
        for row in range(start, end):
            left[alive] = row
            alive += (lows[row] <= value) & (value <= highs[row])
        for column in range(1, columns):
            if alive == 0:
                break
            value, lows, highs = values[column], low[column], high[column]
            kept = 0
            for place in range(alive):
                row = left[place]
                left[kept] = row
                kept += (lows[row] <= value) & (value <= highs[row])
            alive = kept
        for place in range(alive):
            found[count] = left[place]
            count += 1
    return count


@cache
def _compiled() -> Callable[..., int]:
    import numba

    compile: Any = numba.njit
    compiled: Callable[..., int] = compile(scan)
    return compiled


class _DuckDB(Adapter):
    """DuckDB on one thread, with one prepared statement.

    It is ``SELECT id … WHERE low0 <= $1 AND high0 >= $1 AND …``.
    """

    forms = dict.fromkeys(TABULAR, ("statement",))

    def build(self, given: TabularWorkload) -> None:
        import duckdb

        rows, tests = given.rows, []
        columns = {"id": np.arange(rows.low.shape[1], dtype=np.int32)}
        for place, (low, high) in enumerate(zip(rows.low, rows.high, strict=True)):
            columns |= {f"low{place}": low, f"high{place}": high}
            tests.append(f"low{place} <= ${place + 1} AND high{place} >= ${place + 1}")
        self._connection: Any = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._connection.register("given", columns)
        self._connection.execute("CREATE TABLE subscriptions AS SELECT * FROM given")
        self._connection.unregister("given")
        statement = f"SELECT id FROM subscriptions WHERE {' AND '.join(tests)}"  # noqa: S608 - our own text
        self._connection.execute(f"PREPARE matching AS {statement}")

    def event(self, workload: TabularWorkload, number: int, serial: int | None, form: str) -> str:  # noqa: ARG002
        return f"EXECUTE matching({', '.join(map(str, workload.rows.values[number].tolist()))})"

    def match(self, event: str, form: str) -> list[Any]:  # noqa: ARG002 - only one form
        return [self._connection.execute(event).fetchnumpy()["id"]]

    def close(self) -> None:
        self._connection.close()


BASELINES: Mapping[str, type[Adapter]] = {
    "dictionary": _Dictionary,
    "scan": _Scan,
    "duckdb": _DuckDB,
}
"""The classes by name."""

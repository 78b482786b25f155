"""Columns of intervals: a compiled scan, and DuckDB.

The scan looks at rows in blocks that fit into a processor's cache. Of each block the rows that the
first column's interval lets through are kept, of these those of the second one, and so on until
none are left. The columns that let the fewest through, in a sample, come first. Cost: linear in
the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.attributes import AttributeWorkload
from graphmatch.bench.workloads.concepts import ConceptWorkload
from graphmatch.bench.workloads.workload import Rows, Workload

Ids: TypeAlias = NDArray[np.int32]

SAMPLED_EVENTS, SAMPLED_ROWS = 20, 5000
BLOCK = 4096
"""How many rows of a column are looked at before the next column."""

_WORKLOADS = ("attributes", "concepts", "ranges", "trees")


def _rows(workload: Workload) -> Rows:
    assert isinstance(workload, AttributeWorkload | ConceptWorkload)
    return workload.rows


class ScanPeer(Peer):
    """A loop over columns, compiled by numba; events are given as integers."""

    name: ClassVar = "scan"
    forms: ClassVar = dict.fromkeys(_WORKLOADS, ("integers",))
    requires: ClassVar = "numba"

    def given(self, workload: Workload) -> Rows:
        """Return the columns."""
        return _rows(workload)

    def build(self, given: Rows) -> None:
        """Copy the columns, the most selective first."""
        low, high = given.low[:, :SAMPLED_ROWS, None], given.high[:, :SAMPLED_ROWS, None]
        values = given.values[:SAMPLED_EVENTS].T[:, None, :]
        self._order = np.argsort(((low <= values) & (values <= high)).mean(axis=(1, 2)))
        self._low = np.ascontiguousarray(given.low[self._order])
        self._high = np.ascontiguousarray(given.high[self._order])
        self._found = np.empty(given.low.shape[1], np.int32)
        self._scan = _compiled()

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> Ids:  # noqa: ARG002
        """Return its numbers, in the order of the columns."""
        values: Ids = _rows(workload).values[number][self._order]
        return values

    def match(self, event: Ids, form: str) -> list[Ids]:  # noqa: ARG002 - there is one
        """Scan."""
        count = self._scan(self._low, self._high, event, self._found)
        return [self._found[:count].copy()]

    def reported_bytes(self) -> int:
        """Return the size of the arrays."""
        return self._low.nbytes + self._high.nbytes + self._found.nbytes


def scan(low: Ids, high: Ids, values: Ids, found: Ids) -> int:
    """Write the rows all of whose intervals have the values in them; return how many.

    `low` and `high` have shape ``(columns, rows)``, `found` has room for all rows. This is
    compiled; as plain Python it does the same.
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


class DuckDBPeer(Peer):
    """``SELECT id … WHERE low0 <= $1 AND high0 >= $1 AND …``, prepared, on one thread."""

    name: ClassVar = "duckdb"
    forms: ClassVar = dict.fromkeys(_WORKLOADS, ("statement",))
    requires: ClassVar = "duckdb"

    def given(self, workload: Workload) -> Rows:
        """Return the columns."""
        return _rows(workload)

    def build(self, given: Rows) -> None:
        """Make the table, and prepare the statement."""
        import duckdb

        columns = {"id": np.arange(given.low.shape[1], dtype=np.int32)}
        for place, (low, high) in enumerate(zip(given.low, given.high, strict=True)):
            columns |= {f"low{place}": low, f"high{place}": high}
        condition = " AND ".join(
            f"low{place} <= ${place + 1} AND high{place} >= ${place + 1}"
            for place in range(len(given.low))
        )
        self._connection: Any = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._connection.register("given", columns)
        self._connection.execute("CREATE TABLE subscriptions AS SELECT * FROM given")
        self._connection.unregister("given")
        statement = f"SELECT id FROM subscriptions WHERE {condition}"  # noqa: S608 - our own text
        self._connection.execute(f"PREPARE matching AS {statement}")

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> str:  # noqa: ARG002
        """Return the call of the statement."""
        return f"EXECUTE matching({', '.join(map(str, _rows(workload).values[number].tolist()))})"

    def match(self, event: str, form: str) -> list[Any]:  # noqa: ARG002 - there is one
        """Execute it."""
        return [self._connection.execute(event).fetchnumpy()["id"]]

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

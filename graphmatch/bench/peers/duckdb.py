"""Columns in a table of DuckDB, one prepared statement an event, one thread."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.attributes import AttributeWorkload
from graphmatch.bench.workloads.concepts import ConceptWorkload
from graphmatch.bench.workloads.workload import Rows, Workload


class DuckDBPeer(Peer):
    """``SELECT id FROM subscriptions WHERE low0 <= $1 AND high0 >= $1 AND …``."""

    name: ClassVar = "duckdb"
    workloads: ClassVar = frozenset({"attributes", "concepts"})
    requires: ClassVar = "duckdb"

    def given(self, workload: Workload) -> Rows:
        """Return the columns."""
        assert isinstance(workload, AttributeWorkload | ConceptWorkload)
        return workload.rows

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
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._connection.register("given", columns)
        self._connection.execute("CREATE TABLE subscriptions AS SELECT * FROM given")
        self._connection.unregister("given")
        statement = f"SELECT id FROM subscriptions WHERE {condition}"  # noqa: S608 - no text of others
        self._connection.execute(f"PREPARE matching AS {statement}")

    def event(self, workload: Workload, number: int) -> str:
        """Return the call of the statement."""
        assert isinstance(workload, AttributeWorkload | ConceptWorkload)
        return f"EXECUTE matching({', '.join(map(str, workload.rows.values[number].tolist()))})"

    def match(self, event: str) -> NDArray[np.int32]:
        """Execute it."""
        found: NDArray[np.int32] = self._connection.execute(event).fetchnumpy()["id"]
        return found

    def numbers(self, found: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return them as they are."""
        return np.asarray(found).astype(np.int64)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

"""The engine: SPARQL texts, or rows of constraints from JSON Lines and from Arrow.

Reading is in the time: a chunk of JSON Lines is a file, one of Arrow is a table in memory. A
column of the table is an attribute, its values are structs with a field for each operator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.graphmatch import seen
from graphmatch.bench.takers.taker import Taker
from graphmatch.bench.workloads.attributes import AttributeWorkload
from graphmatch.bench.workloads.workload import Workload
from graphmatch.engine import Engine
from semantic.attributes.events import event
from semantic.attributes.files import read_attribute_subscriptions
from semantic.attributes.subscription import AttributeParser
from semantic.errors import GraphMatchError
from semantic.sparql.query import Query
from semantic.subscription import Subscription


class GraphMatchTaker(Taker):
    """`Engine.subscribe`, `subscribe_many`, `subscribe_lines`, `subscribe_table`, `unsubscribe`."""

    name: ClassVar = "graphmatch"
    sources: ClassVar = frozenset({"graph", "keywords", "lines", "arrow"})
    ways: ClassVar = ("one", "many")
    drops: ClassVar = True

    def __init__(self, source: str, workload: Workload) -> None:
        super().__init__(source, workload)
        self.engine = Engine(workload.ontology())
        self._attributes = AttributeParser(self.engine.parser)
        self._folder = TemporaryDirectory()

    def chunks(self, bounds: Sequence[range]) -> list[Any]:
        """Return texts with ids, files of JSON Lines, or tables of Arrow."""
        if self.source in ("graph", "keywords"):
            texts = self.workload.texts()
            return [[(str(n), texts[n]) for n in part] for part in bounds]
        assert isinstance(self.workload, AttributeWorkload)
        written = self._lines if self.source == "lines" else self._table
        return [
            written(part, self.workload.constraints(slice(part.start, part.stop)))
            for part in bounds
        ]

    def _lines(self, part: range, rows: Sequence[dict[str, object]]) -> Path:
        """Write a file of JSON Lines."""
        path = Path(self._folder.name) / f"{part.start}.jsonl"
        lines = (
            json.dumps({"id": str(n), "where": where}) + "\n"
            for n, where in zip(part, rows, strict=True)
        )
        with path.open("w", encoding="utf-8") as file:
            file.writelines(lines)
        return path

    def _table(self, part: range, rows: Sequence[dict[str, object]]) -> Any:
        """Make a table of Arrow."""
        columns = dict.fromkeys(name for where in rows for name in where)
        whole = [{"id": str(n), **columns, **where} for n, where in zip(part, rows, strict=True)]
        return import_module("pyarrow").Table.from_pylist(whole)

    def take(self, chunk: Any, way: str) -> None:
        """Read the chunk, and subscribe what is in it."""
        if way == "many":
            for error in self._take_many(chunk):
                raise error
            return
        match self.source:
            case "lines":
                for read in read_attribute_subscriptions(chunk, parser=self._attributes):
                    self.engine.subscribe(read)
            case "arrow":
                for id, query in self._of_table(chunk):
                    self.engine.subscribe(Subscription.of(id, query))
            case _:
                for id, text in chunk:
                    self.engine.subscribe(id, text)

    def _take_many(self, chunk: Any) -> tuple[GraphMatchError, ...]:
        match self.source:
            case "lines":
                return self.engine.subscribe_lines(chunk)
            case "arrow":
                return self.engine.subscribe_table(chunk)
        return self.engine.subscribe_many(chunk)

    def _of_table(self, table: Any) -> Iterator[tuple[str, Query]]:
        for batch in table.to_batches():
            for row in batch.to_pylist():
                id = row.pop("id")
                where = {
                    name: {op: value for op, value in tests.items() if value is not None}
                    for name, tests in row.items()
                    if tests is not None
                }
                yield id, self._attributes.query(id, where)

    def drop(self, ids: Sequence[str]) -> None:
        """Unsubscribe one after the other."""
        for id in ids:
            self.engine.unsubscribe(id)

    def __len__(self) -> int:
        return len(self.engine)

    def matched(self, number: int) -> NDArray[np.int64]:
        """Match an event."""
        if isinstance(self.workload, AttributeWorkload):
            publication = event(f"urn:e:{number}", self.workload.attributes(number))
        else:
            publication = self.workload.publication(number)
        ids = seen(self.engine.match(publication)).ids
        return np.sort(np.array([int(id) for id in ids], np.int64))

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

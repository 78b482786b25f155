"""Loading and subscribing report their progress."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from graphmatch import Engine
from semantic import Ontology, Progress

ONTOLOGIES = ("news.ttl", "synonyms.csv", "experience.rq", "products.ttl")


def test_each_file_of_an_ontology_is_a_step() -> None:
    files = [Path("ontologies", name) for name in ONTOLOGIES]
    assert all(file.is_file() for file in files)
    seen: list[Progress] = []
    Ontology.load(*files, files[0], on_progress=seen.append)
    assert seen == [Progress("ontology files", done, 4) for done in (1, 2, 3, 4)]


def test_each_batch_of_subscriptions_is_a_step() -> None:
    rows = [(f"s{n}", "ASK { ?s <urn:p> 5 }") for n in range(10_000)]
    known = [Progress("subscriptions", done, 10_000) for done in (8192, 10_000)]
    seen: list[Progress] = []
    assert Engine().subscribe_many(rows, seen.append) == ()
    assert seen == known
    seen.clear()
    assert Engine().subscribe_many(iter(rows), on_progress=seen.append) == ()
    assert seen == [progress._replace(total=None) for progress in known]
    ids, queries = zip(*rows, strict=True)
    for columns in ({"id": ids, "query": queries}, {"id": ids, "brand": ids}):
        seen.clear()
        table = pa.table({name: pa.array(column) for name, column in columns.items()})
        assert Engine().subscribe_table(table, on_progress=seen.append) == ()
        assert seen == known

"""Modules that a command loads, counted because times depend on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FEED = "data/feeds/science.atom"
SLOW = frozenset(
    {
        "aiohttp", "bitarray", "duckdb", "lark", "listparser", "lxml", "matplotlib", "networkx",
        "numba", "owlready2",
        "pandas", "pint", "pyarrow", "pydantic", "pyspark", "rdflib", "ucumvert",
    }
)  # fmt: skip
"""Packages that load slowly, and that filtering feeds seldom needs."""
OTHERS = frozenset(
    {
        "graphmatch.broker.feeds.feed_poller", "graphmatch.command.bench",
        "graphmatch.command.spark", "graphmatch.command.watch", "graphmatch.explain.near_miss",
        "graphmatch.mapping", "graphmatch.snapshot", "rich.progress",
        "semantic.attributes.bulk", "semantic.attributes.events", "semantic.feeds.json_feed",
        "semantic.tables", "sqlite3", "tomllib",
    }
)  # fmt: skip
"""Modules that this command does not need either."""


@pytest.mark.parametrize(
    "ontologies", [(), ("news.ttl", "synonyms.csv", "measures.ttl")], ids=["none", "samples"]
)
def test_that_filtering_a_feed_loads_nothing_that_it_does_not_use(
    ontologies: tuple[str, ...],
) -> None:
    options = [part for name in ontologies for part in ("-o", f"ontologies/{name}")]
    arguments = ["filter", FEED, "-s", "data/subscriptions", *options]
    code = (
        "import atexit, sys; from graphmatch.cli import app; "
        "atexit.register(lambda: print('loaded', *sys.modules)); "
        f"app({arguments!r})"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    *shown, last = ran.stdout.splitlines()
    assert any("feeds-two-authors" in line for line in shown)
    assert last.startswith("loaded ")
    loaded = set(last.split())
    assert not (SLOW | OTHERS) & loaded
    # Only compiled ontologies and tables need NumPy.
    assert ontologies or not {"email", "numpy", "semantic.ontology.imports"} & loaded

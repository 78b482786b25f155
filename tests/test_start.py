"""What a run of the command loads: a counter, for times depend on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FEED = "data/feeds/science.atom"
SLOW = frozenset(
    {
        "bitarray", "duckdb", "igraph", "lark", "lxml", "matplotlib", "networkx", "numba",
        "owlready2", "pandas", "pint", "pyarrow", "pydantic", "pyspark", "rdflib", "ucumvert",
    }
)  # fmt: skip
"""Packages that take long to load, each for something that a filter of feeds seldom does."""


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
        "atexit.register(lambda: print('loaded', *{n.partition('.')[0] for n in sys.modules})); "
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
    assert not SLOW & loaded
    assert ontologies or "numpy" not in loaded  # it is for compiled ontologies, and for tables

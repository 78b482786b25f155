"""The folder of real feeds, ontologies and test suites, which were written by others."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(
    os.environ.get("GRAPHMATCH_TEST_DATA", Path(__file__).parents[2] / "shared" / "data")
).resolve()
"""Tests that need it have the mark ``data``; without the folder they are skipped."""

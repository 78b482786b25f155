"""The documentation site builds without warnings, and notebooks print the output shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.long


def test_that_the_site_builds_without_warnings(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'id="graphmatch.engine.Engine.subscribe"' in (tmp_path / "reference/api.html").read_text(
        encoding="utf-8"
    )
    samples = {path.suffixes[0] for path in (tmp_path / "sources").rglob("*.txt")}
    assert ".rq" in samples
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text, f"{page.name} loads something from elsewhere"


def shown(cell: Any) -> str:
    """Return the output of a notebook cell."""
    outputs = (
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in cell.get("outputs", [])
        if output.get("name") != "stderr"
    )
    return "\n".join(outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_that_a_notebook_prints_what_it_shows(path: Path) -> None:
    import nbformat

    written = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    run = f"""
import sys, nbformat
from nbclient import NotebookClient
book = nbformat.read({str(path)!r}, as_version=4)
NotebookClient(book, timeout=300, kernel_name="python3").execute(cwd={str(path.parent)!r})
sys.stdout.write(nbformat.writes(book))
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", run], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    again = nbformat.reads(done.stdout, as_version=4)  # type: ignore[no-untyped-call]
    for before, after in zip(written.cells, again.cells, strict=True):
        assert shown(after) == shown(before), before.source

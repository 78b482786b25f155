"""The command ``graphmatch spark filter``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from graphmatch.cli import app
from tests.graphmatch.spark.test_batch import FILES, ONTOLOGY, ROOT

SUBSCRIPTIONS = ROOT / "data" / "subscriptions"


def refusal(*arguments: object) -> str:
    """Return what is said where nothing is done."""
    result = CliRunner().invoke(app, ["spark", *map(str, arguments)])
    assert result.exit_code == 2
    return result.stderr


def process(
    *arguments: object, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "graphmatch.cli", "spark", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done


def test_help_has_an_example() -> None:
    group: Any = typer.main.get_command(app)
    for name in group.get_command(None, "spark").commands:
        text = CliRunner().invoke(app, ["spark", name, "--help"], env={"COLUMNS": "200"}).stdout
        assert f"Example: graphmatch spark {name} " in " ".join(text.split())


@pytest.mark.long
def test_samples(tmp_path: Path) -> None:
    bad = tmp_path / "bad.nq"
    bad.write_text("no line\n<urn:a> <urn:b> <urn:c> <urn:g> .\n")
    out = tmp_path / "out"
    publications = (*FILES, bad)
    ontology = [part for name in ONTOLOGY for part in ("-o", name)]
    options = ("-s", SUBSCRIPTIONS, "--output", out, "--json", "--master", "local[1]")
    done = process("filter", *publications, *ontology, *options, status=1)
    counts = json.loads((out / "counts.json").read_text())
    assert json.loads(done.stdout).items() >= counts.items()
    assert counts["publications"] == 54
    assert counts["refused"] == 1
    matches = pq.read_table(out / "matches")
    assert matches.column_names == ["publication", "subscription", "solution", "graph"]
    pairs = set(zip(*(matches.column(n).to_pylist() for n in (0, 1)), strict=True))
    assert len(pairs) == counts["matches"]
    (refused,) = pq.read_table(out / "refused").to_pylist()
    assert (refused["source"], refused["line"]) == (str(bad), 1)
    assert f"refused  {bad}:1:" in done.stderr
    assert re.search(
        r"54 publications, 64 subscriptions: \d+ matches, 1 refused, .* s, in", done.stderr
    )
    again = refusal("filter", *publications, "-s", SUBSCRIPTIONS, "--output", out)
    assert again.startswith(f"error    {out}: is there already. Name a folder")


@pytest.mark.long
def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    out = tmp_path / "out"
    options = ("-s", SUBSCRIPTIONS, "--output", out, "--master", "local[1]")
    done = process("filter", tmp_path / "none", *options)
    assert f"warning  {tmp_path / 'none'}: the folder has no files." in done.stderr
    assert "0 publications" in done.stderr
    assert pq.read_table(out / "matches").num_rows == 0


@pytest.mark.long
def test_a_worker_without_the_package(tmp_path: Path) -> None:
    """Workers whose Python hides the package, as one does in which it is not installed."""
    hiding = tmp_path / "sitecustomize.py"
    hiding.write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'graphmatch':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    out = tmp_path / "out"
    options = ("-s", SUBSCRIPTIONS, "--output", out, "--master", "local[1]")
    done = process("filter", FILES[1], *options, status=2, PYSPARK_PYTHON=str(python))
    assert (
        "error    worker: a worker's Python cannot import graphmatch. Install graphmatch[spark] in "
        "the workers' Python, or name a Python that has it in PYSPARK_PYTHON." in done.stderr
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--columns", "graph=g"], "--columns: 'graph=g' does not say what a column is called"),
        (["--conf", "x"], "--conf: 'x' is no setting. Write KEY=VALUE."),
        (["--format", "zip"], "'zip'"),
        (["--base", "x"], "the base 'x' is not an absolute IRI"),
    ],
)
def test_options_that_mean_nothing(options: list[str], said: str, tmp_path: Path) -> None:
    common = (FILES[0], "-s", SUBSCRIPTIONS, "--output", tmp_path / "out")
    assert said in refusal("filter", *common, *options)
    assert not (tmp_path / "out").exists()


def test_without_subscriptions(tmp_path: Path) -> None:
    said = refusal("filter", FILES[0], "-s", tmp_path, "--output", tmp_path / "out")
    assert "there is no subscription to match" in said


def test_what_is_not_ours_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    common = (FILES[0], "-s", SUBSCRIPTIONS, "--output", tmp_path, "--overwrite")
    assert "is no output of this command" in refusal("filter", *common)

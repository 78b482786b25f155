"""With GRAPHMATCH_NO_SKIPS, a skipped test fails and says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

def test_skipped() -> None:
    pytest.skip("PostgreSQL is missing: install it")

def test_of_graphframes() -> None:
    pytest.skip("Set GRAPHFRAMES_JAR")

@pytest.mark.data
def test_of_data() -> None: ...

@pytest.mark.xfail
def test_that_fails_as_expected() -> None:
    assert False
"""
MODULE = "import pytest\npytest.importorskip('no_such_module', reason='install the module')\n"


@pytest.mark.parametrize("fails", [False, True])
def test_skips_show_their_reason_and_fail_if_the_variable_is_set(
    tmp_path: Path, fails: bool
) -> None:
    (tmp_path / "test_a.py").write_text(TESTS)
    (tmp_path / "test_b.py").write_text(MODULE)
    environment = {**os.environ, "GRAPHMATCH_TEST_DATA": str(tmp_path / "none")}
    environment |= {"GRAPHMATCH_NO_SKIPS": "1" if fails else ""}
    environment |= {"GRAPHMATCH_MAY_BE_MISSING": "GRAPHFRAMES_JAR,else"}
    command = [sys.executable, "-m", "pytest", "-q", "-rfEs", "-c", str(ROOT / "pyproject.toml")]
    command += ["-p", "tests.conftest", "--continue-on-collection-errors", str(tmp_path)]
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    counts = "1 failed, 1 skipped, 1 xfailed, 2 errors" if fails else "4 skipped, 1 xfailed"
    assert counts in ended.stdout, ended.stdout + ended.stderr
    for reason in ("PostgreSQL is missing: install it", "install the module", "none, or set"):
        assert reason in ended.stdout

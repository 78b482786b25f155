"""Configuration of the tests: generated cases, real data, caches and processes.

- Hypothesis tries few cases; ``--hypothesis-profile hunt`` tries many, and does not shrink.
- Tests marked ``data`` are skipped if the folder of real data is missing.
- If GRAPHMATCH_NO_SKIPS is set, a skipped test fails, and says what to install. Words in
  GRAPHMATCH_MAY_BE_MISSING, separated by commas, are exceptions (see `NoSkips`).
- With ``-n``, each process takes whole files, and one process takes all Spark tests.
- Compiled ontologies go to a temporary folder of the run. The compiled loops of published
  algorithms are deleted if a source file is newer, because Numba's cache checks only the file
  with the loop.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadScopeScheduling

from tests.real_data import DATA

ROOT = Path(__file__).parents[1]
SPARK = "tests/graphmatch/spark/"
SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much)

settings.register_profile("default", deadline=None, max_examples=30, suppress_health_check=SLOW)
settings.register_profile(
    "hunt",
    deadline=None,
    max_examples=500,
    phases=(Phase.reuse, Phase.generate),
    suppress_health_check=SLOW,
)
settings.register_profile("few", deadline=None, max_examples=8, suppress_health_check=SLOW)
settings.load_profile("default")


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("GRAPHMATCH_NO_SKIPS"):
        config.pluginmanager.register(NoSkips())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not DATA.is_dir():
        reason = f"the real data is missing: put it into {DATA}, or set GRAPHMATCH_TEST_DATA"
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(pytest.mark.skip(reason=reason), append=False)


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


class NoSkips:
    """Fail skipped tests and modules, unless the reason has a word of GRAPHMATCH_MAY_BE_MISSING."""

    def __init__(self) -> None:
        # Not every package registry has GraphFrames' Java side.
        self.may_be_missing = os.environ.get(
            "GRAPHMATCH_MAY_BE_MISSING", "GRAPHFRAMES_JAR,OWL_TESTS"
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        return self.failed((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        return self.failed((yield))

    def failed(self, report: Report) -> Report:
        if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
            assert isinstance(report.longrepr, tuple)
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if not any(word in reason for word in self.may_be_missing.split(",")):
                report.outcome = "failed"
                report.longrepr = f"{reason} (skipped, but GRAPHMATCH_NO_SKIPS is set)"
        return report


class ByFile(LoadScopeScheduling):
    """Give each process whole files, so that module fixtures are built once."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return SPARK if file.startswith(SPARK) else file  # Share one session and one Java process.


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    return ByFile(config, log)


def _forget_stale_loops(folder: Path) -> None:
    compiled = list(folder.rglob("__pycache__/*.nb[ic]"))
    newest = max(file.stat().st_mtime for file in folder.rglob("*.py"))
    if compiled and min(file.stat().st_mtime for file in compiled) < newest:
        for file in compiled:
            file.unlink(missing_ok=True)


if "PYTEST_XDIST_WORKER" not in os.environ:  # Workers inherit this environment.
    _CACHE = TemporaryDirectory(prefix="graphmatch-tests-")
    atexit.register(_CACHE.cleanup)
    os.environ["LC_ALL"] = "C.UTF-8"  # Otherwise, labels would be in the developer's language.
    os.environ["XDG_CACHE_HOME"] = _CACHE.name  # Here platformdirs looks first.
    _forget_stale_loops(ROOT / "graphmatch" / "published")

"""Configuration of the tests: generated cases, real data, caches and processes.

- Hypothesis tries few cases; ``--hypothesis-profile hunt`` tries many, and does not shrink.
- Tests marked ``data`` are skipped if the folder of real data is not next to the project.
- With ``-n``, each process takes whole files, and one process takes all Spark tests.
- Compiled ontologies go to a temporary folder of the run. The compiled loops of published
  algorithms are deleted if a source file is newer, because Numba's cache checks only the file
  with the loop.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not DATA.is_dir():
        without = [item for item in items if item.get_closest_marker("data")]
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if not item.get_closest_marker("data")]


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

"""Hypothesis profiles: ``pytest --hypothesis-profile hunt`` looks longer and does not shrink.

Compiled ontologies go to a folder of the test run's own. The compiled loops of published algorithms
are forgotten when one of their files has changed: the cache knows only of the file that a loop
itself is in.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, settings

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much)

settings.register_profile("default", deadline=None, max_examples=150, suppress_health_check=SLOW)
settings.register_profile(
    "hunt",
    deadline=None,
    max_examples=3000,
    phases=(Phase.reuse, Phase.generate),
    suppress_health_check=SLOW,
)
settings.register_profile("few", deadline=None, max_examples=8, suppress_health_check=SLOW)
settings.load_profile("default")

_CACHE = TemporaryDirectory(prefix="graphmatch-tests-")
atexit.register(_CACHE.cleanup)
os.environ["XDG_CACHE_HOME"] = _CACHE.name  # where platformdirs looks first on Linux and macOS
os.environ["LC_ALL"] = "C.UTF-8"  # or labels would be shown in the developer's language


def _forget_stale_loops(folder: Path) -> None:
    compiled = list(folder.rglob("__pycache__/*.nb[ic]"))
    newest = max(file.stat().st_mtime for file in folder.rglob("*.py"))
    if compiled and min(file.stat().st_mtime for file in compiled) < newest:
        for file in compiled:
            file.unlink(missing_ok=True)


_forget_stale_loops(Path(__file__).parents[1] / "graphmatch" / "published")

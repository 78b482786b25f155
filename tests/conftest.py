"""Hypothesis profiles: ``pytest --hypothesis-profile hunt`` looks longer and does not shrink.

Compiled ontologies go to a folder of the test run's own.
"""

from __future__ import annotations

import atexit
import os
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
settings.load_profile("default")

_CACHE = TemporaryDirectory(prefix="graphmatch-tests-")
atexit.register(_CACHE.cleanup)
os.environ["XDG_CACHE_HOME"] = _CACHE.name  # where platformdirs looks first on Linux and macOS

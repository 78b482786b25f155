"""Hypothesis profiles: ``pytest --hypothesis-profile hunt`` looks longer and does not shrink."""

from __future__ import annotations

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

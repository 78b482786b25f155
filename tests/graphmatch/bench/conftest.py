"""Exclude the tests' objects from garbage collection before each measurement."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    gc.freeze()
    yield
    gc.unfreeze()

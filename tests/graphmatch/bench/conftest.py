"""What tests have in memory is not gone through before each measurement."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    gc.freeze()
    yield
    gc.unfreeze()

"""What tests of the broker share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.graphmatch.broker.rig import postgresql


@pytest.fixture(scope="session")
def cluster() -> Iterator[Callable[[], str]]:
    if shutil.which("initdb") is None:
        pytest.skip("PostgreSQL is not installed: Debian's package is `postgresql`")
    with postgresql() as database:
        yield database


@pytest.fixture
def database(cluster: Callable[[], str]) -> str:
    """The URL of an empty database of PostgreSQL."""
    return cluster()

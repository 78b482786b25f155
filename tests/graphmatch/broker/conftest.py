"""Fixtures shared by the tests of the broker."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.graphmatch.broker.rig import Cluster, postgresql


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if shutil.which("initdb") is None:
        pytest.skip("PostgreSQL is not installed: Debian's package is `postgresql`")
    with postgresql() as made:
        yield made


@pytest.fixture
def database(cluster: Cluster) -> str:
    """Return the URL of an empty PostgreSQL database."""
    return cluster()

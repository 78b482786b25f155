"""Fixtures shared by the tests of the broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from graphmatch.broker.db.store import Store
from tests.graphmatch.broker.harness import (
    BrokerHarness,
    Cluster,
    FakeClock,
    Receiver,
    harness,
    postgresql,
    receivers,
)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run asynchronous tests and fixtures with asyncio only."""
    return "asyncio"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with postgresql() as made:
        yield made


@pytest.fixture
def database(cluster: Cluster) -> str:
    """Return the URL of an empty PostgreSQL database."""
    return cluster()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def hook() -> AsyncIterator[Receiver]:
    """Yield a receiver of webhooks."""
    async with receivers() as [made]:
        yield made


@pytest.fixture
async def broker(tmp_path: Path, clock: FakeClock) -> AsyncIterator[BrokerHarness]:
    """Yield a broker whose dispatcher runs."""
    async with harness(tmp_path, clock) as made:
        yield made


@pytest.fixture
async def idle(tmp_path: Path, clock: FakeClock) -> AsyncIterator[BrokerHarness]:
    """Yield a broker whose dispatcher does not run."""
    async with harness(tmp_path, clock, running=False) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Yield an empty store of each kind."""
    is_file = request.param == "sqlite"
    made = Store(str(tmp_path / "a.db") if is_file else request.getfixturevalue("database"))
    yield made
    made.close()

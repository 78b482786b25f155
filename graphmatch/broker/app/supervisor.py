"""The supervisor of background tasks: it logs and counts failures, and restarts what failed.

A task works in rounds. If a round fails, the next one begins after a delay that doubles with each
failure in a row, up to `LONGEST_SECONDS`, and `/readyz` names the task until a round succeeds.

A record is one publication, subscription, delivery or feed. If a record fails, the task sets it
aside: the task stores the error instead of the result and goes on with the next record.

An outage of the store is the failure of a round, never of a record: the round begins again after
`OUTAGE_SECONDS`, and no record is set aside.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from graphmatch.broker.db.store import is_outage

FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0
"""Delay after the first failure of a task, and the longest delay, in seconds."""
OUTAGE_SECONDS = 1.0
"""Delay after a failure of the store, in seconds."""
_ERROR_CHARACTERS = 500
R = TypeVar("R")

log = logging.getLogger("graphmatch.broker")


class Attempt:
    """A round of a task, or the work on one record, as a context: it suppresses failures.

    Attributes
    ----------
    error
        The failure, on one line; ``None`` if there was none.
    delay
        Seconds to wait before the next round; 0 after a success.
    """

    def __init__(self, owner: Supervisor, task: str, record: str | None, *, counts: bool) -> None:
        self._owner, self._task, self._record, self._counts = owner, task, record, counts
        self.error: str | None = None
        self.delay = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool:
        if error is None and self._record is None:
            self._owner.succeeded(self._task)
        # A panic of the core is not an `Exception`. Cancellations and interrupts go on.
        is_failure = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        if error is None or not is_failure:
            return False
        outage = is_outage(error)
        if self._record is not None and outage:
            return False
        self.error = _one_line(error)
        if outage:
            log.error("%s", error)
        else:
            what = self._task if self._record is None else f"{self._task}: {self._record}"
            log.error("%s failed: %s", what, self.error, exc_info=error)
        if self._record is None:
            self.delay = self._owner.failed(self._task, self.error, outage=outage)
        elif self._counts:
            self._owner.lost(self._task)
        return True


class Supervisor(Collector):
    """The state of all background tasks of a process.

    Examples
    --------
    >>> supervisor = Supervisor()
    >>> with supervisor.round("matching") as attempt:
    ...     raise ValueError("no luck")
    >>> attempt.delay, supervisor.failing()
    (1.0, ['matching fails: ValueError: no luck'])
    >>> with supervisor.round("matching"):
    ...     pass
    >>> supervisor.failing()
    []
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._failing: dict[str, tuple[int, str]] = {}
        self._failures, self._lost = Counter[str](), Counter[str]()

    def round(self, task: str) -> Attempt:
        """Return the context of one round of a task."""
        return Attempt(self, task, None, counts=True)

    def record(self, task: str, record: str, *, counts: bool = True) -> Attempt:
        """Return the context of the work on one record.

        Parameters
        ----------
        counts
            Whether a failure counts: that of a whole batch does not, as its records are tried
            again one by one.
        """
        return Attempt(self, task, record, counts=counts)

    def each(
        self,
        task: str,
        records: Sequence[R],
        work: Callable[[Sequence[R]], object],
        name: Callable[[R], str],
    ) -> Iterator[tuple[R, str]]:
        """Work on records together, and one by one if that fails; yield those that fail alone.

        Parameters
        ----------
        work
            Must have no effect if it raises, or be safe to repeat.
        """
        with self.record(task, f"{len(records)} records", counts=False) as attempt:
            work(records)
        for one in records if attempt.error is not None else ():
            with self.record(task, name(one)) as attempt:
                work([one])
            if attempt.error is not None:
                yield one, attempt.error

    async def repeat(
        self,
        task: str,
        work: Callable[[], Awaitable[float | None]],
        stop: asyncio.Event,
        woken: asyncio.Event | None = None,
    ) -> None:
        """Run rounds until `stop` is set.

        Parameters
        ----------
        work
            One round. It returns the number of seconds until the next one, or `None` for 0.
        stop, woken
            Either ends the wait for the next round; only `stop` ends the delay after a failure.
        """
        while not stop.is_set():
            if woken is not None:
                woken.clear()
            with self.round(task) as attempt:
                seconds = await work()
            waits = stop if attempt.delay or woken is None else woken
            with suppress(TimeoutError):
                await asyncio.wait_for(waits.wait(), attempt.delay or seconds or 0.0)

    # -- state ------------------------------------------------------------------------------

    def succeeded(self, task: str) -> None:
        """Note that a round of a task succeeded."""
        with self._lock:
            self._failing.pop(task, None)

    def failed(self, task: str, error: str, *, outage: bool) -> float:
        """Note that a round of a task failed; return the delay before the next one."""
        with self._lock:
            count = self._failing.get(task, (0, ""))[0] + 1
            self._failing[task] = count, error
            self._failures[task] += 1
        delay = FIRST_SECONDS * 2.0 ** min(count - 1, 30)
        return OUTAGE_SECONDS if outage else min(delay, LONGEST_SECONDS)

    def lost(self, task: str) -> None:
        """Note that a task set a record aside."""
        with self._lock:
            self._lost[task] += 1

    def failing(self) -> list[str]:
        """Return the tasks whose last round failed, each with its error."""
        with self._lock:
            return [f"{task} fails: {error}" for task, (_, error) in self._failing.items()]

    def set_aside(self) -> list[str]:
        """Return how many records each task has set aside since the start."""
        with self._lock:
            return [f"{task}: {count:,} set aside" for task, count in self._lost.items()]

    def collect(self) -> Iterator[Metric]:
        """Yield the counters for Prometheus."""
        for name, text, counter in (
            ("graphmatch_task_failures", "Failed rounds of background tasks.", self._failures),
            ("graphmatch_records_set_aside", "Records that tasks set aside.", self._lost),
        ):
            family = CounterMetricFamily(name, text, labels=["task"])
            for task, count in list(counter.items()):
                family.add_metric([task], count)
            yield family


def _one_line(error: BaseException) -> str:
    """Return an error as text that every database can store."""
    text = " ".join(f"{type(error).__name__}: {error}".replace("\0", "\ufffd").split())
    return text.encode("utf-8", "replace").decode()[:_ERROR_CHARACTERS]

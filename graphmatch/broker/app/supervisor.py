"""The supervisor of background tasks and threads: it logs and counts failures, and retries.

A task works in rounds. If a round fails, the next one begins after a delay that doubles with each
failure in a row, up to `LONGEST_SECONDS`, and `/readyz` names the task until a round succeeds.

A record is one publication, subscription, delivery or feed. A record that fails `ATTEMPTS` times in
a row is a dead letter: the supervisor passes it to `Supervisor.on_dead_letter`, and the task goes
on with the next record.

An outage of the store is the failure of a round, never of a record: the round begins again after
`OUTAGE_SECONDS`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from time import sleep
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
ATTEMPTS = 3
"""Failures after which a record is a dead letter."""
RETRY_SECONDS = 0.05
"""Delay before a record is tried again within a round, in seconds."""
_ERROR_CHARACTERS = 500
_RECORDS = 10_000
"""Maximum number of failing records that are counted."""
R = TypeVar("R")

log = logging.getLogger("graphmatch.broker")


class Attempt:
    """A round of a task, or the work on one record, as a context: it suppresses failures.

    Attributes
    ----------
    error
        The failure, on one line; ``None`` if there was none.
    is_dead
        Whether the record is a dead letter after this failure.
    delay
        Seconds to wait before the next round; 0 after a success.
    """

    def __init__(self, owner: Supervisor, task: str, record: str | None, attempts: int) -> None:
        self._owner, self._task, self._record, self._attempts = owner, task, record, attempts
        self.error: str | None = None
        self.is_dead = False
        self.delay = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool:
        if error is None:
            self._owner.succeeded(self._task, self._record)
            return False
        # A panic of the core is not an `Exception`. Cancellations and interrupts continue.
        if not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            return False
        outage = is_outage(error)
        if self._record is not None and outage:
            return False
        self.error = _one_line(error)
        if outage:
            log.error("%s", error)
        else:
            name = self._task if self._record is None else f"{self._task}: {self._record}"
            log.error("%s failed: %s", name, self.error, exc_info=error)
        if self._record is None:
            self.delay = self._owner.failed(self._task, self.error, outage=outage)
        elif self._attempts:
            self.is_dead = self._owner.record_failed(
                self._task, self._record, self.error, self._attempts
            )
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
        self._lock = threading.Lock()
        self._failing: dict[str, tuple[int, str]] = {}
        self._records: dict[tuple[str, str], int] = {}
        self._failures, self._dead = Counter[str](), Counter[str]()
        self.on_dead_letter: Callable[[str, str, str], None] = lambda *_: None
        """Called with the task, the record and the error of a dead letter; it must not wait."""

    def round(self, task: str) -> Attempt:
        """Return the context of one round of a task."""
        return Attempt(self, task, None, 0)

    def record(self, task: str, record: str, *, attempts: int = ATTEMPTS) -> Attempt:
        """Return the context of one attempt at a record.

        Parameters
        ----------
        attempts
            Failures in a row after which the record is a dead letter: 1 if the caller does not try
            again, 0 for a batch whose records are tried again one by one.
        """
        return Attempt(self, task, record, attempts)

    def try_record(self, task: str, record: str, work: Callable[[], object]) -> str | None:
        """Work on a record, up to `ATTEMPTS` times; return the error of a dead letter.

        Parameters
        ----------
        work
            Must have no effect if it raises, or be safe to repeat.
        """
        while True:
            with self.record(task, record) as attempt:
                work()
            if attempt.error is None or attempt.is_dead:
                return attempt.error
            sleep(RETRY_SECONDS)

    def each(
        self,
        task: str,
        records: Sequence[R],
        work: Callable[[Sequence[R]], object],
        name: Callable[[R], str],
    ) -> Iterator[tuple[R, str]]:
        """Work on records together, and one by one if that fails; yield dead letters and errors.

        `work` is that of `try_record`.
        """
        with self.record(task, f"{len(records)} records", attempts=0) as attempt:
            work(records)
        for record in records if attempt.error is not None else ():
            error = self.try_record(task, name(record), partial(work, [record]))
            if error is not None:
                yield record, error

    def run(
        self,
        task: str,
        work: Callable[[], float],
        stop: threading.Event,
        woken: threading.Event,
    ) -> None:
        """Run rounds in this thread until `stop` is set; `repeat` describes the parameters."""
        while not stop.is_set():
            woken.clear()
            with self.round(task) as attempt:
                seconds = work()
            (stop if attempt.delay else woken).wait(attempt.delay or seconds)

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
            events = [stop] if attempt.delay or woken is None else [stop, woken]
            await _any_of(events, attempt.delay or seconds or 0.0)

    # -- state ------------------------------------------------------------------------------

    def succeeded(self, task: str, record: str | None = None) -> None:
        """Note that a round of a task, or an attempt at a record, succeeded."""
        if not self._failing and not self._records:
            return  # Most of the time; it saves the lock.
        with self._lock:
            if record is None:
                self._failing.pop(task, None)
            else:
                self._records.pop((task, record), None)

    def failed(self, task: str, error: str, *, outage: bool) -> float:
        """Note that a round of a task failed; return the delay before the next one."""
        with self._lock:
            count = self._failing.get(task, (0, ""))[0] + 1
            self._failing[task] = count, error
            self._failures[task] += 1
        delay = FIRST_SECONDS * 2.0 ** min(count - 1, 30)
        return OUTAGE_SECONDS if outage else min(delay, LONGEST_SECONDS)

    def record_failed(self, task: str, record: str, error: str, attempts: int) -> bool:
        """Note that an attempt at a record failed; return whether the record is a dead letter."""
        with self._lock:
            count = self._records.pop((task, record), 0) + 1
            if count < attempts:
                self._records[task, record] = count
                if len(self._records) > _RECORDS:
                    del self._records[next(iter(self._records))]
                return False
            self._dead[task] += 1
        self.on_dead_letter(task, record, error)
        return True

    def failing(self) -> list[str]:
        """Return the tasks whose last round failed, each with its error."""
        with self._lock:
            return [f"{task} fails: {error}" for task, (_, error) in self._failing.items()]

    def set_aside(self) -> list[str]:
        """Return the number of dead letters of each task since the start, as text."""
        with self._lock:
            return [f"{task}: {count:,} set aside" for task, count in self._dead.items()]

    def collect(self) -> Iterator[Metric]:
        """Yield the counters for Prometheus."""
        for name, text, counter in (
            ("graphmatch_task_failures", "Failed rounds of background tasks.", self._failures),
            ("graphmatch_records_set_aside", "Dead letters of background tasks.", self._dead),
        ):
            family = CounterMetricFamily(name, text, labels=["task"])
            for task, count in list(counter.items()):
                family.add_metric([task], count)
            yield family


async def _any_of(events: Sequence[asyncio.Event], seconds: float) -> None:
    """Wait until one of some events is set, at most some seconds."""
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _one_line(error: BaseException) -> str:
    """Return an error as text that every database can store."""
    text = " ".join(f"{type(error).__name__}: {error}".replace("\0", "\ufffd").split())
    return text.encode("utf-8", "replace").decode()[:_ERROR_CHARACTERS]

"""Runs calls on threads or in an event loop, each with a time limit.

A plain function runs on a thread of its operator. If a call hangs, the thread is abandoned and
counted until the call returns. An operator with `ABANDONED` such threads is suspended. Passing a
call to a thread costs about 20 µs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock, Thread, current_thread, main_thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

from graphmatch.operators.operator import Operator, term_of
from semantic.terms import Term

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

ABANDONED = 4
"""Number of calls that did not return, at which an operator is suspended."""
_TOGETHER = 16
"""Default number of concurrent calls of an `async` operator."""
OVER = "the publication's time for operator calls is used up (`operator_seconds`)"
"""The reason of calls for which there was no time."""

Arguments: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of a call.

    Parameters
    ----------
    result
        The result; ``None`` if the call failed.
    seconds
        The time that it took.
    why
        The reason if it failed.
    """

    result: Term | None
    seconds: float
    why: str = ""


Answer: TypeAlias = tuple[Any, str, float]
"""The result of a function, the reason if it failed, and the seconds that it took."""
_Job: TypeAlias = tuple[Callable[..., Any], Sequence[Arguments], "SimpleQueue[Answer]"]
"""A function, the arguments of its calls, and the queue of their answers."""


def _call(function: Callable[..., Any], arguments: Arguments) -> Answer:
    begin, process = perf_counter(), os.getpid()
    result, why = None, ""
    try:
        result = function(*arguments)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
            raise  # The user pressed Ctrl-C.
        why = _said(error)
    if os.getpid() != process:
        os._exit(0)  # The function forked, and this is the child.
    return result, why, perf_counter() - begin


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    """Make the calls of jobs in sequence, until a job is ``None``."""
    while (job := jobs.get()) is not None:
        function, several, answers = job
        for arguments in several:
            answers.put(_call(function, arguments))


_Worker: TypeAlias = tuple[Thread, "SimpleQueue[_Job | None]"]
"""A thread and its queue of jobs."""


def _worker() -> _Worker:
    jobs: SimpleQueue[_Job | None] = SimpleQueue()
    thread = Thread(target=_serve, args=(jobs,), daemon=True)
    thread.start()
    return thread, jobs


def _turn(loop: AbstractEventLoop) -> None:
    """Run an event loop until it is stopped, cancel its tasks, and close it."""
    from asyncio import all_tasks, current_task, gather

    async def end() -> None:
        left = all_tasks() - {current_task()}
        for task in left:
            task.cancel()
        await gather(*left, return_exceptions=True)

    loop.run_forever()
    loop.run_until_complete(end())
    loop.close()


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]


@dataclass(slots=True)
class Runner:
    """Makes the calls of one operator on threads or in an event loop.

    The operator's options decide where, and limit the time. Several threads may use a runner.
    """

    operator: Operator
    _idle: list[_Worker] = field(default_factory=list)
    _left: list[Thread] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _loop: tuple[Thread, AbstractEventLoop] | None = None

    @property
    def together(self) -> int:
        """Maximum number of calls to pass to `run` together."""
        if self.operator.batch is not None:
            return self.operator.batch
        return _TOGETHER if self.operator.is_async else 1

    @property
    def abandoned(self) -> int:
        """Number of threads whose call timed out and has not returned."""
        if self._left:
            with self._lock:
                self._left = [thread for thread in self._left if thread.is_alive()]
        return len(self._left)

    def run(self, several: Sequence[Arguments], seconds: float) -> list[CallOutcome]:
        """Call the operator with each of several arguments, and return the outcomes in order.

        `seconds` limits all calls together, except those that run on this thread (`timeout` is
        ``None``). Calls that are late, raise an exception, or belong to a suspended operator have
        failed outcomes.
        """
        if (abandoned := self.abandoned) >= ABANDONED:
            why = f"the operator is suspended: {abandoned} calls have not returned"
            return [CallOutcome(None, 0.0, why)] * len(several)
        if self.operator.is_async:
            return self._run_async(several, seconds)
        calls, size = several, 1
        if self.operator.batch is not None:  # one call with a list of all arguments
            calls, size = [(list(several),)], len(several)
        if self.operator.timeout is None:
            answers = (_call(self.operator.function, arguments) for arguments in calls)
            return [outcome for one in answers for outcome in self._outcomes(one, size)]
        return self._run_threads(calls, size, self.operator.timeout, seconds)

    def close(self) -> None:
        """End the threads that wait for calls."""
        for _, jobs in self._idle:
            jobs.put(None)
        self._idle.clear()
        if self._loop is not None:
            _, loop = self._loop
            loop.call_soon_threadsafe(loop.stop)
            self._loop = None

    def _outcomes(self, answer: Answer, size: int) -> list[CallOutcome]:
        """Convert the answer of a call that should give `size` results to outcomes."""
        result, why, seconds = answer
        if why:
            return [CallOutcome(None, seconds, why)] * size
        if self.operator.batch is None:
            return [self._outcome(result, seconds)]
        if not isinstance(result, Sequence) and hasattr(result, "tolist"):
            result = result.tolist()
        if not isinstance(result, list | tuple) or len(result) != size:
            what = f"returned a {type(result).__name__} for a batch instead of {size} results"
            return [CallOutcome(None, seconds, what)] * size
        return [self._outcome(one, seconds / size) for one in result]

    def _outcome(self, result: Any, seconds: float) -> CallOutcome:
        try:
            return CallOutcome(term_of(result), seconds)
        except Exception as error:  # noqa: BLE001 - `result` may be any object
            return CallOutcome(None, seconds, str(error)[:500])

    def _run_threads(
        self, calls: Sequence[Arguments], size: int, limit: float, seconds: float
    ) -> list[CallOutcome]:
        """Make calls on threads, each within `limit` and all within `seconds`.

        Each call gives `size` results. After a call that is late, another thread makes the rest.
        """
        begin, made = perf_counter(), 0
        found: list[CallOutcome] = []
        while made < len(calls):
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            thread, jobs = worker = worker or _worker()
            answers: SimpleQueue[Answer] = SimpleQueue()
            jobs.put((self.operator.function, calls[made:], answers))
            try:
                while made < len(calls):
                    left = seconds - (perf_counter() - begin)
                    answer = answers.get(timeout=max(min(limit, left), 0.0))
                    found += self._outcomes(answer, size)
                    made += 1
            except Empty:
                jobs.put(None)
                with self._lock:
                    self._left.append(thread)
                is_over = perf_counter() - begin >= seconds
                why = OVER if is_over else f"no answer within {limit:g} s"
                found += [CallOutcome(None, seconds if is_over else limit, why)] * size
                made += 1
                if is_over or self.abandoned >= ABANDONED:
                    return found + [CallOutcome(None, 0.0, why)] * (size * (len(calls) - made))
            else:
                with self._lock:
                    self._idle.append(worker)
        return found

    def _run_async(self, several: Sequence[Arguments], seconds: float) -> list[CallOutcome]:
        import asyncio

        limit = min(self.operator.timeout or seconds, seconds)
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = Thread(target=_turn, args=(loop,), daemon=True)
                thread.start()
                self._loop = thread, loop
            thread, loop = self._loop

        async def one(arguments: Arguments) -> CallOutcome:
            begin = perf_counter()
            try:
                async with asyncio.timeout(limit) as time:
                    result = await self.operator.function(*arguments)
            except BaseException as error:
                if isinstance(error, TimeoutError) and time.expired():
                    return CallOutcome(None, limit, f"no answer within {limit:g} s")
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                    raise  # The caller has stopped waiting.
                return CallOutcome(None, perf_counter() - begin, _said(error))
            return self._outcome(result, perf_counter() - begin)

        async def all_() -> list[CallOutcome]:
            return list(await asyncio.gather(*map(one, several)))

        future = asyncio.run_coroutine_threadsafe(all_(), loop)
        try:
            return future.result(limit + 1.0)
        except TimeoutError:
            future.cancel()
            with self._lock:  # The call blocks the loop, so a new loop is needed.
                if thread not in self._left:
                    self._left.append(thread)
                if self._loop == (thread, loop):
                    self._loop = None
            loop.call_soon_threadsafe(loop.stop)
            return [CallOutcome(None, limit, f"no answer within {limit:g} s")] * len(several)

"""Runs calls on threads, in an event loop or in other processes, each with a time limit.

A plain function runs on a thread of its operator. If a call hangs, the thread is abandoned and
counted until the call returns. An operator with `ABANDONED` such threads is suspended. Passing a
call to a thread costs about 20 µs.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock, Thread, current_thread, main_thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

from graphmatch import _native
from graphmatch.operators.operator import Operator, term_of
from semantic.terms import Term, written

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

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


_Job: TypeAlias = tuple[Callable[..., Any], Sequence[Arguments], bool, "SimpleQueue[Any]"]


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    """Make the calls of jobs in sequence, and put each result on its job's queue, until a ``None``.

    A job has a function, a sequence of arguments, whether one call takes all of them as a batch,
    and the queue of its results.
    """
    process = os.getpid()
    while (job := jobs.get()) is not None:
        function, several, together, results = job
        for arguments in several:
            begin = perf_counter()
            try:
                result = function(list(several)) if together else function(*arguments)
                answer: tuple[Any, str] = result, ""
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                    raise  # The user pressed Ctrl-C.
                answer = None, _said(error)
            if os.getpid() != process:
                os._exit(0)  # The function forked, and this is the child.
            results.put((*answer, perf_counter() - begin))
            if together:
                break


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
    """Makes the calls of one operator on threads, in an event loop, or in another process.

    The operator's options decide where, and limit the time. Several threads may use a runner.
    """

    operator: Operator
    _idle: list[_Worker] = field(default_factory=list)
    _left: list[Thread] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _loop: tuple[Thread, AbstractEventLoop] | None = None
    _child: tuple[BaseProcess, Connection] | None = None

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
        operator = self.operator
        if (abandoned := self.abandoned) >= ABANDONED:
            why = f"the operator is suspended: {abandoned} calls have not returned"
            return [CallOutcome(None, 0.0, why)] * len(several)
        if operator.is_async:
            return self._run_async(several, seconds)
        if operator.processes:
            with self._lock:
                return self._run_process(several, seconds)
        if operator.timeout is None:
            return self.run_here(several)
        return self._run_threads(several, seconds)

    def close(self) -> None:
        """End the threads and processes that wait for calls."""
        for _, jobs in self._idle:
            jobs.put(None)
        self._idle.clear()
        if self._loop is not None:
            _, loop = self._loop
            loop.call_soon_threadsafe(loop.stop)
            self._loop = None
        self._kill()

    def _answers(self, answer: tuple[Any, str, float], count: int) -> list[CallOutcome]:
        """Convert the answer of one call, or of a batch of `count` calls, to outcomes."""
        result, why, seconds = answer
        if why:
            return [CallOutcome(None, seconds, why)] * count
        if self.operator.batch is None:
            return [self._answer(result, seconds)]
        if not isinstance(result, Sequence) and hasattr(result, "tolist"):
            result = result.tolist()
        if not isinstance(result, list | tuple) or len(result) != count:
            what = f"returned a {type(result).__name__} for a batch instead of {count} results"
            return [CallOutcome(None, seconds, what)] * count
        return [self._answer(one, seconds / count) for one in result]

    def _answer(self, result: Any, seconds: float) -> CallOutcome:
        try:
            return CallOutcome(term_of(result), seconds)
        except Exception as error:  # noqa: BLE001 - `result` may be any object
            return CallOutcome(None, seconds, str(error)[:500])

    def run_here(self, several: Sequence[Arguments]) -> list[CallOutcome]:
        """Make calls on this thread, without a time limit, and return their outcomes."""
        results: SimpleQueue[Any] = SimpleQueue()
        jobs: SimpleQueue[_Job | None] = SimpleQueue()
        is_batch = self.operator.batch is not None
        jobs.put((self.operator.function, several, is_batch, results))
        jobs.put(None)
        _serve(jobs)
        return self._collected(several, results)

    def _collected(
        self, several: Sequence[Arguments], results: SimpleQueue[Any]
    ) -> list[CallOutcome]:
        if self.operator.batch is not None:
            return self._answers(results.get(), len(several))
        answers = [results.get() for _ in several]
        return [one for answer in answers for one in self._answers(answer, 1)]

    def _run_threads(self, several: Sequence[Arguments], seconds: float) -> list[CallOutcome]:
        begin = perf_counter()
        limit = self.operator.timeout or seconds
        is_batch = self.operator.batch is not None
        found: list[CallOutcome] = []
        while len(found) < len(several):
            rest = several[len(found) :]
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            thread, jobs = worker = worker or _worker()
            results: SimpleQueue[Any] = SimpleQueue()
            jobs.put((self.operator.function, rest, is_batch, results))
            try:
                for _ in range(1 if is_batch else len(rest)):
                    left = seconds - (perf_counter() - begin)
                    answer = results.get(timeout=max(min(limit, left), 0.0))
                    found += self._answers(answer, len(rest) if is_batch else 1)
            except Empty:
                jobs.put(None)
                with self._lock:
                    self._left.append(thread)
                found += self._late(begin, seconds, limit, len(rest) if is_batch else 1)
                if self.abandoned >= ABANDONED or perf_counter() - begin >= seconds:
                    return found + [CallOutcome(None, 0.0, found[-1].why)] * (
                        len(several) - len(found)
                    )
            else:
                with self._lock:
                    self._idle.append(worker)
        return found

    def _late(self, begin: float, seconds: float, limit: float, count: int) -> list[CallOutcome]:
        """Return `count` failed outcomes for a call, or a batch, that takes too long.

        `seconds` is the limit of all calls since `begin`, `limit` that of one.
        """
        if perf_counter() - begin >= seconds:
            return [CallOutcome(None, seconds, OVER)] * count
        return [CallOutcome(None, limit, f"no answer within {limit:g} s")] * count

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
            return self._answer(result, perf_counter() - begin)

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

    def _run_process(self, several: Sequence[Arguments], seconds: float) -> list[CallOutcome]:
        begin = perf_counter()
        limit = self.operator.timeout or seconds
        is_batch = self.operator.batch is not None
        found: list[CallOutcome] = []
        groups = [list(several)] if is_batch else [[one] for one in several]
        for group in groups:
            began = perf_counter()
            texts = [list(map(written, arguments)) for arguments in group]
            try:
                connection = self._started(seconds - (perf_counter() - begin))
                left = min(limit, seconds - (perf_counter() - begin))
                began = perf_counter()
                connection.send_bytes(json.dumps(texts).encode())
                if not connection.poll(max(left, 0.0)):
                    self._kill()
                    found += [CallOutcome(None, limit, f"no answer within {left:g} s")] * len(group)
                    continue
                answers = json.loads(connection.recv_bytes())
            except (EOFError, OSError) as error:
                self._kill()
                answers = [[None, f"its process ended ({type(error).__name__})"]] * len(group)
            except RuntimeError as error:
                self._kill()
                answers = [[None, str(error)]] * len(group)
            each = (perf_counter() - began) / len(group)
            terms = [None if text is None else _native.term(text) for text, _ in answers]
            found += [
                CallOutcome(term, each, why) for term, (_, why) in zip(terms, answers, strict=True)
            ]
        return found

    def _started(self, seconds: float) -> Connection:
        """Return the connection to the operator's process; start it, within `seconds`, if needed.

        The start does not count as a call's time. Raise `RuntimeError` if it fails.
        """
        import multiprocessing

        if self._child is None:
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            function = self.operator.function
            name = function.__module__, function.__qualname__
            task = theirs, *name, self.operator.batch
            child = context.Process(target=_serve_process, args=task, daemon=True)
            child.start()
            theirs.close()
            self._child = child, ours
            if not ours.poll(max(seconds, 0.0)):
                raise RuntimeError(f"its process did not start within {seconds:.3g} s")
            if why := ours.recv_bytes().decode():
                raise RuntimeError(f"its process cannot import it: {why}")
        return self._child[1]

    def _kill(self) -> None:
        if self._child is not None:
            child, connection = self._child
            self._child = None
            connection.close()
            child.kill()
            child.join()


def _serve_process(connection: Connection, module: str, name: str, batch: int | None) -> None:
    """Make the calls that arrive on a connection, in the process of one operator, until it closes.

    Arguments and results are N-Triples in JSON. The first message is empty, or the reason why the
    process cannot start.
    """
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # noqa: BLE001 - a module may raise anything
        connection.send_bytes(_said(error).encode())
        return
    connection.send_bytes(b"")
    function = found.function if isinstance(found, Operator) else found
    runner = Runner(Operator("urn:called", function, batch=batch))
    while True:
        try:
            several = json.loads(connection.recv_bytes())
        except EOFError:
            return
        outcomes = runner.run_here([tuple(map(_native.term, texts)) for texts in several])
        answers = [
            (outcome.result and written(outcome.result), outcome.why) for outcome in outcomes
        ]
        connection.send_bytes(json.dumps(answers).encode())

"""A second engine that tries queries, so that the engine of the broker is not changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import RLock
from time import perf_counter
from typing import TypeAlias

from graphmatch.broker.models.stored_publication import StoredPublication
from graphmatch.engine import Engine
from graphmatch.report import MatchReport
from semantic.clock import utc_now
from semantic.errors import Problem
from semantic.reading import SplitBy

Timer: TypeAlias = Callable[[], float]
"""Clock that returns seconds since an arbitrary time, like `time.perf_counter`."""


class Backtester:
    """A second engine with the same ontology, which tries queries on stored publications.

    It may be kept as long as the first engine: if the ontology of that engine was replaced, the
    next trial creates the second engine again. It is thread-safe and runs one trial at a time.

    Parameters
    ----------
    engine
        The first engine. Only its ontology and options are used.
    timer
        Clock for time limits.
    """

    def __init__(self, engine: Engine, *, timer: Timer = perf_counter) -> None:
        self.timer = timer
        self._model = engine
        self._now = utc_now()
        self._changing = RLock()
        self._made: Engine | None = None

    @property
    def engine(self) -> Engine:
        """The engine in which queries are tried."""
        if self._made is None or self._made.ontology is not self._model.ontology:
            self._made = self._model.empty_copy(clock=lambda: self._now, on_problem=lambda _: None)
        return self._made

    @contextmanager
    def subscribed(
        self, queries: Iterable[tuple[str, str]]
    ) -> Iterator[tuple[Engine, dict[str, Problem]]]:
        """Subscribe pairs of id and query for the duration of a ``with`` block.

        Yield the engine, and the problems of refused queries by id.
        """
        with self._changing:
            engine, rows = self.engine, list(queries)
            try:
                errors = engine.subscribe_many(rows)
                yield engine, {error.problem.where.source: error.problem for error in errors}
            finally:
                for id, _ in rows:
                    if id in engine:
                        engine.unsubscribe(id)

    def reports(
        self, stored: Iterable[StoredPublication]
    ) -> Iterator[tuple[StoredPublication, MatchReport]]:
        """Match publications, each with its time of arrival as ``NOW()``."""
        for one in stored:
            self.at(one)
            for report in self.engine.filter(one.text, "nt", SplitBy.DOCUMENT, name=one.id):
                yield one, report

    def at(self, one: StoredPublication) -> None:
        """Set ``NOW()`` to the time of arrival of a publication."""
        self._now = one.received

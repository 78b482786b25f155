"""Metrics for Prometheus, and a log in JSON without secrets.

Counts that a restart must not reset are read from the store at each scrape.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from pythonjsonlogger.json import JsonFormatter
from sqlalchemy import func, select

from graphmatch.broker.db.dead_letters import count_dead_letters
from graphmatch.broker.db.store import Store, counter
from graphmatch.broker.db.tables import WAITING, publications, subscriptions
from graphmatch.broker.models.attempt import AttemptResult
from graphmatch.broker.models.times import millis
from semantic.clock import Clock

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from starlette.types import Scope

_SECRET = re.compile(r"\b(gm[a-z]_|whsec_|Bearer )[A-Za-z0-9_+/=-]+")
_IN_QUERY = re.compile(r"([?&](?:ticket|key|token)=)[^&\s\"'\\]+")
_PASSWORD = re.compile(r"(://[^:/@\s\"\\]*:)[^@/\s\"\\]+@")
_LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def without_secrets(text: str) -> str:
    """Replace the tickets, tokens, keys and passwords in a text.

    Examples
    --------
    >>> without_secrets("GET /x?key=abc by gmt_0123"), without_secrets("/websub/callback/gmc_0")
    ('GET /x?key=… by gmt_…', '/websub/callback/gmc_…')
    >>> without_secrets("postgresql://ada:secret@host/db")
    'postgresql://ada:…@host/db'
    """
    return _PASSWORD.sub(r"\1…@", _SECRET.sub(r"\1…", _IN_QUERY.sub(r"\1…", text)))


class Metrics:
    """Counters, gauges and histograms of one process of a broker.

    Parameters
    ----------
    store
        The store that is read at each scrape.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.registry = registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, buckets=_LATENCIES, registry=registry)
        name = "graphmatch_http_request_duration_seconds"
        self.seconds = histogram(name, "Duration of requests.", ("route",))
        labels = ("method", "route", "status")
        self.requests = counter("graphmatch_http_requests", "Requests.", labels)
        name = "graphmatch_match_latency_seconds"
        self.latency = histogram(name, "Time from publication to match.")
        name = "graphmatch_delivery_duration_seconds"
        self.attempts = histogram(name, "Duration of attempts to deliver.", ("outcome",))
        self.streams = gauge("graphmatch_event_streams", "Open event streams.")
        self.leader = gauge("graphmatch_leader", "1 if it is the leader.")
        ProcessCollector(registry=registry)
        registry.register(_StoreCollector(store, clock))

    def matched(self, seconds: Sequence[float]) -> None:
        """Record the times from the commit of publications to that of their matches."""
        for each in seconds:
            self.latency.observe(max(each, 0))

    def attempted(self, result: AttemptResult) -> None:
        """Record an attempt to deliver."""
        self.attempts.labels(result.decision.value).observe(result.seconds)

    def answered(self, scope: Scope, status: int, seconds: float) -> None:
        """Record a request. The duration of event streams is left out."""
        route = route_of(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.requests.labels(method, route, str(status)).inc()
        if not route.endswith("/events"):
            self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


def route_of(scope: Scope) -> str:
    """Return the path of a request with placeholders for ids."""
    return str(getattr(scope.get("route"), "path", "other"))


class _StoreCollector(Collector):
    """The metrics that are read from the store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def describe(self) -> Iterator[Metric]:
        """Return nothing, so that registering does not read the store."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the current values."""
        yield from self._store.read_now(self._read)
        if (free := self._store.free_bytes) is not None:
            yield GaugeMetricFamily("graphmatch_disk_free_bytes", "Free space of the store.", free)

    def _read(self, db: Connection) -> list[Metric]:
        unmatched = publications.c.matched_at.is_(None)
        chosen = select(func.count(), func.min(publications.c.received_at)).where(unmatched)
        count, oldest = db.execute(chosen).one()
        age = 0.0 if oldest is None else max(millis(self._clock()) - oldest, 0) / 1000
        waiting = db.scalar(select(func.count()).where(WAITING)) or 0
        states = GaugeMetricFamily(
            "graphmatch_subscriptions", "Subscriptions by state.", labels=["state"]
        )
        state = subscriptions.c.state
        for name, number in db.execute(select(state, func.count()).group_by(state)):
            states.add_metric([name], number)
        totals = (
            ("publications", "Accepted publications.", counter(db, "publication")),
            ("matches", "Matches.", counter(db, "match")),
        )
        gauges = (
            ("publications_unmatched", "Publications that wait for matching.", count),
            ("oldest_unmatched_seconds", "Age of the oldest of them.", age),
            ("deliveries_waiting", "Waiting deliveries.", waiting),
            ("dead_letters", "Records that were set aside.", count_dead_letters(db)),
        )
        return [
            *(CounterMetricFamily(f"graphmatch_{one[0]}", *one[1:]) for one in totals),
            *(GaugeMetricFamily(f"graphmatch_{one[0]}", *one[1:]) for one in gauges),
            states,
        ]


# -- the log ------------------------------------------------------------------------------------


class _LogFormatter(JsonFormatter):
    """Writes a record as one JSON object on one line, without secrets."""

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        for key, value in log_data.items():
            if isinstance(value, str):
                log_data[key] = without_secrets(value)
        return log_data


@contextmanager
def json_logging(level: int = logging.INFO) -> Iterator[None]:
    """Write the records of Python's logging, and warnings, as JSON to standard error."""
    handler = logging.StreamHandler()
    names = {"message": "event", "levelname": "level", "exc_info": "exception"}
    options: dict[str, Any] = {"rename_fields": names, "json_ensure_ascii": False}
    handler.setFormatter(_LogFormatter(["message", "levelname"], timestamp=True, **options))
    logging.root.addHandler(handler)
    logging.getLogger("graphmatch").setLevel(level)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        logging.root.removeHandler(handler)

"""What the broker says of itself: counters for Prometheus, and a log without secrets.

What is in the store is counted there, when it is asked for: these numbers outlive a restart.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from graphmatch.broker.db.store import Store, counter
from graphmatch.broker.db.tables import deliveries, publications, subscriptions
from graphmatch.broker.models.times import millis
from semantic.clock import Clock

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from starlette.types import Scope

_SECRET = re.compile(r"\b(gm[cktr]_|whsec_)[A-Za-z0-9_+/=-]+")
_IN_QUERY = re.compile(r"([?&](?:ticket|key|token)=)[^&\s\"']+")
_LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


def without_secrets(text: str) -> str:
    """Return a text without the tickets, tokens and keys in it.

    Examples
    --------
    >>> without_secrets("GET /x?key=abc by gmt_0123"), without_secrets("/websub/callback/gmc_0")
    ('GET /x?key=… by gmt_…', '/websub/callback/gmc_…')
    """
    return _SECRET.sub(r"\1…", _IN_QUERY.sub(r"\1…", text))


class Metrics:
    """Counters and histograms of one broker.

    Parameters
    ----------
    store
        What is counted in it is read when it is asked for.
    clock
        The time.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        more: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter(
            "graphmatch_http_requests", "Answered.", ("method", "route", "status"), **more
        )
        self.seconds = Histogram(
            "graphmatch_http_request_seconds",
            "How long answers took.",
            ("route",),
            buckets=_LATENCIES,
            **more,
        )
        self.latency = Histogram(
            "graphmatch_match_latency_seconds",
            "From a publication's commit to that of its matches.",
            buckets=_LATENCIES,
            **more,
        )
        self.attempts = Counter(
            "graphmatch_delivery_attempts", "Sent, by outcome.", ("outcome",), **more
        )
        self.delivery_seconds = Histogram(
            "graphmatch_delivery_seconds", "How long sinks took.", buckets=_LATENCIES, **more
        )
        self.streams = Gauge("graphmatch_event_streams", "Open.", **more)
        self.registry.register(_Stored(store, clock))

    def matched(self, waited: Sequence[float]) -> None:
        """Note how long publications waited until they were matched, in seconds."""
        for seconds in waited:
            self.latency.observe(max(seconds, 0))

    def answered(self, scope: Scope, status: int, seconds: float) -> None:
        """Note an answer."""
        route = route_of(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.requests.labels(method, route, str(status)).inc()
        if not route.endswith("/events"):
            self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all as Prometheus reads it."""
        return generate_latest(self.registry)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def route_of(scope: Scope) -> str:
    """Return the path of a request with names for what differs."""
    return str(getattr(scope.get("route"), "path", "other"))


class _Stored(Collector):
    """What the store counts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def describe(self) -> Iterator[Metric]:
        """Nothing: else the store were read when this is registered."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield what is counted now."""
        return iter(self._store.read_now(self._read))

    def _read(self, db: Connection) -> list[Metric]:
        published = counter(db, "publication")
        found: list[Metric] = [
            CounterMetricFamily("graphmatch_publications", "Taken in.", published),
            CounterMetricFamily("graphmatch_matches", "Found.", counter(db, "match")),
        ]
        waiting = publications.c.matched_at.is_(None)
        chosen = select(func.count(), func.min(publications.c.received_at)).where(waiting)
        count, oldest = db.execute(chosen).one()
        age = 0.0 if oldest is None else max(millis(self._clock()) - oldest, 0) / 1000
        found.append(GaugeMetricFamily("graphmatch_publications_waiting", "To be matched.", count))
        found.append(GaugeMetricFamily("graphmatch_waiting_seconds", "The oldest of them.", age))
        for name, table in (("subscriptions", subscriptions), ("deliveries", deliveries)):
            family = GaugeMetricFamily(f"graphmatch_{name}", "By state.", labels=["state"])
            by_state = select(table.c.state, func.count()).group_by(table.c.state)
            for state, number in db.execute(by_state):
                family.add_metric([state], number)
            found.append(family)
        return found


# -- the log ------------------------------------------------------------------------------------


def event_log(stream: TextIO | None = None) -> structlog.typing.FilteringBoundLogger:
    """Return a log that writes an object of JSON a line, without secrets."""
    log: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        structlog.PrintLogger(stream or sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper("iso", utc=True),
            _hidden,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    return log


def _hidden(_log: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = without_secrets(value)
    return event

"""Findings about subscriptions and sinks that need attention, and about the broker.

The sources are the linter (`graphmatch.lint`), the times of the last matches, failed deliveries and
feeds, dead letters, and the free disk space.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any, TypeAlias

from graphmatch.broker.models.findings import Finding, FindingKind
from graphmatch.broker.models.times import time_of
from graphmatch.broker.service.backtester import Timer
from graphmatch.engine import Engine
from graphmatch.lint import CODES, Linter
from graphmatch.matcher import UnknownSubscriptionError
from graphmatch.subscription import Subscription
from semantic.errors import plural

Rows: TypeAlias = Sequence[Mapping[Any, Any]]
LIMIT_SECONDS = 2.0
"""Time limit of the linter in seconds."""
SILENCE = timedelta(days=30)
"""Report a subscription that has not matched for this time."""
LOW_DISK_BYTES = 1_000_000_000
"""A disk with fewer free bytes is almost full."""
_NEVER = frozenset(CODES) - {
    *("duplicate", "not-examined", "aggregate-of-one-item", "number-without-unit")
}
"""Codes of warnings about subscriptions that, entirely or in part, can never match."""


def subscription_findings(
    engine: Engine, rows: Rows, now: datetime, timer: Timer = perf_counter
) -> Iterator[Finding]:
    """Yield the probable faults of subscriptions. The linter needs about 0.5 ms for each query.

    Parameters
    ----------
    rows
        Rows of the store with the subscriptions to examine (`queries.living`).

    Examples
    --------
    >>> from datetime import UTC
    >>> engine = Engine()
    >>> engine.subscribe("1", "ASK { ?x dc:title ?t FILTER(?title = 'x') }")
    >>> row = {"number": 1, "id": "alice", "created_at": 0, "last_matched_at": None}
    >>> now = datetime(1970, 3, 1, tzinfo=UTC)
    >>> for finding in subscription_findings(engine, [row], now):
    ...     print(finding.kind.value, finding.subscriptions, finding.text)
    can never match ('alice',) nothing binds ?title in ?title = "x"
    has not matched ('alice',) no match in 59 days, since it began
    """
    ids = {str(row["number"]): str(row["id"]) for row in rows}
    linter, until = Linter(engine.ontology), timer() + LIMIT_SECONDS
    for place, row in enumerate(rows):
        if timer() >= until:
            text = f"there was no time to examine {plural(len(rows) - place, 'subscription')}"
            yield _finding(FindingKind.NOT_EXAMINED, text, "Try again later.")
            return
        with suppress(UnknownSubscriptionError):  # It may have ended meanwhile.
            yield from lint_findings(linter, engine.subscription(str(row["number"])), ids)
            last = row["last_matched_at"]
            silence = now - time_of(last or row["created_at"])
            if silence >= SILENCE:
                when = f"since {time_of(last):%Y-%m-%d}" if last else "since it began"
                text = f"no match in {silence.days} days, {when}"
                remedy = "Test it on stored publications, or end it."
                yield _finding(FindingKind.SILENT, text, remedy, row["id"])


def lint_findings(
    linter: Linter, subscription: Subscription, ids: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield the linter's warnings; `ids` are those to report, by the ids in the engine."""
    for warning in linter.lint(subscription):
        kind = FindingKind.NEVER if warning.code in _NEVER else FindingKind.DOUBTFUL
        text = warning.what
        if warning.other:
            kind = FindingKind.DUPLICATE
            text = "the later one has the same query, except for names of variables and layout"
        known = [ids[id] for id in (warning.other, subscription.id) if id in ids]
        yield _finding(kind, text, warning.remedy, *known, code=warning.code)


def _finding(kind: FindingKind, text: str, remedy: str, *ids: str, code: str = "") -> Finding:
    return Finding(kind=kind, subscriptions=ids, text=text, remedy=remedy, code=code)


def broker_findings(
    feeds: Iterable[Mapping[str, Any]], dead_letters: int, free_bytes: int | None
) -> Iterator[Finding]:
    """Yield the probable faults of the broker.

    Parameters
    ----------
    feeds
        The states of feeds (`queries.kept_feeds`).
    dead_letters
        Number of records that could not be processed.
    free_bytes
        Free bytes on the disk of the store; ``None`` if unknown.
    """
    if free_bytes is not None and free_bytes < LOW_DISK_BYTES:
        text = f"the disk of the store has {free_bytes / 1e6:,.0f} MB left"
        remedy = "Delete files, or shorten the retention. On a full disk, the broker stops."
        yield _finding(FindingKind.DISK, text, remedy)
    if dead_letters:
        text = f"{plural(dead_letters, 'record')} could not be processed in three attempts"
        remedy = "Read the errors of the dead letters, and fix the cause."
        yield _finding(FindingKind.DEAD_LETTERS, text, remedy)
    for feed in feeds:
        if feed.get("errors"):
            text = f"{feed['url']} cannot be read: {feed.get('problem') or 'the last fetch failed'}"
            yield _finding(FindingKind.FEED, text, "Check the address of the feed.")


def sink_findings(sinks: Rows, rows: Rows) -> Iterator[Finding]:
    """Yield the sinks whose deliveries fail, each with its subscriptions.

    Parameters
    ----------
    sinks, rows
        Rows of the store with these sinks (`queries.failing`) and with the subscriptions.
    """
    ids = {row["number"]: row["id"] for row in rows}
    hosts: defaultdict[str, list[Mapping[Any, Any]]] = defaultdict(list)
    for sink in sinks:
        if sink["subscription"] in ids:
            hosts[sink["host"]].append(sink)
    for host, group in hosts.items():
        group.sort(key=lambda sink: sink["since"])
        attempts = plural(sum(int(sink["attempts"]) for sink in group), "attempt")
        since = f"{time_of(group[0]['since']):%Y-%m-%d %H:%M} UTC"
        problem = group[-1]["error"] or f"status {group[-1]['status']}"
        text = f"{host} has accepted nothing since {since}, {attempts}: {problem}"
        remedy = "Fix the sink, or choose another one for the subscription."
        own = dict.fromkeys(ids[sink["subscription"]] for sink in group)
        yield _finding(FindingKind.SINK, text, remedy, *own)

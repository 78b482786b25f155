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
from typing import Any

from graphmatch.broker.models.findings import FailingSink, Finding, FindingKind
from graphmatch.broker.models.times import time_of
from graphmatch.broker.service.backtester import Timer
from graphmatch.engine import Engine
from graphmatch.lint import Linter
from graphmatch.matcher import UnknownSubscriptionError
from graphmatch.subscription import Subscription
from semantic.errors import plural

SILENCE = timedelta(days=30)
"""Report a subscription that has not matched for this time."""
LOW_DISK_BYTES = 1_000_000_000
"""A disk with fewer free bytes is almost full."""
_NEVER = frozenset(
    {
        *("unknown-term", "unbound-variable", "never-comparable", "no-arithmetic"),
        *("invalid-literal", "invalid-regex", "contradictory-filters"),
    }
)
"""Codes of warnings about subscriptions that, entirely or in part, can never match."""


def health(
    engine: Engine,
    rows: Sequence[Mapping[Any, Any]],
    *,
    now: datetime,
    sinks: Iterable[FailingSink] = (),
    others: Iterable[Finding] = (),
    limit_seconds: float = 2.0,
    timer: Timer = perf_counter,
) -> list[Finding]:
    """Return the probable faults of subscriptions, sinks and the broker, the most urgent first.

    Parameters
    ----------
    rows
        Rows of the store with the subscriptions to examine (`queries.living`).
    sinks
        Sinks whose deliveries fail.
    others
        Other findings for the result (`broker_findings`).
    limit_seconds
        Time limit of the linter, which needs about 0.5 ms for each query.

    Examples
    --------
    >>> from datetime import UTC
    >>> engine = Engine()
    >>> engine.subscribe("1", "ASK { ?x dc:date ?d FILTER(?d > 5 && ?d < 4) }")
    >>> row = {"number": 1, "id": "alice", "created_at": 0, "last_matched_at": None}
    >>> for finding in health(engine, [row], now=datetime(1970, 3, 1, tzinfo=UTC)):
    ...     print(finding.kind.value, finding.subscriptions, finding.text)
    can never match ('alice',) ?d > 5 and ?d < 4 can't both hold
    has not matched ('alice',) no match in 59 days, since it began
    """
    ids = {str(row["number"]): str(row["id"]) for row in rows}
    findings = [*others, *_of_sinks(sinks, ids)]
    linter, until = Linter(engine.ontology), timer() + limit_seconds
    for place, row in enumerate(rows):
        if timer() >= until:
            text = f"there was no time to examine {plural(len(rows) - place, 'subscription')}"
            findings.append(_finding(FindingKind.NOT_EXAMINED, text, "Try again later."))
            break
        with suppress(UnknownSubscriptionError):  # It may have ended meanwhile.
            findings += lint_findings(linter, engine.subscription(str(row["number"])), ids)
            last = row["last_matched_at"]
            silence = now - time_of(last or row["created_at"])
            if silence >= SILENCE:
                when = f"since {time_of(last):%Y-%m-%d}" if last else "since it began"
                text = f"no match in {silence.days} days, {when}"
                remedy = "Test it on stored publications, or end it."
                findings.append(_finding(FindingKind.SILENT, text, remedy, row["id"]))
    order = list(FindingKind)
    return sorted(findings, key=lambda finding: order.index(finding.kind))


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
    feeds: Mapping[str, str], dead_letters: int, free_bytes: int | None
) -> Iterator[Finding]:
    """Yield the probable faults of the broker.

    Parameters
    ----------
    feeds
        Addresses of feeds that cannot be read, with the problem of the last fetch.
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
    for address, problem in feeds.items():
        remedy = "Check the address of the feed."
        yield _finding(FindingKind.FEED, f"{address} cannot be read: {problem}", remedy)


def _of_sinks(sinks: Iterable[FailingSink], ids: Mapping[str, str]) -> Iterator[Finding]:
    by_address: defaultdict[str, list[FailingSink]] = defaultdict(list)
    for sink in filter(lambda sink: sink.subscription in ids, sinks):
        by_address[sink.address].append(sink)
    for address, group in by_address.items():
        since, last = min(s.since for s in group), max(group, key=lambda s: s.since)
        attempts = plural(sum(s.attempts for s in group), "attempt")
        text = f"{address} has accepted nothing since {since:%Y-%m-%d %H:%M} UTC"
        remedy = "Fix the sink, or choose another one for the subscription."
        own = dict.fromkeys(ids[s.subscription] for s in group)
        yield _finding(FindingKind.SINK, f"{text}, {attempts}: {last.response}", remedy, *own)

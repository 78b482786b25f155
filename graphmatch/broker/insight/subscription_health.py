"""Which subscriptions and sinks somebody should look at.

What the linter finds (`graphmatch.lint`), what has not matched for long, and sinks that take
nothing, as one list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from time import perf_counter

from graphmatch.broker.models.findings import Finding, Kind, SinkState
from graphmatch.broker.service.backtester import Timer
from graphmatch.engine import Engine
from graphmatch.lint import Linter
from graphmatch.matcher import UnknownSubscriptionError
from graphmatch.subscription import Subscription

_NEVER = frozenset(
    {
        *("unknown-term", "unbound-variable", "never-comparable", "no-arithmetic"),
        *("invalid-literal", "invalid-regex", "contradictory-filters"),
    }
)
"""Warnings of the linter because of which a subscription, or a part of it, can't match."""


def health(
    engine: Engine,
    *,
    now: datetime,
    subscribed: Mapping[str, datetime],
    last_matched: Mapping[str, datetime],
    failing: Iterable[SinkState] = (),
    days: int = 30,
    limit_seconds: float = 10.0,
    timer: Timer = perf_counter,
) -> list[Finding]:
    """Return what is probably wrong with subscriptions and their sinks, the worst first.

    Parameters
    ----------
    subscribed, last_matched
        When subscriptions began, and when they matched last; others are passed over.
    failing
        The sinks that take nothing.
    days
        A subscription that is as old and has not matched for so long is reported.
    limit_seconds
        After this time no more subscriptions are examined by the linter: about 0.5 ms for each
        query.

    Examples
    --------
    >>> from datetime import UTC
    >>> engine = Engine()
    >>> engine.subscribe("alice", "ASK { ?x dc:date ?d FILTER(?d > 5 && ?d < 4) }")
    >>> now, then = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    >>> for found in health(engine, now=now, subscribed={"alice": then}, last_matched={}):
    ...     print(found.kind.value, found.subscriptions, found.text)
    can never match ('alice',) ?d > 5 and ?d < 4 can't both hold
    has not matched ('alice',) no match in 59 days, since it began
    """
    found = [*_failing(failing, now), *_linted(engine, subscribed, timer() + limit_seconds, timer)]
    found += _silent(engine, now, subscribed, last_matched, timedelta(days))
    order = list(Kind)
    return sorted(found, key=lambda finding: order.index(finding.kind))


def _linted(engine: Engine, ids: Collection[str], until: float, timer: Timer) -> Iterator[Finding]:
    linter = Linter(engine.ontology)
    for number, id in enumerate(ids):
        if timer() >= until:
            rest = len(ids) - number
            text = f"{rest:,} subscriptions have not been examined: there was no time"
            yield Finding(Kind.NOT_EXAMINED, (), text, "Allow more time.")
            return
        with suppress(UnknownSubscriptionError):  # it may have ended a moment ago
            yield from doubts(linter, engine.subscription(id))


def doubts(linter: Linter, subscription: Subscription) -> Iterator[Finding]:
    """Yield what the linter finds of a subscription."""
    for warned in linter.lint(subscription):
        kind = Kind.NEVER if warned.code in _NEVER else Kind.DOUBTFUL
        about: tuple[str, ...] = (subscription.id,)
        if warned.other:
            kind, about = Kind.DUPLICATE, (warned.other, subscription.id)
        yield Finding(kind, about, warned.what, warned.remedy, warned.code)


def _silent(
    engine: Engine,
    now: datetime,
    subscribed: Mapping[str, datetime],
    last_matched: Mapping[str, datetime],
    most: timedelta,
) -> Iterator[Finding]:
    for id, began in subscribed.items():
        last = last_matched.get(id)
        quiet = now - (last or began)
        if quiet >= most and id in engine:
            when = "since it began" if last is None else f"since {last:%Y-%m-%d}"
            text = f"no match in {quiet.days} days, {when}"
            yield Finding(Kind.SILENT, (id,), text, "Try it on stored publications, or end it.")


def _failing(states: Iterable[SinkState], now: datetime) -> Iterator[Finding]:
    by_address: defaultdict[str, list[SinkState]] = defaultdict(list)
    for state in states:
        by_address[state.address].append(state)
    for address, several in by_address.items():
        first, last = min(s.since for s in several), max(several, key=lambda s: s.since)
        hours = (now - first) / timedelta(hours=1)
        attempts = sum(s.attempts for s in several)
        text = f"{address} has taken nothing for {hours:.0f} h, {attempts} attempts: {last.answer}"
        about = tuple(dict.fromkeys(s.subscription for s in several))
        yield Finding(Kind.SINK, about, text, "Mend the sink, or name another.")

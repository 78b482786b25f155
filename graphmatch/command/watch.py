"""``graphmatch watch``: fetches feeds when they are due, and shows matches."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from graphmatch.command.options import (
    Config,
    ConfiguredCommand,
    EngineOptions,
    FeedOptions,
    SubscriptionOptions,
    Verbosity,
    grouped,
    option,
    require,
)

if TYPE_CHECKING:
    from graphmatch.broker.feeds.feed_poller import Poller
    from graphmatch.broker.feeds.feed_store import Feed, FeedStore, Items
    from graphmatch.command.filter import Alerts
    from graphmatch.command.session import Session
    from graphmatch.engine import Engine
    from semantic.errors import Problem

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")
HOLD_SECONDS, _STEP_SECONDS = 10, 0.1
"""The longest time for which alerts wait for slower feeds, and the time between two checks."""


@dataclass(frozen=True, slots=True)
class WatchOptions(FeedOptions):
    """The options for the watched feeds, and the output of matches."""

    state: Path | None = option(
        None,
        "File that records seen items and fetch times; without it, all items are new in each run.",
        metavar="FILE",
    )
    once: bool = option(False, "Fetch the feeds that are due, then stop.")
    form: Literal["text", "jsonl"] = option("text", "Output format of matches.", "--as")


@app.command(cls=ConfiguredCommand)
@partial(grouped, without={"now"})
def watch(
    watch_options: WatchOptions,
    subscription_options: SubscriptionOptions,
    engine_options: EngineOptions,
    verbosity: Verbosity,
    config: Config = None,  # noqa: ARG001  (read by ConfiguredCommand)
) -> int:
    """Fetch feeds when they are due, and show the items that match.

    Ctrl-C ends it; with `--state`, the next run continues.

    Example: `graphmatch watch --feeds feeds.opml -o ontologies/news.ttl -s data/subscriptions
    --state feeds.db`
    """
    from graphmatch.command.filter import Alerts
    from graphmatch.command.output import writer
    from graphmatch.command.seen import Seen
    from graphmatch.command.session import Session
    from semantic.clock import utc_now
    from semantic.errors import InputError, Place, Problem

    require("graphmatch watch", "broker")
    from graphmatch.broker.feeds.feed_store import SqliteFeedStore

    with Session(verbosity) as session:
        listed = {feed.url: feed.title for feed in watch_options.listed(session.report)}
        if not listed:
            what, remedy = "there is no feed to fetch", "Name addresses, or OPML files."
            raise InputError(Problem(what, Place("--feeds"), remedy))
        engine = session.subscribed_engine(engine_options, subscription_options)
        session.show_warnings()
        with SqliteFeedStore(watch_options.state, cutoff=watch_options.since) as store:
            seen = Seen(store.connection, watch_options.state, utc_now)
            alerts = Alerts(engine, writer(watch_options.form, session.out, engine), seen=seen)
            asyncio.run(_Watch(session, engine, alerts, watch_options).run(listed, store))
        return session.status


@dataclass(slots=True)
class _Watch:
    """One run of ``graphmatch watch``: its engine, alerts, counts, and the event that stops it."""

    session: Session
    engine: Engine
    alerts: Alerts
    watch_options: WatchOptions
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    held: int = 0
    """The number of fetched feeds whose alerts are not written yet."""
    writing: asyncio.Task[None] | None = None
    poller: Poller = field(init=False)

    async def run(self, listed: dict[str, str], store: FeedStore) -> None:
        """Fetch feeds until a signal arrives, or once; then print the counts.

        `listed` maps the feeds' addresses to titles.
        """
        from graphmatch.broker.feeds.feed_poller import REQUEST_SECONDS, Poller
        from graphmatch.broker.outbox.safe_http import HttpClient
        from semantic.errors import plural

        subscriptions = plural(len(self.engine), "subscription")
        options, tally = self.watch_options, self.alerts.tally
        async with HttpClient(options.allow or (), total_seconds=REQUEST_SECONDS) as client:
            self.poller = poller = Poller(client, store, self.take)
            await poller.start(listed)
            for url, title in listed.items():
                await poller.add(url, title)
            self.session.note(
                f"watching {plural(len(listed), 'feed')}, {subscriptions}; {len(poller.due())} due"
            )
            with suppress(NotImplementedError, RuntimeError, ValueError):
                for number in (signal.SIGINT, signal.SIGTERM):  # not on Windows or in a thread
                    asyncio.get_running_loop().add_signal_handler(number, self.stop.set)
            await poller.run(self.stop, once=options.once)
        self.session.note(
            f"{plural(tally.publications, 'new item')}, {subscriptions}: "
            f"{plural(tally.matches, 'match', 'matches')} in {plural(tally.matched, 'item')}, "
            f"{self.session.refused} refused"
        )

    async def take(self, feed: Feed, items: Items, problems: Sequence[Problem]) -> None:
        """Print the problems of a fetched feed, and the matches of its new items; count both.

        Of consecutive errors, only the first is printed.
        """
        if feed.errors <= 1:
            for problem in problems:
                self.session.report(problem)
        for item in items:
            self.alerts.add(await asyncio.to_thread(self.engine.match, item.publication))
        self.session.show_warnings()
        self.held += 1
        self.writing = self.writing or asyncio.create_task(self._write())
        await asyncio.shield(self.writing)

    async def _write(self) -> None:
        """Write the alerts when no other feed is being fetched, or after `HOLD_SECONDS`.

        So an alert names all feeds with its item.
        """
        for _ in range(int(HOLD_SECONDS / _STEP_SECONDS)):
            if self.held >= self.poller.running or self.stop.is_set():
                break
            await asyncio.sleep(_STEP_SECONDS)
        self.writing, self.held = None, 0
        self.alerts.write()

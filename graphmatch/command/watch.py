"""``graphmatch watch``: fetches feeds when they are due, and shows matches."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import typer

from graphmatch.command.options import (
    EngineOptions,
    Since,
    SubscriptionOptions,
    Verbosity,
    grouped,
    networks,
    option,
    require,
)

if TYPE_CHECKING:
    from graphmatch.broker.feeds.feed_store import Feed, FeedStore, Items
    from graphmatch.command.filter import FilterCounts
    from graphmatch.command.output import Writer
    from graphmatch.command.session import Session
    from graphmatch.engine import Engine
    from semantic.errors import Problem

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The options for the watched feeds, and the output of matches."""

    panel: ClassVar = "Feeds"
    feeds: list[Path] = option(
        MISSING,
        "OPML, or a text file with one address per line (# begins a comment); repeatable.",
        "--feeds",
        metavar="FILE",
    )
    state: Path | None = option(
        None,
        "File that records seen items and fetch times; without it, all items are new in each run.",
        metavar="FILE",
    )
    once: bool = option(False, "Fetch the feeds that are due, then stop.")
    form: Literal["text", "jsonl"] = option("text", "Output format of matches.", "--as")
    since: Since | None = option(
        None, "Leave out older items.", parser=Since.parse, metavar="DATE|30m|24h|7d|2w"
    )
    allow: list[str] | None = option(
        None, "Private network to fetch from, such as 127.0.0.0/8; repeatable.", metavar="NETWORK"
    )


@app.command()
@partial(grouped, without={"now"})
def watch(
    watch_options: WatchOptions,
    subscription_options: SubscriptionOptions,
    engine_options: EngineOptions,
    verbosity: Verbosity,
) -> int:
    """Fetch feeds when they are due, and show the items that match.

    Ctrl-C ends it; with `--state`, the next run continues.

    Example: `graphmatch watch --feeds feeds.opml -o ontologies/news.ttl -s data/subscriptions
    --state feeds.db`
    """
    from graphmatch.command.filter import FilterCounts, nothing_to_match
    from graphmatch.command.output import writer
    from graphmatch.command.session import Session

    networks(watch_options.allow)
    require("graphmatch watch", "broker")
    from graphmatch.broker.feeds.feed_store import SqliteFeedStore
    from graphmatch.broker.feeds.opml import read_feed_list

    with Session(verbosity) as session:
        listed = {
            feed.url: feed.title
            for path in watch_options.feeds
            for feed in read_feed_list(path, session.report)
        }
        engine = session.engine(engine_options)
        session.take_in(engine, subscription_options)
        if not len(engine):
            raise nothing_to_match()
        session.show_warnings()
        made = writer(watch_options.form, session.out, engine)
        with SqliteFeedStore(watch_options.state) as store:
            watch = _Watch(session, engine, made, watch_options, FilterCounts())
            asyncio.run(watch.run(listed, store))
        return watch.status


@dataclass(slots=True)
class _Watch:
    """One run of ``graphmatch watch``: its engine, output, counts, and the event that stops it."""

    session: Session
    engine: Engine
    writer: Writer
    watch_options: WatchOptions
    tally: FilterCounts
    refused: int = 0
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def status(self) -> int:
        """The exit status so far: `REFUSED` if anything was refused, otherwise `DONE`."""
        from graphmatch.command.session import DONE, REFUSED

        return REFUSED if self.refused or self.session.refused else DONE

    async def run(self, listed: dict[str, str], store: FeedStore) -> None:
        """Fetch feeds until a signal arrives, or once; then print the counts.

        `listed` maps the feeds' addresses to titles.
        """
        from graphmatch.broker.feeds.feed_poller import REQUEST_SECONDS, Poller
        from graphmatch.broker.outbox.safe_http import HttpClient
        from semantic.errors import plural

        subscriptions = plural(len(self.engine), "subscription")
        allow = networks(self.watch_options.allow)
        async with HttpClient(allow, total_seconds=REQUEST_SECONDS) as client:
            poller = Poller(client, store, self.take)
            await poller.start(listed)
            for url, title in listed.items():
                await poller.add(url, title)
            self.session.note(
                f"watching {plural(len(listed), 'feed')}, {subscriptions}; {len(poller.due())} due"
            )
            with _signals(self.stop):
                await poller.run(self.stop, once=self.watch_options.once)
        self.session.note(
            f"{plural(self.tally.publications, 'new item')}, {subscriptions}: "
            f"{plural(self.tally.matches, 'match', 'matches')} in "
            f"{plural(self.tally.matched, 'item')}, {self.refused + self.session.refused} refused"
        )

    async def take(self, feed: Feed, items: Items, problems: Sequence[Problem]) -> None:
        """Print the problems of a fetched feed, and the matches of its new items; count both.

        Of consecutive errors, only the first is printed.
        """
        from graphmatch.command.filter import write_report
        from semantic.clock import utc_now

        if feed.errors <= 1:
            for problem in problems:
                self.session.report(problem)
        since = self.watch_options.since
        cutoff = None if since is None else since.cutoff(utc_now())
        for item in items:
            report = await asyncio.to_thread(self.engine.match, item.publication)
            write_report(self.engine, report, self.writer, self.tally, cutoff)
        self.session.show_warnings()
        self.refused += self.session.refused
        self.session.problems.clear()  # A run may take months.


@contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """Set `stop` when a signal arrives in the block, instead of interrupting the current work."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    try:
        for number in numbers:
            loop.add_signal_handler(number, stop.set)
    except (NotImplementedError, RuntimeError, ValueError):  # on Windows, or in another thread
        yield
        return
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)

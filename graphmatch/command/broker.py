"""The commands ``graphmatch broker …``: further processes of a broker."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import ClassVar

import typer

from graphmatch.command.options import EngineOptions, Verbosity, grouped, option, require

app = typer.Typer(
    name="broker",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Run further processes of a broker.",
)


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The options for a broker's store."""

    panel: ClassVar = "Store"
    store: str = option(
        "broker.db", "URL of a PostgreSQL database; SQLite is for one process.", metavar="URL"
    )


@app.callback()
def common() -> None:
    """Keep the name `match`; without a callback, Typer drops the name of an only command."""


@app.command()
@grouped
def match(store_options: StoreOptions, engine_options: EngineOptions, verbosity: Verbosity) -> int:
    """Match publications together with the other processes of a PostgreSQL store, until stopped.

    Example: `graphmatch broker match --store postgresql://graphmatch@database/graphmatch`
    """
    from graphmatch.command.serve import ended, fingerprint_of, stopping
    from graphmatch.command.session import Session
    from semantic.errors import InputError, Place, Problem

    with Session(verbosity) as session:
        require("graphmatch broker", "broker")
        from graphmatch.broker.db.store import Store
        from graphmatch.broker.service.broker import ENGINE_LIMITS, Broker
        from graphmatch.broker.service.match_worker import MatchWorker

        store = Store(store_options.store)
        try:
            if store.is_sqlite:
                what = "only one process can use a SQLite store"
                remedy = "Run `graphmatch serve` alone, or use PostgreSQL."
                raise InputError(Problem(what, Place(store.name), remedy))
            mark = fingerprint_of(engine_options)
            broker = Broker(store, session.engine(engine_options, ENGINE_LIMITS))
            matcher = MatchWorker(broker, None, mark, int(mark[:15] or "0", 16))
            with stopping() as stops:
                matcher.load()
                matcher.start()
                session.note("matching")
                waiting = threading.Event()
                while not stops and matcher.is_running:
                    waiting.wait(0.1)
                matcher.stop()
            if not stops:
                raise ended()
        finally:
            store.close()
        session.note("stopped")
        return session.status

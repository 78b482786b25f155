"""The command ``graphmatch serve``: the broker as a service."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, ClassVar

import typer

from graphmatch.command.options import Knowing, Verbosity, grouped, option

if TYPE_CHECKING:
    from fastapi import FastAPI

    from graphmatch.broker.events import Streams
    from graphmatch.broker.service import Broker
    from graphmatch.command.session import Session

app = typer.Typer(add_completion=False)

STOP_SECONDS = 10
"""So long requests that are under way may take when the service is to stop."""
_BROKER = 'pip install "graphmatch[broker]"'


@dataclass(frozen=True, slots=True)
class Serving:
    """Where the service listens, who may use it, and where it keeps what it knows."""

    panel: ClassVar = "Service"
    store: str = option(
        "broker.db", "A SQLite file, or the URL of a PostgreSQL database.", metavar="FILE|URL"
    )
    host: str = option("127.0.0.1", "The address to listen at.")
    port: int = option(8080, "The port; 0: any that is free.", min=0, max=65535)
    public: bool = option(False, "It may listen where other machines reach it; with tokens.")
    anonymous: bool = option(False, "There, too, one may publish and subscribe without a token.")
    url: str | None = option(None, "What addresses begin with, behind a proxy.", metavar="URL")
    new_token: list[str] | None = option(
        None, "Make a token of an owner and print it; repeatable.", metavar="OWNER:SCOPE,…"
    )
    snapshots: Path | None = option(
        None, "Where the engine is saved, for a quick start; beside the store.", metavar="FOLDER"
    )

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self) -> None:
        """Check that what is said goes together; raise an `InputError`."""
        from semantic.errors import InputError, Place, Problem

        if not self.is_local and not self.public:
            what = "other machines could reach this address"
            remedy = "Say --public, and give out tokens with --new-token; or use 127.0.0.1."
            raise InputError(Problem(what, Place(self.host), remedy))
        for one in self.new_token or ():
            if not all(one.partition(":")):
                what, remedy = f"{one!r} does not say what a token is for", "Write OWNER:SCOPE,…"
                raise InputError(Problem(what, Place("--new-token"), remedy))


@app.command()
@grouped
def serve(serving: Serving, knowing: Knowing, verbosity: Verbosity) -> int:
    """Keep subscriptions, take publications in, and tell who matched, over HTTP.

    Example: `graphmatch serve -o ontologies/news.ttl --store broker.db`
    """
    from graphmatch.command.session import Session

    with Session(verbosity) as session:
        serving.check()
        return run(session, serving, knowing)


def run(session: Session, serving: Serving, knowing: Knowing) -> int:
    """Serve until a signal comes; return the exit status."""
    from semantic.errors import InputError, Place, Problem

    try:
        from graphmatch.broker.matching import Matcher
        from graphmatch.broker.service import Broker
        from graphmatch.broker.store import Store
    except ImportError as error:
        raise missing(error.name) from error
    engine = session.engine(knowing)
    if len(engine):
        session.note(f"the saved engine's {len(engine):,} subscriptions are left out")
        for one in engine.subscriptions:
            engine.unsubscribe(one.id)
    try:
        listening = socket.create_server(
            (serving.host, serving.port), family=_family(serving.host), backlog=2048
        )
    except OSError as error:
        what = f"cannot be listened at: {error.strerror or error}"
        place = Place(f"{serving.host}:{serving.port}")
        raise InputError(Problem(what, place, "Use another --port, or --host.")) from error
    with listening, stopping() as stops:
        store = Store(serving.store)
        try:
            broker = Broker(store, engine)
            mark = fingerprint_of(knowing)
            snapshots = _snapshots(serving, store) if mark else None
            version = int(mark[:15] or "0", 16)
            matcher = Matcher(broker, snapshots, mark, version)
            matcher.load()
            matcher.start()
            try:
                _serve(session, serving, broker, matcher, listening, stops)
            finally:
                matcher.stop()
        finally:
            store.close()
    session.note("stopped")
    return session.status


def missing(module: str | None) -> Exception:
    """Return what is said where a package is not installed."""
    from semantic.errors import InputError, Place, Problem

    what = f"this command needs {module}, which is not installed"
    return InputError(Problem(what, Place("graphmatch serve"), f"Install it: {_BROKER}."))


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def fingerprint_of(knowing: Knowing) -> str:
    """Return a digest of the ontology and its options; empty where more than files is in it."""
    from graphmatch.command.seen import fingerprint

    loading = knowing.loading
    if loading.imports is not None or loading.fetch_imports or knowing.operators:
        return ""
    files = [*(knowing.files or ()), *(() if knowing.saved is None else (knowing.saved,))]
    made = fingerprint(files, replace(knowing, now=None))
    return "" if made is None else made.hex()


def _snapshots(serving: Serving, store: object) -> Path | None:
    if serving.snapshots is not None:
        return serving.snapshots
    is_file = "://" not in serving.store and getattr(store, "is_sqlite", False)
    return Path(f"{serving.store}.engines") if is_file else None


def _serve(
    session: Session,
    serving: Serving,
    broker: Broker,
    matcher: object,
    listening: socket.socket,
    stops: Sequence[int],
) -> None:
    """Answer requests until it is to stop."""
    import asyncio

    try:
        from graphmatch.broker.access import LOOPBACK, ApiOptions
        from graphmatch.broker.api import make_app
        from graphmatch.broker.metrics import event_log
        from graphmatch.broker.page.routes import Page, install
    except ImportError as error:
        raise missing(error.name) from error
    options = ApiOptions(
        anonymous=serving.is_local or serving.anonymous,
        hosts=LOOPBACK | {serving.host} if serving.is_local else None,
        url=serving.url,
    )
    log = None if session.verbosity.quiet else event_log()
    made = make_app(broker, matcher, options=options, log=log)  # type: ignore[arg-type]
    page = Page(broker, local=serving.is_local and serving.url is None)
    page.stopped = lambda: made.state.api.streams.stopped
    install(made, page)

    async def served() -> None:
        for one in serving.new_token or ():
            owner, _, scopes = one.partition(":")
            token = await broker.new_token(owner, scopes.split(","))
            session.out.print(f"{owner}: {token}", markup=False, soft_wrap=True)
        host, port = listening.getsockname()[:2]
        address = serving.url or f"http://{f'[{host}]' if ':' in host else host}:{port}"
        session.note(f"listening at {address}, described at {address}/docs")
        server = server_of(made, made.state.api.streams)

        async def watch() -> None:
            while not stops:
                await asyncio.sleep(0.1)
            server.should_exit = True

        watching = asyncio.create_task(watch())
        await server.serve([listening])
        watching.cancel()

    asyncio.run(served())


def server_of(app: FastAPI, streams: Streams) -> _Server:
    """Return a server for an application, which ends its streams before it waits for them."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # it has whole addresses, keys and all
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=STOP_SECONDS,
    )

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            streams.stop()
            await super().shutdown(sockets)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # the command has them

    return Server(config)


if TYPE_CHECKING:
    import uvicorn

    _Server = uvicorn.Server


@contextmanager
def stopping() -> Iterator[Sequence[int]]:
    """Yield the signals that have come, which are to stop the service."""
    come: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        come.append(number)
        if len(come) > 1:
            raise KeyboardInterrupt  # at once, then

    several = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, note) for number in several}
    try:
        yield come
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

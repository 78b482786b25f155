"""The command ``graphmatch serve``: the broker as a service."""

from __future__ import annotations

import gc
import io
import logging
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from importlib import import_module
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import typer

from graphmatch.broker.app import ROLES
from graphmatch.command.config import read_limits
from graphmatch.command.options import (
    Config,
    ConfiguredCommand,
    EngineOptions,
    FeedOptions,
    Verbosity,
    grouped,
    option,
    require,
)
from graphmatch.command.session import Session
from graphmatch.console import CommandConsole
from graphmatch.subscription_files import read_tables
from semantic.errors import InputError, Place, Problem, Severity

if TYPE_CHECKING:
    from graphmatch.broker.app.assembly import Parts
    from graphmatch.broker.models.limits import BrokerLimits
    from graphmatch.broker.outbox.email_sender import SmtpServer
    from graphmatch.broker.service.broker import Broker
    from graphmatch.broker.service.match_worker import MatchWorker

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@dataclass(frozen=True, slots=True)
class ServeOptions(FeedOptions):
    """The options for the service's address, access, store, and feeds."""

    panel: ClassVar = "Service"
    store: str = option(
        "broker.db", "SQLite file (created if missing), or PostgreSQL URL.", metavar="FILE|URL"
    )
    roles: str = option(
        ",".join(ROLES),
        "Parts of the broker to run; several processes need PostgreSQL.",
        metavar="ROLE,…",
    )
    host: str = option("127.0.0.1", "Address to listen on.")
    port: int = option(8080, "Port; 0 for any free port.", min=0, max=65535)
    public: bool = option(
        False, "Accept other machines; requests then need a token, except with --anonymous."
    )
    anonymous: bool = option(False, "Let all clients publish and subscribe without a token.")
    url: str | None = option(
        None,
        "Public address, of a proxy; requests then need a token, except with --anonymous.",
        metavar="URL",
    )
    new_token: list[str] | None = option(
        None, "Print a new token for publish, subscribe, feeds, admin.", metavar="OWNER:SCOPE,…"
    )
    snapshots: Path | None = option(
        None, "Folder for snapshots; default next to the store.", metavar="FOLDER"
    )
    cors_origin: list[str] | None = option(
        None, "Origin of web pages that may use the API; repeatable.", metavar="ORIGIN"
    )
    smtp: str | None = option(
        None,
        "Mail server, and the sender's address; the password is in GRAPHMATCH_SMTP_PASSWORD.",
        metavar="smtp[s]://[USER@]HOST[:PORT]?from=ADDRESS",
    )
    kafka: str | None = option(
        None, "Kafka servers to read publications from.", metavar="HOST:PORT,…"
    )
    kafka_topic: str = option("publications", "Kafka topic to read.", metavar="TOPIC")
    demo: bool = option(False, "Show the sample subscriptions and feeds, in a temporary store.")

    @property
    def trusts_local(self) -> bool:
        """Whether this machine's requests need no token, because no proxy lets others in."""
        return _is_loopback(self.host) and (self.url is None or _is_loopback(_host_of(self.url)))

    def check(self) -> None:
        """Raise `InputError` if options are incompatible, or an address or network is invalid."""
        if not _is_loopback(self.host) and not self.public:
            what = "other machines could reach this address"
            remedy = "Pass --public and create tokens with --new-token, or use 127.0.0.1."
            raise _wrong(what, self.host, remedy)
        if self.url is not None and not _host_of(self.url):
            what, remedy = "not a web address", "Write https://broker.example.org."
            raise _wrong(what, f"--url {self.url}", remedy)
        if unknown := sorted(set(self.roles.split(",")) - set(ROLES)):
            what, remedy = f"no role is called {unknown[0]!r}", f"There are {', '.join(ROLES)}."
            raise _wrong(what, "--roles", remedy)
        for one in self.new_token or ():
            if not all(one.partition(":")):
                what = f"{one!r} names no scope of a token"
                raise _wrong(what, "--new-token", "Write OWNER:SCOPE,…")

    def mail(self) -> SmtpServer | None:
        """Return the server that sends email, if any; raise `InputError` if it is invalid."""
        if self.smtp is None:
            return None
        from graphmatch.broker.outbox.email_sender import SmtpServer

        remedy = "Write smtp://user@host:587?from=news@example.org; smtps: for TLS from the start."
        try:
            url = urlsplit(self.smtp)
            port = url.port
        except ValueError as error:
            raise _wrong("not the address of a server", "--smtp", remedy) from error
        sender = parse_qs(url.query).get("from", [""])[0]
        if url.scheme not in ("smtp", "smtps") or not url.hostname or not sender or url.password:
            raise _wrong("not the address of a server", "--smtp", remedy)
        is_here = url.username is None and _is_loopback(url.hostname)
        return SmtpServer(
            url.hostname,
            sender,
            port or (465 if url.scheme == "smtps" else 587),
            "tls" if url.scheme == "smtps" else "none" if is_here else "starttls",
            None if url.username is None else unquote(url.username),
            os.environ.get("GRAPHMATCH_SMTP_PASSWORD", ""),
        )


@app.command(cls=ConfiguredCommand)
@grouped
def serve(
    serve_options: ServeOptions,
    engine_options: EngineOptions,
    verbosity: Verbosity,
    config: Config = None,
) -> int:
    """Run the broker: subscriptions, publications and matches over HTTP and on a web page.

    Example: `graphmatch serve -o ontologies/news.ttl --store broker.db`
    """
    with Session(verbosity) as session:
        serve_options.check()
        limits = read_limits(config)
        if config is not None and "subscription" in read_tables(config)[0]:
            what, remedy = "serve skips [[subscription]]", "Use its page or POST /v1/subscriptions."
            session.report(Problem(what, Place(str(config)), remedy, Severity.WARNING))
        if not serve_options.demo:
            return run(session, serve_options, engine_options, limits)
        files = [path for path in sorted(Path("ontologies").glob("*.*")) if path.is_file()]
        if not files or not Path("data/feeds").is_dir():
            what = "there are no samples here"
            remedy = "Run it in the project's folder, where `ontologies/` and `data/` are."
            raise _wrong(what, "--demo", remedy)
        with TemporaryDirectory(prefix="graphmatch-demo-") as folder:
            changed = replace(serve_options, store=str(Path(folder, "broker.db")))
            files = engine_options.files or files
            return run(session, changed, replace(engine_options, files=files), limits)


def run(
    session: Session,
    serve_options: ServeOptions,
    engine_options: EngineOptions,
    limits: BrokerLimits,
) -> int:
    """Run the broker until a signal arrives; return the exit status.

    It matches the subscriptions of its store; those of a saved engine are left out.
    """
    require("graphmatch serve", "broker")
    if serve_options.kafka is not None:
        require("graphmatch serve", "kafka")
    from graphmatch.broker.db.store import Store
    from graphmatch.broker.metrics import json_logging
    from graphmatch.broker.service.broker import ENGINE_LIMITS, Broker

    mail, roles = serve_options.mail(), frozenset(serve_options.roles.split(","))
    level = logging.WARNING if session.verbosity.quiet else logging.INFO
    with json_logging(level), _listening(serve_options) as listening, stopping() as stops:
        if not session.err.is_terminal:
            session.err = CommandConsole(file=LogLines())
        engine = session.engine(engine_options, ENGINE_LIMITS)
        if len(engine):
            session.note(f"the saved engine's {len(engine):,} subscriptions are left out")
            for one in engine.subscriptions:
                engine.unsubscribe(one.id)
        feeds = serve_options.listed(session.report)
        session.show_warnings()
        host, port = listening.getsockname()[:2]
        address = serve_options.url or f"http://{f'[{host}]' if ':' in host else host}:{port}"
        with closing(Store(serve_options.store)) as store:
            if store.is_sqlite and roles != set(ROLES):
                raise _wrong("only one process can use a SQLite store", "--roles", "Leave it out.")
            broker = Broker(store, engine, limits=limits)
            matcher = _match_worker(serve_options, engine_options, broker, roles)
            from graphmatch.broker.app.assembly import Parts

            kafka = serve_options.kafka
            parts = Parts(
                serve_options.allow or (),
                mail,
                feeds,
                None if kafka is None else (kafka, serve_options.kafka_topic),
                address,
                roles=roles,
                cutoff=serve_options.since,
            )
            try:
                _serve(session, serve_options, parts, broker, matcher, listening, stops)
            finally:
                if matcher is not None:
                    matcher.stop()
        session.note("stopped")
    return session.status


def _match_worker(
    serve_options: ServeOptions,
    engine_options: EngineOptions,
    broker: Broker,
    roles: frozenset[str],
) -> MatchWorker | None:
    """Return a started match worker with all subscriptions, if a role needs them.

    Import the server meanwhile, because both take a second or more.
    """
    Thread(target=import_module, args=("graphmatch.broker.app.server",), daemon=True).start()
    if roles == {"feeds"}:
        return None
    if "match" in roles:
        from graphmatch.broker.service.match_worker import MatchWorker as worker  # noqa: N813
    else:
        from graphmatch.broker.app.assembly import Follower as worker  # noqa: N813
    mark, snapshots = fingerprint_of(engine_options), serve_options.snapshots
    if snapshots is None and "://" not in serve_options.store:
        snapshots = Path(f"{serve_options.store}.engines")
    matcher = worker(broker, snapshots if mark else None, mark, int(mark[:15] or "0", 16))
    matcher.load()
    matcher.start()
    return matcher


def _wrong(what: str, where: str, remedy: str) -> Exception:
    return InputError(Problem(what, Place(where), remedy))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(url: str) -> str:
    """Return the host of a web address; empty if it has none."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # reading the port validates it
    except ValueError:
        return ""
    return parts.hostname or "" if parts.scheme in ("http", "https") else ""


@contextmanager
def _listening(serve_options: ServeOptions) -> Iterator[socket.socket]:
    """Yield a socket that listens at the service's address."""
    host, port = serve_options.host, serve_options.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
        # asyncio sets this option only for sockets with an explicit protocol.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        what = f"cannot be listened at: {error.strerror or error}"
        raise _wrong(what, f"{host}:{port}", "Use another --port, or --host.") from error
    with listening:
        yield listening


def fingerprint_of(engine_options: EngineOptions) -> str:
    """Return a digest of the ontology's files and the engine's options, for snapshots.

    It is empty if the engine also has imports or operators, or is made from a pipe.
    """
    files = [*(engine_options.files or ()), *filter(None, [engine_options.saved])]
    has_more = engine_options.ontology_options.imports or engine_options.operators
    if has_more or not all(path.is_file() for path in files):
        return ""
    options = repr((version("graphmatch"), replace(engine_options, now=None)))
    digest = blake2b(options.encode("utf-8", "surrogatepass"), digest_size=16)
    for path in files:
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _serve(
    session: Session,
    serve_options: ServeOptions,
    parts: Parts,
    broker: Broker,
    matcher: MatchWorker | None,
    listening: socket.socket,
    stops: Sequence[int],
) -> None:
    """Create and print the new tokens, then answer requests until a signal arrives."""
    import asyncio

    from graphmatch.broker.api.dependencies import LOOPBACK, ApiOptions
    from graphmatch.broker.app.assembly import started
    from graphmatch.broker.app.server import serve

    options = ApiOptions(
        local=serve_options.trusts_local,
        anonymous=serve_options.anonymous,
        hosts=LOOPBACK | {serve_options.host} if serve_options.trusts_local else None,
        url=serve_options.url,
        cors_origins=serve_options.cors_origin or (),
    )

    async def served() -> None:
        for one in serve_options.new_token or ():
            owner, _, scopes = one.partition(":")
            token = await broker.accounts.new_token(owner, scopes.split(","))
            session.out.print(f"{owner}: {token}", markup=False, soft_wrap=True)
        async with started(broker, matcher, parts, options) as app:
            session.note(f"listening at {parts.base}, described at {parts.base}/docs")
            showing = asyncio.create_task(_show_samples(broker)) if serve_options.demo else None
            await serve(app, listening, lambda: bool(stops))
            if showing is not None:
                showing.cancel()

    gc.set_threshold(50_000)  # Publications make many objects without cycles.
    gc.freeze()  # The garbage collector does not examine the objects that exist now.
    asyncio.run(served())


async def _show_samples(broker: Broker) -> None:
    """Subscribe to the sample queries, and publish the sample items one after the other."""
    import asyncio
    from datetime import timedelta

    from graphmatch.broker.api.dependencies import LOCAL_SCOPES, local_owner
    from graphmatch.broker.app.security import Principal
    from graphmatch.broker.models.subscription_settings import SubscriptionSettings
    from graphmatch.broker.service.publications import Addition
    from semantic.reading import read_publications

    by = Principal(await local_owner(broker), LOCAL_SCOPES)
    for path in sorted(Path("data/subscriptions").glob("*.rq")):
        settings = SubscriptionSettings(name=path.stem, expires_in=timedelta(days=7))
        await broker.subscriptions.subscribe(
            {"query": path.read_text(encoding="utf-8")}, settings, by
        )
    items = await asyncio.to_thread(lambda: list(read_publications("data/feeds")))
    for number, item in enumerate(items):
        await broker.publications.add(Addition([item], "data/feeds"))
        await asyncio.sleep(0 if number < len(items) // 2 else 2)


class LogLines(io.StringIO):
    """A stream whose lines are written to the log; refusals and warnings are its warnings."""

    def write(self, text: str, /) -> int:
        """Write lines to the log."""
        for line in filter(str.strip, text.splitlines()):
            level = logging.WARNING if line.startswith(("refused", "warning")) else logging.INFO
            logging.getLogger("graphmatch.command").log(level, line)
        return len(text)


@contextmanager
def stopping() -> Iterator[Sequence[int]]:
    """Yield a list to which each SIGINT or SIGTERM in the block is added.

    The service must stop if it is not empty. A second signal raises `KeyboardInterrupt`.
    """
    come: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        come.append(number)
        if len(come) > 1:
            raise KeyboardInterrupt  # stop at once

    several = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, note) for number in several}
    try:
        yield come
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

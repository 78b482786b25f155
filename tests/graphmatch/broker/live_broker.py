"""A broker that serves on loopback, in threads of this process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any, Self, TypeVar

from fastapi import FastAPI
from lxml import html
from sqlalchemy import Connection

from graphmatch.broker.api.app import make_app
from graphmatch.broker.api.dependencies import Api
from graphmatch.broker.app.server import server_of
from graphmatch.broker.client import Client
from graphmatch.broker.db.store import Store
from graphmatch.broker.models.limits import BrokerLimits
from graphmatch.broker.outbox.dispatcher import Dispatcher
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from graphmatch.engine import Engine
from semantic.ontology.ontology import Ontology
from tests.waiting import wait

T = TypeVar("T")
ALL = "SELECT ?s WHERE { ?s a <urn:C> }"
TURTLE = {"Content-Type": "text/turtle"}

NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  {sites}
}}
"""
"""Settings of nginx as a process of one test, with its ``sites``."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def page(self) -> html.HtmlElement:
        return html.document_fromstring(self.text)

    def all(self, selector: str) -> list[str]:
        """Return the texts of elements by an XPath."""
        found = self.page.xpath(selector)
        texts = (one if isinstance(one, str) else one.text_content() for one in found)
        return [" ".join(text.split()) for text in texts]


class Clock:
    """The system time plus an offset that tests set."""

    def __init__(self) -> None:
        self.forward = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.forward


class Called:
    """A client of a server on a loopback port."""

    port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(
        self,
        method: str,
        path: str,
        body: bytes | str | Mapping[str, Any] | list[Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Answer:
        sent = dict(headers or {})
        if isinstance(body, Mapping | list):
            body, sent = json.dumps(body), {"Content-Type": "application/json"} | sent
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, sent, **more)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, named, answer.read())
        finally:
            connection.close()


class LiveBroker(Called):
    """A broker with its matcher and server, which can restart on one store."""

    def __init__(
        self,
        folder: Path,
        *,
        limits: BrokerLimits | None = None,
        matching: bool = True,
        knowing: Sequence[Path] = (),
        **more: Any,
    ) -> None:
        self._knowing = knowing
        self._folder, self._limits, self._matching, self._more = folder, limits, matching, more
        self.clock = Clock()
        self.port = 0
        self._errors: list[BaseException] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        assert not self._errors

    def start(self) -> None:
        self.store = Store(str(self._folder / "broker.db"))
        ontology = Ontology.load(*self._knowing) if self._knowing else None
        self.broker = Broker(self.store, Engine(ontology), self.clock, self._limits)
        self.matcher = MatchWorker(self.broker)
        if self._matching:
            self.matcher.load()
            self.matcher.start()
        self.app = self.make()
        self.streams = self.app.state.api.streams
        self.server = server_of(self.app)
        listening = socket.create_server(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        self._thread = Thread(target=self._serve, args=(listening,))
        self._thread.start()
        wait(lambda: self.server.started)

    def make(self) -> FastAPI:
        from tests.graphmatch.broker.page_client import Polled

        dispatcher = Dispatcher(self.broker, None)  # type: ignore[arg-type]  # It sends nothing.
        more = {"feeds": Polled(self.clock()), "retry": dispatcher.retry} | self._more
        return make_app(Api(self.broker, self.matcher, **more))

    def _serve(self, listening: socket.socket) -> None:
        with listening:
            asyncio.run(self._served(listening))

    async def _served(self, listening: socket.socket) -> None:
        self.server_loop = asyncio.get_running_loop()
        await self.server.serve([listening])

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join()
        if self._matching:
            self.matcher.stop()
        self.store.close()

    def wait_for(self, coming: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop."""
        return asyncio.run_coroutine_threadsafe(coming, self.server_loop).result(10)

    def client(self, token: str | None = None) -> Client:
        return Client(self.url, token)

    def raw(self, data: bytes) -> bytes:
        """Send bytes, and return the first bytes of the response."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            return connection.recv(65536)

    def subscribe(self, query: str | None = ALL, **more: Any) -> tuple[str, dict[str, str]]:
        """Return a subscription's id, and the header with its ticket."""
        definition = more if query is None else {"query": query, **more}
        made = self.call("POST", "/v1/subscriptions", definition)
        assert made.status == 201, made.content
        return made.json["id"], {"Authorization": f"Ticket {made.json['ticket']}"}

    def publish(self, text: str = "<urn:a> a <urn:C> .", **headers: str) -> int:
        """Publish Turtle; return its number in the log."""
        said = self.call("POST", "/v1/publications", text, TURTLE | headers)
        assert said.status == 202, said.content
        return int(said.json["publications"][0]["seq"])

    def caught_up(self) -> None:
        """Wait until the engine has all active subscriptions."""
        from sqlalchemy import select

        from graphmatch.broker.db.tables import subscriptions

        chosen = select(subscriptions.c.number).where(subscriptions.c.state == "active")
        active = {str(number) for number in self.read(lambda db: db.scalars(chosen).all())}
        wait(lambda: active <= {one.id for one in self.broker.engine.subscriptions})

    def settled(self) -> None:
        """Wait until all publications are matched."""
        from sqlalchemy import func, select

        from graphmatch.broker.db.tables import publications

        waiting = select(func.count()).where(publications.c.matched_at.is_(None))
        wait(lambda: self.read(lambda db: db.scalar(waiting)) == 0)

    def read(self, work: Callable[[Connection], T]) -> T:
        return self.store.read_now(work)


class Process(Called):
    """The program ``graphmatch`` in its own process, until the block ends."""

    def __init__(
        self, folder: Path, *arguments: str, says: str = r"listening at http://[^:]+:(\d+),"
    ):
        self._log, self._says = folder / f"{id(self):x}.log", says
        self._command = [sys.executable, "-c", "from graphmatch.cli import main; main()"]
        self._command += arguments

    def __enter__(self) -> Self:
        root = Path(__file__).parents[3]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command, cwd=root, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            wait(lambda: re.search(self._says, self.said) is not None or not self.runs, 60)
            found = re.search(self._says, self.said)
            assert found is not None, self.said
            if found.lastindex:
                self.port = int(found[1])
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def counted(self, name: str) -> float:
        """Return a counter from the metrics."""
        text = self.call("GET", "/metrics").content.decode()
        found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        assert found is not None, text
        return float(found[1])

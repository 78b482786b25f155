"""The HTTP server of a broker: uvicorn with limits, on a socket that listens already.

The server has no time limit for slow clients and no rate limit for connections. A proxy in front of
it provides both for public use, see the operator's guide.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from graphmatch.broker.app.assembly import STOP_SECONDS

if TYPE_CHECKING:
    from fastapi import FastAPI

HEAD_BYTES = 100_000
"""Approximate maximum size of the head of a request."""


def server_of(app: FastAPI) -> _Server:
    """Return a server of an application. It ends event streams before it waits for requests."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        log_config=None,
        access_log=False,  # Addresses can contain keys.
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    return _Server(config)


async def serve(app: FastAPI, listening: socket.socket, is_over: Callable[[], bool]) -> None:
    """Answer requests until `is_over` returns true, which is checked ten times per second.

    Parameters
    ----------
    listening
        A socket that listens.
    """
    server = server_of(app)
    server.is_over = is_over
    await server.serve([listening])


class _Protocol(HttpToolsProtocol):
    """A connection that is closed if the head of a request is too large."""

    _head = 0
    """Number of bytes since the last complete head or part of a body."""

    def data_received(self, data: bytes) -> None:
        self._head += len(data)
        super().data_received(data)
        if self._head > HEAD_BYTES:
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._head = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head = 0
        super().on_body(body)


class _Server(uvicorn.Server):
    """A server that ends event streams first, and leaves signals to the command."""

    is_over: Callable[[], bool] = staticmethod(lambda: False)

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self.is_over()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.api.streams.stop()  # type: ignore[union-attr]
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

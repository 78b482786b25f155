"""Fetch one imported ontology over http or https: only when the user has asked for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http.client import HTTPException
from threading import Thread
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from pyoxigraph import RdfFormat

from semantic.errors import InputError, Place, Problem
from semantic.limits import Limits

_ACCEPT = (
    "text/turtle, application/rdf+xml;q=0.9, application/n-triples;q=0.9, "
    "application/ld+json;q=0.8, application/owl+xml;q=0.7, */*;q=0.1"
)
_PIECE = 1 << 16
_REMEDY = "Save it in a file, and load that too; what it says is left out."


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document from the network: where it came from in the end, and what it is."""

    address: str
    data: bytes
    syntax: RdfFormat | None


def fetch(address: str, limits: Limits) -> Fetched:
    """Fetch a document.

    Parameters
    ----------
    limits
        `Limits.document_bytes`, and `Limits.fetch_seconds` for all of it.

    Raises
    ------
    InputError
        When it cannot be had: no such address, too large, too slow, neither http nor https.
    """
    # In a thread, for neither a look-up of a name nor a server that sends a byte now and then is
    # bounded. A thread that is given up ends at its next piece, or when the server does.
    task = _Fetching(address, limits)
    task.start()
    task.join(limits.fetch_seconds)
    if task.is_alive():
        raise _too_slow(address, limits)
    if isinstance(task.result, InputError):
        raise task.result
    return task.result


class _Fetching(Thread):
    """Fetches a document; then `result` is what was fetched, or why it could not be."""

    result: Fetched | InputError

    def __init__(self, address: str, limits: Limits) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._limits = limits

    def run(self) -> None:
        """Fetch."""
        try:
            self.result = _fetch(self._address, self._limits)
        except InputError as error:
            self.result = error


def _fetch(address: str, limits: Limits) -> Fetched:
    end = time.monotonic() + limits.fetch_seconds
    try:
        scheme = urlsplit(address).scheme
    except ValueError as error:
        raise _failed(address, error) from error
    if scheme not in ("http", "https"):
        raise InputError(Problem("neither http nor https", Place(address), _REMEDY))
    request = Request(address, headers={"Accept": _ACCEPT, "User-Agent": "graphmatch"})  # noqa: S310
    try:
        with _opener().open(request, timeout=limits.fetch_seconds) as response:
            pieces: list[bytes] = []
            size = 0
            while piece := response.read1(_PIECE):
                size += len(piece)
                pieces.append(piece)
                _check(address, size, end, limits)
            syntax = _syntax(response.headers.get_content_type())
            return Fetched(response.url, b"".join(pieces), syntax)
    except (URLError, HTTPException, OSError, ValueError) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise _failed(address, error) from error


def _syntax(media_type: str) -> RdfFormat | None:
    """Return the syntax that a media type says; plain text says none, though it may be any."""
    return None if media_type == "text/plain" else RdfFormat.from_media_type(media_type)


def _failed(address: str, error: Exception) -> InputError:
    what = f"it could not be fetched: {error}"
    return InputError(Problem(what, Place(address), _REMEDY))


def _too_slow(address: str, limits: Limits) -> InputError:
    what = f"it took more than {limits.fetch_seconds:g} seconds"
    return InputError(Problem(what, Place(address), _REMEDY))


def _check(address: str, size: int, end: float, limits: Limits) -> None:
    if size > limits.document_bytes:
        what = f"larger than {limits.document_bytes:,} bytes"
        raise InputError(Problem(what, Place(address), _REMEDY))
    if time.monotonic() > end:
        raise _too_slow(address, limits)


def _opener() -> OpenerDirector:
    """Return what opens http and https, and nothing else: no files, no FTP."""
    opener = OpenerDirector()
    for handler in (
        ProxyHandler,
        UnknownHandler,
        HTTPHandler,
        HTTPSHandler,
        HTTPDefaultErrorHandler,
        HTTPRedirectHandler,
        HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener

"""Fetch one imported ontology over http or https: only when the user has asked for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import URLError
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
    if urlsplit(address).scheme not in ("http", "https"):
        raise InputError(Problem("neither http nor https", Place(address), _REMEDY))
    end = time.monotonic() + limits.fetch_seconds
    request = Request(address, headers={"Accept": _ACCEPT, "User-Agent": "graphmatch"})  # noqa: S310
    try:
        with _opener().open(request, timeout=limits.fetch_seconds) as response:
            pieces: list[bytes] = []
            size = 0
            while piece := response.read1(_PIECE):
                size += len(piece)
                pieces.append(piece)
                _check(address, size, end, limits)
            syntax = RdfFormat.from_media_type(response.headers.get_content_type())
            return Fetched(response.url, b"".join(pieces), syntax)
    except (URLError, HTTPException, OSError, ValueError) as error:
        what = f"it could not be fetched: {error}"
        raise InputError(Problem(what, Place(address), _REMEDY)) from error


def _check(address: str, size: int, end: float, limits: Limits) -> None:
    if size > limits.document_bytes:
        what = f"larger than {limits.document_bytes:,} bytes"
    elif time.monotonic() > end:
        what = f"it took more than {limits.fetch_seconds:g} seconds"
    else:
        return
    raise InputError(Problem(what, Place(address), _REMEDY))


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

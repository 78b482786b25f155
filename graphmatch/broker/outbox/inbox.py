"""Notifications for inboxes of Linked Data Notifications.

Sources: https://www.w3.org/TR/ldn/, https://www.w3.org/TR/activitystreams-vocabulary/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin

from pyoxigraph import RdfFormat, parse

from graphmatch.broker.outbox.safe_http import HttpClient
from graphmatch.broker.outbox.websub_protocol import header_links

_INBOX = "http://www.w3.org/ns/ldp#inbox"
_ACCEPT = {"Accept": "text/turtle, application/ld+json;q=0.9"}
_REDIRECTS = 3
_TARGET_BYTES = 200_000
"""Maximum size of a document that may name an inbox."""


def announce(
    frame: Mapping[str, Any], summary: str, own: str, views: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return an ActivityStreams ``Announce`` of the publications of some matches.

    Parameters
    ----------
    own
        URL of the subscription, which is announced if there are no matches.
    """
    names = {"id": "id", "name": "title", "url": "link", "summary": "summary"}
    items = [view["publication"] for view in views]
    documents = [
        {"type": "Document"} | {key: item[name] for key, name in names.items() if item[name]}
        for item in items
    ]
    return {
        "@context": "https://www.w3.org/ns/activitystreams",
        "type": "Announce",
        "id": frame["link"],
        "actor": own,
        "summary": summary,
        "published": frame["timestamp"],
        "object": documents or [own],
    }


async def inbox_of(client: HttpClient, target: str) -> str:
    """Return the inbox that a target names in its ``Link`` or its RDF, or else the target.

    Source: https://www.w3.org/TR/ldn/#discovery.

    Raises
    ------
    ForbiddenAddressError, UnreachableError
        See `HttpClient.request`.
    """
    options: dict[str, Any] = {"limit": _TARGET_BYTES, "redirects": _REDIRECTS, "whole": False}
    for method in ("HEAD", "GET"):
        reply = await client.request(method, target, headers=_ACCEPT, **options)
        for name, to in header_links(reply.headers.getall("Link", [])):
            if name == _INBOX:
                with suppress(ValueError):  # The link is not a URL.
                    return urljoin(reply.url, to)
    syntax = RdfFormat.from_media_type(reply.headers.get("Content-Type", ""))
    if reply.status == HTTPStatus.OK and not reply.truncated and syntax is not None:
        with suppress(SyntaxError, ValueError, OSError):  # The body is not RDF.
            for triple in parse(reply.body, syntax, base_iri=reply.url):
                about = getattr(triple.subject, "value", "").partition("#")[0]
                if triple.predicate.value == _INBOX and about in (target, reply.url):
                    return str(getattr(triple.object, "value", target))
    return target

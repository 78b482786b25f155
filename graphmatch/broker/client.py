"""A client of the broker's API.

It follows no redirects, so it sends the token to no other server. It sends a request again if the
broker did not answer, and a publication each time with the same ``Idempotency-Key``, so that it is
accepted once. An interrupted stream of events continues after the last event.
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
from pydantic import BaseModel, Field, TypeAdapter

from graphmatch.broker.models.match import MatchView
from graphmatch.broker.models.publication import PublishReceipt
from semantic.errors import GraphMatchError, Place, Problem

TRIES = 4
"""Number of attempts to send a request that reads or has an ``Idempotency-Key``."""
_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.2, 30.0
_REPEATED = frozenset({0, 429, 502, 503, 504})
"""Statuses after which a request is sent again; 0 stands for no answer."""
_SILENCE_SECONDS = 60.0
"""Time without a sign of life after which a stream is opened again."""


class BrokerError(GraphMatchError):
    """The broker refused a request or did not answer.

    Attributes
    ----------
    status
        Status of HTTP; 0 without an answer.
    """

    def __init__(self, status: int, problem: Problem) -> None:
        super().__init__(problem)
        self.status = status


class Subscribed(BaseModel):
    """A new subscription. The broker shows its ticket only once.

    Attributes
    ----------
    id, ticket
        They give access to the subscription.
    secret
        Key of a webhook's signatures.
    read_key
        Gives access to the matches in addresses.
    expires_at
        End of the subscription.
    links
        Addresses of the subscription's parts, for example of its ``feed``.
    """

    id: str
    ticket: str = Field(repr=False)
    secret: str | None = Field(repr=False)
    read_key: str = Field(repr=False)
    expires_at: datetime | None
    links: dict[str, str] = Field(repr=False)


class Client:
    """A client of one broker. Its methods wait for the answer and may run in several threads.

    Parameters
    ----------
    url
        Address of the broker.
    token
        API token. A ticket as the argument of a method replaces it.
    timeout
        Time limit for a part of an answer, in seconds.

    Examples
    --------
    ::

        client = Client("http://127.0.0.1:8080")
        created = client.subscribe(query="SELECT ?s WHERE { ?s a <urn:C> }")
        client.publish("<urn:a> a <urn:C> .", "text/turtle")
        for match in client.events(created.id, created.ticket, since=0):
            print(match.publication.id, match.solutions)
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            problem = Problem("not the address of a broker", Place(url), "Use an http: URL.")
            raise BrokerError(0, problem)
        self._url, self._token = url.rstrip("/"), token
        # Each request has its own connection, so a client holds none and needs no end.
        limits = httpx2.Limits(max_keepalive_connections=0)
        self._http = httpx2.Client(timeout=timeout, limits=limits, trust_env=False)

    def subscribe(self, **fields: Any) -> Subscribed:
        """Create a subscription.

        Parameters
        ----------
        fields
            Fields of ``POST /v1/subscriptions``: ``query``, ``where``, or ``topics``, ``words``,
            ``not_topics`` and ``not_words``; ``name``, ``sink``, ``expires_in``, ``digest`` and
            ``quiet_hours``.
        """
        return Subscribed(**self.request("POST", "/v1/subscriptions", json=fields))

    def subscribe_many(self, requests: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Create subscriptions; return the receipt or the problem of each in order."""
        lines = "\n".join(json.dumps(fields) for fields in requests)
        headers = {"Content-Type": "application/x-ndjson"}
        answer = self.request("POST", "/v1/subscriptions:bulk", content=lines, headers=headers)
        return list(answer["subscriptions"])

    def subscription(self, id: str, ticket: str | None = None) -> dict[str, Any]:
        """Return a subscription."""
        return self.request("GET", _path(id), ticket)

    def change(self, id: str, ticket: str | None = None, **fields: Any) -> dict[str, Any]:
        """Change fields of a subscription; return it with the secret of a new webhook.

        ``expires_in`` renews it, and ``state`` is ``"paused"`` or ``"active"``.
        """
        return self.request("PATCH", _path(id), ticket, json=fields)

    def unsubscribe(self, id: str, ticket: str | None = None) -> None:
        """End a subscription."""
        self.request("DELETE", _path(id), ticket)

    def backtest(self, **fields: Any) -> dict[str, Any]:
        """Return the stored publications that a subscription would have matched.

        Parameters
        ----------
        fields
            ``query``, ``where``, or ``topics``, ``words``, ``not_topics`` and ``not_words``.
        """
        return self.request("POST", "/v1/subscriptions:backtest", json=fields)

    def publish(
        self, data: bytes | str, media_type: str = "", id: str | None = None, key: str | None = None
    ) -> PublishReceipt:
        """Publish a document. It is stored when this returns.

        Parameters
        ----------
        data
            RDF, a feed, or lines of JSON.
        media_type
            Media type of the data; by default the broker detects the syntax.
        id
            Id of a publication that has none.
        key
            Idempotency key; by default a random one.
        """
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        headers["Content-Type"] = media_type or "application/octet-stream"
        path = "/v1/publications" if id is None else f"/v1/publications?id={quote(id, safe='')}"
        receipt = self.request("POST", path, content=data, headers=headers)
        return PublishReceipt.model_validate(receipt)

    def matches(self, id: str, ticket: str | None = None, *, since: int = 0) -> Iterator[MatchView]:
        """Yield the stored matches after a number, oldest first."""
        pages = self._pages(f"{_path(id)}/matches?since={since}", "matches", ticket)
        return map(MatchView.model_validate, pages)

    def events(
        self, id: str, ticket: str | None = None, *, since: int | None = None
    ) -> Iterator[MatchView]:
        """Yield matches as they arrive, until the subscription ends. Connect again if needed.

        Parameters
        ----------
        since
            Number of the last known match; ``None`` for new matches only.
        """
        wait, url, headers = _WAIT_SECONDS, f"{self._url}{_path(id)}/events", self._headers(ticket)
        if since is not None:
            headers["Last-Event-ID"] = str(since)
        while True:
            with (
                suppress(httpx2.TransportError),  # The connection was interrupted.
                self._http.stream("GET", url, headers=headers, timeout=_SILENCE_SECONDS) as stream,
            ):
                if stream.status_code == 204:
                    return
                if stream.status_code >= 400 and stream.status_code not in _REPEATED:
                    raise _refused(stream.status_code, stream.read())
                for event in httpx2.EventSource(stream) if stream.status_code == 200 else ():
                    wait = _WAIT_SECONDS
                    if event.event == "ended":
                        return
                    if event.event == "match":
                        yield MatchView.model_validate_json(event.data)
                    if event.id:
                        headers["Last-Event-ID"] = event.id
            time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311 -- no secret
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)

    def match(self, seq: int, ticket: str | None = None) -> MatchView:
        """Return a match with all stored solutions."""
        return MatchView.model_validate(self.request("GET", f"/v1/matches/{seq}", ticket))

    def why(self, seq: int, ticket: str | None = None) -> dict[str, Any]:
        """Return a match and its reasons."""
        return self.request("GET", f"/v1/matches/{seq}/why", ticket)

    def deliveries(self, id: str, ticket: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the deliveries of a subscription, newest first."""
        return self._pages(f"{_path(id)}/deliveries", "deliveries", ticket)

    def retry(self, delivery: int, ticket: str | None = None) -> dict[str, Any]:
        """Send a delivery again."""
        return self.request("POST", f"/v1/deliveries/{delivery}/retry", ticket)

    def request(
        self,
        method: str,
        path: str,
        ticket: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Send a request to any endpoint; return the JSON of the answer.

        Parameters
        ----------
        path
            The path after the address of the broker, for example ``/v1/feeds``.
        options
            ``json``, ``content`` or ``params``, see `httpx2.request`.
        """
        sent = {**self._headers(ticket), **(headers or {})}
        tries = TRIES if method == "GET" or "Idempotency-Key" in sent else 1
        attempt = 0
        while True:
            attempt += 1
            try:
                response = self._http.request(method, self._url + path, headers=sent, **options)
                if response.is_success:
                    return dict(response.json()) if response.content else {}
                refused = _refused(response.status_code, response.content)
            except httpx2.TransportError as error:
                what = f"the broker does not answer: {str(error) or type(error).__name__}"
                remedy = "Check the address, and that the broker runs."
                refused = BrokerError(0, Problem(what, Place(self._url), remedy))
            if attempt == tries or refused.status not in _REPEATED:
                raise refused
            time.sleep(_WAIT_SECONDS * 2 ** (attempt - 1))

    def _headers(self, ticket: str | None) -> dict[str, str]:
        if ticket is not None:
            return {"Authorization": f"Ticket {ticket}"}
        return {} if self._token is None else {"Authorization": f"Bearer {self._token}"}

    def _pages(self, path: str | None, key: str, ticket: str | None) -> Iterator[dict[str, Any]]:
        """Yield the entries of all pages of a list."""
        while path is not None:
            page = self.request("GET", path, ticket)
            yield from page[key]
            # The address may contain another name of the broker.
            path = page["next"] and "/v1/" + page["next"].partition("/v1/")[2]


def _path(id: str) -> str:
    return f"/v1/subscriptions/{quote(id, safe='')}"


def _refused(status: int, content: bytes) -> BrokerError:
    """Return the error of an answer, which may come from another server."""
    try:
        return BrokerError(status, TypeAdapter(Problem).validate_json(content))
    except ValueError:
        what, remedy = f"an answer with the status {status}", "Check the address of the broker."
        return BrokerError(status, Problem(what, Place("broker"), remedy))

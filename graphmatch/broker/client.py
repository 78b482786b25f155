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
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx2

from semantic.errors import GraphMatchError, Place, Problem

TRIES = 4
"""Number of attempts to send a request that may be repeated."""
_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.2, 30.0
_REPEATED = frozenset({429, 502, 503, 504})
"""Statuses after which a request is sent again."""
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


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A new subscription. The broker shows its ticket only once.

    Parameters
    ----------
    id, ticket
        They give access to the subscription.
    secret
        Key of a webhook's signatures.
    read_key
        Gives access to the matches in addresses.
    expires_at
        End of the subscription.
    feed
        Address of the Atom feed.
    """

    id: str
    ticket: str = field(repr=False)
    secret: str | None = field(repr=False)
    read_key: str = field(repr=False)
    expires_at: datetime | None
    feed: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Published:
    """Stored publications.

    Parameters
    ----------
    publications
        The number in the log and the id of each.
    problems
        Refused parts of the document.
    """

    publications: tuple[tuple[int, str], ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class MatchEvent:
    """A match.

    Parameters
    ----------
    seq
        Number of the match, in the order of events.
    subscription
        Id of the subscription.
    publication, publication_seq
        Id of the publication, and its number in the log.
    solutions
        Bindings with terms in N-Triples; of CONSTRUCT the lines of ``graph``.
    truncated
        Whether solutions are missing.
    at
        Time of the match.
    title, link
        Title and link of the publication.
    """

    seq: int
    subscription: str
    publication: str
    publication_seq: int
    solutions: list[dict[str, str]] | dict[str, list[str]]
    truncated: bool
    at: datetime
    title: str | None = None
    link: str | None = None

    @classmethod
    def from_json(cls, match: Mapping[str, Any]) -> Self:
        """Return a match of the API."""
        same = {key: match[key] for key in ("seq", "subscription", "solutions", "truncated")}
        publication, at = match["publication"], datetime.fromisoformat(match["matched_at"])
        about = {key: publication[key] for key in ("title", "link")}
        id, seq = publication["id"], publication["seq"]
        return cls(publication=id, publication_seq=seq, at=at, **same, **about)


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
        for event in client.events(created.id, created.ticket, since=0):
            print(event.solutions)
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

    # -- subscriptions ----------------------------------------------------------------------

    def subscribe(self, **fields: Any) -> Subscribed:
        """Create a subscription.

        Parameters
        ----------
        fields
            Fields of ``POST /v1/subscriptions``: ``query``, ``where``, or ``topics``, ``words`` and
            ``not_words``; ``name``, ``sink``, ``expires_in``, ``digest`` and ``quiet_hours``.
        """
        made = self._json("POST", "/v1/subscriptions", json=_fields(fields))
        end = made["expires_at"] and datetime.fromisoformat(made["expires_at"])
        secret, feed = made["secret"], made["links"]["feed"]
        return Subscribed(made["id"], made["ticket"], secret, made["read_key"], end, feed)

    def subscribe_many(self, requests: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Create subscriptions; return the receipt or the problem of each in order."""
        lines = "\n".join(json.dumps(_fields(one)) for one in requests)
        headers = {"Content-Type": "application/x-ndjson"}
        answer = self._json("POST", "/v1/subscriptions:bulk", content=lines, headers=headers)
        return list(answer["subscriptions"])

    def subscription(self, id: str, ticket: str | None = None) -> dict[str, Any]:
        """Return a subscription."""
        return self._json("GET", _own(id), ticket, repeat=True)

    def change(self, id: str, ticket: str | None = None, **fields: Any) -> dict[str, Any]:
        """Change fields of a subscription; return it with the secret of a new webhook."""
        return self._json("PATCH", _own(id), ticket, json=_fields(fields))

    def renew(self, id: str, ticket: str | None = None, expires_in: int = 0) -> dict[str, Any]:
        """Set the end of a subscription, in seconds from now. 0 is the longest validity."""
        return self.change(id, ticket, expires_in=expires_in)

    def pause(self, id: str, ticket: str | None = None) -> dict[str, Any]:
        """Stop the matching of a subscription."""
        return self.change(id, ticket, state="paused")

    def resume(self, id: str, ticket: str | None = None) -> dict[str, Any]:
        """Resume the matching of a subscription."""
        return self.change(id, ticket, state="active")

    def unsubscribe(self, id: str, ticket: str | None = None) -> None:
        """End a subscription."""
        self._request("DELETE", _own(id), ticket)

    # -- insight ----------------------------------------------------------------------------

    def backtest(self, **fields: Any) -> dict[str, Any]:
        """Return the stored publications that a subscription would have matched.

        Parameters
        ----------
        fields
            ``query``, ``where``, or ``topics``, ``words`` and ``not_words``.
        """
        return self._json("POST", "/v1/subscriptions:backtest", json=_fields(fields))

    def preview(self, **fields: Any) -> dict[str, Any]:
        """Return the same for recent publications, within about a second."""
        return self._json("POST", "/v1/subscriptions:preview", json=_fields(fields), repeat=True)

    def facts(self, publication: int) -> dict[str, Any]:
        """Return the facts of a publication with their generalisations."""
        return self._json("GET", f"/v1/publications/{publication}/facts", repeat=True)

    def query_of(self, publication: int, facts: Iterable[str]) -> str:
        """Return the query for facts of a publication, by their keys."""
        path, body = f"/v1/publications/{publication}/query", {"facts": list(facts)}
        return str(self._json("POST", path, json=body, repeat=True)["query"])

    def why_not(self, id: str, publication: int, ticket: str | None = None) -> dict[str, Any]:
        """Return why a subscription matches a stored publication, or the first failed condition."""
        query = {"publication": publication}
        return self._json("GET", f"{_own(id)}/why", ticket, params=query, repeat=True)

    def health(self, ticket: str | None = None) -> dict[str, Any]:
        """Return faults of the token's subscriptions, or of the ticket's."""
        return self._json("GET", "/v1/subscription-health", ticket, repeat=True)

    def what_if(self, ontology: bytes | str, media_type: str = "text/turtle") -> dict[str, Any]:
        """Return the subscriptions that would gain or lose matches with another ontology."""
        headers = {"Content-Type": media_type}
        return self._json("POST", "/v1/ontology:what-if", content=ontology, headers=headers)

    # -- feeds ------------------------------------------------------------------------------

    def feeds(self) -> Iterator[dict[str, Any]]:
        """Yield the followed feeds."""
        return self._pages("/v1/feeds", "feeds")

    def feed(self, id: str) -> dict[str, Any]:
        """Return a followed feed."""
        return self._json("GET", f"/v1/feeds/{quote(id, safe='')}", repeat=True)

    def add_feed(self, url: str, title: str = "") -> dict[str, Any]:
        """Follow a feed."""
        return self._json("POST", "/v1/feeds", json={"url": url, "title": title}, repeat=True)

    def remove_feed(self, id: str) -> None:
        """Stop following a feed."""
        self._request("DELETE", f"/v1/feeds/{quote(id, safe='')}")

    def import_feeds(self, opml: bytes | str) -> dict[str, Any]:
        """Follow the feeds of an OPML document; return the numbers and problems."""
        headers = {"Content-Type": "text/x-opml"}
        return self._json("POST", "/v1/feeds.opml", content=opml, headers=headers, repeat=True)

    def export_feeds(self) -> str:
        """Return the followed feeds as OPML."""
        return self._request("GET", "/v1/feeds.opml", repeat=True).decode()

    # -- publications -----------------------------------------------------------------------

    def publish(
        self,
        data: bytes | str,
        media_type: str = "",
        *,
        id: str | None = None,
        key: str | None = None,
    ) -> Published:
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
        request: dict[str, Any] = {"content": data, "headers": headers, "repeat": True}
        if id is not None:
            request["params"] = {"id": id}
        answer = self._json("POST", "/v1/publications", **request)
        publications = tuple((one["seq"], one["id"]) for one in answer["publications"])
        return Published(publications, tuple(map(_problem, answer["problems"])))

    # -- matches and deliveries -------------------------------------------------------------

    def matches(
        self, id: str, ticket: str | None = None, *, since: int = 0, key: str | None = None
    ) -> Iterator[MatchEvent]:
        """Yield the stored matches after a number, oldest first."""
        page: dict[str, Any] = {"next": "", "last": since}
        while page["next"] is not None:
            query = {"since": page["last"]} | ({} if key is None else {"key": key})
            page = self._json("GET", f"{_own(id)}/matches", ticket, params=query, repeat=True)
            yield from map(MatchEvent.from_json, page["matches"])

    def events(
        self,
        id: str,
        ticket: str | None = None,
        *,
        since: int | None = None,
        key: str | None = None,
    ) -> Iterator[MatchEvent]:
        """Yield matches as they arrive, until the subscription ends. Connect again if needed.

        Parameters
        ----------
        since
            Number of the last known match; ``None`` for new matches only.
        key
            Key for reading, instead of the ticket.
        """
        query: dict[str, Any] = {} if key is None else {"key": key}
        if since is not None:
            query["since"] = since
        wait, url = _WAIT_SECONDS, self._url + f"{_own(id)}/events"
        options: dict[str, Any] = {"headers": self._headers(ticket), "timeout": _SILENCE_SECONDS}
        while True:
            try:
                with self._http.stream("GET", url, params=query, **options) as response:
                    if response.status_code == 204:
                        return
                    if response.status_code >= 400:
                        raise _refused(response.status_code, response.read())
                    for event in httpx2.EventSource(response):
                        wait = _WAIT_SECONDS
                        if event.event == "ended":
                            return
                        if event.event == "match":
                            yield MatchEvent.from_json(json.loads(event.data))
                        if event.id:
                            query["since"] = event.id
            except BrokerError as error:
                if error.status not in _REPEATED:
                    raise
            except httpx2.TransportError:
                pass  # The connection was interrupted.
            time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311 -- no secret
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)

    def match(self, seq: int, ticket: str | None = None) -> MatchEvent:
        """Return a match with all stored solutions."""
        return MatchEvent.from_json(self._json("GET", f"/v1/matches/{seq}", ticket, repeat=True))

    def why(self, seq: int, ticket: str | None = None) -> dict[str, Any]:
        """Return a match and its reasons."""
        return self._json("GET", f"/v1/matches/{seq}/why", ticket, repeat=True)

    def deliveries(self, id: str, ticket: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the deliveries of a subscription, newest first."""
        return self._pages(f"{_own(id)}/deliveries", "deliveries", ticket)

    def retry(self, delivery: int, ticket: str | None = None) -> dict[str, Any]:
        """Send a delivery again."""
        return self._json("POST", f"/v1/deliveries/{delivery}/retry", ticket)

    # -- requests ---------------------------------------------------------------------------

    def _headers(self, ticket: str | None) -> dict[str, str]:
        if ticket is not None:
            return {"Authorization": f"Ticket {ticket}"}
        return {} if self._token is None else {"Authorization": f"Bearer {self._token}"}

    def _pages(
        self, path: str | None, key: str, ticket: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the entries of all pages of a list."""
        while path is not None:
            page = self._json("GET", path, ticket, repeat=True)
            yield from page[key]
            # The address may contain another name of the broker.
            path = page["next"] and "/v1/" + page["next"].partition("/v1/")[2]

    def _json(self, *args: Any, **options: Any) -> dict[str, Any]:
        """Send a request; return the JSON of the answer."""
        answer: dict[str, Any] = json.loads(self._request(*args, **options))
        return answer

    def _request(
        self,
        method: str,
        path: str,
        ticket: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        repeat: bool = False,
        **body: Any,
    ) -> bytes:
        """Send a request; return the body of the answer."""
        sent = {**self._headers(ticket), **(headers or {})}
        for attempt in range(TRIES if repeat else 1, 0, -1):
            try:
                response = self._http.request(method, self._url + path, headers=sent, **body)
            except httpx2.TransportError as error:
                if attempt == 1:
                    what = f"the broker does not answer: {str(error) or type(error).__name__}"
                    remedy = "Check the address, and that the broker runs."
                    raise BrokerError(0, Problem(what, Place(self._url), remedy)) from error
            else:
                if response.is_success:
                    return response.content
                if attempt == 1 or response.status_code not in _REPEATED:
                    raise _refused(response.status_code, response.content)
            time.sleep(_WAIT_SECONDS * 2 ** (TRIES - attempt))
        raise AssertionError


def _own(id: str) -> str:
    return f"/v1/subscriptions/{quote(id, safe='')}"


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"not-words" if key == "not_words" else key: value for key, value in fields.items()}


def _problem(problem: Mapping[str, Any]) -> Problem:
    return Problem(problem["what"], Place(**problem["where"]), problem["remedy"])


def _refused(status: int, content: bytes) -> BrokerError:
    """Return the error of an answer, which may come from another server."""
    try:
        return BrokerError(status, _problem(json.loads(content)))
    except (ValueError, KeyError, TypeError, AttributeError):
        what, remedy = f"an answer with the status {status}", "Check the address of the broker."
        return BrokerError(status, Problem(what, Place("broker"), remedy))

"""A client of the broker's API, on the standard library.

It follows no redirects, so no token goes elsewhere. A publication is sent with a key of its own, so
that it can be sent again where no answer came: it is taken in once. A stream of events that is cut
off goes on after the last event that was seen.
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from semantic.errors import GraphMatchError, Place, Problem

TRIES = 4
"""So often a request is sent that may be sent again."""
_WAIT_SECONDS = 0.2
_LONGEST_WAIT = 30.0
_AGAIN = frozenset({429, 502, 503, 504})
_SILENCE_SECONDS = 60.0
"""After so long without a sign of life a stream is taken for dead."""


class BrokerError(GraphMatchError):
    """The broker refused, or could not be reached.

    Attributes
    ----------
    status
        Of HTTP; 0 where there was no answer.
    """

    def __init__(self, status: int, problem: Problem) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A subscription that was taken in; keep the ticket: it is told once.

    Parameters
    ----------
    id, ticket
        What it is asked for with.
    secret
        What a webhook's signatures are checked by.
    read_key
        For reading only; it may stand in an address.
    expires_at
        When it ends.
    feed
        The address of its Atom feed.
    """

    id: str
    ticket: str = field(repr=False)
    secret: str | None = field(repr=False)
    read_key: str = field(repr=False)
    expires_at: datetime | None
    feed: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Published:
    """What was acknowledged.

    Parameters
    ----------
    publications
        The number in the log and the id of each.
    problems
        What was refused.
    """

    publications: tuple[tuple[int, str], ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class MatchEvent:
    """A match.

    Parameters
    ----------
    seq
        Its number: events come in this order.
    subscription
        The subscription's id.
    publication
        The publication's id.
    publication_seq
        Its number in the log.
    solutions
        Bindings, as N-Triples has terms; of CONSTRUCT lines of N-Triples under ``graph``.
    truncated
        Whether there are more solutions.
    at
        When it was found.
    title, link
        Of the publication.
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
    def of(cls, said: Mapping[str, Any]) -> Self:
        """Return what the broker says of a match."""
        about = said["publication"]
        at = datetime.fromisoformat(said["matched_at"])
        return cls(
            said["seq"],
            said["subscription"],
            about["id"],
            about["seq"],
            said["solutions"],
            said["truncated"],
            at,
            about["title"],
            about["link"],
        )


class Client:
    """Speaks to a broker.

    Parameters
    ----------
    url
        Where it is: ``http://127.0.0.1:8080``.
    token
        An API token, where the broker wants one.
    timeout
        Seconds to wait for an answer.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8080")
    >>> made = client.subscribe(query="ASK { ?s a <urn:C> }")         # doctest: +SKIP
    >>> client.publish("<urn:a> a <urn:C> .", "text/turtle")          # doctest: +SKIP
    >>> for event in client.events(made.id, made.ticket, since=0):    # doctest: +SKIP
    ...     print(event.publication)
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            what, remedy = "not the address of a broker", "Write http://127.0.0.1:8080."
            raise BrokerError(0, Problem(what, Place(url), remedy))
        self._parts, self._token, self._timeout = parts, token, timeout
        self._path = parts.path.rstrip("/")

    # -- subscriptions ----------------------------------------------------------------------

    def subscribe(self, **asked: Any) -> Subscribed:
        """Subscribe; see ``POST /v1/subscriptions`` for what may be said.

        Parameters
        ----------
        asked
            ``query``, ``where``, or ``topics``, ``words`` and ``not_words``; ``name``, ``sink``,
            ``expires_in``, ``digest``, ``quiet``.

        Raises
        ------
        BrokerError
            When it is refused.
        """
        said = self._json("POST", "/v1/subscriptions", body=_asked(asked))
        end = said["expires_at"]
        return Subscribed(
            said["id"],
            said["ticket"],
            said["secret"],
            said["read_key"],
            None if end is None else datetime.fromisoformat(end),
            said["links"]["feed"],
        )

    def subscription(self, id: str, ticket: str | None = None) -> dict[str, Any]:
        """Return all that is known of a subscription."""
        return self._json("GET", _own(id), ticket, again=True)

    def subscriptions(self) -> Iterator[dict[str, Any]]:
        """Yield the subscriptions of the token's owner."""
        return self._pages("/v1/subscriptions", "subscriptions")

    def change(self, id: str, ticket: str | None = None, **asked: Any) -> dict[str, Any]:
        """Change a subscription; return it, and the secret of a new webhook."""
        return self._json("PATCH", _own(id), ticket, body=_asked(asked))

    def renew(
        self, id: str, ticket: str | None = None, expires_in: int | None = None
    ) -> dict[str, Any]:
        """Have a subscription last so many seconds from now on; a day by default."""
        body = {} if expires_in is None else {"expires_in": expires_in}
        return self._json("POST", f"{_own(id)}/renew", ticket, body=body)

    def pause(self, id: str, ticket: str | None = None) -> dict[str, Any]:
        """Have a subscription match nothing until it is resumed."""
        return self._json("POST", f"{_own(id)}/pause", ticket)

    def resume(self, id: str, ticket: str | None = None) -> dict[str, Any]:
        """Have it match again."""
        return self._json("POST", f"{_own(id)}/resume", ticket)

    def unsubscribe(self, id: str, ticket: str | None = None) -> None:
        """End a subscription."""
        self._json("DELETE", _own(id), ticket)

    # -- before subscribing, and why not ----------------------------------------------------

    def backtest(self, **asked: Any) -> dict[str, Any]:
        """Return what a subscription would have matched of what is stored; it may take ten seconds.

        Parameters
        ----------
        asked
            ``query``, ``where``, or ``topics``, ``words`` and ``not_words``, as `subscribe` has it.

        Raises
        ------
        BrokerError
            When it cannot be a subscription: the problem says where.
        """
        return self._json("POST", "/v1/subscriptions:backtest", body=_asked(asked))

    def preview(self, **asked: Any) -> dict[str, Any]:
        """Return the same of what is recent, in a second or so: while somebody writes."""
        return self._json("POST", "/v1/subscriptions:preview", body=_asked(asked), again=True)

    def facts(self, publication: int) -> dict[str, Any]:
        """Return the facts of a publication, each with steps up the ontology."""
        return self._json("GET", f"/v1/publications/{publication}/facts", again=True)

    def query_of(self, publication: int, facts: Iterable[str]) -> str:
        """Return the query of facts that were chosen by their keys: for `subscribe`."""
        body = {"facts": list(facts)}
        path = f"/v1/publications/{publication}/query"
        return str(self._json("POST", path, body=body, again=True)["query"])

    def why_not(self, id: str, publication: int, ticket: str | None = None) -> dict[str, Any]:
        """Return why a subscription matches a stored publication, or what failed first."""
        path = f"{_own(id)}/why?{urlencode({'publication': publication})}"
        return self._json("GET", path, ticket, again=True)

    def health(self, ticket: str | None = None) -> dict[str, Any]:
        """Return what is wrong with the token's subscriptions, or with the ticket's."""
        return self._json("GET", "/v1/subscription-health", ticket, again=True)

    def what_if(self, ontology: bytes | str, media_type: str = "text/turtle") -> dict[str, Any]:
        """Return which subscriptions would gain and lose with another ontology.

        Parameters
        ----------
        ontology
            A document; what it imports is not fetched.
        media_type
            What it is.
        """
        content = ontology.encode() if isinstance(ontology, str) else ontology
        headers = {"Content-Type": media_type}
        path = "/v1/ontology:what-if"
        return self._json("POST", path, body=content, headers=headers)

    # -- feeds ------------------------------------------------------------------------------

    def feeds(self) -> Iterator[dict[str, Any]]:
        """Yield the feeds that are followed."""
        return self._pages("/v1/feeds", "feeds")

    def feed(self, id: str) -> dict[str, Any]:
        """Return what is known of a feed."""
        return self._json("GET", f"/v1/feeds/{quote(id, safe='')}", again=True)

    def add_feed(self, url: str, title: str = "") -> dict[str, Any]:
        """Follow a feed; one that is followed already stays as it is."""
        body = {"url": url, "title": title}
        return self._json("POST", "/v1/feeds", body=body, again=True)

    def remove_feed(self, id: str) -> None:
        """Follow a feed no longer; what it has published stays."""
        self._json("DELETE", f"/v1/feeds/{quote(id, safe='')}")

    def import_feeds(self, opml: bytes | str) -> dict[str, Any]:
        """Follow the feeds of OPML; return how many were listed and are new, and what was wrong."""
        content = opml.encode() if isinstance(opml, str) else opml
        headers = {"Content-Type": "text/x-opml"}
        return self._json("POST", "/v1/feeds.opml", body=content, headers=headers, again=True)

    def export_feeds(self) -> str:
        """Return the feeds that are followed as OPML."""
        return self._content("GET", "/v1/feeds.opml", again=True).decode()

    # -- publishing -------------------------------------------------------------------------

    def publish(
        self,
        data: bytes | str,
        media_type: str = "",
        *,
        id: str | None = None,
        key: str | None = None,
    ) -> Published:
        """Publish a document; it is committed when this returns.

        Parameters
        ----------
        data
            RDF, a feed, or lines of JSON.
        media_type
            What it is; empty: the content tells.
        id
            The publication's, where it names none itself.
        key
            What this request is called, so that it is taken in once, however often it is sent;
            one is made by default.

        Raises
        ------
        BrokerError
            When all of it is refused.
        """
        content = data.encode() if isinstance(data, str) else data
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        headers["Content-Type"] = media_type or "application/octet-stream"
        path = "/v1/publications" + ("" if id is None else "?" + urlencode({"id": id}))
        said = self._json("POST", path, body=content, headers=headers, again=True)
        found = tuple((one["seq"], one["id"]) for one in said["publications"])
        return Published(found, tuple(map(_problem, said["problems"])))

    # -- reading ----------------------------------------------------------------------------

    def matches(
        self, id: str, ticket: str | None = None, *, since: int = 0, key: str | None = None
    ) -> Iterator[MatchEvent]:
        """Yield the matches after a number that there are, in order."""
        asked = {"since": str(since)} | ({} if key is None else {"key": key})
        while True:
            path = f"{_own(id)}/matches?{urlencode(asked)}"
            page = self._json("GET", path, ticket, again=True)
            yield from map(MatchEvent.of, page["matches"])
            if page["next"] is None:
                return
            asked["since"] = str(page["last"])

    def events(
        self,
        id: str,
        ticket: str | None = None,
        *,
        since: int | None = None,
        key: str | None = None,
    ) -> Iterator[MatchEvent]:
        """Yield matches as they come, until the subscription ends; over cut connections.

        Parameters
        ----------
        since
            The last match that is known; 0: none; ``None``: those from now on.
        key
            The key for reading, in place of the ticket.

        Raises
        ------
        BrokerError
            When the broker refuses.
        """
        last, wait = since, _WAIT_SECONDS
        while True:
            asked = {} if last is None else {"since": str(last)}
            asked |= {} if key is None else {"key": key}
            path = f"{_own(id)}/events?{urlencode(asked)}"
            try:
                connection, response = self._send(
                    "GET", path, None, self._headers(ticket), _SILENCE_SECONDS
                )
                try:
                    if response.status == 204:
                        return
                    if response.status >= 400:
                        raise _refused(response.status, response.read())
                    for name, number, data in _frames(response):
                        wait = _WAIT_SECONDS
                        if name == "ended":
                            return
                        if name == "match":
                            yield MatchEvent.of(json.loads(data))
                        last = last if number is None else number
                finally:
                    connection.close()
            except BrokerError as error:
                if error.status not in _AGAIN:
                    raise
            except (OSError, HTTPException):
                pass  # it was cut off
            time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311 -- no secret
            wait = min(2 * wait, _LONGEST_WAIT)

    def match(self, seq: int, ticket: str | None = None) -> MatchEvent:
        """Return a match with all of its solutions that are kept."""
        return MatchEvent.of(self._json("GET", f"/v1/matches/{seq}", ticket, again=True))

    def why(self, seq: int, ticket: str | None = None) -> dict[str, Any]:
        """Return a match, and what it rests on."""
        return self._json("GET", f"/v1/matches/{seq}/why", ticket, again=True)

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

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: float,
    ) -> tuple[HTTPConnection, HTTPResponse]:
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=timeout)
        try:
            connection.connect()
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have answered before
                connection.request(method, self._path + path, body, dict(headers))
            return connection, connection.getresponse()
        except (OSError, HTTPException):
            connection.close()
            raise

    def _pages(
        self, path: str | None, key: str, ticket: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield what all pages of a list have."""
        while path is not None:
            page = self._json("GET", path, ticket, again=True)
            yield from page[key]
            path = _path_of(page["next"])

    def _json(self, *asked: Any, **more: Any) -> dict[str, Any]:
        """Send a request, and return what the answer says."""
        content = self._content(*asked, **more)
        found: dict[str, Any] = json.loads(content) if content else {}
        return found

    def _content(
        self,
        method: str,
        path: str,
        ticket: str | None = None,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        again: bool = False,
    ) -> bytes:
        """Send a request, and return the body of the answer."""
        sent = self._headers(ticket) | dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        for one in range(TRIES if again else 1, 0, -1):
            try:
                connection, response = self._send(method, path, body, sent, self._timeout)
                try:
                    status, content = response.status, response.read()
                finally:
                    connection.close()
            except (OSError, HTTPException) as error:
                if one == 1:
                    what = f"the broker does not answer: {str(error) or type(error).__name__}"
                    place = Place(self._parts.netloc)
                    remedy = "Is it running, and is this its address?"
                    raise BrokerError(0, Problem(what, place, remedy)) from error
            else:
                if status < 300:
                    return content
                if one == 1 or status not in _AGAIN:
                    raise _refused(status, content)
            time.sleep(_WAIT_SECONDS * 2 ** (TRIES - one))
        raise AssertionError


def _own(id: str) -> str:
    return f"/v1/subscriptions/{quote(id, safe='')}"


def _path_of(url: str | None) -> str | None:
    """Return the path of a page's address; what is before may be another name of the broker."""
    return None if url is None else "/v1/" + url.partition("/v1/")[2]


def _asked(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {"not-words" if key == "not_words" else key: value for key, value in asked.items()}


def _problem(said: Mapping[str, Any]) -> Problem:
    where = {key: said["where"].get(key) for key in ("line", "column", "item")}
    return Problem(said["what"], Place(said["where"]["source"], **where), said["remedy"])


def _refused(status: int, content: bytes) -> BrokerError:
    """Return the error of an answer, also of one that is not the broker's."""
    try:
        return BrokerError(status, _problem(json.loads(content)))
    except (ValueError, KeyError, TypeError, AttributeError):
        what, remedy = f"an answer with the status {status}", "Is this the address of a broker?"
        return BrokerError(status, Problem(what, Place("broker"), remedy))


def _frames(response: HTTPResponse) -> Iterator[tuple[str, int | None, str]]:
    """Yield the events of a stream: name, id and data; one that is not whole is left out."""
    name, number, data = "message", None, list[str]()
    for raw in response:
        line = raw.decode("utf-8").rstrip("\r\n")
        if not raw.endswith(b"\n"):
            return
        if not line:
            yield name, number, "\n".join(data)
            name, number, data = "message", None, []
            continue
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if key == "event":
            name = value
        elif key == "id" and value.isdecimal():
            number = int(value)
        elif key == "data":
            data.append(value)

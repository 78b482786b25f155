"""The log of publications: reading documents, and committing their publications.

Concurrent requests are committed together. They queue while a transaction is under way, and until
no further one has arrived for `_GATHER_SECONDS`. The next transaction inserts the publications of
up to `BATCH_SIZE` requests with one statement. If it fails, and the store is not down, each request
is repeated on its own, and stores all publications that can be stored.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from html import unescape
from io import BytesIO
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from pyoxigraph import Literal, NamedNode, RdfFormat, serialize
from pyoxigraph import Triple as TripleTerm

from graphmatch.broker.app.errors import InvalidRequestError
from graphmatch.broker.app.security import ANYBODY, Principal
from graphmatch.broker.db.idempotency import earlier_response, store_response
from graphmatch.broker.db.store import counted, insert_many, is_outage
from graphmatch.broker.db.tables import publications
from graphmatch.broker.models.publication import (
    BATCH_TYPE,
    DETECTED_TYPES,
    LINE_TYPES,
    PART_TYPES,
    CloudEvent,
    PublicationLine,
)
from graphmatch.broker.models.times import millis
from semantic.errors import InputError, OnProblem, Place, Problem, Severity
from semantic.reading import SplitBy, read_publications
from semantic.vocabulary import RSS

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from graphmatch.broker.service.broker import Broker
    from semantic.publication import Publication

BATCH_SIZE = 100
"""Maximum number of requests that are committed together."""
_GATHER_SECONDS = 0.001
"""Time without a further request after which the waiting requests are committed."""
_ID_BYTES = 2000
_SMALL_BYTES, _SMALL_TRIPLES = 16_384, 256
"""Sizes from which an input is processed in a thread. For less, a thread costs more."""
_TASK = "publications"
_ITEM = f"<{RSS['item'].value}>".encode()
SUMMARY_CHARACTERS = 300
"""Maximum length of a summary."""
_READ_CHARACTERS = 20_000
"""Maximum length of the part of a description that is searched for text."""
_DESCRIPTION = RSS["description"]
_TAG = re.compile(r"<[^<>]{0,2000}>")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The publications of a request, after their commit.

    Parameters
    ----------
    publications
        The number in the log and the id of each.
    problems
        The problems of refused parts of the document.
    """

    publications: tuple[tuple[int, str], ...]
    problems: tuple[Problem, ...] = ()


_ACCEPTED = TypeAdapter(Accepted)


@dataclass(slots=True)
class Addition:
    """Publications that enter the log in one transaction.

    Parameters
    ----------
    publications
        The publications.
    source
        ``http``, the address of a feed, or a Kafka topic.
    problems
        Problems that the response contains.
    key, content
        The key of the request, and its body.
    within
        Called in the same transaction, for offsets or items of feeds.
    """

    publications: Sequence[Publication]
    source: str
    problems: list[Problem] = field(default_factory=list)
    by: Principal = ANYBODY
    key: str | None = None
    content: bytes = b""
    within: Callable[[Connection], None] = lambda _: None
    rows: list[Row] = field(default_factory=list, init=False)
    done: asyncio.Future[Accepted] = field(init=False)


class Publications:
    """The log of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._queue: list[Addition] = []
        self._committing: asyncio.Task[None] | None = None

    async def publish(
        self,
        data: bytes,
        *,
        format: str | None = None,
        name: str | None = None,
        split_by: SplitBy | str = SplitBy.AUTO,
        key: str | None = None,
        by: Principal = ANYBODY,
    ) -> Accepted:
        """Add the publications of a document to the log.

        Parameters
        ----------
        data, format, name, split_by
            Those of `read`.
        key
            Key of the request: a repeated request gets the same response and publishes nothing.

        Raises
        ------
        InvalidRequestError
            If the document has no publication, or more than the limit.
        ConflictError
            If the key was used for another document.
        """
        reading = partial(self.read, data, format=format, name=name, split_by=split_by)
        is_large = len(data) > _SMALL_BYTES or format in PART_TYPES
        found, problems = await asyncio.to_thread(reading) if is_large else reading()
        if not found:
            raise InvalidRequestError(problems[0])
        return await self.add(Addition(found, "http", problems, by, key, data))

    def read(
        self,
        data: bytes,
        *,
        format: str | None = None,
        name: str | None = None,
        split_by: SplitBy | str = SplitBy.AUTO,
    ) -> tuple[list[Publication], list[Problem]]:
        """Return the publications of a body, and the problems of its refused parts.

        Parameters
        ----------
        data
            A document of any RDF syntax, a feed, lines of JSON, or CloudEvents.
        format
            Media type or extension, if the content does not identify the syntax.
        name
            The id of a publication that has none of its own; by default a UUID of the document. It
            is also the base of relative IRIs. If it is not an IRI, the UUID is the base.

        Raises
        ------
        InvalidRequestError
            If there are more publications or problems than the limit.
        """
        found: list[Publication] = []
        problems: list[Problem] = []
        limit = self._broker.limits.publications
        for place, model, part in _parts(data, _media_type(format)):
            part_problems: list[Problem] = []
            try:
                document = part, format, name
                if model is not None:
                    document = model.model_validate_json(part).document()
                found += islice(
                    _read(*document, split_by, part_problems.append), limit + 1 - len(found)
                )
            except ValidationError as error:
                first = error.errors()[0]
                place_in_part = Place("body", item=".".join(map(str, first["loc"]))[:200] or None)
                part_problems.append(
                    Problem(f"not valid: {first['msg']}", place_in_part, "See /docs.")
                )
            except InputError as error:
                part_problems.append(error.problem)
            refused = [problem for problem in part_problems if problem.severity is Severity.REFUSED]
            problems += refused if place is None else [_at(place, one) for one in refused]
            if max(len(found), len(problems)) > limit:
                what = f"more than {limit:,} publications or problems"
                raise InvalidRequestError(Problem(what, Place("body"), "Send several requests."))
        if not found and not problems:
            problems.append(Problem("no publication in it", Place(name or "body"), "Send RDF."))
        return found, problems

    async def add(self, request: Addition) -> Accepted:
        """Commit publications to the log.

        Raises
        ------
        InvalidRequestError
            If no publication of an HTTP request can be stored. If some can, the others are problems
            of the response, and dead letters.
        TooManyRequestsError
            If the owner stores too many bytes.
        """
        make_rows = partial(_rows, request, millis(self._broker.clock()))
        is_large = sum(len(one.rows) for one in request.publications) > _SMALL_TRIPLES
        request.rows = await asyncio.to_thread(make_rows) if is_large else make_rows()
        request.done = asyncio.get_running_loop().create_future()
        self._queue.append(request)
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._commit_queue())
        accepted = await request.done
        if request.source == "http" and accepted.problems and not accepted.publications:
            raise InvalidRequestError(accepted.problems[0])
        return accepted

    async def _commit_queue(self) -> None:
        while count := len(self._queue):
            await asyncio.sleep(_GATHER_SECONDS)
            if count < len(self._queue) < BATCH_SIZE:
                continue  # Requests arrive in a burst, and are committed together.
            batch = self._queue[:BATCH_SIZE]
            del self._queue[:BATCH_SIZE]
            for request, result in zip(batch, await self._commit(batch), strict=True):
                if request.done.cancelled():
                    continue
                if isinstance(result, BaseException):
                    request.done.set_exception(result)
                else:
                    request.done.set_result(result)
            with self._broker.supervisor.round(_TASK):  # Its failure must not end this loop.
                self._broker.on_commit()

    async def _commit(self, batch: Sequence[Addition]) -> Sequence[Accepted | BaseException]:
        """Commit requests together, or else one by one; return the results."""
        write = self._broker.store.write
        (results,) = await asyncio.gather(
            write(partial(self._insert, batch)), return_exceptions=True
        )
        if not isinstance(results, BaseException):
            return results
        if is_outage(results):
            return [results] * len(batch)
        alone = (write(partial(self._insert_alone, request)) for request in batch)
        return await asyncio.gather(*alone, return_exceptions=True)

    def _insert(self, batch: Sequence[Addition], db: Connection) -> list[Accepted]:
        """Insert the publications of all requests; any failure undoes the transaction."""
        earlier = [
            request.key and earlier_response(db, request.by.owner, request.key, request.content)
            for request in batch
        ]
        new = [request for request, found in zip(batch, earlier, strict=True) if not found]
        _insert_rows(db, [row for request in new for row in request.rows])
        sizes = Counter[Principal]()
        for request in new:
            request.within(db)
            if request.source == "http":
                sizes[request.by] += sum(len(row["data"]) for row in request.rows)
        for by, size in sizes.items():
            self._broker.accounts.charge(db, by, size)
        now = millis(self._broker.clock())
        return [
            _ACCEPTED.validate_python(found) if found else _complete(db, request, now)
            for request, found in zip(batch, earlier, strict=True)
        ]

    def _insert_alone(self, request: Addition, db: Connection) -> Accepted:
        """Insert the publications of one request, without those that cannot be stored."""

        def try_rows(rows: Sequence[Row]) -> None:
            with db.begin_nested() as trial:
                _insert_rows(db, rows)
                trial.rollback()

        rows, each = tuple(request.rows), self._broker.supervisor.each
        for row, error in each(_TASK, rows, try_rows, itemgetter("id")):
            request.rows.remove(row)
            remedy = "Ask the operator of the broker."
            request.problems.append(Problem(f"set aside: {error}", Place(row["id"]), remedy))
        [accepted] = self._insert([request], db)
        return accepted


def _complete(db: Connection, request: Addition, now: int) -> Accepted:
    """Return the response to a request, which is stored under its key."""
    numbers = tuple((row["seq"], row["id"]) for row in request.rows)
    accepted = Accepted(numbers, tuple(request.problems))
    if request.key is not None:
        response = _ACCEPTED.dump_python(accepted, mode="json")
        store_response(db, request.by.owner, request.key, request.content, response, now)
    return accepted


def _insert_rows(db: Connection, rows: Sequence[Row]) -> None:
    """Insert rows into the log, with the next numbers."""
    if rows:
        first = counted(db, "publication", len(rows)) - len(rows) + 1
        for seq, row in enumerate(rows, first):
            row["seq"] = seq
        insert_many(db, publications, rows)


def _media_type(format: str | None) -> str:
    return (format or "").partition(";")[0].strip().lower()


def _parts(
    data: bytes, media_type: str
) -> Iterator[tuple[Place | None, type[PublicationLine | CloudEvent] | None, bytes]]:
    """Yield the lines or the events of a body, with their places and model, or the whole body."""
    if media_type in LINE_TYPES:
        for number, line in enumerate(data.splitlines(), 1):
            if line.strip():
                yield Place("body", number), PublicationLine, line
    elif media_type in PART_TYPES:
        try:
            events = from_json(data)
        except ValueError as error:
            what = f"the body is not JSON: {error}"
            raise InvalidRequestError(Problem(what, Place("body"), "Correct it.")) from error
        is_batch = media_type == BATCH_TYPE and isinstance(events, list)
        for number, event in enumerate(events if is_batch else [events], 1):
            yield Place("body", item=f"event {number}"), CloudEvent, json.dumps(event).encode()
    else:
        yield None, None, data


def _read(
    data: bytes,
    format: str | None,
    name: str | None,
    split_by: SplitBy | str,
    on_problem: OnProblem,
) -> Iterator[Publication]:
    """Yield the publications of a document."""
    if "\0" in (name or ""):
        raise InputError(Problem("a NUL (U+0000)", Place("request", item="id"), "Leave it out."))
    media_type, stream = _media_type(format), BytesIO(data)
    unique = f"urn:uuid:{UUID(bytes=sha256(data).digest()[:16], version=5)}"
    stream.name = name or unique
    for publication in read_publications(
        stream,
        split_by=split_by,
        format=None if media_type in DETECTED_TYPES else media_type,
        base_iri=stream.name if is_iri(stream.name) else unique,
        on_problem=on_problem,
    ):
        if len(publication.id.encode()) <= _ID_BYTES:
            yield publication
        else:
            what = f"an id of more than {_ID_BYTES:,} bytes"
            on_problem(Problem(what, Place(stream.name), "Give it a shorter one."))


def is_iri(text: str) -> bool:
    """Return whether a text is an absolute IRI."""
    try:
        NamedNode(text)
    except ValueError:
        return False
    return True


def _at(place: Place, problem: Problem) -> Problem:
    """Return a problem of a line or an event with its place in the body."""
    where = problem.where
    item = where.item or (f"line {where.line}" if where.line else place.item)
    return replace(problem, where=replace(place, item=item))


def _rows(request: Addition, now: int) -> list[Row]:
    same = {"source": request.source, "owner": request.by.owner, "received_at": now}
    return [publication_row(publication) | same for publication in request.publications]


def publication_row(publication: Publication) -> Row:
    """Return the row of a publication in the log, with its triples as N-Triples."""
    triples = (TripleTerm(s, p, o) for s, p, o in publication.given)  # type: ignore[arg-type]
    data = serialize(triples, format=RdfFormat.N_TRIPLES) or b""
    row: Row = {"id": publication.id, "data": data, "title": None, "link": None, "summary": None}
    names: list[bytes] = []
    if _ITEM in data:  # The properties of an item are searched in all triples.
        texts = publication.title, publication.link
        row["title"], row["link"] = (text and text.replace("\0", "\ufffd") for text in texts)
        row["summary"] = summary_of(publication) if any(texts) else None
        names = [sha256(name.encode("utf-8", "replace")).digest() for name in publication.story]
    row["story"], row["story_too"] = [*names, None, None][:2]
    return row


def summary_of(publication: Publication) -> str | None:
    """Return the description of a feed item as plain text; ``None`` if it has none.

    Examples
    --------
    >>> from semantic.publication import Publication
    >>> html = Literal("<p>Rain &amp; <b>sun</b></p>")
    >>> summary_of(Publication.of("p", [(NamedNode("urn:item"), RSS["description"], html)]))
    'Rain & sun'
    """
    for _, property_, value in publication.given:
        if property_ == _DESCRIPTION and isinstance(value, Literal):
            text = unescape(_TAG.sub(" ", value.value[:_READ_CHARACTERS]))
            words = " ".join(text.replace("\0", "\ufffd").split())
            if len(words) > SUMMARY_CHARACTERS:
                words = f"{words[: SUMMARY_CHARACTERS - 1].rstrip()}…"
            return words or None
    return None

"""The log of publications: reading documents, and committing their publications.

Concurrent requests are committed together: while a transaction is under way, further ones queue,
and the next transaction inserts the publications of all of them with one statement. If it fails,
each request is repeated on its own, and stores all publications that can be stored.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from io import BytesIO
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from pyoxigraph import NamedNode, RdfFormat, serialize
from pyoxigraph import Triple as TripleTerm
from sqlalchemy import insert

from graphmatch.broker.app.errors import InvalidRequestError
from graphmatch.broker.app.security import ANYBODY, Principal
from graphmatch.broker.db.idempotency import earlier_response, store_response
from graphmatch.broker.db.store import counted, is_outage
from graphmatch.broker.db.tables import publications
from graphmatch.broker.models.publication import (
    BATCH_TYPE,
    DETECTED_TYPES,
    LINE_TYPES,
    PART_TYPES,
    CloudEvent,
    Document,
    PublicationLine,
)
from graphmatch.broker.models.summaries import summary_of
from graphmatch.broker.models.times import millis
from semantic.errors import InputError, OnProblem, Place, Problem, Severity
from semantic.reading import SplitBy, read_publications

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from graphmatch.broker.service.broker import Broker
    from semantic.publication import Publication

BATCH_SIZE = 100
"""Maximum number of requests that are committed together."""
_ID_BYTES = 2000
_SMALL_BYTES, _SMALL_TRIPLES = 16_384, 256
"""Largest input that is processed without a thread, which would cost more."""
_TASK = "publications"
_INSERT = insert(publications)
T = TypeVar("T")
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
class _Request:
    """Rows that wait for their commit, and parameters of `Publications.add`.

    Parameters
    ----------
    size
        Number of bytes that count for the owner's limit.
    """

    rows: list[Row]
    problems: list[Problem]
    by: Principal
    now: int
    size: int
    key: str | None
    content: bytes
    within: Callable[[Connection], None]
    done: asyncio.Future[Accepted]


class Publications:
    """The log of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._queue: list[_Request] = []
        self._committing: asyncio.Task[None] | None = None

    async def publish(
        self,
        data: bytes,
        *,
        format: str | None = None,
        name: str | None = None,
        split_by: SplitBy | str = SplitBy.AUTO,
        base: str | None = None,
        key: str | None = None,
        by: Principal = ANYBODY,
    ) -> Accepted:
        """Add the publications of a document to the log.

        Parameters
        ----------
        data, format, name, split_by, base
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
        reading = partial(self.read, data, format=format, name=name, split_by=split_by, base=base)
        is_large = len(data) > _SMALL_BYTES or format in PART_TYPES
        found, problems = await _in_thread_if(is_large, reading)
        if not found:
            raise InvalidRequestError(problems[0])
        return await self.add(found, problems, source="http", by=by, key=key, content=data)

    def read(
        self,
        data: bytes,
        *,
        format: str | None = None,
        name: str | None = None,
        split_by: SplitBy | str = SplitBy.AUTO,
        base: str | None = None,
    ) -> tuple[list[Publication], list[Problem]]:
        """Return the publications of a body, and the problems of its refused parts.

        Parameters
        ----------
        data
            A document of any RDF syntax, a feed, lines of JSON, or CloudEvents.
        format
            Media type or extension, if the content does not identify the syntax.
        name
            The id of a publication that has none of its own; by default a UUID of the document.
        base
            The base of relative IRIs; by default `name`, or the UUID if it is not an IRI.

        Raises
        ------
        InvalidRequestError
            If there are more publications or problems than the limit.
        """
        found: list[Publication] = []
        problems: list[Problem] = []
        limit = self._broker.limits.publications
        for place, model, part in _parts(data, _media_type(format)):
            told: list[Problem] = []
            try:
                document = Document(part, format, name)
                if model is not None:
                    document = model.model_validate_json(part).document()
                for publication in _read(document, split_by, base, told.append):
                    found.append(publication)
                    if len(found) > limit:
                        break
            except ValidationError as error:
                first = error.errors()[0]
                item = ".".join(map(str, first["loc"]))[:200] or None
                what = f"not valid: {first['msg']}"
                told.append(Problem(what, Place("body", item=item), "See /docs."))
            except InputError as error:
                told.append(error.problem)
            refused = [problem for problem in told if problem.severity is Severity.REFUSED]
            problems += refused if place is None else [_at(place, one) for one in refused]
            if max(len(found), len(problems)) > limit:
                what = f"more than {limit:,} publications"
                raise InvalidRequestError(Problem(what, Place("body"), "Send several requests."))
        if not found and not problems:
            problems.append(Problem("no publication in it", Place(name or "body"), "Send RDF."))
        return found, problems

    async def add(
        self,
        found: Sequence[Publication],
        problems: Sequence[Problem] = (),
        *,
        source: str,
        by: Principal = ANYBODY,
        key: str | None = None,
        content: bytes = b"",
        within: Callable[[Connection], None] = lambda _: None,
    ) -> Accepted:
        """Commit publications to the log.

        Parameters
        ----------
        problems
            Problems that the response contains.
        source
            ``http``, the address of a feed, or a Kafka topic.
        key, content
            The key of the request, and its body.
        within
            Called in the same transaction, for offsets or items of feeds.

        Raises
        ------
        InvalidRequestError
            If no publication of a request can be stored. If some can, the others are problems of
            the response, and dead letters.
        """
        now = millis(self._broker.clock())
        is_large = sum(len(publication.rows) for publication in found) > _SMALL_TRIPLES
        rows = await _in_thread_if(
            is_large, lambda: [publication_row(one, source, by.owner, now) for one in found]
        )
        is_http = source == "http"
        size = sum(len(row["data"]) for row in rows) if is_http else 0
        done: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        self._queue.append(
            _Request(rows, list(problems), by, now, size, key, content, within, done)
        )
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._commit_queue())
        accepted = await done
        if is_http and accepted.problems and not accepted.publications:
            raise InvalidRequestError(accepted.problems[0])
        return accepted

    async def _commit_queue(self) -> None:
        while batch := self._queue[:BATCH_SIZE]:
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

    async def _commit(self, batch: Sequence[_Request]) -> Sequence[Accepted | BaseException]:
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

    def _insert(self, batch: Sequence[_Request], db: Connection) -> list[Accepted]:
        """Insert the publications of all requests; any failure undoes the transaction."""
        earlier = [
            None
            if request.key is None
            else earlier_response(db, request.by.owner, request.key, request.content)
            for request in batch
        ]
        new = [request for request, found in zip(batch, earlier, strict=True) if found is None]
        _insert_rows(db, [row for request in new for row in request.rows])
        sizes = Counter[Principal]()
        for request in new:
            sizes[request.by] += request.size
            request.within(db)
        for by, size in sizes.items():
            if size:
                self._broker.accounts.charge(db, by, size)
        return [
            _complete(db, request) if found is None else _ACCEPTED.validate_python(found)
            for request, found in zip(batch, earlier, strict=True)
        ]

    def _insert_alone(self, request: _Request, db: Connection) -> Accepted:
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


def _complete(db: Connection, request: _Request) -> Accepted:
    """Return the response to a request, which is stored under its key."""
    numbers = tuple((row["seq"], row["id"]) for row in request.rows)
    accepted = Accepted(numbers, tuple(request.problems))
    if request.key is not None:
        response = _ACCEPTED.dump_python(accepted, mode="json")
        store_response(db, request.by.owner, request.key, request.content, response, request.now)
    return accepted


def _insert_rows(db: Connection, rows: Sequence[Row]) -> None:
    """Insert rows into the log, with the next numbers."""
    if rows:
        first = counted(db, "publication", len(rows)) - len(rows) + 1
        for seq, row in enumerate(rows, first):
            row["seq"] = seq
        db.execute(_INSERT, rows)


async def _in_thread_if(is_large: bool, work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work) if is_large else work()


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
    document: Document, split_by: SplitBy | str, base: str | None, on_problem: OnProblem
) -> Iterator[Publication]:
    """Yield the publications of a document."""
    if "\0" in (document.id or ""):
        raise InputError(Problem("a NUL (U+0000)", Place("request", item="id"), "Leave it out."))
    media_type = _media_type(document.format)
    unique = f"urn:uuid:{UUID(bytes=sha256(document.data).digest()[:16], version=5)}"
    stream = BytesIO(document.data)
    stream.name = document.id or unique
    for publication in read_publications(
        stream,
        split_by=split_by,
        format=None if media_type in DETECTED_TYPES else media_type,
        base_iri=base or (stream.name if is_iri(stream.name) else unique),
        on_problem=on_problem,
    ):
        if len(publication.id.encode()) <= _ID_BYTES:
            yield publication
        else:
            what, where = f"an id of more than {_ID_BYTES:,} bytes", Place(stream.name)
            on_problem(Problem(what, where, "Give it a shorter one."))


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


def publication_row(publication: Publication, source: str, owner: int | None, now: int) -> Row:
    """Return the row of a publication in the log, with its triples as N-Triples."""
    triples = (TripleTerm(s, p, o) for s, p, o in publication.given)  # type: ignore[arg-type]
    data = serialize(triples, format=RdfFormat.N_TRIPLES) or b""
    title, link = publication.title, publication.link
    is_item = title is not None or link is not None
    return {
        "id": publication.id,
        "hash": sha256(data).digest(),
        "data": data,
        "title": title and title.replace("\0", "\ufffd"),
        "link": link and link.replace("\0", "\ufffd"),
        "summary": summary_of(publication) if is_item else None,
        "source": source,
        "owner": owner,
        "received_at": now,
    }

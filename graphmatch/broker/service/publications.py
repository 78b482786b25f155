"""The log of publications: reading documents, and committing their publications.

Concurrent requests are committed together: while a transaction is under way, further ones queue,
and the next transaction inserts the publications of all of them with one statement. If it fails,
each request is repeated on its own, and stores all publications that can be stored.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from pyoxigraph import RdfFormat, serialize
from pyoxigraph import Triple as TripleTerm
from sqlalchemy import insert, select

from graphmatch.broker.app.errors import ConflictError, InvalidRequestError
from graphmatch.broker.app.security import ANYBODY, Principal
from graphmatch.broker.db.store import counted, is_outage
from graphmatch.broker.db.tables import idempotency_keys, publications
from graphmatch.broker.models.summaries import summary_of
from graphmatch.broker.models.times import millis
from semantic.errors import InputError, Place, Problem, Severity
from semantic.limits import DEFAULT_LIMITS
from semantic.reading import SplitBy, check_base, read_publications

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from graphmatch.broker.service.broker import Broker
    from semantic.publication import Publication

BATCH_SIZE = 100
"""Maximum number of requests that are committed together."""
_ID_BYTES = 2000
_SMALL_BYTES, _TRIPLE_BYTES = 16_384, 64
_PUBLISH = insert(publications)
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


@dataclass(slots=True)
class _Intake:
    """Rows that wait for their commit, and the parameters of `Publications.take_in`."""

    rows: list[Row]
    problems: Sequence[Problem]
    source: str
    task: str
    by: Principal
    now: int
    key: str | None
    body: bytes
    also: Callable[[Connection], None] | None
    done: asyncio.Future[Accepted]

    @property
    def size(self) -> int:
        """Number of bytes that count for the owner's limit; 0 for feeds and Kafka."""
        return sum(len(row["data"]) for row in self.rows) if self.source == "http" else 0


class Publications:
    """The log of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._queue: list[_Intake] = []
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
        data
            A document of any RDF syntax, or a feed.
        format, name, split_by, base
            Those of `read`.
        key
            Key of the request: a repeated request gets the same response and publishes nothing.

        Raises
        ------
        InputError
            If the format is unknown.
        InvalidRequestError
            If the document has no publication, or more than the limit.
        ConflictError
            If the key was used for another document.
        """
        reading = partial(self.read, data, format=format, name=name, split_by=split_by, base=base)
        found, problems = await _in_thread_if_large(len(data), reading)
        if not found:
            empty = Problem("no publication in it", Place(name or "body"), "Send RDF.")
            raise InvalidRequestError(problems[0] if problems else empty)
        return await self.take_in(found, problems, source="http", key=key, of=data, by=by)

    def read(
        self,
        data: bytes,
        *,
        format: str | None = None,
        name: str | None = None,
        split_by: SplitBy | str = SplitBy.AUTO,
        base: str | None = None,
    ) -> tuple[list[Publication], tuple[Problem, ...]]:
        """Return the publications of a document, and the problems of its refused parts.

        Parameters
        ----------
        format
            Media type or extension, if the content does not identify the syntax.
        name
            The id of a publication that has none of its own; by default a UUID of the document.
        base
            The base of relative IRIs; by default `name`, or the UUID if it is not an IRI.
        """
        if "\0" in (name or ""):
            problem = Problem("a NUL (U+0000)", Place("request", item="id"), "Leave it out.")
            raise InputError(problem)
        problems: list[Problem] = []
        document = BytesIO(data)
        document.name = name or f"urn:uuid:{uuid_of(data)}"
        found: list[Publication] = []
        for publication in read_publications(
            document,
            split_by=split_by,
            format=format,
            base_iri=base or _base_of(document.name, data),
            on_problem=problems.append,
            limits=DEFAULT_LIMITS,
        ):
            if len(publication.id.encode()) > _ID_BYTES:
                what, where = f"an id of more than {_ID_BYTES:,} bytes", Place(document.name)
                problems.append(Problem(what, where, "Give it a shorter one.", Severity.REFUSED))
                continue
            found.append(publication)
            if len(found) > self._broker.limits.publications:
                what = f"more than {self._broker.limits.publications:,} publications"
                raise InvalidRequestError(Problem(what, Place("body"), "Send several requests."))
        refused = (problem for problem in problems if problem.severity is Severity.REFUSED)
        return found, tuple(refused)

    async def take_in(
        self,
        found: Sequence[Publication],
        problems: Sequence[Problem] = (),
        *,
        source: str,
        key: str | None = None,
        of: bytes = b"",
        by: Principal = ANYBODY,
        also: Callable[[Connection], None] | None = None,
        task: str = "http",
    ) -> Accepted:
        """Commit publications to the log.

        Parameters
        ----------
        source
            ``http``, the address of a feed, or a Kafka topic.
        key, of
            The key of the request, and its body.
        also
            Called in the same transaction, for offsets or items of feeds.
        task
            The name of the task, for the supervisor.

        Raises
        ------
        InvalidRequestError
            If no publication of a request can be stored. If some can, the others are problems of
            the response, and dead letters.
        """
        now = millis(self._broker.clock())
        size = sum(len(publication.rows) for publication in found) * _TRIPLE_BYTES
        rows = await _in_thread_if_large(
            size, lambda: [row_of(publication, source, by.owner, now) for publication in found]
        )
        done: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        body = b"" if key is None else sha256(of).digest()
        intake = _Intake(rows, problems, source, task, by, now, key, body, also, done)
        self._queue.append(intake)
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._commit_queue())
        accepted = await done
        if task == "http" and accepted.problems and not accepted.publications:
            raise InvalidRequestError(accepted.problems[0])
        return accepted

    async def _commit_queue(self) -> None:
        write = self._broker.store.write
        while batch := self._queue[:BATCH_SIZE]:
            del self._queue[:BATCH_SIZE]
            inserting = write(partial(self._insert, batch))
            (inserted,) = await asyncio.gather(inserting, return_exceptions=True)
            results: Sequence[Accepted | BaseException]
            if not isinstance(inserted, BaseException):
                results = inserted
            elif is_outage(inserted):
                results = [inserted] * len(batch)
            else:
                alone = (write(partial(self._insert_alone, intake)) for intake in batch)
                results = await asyncio.gather(*alone, return_exceptions=True)
            for intake, result in zip(batch, results, strict=True):
                if intake.done.cancelled():
                    pass
                elif isinstance(result, BaseException):
                    intake.done.set_exception(result)
                else:
                    intake.done.set_result(result)
            self._broker.on_commit()

    def _insert(self, batch: Sequence[_Intake], db: Connection) -> list[Accepted]:
        """Insert the publications of all requests; any failure undoes the transaction."""
        earlier = [_earlier_response(db, intake) for intake in batch]
        new = [intake for intake, found in zip(batch, earlier, strict=True) if found is None]
        _insert_rows(db, [row for intake in new for row in intake.rows])
        sizes = Counter[Principal]()
        for intake in new:
            sizes[intake.by] += intake.size
        for by, size in sizes.items():
            if size:
                self._broker.accounts.charge(db, by, size)
        return [
            found or _complete(db, intake, intake.rows, intake.problems)
            for intake, found in zip(batch, earlier, strict=True)
        ]

    def _insert_alone(self, intake: _Intake, db: Connection) -> Accepted:
        """Insert the publications of one request, without those that cannot be stored."""
        if (earlier := _earlier_response(db, intake)) is not None:
            return earlier
        stored: list[Row] = []

        def insert_some(rows: Sequence[Row]) -> None:
            with db.begin_nested():
                _insert_rows(db, rows)
            stored.extend(rows)

        problems, each = list(intake.problems), self._broker.supervisor.each
        for row, error in each(intake.task, intake.rows, insert_some, _id_of_row):
            remedy = "Ask the operator of the broker."
            problems.append(Problem(f"set aside: {error}", Place(row["id"]), remedy))
        if intake.size:
            self._broker.accounts.charge(db, intake.by, intake.size)
        return _complete(db, intake, stored, problems)


def _complete(
    db: Connection, intake: _Intake, rows: Sequence[Row], problems: Sequence[Problem]
) -> Accepted:
    """Write all that is committed together with the publications of a request."""
    accepted = Accepted(tuple((row["seq"], row["id"]) for row in rows), tuple(problems))
    if intake.key is not None:
        refused = [_problem_json(problem) for problem in problems]
        response = {"publications": accepted.publications, "problems": refused}
        values = {"owner": intake.by.owner or 0, "key": intake.key, "hash": intake.body}
        values |= {"response": response, "at": intake.now}
        db.execute(insert(idempotency_keys).values(values))
    if intake.also is not None:
        intake.also(db)
    return accepted


def _insert_rows(db: Connection, rows: Sequence[Row]) -> None:
    """Insert rows into the log, with the next numbers."""
    if rows:
        first = counted(db, "publication", len(rows)) - len(rows) + 1
        for seq, row in enumerate(rows, first):
            row["seq"] = seq
        db.execute(_PUBLISH, rows)


def _earlier_response(db: Connection, intake: _Intake) -> Accepted | None:
    """Return the response to an earlier request with the same key, if there was one."""
    if intake.key is None:
        return None
    table = idempotency_keys.c
    same = (table.owner == (intake.by.owner or 0)) & (table.key == intake.key)
    earlier = db.execute(select(table.hash, table.response).where(same)).one_or_none()
    if earlier is None:
        return None
    if earlier.hash != intake.body:
        what, remedy = "this key was used for another body", "Use a new key."
        raise ConflictError(Problem(what, Place("Idempotency-Key"), remedy))
    return Accepted(
        tuple((seq, id) for seq, id in earlier.response["publications"]),
        tuple(_problem_of(problem) for problem in earlier.response["problems"]),
    )


async def _in_thread_if_large(size: int, work: Callable[[], T]) -> T:
    """Do work in a thread, unless its input is so small that the thread costs more."""
    return work() if size <= _SMALL_BYTES else await asyncio.to_thread(work)


def uuid_of(data: bytes) -> str:
    """Return a UUID of a document; equal documents have equal UUIDs."""
    return str(UUID(bytes=sha256(data).digest()[:16], version=5))


def _base_of(name: str, data: bytes) -> str:
    try:
        check_base(name)
    except InputError:
        return f"urn:uuid:{uuid_of(data)}"
    return name


def row_of(publication: Publication, source: str, owner: int | None, now: int) -> Row:
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


def _id_of_row(row: Mapping[str, Any]) -> str:
    return str(row["id"])


def _problem_json(problem: Problem) -> dict[str, Any]:
    return {"what": problem.what, "where": asdict(problem.where), "remedy": problem.remedy}


def _problem_of(row: Mapping[str, Any]) -> Problem:
    return Problem(row["what"], Place(**row["where"]), row["remedy"])

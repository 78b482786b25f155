"""Publications: read, and commit to the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from sqlalchemy import insert, select

from graphmatch.broker.app.errors import ConflictError, InvalidRequestError
from graphmatch.broker.app.security import ANYBODY, Principal
from graphmatch.broker.db.store import counted
from graphmatch.broker.db.tables import (
    audit,
    idempotency_keys,
    publications,
    subscriptions,
)
from graphmatch.broker.models.times import millis
from semantic.errors import (
    InputError,
    Place,
    Problem,
    Severity,
)
from semantic.limits import DEFAULT_LIMITS
from semantic.reading import SplitBy, read_publications
from semantic.terms import written

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from semantic.publication import Publication

if TYPE_CHECKING:
    from graphmatch.broker.service.broker import Broker

_PUBLISH, _SUBSCRIPTIONS = insert(publications), select(subscriptions)
_ID_BYTES = 2000
_SMALL_BYTES, _TRIPLE_BYTES = 16_384, 64
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Accepted:
    """What was published, after its commit.

    Parameters
    ----------
    publications
        The number in the log and the id of each.
    problems
        What of the document was refused.
    """

    publications: tuple[tuple[int, str], ...]
    problems: tuple[Problem, ...] = ()


class Publications:
    """The log of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

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
        """Take the publications of a document into the log.

        Parameters
        ----------
        data
            A document of any syntax of RDF, or a feed.
        format
            Its media type or extension, where the content does not tell.
        name
            What its publication is called, where it names none itself.
        split_by, base
            As `semantic.read_publications` has them.
        key
            What the publisher calls this request: the same one again gives the same answer, and
            publishes nothing.

        Raises
        ------
        InputError
            When the format is unknown.
        RefusedError
            When there is no publication in it, or more than the limit.
        ConflictError
            When the key was used for another document.
        """
        reading = partial(self.read, data, format=format, name=name, split_by=split_by, base=base)
        taken, problems = await _apart(len(data), reading)
        if not taken and not problems:
            problems = (Problem("no publication in it", Place(name or "body"), "Send RDF."),)
        if not taken and problems:
            raise InvalidRequestError(problems[0])
        return await self.take_in(taken, problems, source="http", key=key, of=data, by=by)

    def read(
        self,
        data: bytes,
        *,
        format: str | None = None,
        name: str | None = None,
        split_by: SplitBy | str = SplitBy.AUTO,
        base: str | None = None,
    ) -> tuple[list[Publication], tuple[Problem, ...]]:
        """Return the publications of a document, and what of it was refused."""
        if "\0" in (name or ""):
            raise InputError(
                Problem("a NUL (U+0000)", Place("request", item="id"), "Leave it out.")
            )
        problems: list[Problem] = []
        document = BytesIO(data)
        document.name = name or f"urn:uuid:{uuid_of(data)}"
        found: list[Publication] = []
        for publication in read_publications(
            document,
            split_by=split_by,
            format=format,
            base_iri=base,
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
        refused = (one for one in problems if one.severity is Severity.REFUSED)
        return found, tuple(refused)

    async def take_in(
        self,
        several: Sequence[Publication],
        problems: tuple[Problem, ...] = (),
        *,
        source: str,
        key: str | None = None,
        of: bytes = b"",
        by: Principal = ANYBODY,
        also: Callable[[Connection], None] | None = None,
        task: str = "http",
    ) -> Accepted:
        """Commit publications to the log, and in the same transaction what else is to hold.

        Parameters
        ----------
        source
            Where they come from: ``http``, the address of a feed, a topic of Kafka.
        key, of
            The key of the request, and its body.
        also
            Called in the transaction: offsets, items that were seen.
        task
            The name of the task, for the supervisor.

        Raises
        ------
        RefusedError
            When none of them can be stored. If others can, these are problems of the answer, and
            lines in the audit log.
        """
        now = millis(self._broker.clock())
        triples = sum(len(one.given) for one in several)
        encoded = await _apart(
            triples * _TRIPLE_BYTES, lambda: [row_of(one, source, by.owner, now) for one in several]
        )
        asked_by, body = by.owner or 0, sha256(of).digest()

        def work(db: Connection) -> Accepted:
            if key is not None:
                same = (idempotency_keys.c.owner == asked_by) & (idempotency_keys.c.key == key)
                before = db.execute(select(idempotency_keys).where(same)).mappings().one_or_none()
                if before is not None and before["hash"] != body:
                    what, remedy = "this key was used for another body", "Use a new key."
                    raise ConflictError(Problem(what, Place("Idempotency-Key"), remedy))
                if before is not None:
                    said = before["response"]
                    return Accepted(
                        tuple((seq, id) for seq, id in said["publications"]),
                        tuple(_problem(one) for one in said["problems"]),
                    )
            stored: list[tuple[int, str]] = []

            def keep(rows: Sequence[dict[str, Any]]) -> None:
                with db.begin_nested():
                    last = counted(db, "publication", len(rows)) if rows else 0
                    for number, row in enumerate(rows, last - len(rows) + 1):
                        row["seq"] = number
                    if rows:
                        db.execute(_PUBLISH, rows)
                stored.extend((row["seq"], row["id"]) for row in rows)

            refused = list(problems)
            for row, why in self._broker.supervisor.each(
                task, encoded, keep, lambda row: str(row["id"])
            ):
                refused.append(Problem(f"set aside: {why}", Place(row["id"]), "The log says more."))
                values = {"at": now, "action": f"set aside: {why}", "target": row["id"]}
                db.execute(insert(audit).values(actor=source, **values))
            told = tuple(stored)
            if key is not None:
                said = {"publications": told, "problems": [_said(one) for one in refused]}
                values = {"owner": asked_by, "key": key, "hash": body, "response": said, "at": now}
                db.execute(insert(idempotency_keys).values(values))
            if also is not None:
                also(db)
            return Accepted(told, tuple(refused))

        accepted = await self._broker.store.write(work)
        if task == "http" and accepted.problems and not accepted.publications:
            raise InvalidRequestError(accepted.problems[0])
        self._broker.on_commit()
        return accepted


async def _apart(size: int, work: Callable[[], T]) -> T:
    """Do work in a thread, unless its input is so small that the thread would cost more."""
    return work() if size <= _SMALL_BYTES else await asyncio.to_thread(work)


def uuid_of(data: bytes) -> str:
    """Return a UUID of a document: equal ones have equal ones."""
    return str(UUID(bytes=sha256(data).digest()[:16], version=5))


def n_triples(publication: Publication) -> bytes:
    """Return what the log has of a publication."""
    return b"".join(
        f"{' '.join(map(written, triple))} .\n".encode() for triple in publication.given
    )


def row_of(publication: Publication, source: str, owner: int | None, now: int) -> dict[str, Any]:
    """Return the row of a publication in the log."""
    data = n_triples(publication)
    return {
        "id": publication.id,
        "hash": sha256(data).digest(),
        "data": data,
        "title": publication.title and publication.title.replace("\0", "\ufffd"),
        "link": publication.link and publication.link.replace("\0", "\ufffd"),
        "source": source,
        "owner": owner,
        "received_at": now,
    }


def _said(problem: Problem) -> dict[str, Any]:
    return {"what": problem.what, "where": asdict(problem.where), "remedy": problem.remedy}


def _problem(said: Mapping[str, Any]) -> Problem:
    return Problem(said["what"], Place(**said["where"]), said["remedy"])

"""The broker without its network: who subscribes to what, what was published, tokens and tickets.

The life of a subscription: it is taken in with a *ticket*, which is shown once and proves who may
change it (so nobody needs an account), and a validity, after which it ends. Before that its sink is
told; it may be renewed, paused and changed. A publication that is acknowledged is in the log, and
is matched by those subscriptions that were committed before it.

Source: the service of Zeng and others, "Sub-Order" (the seeds' paper 3), section 5.1: subscribe,
unsubscribe, renew, a ticket, a validity of a day by default, anonymous publishing.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from sqlalchemy import func, insert, select, update

from graphmatch.broker.insight import Rehearsal
from graphmatch.broker.settings import (
    RefusedError,
    Settings,
    checked_digest,
    checked_quiet,
    checked_sink,
    name_of,
)
from graphmatch.broker.store import Store, counted, counter
from graphmatch.broker.supervisor import Supervisor
from graphmatch.broker.tables import (
    WITH_MATCHES,
    audit,
    owners,
    publications,
    requests,
    subscriptions,
    tokens,
)
from graphmatch.engine import Engine
from graphmatch.topics import Topics, known_concepts
from semantic.attributes.constraints import attribute_query
from semantic.clock import Clock, utc_now
from semantic.errors import (
    GraphMatchError,
    InputError,
    Place,
    Problem,
    Severity,
    SubscriptionError,
)
from semantic.limits import DEFAULT_LIMITS
from semantic.reading import SplitBy, read_publications
from semantic.terms import written

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping, Select

    from semantic.publication import Publication

ENGINE_LIMITS = replace(DEFAULT_LIMITS, publication_seconds=1.0)
"""Of the engine of a service: one subscription may not hold up those of others for long."""
_PUBLISH, _SUBSCRIPTIONS = insert(publications), select(subscriptions)
SCOPES = frozenset({"publish", "subscribe", "feeds", "admin"})
_TEXT_KEYS = ("topics", "words", "not-words", "match")
_SECRET_BYTES = 32
_ID_BYTES = 2000
"""Maximum length of a publication's id, in bytes; PostgreSQL indexes no longer ones."""
_SMALL_BYTES, _TRIPLE_BYTES = 16_384, 64
T = TypeVar("T")


class NotThereError(GraphMatchError):
    """There is no such thing, or it is another's."""


class ConflictError(GraphMatchError):
    """The same key was used for something else."""


class BusyError(GraphMatchError):
    """Others are being answered."""


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """What one may ask for.

    Parameters
    ----------
    body_bytes
        Of one request.
    payload_bytes
        Of one delivery; what is more is left out, with a link to all of it.
    solutions
        That are kept of one match.
    subscriptions
        Of one owner, and of all who have no token together.
    publications
        Of one request.
    validity, longest_validity
        Of a subscription for which nothing is said, and at most.
    announced
        How long before its end a sink is told; a tenth of the validity where that is less.
    kept
        How long publications and matches can be asked for.
    replayed
        How far back events can be fetched.
    host_requests
        Deliveries to one host at once.
    query_characters
        Of a subscription.
    """

    body_bytes: int = 10_000_000
    payload_bytes: int = 20_000
    solutions: int = 100
    subscriptions: int = 1_000_000
    publications: int = 10_000
    validity: timedelta = timedelta(days=1)
    longest_validity: timedelta = timedelta(days=366)
    announced: timedelta = timedelta(hours=12)
    kept: timedelta = timedelta(days=30)
    replayed: timedelta = timedelta(days=7)
    host_requests: int = 2
    query_characters: int = 100_000


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: the owner of a token, or somebody without one.

    Parameters
    ----------
    owner
        The owner's number; ``None`` for those without a token.
    scopes
        What the token is for.
    """

    owner: int | None = None
    scopes: frozenset[str] = frozenset()

    @property
    def is_admin(self) -> bool:
        """Whether it may do all."""
        return "admin" in self.scopes

    def may(self, scope: str) -> bool:
        """Whether its token is for something."""
        return self.is_admin or scope in self.scopes


ANYBODY = Principal()


@dataclass(frozen=True, slots=True)
class Created:
    """A subscription that was taken in.

    Parameters
    ----------
    id
        Its id.
    ticket
        What proves that it is one's own: it is told here and never again.
    secret
        What a webhook's signatures are checked by.
    expires_at
        When it ends.
    """

    id: str
    ticket: str
    secret: str | None
    expires_at: datetime | None


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


def of_subscription(problem: Problem) -> SubscriptionError:
    """Return the error of a subscription that was sent: its text has no other name."""
    return SubscriptionError(replace(problem, where=replace(problem.where, source="subscription")))


class Broker:
    """What clients may do; each call is committed when it returns.

    Parameters
    ----------
    store
        Where all is.
    engine
        Knows the ontology; queries are checked by it, and `graphmatch.broker.matching` has the
        subscriptions in it.
    clock
        The time.
    limits
        What one may ask for.

    Examples
    --------
    >>> import asyncio
    >>> from tempfile import TemporaryDirectory
    >>> async def main(store):
    ...     broker = Broker(store, Engine())
    ...     made = await broker.subscribe({"query": "ASK { ?s a <urn:C> }"}, Settings())
    ...     await broker.publish(b"<urn:a> a <urn:C> .", format="ttl", name="urn:p")
    ...     return made.id[:4], len(made.ticket)
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/broker.db")
    ...     print(asyncio.run(main(store)))
    ...     store.close()
    ('sub_', 47)
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        clock: Clock = utc_now,
        limits: BrokerLimits | None = None,
    ) -> None:
        self.store, self.engine, self.clock = store, engine, clock
        self.limits = limits or BrokerLimits()
        self.supervisor = Supervisor()
        self._checker: tuple[Engine, Rehearsal] | None = None
        """Checks queries: an engine of the same ontology, and the engine that it was made for."""
        self.woken: Callable[[], None] = lambda: None
        """Called after something was published or changed: matching need not wait."""

    # -- subscriptions ----------------------------------------------------------------------

    async def subscribe(
        self, given: Mapping[str, Any], settings: Settings, by: Principal = ANYBODY
    ) -> Created:
        """Take a subscription in.

        Parameters
        ----------
        given
            ``query`` (SPARQL), ``where`` (attributes) or ``topics`` and ``words``: what a line of
            a file of subscriptions has.

        Raises
        ------
        SubscriptionError
            When it cannot be a subscription.
        RefusedError
            When the settings mean nothing, or a limit is reached.
        """
        query = await asyncio.to_thread(self.query, given)
        sink, secret = checked_sink(settings.sink or {"kind": "sse"})
        digest, quiet = checked_digest(settings.digest), checked_quiet(settings.quiet)
        now = self.clock()
        expires = self._end(now, settings.expires_in)
        id, ticket = f"sub_{secrets.token_hex(8)}", f"gmt_{secrets.token_urlsafe(_SECRET_BYTES)}"
        name = name_of(settings.name, given)

        def work(db: Connection) -> None:
            mine = subscriptions.c.owner == by.owner
            if by.owner is None:
                mine = subscriptions.c.owner.is_(None)
            alive = subscriptions.c.state.in_(("active", "paused"))
            count = db.scalar(select(func.count()).where(mine, alive)) or 0
            if count >= self.limits.subscriptions:
                what = f"there are {count:,} subscriptions already"
                raise RefusedError(Problem(what, Place("subscriptions"), "Unsubscribe others."))
            db.execute(
                insert(subscriptions).values(
                    id=id,
                    owner=by.owner,
                    name=name,
                    given=dict(given),
                    query=query,
                    ticket=digest_of(ticket),
                    sink=sink,
                    digest=digest,
                    quiet=quiet,
                    state="active",
                    created_at=millis(now),
                    expires_at=None if expires is None else millis(expires),
                    generation=1,
                    change=counted(db, "change"),
                    after=counter(db, "publication"),
                )
            )

        await self.store.write(work)
        self.woken()
        return Created(id, ticket, secret, expires)

    def query(self, given: Mapping[str, Any]) -> str:
        """Return the SPARQL of a subscription, checked.

        Raises
        ------
        SubscriptionError
            When it cannot be a subscription.
        RefusedError
            When nothing or several things are asked for, or it is too long.
        """
        text, engine = self.sparql(given), self.engine
        if self._checker is None or self._checker[0] is not engine:
            self._checker = engine, Rehearsal(engine)
        with self._checker[1].asking([("subscription", text)]) as (_, refused):
            for problem in refused.values():
                raise of_subscription(problem)
        return text

    def sparql(self, given: Mapping[str, Any]) -> str:
        """Return the SPARQL of a subscription; whether it can be one is not checked.

        Raises
        ------
        SubscriptionError
            When a topic is unknown, say.
        RefusedError
            When nothing or several things are asked for, or it is too long.
        """
        place = Place("subscription")
        forms = [key for key in ("query", "where") if key in given]
        if given.keys() & {*_TEXT_KEYS}:
            forms.append("topics")
        unknown = given.keys() - {"query", "where", *_TEXT_KEYS}
        if len(forms) != 1 or unknown:
            what = f"there is no field {min(unknown)!r}" if unknown else "the query is missing"
            remedy = "Give query, or where, or topics and words; one of them."
            raise RefusedError(Problem(what, place, remedy))
        if not is_text(given):
            what, remedy = "a lone surrogate, NUL or invalid number", "Write texts and numbers."
            raise RefusedError(Problem(what, place, remedy))
        try:
            if forms == ["query"]:
                text = given["query"]
            elif forms == ["where"]:
                text = attribute_query("subscription", given["where"])
            else:
                row = {key: given[key] for key in _TEXT_KEYS if key in given}
                text = Topics.of_row(row, place).query(known_concepts(self.engine.ontology))
        except SubscriptionError as error:
            raise of_subscription(error.problem) from error
        if not isinstance(text, str) or len(text) > self.limits.query_characters:
            most = self.limits.query_characters
            what = f"the query is not a string of at most {most:,} characters"
            raise RefusedError(Problem(what, place, "Shorten it."))
        return text

    async def change(
        self,
        id: str,
        by: Principal,
        ticket: str | None,
        *,
        given: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        state: str | None = None,
    ) -> str | None:
        """Change a subscription, renew it, or pause it; return the secret of a new webhook.

        Matches go on under the same id; a changed query sees what is published from now on.

        Raises
        ------
        NotThereError
            When there is none, or it is another's.
        SubscriptionError, RefusedError
            As `subscribe`.
        """
        settings = settings or Settings()
        now = self.clock()
        values: dict[str, Any] = {}
        secret: str | None = None
        if given is not None:
            query = await asyncio.to_thread(self.query, given)
            values |= {"given": dict(given), "query": query}
        if settings.name is not None:
            values["name"] = name_of(settings.name, {})
        if settings.sink is not None:
            values["sink"], secret = checked_sink(settings.sink)
        if settings.digest is not None:
            values["digest"] = checked_digest(settings.digest)
        if settings.quiet is not None:
            values["quiet"] = checked_quiet(settings.quiet)
        if settings.expires_in is not None:
            end = self._end(now, settings.expires_in)
            values |= {"expires_at": None if end is None else millis(end), "announced_at": None}
        if state is not None:
            if state not in ("active", "paused"):
                what = f"{state!r} is not a valid state"
                raise RefusedError(Problem(what, Place("state"), "Write active or paused."))
            values |= {"state": state, "reason": None}

        def work(db: Connection) -> None:
            row = self._own(db, id, by, ticket)
            if row["state"] == "ended":
                what, remedy = "the subscription has ended", "Subscribe again."
                raise RefusedError(Problem(what, Place(id), remedy))
            more = dict(values)
            if given is not None:
                more["generation"] = row["generation"] + 1
            if given is not None or (state == "active" and row["state"] != "active"):
                more["after"] = counter(db, "publication")
            more["change"] = counted(db, "change")
            mine = subscriptions.c.number == row["number"]
            db.execute(update(subscriptions).where(mine).values(**more))

        await self.store.write(work)
        self.woken()
        return secret

    async def unsubscribe(self, id: str, by: Principal, ticket: str | None) -> None:
        """End a subscription; its matches can be asked for as long as others."""

        def work(db: Connection) -> None:
            row = self._own(db, id, by, ticket)
            end_subscription(db, row["number"], "unsubscribed", millis(self.clock()))

        await self.store.write(work)
        self.woken()

    async def subscription(self, id: str, by: Principal, ticket: str | None) -> RowMapping:
        """Return the row of a subscription; `NotThereError` where it is another's."""
        return await self.store.read(lambda db: self._own(db, id, by, ticket, WITH_MATCHES))

    def _own(
        self,
        db: Connection,
        id: str,
        by: Principal,
        ticket: str | None,
        chosen: Select[Any] = _SUBSCRIPTIONS,
    ) -> RowMapping:
        """Return the row of a subscription that is the principal's, or that the ticket is for."""
        row = db.execute(chosen.where(subscriptions.c.id == id)).mappings().one_or_none()
        if row is not None:
            known = ticket is not None and secrets.compare_digest(row["ticket"], digest_of(ticket))
            if known or by.is_admin or (by.owner is not None and row["owner"] == by.owner):
                return row
        what = "there is no such subscription, or it is another's"
        remedy = "Send its ticket, or the token of its owner."
        raise NotThereError(Problem(what, Place(id), remedy))

    def _end(self, now: datetime, length: timedelta | None) -> datetime | None:
        length = self.limits.validity if length is None else length
        if length > self.limits.longest_validity or length < timedelta(0):
            what = f"a validity of {length}"
            remedy = f"At most {self.limits.longest_validity.days} days; renew it before they end."
            raise RefusedError(Problem(what, Place("expires_in"), remedy))
        return now + (length or self.limits.longest_validity)

    # -- publishing -------------------------------------------------------------------------

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
            raise RefusedError(problems[0])
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
            if len(found) > self.limits.publications:
                what = f"more than {self.limits.publications:,} publications"
                raise RefusedError(Problem(what, Place("body"), "Send several requests."))
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
        now = millis(self.clock())
        triples = sum(len(one.given) for one in several)
        encoded = await _apart(
            triples * _TRIPLE_BYTES, lambda: [row_of(one, source, by.owner, now) for one in several]
        )
        asked_by, body = by.owner or 0, sha256(of).digest()

        def work(db: Connection) -> Accepted:
            if key is not None:
                same = (requests.c.owner == asked_by) & (requests.c.key == key)
                before = db.execute(select(requests).where(same)).mappings().one_or_none()
                if before is not None and before["hash"] != body:
                    what, remedy = "this key was used for another body", "Use a new key."
                    raise ConflictError(Problem(what, Place("Idempotency-Key"), remedy))
                if before is not None:
                    said = before["said"]
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
            for row, why in self.supervisor.each(task, encoded, keep, lambda row: str(row["id"])):
                refused.append(Problem(f"set aside: {why}", Place(row["id"]), "The log says more."))
                values = {"at": now, "what": f"set aside: {why}", "subject": row["id"]}
                db.execute(insert(audit).values(who=source, **values))
            told = tuple(stored)
            if key is not None:
                said = {"publications": told, "problems": [_said(one) for one in refused]}
                values = {"owner": asked_by, "key": key, "hash": body, "said": said, "at": now}
                db.execute(insert(requests).values(values))
            if also is not None:
                also(db)
            return Accepted(told, tuple(refused))

        accepted = await self.store.write(work)
        if task == "http" and accepted.problems and not accepted.publications:
            raise RefusedError(accepted.problems[0])
        self.woken()
        return accepted

    # -- tokens -----------------------------------------------------------------------------

    async def new_token(self, owner: str, scopes: Sequence[str], name: str = "") -> str:
        """Return a new API token of an owner, who is made where there is none of that name.

        Raises
        ------
        RefusedError
            When a scope is unknown.
        """
        if unknown := set(scopes) - SCOPES:
            what, remedy = (
                f"no scope is called {min(unknown)!r}",
                f"Say {', '.join(sorted(SCOPES))}.",
            )
            raise RefusedError(Problem(what, Place("scopes"), remedy))
        token, now = f"gmk_{secrets.token_urlsafe(_SECRET_BYTES)}", millis(self.clock())

        def work(db: Connection) -> None:
            number = db.scalar(select(owners.c.id).where(owners.c.name == owner))
            if number is None:
                made = insert(owners).values(name=owner, created_at=now).returning(owners.c.id)
                number = db.scalar(made)
            db.execute(
                insert(tokens).values(
                    owner=number,
                    name=name,
                    hash=digest_of(token),
                    scopes=" ".join(sorted(scopes)),
                    created_at=now,
                )
            )

        await self.store.write(work)
        return token

    async def revoke_tokens(self, owner: str) -> int:
        """Make all tokens of an owner invalid; return how many."""
        now = millis(self.clock())

        def work(db: Connection) -> int:
            theirs = select(owners.c.id).where(owners.c.name == owner).scalar_subquery()
            mine = (tokens.c.owner == theirs) & tokens.c.revoked_at.is_(None)
            return db.execute(update(tokens).where(mine).values(revoked_at=now)).rowcount

        return await self.store.write(work)

    async def principal(self, token: str | None) -> Principal:
        """Return whose a token is.

        Raises
        ------
        NotThereError
            When it is none, or was revoked.
        """
        if token is None:
            return ANYBODY
        valid = (tokens.c.hash == digest_of(token)) & tokens.c.revoked_at.is_(None)
        row = await self.store.read(
            lambda db: db.execute(select(tokens).where(valid)).mappings().one_or_none()
        )
        if row is None:
            what, remedy = "the token is unknown", "Ask whoever runs the broker for one."
            raise NotThereError(Problem(what, Place("Authorization"), remedy))
        return Principal(row["owner"], frozenset(row["scopes"].split()))

    # -- what ends --------------------------------------------------------------------------

    async def note(self, what: str, subject: str | None = None, who: str | None = None) -> None:
        """Write a line to the audit log."""
        values = {"at": millis(self.clock()), "what": what, "subject": subject, "who": who}
        await self.store.write(lambda db: db.execute(insert(audit).values(values)))


def pause_subscription(db: Connection, number: int, reason: str, now: int) -> None:
    """Pause a subscription that is active, for a reason that its owner sees; audited."""
    active = (subscriptions.c.number == number, subscriptions.c.state == "active")
    id = db.scalar(select(subscriptions.c.id).where(*active))
    if id is not None:
        values = {"state": "paused", "reason": reason, "change": counted(db, "change")}
        db.execute(update(subscriptions).where(*active).values(**values))
        what = f"subscription paused: {reason}"
        db.execute(insert(audit).values(at=now, what=what, subject=id))


def end_subscription(db: Connection, number: int, reason: str, now: int) -> None:
    """End a subscription: engines forget it, and its ticket is for reading only."""
    values = {
        "state": "ended",
        "reason": reason,
        "expires_at": now,
        "change": counted(db, "change"),
    }
    db.execute(update(subscriptions).where(subscriptions.c.number == number).values(values))


def is_text(given: object) -> bool:
    """Whether JSON can be stored: each text is Unicode without a NUL, each number one of JSON."""
    try:
        text = json.dumps(given, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError):
        return False
    return r"\u0000" not in text.replace(r"\\", "")


# -- small things -------------------------------------------------------------------------------


async def _apart(size: int, work: Callable[[], T]) -> T:
    """Do work in a thread, unless its input is so small that the thread would cost more."""
    return work() if size <= _SMALL_BYTES else await asyncio.to_thread(work)


def millis(time: datetime) -> int:
    """Return a time as the store has it."""
    return int(time.timestamp() * 1000)


def time_of(value: int) -> datetime:
    """Return a time of the store."""
    return datetime.fromtimestamp(value / 1000, UTC)


def digest_of(secret: str) -> bytes:
    """Return what is kept of a token or a ticket."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


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

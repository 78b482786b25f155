"""The match worker: from the log of publications to matches and deliveries.

One thread reads publications in the order of the log, adds all subscriptions that were committed
before them to the engine, matches, and commits matches, deliveries and the fact that the
publications are matched in one transaction. A publication with many matches is committed in chunks
of `CHUNK_SIZE`, and is matched after the last one. After a failure or a restart, matches that are
already in the store are left out. The log is the truth, and the engine is a cache.

The engine is saved as a snapshot. Its name has the fingerprint of the ontology and the counter of
changes of subscriptions up to which the engine is current. A start opens it and catches up.

In PostgreSQL, several processes can match one log. Each claims publications for `_CLAIM`.

Cost: some 0.5 ms for a publication with 10 matches.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import bindparam, insert, or_, select, update

from graphmatch.broker.db.store import counted, counter
from graphmatch.broker.db.subscription_queries import end_subscription, pause_subscription
from graphmatch.broker.db.tables import WAITING, deliveries, matches, publications, subscriptions
from graphmatch.broker.models.subscription_settings import PUSHED, send_at
from graphmatch.broker.models.times import millis
from graphmatch.broker.service.broker import Broker
from graphmatch.engine import Engine
from graphmatch.report import CoreMatches
from graphmatch.snapshot import SavedError
from semantic.errors import GraphMatchError, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row, Select

BATCH_SIZE = 30
"""Maximum number of publications that are matched together."""
CHUNK_SIZE = 1_000
"""Maximum number of matches in one transaction."""
_CLAIM = timedelta(seconds=60)
IDLE_SECONDS = 5.0
"""Interval in which the log is read if nothing wakes the worker."""
_LOAD_SIZE = 50_000
"""Maximum number of subscriptions that are read at once."""
SAVE_SECONDS = 300.0
"""Interval of snapshots."""
_SUFFIX = ".gm"
FAILURES = 10
"""Number of failed evaluations within an hour after which a subscription is paused, because each
delays all others by up to a second."""
_HOUR = 3600.0
_TASK = "matching"
_MATCHES, _DELIVERIES = insert(matches), insert(deliveries)
_MATCHED = (
    update(publications)
    .where(publications.c.seq.in_(bindparam("seqs", expanding=True)))
    .values(matched_at=bindparam("now"))
)
_PROBLEM = (
    update(publications)
    .where(publications.c.seq == bindparam("of"))
    .values(problem=bindparam("text"))
)

log = logging.getLogger("graphmatch.broker")


@dataclass(slots=True)
class LoggedPublication:
    """A publication of the log that is not yet matched.

    Parameters
    ----------
    seq, id, data, received_at
        Its row in the log; `data` is N-Triples.
    attempts
        Number of attempts to match it. Some of its matches can be in the store after the first.
    is_matched
        Whether its matches are committed.
    problem
        The problem of the publication, or of an evaluation.
    failed
        Numbers of subscriptions whose evaluation failed, and why.
    """

    seq: int
    id: str
    data: bytes
    received_at: int
    attempts: int
    is_matched: bool = False
    problem: str | None = None
    failed: Sequence[tuple[str, str]] = ()


class _Match(NamedTuple):
    """A match: its subscription, its solutions as JSON, and whether some of them are missing."""

    publication: LoggedPublication
    number: int
    solutions: str
    is_truncated: bool


class MatchWorker:
    """Matches the log in a thread.

    Parameters
    ----------
    broker
        The broker with the store, the engine and the clock.
    snapshots
        Folder of snapshots; ``None`` to read all subscriptions from the store at each start.
    fingerprint
        Fingerprint of the ontology and its options. Snapshots with another one are not opened.
    version
        Version of the ontology, which is stored with each match.

    Attributes
    ----------
    on_matched
        Called after a commit with the numbers of the subscriptions that matched.
    on_timed
        Called after a commit with the seconds between the commit of each publication and now.
    """

    def __init__(
        self,
        broker: Broker,
        snapshots: Path | None = None,
        fingerprint: str = "",
        version: int = 0,
    ) -> None:
        self.broker = broker
        self._snapshots, self._fingerprint, self._version = snapshots, fingerprint, version
        self._known = self._saved = 0
        self._saved_at = monotonic()
        self._first: int | None = None
        """Number of the last publication at the start; some matches of earlier ones can exist."""
        self._held: Sequence[LoggedPublication] = ()
        """Publications that are not completely matched, for example because of an outage."""
        self._failures: dict[int, list[float]] = {}
        """Times of the failed evaluations of each subscription within an hour."""
        self._wake, self._stop = Event(), Event()
        self._thread: Thread | None = None
        self.on_matched: Callable[[Sequence[int]], None] = lambda _: None
        self.on_timed: Callable[[Sequence[float]], None] = lambda _: None

    @property
    def is_running(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None and self._thread.is_alive()

    # -- the engine -------------------------------------------------------------------------

    def load(self) -> None:
        """Add all subscriptions to the engine, from a snapshot and from later changes."""
        current = self.broker.engine
        for known, path in sorted(self._stored(), reverse=True):
            try:
                engine = Engine.open(
                    path,
                    clock=current._clock,
                    on_problem=current._on_problem,
                    operators=current.operators,
                    limits=current.limits,
                )
            except SavedError as error:
                log.warning("%s", error)
                continue
            self.broker.engine, self._known, self._saved = engine, known, known
            break
        self.catch_up()

    def _stored(self) -> list[tuple[int, Path]]:
        """Return the snapshots of this ontology, each with the last change that it includes."""
        if self._snapshots is None:
            return []
        paths = self._snapshots.glob(f"engine-{self._fingerprint}-*{_SUFFIX}")
        numbered = ((path.stem.rpartition("-")[2], path) for path in paths)
        return [(int(number), path) for number, path in numbered if number.isdecimal()]

    def save(self) -> None:
        """Save a snapshot, and delete earlier ones."""
        self._saved_at = monotonic()
        if self._snapshots is None or self._saved == self._known:
            return
        before, known = self._stored(), self._known
        path = self._snapshots / f"engine-{self._fingerprint}-{known}{_SUFFIX}"
        try:
            self._snapshots.mkdir(0o700, parents=True, exist_ok=True)
            self.broker.engine.save(path)
            path.chmod(0o600)
        except (SavedError, OSError) as error:  # The snapshot is only a cache.
            log.warning("%s", error)
            return
        self._saved = known
        for number, old in before:
            if number != known:
                old.unlink(missing_ok=True)

    def catch_up(self) -> None:
        """Apply changes of subscriptions since the last call to the engine."""
        table, engine = subscriptions.c, self.broker.engine
        chosen = select(table.number, table.change, table.state, table.query)
        while True:
            newer = chosen.where(table.change > self._known).order_by(table.change)
            last, rows = self.broker.store.read_now(partial(_changes, newer.limit(_LOAD_SIZE)))
            active: list[tuple[str, str]] = []
            for number, _, state, query in rows:
                id = str(number)
                self._failures.pop(number, None)
                if id in engine:
                    engine.unsubscribe(id)
                if state == "active":
                    active.append((id, query))
            each, name = self.broker.supervisor.each, "subscription {0[0]}".format
            for (id, _), why in each(_TASK, active, self._add, name):
                self._refuse(int(id), why)
            if len(rows) < _LOAD_SIZE:
                self._known = max([last, *(row.change for row in rows[-1:])])
                return
            self._known = rows[-1].change

    def _add(self, rows: Sequence[tuple[str, str]]) -> None:
        engine = self.broker.engine
        for id, _ in rows:
            if id in engine:  # It is from a batch that failed.
                engine.unsubscribe(id)
        for error in engine.subscribe_many(rows):
            self._refuse(int(error.problem.where.source), error.problem.what)

    def _refuse(self, number: int, why: str) -> None:
        """End a subscription that is invalid with the current ontology."""
        log.warning("subscription %d: %s", number, why)
        now = millis(self.broker.clock())
        self.broker.store.write_now(lambda db: end_subscription(db, number, f"refused: {why}", now))

    # -- the loop ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        run = self.broker.supervisor.run
        arguments = (_TASK, self._round, self._stop, self._wake)
        self._thread = Thread(target=run, args=arguments, name="matcher")
        self._thread.start()

    def stop(self) -> None:
        """Finish the current publications, end the thread, and save a snapshot."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.save()

    def wake(self) -> None:
        """Wake the thread after a commit."""
        self._wake.set()

    def _round(self) -> float:
        while self.step() == BATCH_SIZE and not self._stop.is_set():
            pass
        if monotonic() - self._saved_at > SAVE_SECONDS:
            self.save()
        return IDLE_SECONDS

    def step(self) -> int:
        """Match the next publications and commit their matches; return their number."""
        if not self._held:
            store = self.broker.store
            read = store.read_now(self._next) if store.is_sqlite else store.write_now(self.claim)
            self._held, change = read
            if change > self._known:
                self.catch_up()
        held = self._held
        each, name = self.broker.supervisor.each, "publication {0.seq}".format
        for publication, error in each(_TASK, held, self._match_all, name):
            publication.problem = error
            self._write([], [publication])
        self._held = ()
        now = millis(self.broker.clock())
        self.on_timed([(now - publication.received_at) / 1000 for publication in held])
        self._pause({int(id): why for publication in held for id, why in publication.failed})
        return len(held)

    # -- reading the log --------------------------------------------------------------------

    def _next(self, db: Connection) -> tuple[Sequence[LoggedPublication], int]:
        """Return the first unmatched publications, and the counter of changes."""
        rows = db.execute(_UNMATCHED).all()
        return self._logged(db, rows), counter(db, "change")

    def claim(self, db: Connection) -> tuple[Sequence[LoggedPublication], int]:
        """Claim publications that no other process has claimed; return them as `_next` does."""
        table, now = publications.c, self.broker.clock()
        # A claim that ends after the longest possible one was made when the clock was wrong.
        held = table.claimed_until.between(millis(now), millis(now + 2 * _CLAIM))
        free = or_(table.claimed_until.is_(None), ~held)
        waiting = select(table.seq).where(table.matched_at.is_(None), free).order_by(table.seq)
        some = waiting.limit(BATCH_SIZE).with_for_update(skip_locked=True)
        claim = (
            update(publications)
            .where(table.seq.in_(some))
            .values(claimed_until=millis(now + _CLAIM))
            .returning(table.seq, table.id, table.data, table.received_at)
        )
        rows = sorted(db.execute(claim))
        return self._logged(db, rows), counter(db, "change")

    def _logged(
        self, db: Connection, rows: Sequence[Row[*tuple[Any, ...]]]
    ) -> Sequence[LoggedPublication]:
        if (first := self._first) is None:
            first = self._first = counter(db, "publication")
        return [
            LoggedPublication(row.seq, row.id, row.data, row.received_at, int(row.seq <= first))
            for row in rows
        ]

    # -- matching ---------------------------------------------------------------------------

    def _match_all(self, logged: Sequence[LoggedPublication]) -> None:
        """Match publications, and commit their matches in chunks."""
        chunk: list[_Match] = []
        matched: list[LoggedPublication] = []
        for publication in logged:
            if publication.is_matched:
                continue
            publication.attempts += 1
            for match in self._match(publication):
                chunk.append(_Match(publication, *match))
                if len(chunk) == CHUNK_SIZE:
                    self._write(chunk, matched)
                    chunk, matched = [], []
            matched.append(publication)
        if chunk or matched:
            self._write(chunk, matched)

    def _match(self, logged: LoggedPublication) -> Iterator[tuple[int, str, bool]]:
        """Yield subscription, solutions and whether these are truncated, for each match."""
        problems: list[Problem] = []
        try:
            engine = self.broker.engine
            for report in engine.filter(logged.data, "nt", "document", name=logged.id):
                problems += report.problems
                assert isinstance(report.matches, CoreMatches)
                logged.failed = report.matches.failed
                yield from self._solutions(report.matches)
        except GraphMatchError as error:  # The publication exceeds a limit.
            problems.append(error.problem)
        logged.problem = str(problems[0]).replace("\0", "\ufffd") if problems else None

    def _solutions(self, found: CoreMatches) -> Iterator[tuple[int, str, bool]]:
        limit = self.broker.limits.solutions
        for id, solutions, graph, is_complete in found.texts(limit + 1):
            if graph is not None:
                lines = [" ".join(map(str, triple)) + " ." for triple in graph[:limit]]
                yield int(id), json.dumps({"graph": lines}), len(graph) > limit
                continue
            rows = [{name: str(term) for name, term in row.items()} for row in solutions[:limit]]
            text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
            yield int(id), text, len(solutions) > limit or not is_complete

    def _pause(self, failed: Mapping[int, str]) -> None:
        """Pause the subscriptions whose evaluation has failed too often."""
        now = monotonic()
        for number, why in failed.items():
            times = [at for at in self._failures.get(number, ()) if at > now - _HOUR]
            self._failures[number] = [*times, now]
            if len(self._failures[number]) >= FAILURES:
                del self._failures[number]
                reason, at = f"{FAILURES} evaluations failed: {why}", millis(self.broker.clock())
                log.warning("subscription %d is paused: %s", number, reason)
                pause = partial(pause_subscription, number=number, reason=reason, now=at)
                self.broker.store.write_now(pause)

    # -- writing ----------------------------------------------------------------------------

    def _write(self, chunk: Sequence[_Match], matched: Sequence[LoggedPublication]) -> None:
        """Commit a chunk of matches, and that publications are matched."""
        numbers = self.broker.store.write_now(partial(self._insert, chunk, matched))
        for publication in matched:
            publication.is_matched = True
        if numbers:
            self.on_matched(numbers)

    def _insert(
        self, chunk: Sequence[_Match], matched: Sequence[LoggedPublication], db: Connection
    ) -> Sequence[int]:
        """Insert matches and their deliveries; return the subscriptions."""
        now = self.broker.clock()
        seqs = {one.seq for one in matched} | {match.publication.seq for match in chunk}
        numbers = {match.number for match in chunk}
        active = _active_subscriptions(db, numbers)
        digests = _open_digests(db, [row.number for row in active.values() if row.digest])
        present: set[tuple[int, int]] = set()
        shared = not self.broker.store.is_sqlite
        if shared or any(match.publication.attempts > 1 for match in chunk):
            # Earlier chunks, or another process, can have inserted some of the matches.
            present = _present_matches(db, seqs, numbers)
        if shared:
            table = publications.c
            unmatched = select(table.seq).where(table.seq.in_(seqs), table.matched_at.is_(None))
            seqs = set(db.scalars(unmatched))
        rows: list[dict[str, Any]] = []
        outgoing: list[dict[str, Any]] = []
        for publication, number, solutions, is_truncated in chunk:
            seq, row = publication.seq, active.get(number)
            if row is None or row.after_publication >= seq or seq not in seqs:
                continue
            if (seq, number) in present:
                continue
            if row.expires_at is not None and row.expires_at <= publication.received_at:
                continue  # The subscription has expired but is not yet marked as ended.
            delivery = None
            if row.sink["kind"] in PUSHED:
                name = f"delivery of publication {seq} to subscription {number}"
                with self.broker.supervisor.record(_TASK, name, attempts=1):
                    delivery = _delivery(row, now, outgoing, digests)
            rows.append(
                {
                    "subscription": number,
                    "publication": seq,
                    "generation": row.generation,
                    "solutions": solutions,
                    "truncated": is_truncated,
                    "ontology_version": self._version,
                    "matched_at": millis(now),
                    "delivery": delivery,
                }
            )
        _number(db, outgoing, rows)
        if outgoing:
            db.execute(_DELIVERIES, outgoing)
        if rows:
            db.execute(_MATCHES, rows)
        if matched := [one for one in matched if one.seq in seqs]:
            db.execute(_MATCHED, {"seqs": [one.seq for one in matched], "now": millis(now)})
            if problems := [{"of": one.seq, "text": one.problem} for one in matched if one.problem]:
                db.execute(_PROBLEM, problems)
        return list(dict.fromkeys(row["subscription"] for row in rows))


def _delivery(
    row: Row[*tuple[Any, ...]],
    now: datetime,
    outgoing: list[dict[str, Any]],
    digests: dict[int, dict[str, Any]],
) -> dict[str, Any]:
    """Return the delivery of a match: the open digest, or a new one, which is also added."""
    if row.digest and row.number in digests:
        return digests[row.number]
    delivery = {
        "subscription": row.number,
        "kind": "digest" if row.digest else "match",
        "host": host_of(row.sink),
        "state": "waiting",
        "attempt": 0,
        "due_at": millis(send_at(now, row.digest, row.quiet_hours)),
        "created_at": millis(now),
    }
    outgoing.append(delivery)
    if row.digest:
        digests[row.number] = delivery
    return delivery


def host_of(sink: Mapping[str, Any]) -> str:
    """Return the host and port of a sink, which share a circuit breaker; ``smtp:`` for email."""
    return "smtp:" if sink["kind"] == "email" else _host_of(sink.get("url", ""))


@lru_cache(10_000)
def _host_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _changes(newer: Select[Any], db: Connection) -> tuple[int, Sequence[Row[*tuple[Any, ...]]]]:
    """Return the counter of changes, and rows that include all changes up to it."""
    return counter(db, "change"), db.execute(newer).all()


_table = publications.c
_UNMATCHED = (
    select(_table.seq, _table.id, _table.data, _table.received_at)
    .where(_table.matched_at.is_(None))
    .order_by(_table.seq)
    .limit(BATCH_SIZE)
)
_table = subscriptions.c
_ACTIVE = select(
    _table.number,
    _table.after_publication,
    _table.generation,
    _table.sink,
    _table.digest,
    _table.quiet_hours,
    _table.expires_at,
).where(_table.state == "active", _table.number.in_(bindparam("numbers", expanding=True)))


def _active_subscriptions(db: Connection, numbers: set[int]) -> dict[int, Row[*tuple[Any, ...]]]:
    """Return the active subscriptions among some, by number."""
    if not numbers:
        return {}
    rows = db.execute(_ACTIVE, {"numbers": sorted(numbers)}).all()
    return {row[0]: row for row in rows}


def _open_digests(db: Connection, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return the digests of subscriptions that are not yet due, by subscription."""
    if not numbers:
        return {}
    table = deliveries.c
    waiting = (table.kind == "digest", WAITING, table.attempt == 0)
    chosen = select(table.id, table.subscription).where(*waiting, table.claimed_until.is_(None))
    rows = db.execute(chosen.where(table.subscription.in_(numbers)))
    return {number: {"id": id} for id, number in rows}


def _present_matches(db: Connection, seqs: set[int], numbers: set[int]) -> set[tuple[int, int]]:
    """Return the pairs of publication and subscription that have a match in the store."""
    table = matches.c
    pairs = select(table.publication, table.subscription).where(table.publication.in_(seqs))
    rows = db.execute(pairs.where(table.subscription.in_(numbers)))
    return {(seq, number) for seq, number in rows}


def _number(db: Connection, outgoing: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Assign numbers to deliveries and matches, in the order of commits."""
    if outgoing:
        first = counted(db, "delivery", len(outgoing)) - len(outgoing) + 1
        for id, delivery in enumerate(outgoing, first):
            delivery["id"] = id
    if rows:
        first = counted(db, "match", len(rows)) - len(rows) + 1
        for seq, row in enumerate(rows, first):
            row["seq"] = seq
            row["delivery"] = row["delivery"]["id"] if row["delivery"] else None

"""From the log to matches and deliveries.

One thread takes publications from the log, in order; brings the engine up to date with all
subscriptions that were committed meanwhile; matches; and commits in one transaction the matches,
the deliveries that they cause, and that the publications are matched. Killed at any moment, it goes
on where it was: the log is the truth, the engine a cache.

That cache is saved as a snapshot whose name has the ontology's fingerprint and the counter of
changes that it knows; a start opens it and catches up.

Several processes may match one log in PostgreSQL: each claims publications for a while.

Cost: of a publication with 10 matches, some 0.5 ms to match and write all of it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlalchemy import insert, or_, select, update

from graphmatch.broker.db.store import counted
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
    from sqlalchemy import Connection, RowMapping, Select

BATCH_SIZE = 30
"""So many publications are matched and committed together, at most."""
_CLAIM = timedelta(seconds=60)
_IDLE_SECONDS = 5.0
"""After so long the log is looked at though nobody said that there is something in it."""
_LOADED = 50_000
"""So many subscriptions are read at once."""
SAVE_SECONDS = 300.0
_SUFFIX = ".gm"
FAILURES = 10
"""A subscription whose evaluation fails so often within an hour is paused: each costs all others
up to a second."""
_HOUR = 3600.0
_TASK = "matching"
_MATCHES, _DELIVERIES = insert(matches), insert(deliveries)

log = logging.getLogger("graphmatch.broker")


@dataclass(frozen=True, slots=True)
class Found:
    """What one publication matched.

    Parameters
    ----------
    seq
        Its number in the log.
    matches
        Numbers of subscriptions, with solutions as JSON and whether there are more.
    failed
        Numbers of subscriptions that could not be evaluated, and why.
    problem
        What was wrong with it.
    """

    seq: int
    matches: tuple[tuple[int, str, bool], ...]
    failed: tuple[tuple[int, str], ...] = ()
    problem: str | None = None


class MatchWorker:
    """Matches the log, in a thread of its own.

    Parameters
    ----------
    broker
        Has the store, the engine and the clock.
    snapshots
        The folder of snapshots; ``None``: subscriptions are read from the store at each start.
    fingerprint
        Of the ontology and its options: snapshots of others are not opened.
    version
        Which ontology that is: matches are told apart by it.
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
        self._known = 0
        """All changes up to this one are in the engine."""
        self._saved = 0
        self._held: Sequence[RowMapping] = ()
        """What was claimed and is not yet committed: the database may have gone between."""
        self._failures: dict[int, list[float]] = {}
        """When the evaluation of a subscription failed, lately."""
        self._wake, self._stop = Event(), Event()
        self._thread: Thread | None = None
        self.on_matched: Callable[[Sequence[int]], None] = lambda _: None
        """Called after a commit with the numbers of the subscriptions that matched."""
        self.on_timed: Callable[[Sequence[float]], None] = lambda _: None
        """Called after a commit with how many seconds each publication had waited for it."""

    @property
    def is_running(self) -> bool:
        """Whether the log is being matched."""
        return self._thread is not None and self._thread.is_alive()

    # -- the engine -------------------------------------------------------------------------

    def load(self) -> None:
        """Bring all subscriptions into the engine: from a snapshot, and what changed since."""
        for known, path in sorted(self._stored(), reverse=True):
            try:
                engine = Engine.open(
                    path,
                    clock=self.broker.engine._clock,
                    on_problem=self.broker.engine._on_problem,
                    operators=self.broker.engine.operators,
                    limits=self.broker.engine.limits,
                )
            except SavedError as error:
                log.warning("%s", error)
                continue
            self.broker.engine, self._known, self._saved = engine, known, known
            break
        self.catch_up()

    def _stored(self) -> list[tuple[int, Path]]:
        """Return the snapshots of this ontology, by the last change that each knows."""
        if self._snapshots is None or not self._snapshots.is_dir():
            return []
        found = []
        for path in self._snapshots.glob(f"engine-{self._fingerprint}-*{_SUFFIX}"):
            number = path.stem.rpartition("-")[2]
            if number.isdecimal():
                found.append((int(number), path))
        return found

    def save(self) -> None:
        """Save a snapshot, and delete those before."""
        if self._snapshots is None or self._saved == self._known:
            return
        before = self._stored()
        known = self._known
        name = f"engine-{self._fingerprint}-{known}{_SUFFIX}"
        try:
            self._snapshots.mkdir(0o700, parents=True, exist_ok=True)
            self.broker.engine.save(self._snapshots / name)
            (self._snapshots / name).chmod(0o600)
        except (SavedError, OSError) as error:  # it is a cache
            log.warning("%s", error)
            return
        self._saved = known
        for number, path in before:
            if number != known:
                path.unlink(missing_ok=True)

    def catch_up(self) -> None:
        """Take what was subscribed, changed and ended since into the engine."""
        table, engine = subscriptions.c, self.broker.engine
        chosen = select(table.number, table.change, table.state, table.query)
        while True:
            newer = chosen.where(table.change > self._known).order_by(table.change).limit(_LOADED)
            rows = self.broker.store.read_now(partial(_rows, newer))
            new: list[tuple[str, str]] = []
            for number, _, state, query in rows:
                id = str(number)
                self._failures.pop(number, None)
                if id in engine:
                    engine.unsubscribe(id)
                if state == "active":
                    new.append((id, query))
            each, name = self.broker.supervisor.each, "subscription {0[0]}".format
            for (id, _), why in each(_TASK, new, self._add, name):
                self._refused(int(id), why)
            if rows:
                self._known = rows[-1].change
            if len(rows) < _LOADED:
                return

    def _add(self, some: Sequence[tuple[str, str]]) -> None:
        engine = self.broker.engine
        for id, _ in some:
            if id in engine:  # From a batch that failed.
                engine.unsubscribe(id)
        for error in engine.subscribe_many(some):
            self._refused(int(error.problem.where.source), error.problem.what)

    def _refused(self, number: int, why: str) -> None:
        """End a subscription that the ontology of now does not allow."""
        log.warning("subscription %d: %s", number, why)
        now = millis(self.broker.clock())
        self.broker.store.write_now(lambda db: end_subscription(db, number, f"refused: {why}", now))

    # -- the loop ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start matching."""
        self._thread = Thread(target=self._run, name="matcher")
        self._thread.start()

    def stop(self) -> None:
        """End after the publications at hand; save a snapshot."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.save()

    def wake(self) -> None:
        """Say that there is something to match."""
        self._wake.set()

    def _run(self) -> None:
        saved = monotonic()
        while not self._stop.is_set():
            self._wake.clear()
            with self.broker.supervisor.round(_TASK) as attempt:
                while self.step() and not self._stop.is_set():
                    pass
                self.catch_up()
                if (now := monotonic()) - saved > SAVE_SECONDS:
                    saved = now
                    self.save()
            if attempt.delay:
                self._stop.wait(attempt.delay)
            else:
                self._wake.wait(_IDLE_SECONDS)

    def step(self) -> int:
        """Match some publications of the log and commit what was found; return how many."""
        store = self.broker.store
        rows = self._held
        if not rows:
            is_alone = store.is_sqlite
            rows = store.read_now(self._waiting) if is_alone else store.write_now(self.claim)
        if not rows:
            return 0
        self._held = rows
        self.catch_up()  # after the rows were read: they see what was committed before them
        found = [self.match(row["id"], row["data"], row["seq"]) for row in rows]
        after = {row["seq"]: row for row in rows}
        numbers: list[int] = []

        def commit(some: Sequence[Found]) -> None:
            numbers.extend(store.write_now(lambda db: self._commit(db, some, after)))

        each, name = self.broker.supervisor.each, "publication {0.seq}".format
        for one, why in each(_TASK, found, commit, name):
            commit([Found(one.seq, (), problem=why)])
        self._held = ()
        if numbers:
            self.on_matched(numbers)
        now = millis(self.broker.clock())
        self.on_timed([(now - row["received_at"]) / 1000 for row in rows])
        self._pause([failed for one in found for failed in one.failed])
        return len(rows)

    def _pause(self, failed: Sequence[tuple[int, str]]) -> None:
        """Pause the subscriptions whose evaluation has failed too often."""
        now, known, why = monotonic(), self._known, dict(failed)
        for number, _ in failed:
            self._failures.setdefault(number, []).append(now)
        for number, times in list(self._failures.items()):
            lately = [at for at in times if at > now - _HOUR]
            if lately:
                self._failures[number] = lately
            else:
                del self._failures[number]
        for number in why:
            if len(self._failures[number]) >= FAILURES:
                reason, at = f"{FAILURES} evaluations failed: {why[number]}", self.broker.clock()
                log.warning("subscription %d is paused: %s", number, reason)
                self.broker.store.write_now(partial(_paused, number, known, reason, millis(at)))
                del self._failures[number]

    def _waiting(self, db: Connection) -> Sequence[RowMapping]:
        table = publications.c
        chosen = select(table.seq, table.id, table.data, table.received_at)
        waiting = chosen.where(table.matched_at.is_(None)).order_by(table.seq).limit(BATCH_SIZE)
        return db.execute(waiting).mappings().all()

    def claim(self, db: Connection) -> Sequence[RowMapping]:
        """Claim publications that no other process has claimed."""
        table, now = publications.c, self.broker.clock()
        # a claim that ends later than any may was made when the clock was wrong
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
        rows = db.execute(claim).mappings().all()
        return sorted(rows, key=lambda row: row["seq"])

    def match(self, id: str, data: bytes, seq: int) -> Found:
        """Return what a publication of the log matches."""
        said: list[Problem] = []
        found: list[tuple[int, str, bool]] = []
        failed: list[tuple[int, str]] = []
        with self.broker.supervisor.record(_TASK, f"publication {seq}") as attempt:
            try:
                for report in self.broker.engine.filter(data, "nt", "document", name=id):
                    said += report.problems
                    assert isinstance(report.matches, CoreMatches)
                    found += self._matches(report.matches)
                    failed += [(int(one), why) for one, why in report.matches.failed]
            except GraphMatchError as error:  # of one publication: the others go on
                said.append(error.problem)
        if attempt.error is not None:
            return Found(seq, (), problem=attempt.error)
        problem = str(said[0]).replace("\0", "\ufffd") if said else None
        return Found(seq, tuple(found), tuple(failed), problem)

    def _matches(self, several: CoreMatches) -> list[tuple[int, str, bool]]:
        most = self.broker.limits.solutions
        found = []
        for id, solutions, graph, is_whole in several.texts(most + 1):
            if graph is not None:
                lines = [" ".join(map(str, triple)) + " ." for triple in graph[:most]]
                found.append((int(id), json.dumps({"graph": lines}), len(graph) > most))
                continue
            some = [{name: str(term) for name, term in one.items()} for one in solutions[:most]]
            text = json.dumps(some, ensure_ascii=False, separators=(",", ":"))
            found.append((int(id), text, len(solutions) > most or not is_whole))
        return found

    def _commit(
        self, db: Connection, found: Sequence[Found], rows: Mapping[int, RowMapping]
    ) -> tuple[int, ...]:
        """Write what was found; return the subscriptions that have something new."""
        now = self.broker.clock()
        numbers = {number for one in found for number, _, _ in one.matches}
        known = _by_number(db, numbers)
        if not self.broker.store.is_sqlite:  # another process may have had them after all
            still = select(publications.c.seq).where(
                publications.c.seq.in_(list(rows)), publications.c.matched_at.is_(None)
            )
            left = set(db.scalars(still.with_for_update()))
            found = [one for one in found if one.seq in left]
        new: list[dict[str, Any]] = []
        outgoing: list[dict[str, Any]] = []
        digests = _open_digests(db, known)
        for one in found:
            for number, solutions, truncated in one.matches:
                row = known.get(number)
                if row is None or row["after_publication"] >= one.seq:
                    continue
                end = row["expires_at"]
                if end is not None and end <= rows[one.seq]["received_at"]:
                    continue  # it has ended, and nobody has scanned yet
                made = {
                    "subscription": number,
                    "publication": one.seq,
                    "generation": row["generation"],
                    "solutions": solutions,
                    "truncated": truncated,
                    "ontology_version": self._version,
                    "matched_at": millis(now),
                    "delivery": None,
                }
                if row["sink"]["kind"] in PUSHED:
                    name = f"delivery of publication {one.seq} to subscription {number}"
                    with self.broker.supervisor.record(_TASK, name):
                        made["delivery"] = self._delivery(row, now, outgoing, digests)
                new.append(made)
        _numbered(db, outgoing, new)
        if outgoing:
            db.execute(_DELIVERIES, outgoing)
        if new:
            db.execute(_MATCHES, new)
        told = tuple(dict.fromkeys(made["subscription"] for made in new))
        done = update(publications).values(matched_at=millis(now))
        db.execute(done.where(publications.c.seq.in_([one.seq for one in found])))
        for one in found:
            if one.problem is not None:
                mine = publications.c.seq == one.seq
                db.execute(update(publications).where(mine).values(problem=one.problem))
        return told

    def _delivery(
        self,
        row: RowMapping,
        now: datetime,
        outgoing: list[dict[str, Any]],
        digests: dict[int, dict[str, Any]],
    ) -> dict[str, Any]:
        """Return the delivery that a match goes with: one of its own, or the open digest."""
        number = row["number"]
        if row["digest"] and number in digests:
            return digests[number]
        due = send_at(now, row["digest"], row["quiet_hours"])
        made = {
            "subscription": number,
            "kind": "digest" if row["digest"] else "match",
            "host": host_of(row["sink"]),
            "state": "waiting",
            "attempt": 0,
            "due_at": millis(due),
            "created_at": millis(now),
        }
        outgoing.append(made)
        if row["digest"]:
            digests[number] = made
        return made


def host_of(sink: Mapping[str, Any]) -> str:
    """Return what a sink's breaker is kept for: a host, or all of e-mail."""
    if sink["kind"] == "email":
        return "smtp:"
    parts = urlsplit(sink.get("url", ""))
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _paused(number: int, known: int, reason: str, at: int, db: Connection) -> None:
    """Pause a subscription that has not changed since the engine had it."""
    table = subscriptions.c
    if db.scalar(select(table.id).where(table.number == number, table.change <= known)):
        pause_subscription(db, number, reason, at)


def _rows(chosen: Select[Any], db: Connection) -> Sequence[Any]:
    return db.execute(chosen).all()


def _by_number(db: Connection, numbers: set[int]) -> dict[int, RowMapping]:
    """Return the active subscriptions among some."""
    table = subscriptions.c
    chosen = select(
        table.number,
        table.after_publication,
        table.generation,
        table.sink,
        table.digest,
        table.quiet_hours,
        table.expires_at,
    )
    found: dict[int, RowMapping] = {}
    several = sorted(numbers)
    for begin in range(0, len(several), 10_000):
        some = table.number.in_(several[begin : begin + 10_000])
        rows = db.execute(chosen.where(some, table.state == "active")).mappings()
        found |= {row["number"]: row for row in rows}
    return found


def _open_digests(db: Connection, known: Mapping[int, RowMapping]) -> dict[int, dict[str, Any]]:
    """Return the digests that wait for their time, by subscription."""
    several = [number for number, row in known.items() if row["digest"]]
    if not several:
        return {}
    table = deliveries.c
    waiting = (table.kind == "digest", WAITING, table.attempt == 0)
    chosen = select(table.id, table.subscription).where(*waiting, table.claimed_until.is_(None))
    rows = db.execute(chosen.where(table.subscription.in_(several)))
    return {number: {"id": id} for id, number in rows}


def _numbered(db: Connection, outgoing: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    """Give deliveries and matches their numbers, in the order of commits."""
    if outgoing:
        last = counted(db, "delivery", len(outgoing))
        for id, one in enumerate(outgoing, last - len(outgoing) + 1):
            one["id"] = id
    if new:
        last = counted(db, "match", len(new))
        for seq, made in enumerate(new, last - len(new) + 1):
            made["seq"] = seq
            made["delivery"] = made["delivery"]["id"] if made["delivery"] else None

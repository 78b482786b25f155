"""The match worker: from the log of publications to matches and deliveries.

One thread reads publications in the order of the log, adds all subscriptions that were committed
before them to the engine, and matches. One transaction stores the matches of some publications and
their deliveries, and sets `matched_at` of these publications. The matches of a publication with
more than `CHUNK_SIZE` are stored in parts, and the last part sets `matched_at`. A part omits the
matches that an earlier attempt has stored. The engine can be rebuilt from the store.

The engine is saved as a snapshot. Its name has the fingerprint of the ontology and the counter of
changes of subscriptions up to which the engine is current. A start opens it and catches up.

In PostgreSQL, several processes can match one log. Each claims publications for `_CLAIM`. If a
process does not know whether the claim was committed, or cannot store the matches, it claims the
same publications again.

Cost: some 0.5 ms for a publication with 10 matches.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from itertools import chain, count, islice
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sqlalchemy import bindparam, literal_column, or_, select, text, update
from yarl import URL

from graphmatch.broker.db.store import counted, counter, insert_many
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

    _Row: TypeAlias = Row[*tuple[Any, ...]]

BATCH_SIZE = 30
"""Maximum number of publications that are read together."""
CHUNK_SIZE = 200
"""Number of matches after which a transaction ends, so that requests wait for a few ms only."""
_CLAIM = timedelta(seconds=60)
IDLE_SECONDS = 5.0
"""Interval in which the log is read if nothing wakes the worker."""
_LOAD_SIZE = 50_000
"""Maximum number of subscriptions that are read at once."""
SAVE_SECONDS = 300.0
"""Interval of snapshots."""
MAX_SOURCES = 20
"""Maximum number of sources that a match names."""
FAILURES = 10
"""Number of failed evaluations within an hour after which a subscription is paused, because each
delays all others by up to a second."""
_HOUR = 3600.0
_TASK = "matching"
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

# -- statements ---------------------------------------------------------------------------------

_table = publications.c
_STORY = (_table.source, _table.story, _table.story_too)
_COLUMNS = (_table.seq, _table.id, _table.data, _table.received_at, *_STORY)
_UNMATCHED = (
    select(*_COLUMNS).where(_table.matched_at.is_(None)).order_by(_table.seq).limit(BATCH_SIZE)
)
_NO_SYNC = text("SET LOCAL synchronous_commit = off")
"""Commit without waiting for the disk: nothing is lost with a claim."""
# Written out, because SQLAlchemy omits the names of tables in a RETURNING for SQLite.
_IS_BEGUN = "EXISTS (SELECT 1 FROM matches WHERE matches.publication = publications.seq)"
_MATCHED = (
    update(publications)
    .where(_table.seq.in_(bindparam("seqs", expanding=True)), _table.matched_at.is_(None))
    .values(matched_at=bindparam("now"))
    .returning(_table.seq, literal_column(_IS_BEGUN).label("is_begun"))
)
_table = subscriptions.c
_CHANGED = select(_table.number, _table.change, _table.state, _table.query).order_by(_table.change)
_NAMES = ("number", "after_publication", "generation", "digest", "quiet_hours", "expires_at")
_SINK = [_table.sink[key].as_string().label(key) for key in ("kind", "url")]
_ACTIVE = select(*(_table[name] for name in _NAMES), *_SINK).where(
    _table.state == "active", _table.number.in_(bindparam("numbers", expanding=True))
)

log = logging.getLogger("graphmatch.broker")


class _Part(NamedTuple):
    """Matches of a publication that are committed together.

    Parameters
    ----------
    publication
        The row of the log.
    matches
        All matches, or the next ones of a publication with more than `CHUNK_SIZE`: columns of the
        table ``matches``.
    is_last
        Whether these are the last matches of the publication.
    problem
        The problem of the publication, or of an evaluation.
    failed
        Numbers of the subscriptions whose evaluation failed, and why.
    """

    publication: _Row
    matches: Sequence[dict[str, Any]] = ()
    is_last: bool = True
    problem: Problem | str | None = None
    failed: Sequence[tuple[str, str]] = ()


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
        Called after a commit with the seconds since each matched publication was received.
    """

    def __init__(
        self, broker: Broker, snapshots: Path | None = None, fingerprint: str = "", version: int = 0
    ) -> None:
        self.broker = broker
        self._folder, self._fingerprint, self._version = snapshots, fingerprint, version
        self._known = self._saved = 0
        """Changes of subscriptions that the engine, and its snapshot, include."""
        self._saved_at = monotonic()
        self._claimed_until = 0
        """End of the claim whose publications are not all matched; 0 if there is none."""
        self._failures: dict[int, deque[float]] = {}
        """Times of the last failed evaluations of each subscription."""
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
        for known, path in sorted(self._snapshots().items(), reverse=True):
            try:
                self.broker.engine = Engine.open(
                    path,
                    clock=current._clock,
                    on_problem=current._on_problem,
                    operators=current.operators,
                    limits=current.limits,
                )
                self._known = self._saved = known
                break
            except SavedError as error:
                log.warning("%s", error)
        self.catch_up()

    def _snapshots(self) -> dict[int, Path]:
        """Return the snapshots of this ontology by the last change that each includes."""
        if self._folder is None:
            return {}
        paths = self._folder.glob(f"engine-{self._fingerprint}-*.gm")
        numbered = {path.stem.rpartition("-")[2]: path for path in paths}
        return {int(number): path for number, path in numbered.items() if number.isdecimal()}

    def save(self) -> None:
        """Save a snapshot, and delete earlier ones."""
        self._saved_at = monotonic()
        if self._folder is None or self._saved == self._known:
            return
        path = self._folder / f"engine-{self._fingerprint}-{self._known}.gm"
        try:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            self.broker.engine.save(path)
            path.chmod(0o600)
            self._saved = self._known
            for known, earlier in self._snapshots().items():
                if known != self._known:
                    earlier.unlink(missing_ok=True)
        except (SavedError, OSError) as error:  # The snapshot is only a cache.
            log.warning("%s", error)

    def catch_up(self) -> None:
        """Apply to the engine the changes of subscriptions since the last call."""
        each, name = self.broker.supervisor.each, "subscription {0.number}".format
        while True:
            newer = _CHANGED.where(subscriptions.c.change > self._known).limit(_LOAD_SIZE)
            # The rows include all changes up to the counter.
            last, rows = self.broker.store.read_now(partial(_with_counter, newer))
            if not rows:
                self._known = last
                return
            for row, why in each(_TASK, rows, self._apply, name):
                self._refuse(row.number, why)
            self._known = rows[-1].change

    def _apply(self, rows: Sequence[_Row]) -> None:
        """Remove subscriptions from the engine, and add those that are active."""
        engine = self.broker.engine
        for row in rows:
            self._failures.pop(row.number, None)
            if (id := str(row.number)) in engine:
                engine.unsubscribe(id)
        active = [(str(row.number), row.query) for row in rows if row.state == "active"]
        for error in engine.subscribe_many(active):
            self._refuse(int(error.problem.where.source), error.problem.what)

    def _refuse(self, number: int, why: str) -> None:
        """End a subscription that the engine cannot add."""
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
        store = self.broker.store
        unclaimed = partial(_with_counter, _UNMATCHED)
        read = store.read_now(unclaimed) if store.is_sqlite else store.write_now(self.claim)
        change, logged = read
        if change > self._known:
            self.catch_up()
        each, name = self.broker.supervisor.each, "publication {0.seq}".format
        for publication, error in each(_TASK, logged, self._match_all, name):
            self._write([_Part(publication, problem=error)])
        self._claimed_until = 0
        return len(logged)

    def claim(self, db: Connection) -> tuple[int, Sequence[_Row]]:
        """Claim publications that no other process has claimed; see `_with_counter`."""
        table, now, own = publications.c, self.broker.clock(), self._claimed_until
        self._claimed_until = until = own or millis(now + _CLAIM)
        # A claim that ends after the longest possible one was made when the clock was wrong.
        held = table.claimed_until.between(millis(now), millis(now + 2 * _CLAIM))
        free = or_(table.claimed_until.is_(None), table.claimed_until == own, ~held)
        chosen = table.seq.in_(_UNMATCHED.with_only_columns(table.seq).where(free))
        claim = update(publications).where(chosen).values(claimed_until=until)
        db.execute(_NO_SYNC)
        rows = sorted(db.execute(claim.returning(*_COLUMNS)))
        return counter(db, "change"), rows

    # -- matching ---------------------------------------------------------------------------

    def _match_all(self, logged: Sequence[_Row]) -> None:
        """Match publications, and commit about `CHUNK_SIZE` matches at once."""
        parts: list[_Part] = []
        for part in chain.from_iterable(map(self._match, logged)):
            parts.append(part)
            if sum(len(part.matches) for part in parts) >= CHUNK_SIZE:
                self._write(parts)
                parts = []
        if parts:
            self._write(parts)

    def _match(self, publication: _Row) -> Iterator[_Part]:
        """Match a publication; yield its matches in parts, and one part if there are none."""
        data, name, engine = publication.data, publication.id, self.broker.engine
        try:
            [report] = engine.filter(data, "nt", "document", name=name)
        except GraphMatchError as error:  # The publication exceeds a limit.
            yield _Part(publication, problem=error.problem)
            return
        found, problem = report.matches, next(iter(report.problems), None)
        assert isinstance(found, CoreMatches)
        rows = self._matches(publication.seq, found)
        for begin in range(0, max(len(found), 1), CHUNK_SIZE):
            is_last = begin + CHUNK_SIZE >= len(found)
            part = list(islice(rows, CHUNK_SIZE))
            yield _Part(publication, part, is_last, problem, found.failed)

    def _matches(self, publication: int, found: CoreMatches) -> Iterator[dict[str, Any]]:
        """Yield the columns of each match that the engine determines."""
        limit = self.broker.limits.solutions
        for id, solutions, graph, is_complete in found.texts(limit + 1):
            rows: Any = solutions[:limit]
            if graph is not None:
                rows = {"graph": [" ".join(map(str, triple)) + " ." for triple in graph[:limit]]}
            yield {
                "publication": publication,
                "subscription": int(id),
                "solutions": _json(rows),
                "truncated": len(graph or solutions) > limit or not is_complete,
            }

    def _count_failures(self, failed: Sequence[tuple[str, str]]) -> None:
        """Pause the subscriptions whose evaluation has failed too often."""
        now = monotonic()
        for id, why in failed:
            times = self._failures.setdefault(int(id), deque(maxlen=FAILURES))
            times.append(now)
            if len(times) == FAILURES and times[0] > now - _HOUR:
                times.clear()
                reason, at = f"{FAILURES} evaluations failed: {why}", millis(self.broker.clock())
                log.warning("subscription %s is paused: %s", id, reason)
                pause = partial(pause_subscription, number=int(id), reason=reason, now=at)
                self.broker.store.write_now(pause)

    # -- writing ----------------------------------------------------------------------------

    def _write(self, parts: Sequence[_Part]) -> None:
        """Commit matches, and set `matched_at` of the publications that have no more parts."""
        numbers = self.broker.store.write_now(partial(self._insert, parts))
        if numbers:
            self.on_matched(numbers)
        now, finished = millis(self.broker.clock()), [part for part in parts if part.is_last]
        self.on_timed([(now - part.publication.received_at) / 1000 for part in finished])
        for part in finished:
            self._count_failures(part.failed)

    def _insert(self, parts: Sequence[_Part], db: Connection) -> Sequence[int]:
        """Insert matches and their deliveries; return the subscriptions."""
        now = self.broker.clock()
        matched_at = millis(now)
        problems = {part.publication.seq: part.problem for part in parts if part.is_last}
        matched = db.execute(_MATCHED, {"seqs": list(problems), "now": matched_at})
        # Publications that were not matched before; true if some of their matches are stored.
        begun: dict[int, bool] = {row.seq: row.is_begun for row in matched}
        for seq in filter(problems.get, begun):
            mine = update(publications).where(publications.c.seq == seq)
            db.execute(mine.values(problem=str(problems[seq]).replace("\0", "\ufffd")))
        begun |= {part.publication.seq: True for part in parts if not part.is_last}
        new = _new_matches(db, parts, begun)
        if not new:
            return []
        sent = self._add_deliveries(db, [row for row, _ in new], now)
        first = counted(db, "match", len(new)) - len(new) + 1
        same = {"matched_at": matched_at, "ontology_version": self._version}
        for seq, delivery, (row, values) in zip(count(first), sent, new, strict=False):
            values.update(same, seq=seq, delivery=delivery, generation=row.generation)
        insert_many(db, matches, [values for _, values in new])
        return list(dict.fromkeys(row.number for row, _ in new))

    def _add_deliveries(
        self, db: Connection, subscribed: Sequence[_Row], now: datetime
    ) -> list[int | None]:
        """Insert deliveries; return the id of each match's delivery, `None` if none is sent."""
        digests: dict[int, dict[str, Any]] = {}
        pushed = [row for row in subscribed if row.kind in PUSHED]
        if numbers := [row.number for row in pushed if row.digest]:
            table = deliveries.c
            is_open = (WAITING, table.attempt == 0, table.claimed_until.is_(None))
            opened = select(table.subscription, table.id).where(table.kind == "digest", *is_open)
            found = db.execute(opened.where(table.subscription.in_(numbers)))
            digests = {number: {"id": id} for number, id in found}
        sent: list[dict[str, Any] | None] = []
        new: list[dict[str, Any]] = []
        for row in subscribed:
            delivery = digests.get(row.number)
            if delivery is None and row.kind in PUSHED:
                delivery = self._delivery(row, now)
                new.append(delivery)
                if row.digest:
                    digests[row.number] = delivery
            sent.append(delivery)
        if new:
            first = counted(db, "delivery", len(new)) - len(new) + 1
            for id, delivery in enumerate(new, first):
                delivery["id"] = id
            insert_many(db, deliveries, new)
        return [None if delivery is None else delivery["id"] for delivery in sent]

    def _delivery(self, row: _Row, now: datetime) -> dict[str, Any]:
        """Return a new delivery without its id; it is due now if its time is unusable."""
        due, host = now, "invalid:"
        name = f"a delivery to subscription {row.number}"
        with self.broker.supervisor.record(_TASK, name, attempts=1):
            host = host_of({"kind": row.kind, "url": row.url})
            if row.digest or row.quiet_hours:
                due = send_at(now, row.digest, row.quiet_hours)
        return {
            "subscription": row.number,
            "kind": "digest" if row.digest else "match",
            "host": host,
            "state": "waiting",
            "attempt": 0,
            "due_at": millis(due),
            "created_at": millis(now),
        }


def host_of(sink: Mapping[str, Any]) -> str:
    """Return the host and port of a sink, which share a circuit breaker; ``smtp:`` for email."""
    return "smtp:" if sink["kind"] == "email" else _host_of(sink.get("url", ""))


@lru_cache(10_000)
def _host_of(url: str) -> str:
    parts = URL(url)  # The client reads URLs like this, too.
    return f"{parts.raw_host}:{parts.port}"


def _with_counter(query: Select[Any], db: Connection) -> tuple[int, Sequence[_Row]]:
    """Return the counter of changes, and then the rows of a query."""
    return counter(db, "change"), db.execute(query).all()


def _new_matches(
    db: Connection, parts: Sequence[_Part], begun: Mapping[int, bool]
) -> list[tuple[_Row, dict[str, Any]]]:
    """Return the matches to insert, each after the row of its subscription.

    A match of a copy of a feed item is not inserted. Its source is added to the earlier match.
    """
    numbers = list({match["subscription"] for part in parts for match in part.matches})
    if not numbers:
        return []
    active = {row.number: row for row in db.execute(_ACTIVE, {"numbers": numbers}).all()}
    present: set[tuple[int, int]] = set()
    if seqs := [seq for seq, is_begun in begun.items() if is_begun]:
        table = matches.c
        chosen = (table.publication.in_(seqs), table.subscription.in_(numbers))
        pairs = db.execute(select(table.publication, table.subscription).where(*chosen))
        present = {(seq, number) for seq, number in pairs}
    new: list[tuple[_Row, dict[str, Any]]] = []
    told = _told(db, parts, numbers)
    for part in parts:
        seq, received_at = part.publication.seq, part.publication.received_at
        for match in part.matches if seq in begun else ():
            row = active.get(match["subscription"])
            if row is None or row.after_publication >= seq or (seq, row.number) in present:
                continue
            # The subscription may have expired and not be marked as ended yet.
            if row.expires_at is not None and row.expires_at <= received_at:
                continue
            keys, source = _keys(part.publication, row.number), part.publication.source
            if earlier := next(filter(None, map(told.get, keys)), None):
                _add_source(db, earlier, source)
            else:
                match["sources"] = source
                told |= dict.fromkeys(keys, match)
                new.append((row, match))
    return new


def _told(
    db: Connection, parts: Sequence[_Part], numbers: Sequence[int]
) -> dict[tuple[bytes, int], dict[str, Any]]:
    """Return the matches of subscriptions and of stories of the parts, by both."""
    names = {name for part in parts for name, _ in _keys(part.publication, 0)}
    if not names:
        return {}
    same = or_(*(publications.c[name].in_(names) for name in ("story", "story_too")))
    query = select(*matches.c["seq", "subscription", "sources"], *_STORY).join(publications)
    found: dict[tuple[bytes, int], dict[str, Any]] = {}
    for row in db.execute(query.where(same, matches.c.subscription.in_(numbers))):
        match = dict(row._mapping)
        found |= dict.fromkeys(_keys(row, row.subscription), match)
    return found


def _keys(row: _Row, subscription: int) -> list[tuple[bytes, int]]:
    return [(name, subscription) for name in (row.story, row.story_too) if name is not None]


def _add_source(db: Connection, match: dict[str, Any], source: str) -> None:
    """Add a source to a match, which is stored if it has a number."""
    sources = match["sources"].split("\n")
    if source not in sources and len(sources) < MAX_SOURCES:
        match["sources"] += f"\n{source}"
        if "seq" in match:
            stored = update(matches).where(matches.c.seq == match["seq"])
            db.execute(stored.values(sources=match["sources"]))

"""Subscriptions: create, confirm, change, read and end them."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from sqlalchemy import insert, select, tuple_, update

from graphmatch.broker.app.errors import ConflictError, InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import (
    ANYBODY,
    Principal,
    derived_key,
    digest_of,
    is_same,
    new_secret,
)
from graphmatch.broker.db.queries import WITH_MATCHES
from graphmatch.broker.db.store import counted, counter
from graphmatch.broker.db.subscription_queries import add_usage, confirm_sinks, end_subscription
from graphmatch.broker.db.tables import idempotency_keys, subscriptions
from graphmatch.broker.models.subscription_settings import SubscriptionSettings, name_of
from graphmatch.broker.models.texts import is_text
from graphmatch.broker.models.times import millis, time_of
from graphmatch.broker.outbox.safe_http import checked_url
from graphmatch.broker.service.backtester import Backtester
from graphmatch.engine import Engine
from graphmatch.topics import Topics, known_concepts
from semantic.attributes.constraints import attribute_query
from semantic.errors import GraphMatchError, Place, Problem, SubscriptionError

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping, Select

    from graphmatch.broker.service.broker import Broker

BATCH_SIZE = 1_000
"""Number of subscriptions that are created in one transaction."""
_SUBSCRIPTIONS = select(subscriptions)
_TEXT_KEYS = frozenset({"topics", "words", "not-words", "match"})
Request: TypeAlias = tuple[Mapping[str, Any], SubscriptionSettings]
"""The definition and the settings of a new subscription."""
Draft: TypeAlias = "tuple[dict[str, Any], Created] | GraphMatchError"
"""The row and the answer of a new subscription, or its error."""
IsAllowed: TypeAlias = "Callable[[RowMapping], bool]"
"""Checks that a client may use a subscription, which is given by its row."""
_UNCHANGEABLE = {
    "ended": ("the subscription has ended", "Subscribe again."),
    "unconfirmed": ("its email address is not confirmed", "Open the link in the message."),
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Created:
    """A new subscription.

    Parameters
    ----------
    id
        Its id.
    ticket
        Proves that the subscription belongs to the client. The broker returns it only once:
        ``None`` for a repeated request.
    secret
        Secret of a webhook, which its receiver needs to check signatures.
    expires_at
        End of the subscription.
    """

    id: str
    ticket: str | None
    secret: str | None
    expires_at: datetime | None


def of_subscription(problem: Problem) -> SubscriptionError:
    """Return the error of a query that has no file name."""
    return SubscriptionError(replace(problem, where=replace(problem.where, source="subscription")))


class Subscriptions:
    """The subscriptions of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._checker: tuple[Engine, Backtester] | None = None
        """The engine that checks queries, after the engine from which it was created."""
        self._check_url = lru_cache(1_000)(lambda url: checked_url(url, broker.allowed_networks))

    # -- create -----------------------------------------------------------------------------

    async def subscribe(
        self,
        definition: Mapping[str, Any],
        settings: SubscriptionSettings,
        by: Principal = ANYBODY,
        key: str | None = None,
    ) -> Created:
        """Create a subscription.

        Parameters
        ----------
        definition
            ``query`` (SPARQL), ``where`` (attributes) or ``topics`` and ``words``, as in a file of
            subscriptions.
        key
            Idempotency key: a repeated request of the same owner returns the same subscription,
            without its ticket. It is ignored for clients without a token.

        Raises
        ------
        SubscriptionError
            If the query is not valid.
        InvalidRequestError
            If the settings are not valid or a limit is reached.
        ConflictError
            If the key was used for another request.
        """
        [result] = await self._create([(definition, settings)], by, key)
        if isinstance(result, GraphMatchError):
            raise result
        return result

    async def subscribe_many(
        self, requests: Sequence[Request], by: Principal = ANYBODY
    ) -> list[Created | Problem]:
        """Create subscriptions; return each one, or its problem, in the order of the requests.

        Cost: one transaction for `BATCH_SIZE` subscriptions. Some 6,000 subscriptions per second.
        """
        results: list[Created | GraphMatchError] = []
        for begin in range(0, len(requests), BATCH_SIZE):
            results += await self._create(requests[begin : begin + BATCH_SIZE], by)
        return [one.problem if isinstance(one, GraphMatchError) else one for one in results]

    async def _create(
        self, requests: Sequence[Request], by: Principal, key: str | None = None
    ) -> list[Created | GraphMatchError]:
        drafts = await asyncio.to_thread(self._drafts, requests, by)
        now, limit = millis(self._broker.clock()), self._broker.limits.subscriptions
        what, remedy = f"there are {limit:,} subscriptions", "Unsubscribe others."
        full = InvalidRequestError(Problem(what, Place("subscriptions"), remedy))
        request: dict[str, Any] = {}
        if key is not None and by.owner is not None:
            content = [(definition, asdict(settings)) for definition, settings in requests]
            data = json.dumps(content, sort_keys=True, default=str).encode()
            request = {"owner": by.owner, "key": key, "hash": sha256(data).digest(), "at": now}

        def work(db: Connection) -> list[Created | GraphMatchError]:
            if request and (earlier := _replayed(db, request)):
                return [earlier]
            room = len(drafts) if by.is_admin else max(limit - add_usage(db, by.owner)[0], 0)
            valid = [draft for draft in drafts if isinstance(draft, tuple)][:room]
            if valid:
                _insert(db, [row for row, _ in valid], by, now)
            if valid and request:
                response = {name: valid[0][0][name] for name in ("id", "expires_at")}
                db.execute(insert(idempotency_keys).values(response=response, **request))
            accepted = {created.id for _, created in valid}
            results = (draft[1] if isinstance(draft, tuple) else draft for draft in drafts)
            return [
                full if isinstance(one, Created) and one.id not in accepted else one
                for one in results
            ]

        return await self._write(work)

    def _drafts(self, requests: Sequence[Request], by: Principal) -> list[Draft]:
        drafts: list[Draft] = []
        for definition, settings in requests:
            try:
                drafts.append(self._draft(definition, settings, by))
            except GraphMatchError as error:
                drafts.append(error)
        engine = self._broker.engine
        if self._checker is None or self._checker[0] is not engine:
            self._checker = engine, Backtester(engine)
        queries = [(str(n), d[0]["query"]) for n, d in enumerate(drafts) if isinstance(d, tuple)]
        with self._checker[1].subscribed(queries) as (_, problems):
            for number, problem in problems.items():
                drafts[int(number)] = of_subscription(problem)
        return drafts

    def _draft(
        self, definition: Mapping[str, Any], settings: SubscriptionSettings, by: Principal
    ) -> tuple[dict[str, Any], Created]:
        id, ticket = f"sub_{secrets.token_hex(8)}", new_secret("gmt_")
        row = {
            "id": id,
            "owner": by.owner,
            "name": name_of(definition),
            "definition": dict(definition),
            "query": self.sparql(definition),
            "ticket": digest_of(ticket),
            "sink": {"kind": "sse"},
            "digest": None,
            "quiet_hours": None,
            "state": "active",
            "confirmation": None,
            "created_at": millis(self._broker.clock()),
            "expires_at": self._expires_at(self._broker.limits.validity),
            "announced_at": None,
            "generation": 1,
            **self._columns(settings),
        }
        if "address" in row["sink"]:
            row |= _unconfirmed()
        return row, Created(id, ticket, row["sink"].get("secret"), time_of(row["expires_at"]))

    def _columns(self, settings: SubscriptionSettings) -> dict[str, Any]:
        """Return the columns of those settings that are not ``None``."""
        columns = settings.columns()
        try:
            if "url" in columns.get("sink", {}):
                self._check_url(columns["sink"]["url"])
        except GraphMatchError as error:
            what, remedy = f"the URL is not valid: {error.problem.what}", error.problem.remedy
            raise InvalidRequestError(Problem(what, Place("sink.url"), remedy)) from error
        if settings.expires_in is not None:
            columns |= {"expires_at": self._expires_at(settings.expires_in), "announced_at": None}
        return columns

    def _expires_at(self, validity: timedelta) -> int:
        longest = self._broker.limits.longest_validity
        if not timedelta(0) <= validity <= longest:
            what, remedy = f"a validity of {validity}", f"The longest one is {longest.days} days."
            raise InvalidRequestError(Problem(what, Place("expires_in"), remedy))
        return millis(self._broker.clock() + (validity or longest))

    # -- queries ----------------------------------------------------------------------------

    def sparql(self, definition: Mapping[str, Any]) -> str:
        """Return the SPARQL of a subscription, which may be invalid.

        Raises
        ------
        SubscriptionError
            If a topic or an attribute is not valid.
        InvalidRequestError
            If the definition has no form, several forms or an unknown field, or is too long.
        """
        place = Place("subscription")
        is_topics = bool(definition) and definition.keys() <= _TEXT_KEYS
        if not is_topics and definition.keys() not in ({"query"}, {"where"}):
            remedy = "Write query, or where, or topics and words, and no other field."
            what = "not exactly one query" if definition else "the query is missing"
            raise InvalidRequestError(Problem(what, place, remedy))
        if not is_text(definition):
            what, remedy = "a lone surrogate, NUL or invalid number", "Write strings and numbers."
            raise InvalidRequestError(Problem(what, place, remedy))
        try:
            if "query" in definition:
                text: object = definition["query"]
            elif "where" in definition:
                text = attribute_query("subscription", definition["where"])
            else:
                concepts = known_concepts(self._broker.engine.ontology)
                text = Topics.of_row(dict(definition), place).query(concepts)
        except SubscriptionError as error:
            raise of_subscription(error.problem) from error
        limit = self._broker.limits.query_characters
        if not isinstance(text, str) or len(text) > limit:
            what = f"the query is not a string of at most {limit:,} characters"
            raise InvalidRequestError(Problem(what, place, "Shorten it."))
        return text

    # -- change -----------------------------------------------------------------------------

    async def change(
        self,
        id: str,
        by: Principal,
        ticket: str | None,
        *,
        definition: Mapping[str, Any] | None = None,
        settings: SubscriptionSettings | None = None,
        state: Literal["active", "paused"] | None = None,
    ) -> str | None:
        """Change, renew, pause or resume a subscription; return the secret of a new webhook.

        The id stays the same. A changed query matches publications that come after the change. A
        new email address must be confirmed before the subscription matches again.

        Raises
        ------
        NotFoundError
            If the subscription does not exist or belongs to another owner.
        SubscriptionError, InvalidRequestError
            As for `subscribe`.
        """
        values = self._columns(settings or SubscriptionSettings())
        if definition is not None:
            request = (definition, SubscriptionSettings())
            [draft] = await asyncio.to_thread(self._drafts, [request], by)
            if isinstance(draft, GraphMatchError):
                raise draft
            values |= {key: draft[0][key] for key in ("definition", "query")}
        sink = values.get("sink", {})

        def work(db: Connection) -> None:
            row, new = _row(db, id, _is_owner(by, ticket)), dict(values)
            if row["state"] == "ended" or (state and row["state"] == "unconfirmed"):
                what, remedy = _UNCHANGEABLE[row["state"]]
                raise InvalidRequestError(Problem(what, Place(id), remedy))
            if state is not None:
                new |= {"state": state, "reason": None}
            if "address" in sink and sink["address"] != row["sink"].get("address"):
                new |= _unconfirmed()
            elif sink and "address" not in sink and row["state"] == "unconfirmed":
                new["state"] = "active"
            if definition is not None:
                new["generation"] = row["generation"] + 1
            _update(db, row, new)
            if "confirmation" in new:
                confirm_sinks(db, [row["number"]], millis(self._broker.clock()))

        await self._write(work)
        secret: str | None = sink.get("secret")
        return secret

    async def confirm(self, id: str, key: str) -> RowMapping:
        """Confirm an email sink with the key in the message; return the row before the change.

        Raises
        ------
        NotFoundError
            If the subscription does not exist or the key is wrong.
        """

        def work(db: Connection) -> RowMapping:
            row = _row(db, id, lambda row: bool(key) and is_same(key, row["confirmation"] or ""))
            if row["state"] == "unconfirmed":
                _update(db, row, {"state": "active"})
            return row

        return await self._write(work)

    async def unsubscribe(self, id: str, by: Principal, ticket: str | None) -> None:
        """End a subscription. Its matches can be read until retention deletes them."""
        await self._end(id, _is_owner(by, ticket))

    async def unsubscribe_with_key(self, id: str, key: str) -> RowMapping:
        """End a subscription with the key for that; return the row before the change.

        Raises
        ------
        NotFoundError
            If the subscription does not exist or the key is wrong.
        """
        return await self._end(
            id, lambda row: is_same(key, derived_key(row["ticket"], id, "unsubscribe"))
        )

    async def _end(self, id: str, is_allowed: IsAllowed) -> RowMapping:
        def work(db: Connection) -> RowMapping:
            row = _row(db, id, is_allowed)
            end_subscription(db, row["number"], "unsubscribed", millis(self._broker.clock()))
            return row

        return await self._write(work)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        result = await self._broker.store.write(work)
        self._broker.on_commit()
        return result

    # -- read -------------------------------------------------------------------------------

    async def subscription(self, id: str, by: Principal, ticket: str | None) -> RowMapping:
        """Return the row of a subscription.

        Raises
        ------
        NotFoundError
            If the subscription does not exist or belongs to another owner.
        """
        is_owner = _is_owner(by, ticket)
        return await self._broker.store.read(lambda db: _row(db, id, is_owner, WITH_MATCHES))


def _unconfirmed() -> dict[str, Any]:
    """Return the columns of a subscription whose email address is new."""
    return {"state": "unconfirmed", "confirmation": new_secret("gmc_")}


def _insert(db: Connection, rows: Sequence[dict[str, Any]], by: Principal, now: int) -> None:
    """Insert new subscriptions and the deliveries that ask for confirmation."""
    add_usage(db, by.owner, subscriptions=len(rows))
    first = counted(db, "change", len(rows)) - len(rows) + 1
    after = counter(db, "publication")
    for change, row in enumerate(rows, first):
        row |= {"change": change, "after_publication": after}
    db.execute(insert(subscriptions), rows)
    ids = [row["id"] for row in rows if row["state"] == "unconfirmed"]
    numbers = select(subscriptions.c.number).where(subscriptions.c.id.in_(ids))
    confirm_sinks(db, db.scalars(numbers).all() if ids else (), now)


def _update(db: Connection, row: RowMapping, values: dict[str, Any]) -> None:
    """Change a subscription. A new query, or a resumed one, ignores earlier publications."""
    values["change"] = counted(db, "change")
    if "generation" in values or (values.get("state") == "active" != row["state"]):
        values["after_publication"] = counter(db, "publication")
    mine = subscriptions.c.number == row["number"]
    db.execute(update(subscriptions).where(mine).values(**values))


def _replayed(db: Connection, request: Mapping[str, Any]) -> Created | None:
    """Return the subscription that an earlier request with the same key created."""
    table, mine = idempotency_keys.c, (request["owner"], request["key"])
    chosen = select(table.hash, table.response).where(tuple_(table.owner, table.key) == mine)
    row = db.execute(chosen).one_or_none()
    if row is None:
        return None
    if row.hash != request["hash"]:
        what, remedy = "this key was used for another request", "Use a new key."
        raise ConflictError(Problem(what, Place("Idempotency-Key"), remedy))
    return Created(row.response["id"], None, None, time_of(row.response["expires_at"]))


def _is_owner(by: Principal, ticket: str | None) -> IsAllowed:
    """Return the check that a subscription belongs to a principal or to a ticket."""
    digest = digest_of(ticket or "")
    return lambda row: (
        secrets.compare_digest(row["ticket"], digest)
        or by.is_admin
        or (by.owner is not None and row["owner"] == by.owner)
    )


def _row(
    db: Connection, id: str, is_allowed: IsAllowed, chosen: Select[Any] = _SUBSCRIPTIONS
) -> RowMapping:
    row = db.execute(chosen.where(subscriptions.c.id == id)).mappings().one_or_none()
    if row is None or not is_allowed(row):
        what = "the subscription does not exist or belongs to another owner"
        remedy = "Send its ticket, or the token of its owner."
        raise NotFoundError(Problem(what, Place(id), remedy))
    return row

"""Subscriptions: create, confirm, change, read and end them."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import insert, select, update

import graphmatch.broker.app.security as security
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import ANYBODY, Principal
from graphmatch.broker.db.delivery_queries import add_delivery
from graphmatch.broker.db.idempotency import earlier_response, store_response
from graphmatch.broker.db.queries import WITH_MATCHES
from graphmatch.broker.db.store import counted, counter
from graphmatch.broker.db.subscription_queries import add_usage, end_subscription
from graphmatch.broker.db.tables import subscriptions
from graphmatch.broker.models.subscription import SubscriptionChange, SubscriptionReceipt
from graphmatch.broker.models.subscription_settings import SubscriptionSettings, default_name
from graphmatch.broker.models.times import millis
from graphmatch.broker.models.webhook_secret import key_of
from graphmatch.broker.outbox.safe_http import checked_url
from graphmatch.broker.service.backtester import Backtester
from graphmatch.topics import TEXT_KEYS, Topics, known_concepts
from semantic.attributes.constraints import attribute_query
from semantic.errors import GraphMatchError, Place, Problem, SubscriptionError

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping, Select

    from graphmatch.broker.service.broker import Broker

BATCH_SIZE = 1_000
"""Number of subscriptions that are created in one transaction."""
CONFIRMATION = "gmc_"
"""Start of the keys that confirm email addresses."""
_SUBSCRIPTIONS = select(subscriptions)
_PLACE = Place("subscription")
_TOPIC_KEYS = frozenset({*TEXT_KEYS, "match"})
Request: TypeAlias = tuple[Mapping[str, Any], SubscriptionSettings] | GraphMatchError
"""The definition and the settings of a new subscription, or the error of its request."""
Draft: TypeAlias = tuple[dict[str, Any], SubscriptionReceipt] | GraphMatchError
"""The row and the receipt of a new subscription, or its error."""
T = TypeVar("T")


class Subscriptions:
    """The subscriptions of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._checker = Backtester(broker.engine)
        self._check_url = lru_cache(1_000)(lambda url: checked_url(url, broker.allowed_networks))

    # -- create -----------------------------------------------------------------------------

    async def subscribe(
        self,
        definition: Mapping[str, Any],
        settings: SubscriptionSettings,
        by: Principal = ANYBODY,
        key: str | None = None,
    ) -> SubscriptionReceipt:
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
            If a limit is reached.
        ConflictError
            If the key was used for another request.
        """
        drafts = await asyncio.to_thread(self._drafts, [(definition, settings)], by)
        given = [definition, settings.model_dump_json(exclude_unset=True)]
        content, now = json.dumps(given, sort_keys=True).encode(), self._now()
        key = None if by.owner is None else key

        def work(db: Connection) -> SubscriptionReceipt:
            if key is not None and (earlier := earlier_response(db, by.owner, key, content)):
                return SubscriptionReceipt.model_validate(earlier)
            [result] = self._insert(db, drafts, by)
            if isinstance(result, GraphMatchError):
                raise result
            if key is not None:
                response = result.model_dump(mode="json", exclude={"ticket", "secret"})
                store_response(db, by.owner, key, content, response, now)
            return result

        return await self._write(work)

    async def subscribe_many(
        self, requests: Sequence[Request], by: Principal = ANYBODY
    ) -> list[SubscriptionReceipt | GraphMatchError]:
        """Create subscriptions; return each one, or its error, in the order of the requests.

        Cost: one transaction for `BATCH_SIZE` subscriptions. Some 6,000 subscriptions per second.
        """
        results: list[SubscriptionReceipt | GraphMatchError] = []
        for begin in range(0, len(requests), BATCH_SIZE):
            batch = requests[begin : begin + BATCH_SIZE]
            drafts = await asyncio.to_thread(self._drafts, batch, by)
            results += await self._write(partial(self._insert, drafts=drafts, by=by))
        return results

    def _drafts(self, requests: Sequence[Request], by: Principal) -> list[Draft]:
        drafts: list[Draft] = []
        for request in requests:
            try:
                if isinstance(request, GraphMatchError):
                    raise request
                drafts.append(self._draft(*request, by))
            except GraphMatchError as error:
                drafts.append(error)
        queries = [(str(n), d[0]["query"]) for n, d in enumerate(drafts) if isinstance(d, tuple)]
        with self._checker.subscribed(queries) as (_, problems):
            for number, problem in problems.items():
                where = replace(problem.where, source=_PLACE.source)
                drafts[int(number)] = SubscriptionError(replace(problem, where=where))
        return drafts

    def _draft(
        self, definition: Mapping[str, Any], settings: SubscriptionSettings, by: Principal
    ) -> tuple[dict[str, Any], SubscriptionReceipt]:
        id, ticket = f"sub_{secrets.token_hex(8)}", security.new_secret("gmt_")
        now = self._broker.clock()
        row = {
            **dict.fromkeys(("digest", "quiet_hours", "confirmation", "announced_at")),
            "id": id,
            "owner": by.owner,
            "query": self.sparql(definition),
            "name": default_name(definition),
            "definition": dict(definition),
            "ticket": security.digest_of(ticket),
            "sink": {"kind": "sse"},
            "state": "active",
            "created_at": millis(now),
            "generation": 1,
            "expires_at": millis(now + self._broker.limits.validity),
            **self._columns(settings),
        }
        if "address" in row["sink"]:
            row |= {"state": "unconfirmed", "confirmation": security.new_secret(CONFIRMATION)}
        shown = {"ticket": ticket, "secret": row["sink"].get("secret")}
        shown["read_key"] = security.read_key(row["ticket"], id)
        return row, SubscriptionReceipt.model_validate(row | shown)

    def _columns(self, settings: SubscriptionSettings) -> dict[str, Any]:
        """Return the columns of the settings that are set, after the checks of the sink."""
        columns = settings.columns()
        sink: dict[str, Any] = columns.get("sink", {})
        if "secret" in sink:
            key_of(sink["secret"])
        if "url" in sink:
            self._check_url(sink["url"])
        if (validity := settings.expires_in) is not None:
            longest = self._broker.limits.longest_validity
            if validity > longest:
                what, remedy = f"a validity of {validity}", f"The longest is {longest.days} days."
                raise InvalidRequestError(Problem(what, Place("expires_in"), remedy))
            end = self._broker.clock() + (validity or longest)
            columns |= {"expires_at": millis(end), "announced_at": None}
        return columns

    def _insert(
        self, db: Connection, drafts: list[Draft], by: Principal
    ) -> list[SubscriptionReceipt | GraphMatchError]:
        """Insert subscriptions up to the limit, and deliveries that ask for confirmation."""
        limit, now = self._broker.limits.subscriptions, self._now()
        if not by.is_admin:
            what, remedy = f"there are {limit:,} subscriptions", "Unsubscribe others."
            full = InvalidRequestError(Problem(what, Place("subscriptions"), remedy))
            valid = [number for number, draft in enumerate(drafts) if isinstance(draft, tuple)]
            for number in valid[max(limit - add_usage(db, by.owner)[0], 0) :]:
                drafts[number] = full
        rows = [draft[0] for draft in drafts if isinstance(draft, tuple)]
        if rows:
            add_usage(db, by.owner, subscriptions=len(rows))
            first = counted(db, "change", len(rows)) - len(rows) + 1
            after = counter(db, "publication")
            for change, row in enumerate(rows, first):
                row |= {"change": change, "after_publication": after}
            db.execute(insert(subscriptions), rows)
        ids = [row["id"] for row in rows if row["state"] == "unconfirmed"]
        numbers = select(subscriptions.c.number).where(subscriptions.c.id.in_(ids))
        for number in db.scalars(numbers).all() if ids else ():
            add_delivery(db, number, "confirmation", "smtp:", now)
        return [draft[1] if isinstance(draft, tuple) else draft for draft in drafts]

    def sparql(self, definition: Mapping[str, Any]) -> str:
        """Return the SPARQL of a subscription, which may be invalid.

        Raises
        ------
        SubscriptionError
            If a topic or an attribute is not valid.
        InvalidRequestError
            If the definition has no form, several forms or an unknown field, or is too long.
        """
        is_topics = bool(definition) and definition.keys() <= _TOPIC_KEYS
        if not is_topics and definition.keys() not in ({"query"}, {"where"}):
            remedy = "Write query, or where, or topics and words, and no other field."
            what = "not exactly one query" if definition else "the query is missing"
            raise InvalidRequestError(Problem(what, _PLACE, remedy))
        if "query" in definition:
            text: object = definition["query"]
        elif "where" in definition:
            text = attribute_query(_PLACE.source, definition["where"])
        else:
            concepts = known_concepts(self._broker.engine.ontology)
            text = Topics.of_row(dict(definition), _PLACE).query(concepts)
        limit = self._broker.limits.query_characters
        if not isinstance(text, str) or len(text) > limit:
            what = f"the query is not a string of at most {limit:,} characters"
            raise InvalidRequestError(Problem(what, _PLACE, "Shorten it."))
        return text

    # -- change -----------------------------------------------------------------------------

    async def change(
        self, id: str, by: Principal, ticket: str | None, change: SubscriptionChange
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
        values, definition = self._columns(change), change.definition()
        if definition is not None:
            [draft] = await asyncio.to_thread(self._drafts, [(definition, change)], by)
            if isinstance(draft, GraphMatchError):
                raise draft
            values |= {key: draft[0][key] for key in ("definition", "query")}
        if change.state is not None:
            values |= {"state": change.state, "reason": None}
        sink: dict[str, Any] = values.get("sink", {})

        def work(db: Connection) -> None:
            row, new = _row(db, id, lambda row: _is_owner(row, by, ticket)), dict(values)
            if row["state"] == "ended" or ("state" in new and row["state"] == "unconfirmed"):
                what = "the subscription has ended, or its email address is not confirmed"
                remedy = "Subscribe again, or open the link in the message to that address."
                raise InvalidRequestError(Problem(what, Place(id), remedy))
            if "address" in sink and sink["address"] != row["sink"].get("address"):
                new |= {"state": "unconfirmed", "confirmation": security.new_secret(CONFIRMATION)}
                add_delivery(db, row["number"], "confirmation", "smtp:", self._now())
            elif sink and "address" not in sink and row["state"] == "unconfirmed":
                new["state"] = "active"
            if definition is not None:
                new["generation"] = row["generation"] + 1
            _update(db, row, new)

        await self._write(work)
        return sink.get("secret")

    async def confirm(self, id: str, key: str) -> RowMapping:
        """Confirm an email sink with the key in the message; return the row before the change.

        Raises
        ------
        NotFoundError
            If the subscription does not exist or the key is wrong.
        """

        def is_allowed(row: RowMapping) -> bool:
            return bool(key) and security.is_same(key, row["confirmation"] or "")

        def work(db: Connection) -> RowMapping:
            row = _row(db, id, is_allowed)
            if row["state"] == "unconfirmed":
                _update(db, row, {"state": "active"})
            return row

        return await self._write(work)

    async def unsubscribe(
        self, id: str, by: Principal = ANYBODY, ticket: str | None = None, key: str | None = None
    ) -> RowMapping:
        """End a subscription; return the row before the change.

        Its matches can be read until retention deletes them.

        Parameters
        ----------
        key
            The key in a message, which only allows this.

        Raises
        ------
        NotFoundError
            If the subscription does not exist, or belongs to another owner, or the key is wrong.
        """

        def is_allowed(row: RowMapping) -> bool:
            if key is None:
                return _is_owner(row, by, ticket)
            return security.is_same(key, security.derived_key(row["ticket"], id, "unsubscribe"))

        def work(db: Connection) -> RowMapping:
            row = _row(db, id, is_allowed)
            end_subscription(db, row["number"], "unsubscribed", self._now())
            return row

        return await self._write(work)

    def _now(self) -> int:
        return millis(self._broker.clock())

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

        def work(db: Connection) -> RowMapping:
            return _row(db, id, lambda row: _is_owner(row, by, ticket), WITH_MATCHES)

        return await self._broker.store.read(work)


def _update(db: Connection, row: RowMapping, values: dict[str, Any]) -> None:
    """Change a subscription. A new query, or a resumed one, ignores earlier publications."""
    values["change"] = counted(db, "change")
    if "generation" in values or (values.get("state") == "active" != row["state"]):
        values["after_publication"] = counter(db, "publication")
    mine = subscriptions.c.number == row["number"]
    db.execute(update(subscriptions).where(mine).values(**values))


def _is_owner(row: RowMapping, by: Principal, ticket: str | None) -> bool:
    """Check that a subscription belongs to a principal or to a ticket."""
    has_ticket = secrets.compare_digest(row["ticket"], security.digest_of(ticket or ""))
    is_mine = by.owner is not None and row["owner"] == by.owner
    return has_ticket or is_mine or by.is_admin


def _row(
    db: Connection,
    id: str,
    is_allowed: Callable[[RowMapping], bool],
    chosen: Select[Any] = _SUBSCRIPTIONS,
) -> RowMapping:
    row = db.execute(chosen.where(subscriptions.c.id == id)).mappings().one_or_none()
    if row is None or not is_allowed(row):
        what = "the subscription does not exist or belongs to another owner"
        remedy = "Send its ticket, or the token of its owner."
        raise NotFoundError(Problem(what, Place(id), remedy))
    return row

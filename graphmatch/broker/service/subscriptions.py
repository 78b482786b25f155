"""Subscriptions: create, change, end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select, update

from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import ANYBODY, SECRET_BYTES, Principal, digest_of
from graphmatch.broker.db.queries import WITH_MATCHES
from graphmatch.broker.db.store import counted, counter
from graphmatch.broker.db.subscription_queries import end_subscription
from graphmatch.broker.db.tables import (
    publications,
    subscriptions,
)
from graphmatch.broker.models.subscription_settings import (
    SubscriptionSettings,
    checked_digest,
    checked_quiet,
    checked_sink,
    name_of,
)
from graphmatch.broker.models.texts import is_text
from graphmatch.broker.models.times import millis
from graphmatch.broker.service.backtester import Backtester
from graphmatch.engine import Engine
from graphmatch.topics import Topics, known_concepts
from semantic.attributes.constraints import attribute_query
from semantic.errors import (
    Place,
    Problem,
    SubscriptionError,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping, Select


if TYPE_CHECKING:
    from graphmatch.broker.service.broker import Broker

_PUBLISH, _SUBSCRIPTIONS = insert(publications), select(subscriptions)
_TEXT_KEYS = ("topics", "words", "not-words", "match")


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


def of_subscription(problem: Problem) -> SubscriptionError:
    """Return the error of a subscription that was sent: its text has no other name."""
    return SubscriptionError(replace(problem, where=replace(problem.where, source="subscription")))


class Subscriptions:
    """Subscriptions of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._checker: tuple[Engine, Backtester] | None = None
        """The engine that checks queries, and the engine that it was made for."""

    async def subscribe(
        self, given: Mapping[str, Any], settings: SubscriptionSettings, by: Principal = ANYBODY
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
        digest, quiet = checked_digest(settings.digest), checked_quiet(settings.quiet_hours)
        now = self._broker.clock()
        expires = self._end(now, settings.expires_in)
        id, ticket = f"sub_{secrets.token_hex(8)}", f"gmt_{secrets.token_urlsafe(SECRET_BYTES)}"
        name = name_of(settings.name, given)

        def work(db: Connection) -> None:
            mine = subscriptions.c.owner == by.owner
            if by.owner is None:
                mine = subscriptions.c.owner.is_(None)
            alive = subscriptions.c.state.in_(("active", "paused"))
            count = db.scalar(select(func.count()).where(mine, alive)) or 0
            if count >= self._broker.limits.subscriptions:
                what = f"there are {count:,} subscriptions already"
                raise InvalidRequestError(
                    Problem(what, Place("subscriptions"), "Unsubscribe others.")
                )
            db.execute(
                insert(subscriptions).values(
                    id=id,
                    owner=by.owner,
                    name=name,
                    definition=dict(given),
                    query=query,
                    ticket=digest_of(ticket),
                    sink=sink,
                    digest=digest,
                    quiet_hours=quiet,
                    state="active",
                    created_at=millis(now),
                    expires_at=None if expires is None else millis(expires),
                    generation=1,
                    change=counted(db, "change"),
                    after_publication=counter(db, "publication"),
                )
            )

        await self._broker.store.write(work)
        self._broker.on_commit()
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
        text, engine = self.sparql(given), self._broker.engine
        if self._checker is None or self._checker[0] is not engine:
            self._checker = engine, Backtester(engine)
        with self._checker[1].subscribed([("subscription", text)]) as (_, refused):
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
            raise InvalidRequestError(Problem(what, place, remedy))
        if not is_text(given):
            what, remedy = "a lone surrogate, NUL or invalid number", "Write texts and numbers."
            raise InvalidRequestError(Problem(what, place, remedy))
        try:
            if forms == ["query"]:
                text = given["query"]
            elif forms == ["where"]:
                text = attribute_query("subscription", given["where"])
            else:
                row = {key: given[key] for key in _TEXT_KEYS if key in given}
                text = Topics.of_row(row, place).query(known_concepts(self._broker.engine.ontology))
        except SubscriptionError as error:
            raise of_subscription(error.problem) from error
        if not isinstance(text, str) or len(text) > self._broker.limits.query_characters:
            most = self._broker.limits.query_characters
            what = f"the query is not a string of at most {most:,} characters"
            raise InvalidRequestError(Problem(what, place, "Shorten it."))
        return text

    async def change(
        self,
        id: str,
        by: Principal,
        ticket: str | None,
        *,
        given: Mapping[str, Any] | None = None,
        settings: SubscriptionSettings | None = None,
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
        settings = settings or SubscriptionSettings()
        now = self._broker.clock()
        values: dict[str, Any] = {}
        secret: str | None = None
        if given is not None:
            query = await asyncio.to_thread(self.query, given)
            values |= {"definition": dict(given), "query": query}
        if settings.name is not None:
            values["name"] = name_of(settings.name, {})
        if settings.sink is not None:
            values["sink"], secret = checked_sink(settings.sink)
        if settings.digest is not None:
            values["digest"] = checked_digest(settings.digest)
        if settings.quiet_hours is not None:
            values["quiet_hours"] = checked_quiet(settings.quiet_hours)
        if settings.expires_in is not None:
            end = self._end(now, settings.expires_in)
            values |= {"expires_at": None if end is None else millis(end), "announced_at": None}
        if state is not None:
            if state not in ("active", "paused"):
                what = f"{state!r} is not a valid state"
                raise InvalidRequestError(Problem(what, Place("state"), "Write active or paused."))
            values |= {"state": state, "reason": None}

        def work(db: Connection) -> None:
            row = self._own(db, id, by, ticket)
            if row["state"] == "ended":
                what, remedy = "the subscription has ended", "Subscribe again."
                raise InvalidRequestError(Problem(what, Place(id), remedy))
            more = dict(values)
            if given is not None:
                more["generation"] = row["generation"] + 1
            if given is not None or (state == "active" and row["state"] != "active"):
                more["after_publication"] = counter(db, "publication")
            more["change"] = counted(db, "change")
            mine = subscriptions.c.number == row["number"]
            db.execute(update(subscriptions).where(mine).values(**more))

        await self._broker.store.write(work)
        self._broker.on_commit()
        return secret

    async def unsubscribe(self, id: str, by: Principal, ticket: str | None) -> None:
        """End a subscription; its matches can be asked for as long as others."""

        def work(db: Connection) -> None:
            row = self._own(db, id, by, ticket)
            end_subscription(db, row["number"], "unsubscribed", millis(self._broker.clock()))

        await self._broker.store.write(work)
        self._broker.on_commit()

    async def subscription(self, id: str, by: Principal, ticket: str | None) -> RowMapping:
        """Return the row of a subscription; `NotFoundError` where it is another's."""
        return await self._broker.store.read(lambda db: self._own(db, id, by, ticket, WITH_MATCHES))

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
        raise NotFoundError(Problem(what, Place(id), remedy))

    def _end(self, now: datetime, length: timedelta | None) -> datetime | None:
        length = self._broker.limits.validity if length is None else length
        if length > self._broker.limits.longest_validity or length < timedelta(0):
            what = f"a validity of {length}"
            remedy = f"At most {self._broker.limits.longest_validity.days} days; renew it before they end."
            raise InvalidRequestError(Problem(what, Place("expires_in"), remedy))
        return now + (length or self._broker.limits.longest_validity)

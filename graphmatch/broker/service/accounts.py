"""Owners, API tokens, sessions of the page, usage limits and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, or_, select, update

from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError, TooManyRequestsError
from graphmatch.broker.app.security import SCOPES, Principal, digest_of, new_secret
from graphmatch.broker.db.subscription_queries import add_usage
from graphmatch.broker.db.tables import audit, owners, sessions, tokens
from graphmatch.broker.models.times import millis
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, RowMapping, Select

    from graphmatch.broker.service.broker import Broker

SESSION_DURATION = timedelta(hours=12)


class Accounts:
    """Owners with their tokens and sessions.

    A session has a random id of its own, so that a browser does not store the token. It ends after
    `SESSION_DURATION`, or earlier with its token.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    # -- tokens -----------------------------------------------------------------------------

    async def new_token(
        self, owner: str, scopes: Sequence[str], name: str = "", expires_in: timedelta | None = None
    ) -> str:
        """Create an API token, and its owner if there is none of that name; return the token.

        Raises
        ------
        InvalidRequestError
            If a scope is unknown.
        """
        if unknown := {*scopes} - {*SCOPES}:
            what, remedy = f"no scope is called {min(unknown)!r}", f"Use {', '.join(SCOPES)}."
            raise InvalidRequestError(Problem(what, Place("scopes"), remedy))
        token, now = new_secret("gmk_"), self._now()
        end = None if expires_in is None else millis(self._broker.clock() + expires_in)
        row = {"name": name, "hash": digest_of(token), "scopes": " ".join(sorted(scopes))}

        def work(db: Connection) -> None:
            id = db.scalar(select(owners.c.id).where(owners.c.name == owner))
            if id is None:
                new = insert(owners).values(name=owner, created_at=now)
                id = db.scalar(new.returning(owners.c.id))
            db.execute(insert(tokens).values(owner=id, created_at=now, expires_at=end, **row))

        await self._broker.store.write(work)
        return token

    async def tokens(self, owner: str | None = None) -> Sequence[RowMapping]:
        """Return the tokens of an owner, or of all owners, newest first, without their hashes."""
        columns = (column for column in tokens.c if column.name not in ("owner", "hash"))
        chosen = select(owners.c.name.label("owner"), *columns).join_from(tokens, owners)
        if owner is not None:
            chosen = chosen.where(owners.c.name == owner)
        newest = chosen.order_by(tokens.c.id.desc()).limit(1_000)
        return await self._broker.store.read(lambda db: db.execute(newest).mappings().all())

    async def revoke_token(self, id: int) -> None:
        """Revoke a token, which also ends its sessions.

        Raises
        ------
        NotFoundError
            If no token has this id, or it was revoked before.
        """
        valid = update(tokens).where(tokens.c.id == id, tokens.c.revoked_at.is_(None))
        revoked = valid.values(revoked_at=self._now())
        if not await self._broker.store.write(lambda db: db.execute(revoked).rowcount):
            remedy = "List the tokens to see their ids."
            raise NotFoundError(Problem("no valid token has this id", Place(str(id)), remedy))

    async def principal(self, token: str) -> Principal:
        """Return the principal of a token.

        Raises
        ------
        NotFoundError
            If the token is unknown, expired or revoked.
        """
        principal = await self._principal(tokens.c.hash == digest_of(token))
        if principal is None:
            raise _invalid_token()
        return principal

    async def _principal(self, chosen: ColumnElement[bool]) -> Principal | None:
        valid = self._valid(chosen)
        row = await self._broker.store.read(lambda db: db.execute(valid).one_or_none())
        return None if row is None else Principal(row.owner, frozenset(row.scopes.split()))

    def _valid(self, chosen: ColumnElement[bool]) -> Select[Any]:
        """Return the query of the valid tokens that satisfy a condition."""
        unexpired = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > self._now())
        return select(tokens).where(chosen, tokens.c.revoked_at.is_(None), unexpired)

    def _now(self) -> int:
        return millis(self._broker.clock())

    # -- sessions ---------------------------------------------------------------------------

    async def begin_session(self, token: str) -> str:
        """Create a session of the page, and return its random id.

        Raises
        ------
        NotFoundError
            If the token is unknown, expired or revoked.
        """
        id, valid = new_secret("gms_"), self._valid(tokens.c.hash == digest_of(token))
        end = millis(self._broker.clock() + SESSION_DURATION)

        def work(db: Connection) -> None:
            number = db.scalar(valid)
            if number is None:
                raise _invalid_token()
            row = {"hash": digest_of(id), "token": number, "expires_at": end}
            db.execute(insert(sessions).values(row))

        await self._broker.store.write(work)
        return id

    async def session_principal(self, id: str) -> Principal | None:
        """Return the principal of a session; ``None`` if the session is unknown or has ended."""
        session = (sessions.c.hash == digest_of(id)) & (sessions.c.expires_at > self._now())
        return await self._principal((sessions.c.token == tokens.c.id) & session)

    async def end_session(self, id: str) -> None:
        """End a session, if there is one of this id."""
        ended = delete(sessions).where(sessions.c.hash == digest_of(id))
        await self._broker.store.write(lambda db: db.execute(ended))

    # -- usage and audit --------------------------------------------------------------------

    def charge(self, db: Connection, by: Principal, stored_bytes: int) -> None:
        """Add publications that came over HTTP to the usage of their owner.

        Raises
        ------
        TooManyRequestsError
            If the owner stores more than `BrokerLimits.stored_bytes`. Nothing must be written then.
        """
        limit = self._broker.limits.stored_bytes
        if add_usage(db, by.owner, stored_bytes=stored_bytes)[1] > limit and not by.is_admin:
            what = f"more than {limit:,} bytes of publications are stored for this owner"
            days = self._broker.limits.retention.days
            remedy = f"Wait until old ones are deleted, {days} days after they came."
            problem = Problem(what, Place("publications"), remedy)
            raise TooManyRequestsError(problem, retry_after=3600)

    async def note(self, action: str, target: str | None = None, actor: str | None = None) -> None:
        """Write a line to the audit log."""
        row = {"at": self._now(), "action": action, "target": target, "actor": actor}
        await self._broker.store.write(lambda db: db.execute(insert(audit).values(row)))


def _invalid_token() -> NotFoundError:
    what, remedy = "the token is unknown, expired or revoked", "Ask the operator for a new one."
    return NotFoundError(Problem(what, Place("Authorization"), remedy))

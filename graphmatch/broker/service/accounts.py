"""Owners, tokens and the audit log."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import ANYBODY, SCOPES, SECRET_BYTES, Principal, digest_of
from graphmatch.broker.db.tables import (
    audit,
    owners,
    tokens,
)
from graphmatch.broker.models.times import millis
from semantic.errors import (
    Place,
    Problem,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection


if TYPE_CHECKING:
    from graphmatch.broker.service.broker import Broker


class Accounts:
    """Owners and their tokens."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

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
            raise InvalidRequestError(Problem(what, Place("scopes"), remedy))
        token, now = f"gmk_{secrets.token_urlsafe(SECRET_BYTES)}", millis(self._broker.clock())

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

        await self._broker.store.write(work)
        return token

    async def revoke_tokens(self, owner: str) -> int:
        """Make all tokens of an owner invalid; return how many."""
        now = millis(self._broker.clock())

        def work(db: Connection) -> int:
            theirs = select(owners.c.id).where(owners.c.name == owner).scalar_subquery()
            mine = (tokens.c.owner == theirs) & tokens.c.revoked_at.is_(None)
            return db.execute(update(tokens).where(mine).values(revoked_at=now)).rowcount

        return await self._broker.store.write(work)

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
        row = await self._broker.store.read(
            lambda db: db.execute(select(tokens).where(valid)).mappings().one_or_none()
        )
        if row is None:
            what, remedy = "the token is unknown", "Ask whoever runs the broker for one."
            raise NotFoundError(Problem(what, Place("Authorization"), remedy))
        return Principal(row["owner"], frozenset(row["scopes"].split()))

    async def note(self, what: str, subject: str | None = None, who: str | None = None) -> None:
        """Write a line to the audit log."""
        values = {
            "at": millis(self._broker.clock()),
            "action": what,
            "target": subject,
            "actor": who,
        }
        await self._broker.store.write(lambda db: db.execute(insert(audit).values(values)))

"""Responses to requests with an ``Idempotency-Key``, so that a repeated request has no effect."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select

from graphmatch.broker.app.errors import ConflictError
from graphmatch.broker.db.tables import idempotency_keys
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection


def earlier_response(db: Connection, owner: int | None, key: str, content: bytes) -> Any | None:
    """Return the response to an earlier request with a key; ``None`` if the key is new.

    Parameters
    ----------
    owner
        Owner of the key; ``None`` for all clients without a token.
    content
        The content of the request.

    Raises
    ------
    ConflictError
        If the key was used for other content.
    """
    table = idempotency_keys.c
    same = (table.owner == (owner or 0)) & (table.key == key)
    earlier = db.execute(select(table.hash, table.response).where(same)).one_or_none()
    if earlier is None:
        return None
    if earlier.hash != sha256(content).digest():
        what, remedy = "this key was used for another body", "Use a new key."
        raise ConflictError(Problem(what, Place("Idempotency-Key"), remedy))
    return earlier.response


def store_response(
    db: Connection, owner: int | None, key: str, content: bytes, response: Any, now: int
) -> None:
    """Store the response to a request with a key, as JSON; `earlier_response` returns it."""
    row = {"owner": owner or 0, "key": key, "hash": sha256(content).digest()}
    db.execute(insert(idempotency_keys).values(response=response, at=now, **row))

"""Principals, scopes and secrets."""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256

SCOPES = ("publish", "subscribe", "feeds", "admin")


@dataclass(frozen=True, slots=True)
class Principal:
    """A client: the owner of a token, or a client without one.

    Parameters
    ----------
    owner
        Id of the owner; ``None`` without a token.
    scopes
        Scopes of the token.
    """

    owner: int | None = None
    scopes: frozenset[str] = frozenset()

    @property
    def is_admin(self) -> bool:
        """Whether the token has the scope ``admin``, which includes all others."""
        return "admin" in self.scopes

    def may(self, scope: str) -> bool:
        """Check that the token includes a scope."""
        return self.is_admin or scope in self.scopes


ANYBODY = Principal()


def digest_of(secret: str) -> bytes:
    """Return the SHA-256 of a token, a ticket or a session id, which the store has instead."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_secret(prefix: str) -> str:
    """Return a new token, ticket, session id or key: a prefix and 32 random bytes."""
    return prefix + secrets.token_urlsafe(32)


def is_same(key: str, expected: str) -> bool:
    """Compare a key from a client with the expected one in constant time."""
    return secrets.compare_digest(digest_of(key), digest_of(expected))


def derived_key(ticket: bytes, id: str, purpose: str) -> str:
    """Return the key of a subscription for one purpose, for use in a URL.

    The key is HMAC-SHA-256 of the subscription's id, under the SHA-256 of its ticket. The ticket
    gives the key, but the key does not give the ticket.

    Parameters
    ----------
    ticket
        SHA-256 of the ticket, see `digest_of`.
    purpose
        ``read`` or ``unsubscribe``. A confirmation needs a random key, because a subscriber can
        derive this one without access to the mailbox.
    """
    mac = hmac.new(ticket, f"graphmatch {purpose} key\0{id}".encode(), sha256).digest()
    return f"gm{purpose[0]}_" + urlsafe_b64encode(mac).decode("ascii").rstrip("=")


def read_key(ticket: bytes, id: str) -> str:
    """Return the key that only allows reading the matches of a subscription.

    Examples
    --------
    >>> read_key(digest_of("gmt_0"), "sub_1")[:8]
    'gmr_JTmp'
    """
    return derived_key(ticket, id, "read")

"""Principals, scopes and secrets."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256

SCOPES = frozenset({"publish", "subscribe", "feeds", "admin"})
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: the owner of a token, or somebody without one.

    Parameters
    ----------
    owner
        The owner's number; ``None`` for those without a token.
    scopes
        What the token is for.
    """

    owner: int | None = None
    scopes: frozenset[str] = frozenset()

    @property
    def is_admin(self) -> bool:
        """Whether it may do all."""
        return "admin" in self.scopes

    def may(self, scope: str) -> bool:
        """Whether its token is for something."""
        return self.is_admin or scope in self.scopes


ANYBODY = Principal()


def digest_of(secret: str) -> bytes:
    """Return what is kept of a token or a ticket."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def derived_key(ticket: bytes, id: str, purpose: str) -> str:
    """Return the key of a subscription for one purpose, for use in a URL.

    The key is HMAC-SHA-256 of the subscription's id, under the SHA-256 of its ticket. The ticket
    gives the key, but the key does not give the ticket.

    Parameters
    ----------
    ticket
        SHA-256 of the ticket, see `digest_of`.
    purpose
        ``read``, ``confirm`` or ``unsubscribe``.
    """
    made = hmac.new(ticket, f"graphmatch {purpose} key\0{id}".encode(), sha256).digest()
    return f"gm{purpose[0]}_" + urlsafe_b64encode(made).decode("ascii").rstrip("=")


def read_key(ticket: bytes, id: str) -> str:
    """Return the key that only allows reading the matches of a subscription.

    Examples
    --------
    >>> read_key(digest_of("gmt_0"), "sub_1")[:8]
    'gmr_JTmp'
    """
    return derived_key(ticket, id, "read")

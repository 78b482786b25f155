"""Signatures of webhooks as Standard Webhooks 1.0 has them.

A request carries ``webhook-id``, ``webhook-timestamp`` (seconds since 1970) and
``webhook-signature``: HMAC-SHA256 over ``id.timestamp.body``, as ``v1,`` and base64. While a secret
is being replaced there is one signature for each, with spaces between them, so a receiver that
knows either of them accepts the request. A receiver refuses what is older than some minutes: the
timestamp is that of the attempt, the id that of the delivery, the same each time it is tried.

Source: https://github.com/standard-webhooks/standard-webhooks (spec/standard-webhooks.md).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets as random
from collections.abc import Sequence
from datetime import datetime

from semantic.errors import GraphMatchError, Place, Problem

PREFIX = "whsec_"
"""What a secret begins with, so that people and scanners know what it is."""
KEY_BYTES = (24, 64)
"""The fewest and the most bytes of a secret."""
_NEW_BYTES = 32
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class SignatureError(GraphMatchError):
    """A secret, or an id, that requests cannot be signed with."""


def new_secret() -> str:
    """Return a new secret, of 32 random bytes.

    Examples
    --------
    >>> new_secret()[:6], len(key_of(new_secret()))
    ('whsec_', 32)
    """
    return PREFIX + base64.b64encode(random.token_bytes(_NEW_BYTES)).decode("ascii")


def key_of(secret: str) -> bytes:
    """Return the bytes of a secret.

    Raises
    ------
    SignatureError
        When it is none; the message does not have it.

    Examples
    --------
    >>> key_of("whsec_" + "AAAA" * 8) == bytes(24)
    True
    """
    place = Place("webhook secret")
    least, most = KEY_BYTES
    remedy = f"Write `{PREFIX}` and {least} to {most} bytes in base64, or let the broker make one."
    text = secret.removeprefix(PREFIX)
    if text == secret:
        raise SignatureError(Problem(f"it does not begin with `{PREFIX}`", place, remedy))
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SignatureError(Problem("it is not base64", place, remedy)) from error
    if not least <= len(key) <= most:
        what = f"it has {len(key)} bytes, and not {least} to {most}"
        raise SignatureError(Problem(what, place, remedy))
    return key


def check_id(id: str) -> str:
    """Return an id of a delivery, if it is one: a dot in it would make signatures ambiguous.

    Raises
    ------
    SignatureError
        When it has other characters than letters, digits, ``-`` and ``_``, or more than 128.
    """
    if not _ID.fullmatch(id):
        what = f"{id[:40]!r} is not a valid delivery id"
        remedy = "Use 1 to 128 letters, digits, `-` and `_`."
        raise SignatureError(Problem(what, Place("delivery"), remedy))
    return id


def sign(secret: str, id: str, timestamp: datetime, body: bytes) -> str:
    """Return the signature of a request: ``v1,`` and base64.

    Parameters
    ----------
    secret
        ``whsec_`` and base64, see `new_secret`.
    id
        That of the delivery.
    timestamp
        When it is sent, with its zone; fractions of a second are dropped.

    Raises
    ------
    SignatureError
        When the secret or the id is none.

    Examples
    --------
    The example of the specification's libraries.

    >>> from datetime import UTC
    >>> at = datetime.fromtimestamp(1614265330, UTC)
    >>> secret, id = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    >>> sign(secret, id, at, b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    signed = f"{check_id(id)}.{_seconds(timestamp)}.".encode("ascii") + body
    code = hmac.new(key_of(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(code).decode("ascii")


def signed_headers(
    secrets: Sequence[str], id: str, timestamp: datetime, body: bytes
) -> dict[str, str]:
    """Return the headers of a request that is signed with each of the secrets.

    Parameters
    ----------
    secrets
        The one in force; and, while it is being replaced, the one before.

    Raises
    ------
    SignatureError
        When there is no secret, or it or the id is none.
    """
    if not secrets:
        problem = Problem("there is no secret", Place("webhook secret"), "Let the broker make one.")
        raise SignatureError(problem)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(_seconds(timestamp)),
        "webhook-signature": " ".join(sign(one, id, timestamp, body) for one in secrets),
    }


def _seconds(timestamp: datetime) -> int:
    return int(timestamp.timestamp())

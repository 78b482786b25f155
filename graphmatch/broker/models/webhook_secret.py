"""Secrets and signatures of webhooks, as Standard Webhooks 1.0 defines them.

The library ``standardwebhooks`` signs: HMAC-SHA256 over ``id.timestamp.body``. The id is that of
the delivery, the same for each attempt. The timestamp is that of the attempt.

Source: https://github.com/standard-webhooks/standard-webhooks (spec/standard-webhooks.md).
"""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from functools import lru_cache

from standardwebhooks import Webhook

from graphmatch.broker.app.errors import InvalidRequestError
from semantic.errors import Place, Problem

PREFIX = "whsec_"
"""Start of each secret, which lets people and scanners recognize it."""
MIN_BYTES, MAX_BYTES = 24, 64
"""Length limits of a secret, in bytes."""


def new_secret() -> str:
    """Return a new secret of 32 random bytes.

    Examples
    --------
    >>> new_secret()[:6], len(key_of(new_secret()))
    ('whsec_', 32)
    """
    return PREFIX + b64encode(secrets.token_bytes(32)).decode("ascii")


def key_of(secret: str) -> bytes:
    """Return the bytes of a secret.

    Raises
    ------
    InvalidRequestError
        If the secret is invalid. The message does not contain it.

    Examples
    --------
    >>> key_of("whsec_" + "AAAA" * 8) == bytes(24)
    True
    """
    text = secret.removeprefix(PREFIX)
    try:
        key = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        key = b""
    if text == secret or not MIN_BYTES <= len(key) <= MAX_BYTES:
        remedy = f"Write `{PREFIX}` and {MIN_BYTES} to {MAX_BYTES} bytes in base64."
        raise InvalidRequestError(Problem("the secret is invalid", Place("webhook secret"), remedy))
    return key


_signer = lru_cache(10_000)(Webhook)
"""Return the signer of a secret; reading a secret takes longer than signing."""


def signed_headers(secret: str, id: str, now: datetime, body: bytes) -> dict[str, str]:
    """Return the headers that sign a request.

    Parameters
    ----------
    id
        Id of the delivery: letters, digits, ``-`` and ``_``.
    now
        Time of the attempt, with its zone.

    Examples
    --------
    The example of the specification's libraries.

    >>> at = datetime.fromtimestamp(1614265330, UTC)
    >>> secret, id = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    >>> signed_headers(secret, id, at, b'{"test": 2432232314}')["webhook-signature"]
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    return {
        "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": _signer(secret).sign(id, now.astimezone(UTC), body.decode()),
    }

"""The limits of a broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """What one may ask for.

    Parameters
    ----------
    body_bytes
        Of one request.
    payload_bytes
        Of one delivery; what is more is left out, with a link to all of it.
    solutions
        That are kept of one match.
    subscriptions
        Of one owner, and of all who have no token together.
    publications
        Of one request.
    validity, longest_validity
        Of a subscription for which nothing is said, and at most.
    announced
        How long before its end a sink is told; a tenth of the validity where that is less.
    retention
        How long publications and matches can be asked for.
    replayed
        How far back events can be fetched.
    host_requests
        Deliveries to one host at once.
    query_characters
        Of a subscription.
    """

    body_bytes: int = 10_000_000
    payload_bytes: int = 20_000
    solutions: int = 100
    subscriptions: int = 1_000_000
    publications: int = 10_000
    validity: timedelta = timedelta(days=1)
    longest_validity: timedelta = timedelta(days=366)
    announced: timedelta = timedelta(hours=12)
    retention: timedelta = timedelta(days=30)
    replayed: timedelta = timedelta(days=7)
    host_requests: int = 2
    query_characters: int = 100_000

"""The limits of a broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """Limits of requests, subscriptions, storage and deliveries.

    Parameters
    ----------
    body_bytes
        Size of a request.
    payload_bytes
        Size of a delivery. A longer one is truncated and contains a link to the rest.
    solutions
        Number of solutions stored for a match.
    subscriptions
        Number of subscriptions of an owner, and of all clients without a token together. Owners
        with the scope ``admin`` have no limit.
    stored_bytes
        Size of the stored publications that an owner sent over HTTP. Owners with the scope
        ``admin`` have no limit.
    requests
        Requests per minute of an owner, or of the address of a client without a token.
    publications
        Number of publications in a request.
    validity, longest_validity
        Duration of a subscription by default, and the longest one.
    announced
        Time between the announcement of a subscription's end and the end. It is a tenth of the
        validity if that is shorter.
    retention
        Duration for which publications and matches are stored.
    replayed
        Age of the oldest match that a stream of events repeats.
    host_requests
        Number of concurrent deliveries to a host.
    query_characters
        Length of a subscription's query.
    """

    body_bytes: int = 10_000_000
    payload_bytes: int = 20_000
    solutions: int = 100
    subscriptions: int = 10_000
    stored_bytes: int = 5_000_000_000
    requests: int = 6_000
    publications: int = 10_000
    validity: timedelta = timedelta(days=30)
    longest_validity: timedelta = timedelta(days=366)
    announced: timedelta = timedelta(hours=12)
    retention: timedelta = timedelta(days=30)
    replayed: timedelta = timedelta(days=7)
    host_requests: int = 2
    query_characters: int = 100_000

"""Errors of the broker that clients can cause."""

from __future__ import annotations

from semantic.errors import GraphMatchError, Problem


class InvalidRequestError(GraphMatchError):
    """A request is invalid or exceeds a limit."""


class NotFoundError(GraphMatchError):
    """An object does not exist or belongs to another owner."""


class ConflictError(GraphMatchError):
    """An idempotency key was used for another request."""


class BusyError(GraphMatchError):
    """Too many questions are being answered."""


class TooManyRequestsError(GraphMatchError):
    """A limit of requests or of stored data is reached.

    Attributes
    ----------
    retry_after
        Seconds until the client may try again.
    """

    def __init__(self, problem: Problem, retry_after: float) -> None:
        super().__init__(problem)
        self.retry_after = retry_after

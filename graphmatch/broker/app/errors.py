"""Errors of the broker that clients can cause."""

from __future__ import annotations

from semantic.errors import GraphMatchError, Problem


class InvalidRequestError(GraphMatchError):
    """What was asked for means nothing, or is more than a limit allows."""


class NotFoundError(GraphMatchError):
    """There is no such thing, or it is another's."""


class ConflictError(GraphMatchError):
    """The same key was used for something else."""


class BusyError(GraphMatchError):
    """Others are being answered."""


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

"""Problems in answers (RFC 9457), dead letters, and the state of the broker."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from graphmatch.broker.models.base import Answer, Time
from semantic.errors import Place, Problem


class ProblemAnswer(Answer):
    """An error, as `application/problem+json` (RFC 9457), with its place and a remedy.

    `code` is the name of the kind of error, which never changes. `request_id` is the response
    header `X-Request-Id`, which is also in the log.
    """

    what: str
    where: Place
    remedy: str
    type: str = Field(examples=["urn:graphmatch:problem:not-found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    code: str = Field(examples=["not-found"])
    detail: str = Field(description="Description, place and remedy as one text.")
    request_id: str
    problems: list[Problem] | None = Field(None, description="All problems, if there are several.")


class DeadLetter(Answer):
    """A record that a background task could not process in three attempts."""

    id: int
    task: str = Field(examples=["matching"])
    record: str = Field(examples=["publication 17"])
    error: str
    at: Time


class DeadLetters(Answer):
    """The newest dead letters, and the number of all."""

    dead_letters: list[DeadLetter]
    total: int


class Readiness(Answer):
    """The state of the broker.

    `reasons` are the faults that keep it from working. `set_aside` has the number of records that
    each background task has set aside since the start, and `dead_letters` the number of records in
    `GET /v1/dead-letters`.
    """

    status: Literal["ok", "not ready"] = "ok"
    reasons: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    dead_letters: int = 0

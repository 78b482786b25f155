"""Problems in answers (RFC 9457), dead letters, and the state of the broker."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from graphmatch.broker.models.base import Answer, Time


class ProblemPlace(Answer):
    """The place of a problem.

    Attributes
    ----------
    source
        The part of the request, or the id of the object.
    line
        Line, counted from 1.
    column
        Column, counted from 1.
    item
        The field, or another part of the source.
    """

    source: str
    line: int | None = None
    column: int | None = None
    item: str | None = None


class ProblemItem(Answer):
    """A problem: its description, its place and a remedy."""

    what: str
    where: ProblemPlace
    remedy: str


class ProblemAnswer(ProblemItem):
    """An error, as `application/problem+json` (RFC 9457).

    Attributes
    ----------
    code
        Name of the kind of error. It never changes.
    detail
        Description, place and remedy as one text.
    request_id
        The response header `X-Request-Id`. The log of the broker contains it.
    problems
        All problems, if there are several.
    """

    type: str = Field(examples=["urn:graphmatch:problem:not-found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    code: str = Field(examples=["not-found"])
    detail: str
    request_id: str
    problems: list[ProblemItem] | None = None


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

    Attributes
    ----------
    reasons
        Faults that keep the broker from working.
    set_aside
        Number of records that each background task has set aside since the start.
    dead_letters
        Number of records in `GET /v1/dead-letters`.
    """

    status: Literal["ok", "not ready"] = "ok"
    reasons: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    dead_letters: int = 0

"""The clock of queries: ``NOW()`` asks the one who evaluates, not the machine.

A query that says ``NOW()`` has to give the same answer when it is asked again, in a
test or on another day's archive. So the call is written as one of a function of
ours, and whoever evaluates the query says what time it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from pyoxigraph import Literal

from semantic.sparql.lexer import Kind, Token
from semantic.vocabulary import GM, XSD

NOW = GM["now"]
"""The function that stands for ``NOW()``."""

Clock: TypeAlias = Callable[[], datetime]
"""Returns the time, with its zone."""


def utc_now() -> datetime:
    """Return the machine's time."""
    return datetime.now(UTC)


def now_literal(now: datetime) -> Literal:
    """Return a time as ``NOW()`` gives it.

    Examples
    --------
    >>> now_literal(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)).value
    '2026-01-02T03:04:05Z'
    """
    return Literal(now_text(now), datatype=XSD["dateTime"])


def now_text(now: datetime) -> str:
    """Return a time as an ``xsd:dateTime`` writes it."""
    return now.isoformat().replace("+00:00", "Z")


def with_clock(tokens: Sequence[Token]) -> list[Token]:
    """Return a query's tokens with each ``NOW()`` as a call of `NOW`."""
    texts = [token.text.upper() for token in tokens]
    return [
        replace(token, kind=Kind.TERM, text=str(NOW), term=NOW)
        if token.kind is Kind.WORD and texts[index : index + 3] == ["NOW", "(", ")"]
        else token
        for index, token in enumerate(tokens)
    ]

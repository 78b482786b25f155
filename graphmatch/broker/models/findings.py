"""Findings about subscriptions and their sinks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum


class Kind(Enum):
    """What a finding of `health` is about."""

    SINK = "failing sink"
    NEVER = "can never match"
    SILENT = "has not matched"
    DUPLICATE = "duplicate"
    DOUBTFUL = "doubtful"
    NOT_EXAMINED = "not examined"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that somebody should look at.

    Parameters
    ----------
    kind
        What it is about.
    subscriptions
        The ids of those that it concerns; of duplicates the one that is older comes first.
    text, remedy
        What it is, and what to do.
    code
        The linter's, if it found it (docs/reference/errors.md).
    """

    kind: Kind
    subscriptions: tuple[str, ...]
    text: str
    remedy: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class SinkState:
    """A sink that takes nothing at present.

    Parameters
    ----------
    subscription
        Whose sink it is.
    address
        Where it delivers to.
    since
        Since when each attempt has failed.
    attempts
        How many these are.
    answer
        What the last one got.
    """

    subscription: str
    address: str
    since: datetime
    attempts: int
    answer: str

"""Findings about subscriptions, their sinks, and the broker."""

from __future__ import annotations

from enum import Enum

from graphmatch.broker.models.stored_publication import Result


class FindingKind(Enum):
    """The kinds of findings, the most urgent first."""

    DISK = "disk almost full"
    DEAD_LETTERS = "dead letters"
    SINK = "failing sink"
    FEED = "failing feed"
    NEVER = "can never match"
    SILENT = "has not matched"
    DUPLICATE = "duplicate"
    DOUBTFUL = "doubtful"
    NOT_EXAMINED = "not examined"


class Finding(Result):
    """A probable fault of subscriptions, a sink or the broker."""

    kind: FindingKind
    subscriptions: tuple[str, ...] = ()
    """Ids of the subscriptions. The older one of two duplicates comes first."""
    text: str
    remedy: str
    code: str = ""
    """Code of the linter's warning (docs/reference/errors.md)."""


class HealthReport(Result):
    """Findings about subscriptions, their sinks and the broker."""

    findings: list[Finding]
    """The most urgent first."""
    names: dict[str, str]
    """Names of the subscriptions in the findings, by id."""
    subscriptions: int
    """Number of subscriptions that have not ended."""
    examined: int
    """Number of these that were examined, the newest."""

"""Channel and items of a feed of any format, and a reporter of its problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from semantic.errors import InputError, OnProblem, Place, Problem, Severity


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file attached to an item, as delivered and unchecked."""

    url: str
    type: str = ""
    length: str = ""


@dataclass(frozen=True, slots=True)
class Channel:
    """The feed itself; a missing field is an empty string.

    Parameters
    ----------
    id
        The feed's own identifier: Atom's id, JSON Feed's feed_url.
    base
        Base IRI of relative links (``xml:base`` of the root).
    self_link, hubs
        The feed's address and its WebSub hubs, as written in the feed.
    """

    id: str = ""
    title: str = ""
    link: str = ""
    description: str = ""
    language: str = ""
    creators: tuple[str, ...] = ()
    base: str = ""
    self_link: str = ""
    hubs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One item, with unparsed links and dates; number and line do not affect equality.

    Parameters
    ----------
    number
        Position in the feed, from 1.
    line
        First line of the item, if known.
    id
        RSS's guid, Atom's id, JSON Feed's id.
    base
        Base IRI of relative links, if the item has its own (``xml:base``).
    """

    number: int = field(compare=False, repr=False)
    line: int | None = field(default=None, compare=False, repr=False)
    id: str = ""
    link: str = ""
    title: str = ""
    description: str = ""
    content: str = ""
    published: str = ""
    updated: str = ""
    language: str = ""
    creators: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    base: str = ""


@dataclass(frozen=True, slots=True)
class ProblemReporter:
    """Passes the problems of one feed to `on_problem`; their place is in `source`, the feed's name.

    Examples
    --------
    >>> reporter = ProblemReporter("daily.rss", print)
    >>> reporter.warn("not a date", "It was kept as a string.", 12, "item 3")
    daily.rss:12 (item 3): not a date. It was kept as a string.
    """

    source: str
    on_problem: OnProblem

    def warn(
        self, what: str, remedy: str, line: int | None = None, item: str | None = None
    ) -> None:
        """Report a warning: a part of the feed was skipped or repaired."""
        place = Place(self.source, line, item=item)
        self.on_problem(Problem(what, place, remedy, Severity.WARNING))

    def refuse(
        self, what: str, remedy: str, line: int | None = None, item: str | None = None
    ) -> None:
        """Report that one or more items are lost."""
        self.on_problem(Problem(what, Place(self.source, line, item=item), remedy))

    def fail(
        self, what: str, remedy: str, line: int | None = None, column: int | None = None
    ) -> NoReturn:
        """Raise `InputError`, because the whole feed is unusable."""
        raise InputError(Problem(what, Place(self.source, line, column), remedy))

"""What a feed says, whatever its format, and who is called with its problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from semantic.errors import InputError, OnProblem, Place, Problem, Severity


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file that goes with an item, as delivered: nothing in it is checked yet."""

    url: str
    type: str = ""
    length: str = ""


@dataclass(frozen=True, slots=True)
class Channel:
    """The feed itself. An empty string is a field that the feed does not have.

    Parameters
    ----------
    id
        What the feed calls itself by: Atom's id, JSON Feed's feed_url.
    base
        What relative links are resolved against (``xml:base`` of the root).
    self_link, hubs
        The feed's own address, and its WebSub hubs, as the feed has them.
    ttl, period, frequency, skip_hours, skip_days
        How often it is to be fetched: RSS's minutes, the syndication module's period and how often
        in it, and the hours and days (in GMT) when it is not to be.
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
    ttl: str = ""
    period: str = ""
    frequency: str = ""
    skip_hours: tuple[str, ...] = ()
    skip_days: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One item, its links and dates still text; equal to one that says the same elsewhere.

    Parameters
    ----------
    number
        Its place in the feed, from 1.
    line
        Where it begins, if known.
    id
        RSS's guid, Atom's id, JSON Feed's id.
    base
        What relative links are resolved against, if the item says so (``xml:base``).
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
class Report:
    """Where a feed's problems go.

    Examples
    --------
    >>> Report("daily.rss", print).warn("its date is no date", "It is kept as text.", 12, "item 3")
    daily.rss:12 (item 3): its date is no date. It is kept as text.
    """

    source: str
    on_problem: OnProblem

    def warn(
        self, what: str, remedy: str, line: int | None = None, item: str | None = None
    ) -> None:
        """Report something that was passed over or mended."""
        place = Place(self.source, line, item=item)
        self.on_problem(Problem(what, place, remedy, Severity.WARNING))

    def refuse(
        self, what: str, remedy: str, line: int | None = None, item: str | None = None
    ) -> None:
        """Report an item that is lost."""
        self.on_problem(Problem(what, Place(self.source, line, item=item), remedy))

    def fail(
        self, what: str, remedy: str, line: int | None = None, column: int | None = None
    ) -> NoReturn:
        """Raise, because nothing of the feed can be used."""
        raise InputError(Problem(what, Place(self.source, line, column), remedy))

"""What a feed says, whatever its format: a channel, and items with text as it was delivered."""

from __future__ import annotations

from dataclasses import dataclass


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
    """

    id: str = ""
    title: str = ""
    link: str = ""
    description: str = ""
    language: str = ""
    creators: tuple[str, ...] = ()
    base: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One item, its links and dates still text.

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

    number: int
    line: int | None = None
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

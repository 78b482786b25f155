"""Feeds in requests and answers."""

from __future__ import annotations

from pydantic import Field

from graphmatch.broker.models.base import Answer, Model, Page, Time, example
from semantic.errors import Problem


class FeedRequest(Model):
    """A feed to follow.

    Attributes
    ----------
    title
        Title of the feed until the first fetch.
    """

    model_config = example({"url": "https://example.org/feed"})

    url: str = Field(max_length=2000)
    title: str = Field("", max_length=200)


class FeedView(Answer):
    """A followed feed.

    Attributes
    ----------
    url
        Address in the request that added the feed.
    address
        Address of the fetches.
    read_at
        Time of the last successful fetch.
    next_poll_at
        Time of the next fetch. `null` means soon.
    errors
        Number of failed fetches since the last successful one.
    status
        HTTP status of the last fetch.
    problem
        The error of the last fetch.
    pushed_until
        End of the lease at a WebSub hub that sends new items.
    """

    id: str = Field(examples=["0123456789abcdef"])
    url: str
    address: str
    title: str
    read_at: Time | None = None
    next_poll_at: Time | None = None
    errors: int
    status: int | None = None
    problem: str | None = None
    pushed_until: Time | None = None


class FeedsPage(Page):
    """A page of feeds."""

    feeds: list[FeedView]


class FeedListReceipt(Answer):
    """The result of an import.

    Attributes
    ----------
    added
        Number of new feeds.
    listed
        Number of valid feeds in the list.
    problems
        The first 100 entries that are not valid.
    """

    added: int
    listed: int
    problems: list[Problem]

"""Feeds in requests and answers."""

from __future__ import annotations

from pydantic import Field

from graphmatch.broker.models.base import Answer, Model, Page, Time, example


class FeedRequest(Model):
    """A feed to follow."""

    model_config = example({"url": "https://example.org/feed"})

    url: str = Field(max_length=2000)
    title: str = Field("", max_length=200, description="Title of the feed until the first fetch.")


class FeedView(Answer):
    """A followed feed. If `next_poll_at` is `null`, the next fetch is soon."""

    id: str = Field(examples=["0123456789abcdef"])
    url: str = Field(description="Address in the request that added the feed.")
    address: str = Field(description="Address of the fetches.")
    title: str
    read_at: Time | None = Field(None, description="Time of the last successful fetch.")
    next_poll_at: Time | None = Field(None, description="Time of the next fetch.")
    errors: int = Field(description="Number of failed fetches since the last successful one.")
    problem: str | None = Field(None, description="The error of the last fetch.")
    pushed_until: Time | None = Field(None, description="End of the lease at a WebSub hub.")


class FeedsPage(Page):
    """A page of feeds."""

    feeds: list[FeedView]

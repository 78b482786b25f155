"""Tokens in requests and answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from graphmatch.broker.models.base import Answer, Model, Time, example


class TokenRequest(Model):
    """A new API token.

    The broker creates the owner if needed. `expires_in` is the validity in seconds. By default, the
    token never expires.
    """

    model_config = example({"owner": "shop", "scopes": ["publish"], "name": "till"})

    owner: str = Field(min_length=1, max_length=100)
    scopes: list[Literal["publish", "subscribe", "feeds", "admin"]] = Field(min_length=1)
    name: str = Field("", max_length=100)
    expires_in: int | None = Field(None, ge=1, le=10**9)


class TokenReceipt(Answer):
    """A new token, which no later answer contains."""

    token: str
    owner: str
    scopes: list[str]


class TokenView(Answer):
    """An API token, without its secret."""

    id: int
    owner: str
    name: str
    scopes: Annotated[list[str], BeforeValidator(str.split)]
    created_at: Time
    expires_at: Time | None = None
    revoked_at: Time | None = None

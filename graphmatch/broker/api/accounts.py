"""API tokens over HTTP. Clients need the scope ``admin``."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response

from graphmatch.broker.api.dependencies import Number, TheCaller
from graphmatch.broker.models.account import TokenReceipt, TokenRequest, TokenView

router = APIRouter(prefix="/v1")
Name = Annotated[str | None, Query(max_length=100, description="Only tokens of this owner.")]


@router.post("/tokens", status_code=201, summary="Create a token (admin)")
async def new_token(body: TokenRequest, by: TheCaller) -> TokenReceipt:
    """Create an API token of an owner."""
    by.check("admin", open=False)
    accounts = by.api.broker.accounts
    length = None if body.expires_in is None else timedelta(seconds=body.expires_in)
    token = await accounts.new_token(body.owner, body.scopes, body.name, length)
    await accounts.note("token", body.owner, by.name)
    return TokenReceipt(token=token, owner=body.owner, scopes=list(body.scopes))


@router.get("/tokens", summary="List tokens (admin)")
async def list_tokens(by: TheCaller, owner: Name = None) -> dict[str, list[TokenView]]:
    """Return the newest 1,000 tokens as `tokens`, without their secrets."""
    by.check("admin", open=False)
    rows = await by.api.broker.accounts.tokens(owner)
    return {"tokens": [TokenView(**row) for row in rows]}


@router.delete("/tokens/{number}", status_code=204, summary="Revoke a token (admin)")
async def revoke_token(number: Number, by: TheCaller) -> Response:
    """Make a token invalid, and end its sessions."""
    by.check("admin", open=False)
    await by.api.broker.accounts.revoke_token(number)
    await by.api.broker.accounts.note("revoked", f"token {number}", by.name)
    return Response(status_code=204)

"""Publications over HTTP: publish, list and read them, also as an LDN inbox.

Source: Linked Data Notifications, https://www.w3.org/TR/ldn/, section 3.3 (receivers), and
CloudEvents 1.0, HTTP protocol binding (structured and batched content modes).
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError
from pyoxigraph import RdfFormat, parse, serialize
from sqlalchemy import select

from graphmatch.broker.api import dependencies as deps
from graphmatch.broker.api.problems import CONSTRAINTS, request_error
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import digest_of
from graphmatch.broker.db.tables import matches, publications, subscriptions
from graphmatch.broker.models import publication as model
from graphmatch.broker.models.stored_publication import PublicationRef
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, RowMapping

LDP = "http://www.w3.org/ns/ldp"
_JSON_LD, _JSON = "application/ld+json", "application/json"
_WRITTEN = (_JSON_LD, "application/n-triples", "text/turtle")
"""Media types of the content of a publication."""
ACCEPTED = (
    *_WRITTEN,
    "application/n-quads",
    "application/trig",
    "text/n3",
    *model.DETECTED_TYPES,
    *model.LINE_TYPES,
    model.EVENT_TYPE,
    model.BATCH_TYPE,
)
"""Media types that can be published."""
_BODY = deps.document_body(
    dict.fromkeys(filter(None, ACCEPTED))
    | {
        "text/turtle": "<urn:example:offer:1> a <urn:example:Laptop> .",
        _JSON_LD: '{"@id": "urn:example:offer:1", "@type": "urn:example:Laptop"}',
        "application/x-ndjson": '{"id": "urn:example:1", "data": "<urn:a> a <urn:C> .", '
        '"format": "text/turtle"}\n{"data": {"@id": "urn:b", "@type": "urn:C"}}',
    }
)
_HEADERS = {
    "Allow": "GET, HEAD, OPTIONS, POST",
    "Accept-Post": ", ".join(filter(None, ACCEPTED)),
    "Link": CONSTRAINTS,
}

router = APIRouter(prefix="/v1")


async def publish(request: Request) -> Response:
    """Answer a request that `describe_publish` describes.

    It does without FastAPI's dependencies, which cost more time.
    """
    by, key = await deps.caller_of(request), request.headers.get("idempotency-key") or None
    by.check("publish", anonymous=True)
    media_type = deps.media_type_of(request, ACCEPTED)
    try:
        options = model.PublishOptions.model_validate(dict(request.query_params))
    except ValidationError as error:
        raise request_error(error, "query") from error
    if key is not None and len(key) > deps.MAX_KEY:
        problem = Problem("the key is too long", Place("Idempotency-Key"), "Shorten it.")
        raise InvalidRequestError(problem)
    accepted = await by.api.broker.publications.publish(
        await request.body(),
        format=media_type,
        name=options.id,
        split_by=options.split_by,
        key=key,
        by=by.principal,
    )
    refs = [_ref(seq, id, by.root) for seq, id in accepted.publications]
    receipt = model.PublishReceipt(publications=refs, problems=list(accepted.problems))
    headers = {"Location": receipt.publications[0].url} if receipt.publications else {}
    return Response(receipt.model_dump_json(), 202, headers, _JSON)


@router.post(
    "/publications",
    status_code=202,
    summary="Publish",
    response_model=model.PublishReceipt,
    openapi_extra=_BODY,
)
async def describe_publish(
    options: Annotated[model.PublishOptions, Query()], idempotency_key: deps.IdempotencyKey = None
) -> None:
    """Publish RDF in any syntax, a feed, CloudEvents, or many documents as lines of JSON.

    `202` means that the publications are stored and will be matched. The media type gives the
    syntax. For XML, JSON and plain text, the content does. Each graph of N-Quads and TriG, each
    item of a feed, each event of a batch and each line of `application/x-ndjson` is a publication.
    A line is an object with `data` (text or JSON-LD), and optionally `format` (its media type) and
    `id`.
    """


def _ref(seq: int, id: str, root: str) -> PublicationRef:
    return PublicationRef(seq=seq, id=id, url=f"{root}/v1/publications/{seq}")


@router.options("/publications", status_code=204, summary="List the media types of publications")
async def publishing() -> Response:
    """Return the media types that can be published, in `Accept-Post`."""
    return Response(status_code=204, headers=_HEADERS)


@router.get(
    "/publications",
    summary="List publications",
    response_class=Response,
    responses=deps.content_of(
        _JSON_LD, description="Addresses, under `contains`.", schema={"type": "object"}
    ),
)
async def list_publications(
    by: deps.TheCaller, before: deps.Before = None, limit: deps.Limit = deps.LISTED
) -> Response:
    """Return the addresses of publications, newest first, as an LDN inbox does.

    An owner gets its own publications, and an admin all. The local user also gets those without an
    owner, such as items of feeds.
    """
    by.check("publish")
    own, table = f"{by.root}/v1/publications", publications.c
    chosen = select(table.seq).where(_readable(by)).order_by(table.seq.desc()).limit(limit)
    if before is not None:
        chosen = chosen.where(table.seq < before)
    seqs = await by.read(lambda db: db.scalars(chosen).all())
    headers = dict(_HEADERS)
    if (next := by.next(seqs, limit, before=seqs[-1] if seqs else before)) is not None:
        headers["Link"] += f', <{next}>; rel="next"'
    content = {"@context": LDP, "@id": own, "contains": [f"{own}/{seq}" for seq in seqs]}
    return Response(json.dumps(content), media_type=_JSON_LD, headers=headers)


def _readable(by: deps.Caller) -> ColumnElement[bool]:
    """Return the condition of publications that a client may read because of its token."""
    table = publications.c
    if by.principal.is_admin:
        return table.seq > 0
    if by.owner is None:
        return table.owner.is_(None)
    mine = table.owner == by.owner
    return mine | table.owner.is_(None) if by.is_local else mine


@router.get(
    "/publications/{seq}",
    summary="Read a publication",
    response_class=Response,
    responses=deps.content_of(*_WRITTEN, _JSON, schema={}),
)
async def get_publication(seq: deps.Number, by: deps.TheCaller) -> Response:
    """Return a publication as JSON-LD, N-Triples or Turtle, or its state as JSON.

    Its publisher may read it, and the owners of subscriptions that it matched.
    """
    if by.owner is None and by.ticket is None:
        by.check("publish")
    media_type = deps.preferred(by.request.headers.get("accept"), (*_WRITTEN, _JSON))
    row = await by.read(lambda db: _publication(db, seq, by))
    if row is None:
        await by.denied("publication", str(seq))
        what = "the publication does not exist or belongs to another owner"
        raise NotFoundError(Problem(what, Place(str(seq)), "Send a token or a ticket."))
    content: str | bytes | None = row["data"]  # N-Triples, a subset of Turtle.
    if media_type == _JSON:
        url = _ref(seq, row["id"], by.root).url
        content = model.PublicationView(**row, url=url).model_dump_json()
    elif media_type == _JSON_LD:
        triples = parse(row["data"], RdfFormat.N_TRIPLES)
        content = await asyncio.to_thread(serialize, triples, format=RdfFormat.JSON_LD)
    headers = {"Vary": "Accept", "Link": f'<{LDP}#Resource>; rel="type"'}
    return Response(content, media_type=media_type, headers=headers)


def _publication(db: Connection, seq: int, by: deps.Caller) -> RowMapping | None:
    """Return the row of a publication that a client may read."""
    allowed = publications.c.seq < 0 if by.ticket is not None else _readable(by)
    if by.ticket is not None or (by.owner is not None and by.principal.may("subscribe")):
        mine = subscriptions.c.owner == by.owner
        if by.ticket is not None:
            mine = subscriptions.c.ticket == digest_of(by.ticket)
        matched = matches.c.subscription == subscriptions.c.number
        seen = select(matches.c.seq).join(subscriptions, matched)
        allowed |= seen.where(matches.c.publication == seq, mine).exists()
    chosen = select(publications).where(publications.c.seq == seq, allowed)
    return db.execute(chosen).mappings().one_or_none()

"""Publications over HTTP: publish, list and read them, also as an LDN inbox.

Source: Linked Data Notifications, https://www.w3.org/TR/ldn/, section 3.3 (receivers), and
CloudEvents 1.0, HTTP protocol binding (structured and batched content modes).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError
from pyoxigraph import RdfFormat, parse, serialize
from sqlalchemy import select

from graphmatch.broker.api import dependencies as deps
from graphmatch.broker.api.guard import LINE_TYPES
from graphmatch.broker.api.problems import CONSTRAINTS, first_problem, request_error
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import digest_of
from graphmatch.broker.db.tables import matches, publications, subscriptions
from graphmatch.broker.models import publication as model
from graphmatch.broker.models.stored_publication import PublicationRef
from graphmatch.broker.service.broker import Broker
from semantic.errors import InputError, Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, RowMapping

    from semantic.publication import Publication

LDP = "http://www.w3.org/ns/ldp"
_EVENT = "application/cloudevents+json"
_BATCH = "application/cloudevents-batch+json"
_DETECTED = {
    "": None,
    "application/atom+xml": None,
    "application/feed+json": None,
    "application/json": None,
    "application/octet-stream": None,
    "application/rdf+xml": None,
    "application/rss+xml": None,
    "application/xml": None,
    "text/plain": None,
    "text/xml": None,
}
"""Media types whose syntax is detected from the content."""
_FORMATS = _DETECTED | {
    "text/turtle": "ttl",
    "application/n-triples": "nt",
    "application/n-quads": "nq",
    "application/trig": "trig",
    "application/ld+json": "jsonld",
    "text/n3": "n3",
}
ACCEPTED = (*filter(None, _FORMATS), *LINE_TYPES, _EVENT, _BATCH)
"""Media types that can be published."""
_WRITTEN = {
    "application/ld+json": RdfFormat.JSON_LD,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "text/turtle": RdfFormat.TURTLE,
}
_LISTS = ("application/ld+json", "application/json")
_CLOUD = (
    '{"specversion": "1.0", "id": "1", "source": "urn:example:shop", "type": "org.example.offer", '
    '"datacontenttype": "text/turtle", "data": "<urn:example:offer:1> a <urn:example:Laptop> ."}'
)
_BODY = deps.document_body(
    dict.fromkeys(ACCEPTED)
    | {
        "text/turtle": "<urn:example:offer:1> a <urn:example:Laptop> .",
        "application/ld+json": '{"@id": "urn:example:offer:1", "@type": "urn:example:Laptop"}',
        "application/x-ndjson": '{"id": "urn:example:1", "data": "<urn:a> a <urn:C> .", '
        '"format": "text/turtle"}\n{"data": {"@id": "urn:b", "@type": "urn:C"}}',
        _EVENT: _CLOUD,
        _BATCH: f"[{_CLOUD}]",
    }
)
_HEADERS = {
    "Allow": "GET, HEAD, OPTIONS, POST",
    "Accept-Post": ", ".join(ACCEPTED),
    "Link": CONSTRAINTS,
}

router = APIRouter(prefix="/v1")


@router.post("/publications", status_code=202, summary="Publish", openapi_extra=_BODY)
async def publish(
    by: deps.TheCaller,
    options: Annotated[model.PublishOptions, Query()],
    idempotency_key: deps.IdempotencyKey = None,
) -> model.PublishReceipt:
    """Publish RDF in any syntax, a feed, CloudEvents, or many documents as lines of JSON.

    `202` means that the publications are stored and will be matched. The media type gives the
    syntax. For XML, JSON and plain text, the content does. Each graph of N-Quads and TriG, each
    item of a feed, each event of a batch and each line of `application/x-ndjson` is a publication.
    A line is an object with `data` (text or JSON-LD), and optionally `format` (its media type) and
    `id`.
    """
    by.check("publish", anonymous=True)
    media_type = deps.media_type_of(by.request, (*ACCEPTED, ""))
    data, service = await by.request.body(), by.api.broker.publications
    if media_type in (*LINE_TYPES, _EVENT, _BATCH):
        found, problems = await asyncio.to_thread(read_parts, by.api.broker, data, media_type)
        accepted = await service.take_in(
            found, problems, source="http", key=idempotency_key, of=data, by=by.principal
        )
    else:
        accepted = await service.publish(
            data,
            format=_FORMATS[media_type],
            name=options.id,
            split_by=options.split_by,
            base=options.base,
            key=idempotency_key,
            by=by.principal,
        )
    refs = [_ref(seq, id, by.root) for seq, id in accepted.publications]
    return model.PublishReceipt(publications=refs, problems=list(accepted.problems))


async def publish_now(request: Request) -> Response:
    """Answer a request for `publish` without FastAPI's dependencies, which cost more time."""
    by, key = await deps.caller_of(request), request.headers.get("idempotency-key", "")
    by.check("publish", anonymous=True)
    try:
        options = model.PublishOptions.model_validate(dict(request.query_params))
    except ValidationError as error:
        raise request_error(error, "query") from error
    if len(key) > deps.MAX_KEY:
        problem = Problem("the key is too long", Place("Idempotency-Key"), "Shorten it.")
        raise InvalidRequestError(problem)
    receipt = await publish(by, options, key or None)
    headers = {"Location": receipt.publications[0].url} if receipt.publications else {}
    return Response(receipt.model_dump_json(), 202, headers, "application/json")


def _ref(seq: int, id: str, root: str) -> PublicationRef:
    return PublicationRef(seq=seq, id=id, url=f"{root}/v1/publications/{seq}")


def read_parts(
    broker: Broker, data: bytes, media_type: str
) -> tuple[list[Publication], tuple[Problem, ...]]:
    """Return the publications of lines of JSON or of CloudEvents, and the refused parts.

    Raises
    ------
    InvalidRequestError
        If all parts are refused, or if there are more publications than the limit.
    """
    found: list[Publication] = []
    problems: list[Problem] = []
    limit = broker.limits.publications
    for place, part in _parts(data, media_type):
        try:
            if media_type in LINE_TYPES:
                document, format, id = _document(model.PublicationLine.model_validate_json(part))
            else:
                document, format, id = _document(model.CloudEvent.model_validate(part))
            several, refused = broker.publications.read(document, format=format, name=id)
        except ValidationError as error:
            several, refused = [], (first_problem(error),)
        except InputError as error:
            several, refused = [], (error.problem,)
        found += several
        for one in refused:
            item = one.where.item or (f"line {one.where.line}" if one.where.line else place.item)
            problems.append(replace(one, where=replace(place, item=item)))
        if max(len(found), len(problems)) > limit:
            what = f"more than {limit:,} publications"
            raise InvalidRequestError(Problem(what, Place("body"), "Send several requests."))
    if not found:
        missing = Problem("no publication in it", Place("body"), "Send RDF.")
        raise InvalidRequestError(problems[0] if problems else missing)
    return found, tuple(problems)


def _parts(data: bytes, media_type: str) -> Iterator[tuple[Place, Any]]:
    """Yield the lines or the events of a body with their places."""
    if media_type in LINE_TYPES:
        for number, line in enumerate(data.splitlines(), 1):
            if line.strip():
                yield Place("body", number), line
        return
    try:
        events = json.loads(data)
    except (ValueError, RecursionError) as error:
        what = f"the body is not JSON: {error}"
        raise InvalidRequestError(Problem(what, Place("body"), "Correct it.")) from error
    several = events if media_type == _BATCH and isinstance(events, list) else [events]
    for number, event in enumerate(several, 1):
        yield Place("body", item=f"event {number}"), event


def _document(
    part: model.PublicationLine | model.CloudEvent,
) -> tuple[bytes, str | None, str | None]:
    """Return the document of a line or an event, its format, and the id of its publication."""
    data: Any = part.data
    format, id = "", part.id
    if isinstance(part, model.CloudEvent):
        data = part.data if part.data_base64 is None else part.data_base64
        format = part.datacontenttype.partition(";")[0].strip().lower()
        id = part.id if ":" in part.id else f"{part.source}#{part.id}"
    elif part.format is not None:
        format = part.format
    if isinstance(data, dict | list) and format in ("", "jsonld", *_LISTS):
        return json.dumps(data).encode(), "jsonld", id
    if isinstance(data, str | bytes):
        document = data.encode() if isinstance(data, str) else data
        return document, None if format in ("", "application/json") else format, id
    what = "data is neither a text in the format nor JSON-LD"
    raise InputError(Problem(what, Place("body", item="data"), "Correct data or the format."))


@router.options("/publications", status_code=204, summary="List the media types of publications")
async def publishing() -> Response:
    """Return the media types that can be published, in `Accept-Post`."""
    return Response(status_code=204, headers=_HEADERS)


@router.get(
    "/publications",
    summary="List publications",
    response_class=Response,
    responses=deps.content_of(
        *_LISTS,
        description="Addresses of publications, under `contains`.",
        schema={"type": "object"},
        example={"@context": LDP, "@id": "…/v1/publications", "contains": ["…/v1/publications/17"]},
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
    media_type = deps.preferred(by.request.headers.get("accept"), _LISTS)
    own, table = f"{by.root}/v1/publications", publications.c
    chosen = select(table.seq).where(_readable(by)).order_by(table.seq.desc()).limit(limit)
    if before is not None:
        chosen = chosen.where(table.seq < before)
    seqs = await by.read(lambda db: db.scalars(chosen).all())
    headers = {**_HEADERS, "Vary": "Accept"}
    if (next := by.next(seqs, limit, before=seqs[-1] if seqs else before)) is not None:
        headers["Link"] += f', <{next}>; rel="next"'
    content = {"@context": LDP, "@id": own, "contains": [f"{own}/{seq}" for seq in seqs]}
    return Response(json.dumps(content), media_type=media_type, headers=headers)


def _readable(by: deps.Caller) -> ColumnElement[bool]:
    """Return the condition of publications that a client may read because of its token."""
    table = publications.c
    if by.principal.is_admin:
        return table.seq > 0
    if by.owner is None:
        return table.owner.is_(None)
    mine = table.owner == by.owner
    return mine | table.owner.is_(None) if by.is_local else mine


_PUBLICATION = deps.content_of(*_WRITTEN, description="The publication in the accepted syntax.")
_PUBLICATION[200]["content"] |= {
    "application/ld+json": {"schema": {}},
    "application/json": {"schema": {"$ref": "#/components/schemas/PublicationView"}},
}


@router.get(
    "/publications/{seq}",
    summary="Read a publication",
    response_class=Response,
    responses=_PUBLICATION,
)
async def get_publication(seq: deps.Number, by: deps.TheCaller) -> Response:
    """Return a publication as JSON-LD, N-Triples or Turtle, or its state as JSON.

    Its publisher may read it, and the owners of subscriptions that it matched.
    """
    if by.owner is None and by.ticket is None:
        by.check("publish")
    media_type = deps.preferred(by.request.headers.get("accept"), (*_WRITTEN, "application/json"))
    row = await by.read(lambda db: _publication(db, seq, by))
    if row is None:
        await by.denied("publication", str(seq))
        what = "the publication does not exist or belongs to another owner"
        raise NotFoundError(Problem(what, Place(str(seq)), "Send a token or a ticket."))
    headers = {"Vary": "Accept", "Link": f'<{LDP}#Resource>; rel="type"'}
    if media_type == "application/json":
        url = _ref(seq, row["id"], by.root).url
        content: str | bytes = model.PublicationView(**row, url=url).model_dump_json()
    else:
        content = await asyncio.to_thread(_written, row["data"], _WRITTEN[media_type])
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


def _written(data: bytes, format: RdfFormat) -> bytes:
    if format != RdfFormat.JSON_LD:
        return data  # N-Triples is a subset of Turtle.
    return serialize(parse(data, RdfFormat.N_TRIPLES), format=format) or b""

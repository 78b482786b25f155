"""Publications over HTTP: posted, listed and read, as an inbox of Linked Data Notifications.

Source: https://www.w3.org/TR/ldn/, section 3.3 (receivers).
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from pyoxigraph import RdfFormat, parse, serialize
from sqlalchemy import select
from starlette.responses import Response

from graphmatch.broker.api.dependencies import (
    LISTED,
    Before,
    Caller,
    Limit,
    Number,
    TheApi,
    TheCaller,
    preferred,
)
from graphmatch.broker.api.problems import HttpError, told
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import digest_of
from graphmatch.broker.db.tables import matches, publications, subscriptions
from graphmatch.broker.models import schemas as show
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.publications import Accepted, uuid_of
from semantic.errors import InputError, Place, Problem
from semantic.reading import check_base

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

    from semantic.publication import Publication

LDP = "http://www.w3.org/ns/ldp"
_LINES = ("application/x-ndjson", "application/jsonl", "application/ndjson")
_RDF = {
    "text/turtle": "ttl",
    "application/n-triples": "nt",
    "application/n-quads": "nq",
    "application/trig": "trig",
    "application/ld+json": "jsonld",
    "text/n3": "n3",
}
_SNIFFED = (
    "",
    "application/atom+xml",
    "application/feed+json",
    "application/json",
    "application/octet-stream",
    "application/rdf+xml",
    "application/rss+xml",
    "application/xml",
    "text/plain",
    "text/xml",
)
"""Media types that do not tell a feed from RDF, or that tell nothing: the content does."""
ACCEPTED = (*_RDF, *filter(None, _SNIFFED), *_LINES)
"""The media types that can be published."""
_WRITTEN = {
    "application/ld+json": RdfFormat.JSON_LD,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "text/turtle": RdfFormat.TURTLE,
}

_LISTED = ("application/ld+json", "application/json")

inbox = APIRouter(prefix="/v1")


_BODIES = {
    "text/turtle": "<urn:example:offer:1> a <urn:example:Laptop> .",
    "application/ld+json": '{"@id": "urn:example:offer:1", "@type": "urn:example:Laptop"}',
    "application/n-quads": "<urn:a> <urn:p> <urn:b> <urn:g1> .\n<urn:c> <urn:p> <urn:d> <urn:g2> .",
    "application/x-ndjson": '{"id": "urn:example:1", "data": "<urn:a> a <urn:C> .", '
    '"format": "text/turtle"}\n{"data": {"@id": "urn:b", "@type": "urn:C"}}',
}
_PUBLISHING: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            media_type: {
                "schema": {"type": "string"},
                **({"example": _BODIES[media_type]} if media_type in _BODIES else {}),
            }
            for media_type in ACCEPTED
        },
    }
}


@inbox.post("/publications", status_code=202, summary="Publish", openapi_extra=_PUBLISHING)
async def publish(
    request: Request,
    response: Response,
    api: TheApi,
    by: TheCaller,
    id: Annotated[
        str | None,
        Query(max_length=2000, description="Of the publication, where it names none itself."),
    ] = None,
    split_by: Annotated[
        Literal["auto", "document", "graph", "item", "subject", "component"],
        Query(description="What of the body is one publication."),
    ] = "auto",
    base: Annotated[
        str | None, Query(max_length=2000, description="What relative IRIs are resolved against.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        Header(max_length=255, description="Makes it safe to send the same request again."),
    ] = None,
) -> show.AcceptedView:
    """Publish RDF of any syntax, a feed, or many documents as lines of JSON.

    The answer comes after the commit: what is acknowledged is matched, whatever happens to the
    broker. The media type tells the syntax; of XML, JSON and plain text the content does.
    Publications in bulk: N-Quads and TriG have one in each graph, feeds in each item; and a line of
    `application/x-ndjson` is an object with `data`, a document as text or JSON-LD, and if need be
    `format`, its media type, and `id`. Relative IRIs are resolved against `base`, or else the id.
    """
    api.check(by, "publish", anonymous=True)
    media_type, _, parameters = request.headers.get("content-type", "").partition(";")
    media_type = media_type.strip().lower()
    if media_type not in (*ACCEPTED, ""):
        what, remedy = "this media type cannot be published", "Use one of Accept-Post."
        headers = {"Accept-Post": ", ".join(ACCEPTED)}
        raise HttpError(415, Problem(what, Place("Content-Type"), remedy), headers)
    charset = parameters.lower().replace(" ", "").replace('"', "").partition("charset=")[2]
    known = ("", "utf-8", "utf8", "us-ascii")
    if media_type not in _SNIFFED and charset.partition(";")[0] not in known:
        what, remedy = "this syntax is always in UTF-8", "Send UTF-8."
        raise HttpError(415, Problem(what, Place("Content-Type"), remedy))
    data = await request.body()
    if media_type in _LINES:
        found, problems = await asyncio.to_thread(read_lines, api.broker, data)
        if not found and problems:
            raise InvalidRequestError(problems[0])
        accepted = await api.broker.publications.take_in(
            found, problems, source="http", key=idempotency_key, of=data, by=by.principal
        )
    else:
        accepted = await api.broker.publications.publish(
            data,
            format=_RDF.get(media_type),
            name=id,
            split_by=split_by,
            base=base or _base_of(id, data),
            key=idempotency_key,
            by=by.principal,
        )
    view = accepted_view(accepted, api.root(request))
    if view.publications:
        response.headers["Location"] = view.publications[0].url
    return view


def _base_of(id: str | None, data: bytes) -> str:
    """Return what relative IRIs are resolved against where nothing is said."""
    try:
        check_base(id or "")
    except InputError:
        return f"urn:uuid:{uuid_of(data)}"
    return id or ""


def accepted_view(accepted: Accepted, root: str) -> show.AcceptedView:
    """Return what is told of what was published."""
    refs = [
        show.PublicationRef(seq=seq, id=id, url=f"{root}/v1/publications/{seq}")
        for seq, id in accepted.publications
    ]
    problems = [show.ProblemItem.model_validate(told(one)) for one in accepted.problems]
    return show.AcceptedView(publications=refs, problems=problems)


def read_lines(broker: Broker, data: bytes) -> tuple[list[Publication], tuple[Problem, ...]]:
    """Return the publications of lines of JSON, and what of them was refused.

    Raises
    ------
    RefusedError
        When there are more publications than the limit.
    """
    found: list[Publication] = []
    problems: list[Problem] = []
    most = broker.limits.publications
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            document, format, id = _line(line)
            base = _base_of(id, document)
            several, refused = broker.publications.read(document, format=format, name=id, base=base)
        except InputError as error:
            several, refused = [], (error.problem,)
        found += several
        for one in refused:
            item = one.where.item or (f"line {one.where.line}" if one.where.line else None)
            problems.append(replace(one, where=Place("body", number, None, item)))
        if len(found) > most or len(problems) > most:
            what = f"more than {most:,} publications"
            raise InvalidRequestError(Problem(what, Place("body"), "Send several requests."))
    if not found and not problems:
        problems.append(Problem("no publication in it", Place("body"), "Send RDF."))
    return found, tuple(problems)


def _line(line: bytes) -> tuple[bytes, str | None, str | None]:
    """Return the document of a line, its format, and its id."""
    remedy = 'Write {"id": …, "data": …, "format": …}; only data is needed.'
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(Problem("the line is not JSON", Place("body"), remedy)) from error
    if not isinstance(row, dict) or "data" not in row or row.keys() - {"id", "data", "format"}:
        what = "the line is not an object of id, data and format"
        raise InputError(Problem(what, Place("body"), remedy))
    data, format, id = row["data"], row.get("format"), row.get("id")
    if not isinstance(format, str | None) or not isinstance(id, str | None):
        what = "id or format is not a string"
        raise InputError(Problem(what, Place("body"), remedy))
    try:
        (id or "").encode()
        if isinstance(data, str):
            return data.encode(), format, id
        if isinstance(data, dict | list) and format in (None, "application/ld+json", "jsonld"):
            return json.dumps(data).encode(), "jsonld", id
    except UnicodeEncodeError as error:
        what = "a string has a lone surrogate (half a character)"
        raise InputError(Problem(what, Place("body"), "Write it whole.")) from error
    what = "data is neither a string nor JSON-LD"
    raise InputError(Problem(what, Place("body"), remedy))


@inbox.options("/publications", status_code=204, summary="Ask what can be published")
async def publishing() -> Response:
    """Say which media types can be published."""
    return Response(status_code=204, headers=_inbox_headers())


def _inbox_headers() -> dict[str, str]:
    return {
        "Allow": "GET, HEAD, OPTIONS, POST",
        "Accept-Post": ", ".join(ACCEPTED),
        "Link": '</docs#publications>; rel="http://www.w3.org/ns/ldp#constrainedBy"',
    }


@inbox.get(
    "/publications",
    summary="List publications, as an LDN inbox does",
    response_class=Response,
    responses={
        200: {
            "description": "The addresses of publications, under `contains`.",
            "content": {
                one: {
                    "schema": {"type": "object"},
                    "example": {
                        "@context": LDP,
                        "@id": "http://127.0.0.1:8080/v1/publications",
                        "contains": ["http://127.0.0.1:8080/v1/publications/17"],
                    },
                }
                for one in _LISTED
            },
        }
    },
)
async def list_publications(
    request: Request, api: TheApi, by: TheCaller, before: Before = None, limit: Limit = LISTED
) -> Response:
    """Return the addresses of publications, newest first, as JSON-LD (`ldp:contains`).

    An owner gets its own, an admin all. The local user gets its own and those without an owner,
    such as items of feeds.
    """
    api.check(by, "publish")
    media_type = preferred(request.headers.get("accept"), _LISTED)
    root, table = api.root(request), publications.c
    chosen = select(table.seq).where(_theirs(by)).order_by(table.seq.desc()).limit(limit)
    if before is not None:
        chosen = chosen.where(table.seq < before)
    seqs = await api.broker.store.read(lambda db: db.scalars(chosen).all())
    own = f"{root}/v1/publications"
    contains = [f"{own}/{seq}" for seq in seqs]
    headers = _inbox_headers() | {"Vary": "Accept"}
    if (more := api.next(request, seqs, limit, before=seqs[-1] if seqs else before)) is not None:
        headers["Link"] += f', <{more}>; rel="next"'
    content = json.dumps({"@context": LDP, "@id": own, "contains": contains})
    return Response(content, media_type=media_type, headers=headers)


def _theirs(by: Caller) -> Any:
    """Return the condition of publications that somebody may read."""
    if by.principal.is_admin:
        return publications.c.seq > 0
    if by.principal.owner is None:
        return publications.c.owner.is_(None)
    mine = publications.c.owner == by.principal.owner
    return mine | publications.c.owner.is_(None) if by.is_local else mine


@inbox.get(
    "/publications/{seq}",
    summary="Read a publication",
    response_class=Response,
    responses={
        200: {
            "description": "The publication, as the header Accept wants it.",
            "content": {
                **{
                    one: {"schema": {} if one == _LISTED[0] else {"type": "string"}}
                    for one in _WRITTEN
                },
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/PublicationView"},
                },
            },
        }
    },
)
async def get_publication(seq: Number, request: Request, api: TheApi, by: TheCaller) -> Response:
    """Return a publication as JSON-LD, N-Triples or Turtle; or as JSON what became of it.

    Its publisher may read it, and whoever has the ticket of a subscription that it matched, or
    the token of its owner.
    """
    if by.principal.owner is None and by.ticket is None:
        api.check(by, "publish")
    media_type = preferred(request.headers.get("accept"), (*_WRITTEN, "application/json"))
    row = await api.broker.store.read(lambda db: _publication(db, seq, by))
    if row is None:
        await api.denied("publication", str(seq), by)
        what, remedy = "there is no such publication, or it is another's", "Send a token or ticket."
        raise NotFoundError(Problem(what, Place(str(seq)), remedy))
    headers = {"Vary": "Accept", "Link": f'<{LDP}#Resource>; rel="type"'}
    if media_type == "application/json":
        same = {key: row[key] for key in ("seq", "id", "title", "link", "source", "problem")}
        when: dict[str, Any] = show.times(row, "received_at", "matched_at")
        url = f"{api.root(request)}/v1/publications/{seq}"
        view = show.PublicationView(**same, **when, url=url)
        return Response(view.model_dump_json(), media_type=media_type, headers=headers)
    content = await asyncio.to_thread(_written, row["data"], _WRITTEN[media_type])
    return Response(content, media_type=media_type, headers=headers)


def _publication(db: Connection, seq: int, by: Caller) -> RowMapping | None:
    """Return the row of a publication that somebody may read."""
    mine = publications.c.seq == seq
    row = db.execute(select(publications).where(mine, _theirs(by))).mappings().one_or_none()
    owner, ticket = by.principal.owner, by.ticket
    if row is not None and ticket is None:
        return row
    known = None
    if ticket is not None:
        known = subscriptions.c.ticket == digest_of(ticket)
    elif owner is not None and by.principal.may("subscribe"):
        known = subscriptions.c.owner == owner
    if known is None:
        return None
    matched = (
        select(matches.c.seq)
        .join(subscriptions, subscriptions.c.number == matches.c.subscription)
        .where(matches.c.publication == seq, known)
        .limit(1)
    )
    if db.scalar(matched) is None:
        return None
    return db.execute(select(publications).where(mine)).mappings().one_or_none()


def _written(data: bytes, format: RdfFormat) -> bytes:
    if format != RdfFormat.JSON_LD:
        return data  # N-Triples are Turtle
    return serialize(parse(data, RdfFormat.N_TRIPLES), format=format) or b""

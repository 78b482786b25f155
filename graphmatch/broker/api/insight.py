"""Questions over HTTP: what would match, why not, a query from an example, what if, and health.

Local clients, and those with a token for `subscribe`, may ask about all publications. Times and
numbers of questions are bounded (`graphmatch.broker.insight.insight_service`); what takes longer says how far it
came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from sqlalchemy import true

from graphmatch.broker.api.dependencies import (
    MAX_INT64,
    Api,
    Caller,
    Id,
    Number,
    TheApi,
    TheCaller,
    document_body,
    media_type_of,
    unknown,
)
from graphmatch.broker.api.problems import told
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import digest_of
from graphmatch.broker.db import queries
from graphmatch.broker.db.tables import subscriptions
from graphmatch.broker.insight.insight_service import Upload
from graphmatch.broker.models import schemas as show
from graphmatch.broker.models.findings import Finding
from graphmatch.broker.service.subscriptions import of_subscription
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, RowMapping

    from graphmatch.broker.insight.backtest import Hit, RelaxedMatch
    from graphmatch.broker.insight.views import Preview

LISTED = 200
"""So many subscriptions are told that would gain or lose something."""
_BELOW = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
_LINE = f"<urn:example:Laptop> <{_BELOW}> <urn:example:Computer> ."
ONTOLOGY_TYPES = {
    "text/turtle": (".ttl", _LINE),
    "application/n-triples": (".nt", _LINE),
    "text/n3": (".n3", _LINE),
    "application/ld+json": (
        ".jsonld",
        f'{{"@id": "urn:example:Laptop", "{_BELOW}": {{"@id": "urn:example:Computer"}}}}',
    ),
    "application/rdf+xml": (
        ".rdf",
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">'
        '<rdfs:Class rdf:about="urn:example:Laptop">'
        '<rdfs:subClassOf rdf:resource="urn:example:Computer"/></rdfs:Class></rdf:RDF>',
    ),
    "application/owl+xml": (
        ".owx",
        '<Ontology xmlns="http://www.w3.org/2002/07/owl#"><SubClassOf>'
        '<Class IRI="urn:example:Laptop"/><Class IRI="urn:example:Computer"/></SubClassOf>'
        "</Ontology>",
    ),
}
"""The endings of files and an example, by media type."""

questions = APIRouter(prefix="/v1")


# -- before subscribing -------------------------------------------------------------------------


@questions.post("/subscriptions:backtest", summary="Try a subscription on what is stored")
async def backtest(
    body: show.QueryDefinition, request: Request, api: TheApi, by: TheCaller
) -> show.BacktestView:
    """Say what a subscription would have matched: how much on which day, and the newest with why.

    As far back as publications are kept and ten seconds reach. Near misses are what it would match
    without one of its conditions.
    """
    api.check(by, "subscribe")
    found = await api.insight.ask(api.insight.trial, body.given() or {})
    return await _trial(api, found, request)


@questions.post("/subscriptions:preview", summary="Preview a subscription while it is written")
async def preview(
    body: show.QueryDefinition, request: Request, api: TheApi, by: TheCaller
) -> show.BacktestView:
    """Say what a subscription would have matched of what is recent, in a second or so.

    What cannot be a subscription is refused as when subscribing, with line and column.
    """
    api.check(by, "subscribe")
    found = await api.insight.ask(api.insight.preview, body.given() or {})
    return await _trial(api, found, request)


async def _trial(api: Api, found: Preview, request: Request) -> show.BacktestView:
    trial, root = found.trial, api.root(request)
    if trial is None:
        what, remedy = "nothing is asked for yet", "Write a query."
        raise InvalidRequestError(Problem(what, Place("subscription"), remedy))
    if trial.problem is not None:
        raise of_subscription(trial.problem)
    values = asdict(trial)
    for key in ("newest", "relaxed_matches"):  # what was deleted in the meantime is left out
        several = (one for one in getattr(trial, key) if one.id in found.seqs)
        values[key] = [_seen(one, found.seqs[one.id], root) for one in several]
    findings = [finding_view(one, {}) for one in found.findings]
    return show.BacktestView(query=found.query, findings=findings, **values)


def _seen(one: Hit | RelaxedMatch, seq: int, root: str) -> dict[str, Any]:
    values = asdict(one)
    return {**values, "received_at": values.pop("received"), **_ref(one.id, seq, root)}


def _ref(id: str, seq: int, root: str) -> dict[str, Any]:
    return {"id": id, "seq": seq, "url": f"{root}/v1/publications/{seq}"}


def finding_view(finding: Finding, rows: Mapping[str, RowMapping]) -> show.FindingView:
    """Return a finding with the ids of subscriptions, whose numbers the engine knows."""
    ids = [rows[number]["id"] for number in finding.subscriptions if number in rows]
    said = {"text": finding.text, "remedy": finding.remedy, "code": finding.code}
    return show.FindingView(kind=finding.kind.value, subscriptions=ids, **said)


# -- about a publication ------------------------------------------------------------------------


async def publication_row(api: Api, seq: int, by: Caller) -> RowMapping:
    """Return the row of a publication; note who asks for one that is not there."""
    row = await api.broker.store.read(lambda db: queries.item(db, seq))
    if row is None:
        await api.denied("publication", str(seq), by)
        what, remedy = "there is no such publication", "Its retention time may be over."
        raise NotFoundError(Problem(what, Place(str(seq)), remedy))
    return row


@questions.get("/publications/{seq}/facts", summary="List the facts of a publication")
async def facts(seq: Number, request: Request, api: TheApi, by: TheCaller) -> show.FactsView:
    """Return what a publication says and its texts name, for a subscription to ask for.

    Each fact is generalised up the ontology, with how many recent publications have each step.
    """
    api.check(by, "subscribe")
    row = await publication_row(api, seq, by)
    found = await api.insight.ask(api.insight.ladders, queries.stored(row))
    shown = [
        show.FactView(
            sort=ladder.fact.sort.value,
            common=ladder.is_common,
            steps=[
                show.StepView(
                    key=step.key,
                    label=step.fact.label,
                    property=step.fact.property_label,
                    pattern=step.fact.pattern(prefixes=api.broker.engine.ontology.prefixes),
                    count=step.count,
                )
                for step in ladder.steps
            ],
        )
        for ladder in found.all
    ]
    ref = show.PublicationRef(**_ref(row["id"], seq, api.root(request)))
    return show.FactsView(
        publication=ref, facts=shown, scanned=found.scanned, complete=found.complete
    )


@questions.post("/publications/{seq}/query", summary="Make a query of facts that were chosen")
async def query_of(
    seq: Number, body: show.ChosenFacts, api: TheApi, by: TheCaller
) -> show.QueryView:
    """Return the query that asks for facts of a publication, for `POST /v1/subscriptions`."""
    api.check(by, "subscribe")
    row = await publication_row(api, seq, by)
    made = await api.insight.ask(api.insight.query_of, queries.stored(row), body.facts)
    if not made:
        what, remedy = "the publication has none of these facts", "Send keys that its facts have."
        raise InvalidRequestError(Problem(what, Place("body", item="facts"), remedy))
    return show.QueryView(query=made)


@questions.get("/subscriptions/{id}/why", summary="Ask why a publication matches, or why not")
async def why(
    id: Id,
    request: Request,
    api: TheApi,
    by: TheCaller,
    publication: Annotated[int, Query(ge=1, le=MAX_INT64, description="Its number in the log.")],
) -> show.ReasonsView:
    """Say why a subscription matches any publication that is stored, or what failed first."""
    mine = await api.subscription(id, by)
    row = await publication_row(api, publication, by)
    asked = api.insight.reasons, id, mine["query"], queries.stored(row)
    reasons = await api.insight.ask(*asked)
    return show.ReasonsView(
        subscription=id,
        publication=show.PublicationRef(**_ref(row["id"], publication, api.root(request))),
        matches=bool(reasons["matches"]),
        before=mine["after_publication"] >= publication,
        reasons=reasons,
    )


# -- the ontology, and health -------------------------------------------------------------------


@questions.post(
    "/ontology:what-if",
    summary="Ask what another ontology would change (admin, where tokens are needed)",
    openapi_extra=document_body({name: text for name, (_, text) in ONTOLOGY_TYPES.items()}),
)
async def what_if(request: Request, api: TheApi, by: TheCaller) -> show.DifferenceView:
    """Say which subscriptions would gain or lose recent publications; nothing is changed.

    Nothing is fetched: what the ontology imports has to be in it.
    """
    api.check(by, "admin")
    suffix, _ = ONTOLOGY_TYPES[media_type_of(request, ONTOLOGY_TYPES)]
    upload = Upload(f"body{suffix}", await request.body())
    found = await api.insight.ask(api.insight.what_if, [upload])
    several = list(found.changed.items())[:LISTED]
    ids = {id for _, one in several for id in (*one.newest_gained, *one.newest_lost)}
    named, seqs = await api.broker.store.read(
        lambda db: (
            queries.names(db, None, [int(number) for number, _ in several]),
            queries.seqs_of(db, list(ids)),
        )
    )
    root = api.root(request)

    def refs(several: Iterable[str]) -> list[show.PublicationRef]:
        return [show.PublicationRef(**_ref(id, seqs[id], root)) for id in several if id in seqs]

    return show.DifferenceView(
        scanned=found.scanned,
        complete=found.complete,
        matches_before=found.matches_before,
        matches_after=found.matches_after,
        changed=len(found.changed),
        subscriptions=[
            show.GainView(
                subscription=named[int(number)]["id"],
                gained=one.gained,
                lost=one.lost,
                newest_gained=refs(one.newest_gained),
                newest_lost=refs(one.newest_lost),
            )
            for number, one in several
            if int(number) in named
        ],
        problems=[show.ProblemItem.model_validate(told(one)) for one in found.problems[:LISTED]],
    )


@questions.get("/subscription-health", summary="Ask what is wrong with one's subscriptions")
async def health(api: TheApi, by: TheCaller) -> show.FindingsView:
    """Return what never matches, can never match, is there twice, or is not delivered.

    An owner and the local user get their own, an admin all, a client with a ticket its own one.
    """
    found, rows, there = await api.insight.ask(api.insight.health, _whose(api, by))
    findings = [finding_view(one, rows) for one in found]
    return show.FindingsView(findings=findings, subscriptions=there, examined=len(rows))


def _whose(api: Api, by: Caller) -> ColumnElement[bool]:
    """Return the condition of the subscriptions that are somebody's."""
    if by.principal.owner is not None:
        api.check(by, "subscribe")
        if by.principal.is_admin:
            return true()
        return subscriptions.c.owner == by.principal.owner
    if by.ticket is None:
        raise unknown(f"this needs a ticket, or the token of an owner{by.why}")
    return subscriptions.c.ticket == digest_of(by.ticket)

"""Questions over HTTP: backtests, reasons, queries by example, what-if, and health.

They are for local clients and tokens for `subscribe`, and include the publications of all owners.
`graphmatch.broker.insight.insight_service` limits their number and duration.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field
from pyoxigraph import RdfFormat
from sqlalchemy import true

from graphmatch.broker.api import dependencies as deps
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.db import queries
from graphmatch.broker.db.tables import subscriptions
from graphmatch.broker.insight.backtest import BacktestResult
from graphmatch.broker.insight.explanations import Reasons
from graphmatch.broker.insight.insight_service import InsightService, Upload
from graphmatch.broker.insight.query_by_example import FactHierarchies
from graphmatch.broker.insight.what_if import Difference
from graphmatch.broker.models.base import EXAMPLE_ID, Answer, Model, example
from graphmatch.broker.models.findings import HealthReport
from graphmatch.broker.models.match import MatchView
from graphmatch.broker.models.stored_publication import PublicationRef, StoredPublication
from graphmatch.broker.models.subscription import QueryDefinition
from semantic.errors import Place, Problem

_LINE = "<urn:a:Laptop> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:a:Computer> ."
_RDF = [RdfFormat.TURTLE, RdfFormat.N_TRIPLES, RdfFormat.N3, RdfFormat.JSON_LD, RdfFormat.RDF_XML]
ONTOLOGY_TYPES = {format.media_type: f".{format.file_extension}" for format in _RDF}
ONTOLOGY_TYPES["application/owl+xml"] = ".owx"
"""File suffix by media type."""
LogNumber = Annotated[int, Query(ge=1, le=deps.MAX_NUMBER, description="Number in the log.")]
router = APIRouter(prefix="/v1")


async def _insight(by: deps.TheCaller) -> InsightService:
    by.check("subscribe")
    return by.api.insight


TheInsight = Annotated[InsightService, Depends(_insight)]


class ChosenFacts(Model):
    """Keys of facts of a publication that a query must contain."""

    model_config = example({"facts": ["0123456789abcdef"]})

    facts: list[str] = Field(min_length=1, max_length=1000)


class ExplainedMatch(Answer):
    """A match with its reasons, by the current ontology and query."""

    match: MatchView
    reasons: Reasons


class Explanation(Answer):
    """Why a subscription matches a publication, or the first condition that fails."""

    subscription: str = Field(examples=[EXAMPLE_ID])
    publication: PublicationRef
    matches: bool = Field(description="Whether the current query matches the publication.")
    before: bool = Field(description="Whether the publication is older than the query.")
    reasons: Reasons


@router.post("/subscriptions:backtest", summary="Test a subscription on stored publications")
@router.post("/subscriptions:preview", summary="Test a subscription while a user writes it")
async def backtest(
    body: QueryDefinition, insight: TheInsight, by: deps.TheCaller
) -> BacktestResult:
    """Return the stored publications that a subscription would have matched, and near misses.

    A backtest ends after some ten seconds. A preview only reads recent publications, and ends after
    about a second. Relaxed matches lack one condition.
    """
    is_short = by.request.url.path.endswith(":preview")
    question = insight.preview if is_short else insight.backtest
    return await insight.ask(question, body.definition() or {}, by.root)


async def publication_of(by: deps.Caller, seq: int) -> StoredPublication:
    """Return a stored publication. The audit log gets requests for a missing one."""
    row = await by.read(lambda db: queries.item(db, seq))
    if row is None:
        await by.denied("publication", seq)
        what, remedy = "there is no such publication", "Its retention time may be over."
        raise NotFoundError(Problem(what, Place(str(seq)), remedy))
    return queries.stored(row, by.root)


@router.get("/publications/{seq}/facts", summary="List the facts of a publication")
async def facts(seq: deps.Number, insight: TheInsight, by: deps.TheCaller) -> FactHierarchies:
    """Return facts of a publication for a query, and their generalisations in the ontology.

    Each has the number of recent publications that contain it.
    """
    return await insight.ask(insight.facts, await publication_of(by, seq))


@router.post("/publications/{seq}/query", summary="Create a query from facts")
async def query_of(
    seq: deps.Number, body: ChosenFacts, insight: TheInsight, by: deps.TheCaller
) -> dict[str, str]:
    """Return the `query` of a subscription for some facts of a publication."""
    query = await insight.ask(insight.query_of, await publication_of(by, seq), body.facts)
    if not query:
        what, remedy = "the publication has none of these facts", "Send keys of its facts."
        raise InvalidRequestError(Problem(what, Place("body", item="facts"), remedy))
    return {"query": query}


@router.get("/subscriptions/{id}/why", summary="Explain why a publication matches or not")
async def why(id: deps.Id, publication: LogNumber, by: deps.TheCaller) -> Explanation:
    """Return why a subscription matches any stored publication, or the first failed condition."""
    row, insight = await by.subscription(id), by.api.insight
    stored = await publication_of(by, publication)
    reasons = await insight.ask(insight.reasons, id, row["query"], stored)
    return Explanation(
        subscription=id,
        publication=PublicationRef(**stored.fields),
        matches=reasons.matches,
        before=row["after_publication"] >= publication,
        reasons=reasons,
    )


@router.post(
    "/ontology:what-if",
    summary="Test another ontology (admin)",
    openapi_extra=deps.document_body({**dict.fromkeys(ONTOLOGY_TYPES), "text/turtle": _LINE}),
)
async def what_if(by: deps.TheCaller) -> Difference:
    """Return the subscriptions that would gain or lose recent matches. Nothing is changed.

    The body must contain imported ontologies, because the broker does not fetch them.
    """
    by.check("admin")
    suffix = ONTOLOGY_TYPES[deps.media_type_of(by.request, ONTOLOGY_TYPES)]
    upload, insight = Upload(f"body{suffix}", await by.request.body()), by.api.insight
    return await insight.ask(insight.what_if, [upload], root=by.root)


@router.get("/subscription-health", summary="Find faults of subscriptions")
async def health(insight: TheInsight, by: deps.TheCaller) -> HealthReport:
    """Return subscriptions that never match, are duplicates, or are not delivered.

    Owners and the local user get their own, and an admin all.
    """
    is_admin = by.principal.is_admin
    whose = true() if is_admin else subscriptions.c.owner == by.owner
    return await insight.ask(insight.health, whose, includes_broker=is_admin or by.is_local)

"""The pages of the ontology: the tree, completion, and the effects of another ontology."""

from __future__ import annotations

import re

from starlette.responses import Response

from graphmatch.broker.api.problems import status_of
from graphmatch.broker.app.errors import InvalidRequestError
from graphmatch.broker.page.session import TheForm
from graphmatch.broker.page.site import Text, TheVisit, page_router
from semantic.errors import GraphMatchError, Place, Problem

router = page_router()


@router.get("/ontology")
async def ontology(visit: TheVisit, q: Text = "", below: Text = "") -> Response:
    """Show the ontology as a tree, the terms directly below a term, or those of a search."""
    insight, engine, words = visit.api.insight, visit.api.broker.engine, q.strip()
    terms = await (visit.ask(insight.children, below) if below else visit.ask(insight.roots))
    found = await visit.ask(insight.search, words) if words else None
    unused = await visit.ask(engine.ontology.unused_axioms, engine.entailment)
    return visit.show("ontology.html", terms=terms, found=found, unused=unused, q=q)


@router.get("/ontology/suggest")
async def suggest(visit: TheVisit, topics: Text = "") -> Response:
    """Show topics that complete the last one of a field."""
    last = re.split(r",|\sor\s", topics)[-1].strip()
    found = await visit.ask(visit.api.insight.search, last, 8) if last else []
    return visit.show("part-suggest.html", terms=found, last=last)


@router.get("/what-if")
async def what_if_form(visit: TheVisit) -> Response:
    """Show the form for another ontology."""
    visit.check("admin")
    return visit.show("what-if.html", difference=None)


@router.post("/what-if")
async def what_if(visit: TheVisit, form: TheForm) -> Response:
    """Show the subscriptions that gain or lose matches with another ontology."""
    visit.check("admin")  # Comparing copies the engine.
    files = list(form.files.values())
    try:
        if not files:
            problem = Problem("no file was chosen", Place("file"), "Choose an ontology.")
            raise InvalidRequestError(problem)
        found = await visit.ask(visit.api.insight.what_if, files, visit.owner)
    except GraphMatchError as error:
        status = status_of(error)
        return visit.show("what-if.html", status, difference=None, problem=error.problem)
    return visit.show("what-if.html", difference=found)

"""Views of the page: a marked query, the triples of a publication, and terms of the ontology."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from pyoxigraph import NamedNode

from graphmatch.broker.insight.query_by_example import label_of
from graphmatch.broker.models.stored_publication import StoredPublication
from graphmatch.engine import Engine
from semantic.errors import OntologyError, Place, Problem
from semantic.ontology.ontology import Ontology

MAX_ROOTS, MAX_CHILDREN, MAX_TERMS = 200, 600, 60
"""Maximum numbers of roots, of children of a term, and of terms that a search finds."""
MAX_TRIPLES = 150
"""Maximum number of triples in a graph."""
_LABEL_CHARACTERS, _MARGIN = 2000, 60
"""Maximum lengths of labels in a graph, and of the text around a mark."""


# -- a marked query -------------------------------------------------------------------------


class Mark(NamedTuple):
    """A line of a query with a problem: the text before, at and after its place."""

    line: int
    column: int
    before: str
    at: str
    after: str


def mark_of(query: str, problem: Problem) -> Mark | None:
    """Return the place of a problem in a query; ``None`` if it is unknown."""
    line, column = problem.where.line, problem.where.column or 1
    lines = query.split("\n")
    if line is None or not 0 < line <= len(lines):
        return None
    before, rest = lines[line - 1][: column - 1], lines[line - 1][column - 1 :]
    at = rest[:1] + rest[1:].partition(" ")[0]
    return Mark(line, column, before[-_MARGIN:], at or "⏎", rest[len(at) :][:_MARGIN])


# -- the graph of a publication --------------------------------------------------------------


class TripleRow(NamedTuple):
    """Labels of a triple, and whether the ontology added it."""

    subject_label: str
    property: str
    object_label: str
    is_added: bool


class Graph(NamedTuple):
    """The triples of a publication, and the number of those that are not shown."""

    rows: Sequence[TripleRow]
    more: int


def publication_graph(engine: Engine, publication: StoredPublication) -> Graph:
    """Return the triples of a publication, and after them those that the ontology adds."""
    item = publication.read()
    stated = dict.fromkeys(item.triples)
    triples = stated | dict.fromkeys(engine.enrich(item).visible_to_all)
    rows: list[TripleRow] = []
    for triple in islice(triples, MAX_TRIPLES):
        labels = (label_of(engine.ontology, term)[:_LABEL_CHARACTERS] for term in triple)
        subject, property_, object_ = labels
        rows.append(TripleRow(subject, property_, object_, triple not in stated))
    return Graph(rows, len(triples) - len(rows))


# -- the ontology ---------------------------------------------------------------------------


class TermView(NamedTuple):
    """A term, its label, and the number of terms directly below it."""

    iri: str
    label: str
    below: int


def view(ontology: Ontology, term: NamedNode) -> TermView:
    """Return a term for a list."""
    return TermView(term.value, label_of(ontology, term), len(ontology.children(term)))


def roots(ontology: Ontology) -> list[TermView]:
    """Return the terms without a broader term; those with narrower terms come first."""
    trees = (ontology.concepts, ontology.classes)
    terms = (term for tree in trees for term in tree if not tree.parents(term))
    found = [view(ontology, t) for t in dict.fromkeys(terms) if isinstance(t, NamedNode)]
    return sorted(found, key=lambda term: (term.below == 0, term.label.casefold()))[:MAX_ROOTS]


def children(ontology: Ontology, iri: str) -> list[TermView]:
    """Return the terms directly below a term."""
    try:
        terms = ontology.children(NamedNode(iri))
    except ValueError as error:
        problem = Problem("invalid IRI", Place(iri[:200]), "Choose a term of the ontology.")
        raise OntologyError(problem) from error
    found = [view(ontology, term) for term in terms if isinstance(term, NamedNode)]
    return sorted(found, key=lambda term: term.label.casefold())[:MAX_CHILDREN]


def labels(ontology: Ontology) -> list[tuple[str, NamedNode]]:
    """Return the labels in lower case, each with its term."""
    return [(label.text.casefold(), label.concept) for label in ontology.labels()]


def search(
    ontology: Ontology, labels: Iterable[tuple[str, NamedNode]], text: str, limit: int
) -> list[TermView]:
    """Return the terms with a label that contains a text.

    Labels that begin with the text come first, and then shorter ones.
    """
    wanted = text.casefold().strip()
    found = [pair for pair in labels if wanted and wanted in pair[0]]
    found.sort(key=lambda pair: (not pair[0].startswith(wanted), len(pair[0]), pair[0]))
    terms = dict.fromkeys(term for _, term in found)
    return [view(ontology, term) for term in islice(terms, limit)]

"""Views of the page: a marked query, the graph of a publication, and terms of the ontology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import Any

from pyoxigraph import Literal, NamedNode

from graphmatch.broker.insight import query_by_example as example
from graphmatch.broker.insight.query_by_example import Fact, FactCounts, Sort, label_of
from graphmatch.broker.models.stored_publication import StoredPublication
from graphmatch.engine import Engine
from semantic.errors import OntologyError, Place, Problem
from semantic.ontology.ontology import Ontology
from semantic.terms import Term
from semantic.vocabulary import DCTERMS, RESERVED, TYPE

MAX_ROOTS, MAX_CHILDREN, MAX_TERMS = 200, 600, 60
"""Maximum numbers of roots, of children of a term, and of other terms in a list."""
MAX_TRIPLES = 150
"""Maximum number of triples in a graph."""
_LABEL_CHARACTERS, _NODE_CHARACTERS, _MARGIN = 2000, 100, 60
"""Maximum lengths of labels in the table and in the drawing, and of the text around a mark."""


# -- a marked query -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mark:
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


@dataclass(frozen=True, slots=True)
class TripleRow:
    """Labels of a triple, and whether the ontology added it."""

    subject_label: str
    property: str
    object_label: str
    is_added: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The triples of a publication.

    Parameters
    ----------
    rows
        The table.
    more
        Number of triples that are not shown.
    elements
        The elements of the drawing for Cytoscape. A broader term hangs on a narrower one, not on
        the item.
    """

    rows: Sequence[TripleRow]
    more: int
    elements: Mapping[str, Any]


def publication_graph(engine: Engine, publication: StoredPublication) -> Graph:
    """Return the triples of a publication, and those that the ontology adds."""
    ontology, item = engine.ontology, publication.read()
    triples = dict.fromkeys(item.triples)
    added = [triple for triple in engine.enrich(item).visible_to_all if triple not in triples]
    stated = list(islice(triples, MAX_TRIPLES))
    drawn = added[: MAX_TRIPLES - len(stated)]
    objects = {triple[2] for triple in drawn}
    links = {(term, up) for term in objects for up in ontology.parents(term) if up in objects}
    broader = {up for _, up in links}
    rows: list[TripleRow] = []
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[dict[str, Any]] = []

    def node(id: str, label: str, kind: str) -> None:
        nodes.setdefault(id, {"data": {"id": id, "label": label[:_NODE_CHARACTERS], "kind": kind}})

    def edge(source: str, target: str, label: str, *, is_added: bool) -> None:
        id = f"e{len(edges)}"
        data = {"id": id, "source": source, "target": target, "label": label}
        edges.append({"data": {**data, "added": 1} if is_added else data})

    for triple in (*stated, *drawn):
        subject, _, object_ = triple
        own, name, value = (label_of(ontology, term)[:_LABEL_CHARACTERS] for term in triple)
        is_added, is_text = triple not in triples, isinstance(object_, Literal)
        rows.append(TripleRow(own, name, value, is_added))
        if str(object_).strip('<>"') == str(subject).strip("<>"):  # The item's own address.
            continue
        title = " ".join((publication.title or own).split())
        node(str(subject), title if not nodes else own, "thing" if nodes else "item")
        # A literal is a node of its own for each triple.
        digest = sha256(" ".join(map(str, triple)).encode()).hexdigest()
        target = digest if is_text else str(object_)
        node(target, value, "text" if is_text else "term" if is_added else "thing")
        if not (is_added and object_ in broader):
            edge(str(subject), target, name, is_added=is_added)
    for narrower, up in sorted((str(term), str(up)) for term, up in links):
        edge(narrower, up, "below", is_added=True)
    elements = {"nodes": list(nodes.values()), "edges": edges}
    return Graph(rows, len(triples) + len(added) - len(rows), elements)


# -- the ontology ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TermView:
    """A term, its label, and the number of terms directly below it."""

    iri: str
    label: str
    below: int


@dataclass(frozen=True, slots=True)
class TermPage:
    """A term with the terms around it, and the counts of publications about it.

    Parameters
    ----------
    names
        Other labels, with their languages.
    query
        A query for publications about the term.
    """

    term: TermView
    names: Sequence[tuple[str, str]]
    parents: Sequence[TermView]
    children: Sequence[TermView]
    query: str
    count: int
    scanned: int
    complete: bool


class OntologyBrowser:
    """Shows the terms of an ontology; it learns all labels once."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology

    @cached_property
    def roots(self) -> list[TermView]:
        """The terms without a broader term; those with narrower terms come first."""
        trees = (self.ontology.concepts, self.ontology.classes)
        terms = (term for tree in trees for term in tree if not tree.parents(term))
        roots = [self.view(t) for t in dict.fromkeys(terms) if isinstance(t, NamedNode)]
        return sorted(roots, key=lambda v: (v.below == 0, v.label.casefold()))[:MAX_ROOTS]

    @cached_property
    def _labels(self) -> list[tuple[str, NamedNode]]:
        return [(label.text.casefold(), label.concept) for label in self.ontology.labels()]

    def view(self, term: Term) -> TermView:
        """Return a term for a list."""
        below = sum(1 for _ in self.ontology.children(term))
        return TermView(str(getattr(term, "value", term)), label_of(self.ontology, term), below)

    def children(self, iri: str) -> list[TermView]:
        """Return the terms directly below a term."""
        terms = self.ontology.children(_term(iri))
        views = [self.view(term) for term in terms if isinstance(term, NamedNode)]
        return sorted(views, key=lambda view: view.label.casefold())[:MAX_CHILDREN]

    def search(self, text: str, limit: int = MAX_TERMS) -> list[TermView]:
        """Return the terms with a label that contains a text; labels that begin with it first."""
        wanted = text.casefold().strip()
        ranks: dict[NamedNode, int] = {}
        for label, term in self._labels if wanted else ():
            if wanted in label:
                rank = 0 if label == wanted else 1 if label.startswith(wanted) else 2
                ranks[term] = min(rank, ranks.get(term, rank))
        views = [(rank, self.view(term)) for term, rank in ranks.items()]
        views.sort(key=lambda item: (item[0], item[1].label.casefold()))
        return [view for _, view in views[:limit]]

    def fact(self, iri: str) -> Fact | None:
        """Return the fact that an item is about a term, or of a class; ``None`` if unknown."""
        term = _term(iri)
        if term in self.ontology.classes:
            return Fact((TYPE,), term, Sort.TYPE)
        if term in self.ontology.concepts or self.ontology.parents(term):
            return Fact((DCTERMS["subject"],), term, Sort.CONCEPT)
        return None

    def page(self, fact: Fact, counts: FactCounts) -> TermPage:
        """Return the page of the term that a fact is about."""
        term = self.view(fact.value)
        names = self.ontology.shown_names.labels(fact.value, example.LANGUAGE)[1:MAX_TERMS]
        parents = (self.view(parent) for parent in self.ontology.parents(fact.value))
        return TermPage(
            term,
            [(label.value, label.language or "") for label in names],
            [parent for parent in parents if not parent.iri.startswith(RESERVED)],
            self.children(term.iri)[:MAX_TERMS],
            example.query_of([fact], self.ontology.prefixes),
            counts.counts[0],
            counts.scanned,
            counts.complete,
        )


def _term(iri: str) -> NamedNode:
    try:
        return NamedNode(iri)
    except ValueError as error:
        problem = Problem("invalid IRI", Place(iri[:200]), "Choose a term of the ontology.")
        raise OntologyError(problem) from error

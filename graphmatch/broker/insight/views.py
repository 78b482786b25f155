"""What page and API show of previews, facts, reasons, graphs and terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from pyoxigraph import BlankNode, Literal

from graphmatch.broker.insight.backtest import BacktestResult, Day
from graphmatch.broker.insight.query_by_example import Fact
from graphmatch.broker.models.findings import Finding
from graphmatch.explain.evidence import Evidence
from graphmatch.explain.near_miss import NearMiss
from semantic.errors import Problem
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Term, Triple, compact
from semantic.vocabulary import RSS

LANGUAGE = "en"
"""The language of labels, as that of the page."""
_DESCRIPTION = 20_000
_DRAWN = 100
_TAG = re.compile(r"<[^<>]{0,2000}>")


@dataclass(frozen=True, slots=True)
class Preview:
    """What a subscription would have matched.

    Parameters
    ----------
    query
        Its SPARQL.
    trial
        ``None`` where nothing is asked for yet.
    seqs
        The numbers of the publications that it names.
    bars
        Days, the oldest first.
    marked
        The line of a problem, and below it where it stands.
    findings
        What the linter says of it: that it can never match, for instance.
    """

    query: str
    trial: BacktestResult | None
    seqs: Mapping[str, int] = field(default_factory=dict)
    bars: Sequence[Day] = ()
    marked: Marked | None = None
    findings: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True)
class Marked:
    """A line of a query, and where in it a problem is: what is before, at and after it."""

    line: int
    column: int
    before: str
    at: str
    after: str


@dataclass(frozen=True, slots=True)
class Step:
    """A fact that can be chosen, and how many items have it."""

    fact: Fact
    key: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class FactHierarchy:
    """A fact of an item, the steps up from it, and whether all items have it."""

    fact: Fact
    steps: tuple[Step, ...]
    is_common: bool = False


@dataclass(frozen=True, slots=True)
class FactHierarchies:
    """The facts of an item; of how many items they were counted, and whether these are all."""

    all: Sequence[FactHierarchy]
    scanned: int = 0
    complete: bool = False

    @property
    def counted(self) -> str:
        """Of what they were counted."""
        return f"{'all' if self.complete else 'the newest'} {self.scanned:,} items"


@dataclass(frozen=True, slots=True)
class Proof:
    """A condition, what meets it, and why that holds."""

    pattern: str
    by: str
    because: tuple[str, ...]
    but: str = ""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a query matches a publication, or what failed first."""

    matches: bool
    failure: str = ""
    evidence: tuple[Proof, ...] = ()
    held: tuple[Proof, ...] = ()
    nearest: tuple[Proof, ...] = ()
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TripleView:
    """A triple: ids and labels of its ends.

    Parameters
    ----------
    is_added
        Whether the ontology added it.
    is_above
        Whether that follows from another that it added, of something below.
    """

    subject: str
    subject_label: str
    property: str
    object: str
    object_label: str
    is_literal: bool
    is_added: bool
    is_above: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """What is shown of a publication's triples.

    Parameters
    ----------
    rows
        The triples.
    more
        How many are not shown.
    summary, title
        Those of a feed item.
    ups
        Which of the terms are directly above which.
    """

    rows: tuple[TripleView, ...]
    more: int
    summary: str
    title: str = ""
    ups: tuple[tuple[str, str], ...] = ()

    def elements(self) -> dict[str, Any]:
        """Return what Cytoscape draws: what is above hangs on what is below, not on the item."""
        nodes: dict[str, dict[str, Any]] = {}
        edges: list[dict[str, Any]] = []

        def node(id: str, label: str, kind: str) -> None:
            nodes.setdefault(id, {"id": id, "label": label[:_DRAWN], "kind": kind})

        def edge(source: str, target: str, label: str, *, added: bool) -> None:
            ends = {"id": f"e{len(edges)}", "source": source, "target": target, "label": label}
            edges.append({"data": {**ends, "added": 1} if added else ends})

        for row in self.rows:
            if f"<{row.object_label}>" == row.subject:
                continue  # its own address
            if not nodes:
                node(row.subject, self.title or row.subject_label, "item")
            node(row.subject, row.subject_label, "thing")
            kind = "text" if row.is_literal else "term" if row.is_added else "thing"
            node(row.object, row.object_label, kind)
            if not row.is_above:
                edge(row.subject, row.object, row.property, added=row.is_added)
        for below, up in self.ups:
            edge(below, up, "below", added=True)
        return {"nodes": [{"data": data} for data in nodes.values()], "edges": edges}


@dataclass(frozen=True, slots=True)
class TermView:
    """A term, what it is called, and how many are directly below."""

    iri: str
    label: str
    below: int


@dataclass(frozen=True, slots=True)
class TermPage:
    """What is shown of a term."""

    term: TermView
    names: tuple[tuple[str, str], ...]
    parents: tuple[TermView, ...]
    children: tuple[TermView, ...]
    query: str
    count: int
    scanned: int
    complete: bool


def label_of(ontology: Ontology, term: Term) -> str:
    """Return what a term is called, without its IRI where it has a label."""
    if isinstance(term, Literal):
        return term.value
    if isinstance(term, BlankNode):
        return "(no name)"
    labels = ontology.shown_names.labels(term, LANGUAGE)
    return labels[0].value if labels else compact(term, ontology.prefixes).strip("<>")


def mark_of(query: str, problem: Problem) -> Marked | None:
    """Return where in a query a problem is; ``None`` where it has no place."""
    line, column = problem.where.line, problem.where.column
    lines = query.split("\n")
    if line is None or not 0 < line <= len(lines):
        return None
    text, at = lines[line - 1], max((column or 1) - 1, 0)
    end = at + 1
    while end < len(text) and not text[end].isspace():
        end += 1
    begin = max(at - 60, 0)
    return Marked(line, at + 1, text[begin:at], text[at:end] or "⏎", text[end : end + 60])


def _triple(triple: Triple, prefixes: Mapping[str, str], item: str) -> str:
    """Write a triple; what it is said of is the item."""
    own = f"<{item}>"
    return " ".join("the item" if str(t) == own else compact(t, prefixes) for t in triple)


def proof_of(each: Evidence, prefixes: Mapping[str, str], item: str) -> Proof:
    """Return what met a condition, and why it holds."""
    by = "" if each.triple is None else _triple(each.triple, prefixes, item)
    if each.value is not None and not by:
        by = compact(each.value, prefixes)
    return Proof(each.write(prefixes), by, each.reasons)


def near_of(each: NearMiss, prefixes: Mapping[str, str], item: str) -> Proof:
    """Return what came near, and why it will not do."""
    return Proof("", _triple(each.triple, prefixes, item), each.reasons, each.why)


def triple_view(
    ontology: Ontology, triple: Triple, is_added: bool, is_above: bool = False
) -> TripleView:
    """Return a triple with labels."""
    subject, property_, object_ = triple
    is_literal = isinstance(object_, Literal)
    # A text is a node of its own, or all that say "en" would hang together.
    said = f"{subject} {property_} {object_}"
    object_id = sha256(said.encode()).hexdigest()[:16] if is_literal else str(object_)
    return TripleView(
        str(subject),
        label_of(ontology, subject)[:500],
        label_of(ontology, property_),
        object_id,
        label_of(ontology, object_)[:2000],
        is_literal,
        is_added,
        is_above,
    )


def summary_of(publication: Publication) -> str:
    """Return the description of a feed item, as plain text."""
    for _, property_, object_ in publication.triples:
        if property_ == RSS["description"] and isinstance(object_, Literal):
            return " ".join(_TAG.sub(" ", object_.value[:_DESCRIPTION]).split())[:600]
    return ""

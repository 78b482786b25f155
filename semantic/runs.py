"""Runs: triples of one graph that stand together in a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad

from semantic.numbering import Numbering
from semantic.terms import Triple

GraphName: TypeAlias = NamedNode | BlankNode | DefaultGraph

_PIECE = 10_000
"""A run of quads has at most so many triples; the next one has the rest."""


@dataclass(frozen=True, slots=True)
class Run:
    """Triples of one graph.

    Parameters
    ----------
    graph
        Its name.
    said
        The triples in the order of the document, or their numbering; that only where they are
        known to be distinct.
    """

    graph: GraphName
    said: tuple[Triple, ...] | Numbering

    @property
    def size(self) -> int:
        """How many triples there are."""
        return self.said.size if isinstance(self.said, Numbering) else len(self.said)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The triples."""
        return self.said.triples if isinstance(self.said, Numbering) else self.said

    @property
    def numbering(self) -> Numbering | None:
        """Their numbering, where they are known to be distinct."""
        return self.said if isinstance(self.said, Numbering) else None


def runs_of(quads: Iterable[Quad]) -> Iterator[Run]:
    """Yield the runs of quads.

    Examples
    --------
    >>> a, b = NamedNode("urn:a"), NamedNode("urn:b")
    >>> [len(run.triples) for run in runs_of([Quad(a, a, a), Quad(a, a, b), Quad(a, a, a, b)])]
    [2, 1]
    """
    for graph, run in groupby(quads, key=lambda quad: quad.graph_name):
        triples = ((quad.subject, quad.predicate, quad.object) for quad in run)
        while piece := tuple(islice(triples, _PIECE)):
            yield Run(graph, piece)

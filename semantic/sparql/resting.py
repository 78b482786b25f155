"""The condition that a solution rests on the publication, as a SPARQL filter.

A solution rests on the publication when a triple pattern, with the solution's
bindings put in, is a triple of the publication's graph (docs/reference/semantics.md,
section 4). Patterns under OPTIONAL and in one arm of a UNION count when the
solution binds them. Blank nodes, which a filter cannot name, are existential
together with the patterns that share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyoxigraph import BlankNode, Variable
from rdflib.paths import Path

from semantic.sparql import paths
from semantic.sparql.paths import Fresh
from semantic.sparql.slots import to_node
from semantic.terms import Node
from semantic.vocabulary import HIDDEN


@dataclass(frozen=True, slots=True)
class Edge:
    """A triple pattern or a property path of a query."""

    subject: Node
    path: Any
    object: Node

    def nodes(self) -> tuple[Node, ...]:
        """Return the places that are not paths."""
        if isinstance(self.path, Path):
            return self.subject, self.object
        return self.subject, to_node(self.path), self.object


def condition(groups: Sequence[Sequence[Edge]], fresh: Fresh) -> str:
    """Write the condition for the edges of a query, one group a basic graph pattern."""
    tests = [test for group in groups for test in _group_tests(group, fresh)]
    return " || ".join(dict.fromkeys(tests)) or "false"


def whole_condition(groups: Sequence[Sequence[Edge]], fresh: Fresh) -> str:
    """Write the condition that some edge is met by the publication, whatever the solution."""
    renamed: dict[Node, Variable] = {}

    def rename(node: Node) -> Node:
        if isinstance(node, Variable | BlankNode):
            return renamed.setdefault(node, fresh())
        return node

    tests = []
    for group in groups:
        for edge in group:
            path = edge.path
            if not isinstance(path, Path):
                path = rename(to_node(path))
            walks = _walks(rename(edge.subject), path, rename(edge.object), fresh)
            tests += [f"EXISTS {{ {walk} }}" for walk in walks]
            renamed.clear()
    return " || ".join(tests) or "false"


def _walks(subject: Node, path: Any, object_: Node, fresh: Fresh) -> list[str]:
    if isinstance(path, Path):
        return paths.touching(subject, path, object_, fresh)
    seen = f' FILTER(!STRSTARTS(STR({path}), "{HIDDEN.iri}"))' if isinstance(path, Variable) else ""
    return [f"GRAPH {fresh()} {{ {subject} {path} {object_}{seen} }}"]


def _group_tests(group: Sequence[Edge], fresh: Fresh) -> list[str]:
    tests = []
    for cluster in _clusters(group):
        named = _name_blanks(cluster, fresh)
        bound = dict.fromkeys(n for e in cluster for n in e.nodes() if isinstance(n, Variable))
        guard = "".join(f"BOUND({variable}) && " for variable in bound)
        for index, edge in enumerate(named):
            others = " ".join(_plain(other) for i, other in enumerate(named) if i != index)
            walks = paths.touching(edge.subject, edge.path, edge.object, fresh)
            tests += [f"({guard}EXISTS {{ {others} {walk} }})" for walk in walks]
    return tests


def _clusters(group: Sequence[Edge]) -> list[list[Edge]]:
    """Put the edges that share a blank node together."""
    clusters: list[tuple[set[Node], list[Edge]]] = []
    for edge in group:
        blanks: set[Node] = {node for node in edge.nodes() if isinstance(node, BlankNode)}
        edges = [edge]
        apart = []
        for others, members in clusters:
            if blanks & others:
                blanks |= others
                edges = members + edges
            else:
                apart.append((others, members))
        clusters = [*apart, (blanks, edges)]
    return [edges for _, edges in clusters]


def _name_blanks(cluster: Sequence[Edge], fresh: Fresh) -> list[Edge]:
    names: dict[Node, Variable] = {}

    def name(node: Node) -> Node:
        return names.setdefault(node, fresh()) if isinstance(node, BlankNode) else node

    return [Edge(name(edge.subject), edge.path, name(edge.object)) for edge in cluster]


def _plain(edge: Edge) -> str:
    return f"{edge.subject} {paths.write(edge.path)} {edge.object} ."

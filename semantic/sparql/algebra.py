"""rdflib's algebra of a query to branches of necessary patterns and what they leave open.

Every solution of a pattern satisfies all triple patterns and filters of one of its
branches: a basic graph pattern is one branch; a join multiplies branches; a union
adds them; the optional side of a left join, the right side of MINUS, and whatever
else only takes away or adds to solutions is left open, by name.

Source: SPARQL 1.1 section 18.2 (translation to the algebra).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import rdflib
from pyoxigraph import BlankNode, Variable
from rdflib.paths import Path
from rdflib.plugins.sparql.parserutils import CompValue

from semantic.limits import Limits
from semantic.pattern import Branch, TriplePattern
from semantic.sparql import paths
from semantic.sparql.filters import necessary_filters
from semantic.sparql.resting import Edge
from semantic.sparql.slots import slot_number, to_node
from semantic.terms import Node


@dataclass(slots=True)
class Analysis:
    """What was found in one query.

    Parameters
    ----------
    limits
        `Limits.subscription_branches` bounds the branches.
    prefix
        Begins the names of fresh variables; the query must not use it.
    remainder
        Why the branches are not the whole query.
    groups
        The triple patterns a solution can rest on, one list a basic graph pattern.
    aggregates, subquery
        Whether the query groups its solutions, whether it has a query inside.
    """

    limits: Limits
    prefix: str = "gm_"
    remainder: dict[str, None] = field(default_factory=dict)
    groups: list[list[Edge]] = field(default_factory=list)
    aggregates: bool = False
    subquery: bool = False
    _numbers: Iterator[int] = field(default_factory=count)

    def fresh(self) -> Variable:
        """Return a variable that the query does not use."""
        return Variable(f"{self.prefix}{next(self._numbers)}")

    def leave_open(self, reason: str) -> None:
        """Note that the branches are not the whole query."""
        self.remainder[reason] = None

    def supports(self) -> tuple[TriplePattern, ...] | None:
        """Return every triple pattern that a solution can rest on, optional ones too.

        ``None`` where a path has steps that are no patterns of the query.
        """
        patterns: dict[TriplePattern, None] = {}
        for edge in (edge for group in self.groups for edge in group):
            steps, open_ = self._expand(edge)
            if open_:
                return None
            patterns.update((pattern, None) for step in steps for pattern in step)
        return without_blanks(Branch(tuple(patterns)), self.fresh).patterns

    def branches(self, p: CompValue) -> list[Branch]:
        """Return the branches of a pattern of rdflib's algebra."""
        match p.name:
            case "BGP":
                return self._basic(p.triples)
            case "Join":
                return self._joined(self.branches(p.p1), self.branches(p.p2))
            case "LeftJoin":
                return self._left_join(p)
            case "Union":
                self.leave_open("UNION")
                return self._bounded([*self.branches(p.p1), *self.branches(p.p2)])
            case "Minus":
                self.leave_open("MINUS")
                return self.branches(p.p1)
            case "Filter":
                return self._filtered(p)
            case "Extend":
                self.leave_open("BIND or expression")
                return self.branches(p.p)
            case "Graph":
                self.leave_open("GRAPH")
                return self.branches(p.p)
            case "ToMultiSet":
                return self._multiset(p.p)
            case "Group" | "AggregateJoin":
                return self._aggregated(p)
            case "OrderBy":
                self.leave_open("ORDER BY")
                return self.branches(p.p)
            case "Slice":
                self.leave_open("LIMIT or OFFSET")
                return self.branches(p.p)
            case "Project" | "Distinct" | "Reduced":
                return self.branches(p.p)
        raise NotImplementedError(p.name)  # rdflib has no other operators in queries

    def _basic(self, triples: Iterable[Any]) -> list[Branch]:
        branches = [Branch(())]
        edges = []
        for s, p, o in triples:
            edge = Edge(to_node(s), p, to_node(o))
            edges.append(edge)
            steps, open_ = self._expand(edge)
            for reason in open_:
                self.leave_open(reason)
            if len(steps) > 1:
                self.leave_open("path |")
            branches = self._joined(branches, [Branch(step) for step in steps])
        if edges:
            self.groups.append(edges)
        return branches

    def _expand(self, edge: Edge) -> tuple[paths.Steps, tuple[str, ...]]:
        limit = self.limits.subscription_branches
        return paths.expand(edge.subject, edge.path, edge.object, self.fresh, limit)

    def _left_join(self, p: CompValue) -> list[Branch]:
        self.leave_open("OPTIONAL")
        required = self.branches(p.p1)
        before = dict(self.remainder)
        self.branches(p.p2)  # for the patterns that a solution can rest on
        self.remainder = before
        return required

    def _multiset(self, p: CompValue) -> list[Branch]:
        if p.name == "values":
            self.leave_open("VALUES")
            return [Branch(())]
        self.leave_open("subquery")
        self.subquery = True
        outer = self.aggregates
        self.aggregates = False
        inner = self.branches(p)
        grouped_to_one = self.aggregates and not _has_keys(p)
        self.aggregates = outer
        if grouped_to_one:
            return [Branch(())]  # an aggregate without GROUP BY has a row for no solutions
        return [_localised(branch, _projected(p), self.fresh) for branch in inner]

    def _aggregated(self, p: CompValue) -> list[Branch]:
        self.leave_open("aggregate")
        self.aggregates = True
        return self.branches(p.p)

    def _filtered(self, p: CompValue) -> list[Branch]:
        branches = self.branches(p.p)
        certain = frozenset.intersection(*(branch.variables for branch in branches))
        filters, left_open = necessary_filters(p.expr, certain)
        for reason in left_open:
            self.leave_open(reason)
        return [Branch(b.patterns, (*b.filters, *filters)) for b in branches]

    def _joined(self, left: list[Branch], right: list[Branch]) -> list[Branch]:
        return self._bounded(
            [
                Branch((*a.patterns, *b.patterns), (*a.filters, *b.filters))
                for a in left
                for b in right
            ]
        )

    def _bounded(self, branches: list[Branch]) -> list[Branch]:
        """Keep what all branches share when there are too many of them."""
        if len(branches) <= self.limits.subscription_branches:
            return branches
        self.leave_open(paths.TOO_MANY)
        patterns = [p for p in branches[0].patterns if all(p in b.patterns for b in branches)]
        filters = [f for f in branches[0].filters if all(f in b.filters for b in branches)]
        return [Branch(tuple(patterns), tuple(filters))]


def may_be_empty(p: CompValue) -> bool:
    """Whether a pattern has a solution in a graph without triples."""
    match p.name:
        case "BGP":
            return all(
                isinstance(path, Path) and paths.may_be_empty(path) for _, path, _ in p.triples
            )
        case "Join":
            return may_be_empty(p.p1) and may_be_empty(p.p2)
        case "Union":
            return may_be_empty(p.p1) or may_be_empty(p.p2)
        case "LeftJoin" | "Minus":
            return may_be_empty(p.p1)
        case "values":
            return True
        case "ToMultiSet" if p.p.name == "values":
            return True
        case "ToMultiSet" if _aggregates(p.p) and not _has_keys(p.p):
            return True
    return may_be_empty(p.p)


def operators(p: Any) -> Iterator[CompValue]:
    """Yield an algebra expression and what it is applied to, outermost first."""
    while isinstance(p, CompValue):
        yield p
        p = p.get("p")


def _aggregates(p: CompValue) -> bool:
    return any(operator.name == "AggregateJoin" for operator in operators(p))


def _has_keys(p: CompValue) -> bool:
    return any(operator.name == "Group" and operator.expr for operator in operators(p))


def _projected(p: CompValue) -> frozenset[Variable]:
    for operator in operators(p):
        if operator.name == "Project":
            return frozenset(Variable(str(v)) for v in operator.PV)
    return frozenset()


def _localised(branch: Branch, projected: frozenset[Variable], fresh: paths.Fresh) -> Branch:
    """Rename the variables that a subquery does not project: they are its own."""
    names = {v: fresh() for v in branch.variables - projected}
    patterns = tuple(
        TriplePattern(*(names.get(n, n) if isinstance(n, Variable) else n for n in pattern))
        for pattern in branch.patterns
    )
    filters = tuple(f for f in branch.filters if f.variable in projected)
    return Branch(patterns, filters)


def without_blanks(branch: Branch, fresh: paths.Fresh) -> Branch:
    """Return the branch with its blank nodes as variables: that is what they are in a query."""
    names: dict[Node, Variable] = {}

    def name(node: Node) -> Node:
        return names.setdefault(node, fresh()) if isinstance(node, BlankNode) else node

    return Branch(tuple(TriplePattern(*map(name, p)) for p in branch.patterns), branch.filters)


def rewritable_literals(p: Any) -> frozenset[int]:
    """Return the slots of literals in patterns, VALUES, and next to ``=``, ``!=`` and ``IN``."""
    found: set[int] = set()

    def note(value: Any) -> None:
        for term in value if isinstance(value, list | tuple) else [value]:
            if isinstance(term, rdflib.Literal) and (number := slot_number(term)) is not None:
                found.add(number)
            elif isinstance(term, list | tuple):
                note(term)

    for part in parts(p):
        if part.name in ("BGP", "TriplesBlock", "TriplesSameSubjectPath"):
            note(part.triples)
        elif part.name == "values":
            note([list(row.values()) for row in part.res])
        elif part.name == "InlineData":
            note(part.value)
        elif part.name == "RelationalExpression" and part.op in ("=", "!=", "IN", "NOT IN"):
            note([part.expr, part.other])
    return frozenset(found)


def parts(value: Any) -> Iterator[CompValue]:
    """Yield an algebra expression and all that is inside it."""
    if isinstance(value, CompValue):
        yield value
        for inner in value.values():
            yield from parts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from parts(inner)


def edges(part: CompValue) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the triples of a part; under EXISTS they stand in rows, several in one."""
    if part.name == "BGP":
        yield from part.triples
    elif part.name in ("TriplesBlock", "TriplesSameSubjectPath"):
        for row in part.triples:
            yield from zip(row[::3], row[1::3], row[2::3], strict=True)

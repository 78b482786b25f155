"""The algebra of a query as a tree: for the linter, which checks variables and expressions.

The core writes the algebra as an S-expression, such as
``(filter (> ?y "5"^^<…#integer>) (bgp (triple ?x <urn:p> ?y)))``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pyoxigraph import NamedNode, Variable

from graphmatch import _native
from graphmatch.subscription import Query
from semantic.terms import Node

LONGEST = 10_000
"""Maximum length of a query whose tree is read, in characters: at most a few seconds for a lint."""
DEEPEST = 200
"""Maximum depth of a tree; functions over it are recursive."""

_TOKEN = re.compile(r'[()]|"(?:[^"\\]|\\.)*"(?:\^\^<[^>]*>|@[\w-]+)?|<[^<>\s]*>|[^\s()]+')


@dataclass(frozen=True, slots=True)
class Op:
    """An operator of the algebra with its operands.

    The names are those of https://jena.apache.org/documentation/notes/sse.html. ``call`` is the
    call of a function that an IRI names, its first operand. A list has an empty name.
    """

    name: str
    args: tuple[Expression, ...] = ()

    @property
    def ops(self) -> list[Op]:
        """The operands that are operators."""
        return [arg for arg in self.args if isinstance(arg, Op)]

    def walk(self) -> Iterator[Op]:
        """Yield this operator and all below it, except the template of a CONSTRUCT."""
        yield self
        for op in self.ops[self.name == "construct" :]:
            yield from op.walk()


Expression: TypeAlias = Op | Node | str


def parse_tree(query: Query) -> Op | None:
    """Return the tree of a query; ``None`` if longer than `LONGEST`, or deeper than `DEEPEST`.

    Examples
    --------
    >>> from graphmatch import SubscriptionParser
    >>> query = SubscriptionParser().query("alice", "ASK { ?x <urn:p> ?y FILTER(?y > 5) }")
    >>> [op.name for op in parse_tree(query).walk()]
    ['ask', 'project', '', 'filter', '>', 'bgp', 'triple']
    """
    if len(query.text) > LONGEST:
        return None
    open_lists: list[list[Expression]] = [[]]
    for part in _TOKEN.findall(query.algebra()):
        if part == "(":
            open_lists.append([])
            if len(open_lists) > DEEPEST:
                return None
        elif part == ")":
            closed = open_lists.pop()
            open_lists[-1].append(_op(closed))
        else:
            open_lists[-1].append(_leaf(part))
    (tree,) = open_lists[0]
    return tree if isinstance(tree, Op) else None


def _op(parts: list[Expression]) -> Op:
    if parts and isinstance(parts[0], str):
        return Op(parts[0], tuple(parts[1:]))
    is_call = bool(parts) and isinstance(parts[0], NamedNode)
    return Op("call" if is_call else "", tuple(parts))


def _leaf(token: str) -> Expression:
    if token[0] == "?" and len(token) > 1:
        return Variable(token[1:])
    is_term = token[0] == '"' or token.startswith("_:") or (token[0] == "<" and token[-1] == ">")
    return _native.term(token) if is_term else token


# -- unbound variables ----------------------------------------------------------------------

Bound: TypeAlias = frozenset[Variable]
Use: TypeAlias = tuple[Variable, Expression | None, Bound]
"""A variable, the expression with its use (``None`` if selected), and the bound variables there."""


def _binds(part: Expression) -> Bound:
    """Return the variables that a part of a pattern may bind."""
    if isinstance(part, Variable):
        return frozenset({part})
    if not isinstance(part, Op):
        return frozenset()
    args = part.args
    match part.name:
        case "filter" | "order" | "distinct" | "reduced" | "slice":
            args = args[-1:]
        case "project" | "minus":
            args = args[:1]
        case "leftjoin":
            args = args[:2]
        case "extend":
            args = (*definitions(args[0]), args[1])
        case "group":
            args = (args[0], *definitions(args[1], 1))
    return frozenset[Variable]().union(*map(_binds, args))


def definitions(pairs: Expression, at: int = 0) -> list[Expression]:
    """Return part `at` of each pair in a list; empty if `pairs` is not an operator.

    In BIND, a pair is a variable and its expression; in GROUP BY, an expression and its variable.
    """
    return [pair.args[at] for pair in pairs.ops] if isinstance(pairs, Op) else []


def unbound(op: Expression, outer: Bound = frozenset()) -> Iterator[Use]:
    """Yield each use, in an operator of the algebra, of a variable that nothing binds there.

    Parameters
    ----------
    outer
        Variables bound by an outer solution, for EXISTS.
    """
    if not isinstance(op, Op):
        return
    args, parts, expressions, bound = op.args, op.args, list[Expression](), outer
    match op.name:
        case "filter" | "order":
            parts, expressions, bound = args[1:], [args[0]], bound | _binds(args[1])
        case "leftjoin":
            parts, expressions = args[:2], [*args[2:]]
            bound |= _binds(args[0]) | _binds(args[1])
        case "extend":
            parts, expressions = args[1:], definitions(args[0], 1)
            bound |= _binds(args[1])
        case "group":
            parts, expressions = args[2:], [args[0], *definitions(args[1])]
            bound |= _binds(args[2])
        case "construct":
            parts, expressions, bound = args[1:], [args[0]], bound | _binds(args[1])
        case "project":
            bound |= _binds(args[1])
            yield from ((v, None, bound) for v in sorted(_binds(args[0]) - bound, key=str))
    for expression in expressions:
        yield from _in_expression(expression, bound)
    for part in parts:
        yield from unbound(part, outer)


def _in_expression(expression: Expression, bound: Bound) -> Iterator[Use]:
    """Yield each use of a variable that is not in `bound`, also in EXISTS."""
    if isinstance(expression, Variable) and expression not in bound:
        yield expression, expression, bound
    elif isinstance(expression, Op) and expression.name == "exists":
        yield from unbound(expression.args[0], bound)
    elif isinstance(expression, Op):
        for arg in expression.args:
            for variable, where, scope in _in_expression(arg, bound):
                is_shown = where is not variable or not expression.name
                yield variable, where if is_shown else expression, scope

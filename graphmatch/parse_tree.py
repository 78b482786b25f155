"""The parse tree of a query: for the linter, which checks variables and expressions.

rdflib's parser is used, because the core returns patterns only. It takes 10 ms for each query that
differs in more than its constants, and can't parse SPARQL 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

from pyoxigraph import Literal, NamedNode, Variable

from graphmatch.subscription import Query
from semantic.terms import Node, Term

LONGEST = 10_000
"""Maximum length of a query for parsing, in characters: at most a few seconds."""

AGGREGATES = frozenset({"COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUPCONCAT"})
"""The names of aggregates."""

_BLANK = "_blank_"
_SLOT = "slot:"
_STRUCTURE = frozenset({"group", "select", "optional", "minus", "union", "graph"})


@dataclass(frozen=True, slots=True)
class Op:
    """An operator with its operands: a function, a part of a pattern, a clause.

    A query is a ``select`` of a ``group``. The parts of a group are ``triple``, ``filter``,
    ``bind``, ``values``, ``optional``, ``minus``, ``graph``, ``union``, ``group`` and ``select``.
    The clauses are ``project``, ``template``, ``by``, ``having``, ``order`` and ``values``.
    Functions have SPARQL's names, and ``call`` is any other function.
    """

    name: str
    args: tuple[Expression, ...] = ()

    def clause(self, name: str) -> tuple[Expression, ...]:
        """Return the operands of the operand with a name; empty if there is none."""
        return next((arg.args for arg in self.ops if arg.name == name), ())

    @property
    def ops(self) -> list[Op]:
        """The operands that are operators."""
        return [arg for arg in self.args if isinstance(arg, Op)]

    def walk(self) -> Iterator[Op]:
        """Yield this operator and all below it, except the template of a CONSTRUCT."""
        yield self
        for op in self.ops:
            if op.name != "template":
                yield from op.walk()


Expression: TypeAlias = Op | Node | str


class TreeParser:
    """Parser of queries; those that differ only in constants are parsed once.

    Examples
    --------
    >>> from graphmatch import SubscriptionParser
    >>> query = SubscriptionParser().query("alice", "ASK { ?x <urn:p> ?y FILTER(?y > 5) }")
    >>> tree = TreeParser().parse(query)
    >>> [op.name for op in tree.walk()]
    ['select', 'form', 'group', 'triple', 'filter', '>']
    """

    def __init__(self) -> None:
        self._parsed = lru_cache(maxsize=1024)(_parsed)

    def parse(self, query: Query) -> Op | None:
        """Return the parse tree; ``None`` if rdflib can't parse the query, or it is too long."""
        constants = [term for term, _ in query.constants()]
        slots = [
            NamedNode(f"{_SLOT}{n}")
            if isinstance(term, NamedNode)
            else Literal(str(n), datatype=NamedNode(_SLOT))
            for n, term in enumerate(constants)
        ]
        shape = self._parsed(query.with_constants(slots).text)
        return None if shape is None else _filled(shape, constants)


def _filled(op: Op, constants: Sequence[Term]) -> Op:
    """Replace slots by constants."""
    return Op(op.name, tuple(_constant(arg, constants) for arg in op.args))


def _constant(arg: Expression, constants: Sequence[Term]) -> Expression:
    if isinstance(arg, NamedNode) and arg.value.startswith(_SLOT):
        return constants[int(arg.value[len(_SLOT) :])]
    return _filled(arg, constants) if isinstance(arg, Op) else arg


# -- unbound variables ----------------------------------------------------------------------

Bound: TypeAlias = frozenset[Variable]
Use: TypeAlias = tuple[Variable, Expression | None, Bound]
"""A variable, the expression with its use (``None`` if selected), and the bound variables there."""


def unbound(tree: Op) -> Iterator[Use]:
    """Yield the uses of unbound variables."""
    return _in_pattern(tree, frozenset())


def _binds(*parts: Expression) -> Bound:
    """Return the variables that parts of a pattern may bind."""
    found: set[Variable] = set()
    for part in parts:
        if not isinstance(part, Op) or part.name in ("filter", "minus"):
            continue
        if part.name in ("triple", "vars", "project", "graph"):
            found.update(arg for arg in part.args if isinstance(arg, Variable))
        if part.name in ("bind", "as"):
            found.update(arg for arg in part.args[1:] if isinstance(arg, Variable))
        elif part.name == "select" and part.clause("project"):
            found |= _binds(*(op for op in part.ops if op.name == "project"))
        else:
            found |= _binds(*part.args)
    return frozenset(found)


def _in_pattern(op: Op, outer: Bound, left: Bound = frozenset()) -> Iterator[Use]:
    """Yield the unbound variables of a part of a pattern.

    Parameters
    ----------
    outer
        Variables bound by an outer solution, for EXISTS.
    left
        Variables bound before OPTIONAL, for its filters.
    """
    if op.name == "select":
        yield from _in_select(op, outer)
    elif op.name == "group":
        whole, before = _binds(op) | outer | left, outer
        for part in op.ops:
            if part.name in ("filter", "bind"):
                yield from _in_expression(part.args[0], whole if part.name == "filter" else before)
            else:
                seen = before if part.name == "optional" else frozenset()
                yield from _in_pattern(part, outer, seen)
            before |= _binds(part)
    elif op.name in _STRUCTURE:
        for part in op.ops:
            yield from _in_pattern(part, outer, left)


def _in_expression(
    expression: Expression, bound: Bound, aggregated: Bound | None = None
) -> Iterator[Use]:
    """Yield the unbound variables of an expression.

    Parameters
    ----------
    aggregated
        Variables bound inside aggregates, if different.
    """
    if isinstance(expression, Variable) and expression not in bound:
        yield expression, expression, bound
    elif isinstance(expression, Op) and expression.name == "group":
        yield from _in_pattern(expression, bound)
    elif isinstance(expression, Op):
        within = aggregated if aggregated and expression.name in AGGREGATES else bound
        for arg in expression.args:
            for variable, where, scope in _in_expression(arg, within, aggregated):
                yield variable, expression if where is variable else where, scope


def _in_select(op: Op, outer: Bound) -> Iterator[Use]:
    for part in op.ops:
        if part.name in ("group", "select"):
            yield from _in_pattern(part, outer)
    sources = [part for part in op.ops if part.name in ("group", "select", "values")]
    inside = bound = outer | _binds(*sources)
    by, projected = op.clause("by"), op.clause("project")
    for condition in by:
        if isinstance(condition, Op) and condition.name == "as":
            condition = condition.args[0]
        yield from _in_expression(condition, inside)
    later = [part for part in op.ops if part.name in ("project", "having", "order")]
    if by or any(each.name in AGGREGATES for part in later for each in part.walk()):
        values = (part for part in sources if part.name == "values")
        bound = outer | _binds(*by, *values) | {v for v in by if isinstance(v, Variable)}
    for condition in op.clause("having"):
        yield from _in_expression(condition, bound, inside)
    for selected in projected:
        if isinstance(selected, Op):
            yield from _in_expression(selected.args[0], bound, inside)
            bound |= _binds(selected)
        elif isinstance(selected, Variable) and selected not in bound:
            yield selected, None, bound
    made = chain.from_iterable(op.args for op in _ops(op.clause("template")))
    for node in (*op.clause("order"), *made):
        if not (isinstance(node, Variable) and node.value.startswith(_BLANK)):
            yield from _in_expression(node, bound, inside)


def _ops(expressions: Iterable[Expression]) -> Iterator[Op]:
    return (each for each in expressions if isinstance(each, Op))


# -- conversion of rdflib's parse tree ------------------------------------------------------

_NAMES: Mapping[str, str] = {
    "ConditionalOrExpression": "||",
    "ConditionalAndExpression": "&&",
    "UnaryNot": "!",
    "UnaryMinus": "neg",
    "UnaryPlus": "plus",
    "Function": "call",
    "PathAlternative": "|path",
    "PathSequence": "/path",
    "PathEltOrInverse": "^path",
    "PathNegatedPropertySet": "!path",
    "OptionalGraphPattern": "optional",
    "MinusGraphPattern": "minus",
    "GraphGraphPattern": "graph",
    "GroupOrUnionGraphPattern": "union",
    "Filter": "filter",
    "Bind": "bind",
    "vars": "as",
    "GroupAs": "as",
    "GroupClause": "by",
    "HavingClause": "having",
    "OrderClause": "order",
}
"""Our names of rdflib's nodes; the operands are the fields in order."""
_MODIFIER = re.compile(r" +(?=[*+]|\?(?!\w))")
_TRANSPARENT = frozenset({"||", "&&", "|path", "/path", "as", "union"})
"""Nodes that may also have one operand, which then replaces them."""


def _parsed(text: str) -> Op | None:
    """Return the parse tree of a query, or ``None`` if rdflib cannot parse it."""
    from pyparsing import ParseBaseException
    from rdflib.plugins.sparql.parser import parseQuery

    if len(text) > LONGEST:
        return None
    try:
        # The core writes spaces before the modifiers of paths, which rdflib rejects. No constant
        # has these characters, because all are placeholders.
        return _Reading(text).select(parseQuery(_MODIFIER.sub("", text))[1])
    except (ParseBaseException, RecursionError):
        return None


class _Reading:
    """Converter of rdflib's parse tree; the query's text replaces parts that rdflib omits."""

    def __init__(self, text: str) -> None:
        self._text = text

    def select(self, value: Any) -> Op:
        """Return a query or a subquery: its pattern, and its clauses by name."""
        clauses = [Op("form", (value.name, *self._each(_listed(value.modifier))))]
        if value.where is not None:
            where = self._expression(value.where)
            clauses.append(where if isinstance(where, Op) else Op("group"))
        if projected := value.var or value.projection:
            clauses.append(Op("project", self._each(projected)))
        if value.template is not None:
            clauses.append(Op("template", self._triples(value.template)))
        if value.limitoffset is not None:
            limits = (f"{name} {number}" for name, number in value.limitoffset.items())
            clauses.append(Op("limits", tuple(limits)))
        others = (value.groupby, value.having, value.orderby, value.valuesClause)
        clauses += _ops(map(self._expression, (other for other in others if other is not None)))
        return Op("select", tuple(clauses))

    def _expression(self, value: Any) -> Expression:
        import rdflib
        from rdflib.plugins.sparql.parserutils import CompValue

        if isinstance(value, CompValue):
            return self._composed(value)
        if isinstance(value, rdflib.Variable):
            return Variable(str(value))
        if isinstance(value, rdflib.BNode):
            return Variable(_BLANK + str(value))
        if isinstance(value, rdflib.URIRef):
            return NamedNode(str(value))
        return str(value)

    def _each(self, values: Iterable[Any]) -> tuple[Expression, ...]:
        return tuple(map(self._expression, values))

    def _composed(self, value: Any) -> Expression:
        match value.name:
            case "literal":
                return NamedNode(f"{_SLOT}{value.string}")
            case "AdditiveExpression" | "MultiplicativeExpression":
                made = self._expression(value.expr)
                for operator, other in zip(_listed(value.op), _listed(value.other), strict=True):
                    made = Op(str(operator), (made, self._expression(other)))
                return made
            case "RelationalExpression":
                one = self._expression(value.expr)
                return Op(value.op, (one, *self._each(_listed(value.other)))) if value.op else one
            case "PathElt":
                step = self._expression(value.part)
                return Op(f"{value.mod}path", (step,)) if value.mod else step
            case "InversePath":  # rdflib omits the operand.
                return Op("^path", (self._text,))
            case "InlineData" | "ValuesClause":
                rows = (Op("row", self._each(_listed(row))) for row in _listed(value.value))
                return Op("values", (Op("vars", self._each(_listed(value.var))), *rows))
            case "GroupGraphPatternSub" | "FakeGroupGraphPatten":
                return Op("group", tuple(self._parts(_listed(value.part))))
        if value.name == "SubSelect" or value.name.endswith("Query"):
            return self.select(value)
        args = self._each(chain.from_iterable(map(_listed, value.values())))
        name = _NAMES.get(value.name, value.name.removeprefix("Builtin_"))
        if name.startswith("Aggregate_"):
            name = name.removeprefix("Aggregate_").upper()
        return args[0] if len(args) == 1 and name in _TRANSPARENT else Op(name, args)

    def _parts(self, parts: Iterable[Any]) -> Iterator[Expression]:
        for part in parts:
            if part.name == "TriplesBlock":
                yield from self._triples(part.triples)
            else:
                yield self._expression(part)

    def _triples(self, blocks: Iterable[Any]) -> tuple[Op, ...]:
        nodes = self._each(chain.from_iterable(blocks))
        return tuple(Op("triple", nodes[at : at + 3]) for at in range(0, len(nodes), 3))


def _listed(value: Any) -> list[Any]:
    """Return the nodes of a list, of one node, or of none."""
    from rdflib.namespace import RDF
    from rdflib.plugins.sparql.parserutils import CompValue

    if value is None or value == RDF.nil:  # rdflib represents () as nil.
        return []
    return [value] if isinstance(value, str | CompValue) else list(value)

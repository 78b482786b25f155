"""Filter expressions: which of them an index can take.

A filter of a group is a conjunction; a conjunct is taken when it compares one
variable with one constant in a way that `semantic.values` decides for every term,
or is one of the taxonomy functions. A slot stands for its constant here, so what
its value decides is asked again when the slots are filled (`settled`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rdflib
from pyoxigraph import Literal, NamedNode, Variable
from rdflib.plugins.sparql.parserutils import CompValue

from semantic.pattern import Comparison, Filter, TaxonomyOperator, TaxonomyTest
from semantic.sparql.slots import to_node
from semantic.values import Operator, decidable
from semantic.vocabulary import GM

_OPERATORS = {operator.value: operator for operator in Operator}
_MIRRORED = {
    Operator.EQ: Operator.EQ,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
_TAXONOMY = {GM[operator.value].value: operator for operator in TaxonomyOperator}


def conjuncts(expression: Any) -> Iterator[Any]:
    """Yield the parts of a conjunction: a filter is true when all of them are."""
    if isinstance(expression, CompValue) and expression.name == "ConditionalAndExpression":
        yield from conjuncts(expression.expr)
        for other in expression.other:
            yield from conjuncts(other)
    else:
        yield expression


def necessary_filter(expression: Any) -> Filter | None:
    """Return a conjunct as a filter that an index can take, or ``None``."""
    if not isinstance(expression, CompValue):
        return None
    if expression.name == "RelationalExpression" and expression.op in _OPERATORS:
        return _comparison(expression.expr, _OPERATORS[expression.op], expression.other)
    if expression.name == "Function" and str(expression.iri) in _TAXONOMY:
        return _taxonomy_test(_TAXONOMY[str(expression.iri)], expression.expr)
    return None


def _comparison(left: Any, operator: Operator, right: Any) -> Comparison | None:
    if isinstance(right, rdflib.Variable) and not isinstance(left, rdflib.Variable):
        left, right, operator = right, left, _MIRRORED[operator]
    if not isinstance(left, rdflib.Variable):
        return None
    if not isinstance(right, rdflib.URIRef | rdflib.Literal):
        return None
    constant = to_node(right)
    assert isinstance(constant, NamedNode | Literal)
    return Comparison(Variable(str(left)), operator, constant)


def _taxonomy_test(operator: TaxonomyOperator, arguments: Any) -> TaxonomyTest | None:
    if len(arguments) != 2:
        return None
    variable, concept = arguments
    if not isinstance(variable, rdflib.Variable) or not isinstance(concept, rdflib.URIRef):
        return None
    constant = to_node(concept)
    assert isinstance(constant, NamedNode)
    return TaxonomyTest(Variable(str(variable)), operator, constant)


def settled(filter_: Filter) -> bool:
    """Whether a filter with its constant put in is one that an index can take."""
    return isinstance(filter_, TaxonomyTest) or decidable(filter_.operator, filter_.constant)


def describe(expression: Any) -> str:
    """Name an expression for `Subscription.remainder`: its operator or function."""
    if not isinstance(expression, CompValue):
        return "of a variable"
    if expression.name == "RelationalExpression":
        return str(expression.op)
    if expression.name == "Function":
        return str(to_node(expression.iri))
    name = str(expression.name)
    if name.startswith("Builtin_"):
        return name.removeprefix("Builtin_").replace("NOTEXISTS", "NOT EXISTS")
    return {"ConditionalOrExpression": "||", "UnaryNot": "!"}.get(name, name)

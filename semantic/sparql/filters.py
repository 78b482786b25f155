"""Filter expressions: which of them an index can take.

A filter of a group is a conjunction; a conjunct is taken when it tests one variable in
a way that `semantic.decision` decides for every term: a comparison with a constant, a
test of text or of a language, one of the taxonomy functions, or an alternative of such.
Of ``REGEX``, and of an alternative with ``&&`` inside, what is taken is necessary and no
more. A slot stands for its constant here, so what its value decides is asked again when
the slots are filled (`filled`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import rdflib
from pyoxigraph import Literal, NamedNode, Variable
from rdflib.plugins.sparql.parserutils import CompValue

from semantic.pattern import (
    Alternative,
    AnyOf,
    Comparison,
    Filter,
    TaxonomyOperator,
    TaxonomyTest,
    Unequal,
)
from semantic.sparql.slots import fill, is_quantity_term, to_node
from semantic.sparql.text_filters import filled_regex, filled_text, regex_test, text_test
from semantic.terms import Term
from semantic.text.tests import RegexTest, TextOperator, TextTest
from semantic.values import Operator, decidable, is_comparable
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


@dataclass(frozen=True, slots=True)
class Taken:
    """A filter that every solution passes, and whether it says all that the expression does."""

    filter: Filter
    decides: bool = True


def conjuncts(expression: Any) -> Iterator[Any]:
    """Yield the parts of a conjunction: a filter is true when all of them are."""
    if isinstance(expression, CompValue) and expression.name == "ConditionalAndExpression":
        yield from conjuncts(expression.expr)
        for other in expression.other:
            yield from conjuncts(other)
    elif _is(expression, "RelationalExpression") and expression.op == "NOT IN":
        yield from _none_of(expression)
    else:
        yield expression


def necessary_filters(
    expression: Any, certain: Container[Variable]
) -> tuple[list[Filter], list[str]]:
    """Return what an index can take of an expression, and why that may not be all of it.

    Parameters
    ----------
    expression
        Of a FILTER, as rdflib's algebra has it.
    certain
        The variables that every solution binds.
    """
    filters: list[Filter] = []
    left_open: list[str] = []
    for part in conjuncts(expression):
        found = necessary_filter(part)
        used = found is not None and found.filter.variable in certain
        if found is not None and used:
            filters.append(found.filter)
        if found is None or not used or not found.decides:
            left_open.append(f"FILTER {describe(part)}")
    return filters, left_open


def necessary_filter(expression: Any) -> Taken | None:
    """Return a conjunct as a filter that an index can take, or ``None``."""
    if not isinstance(expression, CompValue):
        return None
    match expression.name:
        case "RelationalExpression":
            return _relation(expression)
        case "UnaryNot":
            return _negation(expression.expr)
        case "ConditionalOrExpression":
            return _any_of(expression)
        case "Function" if str(expression.iri) in _TAXONOMY:
            return _taxonomy_test(_TAXONOMY[str(expression.iri)], expression.expr)
        case "Builtin_REGEX":
            regex = regex_test(expression)
            return None if regex is None else Taken(regex, decides=False)
    test = text_test(expression)
    return None if test is None else Taken(test)


def _is(expression: Any, name: str) -> bool:
    return isinstance(expression, CompValue) and expression.name == name


def _none_of(expression: CompValue) -> Iterator[Any]:
    """Yield ``NOT IN`` as the conjunction of ``!=`` that it stands for (section 17.4.1.10)."""
    if not isinstance(expression.other, list):
        yield expression
        return
    for constant in expression.other:
        yield CompValue("RelationalExpression", expr=expression.expr, op="!=", other=constant)


def _relation(expression: CompValue) -> Taken | None:
    left, operator, right = expression.expr, expression.op, expression.other
    if operator in ("IN", "NOT IN"):  # the latter of nothing at all: see `_none_of`
        return _in_list(left, right) if operator == "IN" else None
    if isinstance(left, rdflib.URIRef | rdflib.Literal):
        if operator in _OPERATORS:
            operator = _MIRRORED[_OPERATORS[operator]].value
        left, right = right, left
    if operator == "=" and isinstance(left, CompValue):
        test = text_test(CompValue("=", arg1=left, arg2=right))
        return None if test is None else Taken(test)
    found = _comparison(left, operator, right)
    return None if found is None else Taken(found)


def _comparison(left: Any, operator: str, right: Any) -> Comparison | Unequal | None:
    if not isinstance(left, rdflib.Variable):
        return None
    if not isinstance(right, rdflib.URIRef | rdflib.Literal):
        return None
    constant = to_node(right)
    assert isinstance(constant, NamedNode | Literal)
    if operator == "!=":
        if is_quantity_term(right):
            return None  # in base units it may be a number, and yet no other kind of term passes
        return Unequal(Variable(str(left)), constant)
    return Comparison(Variable(str(left)), _OPERATORS[operator], constant)


def _negation(expression: Any) -> Taken | None:
    """Return ``!(?x = constant)`` as ``?x != constant``, and the other way round."""
    if not _is(expression, "RelationalExpression") or expression.op not in ("=", "!="):
        return None
    operator = "!=" if expression.op == "=" else "="
    return _relation(
        CompValue("RelationalExpression", expr=expression.expr, op=operator, other=expression.other)
    )


def _in_list(left: Any, right: Any) -> Taken | None:
    if not isinstance(left, rdflib.Variable) or not isinstance(right, list):
        return None
    found = [_comparison(left, "=", constant) for constant in right]
    tests = tuple(test for test in found if test is not None)
    return Taken(AnyOf(Variable(str(left)), tests, "IN")) if len(tests) == len(found) else None


def _any_of(expression: CompValue) -> Taken | None:
    """Return the tests of one variable of which each alternative has one."""
    choices = [_by_variable(one) for one in (expression.expr, *expression.other)]
    for variable in choices[0]:
        if all(variable in choice for choice in choices):
            chosen = [choice[variable] for choice in choices]
            tests = chain.from_iterable(_tests(taken.filter) for taken in chosen)
            decides = all(taken.decides for taken in chosen)
            return Taken(AnyOf(variable, tuple(dict.fromkeys(tests))), decides)
    return None


def _by_variable(expression: Any) -> dict[Variable, Taken]:
    """Return for each variable a test that an expression makes necessary."""
    found: dict[Variable, Taken] = {}
    parts = list(conjuncts(expression))
    for part in parts:
        taken = necessary_filter(part)
        if taken is not None:
            whole = taken.decides and len(parts) == 1
            found.setdefault(taken.filter.variable, replace(taken, decides=whole))
    return found


def _tests(filter_: Filter) -> tuple[Alternative, ...]:
    return filter_.tests if isinstance(filter_, AnyOf) else (filter_,)


def _taxonomy_test(operator: TaxonomyOperator, arguments: Any) -> Taken | None:
    if len(arguments) != 2:
        return None
    variable, concept = arguments
    if not isinstance(variable, rdflib.Variable) or not isinstance(concept, rdflib.URIRef):
        return None
    constant = to_node(concept)
    assert isinstance(constant, NamedNode)
    return Taken(TaxonomyTest(Variable(str(variable)), operator, constant))


def filled(filter_: Filter, constants: Sequence[Term]) -> Filter | None:
    """Return a filter with its constants put in; ``None`` where an index cannot take it then.

    Examples
    --------
    >>> from semantic.vocabulary import XSD
    >>> number = Literal("5", datatype=XSD["integer"])
    >>> filled(Comparison(Variable("x"), Operator.LT, number), []).operator
    <Operator.LT: '<'>
    >>> filled(Comparison(Variable("x"), Operator.LT, NamedNode("urn:a")), []) is None
    True
    """
    match filter_:
        case TaxonomyTest():
            concept = fill(filter_.concept, constants)
            assert not isinstance(concept, Variable)
            return replace(filter_, concept=concept)
        case AnyOf():
            return _filled_any(filter_, constants)
        case TextTest():
            return filled_text(filter_, constants)
        case RegexTest():
            return filled_regex(filter_, constants)
    constant = fill(filter_.constant, constants)
    assert isinstance(constant, NamedNode | Literal)
    if isinstance(filter_, Unequal):
        return replace(filter_, constant=constant) if is_comparable(constant) else None
    if filter_.operator is Operator.EQ and isinstance(constant, Literal) and constant.language:
        return TextTest(filter_.variable, TextOperator.EQUALS, constant)
    whole = replace(filter_, constant=constant)
    return whole if decidable(whole.operator, whole.constant) else None


def _filled_any(filter_: AnyOf, constants: Sequence[Term]) -> AnyOf | None:
    tests: list[Alternative] = []
    for test in filter_.tests:
        found = filled(test, constants)
        if found is None:
            return None
        tests += _tests(found)
    return replace(filter_, tests=tuple(dict.fromkeys(tests)))


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

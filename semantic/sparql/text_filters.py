"""Tests of text in filter expressions: string functions, ``LANGMATCHES``, ``REGEX``.

Arguments are a variable, perhaps inside ``STR`` or ``LANG`` and that inside ``LCASE`` or
``UCASE``, and a constant, perhaps inside ``LCASE`` or ``UCASE``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import rdflib
from pyoxigraph import Literal, Variable
from rdflib.plugins.sparql.parserutils import CompValue

from semantic.pattern import AnyOf
from semantic.sparql.slots import fill, to_node
from semantic.terms import Term
from semantic.text.folding import folded
from semantic.text.regex import required_parts
from semantic.text.tests import Folding, RegexTest, TextOperator, TextTest, View
from semantic.vocabulary import RDF, XSD

_OPERATORS = {
    "Builtin_CONTAINS": TextOperator.CONTAINS,
    "Builtin_STRSTARTS": TextOperator.STARTS,
    "Builtin_STRENDS": TextOperator.ENDS,
    "Builtin_LANGMATCHES": TextOperator.MATCHES,
    "=": TextOperator.EQUALS,
}
_VIEWS = {"Builtin_STR": View.STR, "Builtin_LANG": View.LANG}
_FOLDINGS = {"Builtin_LCASE": Folding.LOWER, "Builtin_UCASE": Folding.UPPER}
_TEXTS = (XSD["string"], RDF["langString"])


def text_test(expression: CompValue) -> TextTest | None:
    """Return a test of text as such, or ``None``.

    Parameters
    ----------
    expression
        A function of two arguments, or ``=`` written as one.
    """
    operator = _OPERATORS.get(expression.name)
    if operator is None:
        return None
    looked_at = _looked_at(expression.arg1)
    folding, constant = _unfolded(expression.arg2)
    if looked_at is None or not isinstance(constant, rdflib.Literal):
        return None
    argument = to_node(constant)
    assert isinstance(argument, Literal)
    return TextTest(looked_at[0], operator, argument, *looked_at[1:], folding)


def regex_test(expression: CompValue) -> RegexTest | None:
    """Return ``REGEX`` with constants as such, or ``None``."""
    looked_at = _looked_at(expression.text)
    flags = expression.flags
    constants = [to_node(c) for c in (expression.pattern, flags) if isinstance(c, rdflib.Literal)]
    if looked_at is None or len(constants) < 1 + (flags is not None):
        return None
    pattern, given = constants[0], constants[-1] if flags is not None else None
    assert isinstance(pattern, Literal)
    assert given is None or isinstance(given, Literal)
    variable, view, folding = looked_at
    return RegexTest(variable, pattern, given, view, folding)


def _unfolded(expression: Any) -> tuple[Folding, Any]:
    if isinstance(expression, CompValue) and expression.name in _FOLDINGS:
        return _FOLDINGS[expression.name], expression.arg
    return Folding.NONE, expression


def _looked_at(expression: Any) -> tuple[Variable, View, Folding] | None:
    """Return the variable, the view and the folding of ``folding(view(?variable))``."""
    folding, inner = _unfolded(expression)
    view = View.TERM
    if isinstance(inner, CompValue) and inner.name in _VIEWS:
        view, inner = _VIEWS[inner.name], inner.arg
    return (Variable(str(inner)), view, folding) if isinstance(inner, rdflib.Variable) else None


def filled_text(test: TextTest, constants: Sequence[Term]) -> TextTest | None:
    """Return a test with its constant put in; ``None`` where that is no text.

    Examples
    --------
    >>> test = TextTest(Variable("t"), TextOperator.ENDS, Literal("Sea"), View.STR)
    >>> filled_text(replace(test, argument_folding=Folding.UPPER), []).argument.value
    'SEA'
    """
    argument = _text(test.argument, constants)
    if argument is None:
        return None
    text = folded(argument.value, test.argument_folding)
    if text != argument.value:
        language = argument.language
        argument = Literal(text, language=language) if language else Literal(text)
    return replace(test, argument=argument, argument_folding=Folding.NONE)


def filled_regex(test: RegexTest, constants: Sequence[Term]) -> TextTest | AnyOf | None:
    """Return what every text that an expression matches contains; ``None`` where that is unknown.

    Examples
    --------
    >>> test = RegexTest(Variable("t"), Literal("colou?r"), Literal("i"))
    >>> filled_regex(test, []).write()
    'REGEX(?t, "colo", "i")'
    """
    pattern = _text(test.pattern, constants)
    flags = Literal("") if test.flags is None else _text(test.flags, constants)
    if pattern is None or flags is None or pattern.language or flags.language:
        return None
    caseless = flags.value == "i"
    if caseless and test.folding is not Folding.NONE:
        return None
    parts = required_parts(pattern.value, flags.value)
    if parts is None:
        return None
    folding = Folding.CASELESS if caseless else test.folding
    tests = [
        TextTest(test.variable, TextOperator.CONTAINS, Literal(part), test.view, folding)
        for part in parts
    ]
    return tests[0] if len(tests) == 1 else AnyOf(test.variable, tuple(tests))


def _text(literal: Literal, constants: Sequence[Term]) -> Literal | None:
    """Return the constant for a slot where it is a string, tagged or not."""
    found = fill(literal, constants)
    return found if isinstance(found, Literal) and found.datatype in _TEXTS else None

"""Attribute constraints, and their translation to SPARQL.

``{"price.value": {">": 100, "<=": 400}, "brand": "Acme", "target": {"isa": "Computer"}}`` is

    SELECT ?event ?price_value WHERE {
      ?event attribute:price.value ?price_value ;
             attribute:brand "Acme" ;
             isa:target <urn:graphmatch:concept:Computer> .
      FILTER(?price_value > 100) FILTER(?price_value <= 400)
    }

Each attribute has one triple pattern and one variable, so several tests of one attribute apply to
the *same* value. If equality with a text or an IRI is the only test, the pattern has a constant
instead of a variable.

Constraints are first separated into a *shape* (*price.value: > number, <= number; brand: = text;
target: isa IRI*) and constants (100, 400, "Acme", Computer). Subscriptions of one shape differ in
constants only, so thousands of them become one query with columns of constants
(`semantic.attributes.bulk`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, islice
from typing import Any, TypeAlias

from pyoxigraph import Literal, NamedNode

from semantic.attributes import names
from semantic.attributes.values import TermError, dated, looks_dated, may_be_dated, plain, term_of
from semantic.errors import Place, Problem, SubscriptionError, UnplacedError
from semantic.units.quantities import is_quantity
from semantic.values import value_of
from semantic.vocabulary import XSD

Test: TypeAlias = tuple[str, Any]
"""An operator and the kind of its constant; for ``in`` the kinds of all its constants."""
Shape: TypeAlias = tuple[tuple[str, tuple[Test, ...]], ...]
"""Attributes with their tests, in the order of the constraints."""
Constant: TypeAlias = NamedNode | Literal
_Part: TypeAlias = str | int | NamedNode
"""Part of a query: SPARQL text, the index of a constant, or a property common to the shape."""

_COMPARISONS = ("<", "<=", ">", ">=")
_FUNCTIONS = {"contains": "CONTAINS", "starts": "STRSTARTS", "ends": "STRENDS"}
OPERATORS = ("=", "!=", *_COMPARISONS, "in", *_FUNCTIONS, "isa", "exists")
NUMERIC: Mapping[str, Test] = {op: (op, "value") for op in ("=", "!=", *_COMPARISONS)}
"""The tests that accept any number."""
IGNORE = "ignore case"
_FOLDED = f"{IGNORE} "
"""Prefix of a text operator that ignores case."""
_FOLDABLE = frozenset({"=", *_FUNCTIONS})
_KINDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_COMPARISONS, frozenset({"text", "value", "quantity"})),
    **dict.fromkeys(_FUNCTIONS, frozenset({"text", "tagged"})),
    **{_FOLDED + operator: frozenset({"text"}) for operator in _FOLDABLE},
}
"""The kinds of constants that an operator accepts; the other operators accept all kinds."""
_BY_TERM = frozenset({"text", "iri", "tagged", "other"})
_NUMBERS = frozenset(XSD[name] for name in ("integer", "decimal", "double"))
_ORDERED = frozenset({"!=", *_COMPARISONS})
_DIGITS = 18
"""Maximum length at which every JSON number has a comparable value."""
_NOT_IN_A_NAME = re.compile(r"\W+", re.ASCII)


def attribute_query(id: str, where: object) -> str:
    """Translate a conjunction of constraints to SPARQL (docs/reference/attributes.md).

    Raises `SubscriptionError` with the subscription's `id` if a constraint is invalid.

    Examples
    --------
    >>> print(attribute_query("alice", {"brand": "Acme"}))
    SELECT ?event WHERE { ?event <urn:graphmatch:attribute:brand> "Acme" . }
    """
    try:
        return sparql(*parameterize(where))
    except UnplacedError as error:
        raise SubscriptionError(Problem(error.what, Place(id), error.remedy)) from error


# -- constraints to shape and constants -----------------------------------------------------


def parameterize(where: object) -> tuple[Shape, list[Constant]]:
    """Return the shape of constraints (attributes, operators, kinds of values), and the constants.

    `where` is the JSON object of the constraints. Raises `TermError` if it contains an invalid one.

    Examples
    --------
    >>> shape, constants = parameterize({"price": {">": 100, "<=": 400}, "brand": "Acme"})
    >>> shape
    (('price', (('>', 'value'), ('<=', 'value'))), ('brand', (('=', 'text'),)))
    >>> [constant.value for constant in constants]
    ['100', '400', 'Acme']
    """
    if not isinstance(where, Mapping) or not where:
        what = "`where` is not an object with an attribute"
        raise TermError(what, 'Write {"attribute": constraint, …}.')
    constants: list[Constant] = []
    shape: list[tuple[str, tuple[Test, ...]]] = []
    for attribute, given in where.items():
        if not isinstance(attribute, str):
            raise TermError(f"{attribute!r} is not a valid attribute name", "Write it in quotes.")
        try:
            shape.append((attribute, _tests(given, constants)))
        except TermError as error:
            raise TermError(f"attribute {attribute!r}: {error.what}", error.remedy) from error
    return tuple(shape), constants


def _tests(given: Any, constants: list[Constant]) -> tuple[Test, ...]:
    """Return the tests in the constraint of one attribute; append their constants to `constants`.

    Raise `TermError` if the constraint is invalid.
    """
    if type(given) is not dict or "value" in given or "iri" in given:
        return (_test("=", given, constants),)
    if IGNORE in given:
        given = _folded(given)
    if not given:
        raise TermError("the constraint is empty", 'Write {"exists": true}.')
    tests: list[Test] = []
    for operator, operand in given.items():  # Most operands are JSON numbers: a fast path.
        is_number = type(operand) is Literal and operand.datatype in _NUMBERS
        if is_number and operator in NUMERIC and len(operand.value) <= _DIGITS:
            constants.append(operand)
            tests.append(NUMERIC[operator])
        else:
            tests.append(_test(operator, operand, constants))
    return tuple(tests)


def _folded(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a constraint without ``ignore case``; if it was true, it prefixes each operator.

    Raise `TermError` if its value is not a boolean, or if an operator cannot ignore case.
    """
    if not isinstance(given[IGNORE], bool):
        raise TermError(f"{IGNORE!r} is neither true nor false", "Write true or false.")
    rest = {operator: operand for operator, operand in given.items() if operator != IGNORE}
    if not given[IGNORE]:
        return rest
    if not rest or not _FOLDABLE.issuperset(rest):
        what = f"{IGNORE!r} can only be used with {', '.join(sorted(_FOLDABLE))}"
        raise TermError(what, "Remove it, or remove the other operators.")
    return {_FOLDED + operator: operand for operator, operand in rest.items()}


def _test(operator: str, operand: object, constants: list[Constant]) -> Test:
    """Return the test of an operator with its operand; append its constants to `constants`.

    Raise `TermError` if the operator is unknown or cannot have this operand.
    """
    if type(operand) is str and operator == "=" and not may_be_dated(operand):
        constants.append(plain(operand))
        return operator, "text"
    match operator:
        case "in":
            if not isinstance(operand, Sequence) or isinstance(operand, str) or not operand:
                what = "the operand of 'in' is not a list of values"
                raise TermError(what, 'Write {"in": ["red", "blue"]}.')
            several = [_constant(operator, each) for each in operand]
            constants += several
            return operator, tuple(map(_kind, several))
        case "exists":
            if operand is not True:
                what = "'exists' can only be true: a subscription cannot ask for missing attributes"
                raise TermError(what, 'Write {"exists": true}.')
            return operator, ""
        case "isa":
            constants.append(_class(term_of(operand)))
            return operator, "iri"
    if str(operator).removeprefix(_FOLDED) not in OPERATORS:
        remedy = f"Use one of {', '.join(OPERATORS)}, and with texts {IGNORE}."
        raise TermError(f"there is no operator {operator!r}", remedy)
    constant = _constant(operator, operand)
    kind = _kind(constant)
    is_number = isinstance(constant, Literal) and constant.datatype in _NUMBERS
    if is_number and kind == "other" and operator in _ORDERED:
        what = f"{constant.value[:40]} has too many digits to be compared"
        raise TermError(what, "Give a 64-bit integer or a floating-point number such as 1e20.")
    if operator in _KINDS and kind not in _KINDS[operator]:
        if operator in _COMPARISONS:
            what = f"the operand of {operator!r} has no order"
            raise TermError(what, "Compare with a number, a date, a quantity or a string.")
        raise TermError(f"the operand of {operator!r} is not a string", "Write a string in quotes.")
    constants.append(plain(constant.value.lower()) if operator.startswith(_FOLDED) else constant)
    return operator, kind


def _constant(operator: str, operand: object) -> Constant:
    """Return the term of an operand; a text in a comparison or ``in`` becomes a date if it is one.

    Raise `TermError` if an operand of ``<``, ``<=``, ``>`` or ``>=`` looks like a date, but is not
    one.
    """
    term = term_of(operand)
    if not isinstance(operand, str) or not (operator in NUMERIC or operator == "in"):
        return term
    assert isinstance(term, Literal)
    constant = dated(term)
    if operator in _COMPARISONS and constant is term and looks_dated(operand):
        what = f"{operand!r} is not a valid date"
        raise TermError(what, 'Correct it, or write {"value": "…", "datatype": "xsd:string"}.')
    return constant


def _class(constant: Constant) -> NamedNode:
    """Return the IRI of a class, or a placeholder for its name until the ontology is known.

    Raise `TermError` if the operand is neither an IRI nor a text.
    """
    if isinstance(constant, NamedNode):
        return constant
    if _kind(constant) != "text" or not constant.value.strip():
        what = "the operand of 'isa' is not a class name"
        raise TermError(what, 'Write {"isa": "Computer"}, or its IRI.')
    return names.concept(constant.value)


def _kind(constant: Constant) -> str:
    """Return the kind of a constant, which decides how it is compared.

    ``text``, ``iri``, ``tagged`` (texts with a language) and ``other`` (unknown datatypes) are
    compared by term. ``value`` (numbers, dates), ``boolean`` and ``quantity`` are compared by
    value.
    """
    if isinstance(constant, NamedNode):
        return "iri"
    if is_quantity(constant):
        return "quantity"
    value = value_of(constant)
    if value is None:
        return "tagged" if constant.language is not None else "other"
    return "text" if isinstance(value, str) else "boolean" if isinstance(value, bool) else "value"


# -- shape and constants to SPARQL ----------------------------------------------------------


def sparql(shape: Shape, constants: Sequence[Constant | str]) -> str:
    """Return the SPARQL query of a shape, with its constants in place.

    A string among the constants, such as a variable, is inserted as it is. Raises
    `AttributeNameError` if an attribute name is invalid.
    """
    parts = _parts(shape)
    return "".join([str(constants[p]) if isinstance(p, int) else str(p) for p in parts])


@lru_cache(maxsize=1024)
def _parts(shape: Shape) -> tuple[_Part, ...]:
    variables = {"event": None}
    patterns: list[_Part] = []
    filters: list[_Part] = []
    places = count()
    for name, tests in shape:
        kept: list[tuple[Test, list[int]]] = []
        for operator, kind in tests:
            many = len(kind) if operator == "in" else operator != "exists"
            own = list(islice(places, many))
            if operator == "isa":
                patterns += " ; ", names.isa(name), " ", own[0]
            else:
                kept.append(((operator, kind), own))
        if len(kept) == 1 and kept[0][0][0] == "=" and kept[0][0][1] in _BY_TERM:
            patterns += " ; ", names.attribute(name), " ", kept[0][1][0]
        elif kept:
            variable = _variable(name, variables)
            patterns += " ; ", names.attribute(name), f" ?{variable}"
            for (operator, _), own in kept:
                filters += _filter(f"?{variable}", operator, own)
    projection = " ".join(f"?{name}" for name in variables)
    return f"SELECT {projection} WHERE {{ ?event ", *patterns[1:], " .", *filters, " }"


def _variable(name: str, variables: dict[str, None]) -> str:
    """Return an unused variable name made from an attribute's name, and add it to `variables`."""
    plain = _NOT_IN_A_NAME.sub("_", name).strip("_") or "value"
    chosen, number = plain, 1
    while chosen in variables:
        number += 1
        chosen = f"{plain}_{number}"
    variables[chosen] = None
    return chosen


def _filter(value: str, operator: str, places: Sequence[int]) -> Iterator[_Part]:
    if operator == "exists":
        return
    yield " FILTER("
    if operator == "in":
        yield f"{value} IN ("
        for number, place in enumerate(places):
            yield from (", ", place) if number else (place,)
        yield ")"
    else:
        if operator.startswith(_FOLDED):
            operator, value = operator.removeprefix(_FOLDED), f"LCASE({value})"
        function = _FUNCTIONS.get(operator)
        yield f"{function}({value}, " if function else f"{value} {operator} "
        yield places[0]
        if function:
            yield ")"
    yield ")"

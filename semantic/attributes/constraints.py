"""Attribute constraints, and the SPARQL that they mean.

``{"price.value": {">": 100, "<=": 400}, "brand": "Acme", "target": {"isa": "Computer"}}`` is

    SELECT ?event ?price_value WHERE {
      ?event attribute:price.value ?price_value ;
             attribute:brand "Acme" ;
             isa:target <urn:graphmatch:concept:Computer> .
      FILTER(?price_value > 100) FILTER(?price_value <= 400)
    }

One triple pattern an attribute, one variable for its value: several tests of one attribute are
about the *same* value. Equality with a text or an IRI needs no variable where nothing else is asked
of the value: it is a constant of the pattern.

Constraints are first taken apart into a *shape* (*price.value: > number, <= number; brand: = text;
target: isa IRI*) and constants (100, 400, "Acme", Computer). Subscriptions of one shape differ in
constants only, so very many of them are one text and columns of constants
(`semantic.attributes.bulk`).

Cost: some microseconds a subscription.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pyoxigraph import Literal, NamedNode

from semantic.attributes import names
from semantic.attributes.concepts import concept
from semantic.attributes.values import (
    TermError,
    dated,
    looks_dated,
    may_be_dated,
    plain,
    term_of,
)
from semantic.units.vocabulary import is_quantity
from semantic.values import value_of

Test: TypeAlias = tuple[str, Any]
"""An operator and the kind of its constant; for ``in`` the kinds of all its constants."""

Shape: TypeAlias = tuple[tuple[str, tuple[Test, ...]], ...]
"""Attributes, each with its tests, in the order in which they are written."""

Constant: TypeAlias = NamedNode | Literal

COMPARISONS = ("<", "<=", ">", ">=")
TEXT_TESTS = ("contains", "starts", "ends")
FOLDED = "ignore case "
"""Stands before the operator of a test of texts that takes upper and lower case for the same."""
OPERATORS = ("=", "!=", *COMPARISONS, "in", *TEXT_TESTS, "isa", "exists")

IGNORE = "ignore case"
_FOLDABLE = frozenset({"=", *TEXT_TESTS})
_USE = f"Use one of {', '.join(OPERATORS)}, and with texts {IGNORE}."
_EQUAL_TEXT: tuple[Test, ...] = (("=", "text"),)
_EQUAL_VALUE: tuple[Test, ...] = (("=", "value"),)
NUMERIC: Mapping[str, Test] = {op: (op, "value") for op in ("=", "!=", *COMPARISONS)}
"""The tests that any number may be put to."""
_ISA: Test = ("isa", "iri")
_COMPARED = frozenset(COMPARISONS)


_FUNCTIONS = dict(zip(TEXT_TESTS, ("CONTAINS", "STRSTARTS", "STRENDS"), strict=True))
_BY_TERM = frozenset({"text", "iri", "tagged", "other"})
_NOT_IN_A_NAME = re.compile(r"\W+", re.ASCII)
_EVENT = "event"


class ConstraintError(TermError):
    """A constraint that means nothing; the attribute stands in `what`."""


def taken_apart(where: object) -> tuple[Shape, list[Constant]]:
    """Return the shape of an attribute subscription and its constants.

    Parameters
    ----------
    where
        Attribute to constraint, as JSON read by `semantic.attributes.values.decode` or as Python
        writes it.

    Raises
    ------
    ConstraintError
        When something in it is no constraint.

    Examples
    --------
    >>> shape, constants = taken_apart({"price": {">": 100, "<=": 400}, "brand": "Acme"})
    >>> shape
    (('price', (('>', 'value'), ('<=', 'value'))), ('brand', (('=', 'text'),)))
    >>> [constant.value for constant in constants]
    ['100', '400', 'Acme']
    """
    if not isinstance(where, Mapping) or not where:
        what = "`where` is not an object that names an attribute"
        raise ConstraintError(what, 'Write {"attribute": constraint, …}.')
    constants: list[Constant] = []
    shape: list[tuple[str, tuple[Test, ...]]] = []
    for attribute, given in where.items():
        kind = type(given)
        if kind is str and not may_be_dated(given):
            constants.append(plain(given))
            shape.append((attribute, _EQUAL_TEXT))
        elif kind is dict and "value" not in given and "iri" not in given:
            shape.append((attribute, _tests(attribute, given, constants)))
        else:
            test = _test(attribute, "=", given, constants)
            shape.append((attribute, _EQUAL_VALUE if test[1] == "value" else (test,)))
    return tuple(shape), constants


def _tests(attribute: str, given: Mapping[str, Any], constants: list[Constant]) -> tuple[Test, ...]:
    """Return the tests of one attribute; their constants go to the others."""
    if IGNORE in given:
        given = _folded(attribute, given)
    tests: list[Test] = []
    for operator, operand in given.items():
        if type(operand) is Literal and operator in NUMERIC:  # a number of JSON
            constants.append(operand)
            tests.append(NUMERIC[operator])
        elif type(operand) is str and operator == "=" and not may_be_dated(operand):
            constants.append(plain(operand))
            tests.append(_EQUAL_TEXT[0])
        elif type(operand) is str and operator == "isa" and operand.strip():
            constants.append(concept(operand))
            tests.append(_ISA)
        else:
            tests.append(_test(attribute, operator, operand, constants))
    if not tests:
        raise _problem(attribute, "the constraint is empty", 'Write {"exists": true}.')
    return tuple(tests)


def _folded(attribute: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a constraint with ``ignore case`` in the names of its operators."""
    if not isinstance(given[IGNORE], bool):
        raise _problem(attribute, f"{IGNORE!r} is neither true nor false", "Write true or false.")
    rest = {operator: operand for operator, operand in given.items() if operator != IGNORE}
    if not given[IGNORE]:
        return rest
    if not rest or not _FOLDABLE.issuperset(rest):
        what = f"{IGNORE!r} goes with {', '.join(sorted(_FOLDABLE))} only"
        raise _problem(attribute, what, "Leave it out, or the other operators.")
    return {FOLDED + operator: operand for operator, operand in rest.items()}


def _test(attribute: str, operator: str, operand: object, constants: list[Constant]) -> Test:
    """Return any test; its constants go to the others."""
    try:
        match operator:
            case "in":
                return operator, tuple(_several(attribute, operand, constants))
            case "exists":
                return operator, _existence(attribute, operand)
            case "isa":
                constants.append(_concept(attribute, operand))
                return operator, "iri"
        if operator.removeprefix(FOLDED) not in OPERATORS:
            raise _problem(attribute, f"there is no operator {operator!r}", _USE)
        constant = term_of(operand)
        if operator in NUMERIC and isinstance(operand, str):
            constant = _dated(operator, constant)
    except TermError as error:
        if isinstance(error, ConstraintError):
            raise
        raise _problem(attribute, error.what, error.remedy) from error
    kind = kind_of(constant)
    _require(attribute, operator, kind)
    if operator.startswith(FOLDED) and isinstance(constant, Literal):
        constant = plain(constant.value.lower())
    constants.append(constant)
    return operator, kind


def _dated(operator: str, text: Constant) -> Constant:
    """Return the date that a text says; one that looks like a date and is none has no order."""
    assert isinstance(text, Literal)
    constant = dated(text)
    if operator in _COMPARED and constant is text and looks_dated(text.value):
        what = f"{text.value!r} is no date of the calendar"
        raise TermError(what, 'Correct it, or write {"value": "…", "datatype": "xsd:string"}.')
    return constant


def kind_of(constant: Constant) -> str:
    """Return how a constant is compared.

    ``text`` and ``iri`` are compared by term, ``value`` (numbers, dates, booleans) and
    ``quantity`` by value, and ``other`` (texts in a language, unknown datatypes) by term.
    """
    if isinstance(constant, NamedNode):
        return "iri"
    if is_quantity(constant):
        return "quantity"
    value = value_of(constant)
    if value is None:
        return "tagged" if constant.language is not None else "other"
    return "text" if isinstance(value, str) else "boolean" if isinstance(value, bool) else "value"


_KINDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(COMPARISONS, frozenset({"text", "value", "quantity"})),
    **dict.fromkeys(TEXT_TESTS, frozenset({"text", "tagged"})),
    **{FOLDED + operator: frozenset({"text"}) for operator in _FOLDABLE},
}


def _require(attribute: str, operator: str, kind: str) -> None:
    allowed = _KINDS.get(operator)
    if allowed is None or kind in allowed:
        return
    if operator in COMPARISONS:
        what, remedy = "has no order", "Compare with a number, a date, a quantity or a text."
    else:
        what, remedy = "is no text", "Give a text in quotes."
    raise _problem(attribute, f"what stands after {operator!r} {what}", remedy)


def _several(attribute: str, operand: object, constants: list[Constant]) -> Iterable[str]:
    if not isinstance(operand, Sequence) or isinstance(operand, str) or not operand:
        what = "what stands after 'in' is not a list of values"
        raise _problem(attribute, what, 'Write {"in": ["red", "blue"]}.')
    kinds = []
    for each in operand:
        constant = term_of(each)
        if isinstance(each, str):
            constant = _dated("in", constant)
        constants.append(constant)
        kinds.append(kind_of(constant))
    return kinds


def _existence(attribute: str, operand: object) -> str:
    if operand is not True:
        what = "'exists' can only be true: an event without the attribute is not waited for"
        raise _problem(attribute, what, 'Write {"exists": true}.')
    return ""


def _concept(attribute: str, operand: object) -> NamedNode:
    """Return the term of a class; a name is looked up when the ontology is known."""
    constant = term_of(operand)
    if isinstance(constant, NamedNode):
        return constant
    if kind_of(constant) != "text" or not constant.value.strip():
        what = "what stands after 'isa' is no name of a class"
        raise _problem(attribute, what, 'Write {"isa": "Computer"}, or its IRI.')
    return concept(constant.value)


def _problem(attribute: str, what: str, remedy: str) -> ConstraintError:
    return ConstraintError(f"attribute {attribute!r}: {what}", remedy)


class Written:
    """A shape as SPARQL, with constants, and in which order these stand there.

    Parameters
    ----------
    shape, constants
        Of one attribute subscription.

    Examples
    --------
    >>> print(Written(*taken_apart({"price": {"<": 5}, "brand": {"exists": True}})).text)
    SELECT ?event ?price ?brand WHERE { ?event <urn:graphmatch:attribute:price> ?price ; \
<urn:graphmatch:attribute:brand> ?brand . \
FILTER(?price < "5"^^<http://www.w3.org/2001/XMLSchema#integer>) }
    """

    def __init__(self, shape: Shape, constants: Sequence[Constant]) -> None:
        self.order: list[int] = []
        """The places of constants in the order of the text."""
        self.fixed: list[NamedNode] = []
        self._constants = constants
        self._next = 0
        self._variables: dict[str, None] = {_EVENT: None}
        patterns: list[str] = []
        later: list[tuple[str, Test, list[int]]] = []
        for name, tests in shape:
            patterns += self._patterns(name, tests, later)
        filters = [f"FILTER({self._filter(*filter_)})" for filter_ in later]
        names = " ".join(f"?{name}" for name in self._variables)
        body = f"?{_EVENT} {' ; '.join(patterns)} . {' '.join(filters)}".rstrip()
        self.text = f"SELECT {names} WHERE {{ {body} }}"

    def term(self, place: int) -> Constant:
        """Return the constant at a place: among those of the shape, and then those of all."""
        count = len(self._constants)
        return self._constants[place] if place < count else self.fixed[place - count]

    def _write(self, place: int) -> str:
        self.order.append(place)
        return str(self.term(place))

    def _property(self, property_: NamedNode) -> str:
        self.fixed.append(property_)
        return self._write(len(self._constants) + len(self.fixed) - 1)

    def _patterns(
        self, name: str, tests: Sequence[Test], later: list[tuple[str, Test, list[int]]]
    ) -> list[str]:
        """Return the patterns of one attribute; what is to be said of its variable goes later."""
        patterns: list[str] = []
        kept: list[tuple[Test, list[int]]] = []
        for test in tests:
            places = self._places(test)
            if test[0] == "isa":
                patterns.append(f"{self._property(names.isa(name))} {self._write(places[0])}")
            else:
                kept.append((test, places))
        if len(kept) == 1 and kept[0][0][0] == "=" and kept[0][0][1] in _BY_TERM:
            patterns.append(f"{self._property(names.attribute(name))} {self._write(kept[0][1][0])}")
        elif kept:
            variable = self._variable(name)
            patterns.append(f"{self._property(names.attribute(name))} ?{variable}")
            later += [(variable, test, places) for test, places in kept if test[0] != "exists"]
        return patterns

    def _places(self, test: Test) -> list[int]:
        operator, kind = test
        count = len(kind) if operator == "in" else 0 if operator == "exists" else 1
        self._next += count
        return list(range(self._next - count, self._next))

    def _variable(self, name: str) -> str:
        """Return a variable called nearly as the attribute."""
        plain = _NOT_IN_A_NAME.sub("_", name).strip("_") or "value"
        chosen, number = plain, 1
        while chosen in self._variables:
            number += 1
            chosen = f"{plain}_{number}"
        self._variables[chosen] = None
        return chosen

    def _filter(self, variable: str, test: Test, places: Sequence[int]) -> str:
        operator, value = test[0], f"?{variable}"
        if operator == "in":
            return f"{value} IN ({', '.join(map(self._write, places))})"
        if operator.startswith(FOLDED):
            operator, value = operator.removeprefix(FOLDED), f"LCASE({value})"
        constant = self._write(places[0])
        if operator in _FUNCTIONS:
            return f"{_FUNCTIONS[operator]}({value}, {constant})"
        return f"{value} {operator} {constant}"

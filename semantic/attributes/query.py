"""An attribute subscription as SPARQL: one triple pattern an attribute, one variable for its value.

``{"price.value": {">": 100, "<=": 400}, "brand": "Acme", "target": {"isa": "Computer"}}`` is

    SELECT ?event ?price_value WHERE {
      ?event attribute:price.value ?price_value ;
             attribute:brand "Acme" ;
             isa:target <urn:graphmatch:concept:Computer> .
      FILTER(?price_value > 100) FILTER(?price_value <= 400)
    }

So several tests of one attribute are about the *same* value. Equality with a text or an IRI needs
no variable where nothing else is asked of the value: it is a constant of the pattern.

Cost: SPARQL is written once a shape; a subscription of a known shape costs the tuple of its
constants.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from semantic.attributes.constraints import FOLDED, TEXT_TESTS, Constant, Shape, Test
from semantic.attributes.names import attribute, isa
from semantic.terms import Term

_FUNCTIONS = dict(zip(TEXT_TESTS, ("CONTAINS", "STRSTARTS", "STRENDS"), strict=True))
_BY_TERM = frozenset({"text", "iri", "tagged", "other"})
_NOT_IN_A_NAME = re.compile(r"\W+", re.ASCII)
_EVENT = "event"
_SLOT = "\0"


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A shape as SPARQL with places for constants.

    Parameters
    ----------
    pieces
        The text around and between the constants.
    order
        The place of each constant of the text among the shape's constants and then `fixed`.
    fixed
        The properties.
    """

    pieces: tuple[str, ...]
    order: tuple[int, ...]
    fixed: tuple[Term, ...]

    @classmethod
    def of(cls, shape: Shape, constants: Sequence[Constant]) -> Template:
        """Return the template of a shape, of which `constants` are an example.

        Raises
        ------
        AttributeNameError
            When one of its attributes has no name.
        """
        written = Writer(shape, constants)
        return cls(tuple(written.pieces), tuple(written.order), tuple(written.fixed))

    def query(self, constants: Sequence[Constant]) -> AttributeQuery:
        """Return the query with these constants, in the order of the shape."""
        return AttributeQuery(self, self.filled(constants))

    def filled(self, constants: Sequence[Constant]) -> tuple[Term, ...]:
        """Return the constants in the order of the text."""
        terms: tuple[Term, ...] = (*constants, *self.fixed)
        return tuple(map(terms.__getitem__, self.order))

    def said(self, constants: Sequence[Term]) -> str:
        """Return the text with constants in its order."""
        whole = [self.pieces[0]]
        for constant, piece in zip(constants, self.pieces[1:], strict=True):
            whole += (str(constant), piece)
        return "".join(whole)


@dataclass(frozen=True, slots=True)
class AttributeQuery:
    """A conjunction of constraints as SPARQL: a shared template, its own constants.

    Parameters
    ----------
    template
        Of its shape.
    constants
        In the order of the text.
    """

    template: Template
    constants: tuple[Term, ...]

    @property
    def text(self) -> str:
        """The SPARQL that it is."""
        return self.template.said(self.constants)


class Writer:
    """Writes a shape as SPARQL, in pieces, and remembers in which order its constants stand there.

    Parameters
    ----------
    shape, constants
        Of one attribute subscription.

    Examples
    --------
    >>> from semantic.attributes.constraints import taken_apart
    >>> print(Writer(*taken_apart({"price": {"<": 5}, "brand": {"exists": True}})).text)
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
        self.pieces = f"SELECT {names} WHERE {{ {body} }}".split(_SLOT)
        """The text around and between the constants."""

    @property
    def text(self) -> str:
        """The whole text."""
        constants = [str(self.term(place)) for place in self.order]
        return "".join(map("".join, zip(self.pieces, [*constants, ""], strict=True)))

    def term(self, place: int) -> Term:
        """Return the constant at a place."""
        count = len(self._constants)
        return self._constants[place] if place < count else self.fixed[place - count]

    def _write(self, place: int) -> str:
        self.order.append(place)
        return _SLOT

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
                patterns.append(f"{self._property(isa(name))} {self._write(places[0])}")
            else:
                kept.append((test, places))
        if len(kept) == 1 and kept[0][0][0] == "=" and kept[0][0][1] in _BY_TERM:
            patterns.append(f"{self._property(attribute(name))} {self._write(kept[0][1][0])}")
        elif kept:
            variable = self._variable(name)
            patterns.append(f"{self._property(attribute(name))} ?{variable}")
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

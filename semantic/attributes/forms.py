"""How constants get from a line of JSON into the slots of its skeleton, learned from an example.

Lines with the same rest (`semantic.attributes.cutting`) have the same form, unless a constant is
of another kind than the example's: a text that is a date, say. What makes a term of a constant
says so (`Makers`), and the line is read as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyoxigraph import Literal

from semantic.attributes.concepts import concept
from semantic.attributes.constraints import NUMERIC, OPERATORS, TEXT_TESTS, Constant, kind_of
from semantic.attributes.query import Template
from semantic.attributes.values import Decoder, dated, looks_dated, may_be_dated, plain, written
from semantic.terms import Term
from semantic.vocabulary import XSD

Maker: TypeAlias = Callable[[str], Constant | None]
"""Makes a term of what is written; ``None`` where that is not certain."""

ID, COMMENT, TEXT, VERBATIM, DATE, CONCEPT, NUMBER, COMPARED = range(-1, 7)
"""What a span is: no constant, up to `COMMENT`; else how it is made a term."""
_FIXED, _UNSURE = 7, 8
"""What else may stand there: true or false; and what is read otherwise."""

_DATES = (XSD["date"], XSD["dateTime"])


class Makers:
    """Makes terms of constants, each as `semantic.attributes.constraints.taken_apart` does.

    Parameters
    ----------
    decoder
        Remembers texts.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._texts = decoder.texts
        self.by_role: Mapping[int, Maker] = {
            TEXT: self._text,
            VERBATIM: self._texts.__getitem__,
            DATE: _date,
            CONCEPT: _concept,
            NUMBER: _number,
            COMPARED: written,
        }

    def _text(self, text: str) -> Literal | None:
        return None if may_be_dated(text) and looks_dated(text) else self._texts[text]


def _date(text: str) -> Literal | None:
    found = dated(plain(text))
    return found if found.datatype in _DATES else None


def _concept(text: str) -> Constant | None:
    return concept(text) if text.strip() else None


def _number(text: str) -> Literal | None:
    """Return a number that every comparison takes for one: no larger than 64 bits, say."""
    literal = written(text)
    return literal if kind_of(literal) == "value" else None


@dataclass(frozen=True, slots=True)
class Form:
    """What the lines of one form have in common.

    Parameters
    ----------
    template
        That of their shape.
    roles
        What each span is.
    slots
        Where the constant of each slot is: a span, or, as ``-1 - n``, the nth of `fixed`.
    fixed
        The constants that all lines have.
    """

    template: Template
    roles: tuple[int, ...]
    slots: tuple[int, ...]
    fixed: tuple[Term, ...]


def form_of(
    row: Mapping[str, Any], template: Template, constants: Sequence[Constant], makers: Makers
) -> Form | None:
    """Return the form of a line that is a subscription; ``None`` where it is not certain.

    Parameters
    ----------
    row
        The line, as `semantic.attributes.values.Decoder` reads it.
    template, constants
        What `semantic.attributes.subscription.AttributeParser.taken_apart` makes of it.
    makers
        Make the same constants, or else there is no form.

    Examples
    --------
    >>> from semantic.attributes.subscription import AttributeParser
    >>> parser = AttributeParser()
    >>> row = parser.decoder.decode('{"id": "s", "where": {"size": {"<": 5}, "new": true}}')
    >>> apart = parser.taken_apart("s", row["where"])
    >>> form = form_of(row, *apart, Makers(parser.decoder))
    >>> form.roles == (ID, COMPARED), form.slots, [term.value for term in form.fixed]
    (True, (-2, -3, 1, -1), ['true', 'urn:graphmatch:attribute:size', \
'urn:graphmatch:attribute:new'])
    """
    roles: list[int] = []
    sources: list[int] = []
    fixed: list[Term] = []
    for role, leaf in _leaves(row):
        if role in (ID, COMMENT):
            roles.append(role)
            continue
        if role == _UNSURE or len(sources) == len(constants):
            return None
        constant = constants[len(sources)]
        if role == _FIXED:
            fixed.append(constant)
            sources.append(-len(fixed))
            continue
        if role == TEXT and isinstance(constant, Literal) and constant.datatype in _DATES:
            role = DATE
        if makers.by_role[role](leaf) != constant:
            return None
        sources.append(len(roles))
        roles.append(role)
    if len(sources) != len(constants):
        return None
    sources += [-1 - number for number in range(len(fixed), len(fixed) + len(template.fixed))]
    slots = tuple(sources[place] for place in template.order)
    return Form(template, tuple(roles), slots, (*fixed, *template.fixed))


def _leaves(row: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield what a line says, in its order: how each value becomes a term, and as it is written."""
    for name, value in row.items():
        if name != "where":
            yield (ID if name == "id" else COMMENT), value
            continue
        for given in value.values():
            if isinstance(given, dict):
                for operator, operand in given.items():
                    yield from _operands(operator, operand)
            else:
                yield _leaf("", given)


def _operands(operator: str, operand: object) -> Iterator[tuple[int, str]]:
    if operator not in OPERATORS:  # a value with its datatype, or what goes with all tests
        yield _UNSURE, ""
    elif operator == "in" and isinstance(operand, list):
        for each in operand:
            yield _leaf(operator, each)
    elif operator != "exists":
        yield _leaf(operator, operand)


def _leaf(operator: str, value: object) -> tuple[int, str]:
    match value:
        case bool():
            return _FIXED, ""
        case Literal():
            return (COMPARED if operator in NUMERIC else NUMBER), value.value
        case str() if operator == "isa":
            return CONCEPT, value
        case str():
            return (VERBATIM if operator in TEXT_TESTS else TEXT), value
    return _UNSURE, ""

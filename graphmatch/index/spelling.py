"""Terms and filters as JSON, and back: what a saved index mentions.

A term is a list of texts, the first of which says what it is; a filter is its class and fields.
What JSON holds is data: nothing in a file is run.

Cost: about two microseconds a term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Variable
from pyoxigraph import Triple as TripleTerm

from graphmatch.index.terms import Mentioned, Passes
from semantic.pattern import AnyOf, Comparison, Filter, TaxonomyOperator, TaxonomyTest, Unequal
from semantic.terms import Term
from semantic.text.tests import Folding, RegexTest, TextOperator, TextTest, View
from semantic.values import Operator

Spelled: TypeAlias = list[Any]
"""What `json` reads and writes."""

_CLASSES = (AnyOf, Comparison, RegexTest, TaxonomyTest, TextTest, Unequal)
_ENUMS = (Folding, Operator, Passes, TaxonomyOperator, TextOperator, View)


class SpellingError(ValueError):
    """What was read is no term and no filter."""


def spelled(mentioned: Mentioned) -> Spelled:
    """Return what subscriptions mention as JSON can hold it.

    Examples
    --------
    >>> spelled(Literal("sea", language="en")), spelled(Comparison(
    ...     Variable("x"), Operator.LT, NamedNode("urn:a")))
    (['@', 'sea', 'en'], ['Comparison', ['?', 'x'], ['Operator', '<'], ['<', 'urn:a']])
    """
    match mentioned:
        case NamedNode():
            return ["<", mentioned.value]
        case Literal():
            if mentioned.language:
                return ["@", mentioned.value, mentioned.language]
            return ['"', mentioned.value, mentioned.datatype.value]
    other: Spelled = _spelled(mentioned)
    return other


def _spelled(value: object) -> Any:
    match value:
        case NamedNode() | Literal():
            return spelled(value)
        case BlankNode():
            return ["_", value.value]
        case Variable():
            return ["?", value.value]
        case TripleTerm():
            return [">", *map(_spelled, value)]
        case Enum():
            return [type(value).__name__, value.value]
        case tuple():
            return ["(", *map(_spelled, value)]
        case AnyOf() | Comparison() | RegexTest() | TaxonomyTest() | TextTest() | Unequal():
            own = (getattr(value, field.name) for field in fields(value))
            return [type(value).__name__, *map(_spelled, own)]
        case str() | None:
            return value
    raise TypeError(f"{value!r} is no part of a subscription")


def read(written: object) -> Mentioned:
    """Return the term or filter that `spelled` wrote.

    Raises
    ------
    SpellingError
        When it is none.

    Examples
    --------
    >>> read(["<", "urn:a"])
    <NamedNode value=urn:a>
    >>> read(["Comparison", ["?", "x"], ["Operator", "<"], ["<", "urn:a"]]).operator
    <Operator.LT: '<'>
    """
    found = _read(written)
    if isinstance(found, Term | Filter | Passes):
        return found
    raise SpellingError(f"{written!r} is no term and no filter")


def _read(written: object) -> object:
    if not isinstance(written, list) or not written:
        return written
    kind, *parts = written
    maker = _MAKERS.get(kind) if isinstance(kind, str) else None
    if maker is None:
        raise SpellingError(f"{kind!r} is no kind of term or filter")
    try:
        return maker(*map(_read, parts))
    except (TypeError, ValueError) as error:
        raise SpellingError(f"{written!r} is no term and no filter: {error}") from error


def _tagged(value: str, language: str) -> Literal:
    return Literal(value, language=language)


def _typed(value: str, datatype: str) -> Literal:
    return Literal(value, datatype=NamedNode(datatype))


def _sequence(*parts: object) -> tuple[object, ...]:
    return parts


_MAKERS: Mapping[str, Callable[..., object]] = {
    "<": NamedNode,
    "@": _tagged,
    '"': _typed,
    "_": BlankNode,
    "?": Variable,
    ">": TripleTerm,
    "(": _sequence,
    **{kind.__name__: kind for kind in (*_ENUMS, *_CLASSES)},
}

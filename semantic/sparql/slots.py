"""Slots: the places of a query's constants, so that queries differing in them share a parse.

In a skeleton the n-th constant is written as a term that says only "slot n", an IRI
or a literal as the constant was; a quantity (``"40 GB"^^cdt:ucum``) has a kind of its
own, for comparisons with it are written otherwise. What the parse yields is then filled
in: terms by `fill`, text by splitting it at its slots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import rdflib
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from semantic.terms import Node, Term
from semantic.units.vocabulary import is_quantity

_IRI = "urn:graphmatch:slot:"
_LITERAL = "urn:graphmatch:slot"
_QUANTITY = "urn:graphmatch:quantity"
_LITERALS = (_LITERAL, _QUANTITY)
_WRITTEN = re.compile(rf'<{_IRI}(\d+)>|"(\d+)"\^\^<(?:{_LITERAL}|{_QUANTITY})>')


def slot(number: int, term: Term) -> NamedNode | Literal:
    """Return the stand-in for a constant."""
    if isinstance(term, NamedNode):
        return NamedNode(f"{_IRI}{number}")
    kind = _QUANTITY if isinstance(term, Literal) and is_quantity(term) else _LITERAL
    return Literal(str(number), datatype=NamedNode(kind))


def is_quantity_slot(piece: str) -> bool:
    """Whether a piece of text is the slot of a quantity."""
    return piece.endswith(f"^^<{_QUANTITY}>")


def is_quantity_term(term: object) -> bool:
    """Whether an rdflib term is the slot of a quantity."""
    return isinstance(term, rdflib.Literal) and str(term.datatype) == _QUANTITY


def slot_number(term: object) -> int | None:
    """Return the number of a slot, for our terms and rdflib's; ``None`` for other terms."""
    if isinstance(term, Literal):
        return int(term.value) if term.datatype.value in _LITERALS else None
    if isinstance(term, rdflib.Literal):
        return int(str(term)) if str(term.datatype) in _LITERALS else None
    name = term.value if isinstance(term, NamedNode) else str(term)
    return int(name.removeprefix(_IRI)) if name.startswith(_IRI) else None


def fill(node: Node, constants: Sequence[Term]) -> Node:
    """Return the constant for a slot, and any other node as it is."""
    if isinstance(node, NamedNode | Literal) and (number := slot_number(node)) is not None:
        return constants[number]
    return node


@lru_cache(maxsize=4096)
def slot_of_text(piece: str) -> tuple[int, ...]:
    """Return the slots that are written in a piece of text."""
    return tuple(int(found[1] or found[2]) for found in _WRITTEN.finditer(piece))


class SlottedText:
    """Query text with slots in it.

    Examples
    --------
    >>> text = SlottedText(f"?x a {slot(0, NamedNode('urn:c'))} .")
    >>> text.fill([NamedNode("urn:a")])
    '?x a <urn:a> .'
    """

    __slots__ = ("_numbers", "_pieces")

    def __init__(self, text: str) -> None:
        parts = _WRITTEN.split(text)
        self._pieces: list[str] = parts[::3]
        self._numbers = [int(a or b) for a, b in zip(parts[1::3], parts[2::3], strict=True)]

    def fill(
        self, constants: Sequence[Term], change: Callable[[int, Term], Term] = lambda _, t: t
    ) -> str:
        """Return the text with the constants put in, each changed by its number and itself."""
        parts = [self._pieces[0]]
        for number, piece in zip(self._numbers, self._pieces[1:], strict=True):
            parts += (str(change(number, constants[number])), piece)
        return "".join(parts)


def to_node(term: Any) -> Node:
    """Return an rdflib term as one of ours; blank nodes become variables of the same name.

    Examples
    --------
    >>> to_node(rdflib.Literal("Klima", lang="de"))
    <Literal value=Klima language=de>
    """
    if isinstance(term, rdflib.Variable):
        return Variable(str(term))
    if isinstance(term, rdflib.BNode):
        return BlankNode(str(term))
    if isinstance(term, rdflib.URIRef):
        return NamedNode(str(term))
    if term.language is not None:
        return Literal(str(term), language=term.language)
    if term.datatype is not None:
        return Literal(str(term), datatype=NamedNode(str(term.datatype)))
    return Literal(str(term))

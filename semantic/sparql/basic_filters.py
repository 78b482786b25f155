"""Filters, read without a parser: what an index tests, and whatever is built of it.

Comparisons, ``IN``, ``&&``, ``||``, ``!``, brackets, and the functions that a test of text or of
a taxonomy is made of. What is read is put as rdflib's algebra puts it; what follows from it, the
general way says of both (`semantic.sparql.filters`). Arithmetic, ``EXISTS`` and all other
functions are left to rdflib's parser, which takes ten milliseconds for a comparison.

Source: SPARQL 1.1 section 19.8, rules 68 to 72 and 110 to 121.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import rdflib
from pyoxigraph import NamedNode, Variable
from rdflib.plugins.sparql.parserutils import CompValue

from semantic.pattern import TaxonomyOperator
from semantic.sparql.basic_patterns import node_of
from semantic.vocabulary import GM

_DEEPEST = 8
"""So many brackets inside each other are read; rdflib's stack ends at about twenty."""
_RELATIONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_ONE, _TWO = (("arg",),), (("arg1", "arg2"),)
_FUNCTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(("STR", "LANG", "LCASE", "UCASE"), _ONE),
    **dict.fromkeys(("CONTAINS", "STRSTARTS", "STRENDS", "LANGMATCHES"), _TWO),
    "REGEX": (("text", "pattern"), ("text", "pattern", "flags")),
}
"""What rdflib calls their arguments; there may be fewer or more of them."""
_TAXONOMY = {str(GM[op.value]): rdflib.URIRef(GM[op.value].value) for op in TaxonomyOperator}


class _UnreadableError(ValueError):
    """An expression has something else in it."""


def constraint(pieces: Sequence[str], start: int) -> tuple[Any, int] | None:
    """Return the expression of a FILTER and the place behind it, or ``None`` to leave it.

    Parameters
    ----------
    pieces
        A query's text, constants as slots; the last is the bracket that closes its group.
    start
        The place behind ``FILTER``.

    Examples
    --------
    >>> expression, end = constraint("FILTER ( ?x < ?y && ! ?z ) }".split(), 1)
    >>> expression.name, expression.expr.op, end
    ('ConditionalAndExpression', '<', 9)
    >>> constraint("FILTER ( ?x + ?y ) }".split(), 1) is None
    True
    """
    reader = _Reader(pieces, start)
    try:
        return reader.constraint(), reader.place
    except _UnreadableError:
        return None


class _Reader:
    """Reads by recursive descent, one method a rule; it ends at the group's last bracket."""

    def __init__(self, pieces: Sequence[str], place: int) -> None:
        self._pieces = pieces
        self.place = place
        self._depth = 0

    def constraint(self) -> Any:
        if self._pieces[self.place] == "(":
            return self._bracketed()
        return self._call(self._next())

    def _next(self) -> str:
        self.place += 1
        return self._pieces[self.place - 1]

    def _follows(self, word: str) -> bool:
        """Take the next piece if it is this."""
        follows = self._pieces[self.place].upper() == word
        self.place += follows
        return follows

    def _require(self, word: str) -> None:
        if not self._follows(word):
            raise _UnreadableError

    def _expression(self) -> Any:
        return self._joined("||", "ConditionalOrExpression", self._conjunction)

    def _conjunction(self) -> Any:
        return self._joined("&&", "ConditionalAndExpression", self._relation)

    def _joined(self, sign: str, name: str, operand: Callable[[], Any]) -> Any:
        first, others = operand(), []
        while self._follows(sign):
            others.append(operand())
        return _compound(name, expr=first, other=others) if others else first

    def _relation(self) -> Any:
        left = self._unary()
        operator = self._pieces[self.place].upper()
        if operator in _RELATIONS:
            self.place += 1
            other = self._unary()
        elif operator in ("IN", "NOT"):
            self.place += 1
            if operator == "NOT":
                self._require("IN")
                operator = "NOT IN"
            other = self._listed()
        else:
            return left
        return _compound("RelationalExpression", expr=left, op=operator, other=other)

    def _unary(self) -> Any:
        if self._follows("!"):
            return _compound("UnaryNot", expr=self._primary())
        return self._primary()

    def _primary(self) -> Any:
        piece = self._pieces[self.place]
        if piece == "(":
            return self._bracketed()
        term = _term(piece)
        self.place += 1
        return self._call(piece) if term is None else term

    def _bracketed(self) -> Any:
        (inner,) = self._listed(most=1)
        return inner

    def _call(self, name: str) -> CompValue:
        word = name.upper()
        if word in _FUNCTIONS:
            arguments = self._listed(most=3)
            for names in _FUNCTIONS[word]:
                if len(names) == len(arguments):
                    return _compound(f"Builtin_{word}", **dict(zip(names, arguments, strict=True)))
        elif name in _TAXONOMY:
            return _compound("Function", iri=_TAXONOMY[name], expr=self._listed())
        raise _UnreadableError

    def _listed(self, most: int | None = None) -> list[Any]:
        """Read what stands in brackets, up to so many expressions."""
        self._require("(")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _UnreadableError
        found = [self._expression()]
        while len(found) != most and self._follows(","):
            found.append(self._expression())
        self._require(")")
        self._depth -= 1
        return found


def _compound(name: str, **values: Any) -> CompValue:
    made = CompValue(name, **values)
    made.ctx = None  # it is looked for at each access, and so found at once
    return made


@lru_cache(maxsize=4096)
def _term(piece: str) -> rdflib.Variable | rdflib.URIRef | rdflib.Literal | None:
    """Return the variable or the slot that a piece is."""
    node = node_of(piece)
    if node is None or node.is_type:
        return None
    found = node.node
    if isinstance(found, Variable):
        return rdflib.Variable(found.value)
    if isinstance(found, NamedNode):
        return rdflib.URIRef(found.value)
    number, datatype = node.key[2], node.key[1]
    return rdflib.Literal(number, datatype=rdflib.URIRef(datatype))

"""A query as pieces: constants cut out, and its WHERE group found.

What stands between spaces in a skeleton is a piece: a token, except that a sign
goes with its number and a path's ``*`` with what it repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pyoxigraph import Literal, NamedNode

from semantic.sparql.exact import Context, contexts
from semantic.sparql.lexer import Kind, Token
from semantic.sparql.query import QueryText
from semantic.sparql.slots import SlottedText, slot
from semantic.terms import Term

_SIGNS = ("+", "-")
_CALL = re.compile(r"\b(COALESCE|CONCAT)(\s+)\(", re.IGNORECASE)
"""Functions that pyoxigraph's parser takes only with their bracket right behind them."""
_NO_ARGUMENTS = re.compile(r"\b(BNODE)\s*\(\s*\)", re.IGNORECASE)
"""Likewise, and nothing inside."""


def with_calls_closed(text: str) -> str:
    """Return the text as long as it was, with no space before some functions' brackets."""
    return _CALL.sub(r"\2\1(", text)


def cut_constants(tokens: Sequence[Token]) -> tuple[list[str], tuple[Term, ...], list[int]]:
    """Return the query's pieces with slots for its constants, these, and the pieces' offsets."""
    pieces: list[str] = []
    constants: list[Term] = []
    offsets: list[int] = []
    places = contexts([token.text for token in tokens])
    for index, token in enumerate(tokens):
        term, piece = token.term, token.text
        if places[index][0] is Context.PATTERN and _is_path_modifier(tokens, index):
            pieces[-1] += piece  # rdflib's grammar allows no space before one
            continue
        if _is_signed(tokens, index):
            sign = pieces.pop()
            offsets.pop()
            if places[index][0] is not Context.PATTERN and _after_operand(tokens, index - 1):
                term, piece = None, sign + piece
            else:
                assert isinstance(term, Literal)
                term = Literal(sign + term.value, datatype=term.datatype)
        if term is not None and not _must_stay(tokens, index, *places[index]):
            piece = str(slot(len(constants), term))
            constants.append(term)
        pieces.append(piece)
        offsets.append(token.offset)
    return pieces, tuple(constants), offsets


def _is_signed(tokens: Sequence[Token], index: int) -> bool:
    """Whether a token is a number right after a sign."""
    token = tokens[index]
    signed = index > 0 and token.glued and tokens[index - 1].text in _SIGNS
    return signed and isinstance(token.term, Literal) and _is_number(token)


def _is_number(token: Token) -> bool:
    return token.text[0].isdigit() or token.text[0] == "."


def _after_operand(tokens: Sequence[Token], sign: int) -> bool:
    """Whether a sign follows something that it could be added to."""
    if sign == 0:
        return False
    before = tokens[sign - 1]
    return before.kind is Kind.VARIABLE or before.text == ")" or before.term is not None


def _is_path_modifier(tokens: Sequence[Token], index: int) -> bool:
    """Whether a ``*``, ``+`` or ``?`` may belong to the path before it."""
    if tokens[index].text not in ("*", "+", "?") or index == 0:
        return False
    before = tokens[index - 1]
    after = tokens[index + 1] if index + 1 < len(tokens) else before
    signs = after.glued and _is_number(after)
    return not signs and (isinstance(before.term, NamedNode) or before.text in (")", "a"))


def _must_stay(tokens: Sequence[Token], index: int, context: Context, clause: str) -> bool:
    """Whether the grammar or the analysis needs to see this constant itself."""
    before = [token.text.upper() for token in tokens[max(0, index - 2) : index]]
    if isinstance(tokens[index].term, NamedNode):
        called = index + 1 < len(tokens) and tokens[index + 1].text == "("
        in_pattern = context is Context.PATTERN and clause not in ("GROUP", "ORDER", "HAVING")
        return called and (not in_pattern or before[-1:] == ["FILTER"])  # otherwise a list follows
    return before[-1:] in (["LIMIT"], ["OFFSET"]) or before == ["SEPARATOR", "="]


def split(pieces: Sequence[str], base: str) -> QueryText | None:
    """Return the text before the WHERE group, its inside, and the text after it, if it has one."""
    groups = list(_top_groups(pieces))
    short = pieces[0].upper() == "CONSTRUCT" and pieces[1] != "{"
    which = 1 if pieces[0].upper() == "CONSTRUCT" and not short else 0
    if len(groups) <= which:
        return None
    start, end = groups[which]
    inside = _written(pieces[start + 1 : end])
    head = [piece for piece in pieces[:start] if piece.upper() != "WHERE"]
    if short:
        head.append(f"{{ {inside} }}")
    tail = _written(pieces[end + 1 :])
    return QueryText(SlottedText(_written(head)), SlottedText(inside), SlottedText(tail), base)


def _written(pieces: Iterable[str]) -> str:
    return _CALL.sub(r"\1(", _NO_ARGUMENTS.sub(r"\1()", " ".join(pieces)))


def _top_groups(pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and last positions of the outermost groups in braces."""
    braces = brackets = start = 0
    for index, piece in enumerate(pieces):
        brackets += (piece == "(") - (piece[0] == ")")  # a path's ")*" is one piece
        if piece == "{":
            if braces == 0 and brackets == 0:
                start = index
            braces += 1
        elif piece == "}":
            braces -= 1
            if braces == 0 and brackets == 0:
                yield start, index

"""Keeping lexical forms apart in an evaluator that does not.

pyoxigraph's store keeps the *value* of a number, a boolean, a date or a duration:
``"01"^^xsd:integer`` and ``"1"^^xsd:int`` come back as ``1``, and join with it. SPARQL
matches triple patterns by term. So a literal that the store would change is stored
under a datatype of ours that the store leaves alone (`protect`), which keeps terms
apart; and in the query every variable of an expression is put through a function
that gives the value back (`value_text`).

A variable stays as it is where a term and not a value is asked for: in BOUND,
sameTerm and COUNT, alone in ``(?x AS ?y)``, in GROUP BY. STR and DATATYPE get the
original's lexical form and datatype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache

from pyoxigraph import Literal, NamedNode, Quad, Store

from semantic.sparql.slots import slot_of_text
from semantic.terms import Term
from semantic.vocabulary import GM, RDF, XSD

_PROTECTED = "urn:graphmatch:protected:"
_PLAIN = frozenset({XSD["string"].value, RDF["langString"].value})
VALUE, _LEXICAL, _DATATYPE = GM["value"], GM["lexical"], GM["datatype"]


@lru_cache(maxsize=65_536)
def protect(term: Term) -> Term:
    """Return the term as it has to be stored so that it comes back as it is.

    Examples
    --------
    >>> protect(Literal("1", datatype=XSD["integer"])).datatype == XSD["integer"]
    True
    >>> unprotect(protect(Literal("01", datatype=XSD["integer"]))).value
    '01'
    """
    if not isinstance(term, Literal) or term.datatype.value in _PLAIN:
        return term
    store = Store()
    store.add(Quad(VALUE, VALUE, term))
    if next(iter(store)).object == term:
        return term
    return Literal(term.value, datatype=NamedNode(_PROTECTED + term.datatype.value))


def is_protected(term: Term) -> bool:
    """Whether a term stands for one that the store would change."""
    return isinstance(term, Literal) and term.datatype.value.startswith(_PROTECTED)


def unprotect(term: Term) -> Term:
    """Return the term that a stored one stands for."""
    if isinstance(term, Literal) and term.datatype.value.startswith(_PROTECTED):
        datatype = term.datatype.value.removeprefix(_PROTECTED)
        return Literal(term.value, datatype=NamedNode(datatype))
    return term


def _lexical(term: Term) -> Term:
    return Literal(term.value) if is_protected(term) and isinstance(term, Literal) else term


def _datatype(term: Term) -> Term | None:
    if not isinstance(term, Literal):
        return None
    original = unprotect(term)
    assert isinstance(original, Literal)
    return original.datatype


FUNCTIONS: dict[NamedNode, Callable[..., Term | None]] = {
    VALUE: unprotect,
    _LEXICAL: _lexical,
    _DATATYPE: _datatype,
}
"""What `value_text` calls; to be given to the evaluator."""


class Context(Enum):
    """What a piece of a query stands in."""

    PATTERN = "pattern"  # triples, VALUES, projection: terms
    VALUE = "value"  # an expression: values
    LEXICAL = "lexical"  # the argument of STR
    TERM = "term"  # the argument of BOUND, sameTerm, COUNT


_TERM_FUNCTIONS = frozenset({"BOUND", "SAMETERM", "COUNT", "DATATYPE"})
_CLAUSES = frozenset({"SELECT", "HAVING", "FILTER", "BIND", "VALUES", "GROUP", "ORDER", "LIMIT"})
_EXPRESSION_CLAUSES = frozenset({"SELECT", "GROUP", "ORDER", "HAVING"})


def contexts(pieces: Sequence[str]) -> list[tuple[Context, bool]]:
    """Return what each piece of a query stands in, and whether ORDER BY orders by it.

    Examples
    --------
    >>> found = contexts("ASK { ?s <urn:p> ?x FILTER ( ?x > 5 ) }".split())
    >>> [context.value for context, _ in found][4:8]
    ['pattern', 'pattern', 'pattern', 'value']
    """
    found = []
    open_: list[Context] = []
    clause = ""
    for index, piece in enumerate(pieces):
        context = open_[-1] if open_ else Context.PATTERN
        found.append((context, clause == "ORDER" and not open_))
        if piece == "(":
            open_.append(_opened(pieces, index, context, clause))
        elif piece == "{":
            open_.append(Context.PATTERN)
            clause = ""
        elif piece[0] in ")}" and open_:
            open_.pop()
        elif piece.upper() in _CLAUSES:
            clause = piece.upper()
    return found


def _opened(pieces: Sequence[str], index: int, context: Context, clause: str) -> Context:
    """Return what an opening bracket opens."""
    before = pieces[index - 1] if index else ""
    word = before.upper()
    if context is Context.PATTERN and clause not in _EXPRESSION_CLAUSES:
        # among patterns: a filter's, a function's, or that of a list or a path
        of_filter = index > 1 and pieces[index - 2].upper() == "FILTER"
        if not of_filter and (not before.isalpha() or word in ("VALUES", "A", "WHERE")):
            return Context.PATTERN
    if word in _TERM_FUNCTIONS:
        return Context.TERM
    if word == "STR" or before == str(XSD["string"]):
        return Context.LEXICAL
    return Context.VALUE


def value_text(pieces: Sequence[str]) -> tuple[list[str], frozenset[int]]:
    """Return a query's pieces with its expressions put through `FUNCTIONS`.

    Parameters
    ----------
    pieces
        The query's tokens, constants as slots.

    Returns
    -------
    pieces
        As many as there were.
    values
        The slots of constants in expressions: these must not be protected.

    Examples
    --------
    >>> " ".join(value_text("ASK { ?s <urn:p> ?x FILTER ( ?x > ?s ) }".split())[0])
    'ASK { ?s <urn:p> ?x FILTER ( <urn:graphmatch:value>(?x) > <urn:graphmatch:value>(?s) ) }'
    """
    written: list[str] = []
    values: set[int] = set()
    for index, (piece, (context, ordered)) in enumerate(zip(pieces, contexts(pieces), strict=True)):
        if context in (Context.VALUE, Context.LEXICAL):
            values.update(slot_of_text(piece))
        if piece[0] == "?" and len(piece) > 1:
            written.append(_variable(pieces, index, context, ordered=ordered))
        elif piece.upper() == "DATATYPE":
            written.append(str(_DATATYPE))
        else:
            written.append(piece)
    return written, frozenset(values)


def _variable(pieces: Sequence[str], index: int, context: Context, *, ordered: bool) -> str:
    piece = pieces[index]
    before = pieces[index - 1].upper() if index else ""
    after = pieces[index + 1].upper() if index + 1 < len(pieces) else ""
    if context is Context.PATTERN:
        return f"({VALUE}({piece}))" if ordered else piece
    if context is Context.TERM or before == "AS" or (before == "(" and after == "AS"):
        return piece
    return f"{_LEXICAL if context is Context.LEXICAL else VALUE}({piece})"

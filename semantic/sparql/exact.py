"""Keeping lexical forms apart in an evaluator that does not.

pyoxigraph's store keeps the *value* of a number, a boolean, a date or a duration:
``"01"^^xsd:integer`` and ``"1"^^xsd:int`` come back as ``1``, and join with it. SPARQL
matches triple patterns by term. So a literal that the store would change is stored
under a datatype of ours that the store leaves alone (`protect`), which keeps terms
apart; and in the query every variable of an expression is put through a function
that gives the value back (`value_text`).

A variable stays as it is where a term and not a value is asked for: in BOUND,
sameTerm and COUNT, alone in ``(?x AS ?y)``, in GROUP BY, and where COALESCE, IF or
SAMPLE gives it to one of these. STR and DATATYPE get the original's lexical form and
datatype. MIN and MAX give values: they come back as the store writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache

from pyoxigraph import Literal, NamedNode, Quad, Store

from semantic.pattern import COMPARE
from semantic.sparql.comparison import compare_quantities
from semantic.sparql.slots import slot_of_text
from semantic.terms import Term
from semantic.vocabulary import GM, RDF, XSD

_PROTECTED = "urn:graphmatch:protected:"
_PLAIN = frozenset({XSD["string"].value, RDF["langString"].value})
VALUE, LEXICAL, _DATATYPE = GM["value"], GM["lexical"], GM["datatype"]


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
    LEXICAL: _lexical,
    _DATATYPE: _datatype,
    COMPARE: compare_quantities,
}
"""What `value_text` and `semantic.sparql.quantities` call; to be given to the evaluator."""


class Context(Enum):
    """What a piece of a query stands in."""

    PATTERN = "pattern"  # triples, VALUES, projection: terms
    VALUE = "value"  # an expression: values
    LEXICAL = "lexical"  # the argument of STR
    TERM = "term"  # the argument of BOUND, sameTerm, COUNT
    CONDITION = "condition"  # the first argument of an IF of which a term is asked


_TERM_FUNCTIONS = frozenset({"BOUND", "SAMETERM", "COUNT", "DATATYPE"})
_CLAUSES = frozenset({"SELECT", "HAVING", "FILTER", "BIND", "VALUES", "GROUP", "ORDER", "LIMIT"})
_EXPRESSION_CLAUSES = frozenset({"SELECT", "GROUP", "ORDER", "HAVING"})
_CHOICES = frozenset({"COALESCE", "IF", "SAMPLE"})
"""Functions that give one of their arguments."""


def contexts(pieces: Sequence[str]) -> list[tuple[Context, str]]:
    """Return what each piece of a query stands in, and the clause around it.

    Examples
    --------
    >>> found = contexts("ASK { ?s <urn:p> ?x FILTER ( ?x > 5 ) }".split())
    >>> [context.value for context, _ in found][4:8]
    ['pattern', 'pattern', 'pattern', 'value']
    """
    found = []
    open_: list[tuple[Context, str]] = []
    context, clause = Context.PATTERN, ""
    for index, piece in enumerate(pieces):
        found.append((context, clause))
        if piece == "(":
            open_.append((context, clause))
            context = _opened(pieces, index, context, clause)
        elif piece == "{":
            open_.append((context, clause))
            context, clause = Context.PATTERN, ""
        elif piece[0] in ")}" and open_:
            context, clause = open_.pop()
        elif piece == "," and context is Context.CONDITION:
            context = Context.TERM
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
    if word in _CHOICES and _keeps_term(pieces, index - 1, _closing(pieces, index), context):
        return Context.CONDITION if word == "IF" else Context.TERM
    if word in ("STR", "GROUP_CONCAT") or before == str(XSD["string"]):
        return Context.LEXICAL
    return Context.VALUE


def _closing(pieces: Sequence[str], index: int) -> int:
    """Return the place of the bracket that closes the one at `index`."""
    depth = 0
    for place in range(index, len(pieces)):
        depth += (pieces[place] == "(") - (pieces[place][0] == ")")
        if depth == 0:
            return place
    return len(pieces) - 1


def _keeps_term(pieces: Sequence[str], first: int, last: int, context: Context) -> bool:
    """Whether the expression of these pieces is asked for its term, not its value."""
    before = pieces[first - 1].upper() if first else ""
    after = pieces[last + 1].upper() if last + 1 < len(pieces) else ""
    if before == "(" and after == "AS":
        return True
    return context is Context.TERM and _is_alone(before, after)


def _is_alone(before: str, after: str) -> bool:
    """Whether what stands between two pieces is a whole argument."""
    return before in ("(", ",", "DISTINCT") and after[:1] in (")", ",", ";")


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
    for index, (piece, (context, clause)) in enumerate(zip(pieces, contexts(pieces), strict=True)):
        slots = slot_of_text(piece)
        is_variable = piece[0] == "?" and len(piece) > 1
        wrapper = _wrapper(pieces, index, context, clause) if slots or is_variable else None
        if is_variable:
            written.append(f"{wrapper}({piece})" if wrapper else piece)
        elif slots and piece[0] == '"' and wrapper == LEXICAL:
            written.append(f"{wrapper}({piece})")
        elif piece.upper() == "DATATYPE":
            written.append(str(_DATATYPE))
        else:
            if wrapper:
                values.update(slots)
            written.append(piece)
        if clause == "ORDER" and context is Context.PATTERN and written[-1] != piece:
            written[-1] = f"({written[-1]})"
    return written, frozenset(values)


def _wrapper(pieces: Sequence[str], index: int, context: Context, clause: str) -> NamedNode | None:
    """Return the function that a variable is put through; ``None`` where its term is asked for."""
    if context is Context.PATTERN:
        return VALUE if clause == "ORDER" else None
    before = pieces[index - 1].upper() if index else ""
    after = pieces[index + 1].upper() if index + 1 < len(pieces) else ""
    if before == "AS" or _keeps_term(pieces, index, index, context):
        return None
    alone = _is_alone(before, after)
    return LEXICAL if context is Context.LEXICAL and alone else VALUE

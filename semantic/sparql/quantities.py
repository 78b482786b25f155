"""Comparisons with quantities, which the evaluator cannot make: written as calls of a function.

``?size >= "40 GB"^^cdt:ucum`` becomes ``gm:compare(?size, ">=", "40 GB"^^cdt:ucum)``,
(`semantic.sparql.comparison`).

A quantity may stand in triple patterns, in VALUES, in IN, and beside a comparison's
operator with a variable on the other side. Elsewhere it is refused (`misplaced`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from semantic.pattern import COMPARE
from semantic.sparql.exact import Context, contexts
from semantic.sparql.slots import is_quantity_slot, slot_of_text

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BEFORE = frozenset({"(", ",", "&&", "||"})
_AFTER = frozenset({")", ",", "&&", "||", "AS"})


def with_comparisons(pieces: Sequence[str]) -> list[str]:
    """Return a query's pieces with its comparisons with quantities as calls.

    Examples
    --------
    >>> q = '"1"^^<urn:graphmatch:quantity>'
    >>> " ".join(with_comparisons(f"ASK {{ ?s <urn:p> ?x FILTER ( {q} < ?x ) }}".split()))[29:]
    '<urn:graphmatch:compare> ( ?x , ">" , "1"^^<urn:graphmatch:quantity> ) ) }'
    """
    written = list(pieces)
    for index in reversed(list(_compared(pieces))):
        left, operator, right = pieces[index - 1 : index + 2]
        if is_quantity_slot(left):
            left, operator, right = right, _MIRRORED[operator], left
        call = [str(COMPARE), "(", left, ",", f'"{operator}"', ",", right, ")"]
        written[index - 1 : index + 2] = call
    return written


def _compared(pieces: Sequence[str]) -> Iterator[int]:
    """Yield the places of operators with a variable on one side and a quantity on the other."""
    for index in _comparing(pieces):
        if any(map(is_quantity_slot, (pieces[index - 1], pieces[index + 1]))):
            yield index


def _comparing(pieces: Sequence[str]) -> Iterator[int]:
    """Yield the places of operators with one variable and one slot around them, and no more."""
    for index in range(2, len(pieces) - 2):
        if pieces[index] in _MIRRORED:
            around = pieces[index - 1], pieces[index + 1]
            if (
                any(map(slot_of_text, around))
                and any(piece[0] in "?$" for piece in around)
                and pieces[index - 2] in _BEFORE
                and pieces[index + 2].upper() in _AFTER
            ):
                yield index


def compared_slots(pieces: Sequence[str]) -> Iterator[tuple[str, int, bool]]:
    """Yield variables and the slots that they are compared with, and whether for equality.

    They are looked for in the text, for rdflib's algebra leaves out filters under EXISTS.

    Examples
    --------
    >>> pieces = "( ?v >= <urn:graphmatch:slot:0> && ?w IN ( <urn:graphmatch:slot:1> ) )".split()
    >>> list(compared_slots(pieces))
    [('v', 0, False), ('w', 1, True)]
    """
    for index in _comparing(pieces):
        left, operator, right = pieces[index - 1 : index + 2]
        variable, constant = (left, right) if slot_of_text(right) else (right, left)
        for number in slot_of_text(constant):
            yield variable[1:], number, operator == "="
    for index, piece in enumerate(pieces):
        if piece.upper() == "IN" and index > 0 and pieces[index + 1] == "(":
            negated = pieces[index - 1].upper() == "NOT"
            variable = pieces[index - 2 if negated else index - 1]
            for listed in takewhile(lambda p: p != ")", pieces[index + 1 :]):
                for number in slot_of_text(listed) if variable[0] in "?$" else ():
                    yield variable[1:], number, not negated


def misplaced(pieces: Sequence[str]) -> int | None:
    """Return the first piece that is a quantity where it cannot be compared, if there is one."""
    slots = [index for index, piece in enumerate(pieces) if is_quantity_slot(piece)]
    if not slots:
        return None
    taken = {place for index in _compared(pieces) for place in (index - 1, index + 1)}
    places = contexts(pieces)
    for index in slots:
        in_pattern = places[index][0] is Context.PATTERN
        if not in_pattern and index not in taken and not _is_listed(pieces, index):
            return index
    return None


def _is_listed(pieces: Sequence[str], index: int) -> bool:
    """Whether a piece is in the list of an IN (of a NOT IN, a quantity would be an error)."""
    first = index
    while first > 0 and (pieces[first] == "," or pieces[first][0] in '"<'):
        first -= 1
    words = [piece.upper() for piece in pieces[max(0, first - 2) : first]]
    return pieces[first] == "(" and words[-1:] == ["IN"] and words[:1] != ["NOT"]

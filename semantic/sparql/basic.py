"""The skeleton of a basic graph pattern with filters, made without a parser.

Most subscriptions are a SELECT or an ASK whose WHERE group has triple patterns
(`semantic.sparql.basic_patterns`) and filters that an index takes
(`semantic.sparql.basic_filters`) only. Their grammar is small, and what follows from them is
known: one branch, nothing left open but of the filters, a solution rests on the publication when
one of the patterns does. The skeleton made here is, field by field, that of the general way
(`semantic.sparql.skeleton`), which takes a hundred times as long.

Whatever else stands in a query, and whatever is not right, is left to the general way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pyoxigraph import Variable

from semantic.pattern import Branch, Form, TriplePattern
from semantic.sparql.algebra import rewritable_literals
from semantic.sparql.basic_filters import constraint
from semantic.sparql.basic_patterns import LITERAL, NODE, VARIABLE, Triple, ordered, triples_of
from semantic.sparql.exact import value_text
from semantic.sparql.filters import necessary_filters
from semantic.sparql.quantities import compared_slots, misplaced, with_comparisons
from semantic.sparql.query import ANYTHING, Mention, QueryText, Resting, Skeleton
from semantic.sparql.slots import SlottedText
from semantic.sparql.uses import uses_among

_HEAD = re.compile(
    r"(?:(?P<ask>ASK)|SELECT (?P<distinct>DISTINCT )?(?P<names>\*|\?\w+(?: \?\w+)*))(?: WHERE)?",
    re.IGNORECASE | re.ASCII,
)


def skeleton_of(pieces: Sequence[str]) -> Skeleton | None:
    """Return the skeleton of a query, where it is one of these.

    Parameters
    ----------
    pieces
        Its text, constants as slots.

    Examples
    --------
    >>> pieces = "SELECT ?x { ?x a <urn:graphmatch:slot:0> }".split()
    >>> print(*skeleton_of(pieces).branches[0].patterns)
    ?x rdf:type <urn:graphmatch:slot:0>
    >>> skeleton_of("ASK { ?s ?p _:b }".split()) is None
    True
    """
    start = next((n for n, piece in enumerate(pieces[:-1]) if piece == "{"), 0)
    head = _HEAD.fullmatch(" ".join(pieces[:start]))
    if head is None or pieces[-1] != "}":
        return None
    group = _group(pieces, start + 1)
    projection = _projection(head, pieces)
    if group is None or projection is None or misplaced(pieces) is not None:
        return None
    return _skeleton(pieces, start, head, projection, *group)


def _group(pieces: Sequence[str], first: int) -> tuple[list[Triple], list[Any]] | None:
    """Return the triple patterns of the WHERE group and the expressions of its filters."""
    triples: list[Triple] = []
    expressions: list[Any] = []
    end = len(pieces) - 1
    filters = [n for n in range(first, end) if pieces[n].upper() == "FILTER"]
    begin = first
    for place in (*filters, end):
        separated = begin > first and pieces[begin] == "."
        block = triples_of(pieces[begin + separated : place])
        if block is None:
            return None
        triples += block
        if place < end:
            found = constraint(pieces, place + 1)
            if found is None:
                return None
            expressions.append(found[0])
            begin = found[1]
    return (triples, expressions) if triples else None


def _projection(head: re.Match[str], pieces: Iterable[str]) -> tuple[Variable, ...] | None:
    if head["ask"]:
        return ()
    names = head["names"].split()
    if names == ["*"]:
        names = list(dict.fromkeys(piece for piece in pieces if piece[0] == "?"))
        return tuple(Variable(name[1:]) for name in names) or None
    distinct = len(set(names)) == len(names) and all(map(NODE.fullmatch, names))
    return tuple(Variable(name[1:]) for name in names) if distinct else None


def _skeleton(
    pieces: Sequence[str],
    start: int,
    head: re.Match[str],
    projection: tuple[Variable, ...],
    stated: Sequence[Triple],
    expressions: list[Any],
) -> Skeleton:
    triples = ordered(stated)
    patterns = tuple(TriplePattern(s.node, p.node, o.node) for s, p, o in triples)
    certain = Branch(patterns).variables
    found = [necessary_filters(expression, certain) for expression in expressions]
    plain = exact = _text(pieces, start)
    values: frozenset[int] = frozenset()
    if expressions:
        written = with_comparisons(pieces)
        valued, values = value_text(written)
        plain, exact = _text(written, start), _text(valued, start)
    literals = (o.slot for _, _, o in triples if o.kind == LITERAL and o.slot is not None)
    return Skeleton(
        Form.ASK if head["ask"] else Form.SELECT,
        projection,
        head["distinct"] is not None,
        (Branch(patterns, tuple(filter_ for filters, _ in found for filter_ in filters)),),
        tuple(dict.fromkeys(patterns)),
        tuple(dict.fromkeys(reason for _, left_open in found for reason in left_open)),
        plain,
        exact,
        values,
        SlottedText(_condition(triples, _unused_prefix(pieces))),
        Resting.SOLUTIONS,
        rewritable_literals(expressions).union(literals),
        _mentions(triples),
        uses_among(
            ((s.text, p.slot, o.text, o.slot) for s, p, o in triples if p.slot is not None),
            ((f"?{name}", slot, same) for name, slot, same in compared_slots(pieces)),
        ),
    )


def _text(pieces: Sequence[str], start: int) -> QueryText:
    before = " ".join(piece for piece in pieces[:start] if piece.upper() != "WHERE")
    inside = " ".join(pieces[start + 1 : -1])
    return QueryText(SlottedText(before), SlottedText(inside), SlottedText(""))


def _unused_prefix(pieces: Sequence[str]) -> str:
    prefix = "gm_"
    while any(piece.startswith("?" + prefix) for piece in pieces):
        prefix += "_"
    return prefix


def _condition(triples: Iterable[Triple], prefix: str) -> str:
    """Write the filter that `semantic.sparql.resting.condition` writes."""
    tests = []
    for number, triple in enumerate(triples):
        bound = dict.fromkeys(n.text for n in triple if n.kind == VARIABLE)
        guard = "".join(f"BOUND({variable}) && " for variable in bound)
        written = " ".join([place.text for place in triple])
        tests.append(f"({guard}EXISTS {{  GRAPH ?{prefix}{number} {{ {written} }} }})")
    return " || ".join(tests)


def _mentions(triples: Iterable[Triple]) -> frozenset[Mention]:
    return frozenset(
        (predicate.node, None if object_.kind == VARIABLE else object_.node)
        if predicate.kind != VARIABLE
        else ANYTHING
        for _, predicate, object_ in triples
    )

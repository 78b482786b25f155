"""The skeleton of a basic graph pattern, made without a parser.

Most subscriptions are a SELECT or an ASK whose WHERE group has triple patterns only:
variables, IRIs and literals, with ``.``, ``;``, ``,`` and ``a``. Their grammar is a loop,
and what follows from them is known: one branch, nothing left open, a solution rests on the
publication when one of the patterns does. The skeleton made here is, field by field, that
of the general way (`semantic.sparql.skeleton`), which takes a hundred times as long.

Whatever else stands in a query, and whatever is not right, is left to the general way.
The patterns are in the order in which rdflib puts them: those with the fewest variables
that are not bound before, then those whose variables occur most.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode, Variable

from semantic.pattern import Branch, Form, TriplePattern
from semantic.sparql.query import Mention, QueryText, Resting, Skeleton
from semantic.sparql.slots import SlottedText
from semantic.sparql.uses import SlotUse
from semantic.terms import Node
from semantic.vocabulary import TYPE

_HEAD = re.compile(
    r"(?:(?P<ask>ASK)|SELECT (?P<distinct>DISTINCT )?(?P<names>\*|\?\w+(?: \?\w+)*))(?: WHERE)?",
    re.IGNORECASE | re.ASCII,
)
_NODE = re.compile(
    r"""\?(?P<variable>[A-Za-z_]\w*)
    | <(?P<iri>urn:graphmatch:slot:(?P<number>\d+))>
    | "(?P<literal>\d+)"\^\^<(?P<datatype>urn:graphmatch:(?:slot|quantity))>
    | (?P<type>a)""",
    re.VERBOSE | re.ASCII,
)
_VARIABLE, _IRI, _LITERAL = 20, 30, 40
"""How rdflib orders terms of different kinds."""

_Key: TypeAlias = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class _Place:
    """A place of a triple pattern: the node as SPARQL writes it, itself, and its slot."""

    text: str
    node: Node
    kind: int
    slot: int | None
    key: _Key

    @property
    def is_type(self) -> bool:
        """Whether it is ``a``: all other IRIs are slots."""
        return self.kind == _IRI and self.slot is None


_Triple: TypeAlias = tuple[_Place, _Place, _Place]
_Row: TypeAlias = tuple[int, bool, tuple[_Key, ...], list[str], _Triple]
"""A triple with what it is ordered by, and its variables."""


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
    stated = _triples(pieces[start + 1 : -1])
    if not stated:
        return None
    projection = _projection(head, stated)
    return None if projection is None else _skeleton(pieces, start, head, projection, stated)


def _skeleton(
    pieces: Sequence[str],
    start: int,
    head: re.Match[str],
    projection: tuple[Variable, ...],
    stated: list[_Triple],
) -> Skeleton:
    triples = _ordered(stated)
    patterns = tuple(TriplePattern(s.node, p.node, o.node) for s, p, o in triples)
    before = " ".join(piece for piece in pieces[:start] if piece.upper() != "WHERE")
    inside = " ".join(pieces[start + 1 : -1])
    text = QueryText(SlottedText(before), SlottedText(inside), SlottedText(""))
    return Skeleton(
        Form.ASK if head["ask"] else Form.SELECT,
        projection,
        head["distinct"] is not None,
        (Branch(patterns),),
        tuple(dict.fromkeys(patterns)),
        (),
        text,
        text,
        frozenset(),
        SlottedText(_condition(triples, _unused_prefix(pieces))),
        Resting.SOLUTIONS,
        frozenset(o.slot for _, _, o in triples if o.kind == _LITERAL and o.slot is not None),
        _mentions(triples),
        _uses(triples),
    )


def _projection(head: re.Match[str], triples: Iterable[_Triple]) -> tuple[Variable, ...] | None:
    if head["ask"]:
        return ()
    names = head["names"].split()
    if names == ["*"]:
        names = list(dict.fromkeys(n.text for t in triples for n in t if n.kind == _VARIABLE))
        return tuple(Variable(name[1:]) for name in names) or None
    distinct = len(set(names)) == len(names) and all(map(_NODE.fullmatch, names))
    return tuple(Variable(name[1:]) for name in names) if distinct else None


def _triples(pieces: Iterable[str]) -> list[_Triple] | None:
    """Return the triple patterns, or ``None`` where there is something else."""
    found: list[_Triple] = []
    rest = iter(pieces)
    subject = predicate = None
    separator = "."
    for piece in rest:
        if separator == ".":
            subject, piece = _place(piece), next(rest, "")
        if separator != ",":
            predicate, piece = _place(piece), next(rest, "")
        object_ = _place(piece)
        if subject is None or predicate is None or object_ is None:
            return None
        if subject.kind == _LITERAL or predicate.kind == _LITERAL:
            return None
        if subject.is_type or object_.is_type:
            return None
        found.append((subject, predicate, object_))
        separator = next(rest, "")
        if separator not in (".", ";", ",", ""):
            return None
    return found if separator in (".", "") else None


@lru_cache(maxsize=4096)
def _place(piece: str) -> _Place | None:
    found = _NODE.fullmatch(piece)
    if found is None:
        return None
    if name := found["variable"]:
        return _Place(piece, Variable(name), _VARIABLE, None, (_VARIABLE, name, ""))
    if number := found["literal"]:
        datatype = found["datatype"]
        literal = Literal(number, datatype=NamedNode(datatype))
        return _Place(piece, literal, _LITERAL, int(number), (_LITERAL, datatype, number))
    iri = NamedNode(found["iri"]) if found["iri"] else TYPE
    slot = int(found["number"]) if found["iri"] else None
    return _Place(str(iri), iri, _IRI, slot, (_IRI, iri.value, ""))


def _ordered(triples: Sequence[_Triple]) -> list[_Triple]:
    """Return the triples in the order in which rdflib's `translateQuery` puts them."""
    rows, often = _rows(triples)
    known: set[str] = set()
    ranked: list[tuple[int, int]] = []
    order = list(range(len(rows)))
    grown = True
    for first in range(len(rows)):
        if grown:
            ranked = sorted((_unknown(rows[number], known), number) for number in order[first:])
            order[first:] = [number for _, number in ranked]
        left, before = ranked[first - len(rows) :], len(known)
        if before == often:
            break
        known.update(*(rows[number][3] for rank, number in left if rank == left[0][0]))
        grown = len(known) > before
    return [rows[number][4] for number in order]


def _rows(triples: Sequence[_Triple]) -> tuple[list[_Row], int]:
    """Return the triples in the order that they have where as many variables are known."""
    variables = [[n.text for n in triple if n.kind == _VARIABLE] for triple in triples]
    often = Counter(chain.from_iterable(variables))
    rows: list[_Row] = [
        (-sum(map(often.__getitem__, names)), o.kind != _LITERAL, (s.key, p.key, o.key), names, t)
        for names, t in zip(variables, triples, strict=True)
        for s, p, o in (t,)
    ]
    rows.sort(key=itemgetter(0, 1, 2))
    return rows, len(often)


def _unknown(row: _Row, known: set[str]) -> int:
    return len(row[3]) - sum(map(known.__contains__, row[3]))


def _unused_prefix(pieces: Sequence[str]) -> str:
    prefix = "gm_"
    while any(piece.startswith("?" + prefix) for piece in pieces):
        prefix += "_"
    return prefix


def _condition(triples: Iterable[_Triple], prefix: str) -> str:
    """Write the filter that `semantic.sparql.resting.condition` writes."""
    tests = []
    for number, triple in enumerate(triples):
        bound = dict.fromkeys(n.text for n in triple if n.kind == _VARIABLE)
        guard = "".join(f"BOUND({variable}) && " for variable in bound)
        written = " ".join([place.text for place in triple])
        tests.append(f"({guard}EXISTS {{  GRAPH ?{prefix}{number} {{ {written} }} }})")
    return " || ".join(tests)


def _mentions(triples: Iterable[_Triple]) -> frozenset[Mention]:
    if any(predicate.kind == _VARIABLE for _, predicate, _ in triples):
        return frozenset({(None, None)})
    return frozenset(
        (predicate.node, None if object_.kind == _VARIABLE else object_.node)
        for _, predicate, object_ in triples
    )


def _uses(triples: Sequence[_Triple]) -> dict[int, tuple[SlotUse, ...]]:
    """Return what `semantic.sparql.uses.uses_of` does: here constants are objects only."""
    siblings: defaultdict[str, dict[tuple[int, int | None], None]] = defaultdict(dict)
    for subject, predicate, object_ in triples:
        if predicate.slot is not None:
            siblings[subject.text][predicate.slot, object_.slot] = None
    return {
        object_.slot: (SlotUse(predicate.slot, tuple(siblings[subject.text])),)
        for subject, predicate, object_ in triples
        if object_.slot is not None and predicate.slot is not None
    }

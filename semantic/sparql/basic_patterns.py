"""Triple patterns, read without a parser and put into rdflib's order.

A block of them is subjects, properties and objects with ``.``, ``;``, ``,`` and ``a``: variables,
IRIs and literals only. rdflib puts first those with the fewest variables that are not bound
before, then those whose variables occur most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode, Variable

from semantic.terms import Node
from semantic.vocabulary import TYPE

NODE = re.compile(
    r"""\?(?P<variable>[A-Za-z_]\w*)
    | <(?P<iri>urn:graphmatch:slot:(?P<number>\d+))>
    | "(?P<literal>\d+)"\^\^<(?P<datatype>urn:graphmatch:(?:slot|quantity))>
    | (?P<type>a)""",
    re.VERBOSE | re.ASCII,
)
VARIABLE, IRI, LITERAL = 20, 30, 40
"""How rdflib orders terms of different kinds."""

_Key: TypeAlias = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class PatternNode:
    """A node of a triple pattern: as SPARQL writes it, itself, its kind and slot."""

    text: str
    node: Node
    kind: int
    slot: int | None
    key: _Key

    @property
    def is_type(self) -> bool:
        """Whether it is ``a``: all other IRIs are slots."""
        return self.kind == IRI and self.slot is None


Triple: TypeAlias = tuple[PatternNode, PatternNode, PatternNode]
_Row: TypeAlias = tuple[int, bool, tuple[_Key, ...], list[str], Triple]
"""A triple with what it is ordered by, and its variables."""


def triples_of(pieces: Iterable[str]) -> list[Triple] | None:
    """Return the triple patterns of a block, or ``None`` where there is something else.

    Examples
    --------
    >>> [s.text + p.text + o.text for s, p, o in triples_of("?s ?p ?o , ?q".split())]
    ['?s?p?o', '?s?p?q']
    >>> triples_of("?s ?p ;".split()) is None
    True
    """
    found: list[Triple] = []
    rest = iter(pieces)
    subject = predicate = None
    separator = "."
    for piece in rest:
        if separator == ".":
            subject, piece = node_of(piece), next(rest, "")
        if separator != ",":
            predicate, piece = node_of(piece), next(rest, "")
        object_ = node_of(piece)
        if subject is None or predicate is None or object_ is None:
            return None
        if subject.kind == LITERAL or predicate.kind == LITERAL:
            return None
        if subject.is_type or object_.is_type:
            return None
        found.append((subject, predicate, object_))
        separator = next(rest, "")
        if separator not in (".", ";", ",", ""):
            return None
    return found if separator in (".", "") else None


@lru_cache(maxsize=4096)
def node_of(piece: str) -> PatternNode | None:
    """Return the node that a piece is, or ``None``."""
    found = NODE.fullmatch(piece)
    if found is None:
        return None
    if name := found["variable"]:
        return PatternNode(piece, Variable(name), VARIABLE, None, (VARIABLE, name, ""))
    if number := found["literal"]:
        datatype = found["datatype"]
        literal = Literal(number, datatype=NamedNode(datatype))
        return PatternNode(piece, literal, LITERAL, int(number), (LITERAL, datatype, number))
    iri = NamedNode(found["iri"]) if found["iri"] else TYPE
    slot = int(found["number"]) if found["iri"] else None
    return PatternNode(str(iri), iri, IRI, slot, (IRI, iri.value, ""))


def ordered(triples: Sequence[Triple]) -> list[Triple]:
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


def _rows(triples: Sequence[Triple]) -> tuple[list[_Row], int]:
    """Return the triples in the order that they have where as many variables are known."""
    variables = [[n.text for n in triple if n.kind == VARIABLE] for triple in triples]
    often = Counter(chain.from_iterable(variables))
    rows: list[_Row] = [
        (-sum(map(often.__getitem__, names)), o.kind != LITERAL, (s.key, p.key, o.key), names, t)
        for names, t in zip(variables, triples, strict=True)
        for s, p, o in (t,)
    ]
    rows.sort(key=itemgetter(0, 1, 2))
    return rows, len(often)


def _unknown(row: _Row, known: set[str]) -> int:
    return len(row[3]) - sum(map(known.__contains__, row[3]))

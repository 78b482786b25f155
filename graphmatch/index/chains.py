"""A publication as one array: its triples, and the chains of those that agree in some places.

For each way of knowing some of a triple's terms (a *kind*, as a pattern has one) the triples that
agree in them are chained, and the first of a chain is found by a hash. The hash is a cheap one: the
tables are small, and what is in them is compared. A filter of the other hash, that of gates, says
at once that no triple has some terms.

Cost: about 10 ns a triple and kind.
"""

from __future__ import annotations

import numpy as np

from graphmatch.index.gates import ANY, KINDS, OBJECT, PREDICATE, SUBJECT, key_of
from graphmatch.index.terms import LOCAL, Ids
from semantic.jit import at, kernel, part

COUNT, TABLE, FILTER, STATED, TRIPLES = range(5)
"""A publication: how many triples, how large its hash tables are, where a filter of all hashes is
(a power of two of bits, to the end), and how many triples there are before those that a variable in
a property's place does not see: attributes that somebody asks for, and which tests a term passes.
Chains of a kind that knows no property are of the others only; in each, triples are in their order.
Then by triple, subject, predicate, object, and the kinds in which it is the first of its chain; by
kind and hash, the first triple of a chain; by kind and triple, the next one."""
WORDS = 4

_S, _P, _O = 0x2545F491, 0x1B873593, 0x3C6EF372
_SHIFT = 17


@part
def term_of(graph: Ids, kind: int, bit: int, column: int, t: int) -> int:
    """Return a triple's term in a column, or `ANY` where the kind does not know it."""
    return int(graph[at(TRIPLES + column * graph[COUNT] + t)]) if kind & bit else ANY


@part
def cell_of(graph: Ids, kind: int, s: int, p: int, o: int) -> int:
    """Return the cell of the chain of triples with the known terms, or a free one."""
    n, size = int(graph[COUNT]), int(graph[TABLE])
    begin = TRIPLES + WORDS * n + kind * size
    place = ((int(s) * _S + int(p) * _P + int(o) * _O) >> _SHIFT) & (size - 1)
    while True:
        t = int(graph[at(begin + place)])
        if t < 0 or (
            ((s == ANY) | (graph[at(TRIPLES + t)] == s))
            & ((p == ANY) | (graph[at(TRIPLES + n + t)] == p))
            & ((o == ANY) | (graph[at(TRIPLES + 2 * n + t)] == o))
        ):
            return begin + place
        place = (place + 1) & (size - 1)


@part
def nexts_of(graph: Ids, kind: int) -> int:
    """Return where the chains of a kind begin: by triple, the next one."""
    n = int(graph[COUNT])
    return TRIPLES + WORDS * n + KINDS * int(graph[TABLE]) + n * kind


@part
def _mark(graph: Ids, key: int) -> None:
    bit = key & (32 * (graph.size - int(graph[FILTER])) - 1)
    graph[at(graph[FILTER] + (bit >> 5))] |= np.int32(1) << np.int32(bit & 31)


@part
def may_have(graph: Ids, key: int) -> bool:
    """Whether some triple may have a pattern of this hash; a hash below 0 is none."""
    bit = key & (32 * (graph.size - int(graph[FILTER])) - 1)
    return key < 0 or graph[at(graph[FILTER] + (bit >> 5))] >> (bit & 31) & 1 != 0


@part
def _chain(graph: Ids, kinds: int) -> None:
    n, size = int(graph[COUNT]), int(graph[TABLE])
    firsts = TRIPLES + 3 * n
    graph[firsts : firsts + n] = 0
    graph[graph[FILTER] :] = 0
    for kind in range(KINDS):
        if not kinds >> kind & 1:
            continue
        graph[firsts + n + kind * size : firsts + n + (kind + 1) * size] = -1
        nexts = nexts_of(graph, kind)
        for t in range((n if kind & PREDICATE else graph[STATED]) - 1, -1, -1):
            s = term_of(graph, kind, SUBJECT, 0, t)
            p = term_of(graph, kind, PREDICATE, 1, t)
            o = term_of(graph, kind, OBJECT, 2, t)
            cell = cell_of(graph, kind, s, p, o)
            following = int(graph[at(cell)])
            if following < 0:
                _mark(graph, key_of(s, p, o))
            else:
                graph[at(firsts + following)] &= ~(1 << kind)
            graph[at(nexts + t)] = following
            graph[at(firsts + t)] |= 1 << kind
            graph[at(cell)] = t


@kernel
def fill(graph: Ids, ids: Ids, places: Ids, tests: Ids, kinds: int) -> None:
    """Write a publication's triples, and chain them.

    Parameters
    ----------
    graph
        `COUNT`, `TABLE`, `FILTER` and `STATED` are written.
    ids
        By term: its id; -1 for a term that gets one of the publication's own.
    places
        Three terms a triple.
    tests
        The triples that say which tests a term passes: shape (tests, 3).
    kinds
        A bit each.
    """
    n, triples = int(graph[COUNT]), len(places) // 3
    for column in range(3):
        begin = TRIPLES + column * n
        for t in range(triples):
            place = places[at(3 * t + column)]
            id = ids[at(place)]
            graph[at(begin + t)] = id if id >= 0 else LOCAL + place
        for t in range(triples, n):
            graph[at(begin + t)] = tests[at(t - triples), column]
    _chain(graph, kinds)


@kernel
def chain(graph: Ids, kinds: int) -> None:
    """Chain the triples by each of some kinds (bit k for kind k)."""
    _chain(graph, kinds)

"""The compiled loop of matching: gates that a publication meets, candidates, joins.

It works in passes, each of which asks for the memory that the next one reads: the cells of the
hash table of gates, the gates' records, their blocks, the rows. So their latencies overlap. A
gate's row whose other pattern the publication does not have is no candidate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.chains import COUNT, TRIPLES, may_have, term_of
from graphmatch.index.comparing import Values
from graphmatch.index.gates import (
    COLUMNS,
    ENTRY,
    KINDS,
    LOW,
    OBJ,
    OBJECT,
    OTHER,
    PRED,
    PREDICATE,
    ROOM,
    SAMPLES,
    SEEN,
    SIZE,
    START,
    SUBJ,
    SUBJECT,
    Gates,
    find,
    key_of,
)
from graphmatch.index.instructions import prefetch
from graphmatch.index.joins import PLAN, SLOT, VARIABLES, frame, join
from graphmatch.index.terms import Ids
from semantic.jit import at, kernel, part

MATCH = 5
"""A match is a row's number, where its solutions begin, how many there are, how many of them are
undecided, and how many variables each binds."""
PROBES, GATES, FILED, CANDIDATES, JOINED, SAMPLED = range(6)
"""The counters: look-ups of gates, gates that were found, rows filed there, rows that were looked
at, rows that were joined. The last is given: whether this publication counts as seen."""

_PROBE = 3
"""A probe while it waits: the lower and the upper part of its hash, or its gate in their place;
triple and kind."""
_AHEAD = 16
"""So many candidates ahead a row is asked for."""


class Work(NamedTuple):
    """What matching writes on: candidates (and probes, from the end); joins."""

    candidates: Ids
    stack: Ids


class Output(NamedTuple):
    """What is found: matches, solutions, and counters."""

    matches: Ids
    solutions: Ids
    counters: NDArray[np.int64]


@part
def _probes(graph: Ids, gates: Gates, scratch: Ids) -> int:
    """Write a probe for each way in which a triple may be a gate; return how many, or -1."""
    n = int(graph[COUNT])
    mask = gates.cells.size - 1
    in_use = 0
    for kind in range(KINDS):
        if gates.kinds[kind]:
            in_use |= 1 << kind
    place = 0
    for kind in range(KINDS):
        if not in_use >> kind & 1:
            continue
        for t in range(n):
            if not graph[at(TRIPLES + 3 * n + t)] >> kind & 1:
                continue
            if place + _PROBE > scratch.size:
                return -1
            key = key_of(
                term_of(graph, kind, SUBJECT, 0, t),
                term_of(graph, kind, PREDICATE, 1, t),
                term_of(graph, kind, OBJECT, 2, t),
            )
            prefetch(gates.cells, key & mask)
            scratch[at(place)] = key & 0x7FFFFFFF
            scratch[at(place + 1)] = key >> 13
            scratch[at(place + 2)] = t * KINDS + kind
            place += _PROBE
    return place // _PROBE


@part
def _found(gates: Gates, scratch: Ids, probes: int) -> int:
    """Put gates that seem to be met in place of the probes; return how many."""
    cells = gates.cells
    mask = cells.size - 1
    met = 0
    for probe in range(0, _PROBE * probes, _PROBE):
        cell = scratch[at(probe)] & mask
        while cells[at(cell)] >= 0:
            if cells[at(cell)] >> 32 == scratch[at(probe + 1)]:
                gate = int(cells[at(cell)] & LOW)
                prefetch(gates.records, gate * COLUMNS)
                scratch[at(met)] = gate
                scratch[at(met + 2)] = scratch[at(probe + 2)]
                met += _PROBE
                break
            cell = (cell + 1) & mask
    return met // _PROBE


@part
def _certain(graph: Ids, gates: Gates, gate: int, probe: int) -> int:
    """Return a probe's gate: hashes may be equal by chance; -1 where there is none."""
    t, kind = probe // KINDS, probe % KINDS
    s = term_of(graph, kind, SUBJECT, 0, t)
    p = term_of(graph, kind, PREDICATE, 1, t)
    o = term_of(graph, kind, OBJECT, 2, t)
    records = gates.records
    if (
        records[at(gate), SUBJ] == s
        and records[at(gate), PRED] == p
        and records[at(gate), OBJ] == o
    ):
        return gate
    return find(gates.cells, records, s, p, o)


@part
def _candidates(graph: Ids, gates: Gates, candidates: Ids, counters: NDArray[np.int64]) -> int:
    """Write down the rows whose gates a publication meets; return how many, or -1."""
    records, blocks = gates.records, gates.blocks
    sampled = counters[SAMPLED]
    gates.state[SAMPLES] += sampled
    scratch = candidates[candidates.size // 4 :]
    probes = _probes(graph, gates, scratch)
    if probes < 0:
        return -1
    counters[PROBES] += probes
    met = _found(gates, scratch, probes)
    room = candidates.size // 4
    found = waiting = 0
    for number in range(met):
        gate = _certain(
            graph, gates, scratch[at(_PROBE * number)], scratch[at(_PROBE * number + 2)]
        )
        if gate < 0:
            continue
        counters[GATES] += 1
        counters[FILED] += records[at(gate), SIZE]
        records[at(gate), SEEN] += sampled
        if records[at(gate), ROOM]:
            prefetch(blocks, records[at(gate), START])
            scratch[at(waiting)] = gate
            waiting += 1
        elif may_have(graph, records[at(gate), OTHER]):
            if found >= room:
                return -1
            candidates[at(found)] = records[at(gate), START]
            found += 1
    for number in range(waiting):
        gate = scratch[at(number)]
        start, size = int(records[at(gate), START]), int(records[at(gate), SIZE])
        if found + size > room:
            return -1
        for entry in range(start, start + ENTRY * size, ENTRY):
            candidates[at(found)] = blocks[at(entry)]
            found += may_have(graph, blocks[at(entry + 1)])
    return found


def match(
    graph: Ids,
    gates: Gates,
    arena: Ids,
    code: Ids,
    values: Values,
    work: Work,
    out: Output,
) -> int:
    """Find the rows that a publication meets; return how many, or -1 where there is no room.

    `out.solutions[0]` says where to write solutions; it is moved on.
    """
    found: int = _match(graph, tuple(gates), arena, code, tuple(values), tuple(work), tuple(out))
    return found


@kernel
def _match(
    graph: Ids,
    gate_arrays: Any,
    arena: Ids,
    code: Ids,
    numbers: Any,
    writable: Any,
    written: Any,
) -> int:
    """Match; plain tuples of arrays reach a compiled function in half the time."""
    gates, values = Gates(*gate_arrays), Values(*numbers)
    candidates, stack = writable
    matches, solutions, counters = written
    count = _candidates(graph, gates, candidates, counters)
    if count < 0:
        return -1
    counters[CANDIDATES] += count
    matched = 0
    for number in range(min(_AHEAD, count)):
        prefetch(arena, SLOT * int(candidates[at(number)]))
    for number in range(count):
        if number + _AHEAD < count:
            prefetch(arena, SLOT * int(candidates[at(number + _AHEAD)]))
        row = int(candidates[at(number)])
        plan = int(arena[at(SLOT * row + PLAN)])
        frame(row, plan >> 1, arena, code, stack)
        before = solutions[0]
        found, undecided = join(plan >> 1, plan & 1, graph, code, values, stack, solutions)
        if found == 0:
            continue
        counters[JOINED] += 1
        if found < 0 or MATCH * (matched + 1) > matches.size:
            return -1
        matches[at(MATCH * matched)] = row
        matches[at(MATCH * matched + 1)] = before
        matches[at(MATCH * matched + 2)] = found
        matches[at(MATCH * matched + 3)] = undecided
        matches[at(MATCH * matched + 4)] = code[at((plan >> 1) + VARIABLES)]
        matched += 1
    return matched

"""Where a row is filed, and how its patterns compared: for those who ask why, not for matching.

A row is filed under the pattern that publications were least likely to have when it came
(`graphmatch.index.gates`). The figures here are those of now, so another pattern may have become
the better one since.

Cost: a look-up a pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from graphmatch.index.gates import (
    ANY,
    OBJ,
    PRED,
    SAMPLES,
    SEEN,
    SIZE,
    SUBJ,
    Gates,
    find,
    probability,
)
from graphmatch.index.index import Index
from graphmatch.index.plans import Compiled, Places
from graphmatch.index.terms import Ids, Mentioned, Passes
from semantic.jit import kernel
from semantic.pattern import AnyOf, Filter, TriplePattern
from semantic.terms import Term

_NO_ID = -2


@dataclass(frozen=True, slots=True)
class GateFigures:
    """A pattern of a row, and how often publications have its constants.

    Parameters
    ----------
    pattern
        A triple pattern, or a test of text.
    rows
        How many rows are filed under it; with none it is no gate, and not counted.
    tabled
        How many more are in its table, for it is crowded.
    seen
        How many publications had it, of those that were counted, since it is a gate.
    probability
        How probable it is that the next one has it: what is counted, and a guess by its kind that
        counts as 50 publications.
    """

    pattern: TriplePattern | Filter
    rows: int
    tabled: int
    seen: int
    probability: float


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a row is filed.

    Parameters
    ----------
    gate
        The pattern that it is filed under.
    others
        Its other patterns, the least probable first.
    counted
        How many publications were counted.
    tabled
        Whether it is in the gate's table.
    """

    gate: GateFigures
    others: tuple[GateFigures, ...]
    counted: int
    tabled: bool


def is_row_of(index: Index, row: int, branch: Compiled) -> bool:
    """Whether a row is a branch's; of two that differ in numbers only a table cannot tell."""
    if index.rows.program(row) != branch.program:
        return False
    ids = _ids(index, branch)
    held: list[int] = index.rows.held(row).tolist()
    if not row & 1:
        return ids == held
    gate: list[int] = index.rows.gate(row).tolist()
    return set(held) <= set(ids) and gate in _constants(branch, ids).tolist()


def placed(index: Index, row: int, branch: Compiled) -> Placed:
    """Say where a row is filed.

    Parameters
    ----------
    branch
        What it is the row of.

    Examples
    --------
    >>> from graphmatch.index.plans import compiled
    >>> from semantic.sparql.parse import SubscriptionParser
    >>> text = "ASK { ?x <urn:p> ?y ; <urn:q> <urn:b> }"
    >>> branch = compiled(SubscriptionParser().parse("s", text).branches[0])
    >>> index = Index()
    >>> said = placed(index, index.add(branch), branch)
    >>> print(said.gate.pattern, "rather than", *(other.pattern for other in said.others))
    ?x <urn:q> <urn:b> rather than ?x <urn:p> ?y
    >>> said.gate.rows, said.counted, round(said.gate.probability, 3)
    (1, 0, 0.001)
    """
    gates = index.rows.arena.gates
    patterns = branch.program.patterns
    ids = _constants(branch, _ids(index, branch))
    found = np.empty((len(ids), 2))
    figures(gates, ids, found)
    said = []
    for own, places, (probability_, gate) in zip(ids, patterns, found.tolist(), strict=True):
        s, p, o = own.tolist()
        pattern = _written(index, own, places, branch.names)
        rows, seen = gates.records[int(gate), [SIZE, SEEN]].tolist() if gate >= 0 else (0, 0)
        tabled = index.rows.tabled_under((s, p, o))
        said.append(GateFigures(pattern, rows, tabled, seen, probability_))
    chosen = said.pop(int(np.flatnonzero((ids == index.rows.gate(row)).all(axis=1))[0]))
    said.sort(key=lambda other: other.probability)
    return Placed(chosen, tuple(said), int(gates.state[SAMPLES]), bool(row & 1))


@kernel
def figures(gates: Gates, patterns: Ids, found: NDArray[np.float64]) -> None:
    """Write for each pattern how probable it is, and its gate, or -1."""
    for n in range(patterns.shape[0]):
        s, p, o = patterns[n, SUBJ], patterns[n, PRED], patterns[n, OBJ]
        found[n, 0] = probability(gates, s, p, o)
        found[n, 1] = find(gates.cells, gates.records, s, p, o)


def _ids(index: Index, branch: Compiled) -> list[int]:
    """Return the ids of a branch's constants; `_NO_ID` for numbers that only tables know."""
    return [index.terms.ids.get(constant, _NO_ID) for constant in branch.constants]


def _constants(branch: Compiled, ids: Sequence[int]) -> Ids:
    """Return the constants of patterns, shape (patterns, 3), and `ANY` for variables."""
    placed = np.array(branch.program.patterns, np.int32)
    places = placed < 0
    placed[:] = ANY
    placed[places] = ids[: places.sum()]
    return placed


def _written(
    index: Index, ids: Ids, places: Places, names: Sequence[str]
) -> TriplePattern | Filter:
    """Return a pattern in the words of a subscription; a test that a term passes is a filter."""
    variables = [Variable(names[v]) if v >= 0 else None for v in places]
    known = [None if id == ANY else index.terms.term(int(id)) for id in ids]
    subject, predicate, object_ = (v or k for v, k in zip(variables, known, strict=True))
    if isinstance(predicate, Passes):
        assert isinstance(subject, Variable)
        assert isinstance(object_, Filter)
        return _of(object_, subject)
    return TriplePattern(_node(subject), _node(predicate), _node(object_))


def _of(filter_: Filter, variable: Variable) -> Filter:
    """Return a filter, on another variable."""
    if isinstance(filter_, AnyOf):
        tests = tuple(replace(test, variable=variable) for test in filter_.tests)
        return replace(filter_, variable=variable, tests=tests)
    return replace(filter_, variable=variable)


def _node(mentioned: Mentioned | Variable | None) -> Term | Variable:
    assert mentioned is not None
    assert not isinstance(mentioned, Filter | Passes)
    return mentioned

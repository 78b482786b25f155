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
from graphmatch.index.jit import kernel
from graphmatch.index.joins import GATE, SLOT
from graphmatch.index.plans import Places
from graphmatch.index.terms import Ids, Mentioned, Passes
from semantic.pattern import AnyOf, Filter, TriplePattern
from semantic.terms import Term


@dataclass(frozen=True, slots=True)
class GateFigures:
    """A pattern of a row, and how often publications have it.

    Parameters
    ----------
    pattern
        A triple pattern, or a test of text.
    rows
        How many rows are filed under it; with none it is no gate, and not counted.
    seen
        How many publications had it, of those that were counted, since it is a gate.
    probability
        How probable it is that the next one has it: what is counted, and a guess by its kind that
        counts as 50 publications.
    """

    pattern: TriplePattern | Filter
    rows: int
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
    """

    gate: GateFigures
    others: tuple[GateFigures, ...]
    counted: int


def placed(index: Index, row: int, names: Sequence[str]) -> Placed:
    """Say where a row is filed.

    Parameters
    ----------
    names
        What its variables are called, in the order of their numbers.

    Examples
    --------
    >>> from graphmatch.index.plans import compiled
    >>> from semantic.sparql.parse import SubscriptionParser
    >>> text = "ASK { ?x <urn:p> ?y ; <urn:q> <urn:b> }"
    >>> branch = SubscriptionParser().parse("s", text).branches[0]
    >>> index = Index()
    >>> said = placed(index, index.add(compiled(branch)), compiled(branch).names)
    >>> print(said.gate.pattern, "rather than", *(other.pattern for other in said.others))
    ?x <urn:q> <urn:b> rather than ?x <urn:p> ?y
    >>> said.gate.rows, said.counted, round(said.gate.probability, 3)
    (1, 0, 0.001)
    """
    rows = index.rows
    patterns = rows.program(row).patterns
    ids = _constants(patterns, rows.constants(row))
    found = np.empty((len(ids), 2))
    figures(rows.gates, ids, found)
    gate = int(rows.arena[row * SLOT + GATE])
    said = [
        _said(rows.gates, int(found[n, 1]), float(found[n, 0]), _written(index, own, p, names))
        for n, (own, p) in enumerate(zip(ids, patterns, strict=True))
    ]
    place = np.flatnonzero((ids == rows.gates.records[gate, SUBJ : OBJ + 1]).all(axis=1))[0]
    chosen = said.pop(int(place))
    said.sort(key=lambda other: other.probability)
    return Placed(chosen, tuple(said), int(rows.gates.state[SAMPLES]))


@kernel
def figures(gates: Gates, patterns: Ids, found: NDArray[np.float64]) -> None:
    """Write for each pattern how probable it is, and its gate, or -1."""
    for n in range(patterns.shape[0]):
        s, p, o = patterns[n, SUBJ], patterns[n, PRED], patterns[n, OBJ]
        found[n, 0] = probability(gates, s, p, o)
        found[n, 1] = find(gates.cells, gates.records, s, p, o)


def _constants(patterns: Sequence[Places], constants: Ids) -> Ids:
    """Return the constants of patterns, shape (patterns, 3), and `ANY` for variables."""
    ids = np.array(patterns, np.int32)
    places = ids < 0
    ids[:] = ANY
    ids[places] = constants[: places.sum()]
    return ids


def _said(
    gates: Gates, gate: int, probability: float, pattern: TriplePattern | Filter
) -> GateFigures:
    if gate < 0:
        return GateFigures(pattern, 0, 0, probability)
    rows, seen = gates.records[gate, [SIZE, SEEN]].tolist()
    return GateFigures(pattern, rows, seen, probability)


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

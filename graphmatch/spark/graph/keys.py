"""Which atoms each of many triples meets: gate keys looked up in arrays, filters once a term.

The keys in use are at most eight kinds, as each place is a constant or ``*``. Constants are
numbered by place, so that a key is one integer, and all triples of a batch are looked up in one
sorted array a kind. Filters are decided once for each of a batch's distinct terms: numbers by their
floats where these are far enough apart (`graphmatch.spark.graph.numbers`), the rest one by one.

Cost: a binary search for each triple and kind; a filter costs each distinct term of its variable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from graphmatch.spark.graph.atoms import Atom
from graphmatch.spark.graph.numbers import ASKED, NUMBER, scale_of, scales_of
from semantic.decision import holds
from semantic.pattern import Comparison, Filter
from semantic.terms import Term
from semantic.values import Operator

Rows = NDArray[np.int64]
"""Shape (triples, 3): each triple as the numbers of its terms in a list."""
_UNKNOWN, _TRUE = -1, 1


class AtomKeys:
    """The keys of atoms, to be looked up.

    Parameters
    ----------
    atoms
        By number.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> p, q = NamedNode("urn:p"), NamedNode("urn:q")
    >>> keys = AtomKeys([Atom((None, p, None), (0, -1, 1)), Atom((None, q, None), (0, -1, 1))])
    >>> [(atom, rows.tolist()) for atom, rows in keys.met(np.array([[0, 1, 0]]), [p, q])]
    [(1, [0])]
    """

    def __init__(self, atoms: Sequence[Atom]) -> None:
        self._atoms = atoms
        self._numbers: tuple[dict[Term, int], ...] = ({}, {}, {})
        by_key: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        kinds = []
        for atom in atoms:
            numbered = [
                0 if term is None else numbers.setdefault(term, len(numbers) + 1)
                for term, numbers in zip(atom.key, self._numbers, strict=True)
            ]
            kinds.append(numbered)
        for atom_number, numbered in enumerate(kinds):
            kind = sum(1 << place for place, number in enumerate(numbered) if number)
            by_key[kind, self._packed(*numbered)].append(atom_number)
        self._kinds: dict[int, tuple[Rows, list[list[int]]]] = {}
        for kind in sorted({kind for kind, _ in by_key}):
            keys = sorted(key for of_kind, key in by_key if of_kind == kind)
            self._kinds[kind] = np.array(keys, np.int64), [by_key[kind, key] for key in keys]

    def _packed(self, s: int, p: int, o: int) -> int:
        _, properties, objects = (len(numbers) + 1 for numbers in self._numbers)
        return (s * properties + p) * objects + o

    @property
    def kinds(self) -> tuple[int, ...]:
        """The kinds of keys in use: a bit for each place that is a constant."""
        return tuple(self._kinds)

    def met(self, triples: Rows, terms: Sequence[Term]) -> Iterator[tuple[int, Rows]]:
        """Yield atoms by number, each with the numbers of the triples that meet it.

        Filters that follow links through the graph are not looked at.
        """
        if not len(triples):
            return
        places = [
            np.array([numbers.get(term, 0) for term in terms], np.int64)[triples[:, place]]
            for place, numbers in enumerate(self._numbers)
        ]
        decisions = Decisions(terms)
        for kind, (keys, atoms) in self._kinds.items():
            s, p, o = (places[n] if kind >> n & 1 else np.zeros_like(places[n]) for n in range(3))
            _, properties, objects = (len(numbers) + 1 for numbers in self._numbers)
            asked = (s * properties + p) * objects + o
            found = np.searchsorted(keys, asked)
            found[found == len(keys)] = 0
            rows = np.flatnonzero(keys[found] == asked)
            if not len(rows):
                continue
            order = rows[np.argsort(found[rows], kind="stable")]
            several = found[order]
            starts = np.flatnonzero(np.diff(several, prepend=-1))
            ends = [*starts[1:].tolist(), len(order)]
            for start, end in zip(starts.tolist(), ends, strict=True):
                for number in atoms[int(several[start])]:
                    met = self._deciding(self._atoms[number], triples, order[start:end], decisions)
                    if len(met):
                        yield number, met

    def _deciding(self, atom: Atom, triples: Rows, rows: Rows, decisions: Decisions) -> Rows:
        for first, second in atom.equal:
            rows = rows[triples[rows, first] == triples[rows, second]]
        for slot, filter_ in atom.of_triples():
            rows = rows[decisions.of(filter_, triples[rows, atom.places[slot]])]
        return rows


class Decisions:
    """Whether filters hold of the terms of a list; each is decided once.

    Parameters
    ----------
    terms
        What numbers stand for.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = terms
        self._known: dict[Filter, NDArray[np.int8]] = {}
        self._scales = np.full((len(terms), 3), np.nan)

    def of(self, filter_: Filter, numbers: Rows) -> NDArray[np.bool_]:
        """Return for each number of a term whether the filter holds of it."""
        known = self._known.get(filter_)
        if known is None:
            known = self._known[filter_] = np.full(len(self._terms), _UNKNOWN, np.int8)
        new = np.unique(numbers[known[numbers] == _UNKNOWN])
        if len(new):
            if isinstance(filter_, Comparison) and scale_of(filter_.constant).kind == NUMBER:
                new = self._compared(filter_, new, known)
            for number in new.tolist():
                known[number] = holds(filter_, self._terms[number])
        held: NDArray[np.bool_] = known[numbers] == _TRUE
        return held

    def _compared(self, filter_: Comparison, new: Rows, known: NDArray[np.int8]) -> Rows:
        """Decide what floats decide; return the rest."""
        constant = scale_of(filter_.constant)
        missing = new[np.isnan(self._scales[new, 0])]
        self._scales[missing] = scales_of(self._terms[number] for number in missing.tolist())
        kinds, values, errors = self._scales[new].T
        distance = values - constant.value
        far = np.abs(distance) > errors + constant.error
        match filter_.operator:
            case Operator.LT | Operator.LE:
                holding = distance < 0
            case Operator.GT | Operator.GE:
                holding = distance > 0
            case Operator.EQ:
                holding = np.zeros(len(new), bool)
        is_number = kinds == NUMBER
        known[new] = is_number & holding
        rest: Rows = new[(is_number & ~far) | (kinds == ASKED)]
        return rest

"""A publication as integers.

Terms that subscriptions mention have their ids, the others get ids of the publication's own.
A distinct term is looked up once; all else is arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from pyoxigraph import Literal

from graphmatch.index import chains
from graphmatch.index.chains import COUNT, FILTER, STATED, TABLE, TRIPLES, WORDS
from graphmatch.index.gates import KINDS
from graphmatch.index.numbers import scale_of
from graphmatch.index.terms import LOCAL, Ids, Numbers, Terms
from semantic.numbering import Numbering
from semantic.terms import Term, Triple

Tested: TypeAlias = Callable[[Term], Sequence[int]]
"""Gives the ids of the tests that a term passes."""


class Encoded:
    """A publication's triples as ids, ready for look-ups.

    A test that a term passes is one more triple: the term, `Terms.passes`, the test. It comes after
    the others, as do attributes that somebody asks for: neither meets a variable property.

    Parameters
    ----------
    triples
        Distinct ones, or their numbering.
    terms
        What has an id already.
    kinds
        The kinds of look-up that will be asked for, a bit each.
    tested
        Which tests a term passes; none by default.
    compared
        Whether terms are compared with numbers, times or texts.
    apart
        How many of the triples, the last ones, a variable property is not met by.
    """

    def __init__(
        self,
        triples: Sequence[Triple] | Numbering,
        terms: Terms,
        kinds: int,
        tested: Tested | None = None,
        *,
        compared: bool = True,
        apart: int = 0,
    ) -> None:
        numbering = triples if isinstance(triples, Numbering) else Numbering.of(tuple(triples))
        self._numbering, self._ids = numbering, terms.of(numbering)
        self.local = _numbers(numbering.terms, self._ids) if compared else _NONE
        """What terms of the publication's own are compared by: a row for each of its terms."""
        places = np.frombuffer(numbering.places, np.int32)
        tests = _NO_TESTS if tested is None else self._tests(terms.passes, tested)
        self.graph = _graph(numbering.size, len(tests), apart)
        chains.fill(self.graph, self._ids, places, tests, kinds)

    def _tests(self, passes: int, tested: Tested) -> Ids:
        """Return the tests that terms pass, as triples."""
        tests = [(id, passes, test) for id, term in self.terms.items() for test in tested(term)]
        return np.array(tests, np.int32).reshape(-1, 3)

    @cached_property
    def terms(self) -> Mapping[int, Term]:
        """The publication's terms by their ids: as they were, also when the index has changed."""
        ids = np.where(self._ids < 0, LOCAL + np.arange(len(self._ids)), self._ids)
        return dict(zip(ids.tolist(), self._numbering.terms, strict=True))


_NO_TESTS = np.zeros((0, 3), np.int32)
_NONE = np.zeros((1, 3))


def _numbers(terms: Sequence[Term], ids: Ids) -> Numbers:
    """Return what terms without an id are compared by; that of other terms is nothing."""
    numbers = np.zeros((len(terms) + 1, 3))
    for place in np.flatnonzero(ids < 0).tolist():
        if isinstance(terms[place], Literal):
            numbers[place] = scale_of(terms[place])
    return numbers


def _graph(triples: int, tests: int, apart: int = 0) -> Ids:
    """Return an array with room for triples, and for those that say which tests are passed."""
    count, size = triples + tests, 8
    while size < 2 * count:
        size *= 2
    filter_ = TRIPLES + WORDS * count + KINDS * (size + count)
    graph = np.empty(filter_ + size, np.int32)
    graph[COUNT], graph[TABLE], graph[FILTER] = count, size, filter_
    graph[STATED] = triples - apart
    return graph


def graph_of(ids: Ids, kinds: int, stated: int | None = None) -> Ids:
    """Return triples of ids as the kernels read them.

    Parameters
    ----------
    ids
        Shape (triples, 3).
    stated
        How many come before those that a variable property is not met by; all by default.
    """
    stated = len(ids) if stated is None else stated
    graph = _graph(stated, len(ids) - stated)
    graph[TRIPLES : TRIPLES + ids.size].reshape(3, len(ids))[:] = ids.T
    chains.chain(graph, kinds)
    return graph

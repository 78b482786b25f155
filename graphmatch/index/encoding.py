"""A publication as integers.

Terms that subscriptions mention have their ids, the others get ids of the publication's own.
A distinct term is looked up once; all else is arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import compress
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
        Distinct ones.
    terms
        What has an id already.
    kinds
        The kinds of look-up that will be asked for, a bit each.
    tested
        Which tests a term passes; none by default.
    compared
        Whether terms are compared with numbers, times or texts.
    numbering
        The triples' own, where that is known.
    apart
        How many of the triples, the last ones, a variable property is not met by.
    """

    def __init__(
        self,
        triples: Sequence[Triple],
        terms: Terms,
        kinds: int,
        tested: Tested | None = None,
        *,
        compared: bool = True,
        numbering: Numbering | None = None,
        apart: int = 0,
    ) -> None:
        if numbering is None:
            numbering = Numbering.of(tuple(triples))
        known = list(map(terms.ids.get, numbering.terms))
        self._own = numbering.terms
        self._ids = [LOCAL + place if id is None else id for place, id in enumerate(known)]
        self.local = _numbers(self._own, known) if compared else _NONE
        """What terms of the publication's own are compared by: a row for each of its terms."""
        places = np.frombuffer(numbering.places, np.int32).reshape(-1, 3)
        ids = np.array(self._ids, np.int32)[places]
        if tested is not None:
            tests = [
                (id, terms.passes, test)
                for id, term in zip(self._ids, self._own, strict=True)
                for test in tested(term)
            ]
            ids = np.concatenate([ids, np.array(tests, np.int32).reshape(-1, 3)])
        self.graph = graph_of(ids, kinds, len(triples) - apart)

    @cached_property
    def terms(self) -> Mapping[int, Term]:
        """The publication's terms by their ids: as they were, also when the index has changed."""
        return dict(zip(self._ids, self._own, strict=True))


_NONE = np.zeros((1, 3))


def _numbers(terms: Sequence[Term], known: Sequence[int | None]) -> Numbers:
    """Return what terms without an id are compared by; that of other terms is nothing."""
    numbers = np.zeros((len(terms) + 1, 3))
    own = [id is None and isinstance(term, Literal) for id, term in zip(known, terms, strict=True)]
    for place in compress(range(len(terms)), own):
        numbers[place] = scale_of(terms[place])
    return numbers


def graph_of(ids: Ids, kinds: int, stated: int | None = None) -> Ids:
    """Return triples of ids as the kernels read them.

    Parameters
    ----------
    ids
        Shape (triples, 3).
    stated
        How many come before those that a variable property is not met by; all by default.
    """
    count, size = len(ids), 8
    while size < 2 * count:
        size *= 2
    filter_ = TRIPLES + WORDS * count + KINDS * (size + count)
    graph = np.empty(filter_ + size, np.int32)
    graph[COUNT], graph[TABLE], graph[FILTER] = count, size, filter_
    graph[STATED] = count if stated is None else stated
    graph[TRIPLES : TRIPLES + 3 * count].reshape(3, count)[:] = ids.T
    chains.chain(graph, kinds)
    return graph

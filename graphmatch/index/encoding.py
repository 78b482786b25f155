"""A publication as integers.

Terms that subscriptions mention have their ids, the others get ids of the publication's own.
The ids are looked up once a term and triple; all else is arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import numpy as np

from graphmatch.index import chains
from graphmatch.index.chains import COUNT, FILTER, STATED, TABLE, TRIPLES, WORDS
from graphmatch.index.gates import KINDS
from graphmatch.index.numbers import scale_of
from graphmatch.index.terms import LOCAL, Ids, Numbers, Terms
from semantic.terms import Term, Triple

Tested: TypeAlias = Callable[[Term], Sequence[int]]
"""Gives the ids of the tests that a term passes."""


class Encoded:
    """A publication's triples as ids, ready for look-ups.

    A test that a term passes is one more triple: the term, `Terms.passes`, the test.

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
    """

    def __init__(
        self,
        triples: Sequence[Triple],
        terms: Terms,
        kinds: int,
        tested: Tested | None = None,
        *,
        compared: bool = True,
    ) -> None:
        known, local = terms.ids, dict[Term, int]()
        flat: list[int] = []
        for triple in triples:
            for term in triple:
                id = known.get(term)
                if id is None:
                    id = local.setdefault(term, LOCAL + len(local))
                flat.append(id)
        self._triples = triples
        self.local = _numbers(local) if compared else _NONE
        ids = np.array(flat, np.int32).reshape(-1, 3)
        if tested is not None:
            tests = _passed(triples, ids, tested, terms.passes)
            ids = np.concatenate([ids, np.array(tests, np.int32).reshape(-1, 3)])
        self._ids = ids
        self.graph = graph_of(ids, kinds, len(triples))

    @cached_property
    def terms(self) -> Mapping[int, Term]:
        """The publication's terms by their ids: as they were, also when the index has changed."""
        return dict(
            zip(self._ids.ravel().tolist(), chain.from_iterable(self._triples), strict=False)
        )


_NONE = np.zeros((1, 3))


def _passed(
    triples: Sequence[Triple], ids: Ids, tested: Tested, passes: int
) -> list[tuple[int, int, int]]:
    """Return which tests the terms of triples pass, as triples."""
    terms = {
        id: term
        for row, triple in zip(ids.tolist(), triples, strict=True)
        for id, term in zip(row, triple, strict=True)
    }
    return [(id, passes, test) for id, term in terms.items() for test in tested(term)]


def _numbers(local: Iterable[Term]) -> Numbers:
    scales = [scale_of(term) for term in local]
    return np.array(scales, np.float64) if scales else _NONE


def graph_of(ids: Ids, kinds: int, stated: int | None = None) -> Ids:
    """Return triples of ids as the kernels read them.

    Parameters
    ----------
    ids
        Shape (triples, 3).
    stated
        How many come before those that say which tests are passed; all by default.
    """
    count, size = len(ids), 8
    while size < 2 * count:
        size *= 2
    filter_ = TRIPLES + WORDS * count + KINDS * (size + count)
    graph = np.empty(filter_ + size, np.int32)
    graph[COUNT], graph[TABLE], graph[FILTER] = count, size, filter_
    graph[STATED] = count if stated is None else stated
    graph[TRIPLES : TRIPLES + 3 * count] = ids.T.ravel()
    chains.chain(graph, kinds)
    return graph

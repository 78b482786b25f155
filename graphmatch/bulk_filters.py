"""A filter of very many subscriptions of one skeleton: a column of operators and constants.

What a filter is, as the index takes it, depends on the constants in it (`semantic.sparql.filters`):
it is asked once for each different choice of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Protocol

import numpy as np
from pyoxigraph import Literal, NamedNode

from graphmatch.index.plans import wanted
from graphmatch.index.runs import Ids
from graphmatch.index.terms import Mentioned
from semantic.pattern import Comparison, Filter
from semantic.sparql.filters import filled
from semantic.sparql.slots import slot_number
from semantic.terms import Term

_REFUSED = -2
"""In place of an operator: with these constants the index cannot take the filter."""


class Known(Protocol):
    """What places of constants stand for."""

    @property
    def terms(self) -> Sequence[Term]:
        """Return the terms by place."""

    def ordered(self, places: Ids) -> bool:
        """Whether constants are compared by any operator."""


class FilterColumn:
    """One filter of the subscriptions of a skeleton.

    Parameters
    ----------
    filter_
        With slots for constants.
    constants
        Places of terms: shape (subscriptions, slots).
    known
        What the places stand for.

    Attributes
    ----------
    slot
        The slot whose constant a comparison compares with, where it is no more than that; else -1.
    operators
        By subscription: the operator, as `graphmatch.index.plans.wanted` says.
    mentioned
        The different things that variables are compared with.
    places
        By subscription: which of these.
    refused
        Which subscriptions have a filter that the index cannot take.

    Examples
    --------
    >>> from graphmatch.bulk_constants import Constants
    >>> from graphmatch.engine import Engine
    >>> from semantic.sparql.parse import SubscriptionParser
    >>> text = "ASK {{ ?x <urn:price> ?p FILTER(?p < {}) }}".format
    >>> grouped = SubscriptionParser().group([("a", text("5")), ("b", text("6")), ("c", text("5"))])
    >>> (group,), known = grouped.groups, Constants(grouped.terms, Engine().standing.knowledge)
    >>> column = FilterColumn(group.skeleton.branches[0].filters[0], group.constants, known)
    >>> column.slot, column.operators.tolist(), column.refused.any()
    (1, [1, 1, 1], np.False_)
    """

    def __init__(self, filter_: Filter, constants: Ids, known: Known) -> None:
        self.variable = filter_.variable
        terms = known.terms
        self.slot = _compared(filter_)
        if self.slot >= 0 and known.ordered(constants[:, self.slot]):
            self.mentioned: list[Mentioned] = []
            self.places = np.zeros(len(constants), np.int32)
            self.operators = np.full(len(constants), wanted(filter_)[0], np.int32)
            self.refused = np.zeros(len(constants), np.bool_)
            return
        self.slot = -1
        slots = list(dict.fromkeys(_slots(filter_)))
        own = constants[:, slots]
        different, inverse = np.unique(own, axis=0, return_inverse=True)
        found: dict[Mentioned, int] = {}
        operators = np.full(len(different), _REFUSED, np.int32)
        places = np.zeros(len(different), np.int32)
        given = [terms[place] for place in constants[0]]
        for number, chosen in enumerate(different.tolist()):
            for slot, place in zip(slots, chosen, strict=True):
                given[slot] = terms[place]
            whole = filled(filter_, given)
            if whole is not None:
                operators[number], constant = wanted(whole)
                places[number] = found.setdefault(constant, len(found))
        self.mentioned = list(found)
        self.operators, self.places = operators[inverse.ravel()], places[inverse.ravel()]
        self.refused = self.operators == _REFUSED


def _compared(filter_: Filter) -> int:
    """Return the slot of a comparison's constant, -1 for other filters."""
    if not isinstance(filter_, Comparison):
        return -1
    slot = slot_number(filter_.constant)
    return -1 if slot is None else slot


def _slots(filter_: Filter) -> Iterator[int]:
    """Yield the slots of a filter."""
    for field in fields(filter_):
        value = getattr(filter_, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Filter):
                yield from _slots(part)
            elif isinstance(part, NamedNode | Literal) and (n := slot_number(part)) is not None:
                yield n

"""Workloads that are conjunctions on attributes, ready for algorithms that know no graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar

from pyoxigraph import Variable

from graphmatch.bench.workloads.workload import Workload
from graphmatch.published.base import Conjunction, Event, Row

SUBJECT = Variable("e")


class FlatWorkload(Workload):
    """Subscriptions and events that need not be read out of texts and triples.

    Attributes
    ----------
    kinds
        The constraints that there are.
    """

    kinds: ClassVar[frozenset[type]]

    @abstractmethod
    def constrained(self) -> Iterable[Row]:
        """Yield the subscriptions, in their order."""

    @abstractmethod
    def event(self, number: int) -> Event:
        """Return an event."""

    def prepare(self) -> int:
        """Make the objects now, so that they count for no algorithm; return how many there are."""
        return len(self.conjunctions)

    @cached_property
    def conjunctions(self) -> list[Conjunction]:
        """The subscriptions; all algorithms of a run are given the same objects."""
        rows = enumerate(self.constrained())
        return [Conjunction(str(number), SUBJECT, (row,)) for number, row in rows]

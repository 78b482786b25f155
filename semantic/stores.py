"""Stores for evaluation: the background triples, and room for one publication in each.

A publication is loaded into a store that nobody else has, so that several can be evaluated at
once. There is one store as long as one is enough; another one is copied from it when all are in
use, unless together they would hold more than `TOGETHER` triples: then whoever comes waits.

A store of pyoxigraph keeps what is removed: 0.6 KB a triple, and a look-up walks over all triples
of a property that there ever were. So a store that was given as many triples as it has itself
(and `WEAR` at the least) is exchanged for a new copy.

Cost: copying takes 2 to 5 µs a triple, which is at most as often as triples are loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition

from pyoxigraph import BlankNode, NamedNode, Quad, Store

from semantic.sparql.exact import protect
from semantic.terms import Term, Triple

BACKGROUND = BlankNode("ontology")
"""The graph of the background; a blank node, for a publication may have any IRI as its name."""

TOGETHER = 2_000_000
"""How many background triples all stores hold together, where there are several."""
WEAR = 20_000
"""How many triples a store is given, at the least, before it is exchanged."""


@dataclass(slots=True, eq=False)
class Kept:
    """A store, in use or not.

    Parameters
    ----------
    store
        The background, and perhaps a publication.
    version
        How often the background had been added to.
    given
        How many triples were loaded so far, of publications.
    """

    store: Store
    version: int = 0
    given: int = 0
    _graphs: dict[NamedNode | BlankNode, None] = field(default_factory=dict)

    def load(self, triples: Iterable[Triple], graph: NamedNode | BlankNode) -> None:
        """Load triples of a publication; they stay until the store is given back."""
        self._graphs[graph] = None
        loaded = list(quads(triples, graph))
        self.given += len(loaded)
        self.store.extend(loaded)

    def unload(self, triples: Iterable[Triple], graph: NamedNode | BlankNode) -> None:
        """Remove triples that were loaded."""
        for quad in quads(triples, graph):
            self.store.remove(quad)

    def clear(self) -> None:
        """Remove what was loaded."""
        for graph in tuple(self._graphs):
            self.store.remove_graph(graph)
            del self._graphs[graph]


class Stores:
    """As many stores with the same background as evaluate at once.

    Parameters
    ----------
    background
        What each store holds.
    together, wear
        See `TOGETHER` and `WEAR`.

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> x, p = NamedNode("urn:x"), NamedNode("urn:p")
    >>> stores = Stores([(x, p, Literal(1))])
    >>> with stores.one() as kept:
    ...     kept.load([(x, p, Literal(2))], NamedNode("urn:publication"))
    ...     len(kept.store)
    2
    >>> stores.meets(x, p, None), stores.meets(x, p, Literal(2))
    (True, False)
    """

    def __init__(
        self, background: Iterable[Triple], *, together: int = TOGETHER, wear: int = WEAR
    ) -> None:
        first = Kept(Store())
        first.store.bulk_extend(quads(background, BACKGROUND))
        self._first = first
        self._size = len(first.store)
        self._together, self._wear = together, wear
        self._free = [first]
        self._made = 1
        self._changed = Condition()

    @property
    def made(self) -> int:
        """How many stores there are."""
        return self._made

    def extend(self, triples: Iterable[Triple]) -> None:
        """Take more background triples in; stores that are in use now are not used again."""
        with self._changed:
            self._first.store.bulk_extend(quads(triples, BACKGROUND))
            self._first.version += 1
            self._size = len(self._first.store)
            self._made -= sum(kept is not self._first for kept in self._free)
            self._free = [kept for kept in self._free if kept is self._first]

    def meets(
        self,
        subject: NamedNode | BlankNode | None,
        predicate: NamedNode | None,
        object_: Term | None,
    ) -> bool:
        """Whether a background triple has the given terms; ``None`` stands for any."""
        stored = None if object_ is None else protect(object_)
        found = self._first.store.quads_for_pattern(subject, predicate, stored, BACKGROUND)
        return next(iter(found), None) is not None

    @contextmanager
    def one(self) -> Iterator[Kept]:
        """Have a store for oneself; a thread that has one must not ask for another one."""
        kept = self._taken()
        try:
            kept.clear()  # of what somebody left who was interrupted
            yield kept
            kept.clear()
        finally:
            self._give_back(kept)

    def _taken(self) -> Kept:
        with self._changed:
            while not self._free:
                if self._made < self._most():
                    self._made += 1
                    break
                self._changed.wait()
            else:
                return self._free.pop()
        return self._copy()

    def _most(self) -> int:
        return max(1, min(os.cpu_count() or 1, self._together // max(1, self._size)))

    def _copy(self) -> Kept:
        first, copy = self._first, Store()
        kept = Kept(copy, first.version)
        copy.bulk_extend(first.store.quads_for_pattern(None, None, None, BACKGROUND))
        return kept

    def _give_back(self, kept: Kept) -> None:
        new = kept
        try:
            if kept.given > max(self._wear, self._size):
                new = self._copy()
        finally:
            with self._changed:
                if kept is self._first:
                    new = new if new.version == kept.version else kept
                    self._first = new
                if new.version == self._first.version:
                    self._free.append(new)
                else:
                    self._made -= 1
                self._changed.notify()


def quads(triples: Iterable[Triple], graph: NamedNode | BlankNode) -> Iterator[Quad]:
    """Yield triples as they are stored; those that no graph can hold are left out."""
    for subject, predicate, object_ in triples:
        if isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode):
            yield Quad(subject, predicate, protect(object_), graph)

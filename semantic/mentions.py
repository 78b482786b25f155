"""What subscriptions mention: the properties and objects that their triple patterns ask for.

A derived triple that no pattern asks for is not worth deriving. So whoever keeps
subscriptions counts what they mention here, and entailment looks here for what is
asked of a property, or of the objects after it (`semantic.ontology.relevance`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from semantic.terms import Term

Mention: TypeAlias = tuple[Term | None, Term | None]
"""A property and an object that a pattern asks for; ``None`` for any."""


class Mentions:
    """Counts of what is asked for; what is added twice has to be taken away twice.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> price, owner = NamedNode("urn:price"), NamedNode("urn:owner")
    >>> mentions = Mentions([(price, None)])
    >>> mentions.asks_for(price), mentions.asks_for(owner)
    (True, False)
    """

    def __init__(self, mentions: Iterable[Mention] = ()) -> None:
        self.version = 0
        """Changes whenever something is mentioned for the first time, or no longer."""
        self._objects_of: defaultdict[Term, dict[Term | None, int]] = defaultdict(dict)
        self._objects: dict[Term, int] = {}
        self._anything = 0
        self.add(mentions)

    @property
    def anything(self) -> bool:
        """Whether some pattern asks for triples with any property."""
        return self._anything > 0

    def add(self, mentions: Iterable[Mention]) -> None:
        """Count what one subscription mentions."""
        self.add_counted((mention, 1) for mention in mentions)

    def add_counted(self, mentions: Iterable[tuple[Mention, int]]) -> None:
        """Count what subscriptions mention, each with how many of them do."""
        for (property_, object_), times in mentions:
            if property_ is None:
                self._anything += times
                self.version += self._anything == times
                continue
            objects = self._objects_of[property_]
            known = objects.get(object_, 0)
            objects[object_] = known + times
            self.version += not known
            if object_ is not None:
                self._objects[object_] = self._objects.get(object_, 0) + times

    def remove(self, mentions: Iterable[Mention]) -> None:
        """Take back what one subscription mentions."""
        self.remove_counted((mention, 1) for mention in mentions)

    def remove_counted(self, mentions: Iterable[tuple[Mention, int]]) -> None:
        """Take back what subscriptions mention, each with how many of them do."""
        for (property_, object_), times in mentions:
            if property_ is None:
                self._anything -= times
                self.version += self._anything == 0
                continue
            objects = self._objects_of[property_]
            objects[object_] -= times
            if not objects[object_]:
                del objects[object_]
                self.version += 1
            if not objects:
                del self._objects_of[property_]
            if object_ is not None:
                self._objects[object_] -= times
                if not self._objects[object_]:
                    del self._objects[object_]

    def counted(self) -> Iterator[tuple[Mention, int]]:
        """Yield what is mentioned, with how many subscriptions do; `add_counted` takes it in."""
        if self._anything:
            yield (None, None), self._anything
        for property_, objects in self._objects_of.items():
            yield from (((property_, object_), times) for object_, times in objects.items())

    def properties(self) -> Iterable[Term]:
        """Return the properties that patterns name."""
        return tuple(self._objects_of)

    def objects(self, property_: Term) -> tuple[Term | None, ...]:
        """Return the objects that patterns with this property take, ``None`` for any."""
        return tuple(self._objects_of.get(property_, ()))

    def asks_for(self, property_: Term) -> bool:
        """Whether some pattern has this property, or any."""
        return self.anything or property_ in self._objects_of

    def asks_for_any_object(self, property_: Term) -> bool:
        """Whether some pattern takes whatever object the property has."""
        return self.anything or None in self._objects_of.get(property_, ())

    def asks_for_object(self, property_: Term, object_: Term) -> bool:
        """Whether some pattern takes this object after this property."""
        objects = self._objects_of.get(property_, ())
        return self.anything or object_ in objects or None in objects

    def has_object(self, object_: Term) -> bool:
        """Whether some pattern has this object, whatever its property."""
        return object_ in self._objects

"""Which attributes subscriptions ask for: a tree of steps, along which publications are flattened.

Of all paths through a graph only those are gone that somebody asks for; so what flattening costs
depends on the subscriptions' attributes, not on how many paths there are.

Cost: made anew when something is mentioned for the first time, linear in what is mentioned of
attributes; nothing where no attribute is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pyoxigraph import NamedNode

from semantic.attributes.names import isa_name_of, name_of, steps
from semantic.mentions import Mentions
from semantic.terms import Node


@dataclass(slots=True)
class Steps:
    """A place in the tree of steps.

    Parameters
    ----------
    attributes
        The attributes whose names end here.
    isa
        Properties for the classes of their values, with the classes that are asked for; ``None``
        for all of them.
    below
        The next steps.
    """

    attributes: list[NamedNode] = field(default_factory=list)
    isa: dict[NamedNode, frozenset[Node] | None] = field(default_factory=dict)
    below: dict[str, Steps] = field(default_factory=dict)

    def place(self, name: str) -> Steps:
        """Return the place of an attribute, which is made if it is not there."""
        place = self
        for step in steps(name):
            place = place.below.setdefault(step, Steps())
        return place


class Asked:
    """The attributes that subscriptions ask for.

    Parameters
    ----------
    objects
        Property to the objects that are asked for after it; ``None`` among them for any.

    Examples
    --------
    >>> from semantic.attributes.names import attribute
    >>> asked = Asked({attribute("price.value"): [None]})
    >>> sorted(asked.names), list(asked.steps.below["price"].below)
    (['price', 'value'], ['value'])
    """

    def __init__(self, objects: Mapping[Node, Iterable[Node | None]]) -> None:
        self.steps = Steps()
        self.names: set[str] = set()
        """All steps of all names."""
        self.classes: set[Node | None] = set()
        """The classes that are asked for, ``None`` among them for any."""
        for property_, wanted in objects.items():
            if (name := name_of(property_)) is not None:
                self._add(property_, name)
            elif (name := isa_name_of(property_)) is not None:
                self._add_isa(property_, name, wanted)

    def __bool__(self) -> bool:
        return bool(self.names)

    def _add(self, property_: Node, name: str) -> None:
        assert isinstance(property_, NamedNode)
        self.steps.place(name).attributes.append(property_)
        self.names.update(steps(name))

    def _add_isa(self, property_: Node, name: str, wanted: Iterable[Node | None]) -> None:
        assert isinstance(property_, NamedNode)
        classes = set(wanted)
        every = None in classes
        self.steps.place(name).isa[property_] = (
            None if every else frozenset(c for c in classes if c is not None)
        )
        self.classes.update(classes)
        self.names.update(steps(name))


class Asking:
    """What is asked for of attributes, kept as long as nothing new is mentioned.

    Examples
    --------
    >>> from semantic.attributes.names import attribute
    >>> mentions, asking = Mentions(), Asking()
    >>> bool(asking.asked(mentions))
    False
    >>> mentions.add([(attribute("brand"), None)])
    >>> bool(asking.asked(mentions))
    True
    """

    def __init__(self) -> None:
        self._known: tuple[Mentions, int, Asked] | None = None

    def asked(self, mentions: Mentions) -> Asked:
        """Return what is asked for; the same object as long as that is the same."""
        known = self._known  # at once: other threads may write it
        if known is None or known[0] is not mentions or known[1] != mentions.version:
            asked = Asked(dict(_attributes(mentions)))
            known = self._known = mentions, mentions.version, asked
        return known[2]


def _attributes(mentions: Mentions) -> Iterator[tuple[Node, tuple[Node | None, ...]]]:
    for property_ in mentions.properties():
        if name_of(property_) is not None:
            yield property_, ()
        elif isa_name_of(property_) is not None:
            yield property_, mentions.objects(property_)

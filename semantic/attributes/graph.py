"""An event as a graph: its attributes in the words of the ontology.

The attribute ``price.value = 450`` of an event is, where the ontology has properties ``price`` and
``value``, also ``event price _:n . _:n value 450``. So everything that is said of properties holds
of attributes: subproperties, synonyms, ranges, units, mapping functions; and subscriptions written
as SPARQL match events. A text that names a class, ``target = "desktop PC"``, is also a node of
that class. A step that the ontology does not know is a property of its own.

These triples are derived: none is stated. Cost: linear in the attributes that have a known step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.attributes.concepts import Concepts
from semantic.attributes.names import attribute, path_of
from semantic.attributes.properties import AttributeProperties
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import is_text
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import TYPE


class EventGraphs:
    """Writes events as graphs of one ontology.

    Parameters
    ----------
    ontology
        Only its classes are classes here.
    properties, concepts
        What its properties and classes are called.
    """

    def __init__(
        self, ontology: Ontology, properties: AttributeProperties, concepts: Concepts
    ) -> None:
        self._ontology = ontology
        self._properties = properties
        self._concepts = concepts

    def triples(self, publication: Publication) -> Iterator[Triple]:
        """Yield what the attributes of an event say in the ontology's words.

        A publication is an event when its first triple is an attribute; others are not looked
        through.
        """
        if not publication.triples or path_of(publication.triples[0][1]) is None:
            return
        nodes: dict[tuple[Term, tuple[str, ...]], BlankNode] = {}
        for event, property_, value in publication.triples:
            if (path := path_of(property_)) is None:
                continue
            if any(map(self._properties.called, path)):
                yield from self._path(event, path, value, nodes)

    def _path(
        self,
        event: Term,
        path: Sequence[str],
        value: Term,
        nodes: dict[tuple[Term, tuple[str, ...]], BlankNode],
    ) -> Iterator[Triple]:
        node = event
        for length, step in enumerate(path[:-1], 1):
            below = self._node(event, tuple(path[:length]), nodes)
            yield from ((node, property_, below) for property_ in self._along(step))
            node = below
        for property_ in self._along(path[-1]):
            yield node, property_, value
        if classes := self._classes(value):
            typed = self._node(event, tuple(path), nodes)
            yield from ((node, property_, typed) for property_ in self._along(path[-1]))
            yield from ((typed, TYPE, class_) for class_ in classes)

    @staticmethod
    def _node(
        event: Term, path: tuple[str, ...], nodes: dict[tuple[Term, tuple[str, ...]], BlankNode]
    ) -> BlankNode:
        known = nodes.get((event, path))
        if known is None:
            known = nodes[event, path] = BlankNode(f"attribute{len(nodes)}")
        return known

    def _along(self, step: str) -> Sequence[NamedNode]:
        return self._properties.called(step) or (attribute(step),)

    def _classes(self, value: Term) -> list[Term]:
        """Return the classes that a value names: itself, or what a text is the name of."""
        classes = self._ontology.classes
        if isinstance(value, Literal):
            found = self._concepts.called(value.value) if is_text(value) else ()
        else:
            found = (self._ontology.root(value),)
        return [term for term in found if term in classes]

"""What enrichment adds for attribute subscriptions: attributes of graphs, graphs of events.

Before the rules, an event is written as a graph in the ontology's words (`graph`); after them,
the attributes that somebody asks for are found in E(P), and the classes of their values:

    event → graph → rules, units, mapping functions → attributes

``isa:target`` has as objects the classes that a value of ``target`` belongs to: those of a
resource, the value itself where it is a class or a concept, what a text is the name of; and all
that are above them. Only classes that are asked for are written.

Cost: nothing where no attribute is asked for; else one pass over the publication, and the steps
that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyoxigraph import Literal, NamedNode

from semantic.attributes.asked import Asked, Asking, Steps
from semantic.attributes.concepts import Concepts
from semantic.attributes.graph import EventGraphs
from semantic.attributes.names import path_of
from semantic.attributes.properties import AttributeProperties
from semantic.errors import OnProblem
from semantic.flatten import Bound, Graph
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.mentions import Mentions
from semantic.ontology.entailment import Derived
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import is_text
from semantic.ontology.walks import Links
from semantic.publication import Publication
from semantic.terms import Node, Term, Triple

_REMEMBERED = 65_536
"""Of so many terms it is remembered what is above them."""


class AttributeRules:
    """Attributes under one ontology.

    Parameters
    ----------
    ontology
        What is known.
    limits
        Bounds on flattening.
    """

    def __init__(self, ontology: Ontology, limits: Limits = DEFAULT_LIMITS) -> None:
        self._ontology = ontology
        self._limits = limits
        self._asking = Asking()
        self._properties = AttributeProperties(ontology)
        self.concepts = Concepts(ontology)
        """The classes of subscriptions by their names."""
        self._graphs = EventGraphs(ontology, self._properties, self.concepts)
        self._above: dict[Term, frozenset[Term]] = {}

    def asked(self, mentions: Mentions) -> Asked:
        """Return the attributes that are mentioned."""
        return self._asking.asked(mentions)

    def graph(self, publication: Publication) -> Iterator[Triple]:
        """Yield what an event says in the ontology's words; nothing for another publication."""
        return self._graphs.triples(publication)

    def attributes(
        self, publication: Publication, asked: Asked, links: Links, on_problem: OnProblem
    ) -> Derived:
        """Return the attributes of E(P), each with the triple that it was found in.

        Parameters
        ----------
        links
            The is-a links that the publication states itself.
        on_problem
            Told when a limit is met.
        """
        if not asked.classes and all(path_of(p) is not None for _, p, _ in publication.triples):
            return {}  # an event of which the ontology knows nothing is flat already
        graph = Graph(publication)
        bound = Bound(publication, self._limits, on_problem)
        if len(self._above) > _REMEMBERED:
            self._above.clear()
        above = {} if links else self._above
        flattening = _Flattening(
            graph, self._properties, self._ontology, self.concepts, links, above
        )
        found: Derived = {}
        for root in graph.roots():
            flattening.walk(root, asked.steps, bound, found)
        return {triple: by for triple, by in found.items() if triple != by}


class _Flattening:
    """One publication's way along the steps that are asked for."""

    def __init__(
        self,
        graph: Graph,
        properties: AttributeProperties,
        ontology: Ontology,
        concepts: Concepts,
        links: Links,
        above: dict[Term, frozenset[Term]],
    ) -> None:
        self._graph = graph
        self._properties = properties
        self._ontology = ontology
        self._concepts = concepts
        self._links = links
        self._above = above

    def walk(self, root: Term, asked: Steps, bound: Bound, found: Derived) -> None:
        """Add the attributes of one root."""
        agenda: list[tuple[Term, Steps, frozenset[Term]]] = [(root, asked, frozenset({root}))]
        for node, place, passed in agenda:
            for triple in self._graph.out.get(node, ()):
                for below in self._places(place, triple[1]):
                    if not bound.step():
                        return
                    self._end(root, below, triple, found)
                    object_ = triple[2]
                    if below.below and object_ in self._graph.out and object_ not in passed:
                        agenda.append((object_, below, passed | {object_}))

    def _places(self, place: Steps, property_: Term) -> Iterable[Steps]:
        """Return where a property leads to from a place among the steps."""
        if not isinstance(property_, NamedNode) or not place.below:
            return ()
        if (path := path_of(property_)) is None:
            below = place.below
            return [below[step] for step in self._properties.names(property_) if step in below]
        for step in path:
            following = place.below.get(step)
            if following is None:
                return ()
            place = following
        return (place,)

    def _end(self, root: Term, place: Steps, triple: Triple, found: Derived) -> None:
        """Add the values of the attributes that end here."""
        if place.attributes:
            for value in self._graph.values(triple[2]):
                for property_ in place.attributes:
                    found.setdefault((root, property_, value), triple)
        for property_, wanted in place.isa.items():
            for class_ in _among(self._classes(triple[2]), wanted):
                found.setdefault((root, property_, class_), triple)

    def _classes(self, value: Term) -> frozenset[Term]:
        """Return the classes and concepts that a value belongs to."""
        if isinstance(value, Literal):
            named = self._concepts.called(value.value) if is_text(value) else ()
            return frozenset().union(*map(self._and_above, named))
        types = self._graph.types.get(value, ())
        return self._and_above(value).union(*map(self._and_above, types))

    def _and_above(self, term: Term) -> frozenset[Term]:
        known = self._above.get(term)
        if known is None:
            ontology = self._ontology
            above = ontology.ancestors(term, self._links)
            known = frozenset((term, ontology.root(term), *above))
            self._above[term] = known
        return known


def _among(classes: frozenset[Term], wanted: frozenset[Node] | None) -> Iterable[Term]:
    if wanted is None:
        return sorted(classes, key=str)
    return [class_ for class_ in classes if class_ in wanted]

"""What enrichment adds for attribute subscriptions: attributes of graphs, graphs of events.

Before the rules, an event is written as a graph in the ontology's words. The attribute
``price.value = 450`` is, where the ontology has properties ``price`` and ``value``, also
``event price _:n . _:n value 450``; so everything that is said of properties holds of attributes:
subproperties, synonyms, ranges, units, mapping functions; and subscriptions written as SPARQL match
events. A text that names a class, ``target = "desktop PC"``, is also a node of that class. A step
that the ontology does not know is a property of its own.

After the rules, the attributes that somebody asks for are found in E(P), and the classes of their
values. Of all paths through a graph only those are gone that somebody asks for, along a tree of
steps. ``isa:target`` has as objects the classes that a value of ``target`` belongs to: those of a
resource, the value itself where it is a class or a concept, what a text is the name of; and all
that are above them. Only classes that are asked for are written.

Cost: nothing where no attribute is asked for; else one pass over the publication, and the steps
that are asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.attributes.concepts import AttributeProperties, Concepts
from semantic.attributes.names import attribute, is_isa, isa_name_of, name_of, path_of, steps
from semantic.errors import OnProblem, Place, Problem, Severity
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.entailment import Derived
from semantic.ontology.ontology import Links, Ontology
from semantic.ontology.synonyms import is_text
from semantic.publication import Publication
from semantic.terms import Mention, Node, Term, Triple
from semantic.vocabulary import TYPE


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
    mentions
        What their patterns ask for.

    Examples
    --------
    >>> from semantic.attributes.names import attribute
    >>> asked = Asked([(attribute("price.value"), None)])
    >>> bool(asked), list(asked.steps.below["price"].below)
    (True, ['value'])
    """

    def __init__(self, mentions: Iterable[Mention] = ()) -> None:
        self.steps = Steps()
        self.classes: set[Node | None] = set()
        """The classes that are asked for, ``None`` among them for any."""
        objects: defaultdict[Term, list[Term | None]] = defaultdict(list)
        for mentioned, object_ in mentions:
            if mentioned is not None:
                objects[mentioned].append(object_)
        for property_, wanted in objects.items():
            if not isinstance(property_, NamedNode):
                continue
            if (name := name_of(property_)) is not None:
                self.steps.place(name).attributes.append(property_)
            elif (name := isa_name_of(property_)) is not None:
                self.classes.update(wanted)
                chosen = frozenset(c for c in wanted if c is not None)
                self.steps.place(name).isa[property_] = None if None in wanted else chosen

    def __bool__(self) -> bool:
        return bool(self.steps.below)


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
        self._properties = AttributeProperties(ontology)
        self.concepts = Concepts(ontology)
        """The classes of subscriptions by their names."""
        self._graphs = EventGraphs(ontology, self._properties, self.concepts)
        self._above: dict[Term, frozenset[Term]] = {}

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
        graph = _Graph(publication)
        bound = _Bound(publication, self._limits, on_problem)
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
        graph: _Graph,
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

    def walk(self, root: Term, asked: Steps, bound: _Bound, found: Derived) -> None:
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


@dataclass(slots=True)
class _Graph:
    """A publication's triples by subject, with what of it is stated.

    Parameters
    ----------
    publication
        E(P).
    """

    publication: Publication
    out: Mapping[Term, Sequence[Triple]] = field(init=False)
    """Subject to its triples."""
    types: Mapping[Term, Sequence[Term]] = field(init=False)
    """Subject to its classes, stated or not."""

    def __post_init__(self) -> None:
        """Index the triples."""
        out: defaultdict[Term, list[Triple]] = defaultdict(list)
        types: defaultdict[Term, list[Term]] = defaultdict(list)
        for triple in self.publication.triples:
            out[triple[0]].append(triple)
            if triple[1] == TYPE:
                types[triple[0]].append(triple[2])
        self.out, self.types = dict(out), dict(types)

    def roots(self) -> tuple[Term, ...]:
        """Return the resources that are events."""
        own = self.publication.graph_name()
        if own in self.out:
            return (own,)
        derived = self.publication.derived
        stated = [t for t in self.publication.triples if t not in derived and not is_isa(t[1])]
        subjects = dict.fromkeys(s for s, _, _ in stated)
        objects = {o for s, _, o in stated if s != o}
        roots = [s for s in subjects if s not in objects]
        reached = self._reached(roots)
        return (*roots, *(s for s in subjects if s not in reached))

    def _reached(self, roots: Sequence[Term]) -> set[Term]:
        seen, agenda = set(roots), list(roots)
        for subject in agenda:
            for _, _, object_ in self.out.get(subject, ()):
                if object_ not in seen:
                    seen.add(object_)
                    agenda.append(object_)
        return seen

    def values(self, term: Term) -> tuple[Term, ...]:
        """Return what an attribute's value is where a path ends at a term."""
        if not isinstance(term, BlankNode):
            return (term,)
        derived = self.publication.derived
        return tuple(c for c in self.types.get(term, ()) if (term, TYPE, c) not in derived)


@dataclass(slots=True)
class _Bound:
    """What flattening one publication may cost; met once, it is told once."""

    publication: Publication
    limits: Limits
    on_problem: OnProblem
    gone: int = 0
    told: bool = False

    def step(self) -> bool:
        """Count one step; whether it may be gone."""
        self.gone += 1
        if self.gone <= self.limits.event_paths:
            return True
        if not self.told:
            self.told = True
            what = f"as an event it is incomplete: it has more than {self.limits.event_paths} steps"
            source = self.publication.source
            place = Place(source.source, source.line, source.column, self.publication.id)
            remedy = "Raise the limit `event_paths`, or cut it into smaller publications."
            self.on_problem(Problem(what, place, remedy, Severity.WARNING))
        return False

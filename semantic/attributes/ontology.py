"""Attributes under one ontology: what its properties and classes are called, and what follows.

A step of an attribute's name is a local name, and means every property that is called so, by itself
or by a synonym. A class stands in a subscription by a name: a prefixed name, the last part of its
IRI, a label, or one of these in another case; the first that names something decides. Subscriptions
are written before anybody knows which ontology they will be matched under, so a name is resolved
when one is filed.

*Before the rules* an event is written as a graph in the ontology's words. The attribute
``price.value = 450`` is, where the ontology has properties ``price`` and ``value``, also
``event price _:n . _:n value 450``; so everything that is said of properties holds of attributes:
subproperties, synonyms, ranges, units, mapping functions; and subscriptions written as SPARQL match
events. A text that names a class, ``target = "desktop PC"``, is also a node of that class. A step
that the ontology does not know is a property of its own.

*After the rules* the attributes that somebody asks for are found in E(P) along a tree of steps, and
of their values the classes that are asked for: those of a resource, the value itself where it is a
class or a concept, what a text is the name of; and all that are above them.

The compiled core does the same for matching; this is for mapping functions and explanations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.attributes.names import (
    attribute,
    concept_name_of,
    isa_name_of,
    name_of,
    path_of,
    step_names,
    steps,
)
from semantic.errors import OnProblem, Place, Problem, Severity, UnknownNameError
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.entailment import Derived
from semantic.ontology.ontology import Links, Ontology
from semantic.ontology.synonyms import is_text
from semantic.publication import Publication
from semantic.terms import Mention, Node, Term, Triple, compact, local_name
from semantic.vocabulary import TYPE

_LISTED = 10
"""How many terms a message names."""


class AttributeProperties:
    """What steps mean under one ontology.

    Examples
    --------
    >>> from semantic.vocabulary import SUBPROPERTY
    >>> email, contact = NamedNode("http://e/email"), NamedNode("http://e/contact")
    >>> properties = AttributeProperties(Ontology([(email, SUBPROPERTY, contact)]))
    >>> properties.called("email"), sorted(properties.names(email))
    ((<NamedNode value=http://e/email>,), ['<http://e/email>', 'email'])
    """

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology
        self._names: dict[Term, frozenset[str]] = {}

    def called(self, step: str) -> tuple[NamedNode, ...]:
        """Return the properties that a step means, roots of synonyms; none where none is known."""
        if step.startswith("<"):
            root = self._ontology.root(NamedNode(step[1:-1]))
            return (root,) if isinstance(root, NamedNode) else ()
        return self._by_name.get(step, ())

    def names(self, property_: NamedNode) -> frozenset[str]:
        """Return the names of the steps that go along a property (a root of synonyms)."""
        found = self._names.get(property_)
        if found is None:
            others = self._ontology.roots.names(property_)
            named = (term for term in others if isinstance(term, NamedNode))
            found = self._names[property_] = step_names((property_, *named))
        return found

    @cached_property
    def _by_name(self) -> Mapping[str, tuple[NamedNode, ...]]:
        found: defaultdict[str, dict[NamedNode, None]] = defaultdict(dict)
        for property_ in self._known():
            for name in self.names(property_):
                found[name][property_] = None
        return {name: tuple(properties) for name, properties in found.items()}

    def _known(self) -> Iterator[NamedNode]:
        schema = self._ontology.schema
        places: Iterable[Iterable[Term]] = (
            self._ontology.properties,
            schema.domains,
            schema.ranges,
            schema.inverses,
        )
        for place in places:
            yield from (term for term in place if isinstance(term, NamedNode))


class Concepts:
    """The classes and concepts of one ontology by their names.

    Examples
    --------
    >>> from semantic.attributes.names import concept
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("urn:e:Laptop"), NamedNode("urn:e:Computer")
    >>> Concepts(Ontology([(laptop, SUBCLASS, computer)])).resolved(concept("laptop")).value
    'urn:e:Laptop'
    """

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology
        self._resolved: dict[Term, Term] = {}

    def resolved(self, term: Term) -> Term:
        """Return the term that a name stands for; any other term as it is.

        Raises `UnknownNameError` when the name is unknown, or several terms have it.
        """
        if (name := concept_name_of(term)) is None:
            return term
        if (known := self._resolved.get(term)) is not None:
            return known
        found = self.called(name)
        if len(found) == 1:
            self._resolved[term] = found[0]
            return found[0]
        if not found:
            what = f"the ontology has no class or concept called {name!r}"
            raise UnknownNameError(Problem(what, Place(name), self.advice(name)))
        listed = ", ".join(sorted(map(self._compact, found))[:_LISTED])
        more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        what = f"{len(found)} classes or concepts are called {name!r}: {listed}{more}"
        raise UnknownNameError(Problem(what, Place(name), "Give one of these, or its IRI."))

    def changed(self, other: Concepts) -> frozenset[Term]:
        """Return the names that were resolved here and are otherwise, or not at all, there."""
        resolved = tuple(self._resolved)  # at once: other threads may be resolving names
        return frozenset(term for term in resolved if other._find(term) != self._find(term))

    def _find(self, term: Term) -> Term | None:
        try:
            return self.resolved(term)
        except UnknownNameError:
            return None

    def called(self, name: str) -> tuple[Term, ...]:
        """Return the classes and concepts that a name may stand for."""
        prefix, colon, local = name.partition(":")
        if colon and (namespace := self._ontology.prefixes.get(prefix)) is not None:
            return self.known(namespace + local)
        found = self._ontology.value_names.terms(name)
        named = tuple(t for t in found if isinstance(t, NamedNode) and local_name(t) == name)
        return named or found or self._folded.get(_folded(name), ())

    def known(self, iri: str) -> tuple[Term, ...]:
        """Return the class, concept or instance with an IRI, by its root; empty for none."""
        try:
            term = self._ontology.root(NamedNode(iri))
        except ValueError:
            return ()
        ontology = self._ontology
        known = term in ontology.classes or term in ontology.concepts or term in ontology.types
        return (term,) if known else ()

    @cached_property
    def _folded(self) -> Mapping[str, tuple[Term, ...]]:
        """The terms by their names in one case."""
        found: defaultdict[str, dict[Term, None]] = defaultdict(dict)
        names = self._ontology.value_names
        for name in names:
            found[_folded(name)].update(dict.fromkeys(names.terms(name)))
        return {name: tuple(terms) for name, terms in found.items()}

    def advice(self, name: str) -> str:
        """Say what may be meant by a name that nothing has."""
        near = get_close_matches(_folded(name.rpartition(":")[2]), list(self._folded), 3)
        meant = dict.fromkeys(self._compact(term) for each in near for term in self._folded[each])
        if meant:
            return f"Is {' or '.join(meant)} meant?"
        return "Load the ontology that has it, or give its IRI."

    def _compact(self, term: Term) -> str:
        return compact(term, self._ontology.prefixes)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


@dataclass(slots=True)
class Steps:
    """A place in the tree of steps that are asked for.

    `attributes` are those whose names end here; `isa` has properties for the classes of their
    values, with the classes that are asked for, ``None`` among them for any; `below` has the next
    steps.
    """

    attributes: list[NamedNode] = field(default_factory=list)
    isa: dict[NamedNode, set[Node | None]] = field(default_factory=dict)
    below: dict[str, Steps] = field(default_factory=dict)

    def place(self, name: str) -> Steps:
        """Return the place of an attribute, which is made if it is not there."""
        place = self
        for step in steps(name):
            place = place.below.setdefault(step, Steps())
        return place


class Asked:
    """The attributes that subscriptions ask for, by what their patterns mention."""

    def __init__(self, mentions: Iterable[Mention] = ()) -> None:
        self.steps = Steps()
        self.has_classes = False
        for property_, object_ in dict.fromkeys(mentions):
            if not isinstance(property_, NamedNode):
                continue
            if (name := name_of(property_)) is not None:
                ending = self.steps.place(name).attributes
                if property_ not in ending:
                    ending.append(property_)
            elif (name := isa_name_of(property_)) is not None:
                self.has_classes = True
                self.steps.place(name).isa.setdefault(property_, set()).add(object_)

    def __bool__(self) -> bool:
        return bool(self.steps.below)


class AttributeRules:
    """What follows from attributes under one ontology.

    The limit ``event_paths`` bounds the paths of one publication.
    """

    def __init__(self, ontology: Ontology, limits: Limits = DEFAULT_LIMITS) -> None:
        self.ontology = ontology
        self.properties = AttributeProperties(ontology)
        self.concepts = Concepts(ontology)
        """The classes of subscriptions by their names."""
        self._limits = limits

    def named(self, value: Term) -> tuple[Term, ...]:
        """Return the classes and concepts that a text is the name of."""
        if isinstance(value, Literal) and is_text(value):
            return self.concepts.called(value.value)
        return ()

    # -- events as graphs -------------------------------------------------------------------

    def graph(self, publication: Publication) -> Iterator[Triple]:
        """Yield what the attributes of an event say in the ontology's words.

        A publication is an event when its first triple is an attribute; others are not looked
        through.
        """
        if not publication.triples or path_of(publication.triples[0][1]) is None:
            return
        nodes: dict[tuple[Term, tuple[str, ...]], BlankNode] = {}

        def below(event: Term, path: tuple[str, ...]) -> BlankNode:
            return nodes.setdefault((event, path), BlankNode(f"attribute{len(nodes)}"))

        for event, property_, value in publication.triples:
            path = path_of(property_)
            if path is None or not any(map(self.properties.called, path)):
                continue
            node = event
            for length, step in enumerate(path[:-1], 1):
                next_ = below(event, path[:length])
                yield from ((node, along, next_) for along in self._along(step))
                node = next_
            for along in self._along(path[-1]):
                yield node, along, value
            if classes := self._classes(value):
                typed = below(event, path)
                yield from ((node, along, typed) for along in self._along(path[-1]))
                yield from ((typed, TYPE, class_) for class_ in classes)

    def _along(self, step: str) -> Sequence[NamedNode]:
        return self.properties.called(step) or (attribute(step),)

    def _classes(self, value: Term) -> list[Term]:
        """Return the classes that a value names: itself, or what a text is the name of."""
        root = self.ontology.root
        found = self.named(value) if isinstance(value, Literal) else (root(value),)
        return [term for term in found if term in self.ontology.classes]

    # -- graphs as events -------------------------------------------------------------------

    def attributes(
        self, publication: Publication, asked: Asked, links: Links, on_problem: OnProblem
    ) -> Derived:
        """Return the attributes of E(P), each with the triple that it was found in.

        `links` are the is-a links that the publication states itself; `on_problem` is told when a
        limit is met.
        """
        if not asked.has_classes and all(path_of(p) is not None for _, p, _ in publication.triples):
            return {}  # an event of which the ontology knows nothing is flat already
        limit = self._limits.event_paths
        flattening = _Flattening(self, publication, links, limit)
        if not all(flattening.walk(root, asked.steps) for root in flattening.roots()):
            what = f"as an event it is incomplete: it has more than {limit} steps"
            source = publication.source
            place = Place(source.source, source.line, source.column, publication.id)
            remedy = "Raise the limit `event_paths`, or cut it into smaller publications."
            on_problem(Problem(what, place, remedy, Severity.WARNING))
        return {triple: by for triple, by in flattening.found.items() if triple != by}


class _Flattening:
    """One publication's way along the steps that are asked for, at most `limit` of them."""

    def __init__(
        self, rules: AttributeRules, publication: Publication, links: Links, limit: int
    ) -> None:
        self.found: Derived = {}
        self._rules, self._publication = rules, publication
        self._links, self._limit = links, limit
        self._above: dict[Term, frozenset[Term]] = {}
        self._out: defaultdict[Term, list[Triple]] = defaultdict(list)
        for triple in publication.triples:
            self._out[triple[0]].append(triple)

    def roots(self) -> Iterable[Term]:
        """Return the resources that are events: the id, or those that nothing leads to."""
        own = self._publication.graph_name()
        if own in self._out:
            return (own,)
        derived = self._publication.derived
        stated = [
            (subject, object_)
            for subject, property_, object_ in self._publication.triples
            if (subject, property_, object_) not in derived and isa_name_of(property_) is None
        ]
        objects = {o for s, o in stated if s != o}
        roots = dict.fromkeys(s for s, _ in stated if s not in objects)
        reached = dict.fromkeys(roots)
        agenda = list(roots)
        for subject in agenda:
            for _, _, object_ in self._out.get(subject, ()):
                if object_ not in reached:
                    reached[object_] = None
                    agenda.append(object_)
        return dict.fromkeys((*roots, *(s for s, _ in stated if s not in reached)))

    def walk(self, root: Term, asked: Steps) -> bool:
        """Add the attributes of one root; false when there are more steps than may be gone."""
        agenda: list[tuple[Term, Steps, frozenset[Term]]] = [(root, asked, frozenset({root}))]
        for node, place, passed in agenda:
            for triple in self._out.get(node, ()):
                for below in self._places(place, triple[1]):
                    self._limit -= 1
                    if self._limit < 0:
                        return False
                    self._end(root, below, triple)
                    object_ = triple[2]
                    if below.below and object_ in self._out and object_ not in passed:
                        agenda.append((object_, below, passed | {object_}))
        return True

    def _places(self, place: Steps, property_: Term) -> Iterable[Steps]:
        """Return where a property leads to from a place among the steps."""
        if not isinstance(property_, NamedNode) or not place.below:
            return ()
        if (path := path_of(property_)) is None:
            names = self._rules.properties.names(property_)
            return [place.below[step] for step in names if step in place.below]
        for step in path:
            if step not in place.below:
                return ()
            place = place.below[step]
        return (place,)

    def _end(self, root: Term, place: Steps, triple: Triple) -> None:
        """Add the values of the attributes that end here, and their classes."""
        value = triple[2]
        values: Iterable[Term] = (value,)
        if isinstance(value, BlankNode):
            derived = self._publication.derived
            values = [c for c in self._types(value) if (value, TYPE, c) not in derived]
        for each in values if place.attributes else ():
            for property_ in place.attributes:
                self.found.setdefault((root, property_, each), triple)
        if place.isa:
            is_text_ = isinstance(value, Literal)
            own = self._rules.named(value) if is_text_ else (value, *self._types(value))
            classes = frozenset().union(*map(self._and_above, own))
            for property_, wanted in place.isa.items():
                some = classes if None in wanted else classes & wanted
                for class_ in sorted(some, key=str):
                    self.found.setdefault((root, property_, class_), triple)

    def _types(self, resource: Term) -> list[Term]:
        """Return the classes of a resource, stated or not."""
        return [o for _, property_, o in self._out.get(resource, ()) if property_ == TYPE]

    def _and_above(self, term: Term) -> frozenset[Term]:
        if term not in self._above:
            ontology = self._rules.ontology
            above = ontology.ancestors(term, self._links)
            self._above[term] = frozenset((term, ontology.root(term), *above))
        return self._above[term]

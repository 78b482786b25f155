"""Flattening: a publication as events, attribute by attribute (CTPS, section 3.2).

From a root resource each path of properties that leads to a value is an attribute:
``offer price _:p . _:p value 450`` is ``price.value = 450``. What the paths are called:
`semantic.attributes.names`. A value is

- a literal, or an IRI;
- of a blank node the classes that it is stated to belong to: CTPS's ``<target, Desktop PC>``. One
  without a type has no value of its own, only attributes below it.

An attribute keeps all its values. No path passes a resource twice, so circles end.

A *root* is the publication's id where that is a subject: the item of a feed, a graph named after
what it describes. Otherwise every subject of a stated triple that is nowhere an object, and each
subject that no root leads to (it is on a circle, or behind one). Each root is an event.

Cost: linear in the steps that are gone; of these the limit ``event_paths`` allows so many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyoxigraph import BlankNode, NamedNode

from semantic.attributes.names import attribute, is_isa, name_of, step_of
from semantic.errors import OnProblem, Place, Problem, Severity, warn_problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import TYPE


@dataclass(frozen=True, slots=True)
class Event:
    """The flat form of what one resource of a publication is about.

    Parameters
    ----------
    subject
        The root resource.
    attributes
        Name to values, in the order in which they are found.
    """

    subject: Term
    attributes: Mapping[str, tuple[Term, ...]]

    def triples(self) -> Iterator[Triple]:
        """Yield the event as triples of one subject: what attribute subscriptions match."""
        for name, values in self.attributes.items():
            property_ = attribute(name)
            yield from ((self.subject, property_, value) for value in values)


def flatten(
    publication: Publication,
    limits: Limits = DEFAULT_LIMITS,
    on_problem: OnProblem = warn_problem,
) -> tuple[Event, ...]:
    """Return the events that a publication is.

    Parameters
    ----------
    publication
        E(P), so that superproperties and roots of synonyms are there; or any other.
    limits
        ``attribute_steps`` and ``event_paths`` bound the paths.
    on_problem
        Told when a bound is met: the event is then incomplete.

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> offer, price = NamedNode("http://e/offer"), BlankNode()
    >>> value = NamedNode("http://e/value"), Literal("USD")
    >>> event, = flatten(Publication.of("p", [
    ...     (offer, NamedNode("http://e/price"), price), (price, *value)]))
    >>> {name: [v.value for v in values] for name, values in event.attributes.items()}
    {'price.value': ['USD']}
    """
    graph = Graph(publication)
    bound = Bound(publication, limits, on_problem)
    return tuple(Event(root, _attributes(graph, root, bound)) for root in graph.roots())


@dataclass(slots=True)
class Graph:
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
class Bound:
    """What flattening one publication may cost; met once, it is told once."""

    publication: Publication
    limits: Limits
    on_problem: OnProblem
    gone: int = 0
    told: set[str] = field(default_factory=set)

    def step(self) -> bool:
        """Count one step; whether it may be gone."""
        self.gone += 1
        if self.gone <= self.limits.event_paths:
            return True
        return self._tell("event_paths", f"more than {self.limits.event_paths} steps")

    def deeper(self, depth: int) -> bool:
        """Whether a path may have so many steps."""
        if depth <= self.limits.attribute_steps:
            return True
        return self._tell("attribute_steps", f"paths of more than {depth - 1} steps")

    def _tell(self, limit: str, found: str) -> bool:
        if limit not in self.told:
            self.told.add(limit)
            what = f"as an event it is incomplete: it has {found}"
            source = self.publication.source
            place = Place(source.source, source.line, source.column, self.publication.id)
            remedy = f"Raise the limit `{limit}`, or cut it into smaller publications."
            self.on_problem(Problem(what, place, remedy, Severity.WARNING))
        return False


def _attributes(graph: Graph, root: Term, bound: Bound) -> Mapping[str, tuple[Term, ...]]:
    """Return all attributes of a root resource."""
    found: defaultdict[str, dict[Term, None]] = defaultdict(dict)
    agenda: list[tuple[Term, tuple[str, ...], frozenset[Term]]] = [(root, (), frozenset({root}))]
    for node, path, passed in agenda:
        for triple in graph.out.get(node, ()):
            _, predicate, object_ = triple
            if is_isa(triple[1]) or not isinstance(predicate, NamedNode) or not bound.step():
                continue
            if not bound.deeper(len(path) + 1):
                continue
            name = (*path, name_of(predicate) or step_of(predicate))
            found[".".join(name)].update(dict.fromkeys(graph.values(object_)))
            if object_ in graph.out and object_ not in passed:
                agenda.append((object_, name, passed | {object_}))
    return {name: tuple(values) for name, values in found.items() if values}

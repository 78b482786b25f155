"""What the algorithms that know an ontology do alike: synonyms, subattributes, subclasses.

CTPS (sections 3 and 4) and S-ToPSS put the root of all synonyms into subscriptions and events
before they are looked at. Then an attribute that is asked for is met by one below it, and a class
by a value that is it or below it. What follows by an ontology's other rules is not known to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, TypeAlias

from pyoxigraph import NamedNode

from graphmatch.matcher import MatchReport
from graphmatch.published.base import (
    Below,
    Conjunction,
    Equal,
    Event,
    FlatMatcher,
    Interval,
    Present,
    Resource,
    Row,
)
from graphmatch.subscription import Subscription
from semantic.ontology.ontology import Links, Ontology
from semantic.publication import Publication
from semantic.terms import Term
from semantic.vocabulary import TYPE

Way: TypeAlias = tuple[Term, ...]
"""A term and all above it."""


class ConceptMatcher(FlatMatcher):
    """The common part of them.

    ``?x a :Computer`` asks for a class as ``gm:descendantOf`` does.
    """

    kinds: ClassVar = frozenset({Interval, Equal, Below, Present})

    def __init__(self, ontology: Ontology) -> None:
        super().__init__(ontology)
        self._ways: dict[Term, Way] = {}

    def read(self, subscription: Subscription) -> Conjunction:
        """Read a subscription as constraints, roots put in.

        Raises
        ------
        UnsupportedError
            When the algorithm cannot express it.
        """
        conjunction = super().read(subscription.rewritten(self.ontology.root))
        return replace(conjunction, rows=tuple(map(_with_classes, conjunction.rows)))

    def match(self, publication: Publication) -> MatchReport:
        """Match every event that a publication is, roots put in; see `Matcher`."""
        return super().match(self.ontology.rewrite(publication))

    def events(self, resource: Resource, links: Links) -> Iterable[Event]:
        """Return what there is of attributes that somebody asks for, and of those below them.

        Where an attribute with several values is asked for by two names, its own and that of one
        above it, each name has a choice of its own.
        """
        chosen = {a for a in resource.values if any(b in self.asked for b in self.above(a))}
        if any(len(resource.values[a]) > 1 and self._names(a) > 1 for a in chosen):
            named = {a: list(self.values(resource, a)) for a in self.asked}
            known = {a: values for a, values in named.items() if values}
            return Resource(resource.subject, known).events(self.asked, links)
        return resource.events(chosen, links)

    def _names(self, attribute: NamedNode) -> int:
        return sum(above in self.asked for above in self.above(attribute))

    def above(self, attribute: NamedNode) -> Way:
        """Return an attribute and those above it."""
        return (attribute, *self.ontology.properties.ancestors(attribute))

    def way(self, value: Term, links: Links) -> Way:
        """Return a value and the concepts above it, by whatever way; `links` are an event's own."""
        if links:
            return (value, *self.ontology.ancestors(value, links))
        way = self._ways.get(value)
        if way is None:
            way = (value, *self.ontology.ancestors(value))
            if len(way) > 1:  # of the ontology, so they do not become more and more
                self._ways[value] = way
        return way

    def values(self, resource: Resource, attribute: NamedNode) -> Iterable[Term]:
        """Return a resource's values for an attribute and for those below it."""
        found = dict.fromkeys(resource.values.get(attribute, ()))
        if self.ontology.properties.children(attribute):
            for a, values in resource.values.items():
                if attribute in self.above(a):
                    found.update(dict.fromkeys(values))
        if attribute == TYPE:
            classes = self.ontology.classes
            found = dict.fromkeys(c for own in found for c in (own, *classes.ancestors(own)))
        return found


def _with_classes(row: Row) -> Row:
    """Ask for a class by its name as for all below it."""
    constraint = row.get(TYPE)
    return row if not isinstance(constraint, Equal) else {**row, TYPE: Below(constraint.term)}

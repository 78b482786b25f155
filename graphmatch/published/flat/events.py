"""Publications as the papers on attributes have them: events with one value for each attribute.

Each resource that is a subject is one, and its properties are its attributes. Where it has several
values for an attribute it is as many events as there are choices; among the attributes that no
subscription asks for, nothing is chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from pyoxigraph import NamedNode

from graphmatch.published.flat.constraints import number_of
from semantic.ontology.ontology import Links
from semantic.publication import Publication
from semantic.terms import Term


@dataclass(slots=True)
class Event:
    """One value for each attribute.

    Parameters
    ----------
    terms
        Attribute to value.
    numbers
        The same for those of them that are numbers.
    links
        What is directly above terms, as the publication states it.

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> price, brand = NamedNode("urn:price"), NamedNode("urn:brand")
    >>> Event.of({price: Literal(7), brand: Literal("HP")}).numbers[price]
    7.0
    """

    terms: Mapping[NamedNode, Term]
    numbers: Mapping[NamedNode, float] = field(default_factory=dict)
    links: Links = field(default_factory=dict)

    @classmethod
    def of(cls, terms: Mapping[NamedNode, Term], links: Links | None = None) -> Event:
        """Make an event of terms."""
        numbers = ((attribute, number_of(term)) for attribute, term in terms.items())
        known = {attribute: n for attribute, n in numbers if n is not None}
        return cls(terms, known, links or {})


@dataclass(slots=True)
class Resource:
    """What a publication says of one subject.

    Parameters
    ----------
    values
        Attribute to values, each once.
    """

    subject: Term
    values: Mapping[NamedNode, list[Term]]

    def events(self, asked: Container[NamedNode], links: Links | None = None) -> Iterator[Event]:
        """Yield an event for each choice of values, of the attributes that somebody asks for."""
        chosen = {a: values for a, values in self.values.items() if a in asked}
        for terms in product(*chosen.values()):
            yield Event.of(dict(zip(chosen, terms, strict=True)), links)


def resources(publication: Publication) -> list[Resource]:
    """Return a publication's subjects with their values.

    Examples
    --------
    >>> a, b, p = (NamedNode(f"urn:{name}") for name in "abp")
    >>> two = [(a, p, b), (a, p, a)]
    >>> [len(resource.values[p]) for resource in resources(Publication.of("x", two))]
    [2]
    """
    found: defaultdict[Term, defaultdict[NamedNode, dict[Term, None]]]
    found = defaultdict(lambda: defaultdict(dict))
    for subject, attribute, value in publication.triples:
        assert isinstance(attribute, NamedNode)
        found[subject][attribute][value] = None
    return [
        Resource(subject, {attribute: list(values) for attribute, values in attributes.items()})
        for subject, attributes in found.items()
    ]

"""Random ontologies with constructs of OWL 2 RL, random publications, and their closures."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import owlrl  # type: ignore[import-untyped]
import rdflib
from pyoxigraph import BlankNode, Literal, NamedNode
from rdflib.collection import Collection

from semantic import Publication
from semantic.terms import Node, Term, Triple
from semantic.vocabulary import (
    DOMAIN,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    INVERSE_OF,
    OWL,
    RANGE,
    RDF,
    SAME_AS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    XSD,
)
from tests.strategies import EX

CLASSES = [EX[name] for name in "ABCDE"]
PROPERTIES = [EX[name] for name in "pqrs"]
THINGS = [EX[name] for name in "uvwxyz"]
_TRIVIAL = {OWL["Thing"], OWL["Nothing"]}
_PREFIXES = tuple(
    "http://www.w3.org/" + path
    for path in ("1999/02/22-rdf-syntax-ns#", "2000/01/rdf-schema#", "2002/07/owl#", "2001/XML")
)


@dataclass
class Case:
    """A random ontology and a random publication."""

    ontology: list[Triple]
    publication: list[Triple]


class Maker:
    """Makes random axioms about few terms, so that rules often apply together."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.triples: list[Triple] = []

    def case(self, axioms: int, facts: int, *, published_axioms: int = 0) -> Case:
        """Return a case; the publication may state axioms, too."""
        for class_ in CLASSES:
            self.add(class_, TYPE, OWL["Class"])
        for _ in range(axioms):
            self.random.choice(_AXIOMS)(self)
        if self.random.random() < 0.3:
            self.fact()
        ontology, self.triples = self.triples, []
        for _ in range(facts):
            self.fact()
        for _ in range(published_axioms):
            self.random.choice(_AXIOMS)(self)
        return Case(ontology, self.triples)

    def fact(self) -> None:
        """State that an individual has a class or a property."""
        subject = self.one(THINGS)
        chance = self.random.random()
        if chance < 0.35:
            self.add(subject, TYPE, self.one(CLASSES))
        elif chance < 0.9:
            self.add(subject, self.one(PROPERTIES), self.one(THINGS))
        elif chance < 0.95:
            self.add(subject, SAME_AS, self.one(THINGS))
        else:
            self.add(subject, OWL["differentFrom"], self.one(THINGS))

    def one(self, terms: Sequence[NamedNode]) -> NamedNode:
        """Return a random term."""
        return self.random.choice(terms)

    def add(self, subject: Node, property_: NamedNode, value: Term) -> None:
        """Add a triple."""
        self.triples.append((subject, property_, value))

    def listed(self, terms: Iterable[NamedNode]) -> Node:
        """Add an RDF list, and return its first node."""
        rest: Node = RDF["nil"]
        for term in reversed(list(terms)):
            node = BlankNode()
            self.add(node, RDF["first"], term)
            self.add(node, RDF["rest"], rest)
            rest = node
        return rest

    def several(self, terms: Sequence[NamedNode], most: int = 3) -> list[NamedNode]:
        """Return some different terms."""
        return self.random.sample(terms, self.random.randint(2, most))

    def restriction(self, kind: str, value: Term, on_class: Term | None = None) -> BlankNode:
        """Add a restriction, and return it."""
        node = BlankNode()
        self.add(node, TYPE, OWL["Class"])
        self.add(node, TYPE, OWL["Restriction"])
        self.add(node, OWL["onProperty"], self.one(PROPERTIES))
        self.add(node, OWL[kind], value)
        if on_class is not None:
            self.add(node, OWL["onClass"], on_class)
        return node

    def class_(self) -> Node:
        """Return a class, or a class expression."""
        number = Literal(self.random.choice("01"), datatype=XSD["nonNegativeInteger"])
        thing = self.random.choice([*CLASSES, OWL["Thing"]])
        expression: Callable[[], Node] = self.random.choice(
            [
                *[lambda: self.one(CLASSES)] * 4,
                lambda: self.restriction("someValuesFrom", thing),
                lambda: self.restriction("allValuesFrom", self.one(CLASSES)),
                lambda: self.restriction("hasValue", self.one(THINGS)),
                lambda: self.restriction("maxCardinality", number),
                lambda: self.restriction("maxQualifiedCardinality", number, thing),
                lambda: self.of("intersectionOf", self.several(CLASSES)),
                lambda: self.of("unionOf", self.several(CLASSES)),
                lambda: self.of("oneOf", self.several(THINGS)),
            ]
        )
        return expression()

    def of(self, kind: str, members: Iterable[NamedNode]) -> BlankNode:
        """Add a class expression with a list, and return it."""
        node = BlankNode()
        self.add(node, TYPE, OWL["Class"])
        self.add(node, OWL[kind], self.listed(members))
        return node

    def group(self, kind: str, members: Iterable[NamedNode], property_: str = "members") -> None:
        """Add an axiom about several terms."""
        node = BlankNode()
        self.add(node, TYPE, OWL[kind])
        self.add(node, OWL[property_], self.listed(members))

    def kind(self) -> None:
        """Declare the kind of a property."""
        kinds = ("Functional", "InverseFunctional", "Transitive", "Symmetric")
        rare = ("Asymmetric", "Irreflexive")
        kind = self.random.choice(kinds if self.random.random() < 0.8 else rare)
        self.add(self.one(PROPERTIES), TYPE, OWL[f"{kind}Property"])

    def denied(self) -> None:
        """Add a negative property assertion."""
        node = BlankNode()
        self.add(node, OWL["sourceIndividual"], self.one(THINGS))
        self.add(node, OWL["assertionProperty"], self.one(PROPERTIES))
        self.add(node, OWL["targetIndividual"], self.one(THINGS))


_AXIOMS: tuple[Callable[[Maker], None], ...] = (
    *[lambda m: m.add(m.class_(), SUBCLASS, m.class_())] * 5,
    *[lambda m: m.add(m.one(CLASSES), EQUIVALENT_CLASS, m.class_())] * 3,
    *[lambda m: m.kind()] * 3,
    lambda m: m.add(m.one(PROPERTIES), SUBPROPERTY, m.one(PROPERTIES)),
    lambda m: m.add(m.one(PROPERTIES), EQUIVALENT_PROPERTY, m.one(PROPERTIES)),
    lambda m: m.add(m.one(PROPERTIES), INVERSE_OF, m.one(PROPERTIES)),
    lambda m: m.add(m.one(PROPERTIES), DOMAIN, m.class_()),
    lambda m: m.add(m.one(PROPERTIES), RANGE, m.class_()),
    lambda m: m.add(m.one(PROPERTIES), OWL["propertyChainAxiom"], m.listed(m.several(PROPERTIES))),
    lambda m: m.add(m.one(CLASSES), OWL["hasKey"], m.listed(m.several(PROPERTIES, 2))),
    lambda m: m.add(m.one(CLASSES), OWL["disjointWith"], m.one(CLASSES)),
    lambda m: m.add(m.one(CLASSES), OWL["complementOf"], m.one(CLASSES)),
    lambda m: m.add(m.one(PROPERTIES), OWL["propertyDisjointWith"], m.one(PROPERTIES)),
    lambda m: m.group("AllDisjointClasses", m.several(CLASSES)),
    lambda m: m.group("AllDisjointProperties", m.several(PROPERTIES)),
    lambda m: m.group("AllDifferent", m.several(THINGS)),
    lambda m: m.group("AllDifferent", m.several(THINGS), "distinctMembers"),
    Maker.denied,
)


def by_owlrl(triples: Iterable[Triple]) -> tuple[set[Triple], bool]:
    """Return the closure of a graph by owlrl, and whether it is consistent."""
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    graph = rdflib.Graph().parse(data=text, format="nt")
    for key in set(graph.objects(None, rdflib.OWL.hasKey)):
        properties = Collection(graph, key)
        properties.append(properties[len(properties) - 1])  # It ignores the last one of a key.
    for _ in range(2):  # It looks for some contradictions only in what was there before.
        reasoner = owlrl.OWLRL_Semantics(graph, axioms=False, daxioms=False)
        reasoner.closure()
    consistent = not reasoner.error_messages
    for triple in list(graph):
        if not isinstance(triple[0], rdflib.URIRef | rdflib.BNode):
            graph.remove(triple)
    return set(Publication.from_rdflib(graph).triples), consistent


def significant(triples: Iterable[Triple], root: Callable[[Term], Term]) -> Iterator[Triple]:
    """Yield the triples that say more than that a term exists, with root terms.

    The table of OWL 2 RL also derives that each term is the same as itself, is a sub-class of
    `owl:Thing` or has that class.
    """
    for triple in triples:
        s, p, o = map(root, triple)
        if isinstance(s, Literal | BlankNode) or isinstance(o, BlankNode):
            continue
        if s == o and p in (SAME_AS, SUBCLASS, SUBPROPERTY, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY):
            continue
        if o in _TRIVIAL or s in _TRIVIAL or str(s)[1:].startswith(_PREFIXES):
            continue
        yield s, p, o  # type: ignore[misc]

"""Small graphs and class trees with short names for tests."""

from __future__ import annotations

from typing import TypeVar

from pyoxigraph import NamedNode

from graphmatch import SubscriptionParser
from graphmatch.matcher import Matcher
from semantic import Ontology, Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import SUBCLASS

AnyMatcher = TypeVar("AnyMatcher", bound=Matcher)


def node(name: str) -> NamedNode:
    return NamedNode(f"urn:{name}")


def edges(*written: tuple[str, str, str | Term]) -> Publication:
    """Make a publication of edges; a string names a node."""
    triples: list[Triple] = [
        (node(s), node(p), node(o) if isinstance(o, str) else o) for s, p, o in written
    ]
    return Publication.of("urn:publication", triples)


def tree(height: int) -> Ontology:
    """Make a tree of classes with C1 as root, C2 and C3 below it, and so on."""
    classes = range(2, 2 ** (height + 1))
    return Ontology((node(f"C{k}"), SUBCLASS, node(f"C{k // 2}")) for k in classes)


def filled(index: AnyMatcher, *queries: str) -> AnyMatcher:
    """Subscribe queries with their numbers as ids; ``:`` is short for ``urn:``."""
    for number, query in enumerate(queries):
        index.subscribe(SubscriptionParser().parse(str(number), f"PREFIX : <urn:> {query}"))
    return index

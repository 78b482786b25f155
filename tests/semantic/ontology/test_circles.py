from __future__ import annotations

import pytest
from hypothesis import given
from pyoxigraph import NamedNode

from semantic import Ontology
from semantic.ontology.equivalence import report_own_ancestors
from semantic.ontology.synonyms import Roots, SynonymPairs
from semantic.terms import Term, Triple
from semantic.vocabulary import BROADER, NARROWER, SUBCLASS, SUBPROPERTY, TYPE
from tests.strategies import ontologies

A, B, C, D = (NamedNode(f"urn:{name}") for name in "abcd")


def told(
    stated: list[Triple], groups: list[tuple[NamedNode, NamedNode]], cycles: list[list[Term]]
) -> list[str]:
    found: list[str] = []
    roots = Roots(groups, SynonymPairs(), frozenset())
    report_own_ancestors(stated, roots, cycles, lambda what, _: found.append(what))
    return found


@pytest.mark.parametrize(
    ("stated", "groups", "cycles", "first"),
    [
        ([(A, SUBCLASS, B)], [(A, B)], [], [(A, B)]),
        ([(A, SUBPROPERTY, B)], [(A, B)], [], [(A, B)]),
        ([(A, NARROWER, B)], [(A, B)], [], [(B, A)]),
        ([(A, BROADER, B), (C, SUBCLASS, D)], [(A, B), (C, D)], [], [(C, D), (A, B)]),
        ([(A, SUBCLASS, B)], [(A, C)], [], []),
        ([(A, SUBCLASS, B)], [], [], []),
        ([(A, SUBCLASS, A)], [(A, B)], [], []),
        ([(A, TYPE, B)], [(A, B)], [], []),
        # Only the lowest link is reported.
        ([(A, SUBCLASS, B), (B, SUBCLASS, C)], [(A, B), (B, C)], [], [(A, B)]),
        # The cycle itself was reported before.
        ([(A, SUBCLASS, B), (B, SUBCLASS, A)], [(A, B)], [[A, B]], []),
    ],
)
def test_own_ancestors(
    stated: list[Triple],
    groups: list[tuple[NamedNode, NamedNode]],
    cycles: list[list[Term]],
    first: list[tuple[Term, Term]],
) -> None:
    assert told(stated, groups, cycles) == [
        f"{child} is its own ancestor through equivalence: {parent} is above it, and means the same"
        for child, parent in first
    ]


@given(ontologies())
def test_every_loop_is_reported_once(stated: tuple[Triple, ...]) -> None:
    roots = Ontology(stated, on_problem=lambda _: None).roots
    links = {SUBCLASS, SUBPROPERTY, BROADER, NARROWER}
    loops = {
        roots.root(s)
        for s, p, o in stated
        if p in links and s != o and roots.root(s) == roots.root(o)
    }
    found: list[str] = []
    report_own_ancestors(stated, roots, [], lambda what, _: found.append(what))
    assert len(found) == len(loops)

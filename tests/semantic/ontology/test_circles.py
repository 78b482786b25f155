from __future__ import annotations

from hypothesis import given

from semantic import Ontology
from semantic.ontology.equivalence import report_own_ancestors
from semantic.terms import Triple
from semantic.vocabulary import BROADER, NARROWER, SUBCLASS, SUBPROPERTY
from tests.strategies import ontologies


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

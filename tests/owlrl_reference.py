"""RDFS entailment by owlrl, which is independent of this project."""

from __future__ import annotations

from collections.abc import Iterable

import owlrl  # type: ignore[import-untyped]
import rdflib
from owlrl.RDFSClosure import RDFS_Semantics  # type: ignore[import-untyped]
from pyoxigraph import BlankNode, Literal

from semantic import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import DOMAIN, RANGE, RDF, RDFS, SUBCLASS, SUBPROPERTY, TYPE
from tests.strategies import EX, LITERALS

SCHEMA = (SUBCLASS, SUBPROPERTY, DOMAIN, RANGE)
_TEXTS: dict[Term, Term] = {literal: Literal(f"text {n}") for n, literal in enumerate(LITERALS)}
"""Replacements: rdflib forgets lexical forms, and owlrl merges literals with equal values."""


class _FiveRules(RDFS_Semantics):  # type: ignore[misc]
    """RDFS without its rule that equal values are the same literal."""

    def one_time_rules(self) -> None:
        pass


def spoken(triples: Iterable[Triple]) -> list[Triple]:
    """Return the triples that both reasoners support: no SKOS, OWL or blank nodes."""
    return [
        (s, p, _TEXTS.get(o, o))
        for s, p, o in triples
        if p in SCHEMA or str(p).lstrip("<").startswith((EX.iri, RDF.iri))
        if not isinstance(o, BlankNode) and not isinstance(s, BlankNode)
    ]


def by_owlrl(graph: Iterable[Triple]) -> set[Triple]:
    """Return owlrl's closure of a graph, without triples that have literal subjects."""
    text = " .\n".join([*(" ".join(map(str, triple)) for triple in graph), ""])
    closed = rdflib.Graph().parse(data=text, format="nt")
    owlrl.DeductiveClosure(_FiveRules, axiomatic_triples=False, datatype_axioms=False).expand(
        closed
    )
    for triple in list(closed):
        if isinstance(triple[0], rdflib.Literal):
            closed.remove(triple)
    return set(Publication.from_rdflib(closed).triples)


def ours(graph: Iterable[Triple]) -> set[Triple]:
    """Remove RDFS triples that hold for every term: rules 1, 4, 6, 8, 10, 12 and 13."""
    beyond = (RDF["Property"], RDFS["Resource"], RDFS["Literal"], RDFS["Class"])
    return {
        (s, p, o)
        for s, p, o in graph
        if not (p == TYPE and o in beyond) and not (p in (SUBCLASS, SUBPROPERTY) and s == o)
    }

"""Terms that an ontology says are the same, and root terms put in for them.

Only the triples that say something about terms (sameness, is-a, types) are looked at again and
again while roots are searched for; all the others are rewritten once.

``A ⊑ B`` and ``A ≡ B`` make one term of both, and the link a loop, which says nothing. It is
legal, and often a mistake (the link was meant to be narrower than it is), so it is reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode

from semantic.errors import listed
from semantic.ontology.synonyms import Roots, SynonymOptions, SynonymPairs
from semantic.ontology.taxonomy import Taxonomy, edges_of
from semantic.terms import Term, Triple, compact
from semantic.vocabulary import (
    BROADER,
    BROADER_TRANSITIVE,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    GM,
    NARROWER,
    SAME_AS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)

Report: TypeAlias = Callable[[str, str], None]
"""Takes what is wrong, and what to do."""

Groups: TypeAlias = Mapping[Term, Sequence[Triple]]
"""The triples of each property."""

LINKS = frozenset({TYPE, SUBCLASS, SUBPROPERTY, BROADER, NARROWER, BROADER_TRANSITIVE})
"""The properties of is-a links."""

_SAMENESS = frozenset({SAME_AS, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY})
_SHOWN = 10
"""So many terms or triples are named; the others are counted."""


def by_predicate(triples: Iterable[Triple]) -> Groups:
    """Return the triples of each property."""
    found: defaultdict[Term, list[Triple]] = defaultdict(list)
    for triple in triples:
        found[triple[1]].append(triple)
    return found


def rooted(
    stated: tuple[Triple, ...], pairs: SynonymPairs, options: SynonymOptions, report: Report
) -> tuple[Roots, tuple[Triple, ...], Groups]:
    """Find the root terms, and put them in; declared taxonomies become kinds of ``skos:broader``.

    With roots put in, more terms may turn out to be the same: two cycles that shared no term
    before, say. So this is repeated until nothing is new.

    Returns the roots, the triples with roots put in, and these by their properties.
    """
    groups = by_predicate(stated)
    if extra := _declared_taxonomies(groups.get(TYPE, ())):
        stated = tuple(dict.fromkeys((*stated, *extra)))
        groups = by_predicate(stated)
    declared = frozenset(triple[0] for triple in groups.get(TYPE, ()))
    saying = _SAMENESS | LINKS
    same: dict[tuple[NamedNode, NamedNode], None] = {}
    cycles: list[tuple[NamedNode, ...]] = []
    while True:
        roots = Roots(same, pairs, declared, options)
        said = (t for p, several in groups.items() if roots.root(p) in saying for t in several)
        triples = roots.rewrite(said)
        new = {
            (s, o): None
            for s, p, o in triples
            if p in _SAMENESS and isinstance(s, NamedNode) and isinstance(o, NamedNode)
        }
        for cycle in _cycles(triples, same, roots, report):
            cycles.append(cycle)
            new.update(((cycle[0], other), None) for other in cycle[1:])
        if new.keys() <= same.keys():
            break
        same |= new
    report_own_ancestors((t for p in LINKS for t in groups.get(p, ())), roots, cycles, report)
    if roots.is_identity:
        return roots, stated, groups
    rewritten = tuple(roots.rewrite(stated))
    return roots, rewritten, by_predicate(rewritten)


def _declared_taxonomies(typed: Iterable[Triple]) -> list[Triple]:
    return [
        (subject, SUBPROPERTY, BROADER)
        for subject, _, object_ in typed
        if object_ == GM["Taxonomy"] and isinstance(subject, NamedNode)
    ]


def _cycles(
    triples: Iterable[Triple],
    known: Container[tuple[NamedNode, NamedNode]],
    roots: Roots,
    report: Report,
) -> list[tuple[NamedNode, ...]]:
    """Find the is-a cycles, report those not known, and return their named members."""
    found = []
    for kind, edges in edges_of(triples).items():
        for cycle in Taxonomy(edges).cycles:
            names = tuple(term for term in cycle if isinstance(term, NamedNode))
            if len(names) < 2 or names[:2] in known:
                continue
            shown = listed([_called(term, roots) for term in cycle], _SHOWN)
            report(
                f"a cycle of {kind}: {shown} are all above each other",
                "They are taken as one term; remove a link if they are not.",
            )
            found.append(names)
    return found


def _called(term: Term, roots: Roots) -> str:
    """Write a term with its other names."""
    others = ", ".join(map(compact, roots.names(term)))
    return f"{compact(term)} (the same as {others})" if others else compact(term)


# -- what is reported -----------------------------------------------------------------------


def report_literals(triples: Iterable[Triple], report: Report) -> None:
    """Report literals where a class, a property or a concept should be."""
    wrong = [" ".join(map(compact, triple)) for triple in triples if isinstance(triple[2], Literal)]
    if wrong:
        what = f"a literal where a term should be: {listed(wrong, _SHOWN)}"
        report(what, "It says nothing; write an IRI there.")


def report_own_ancestors(
    stated: Iterable[Triple],
    roots: Roots,
    cycles: Iterable[Sequence[Term]],
    report: Report,
) -> None:
    """Report each class, property or concept that is above itself because two names are one.

    `stated` has the is-a links before roots are put in; what became of one of the `cycles` is not
    told twice.
    """
    if not len(roots):
        return
    root = roots.root
    told = {root(term) for cycle in cycles for term in cycle}
    for edges in edges_of(stated).values():
        for child, parent in edges:
            if child == parent or (one := root(child)) != root(parent) or one in told:
                continue
            told.add(one)
            what = (
                f"{compact(child)} is its own ancestor through equivalence: "
                f"{compact(parent)} is above it, and means the same"
            )
            report(what, "They are taken as one term; remove the link if it says something else.")


def report_circles(trees: Mapping[str, Taxonomy], report: Report) -> None:
    """Report the circles that are left when those of RDFS's and SKOS's own links are folded.

    They are of links that the ontology says by properties of its own (a declared taxonomy); their
    terms stay apart, and each is above the others.
    """
    for kind, taxonomy in trees.items():
        for circle in taxonomy.cycles:
            names = [compact(term) for term in circle if isinstance(term, NamedNode)]
            if len(names) > 1:
                report(
                    f"a circle of {kind}: {listed(names, _SHOWN)} are all above each other",
                    "They stay terms of their own; remove a link if they are not.",
                )

"""Find equivalent terms of an ontology, and replace each by one root term.

The search for root terms is repeated until it finds no new equivalence. It reads only equivalences,
is-a links and types. All other triples are rewritten once, at the end.
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

OnProblemText: TypeAlias = Callable[[str, str], None]
"""Called with the problem and the remedy."""

Groups: TypeAlias = Mapping[Term, Sequence[Triple]]
"""The triples of each property."""

LINKS = frozenset({TYPE, SUBCLASS, SUBPROPERTY, BROADER, NARROWER, BROADER_TRANSITIVE})
"""The properties of is-a links."""

_SAMENESS = frozenset({SAME_AS, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY})
_SHOWN = 10
"""Maximum number of terms or triples in a message; the others are counted."""


def by_predicate(triples: Iterable[Triple]) -> Groups:
    """Group triples by property."""
    found: defaultdict[Term, list[Triple]] = defaultdict(list)
    for triple in triples:
        found[triple[1]].append(triple)
    return found


def rooted(
    stated: tuple[Triple, ...], pairs: SynonymPairs, options: SynonymOptions, report: OnProblemText
) -> tuple[Roots, tuple[Triple, ...], Groups]:
    """Replace terms by their roots; make declared taxonomies sub-properties of ``skos:broader``.

    Replacement can reveal further equivalent terms (for example, when two cycles come to share a
    term), so it is repeated until nothing changes.

    Return the roots, the triples with roots, and these triples by property.
    """
    groups = by_predicate(stated)
    if extra := _declared_taxonomies(groups.get(TYPE, ())):
        stated = tuple(dict.fromkeys((*stated, *extra)))
        groups = by_predicate(stated)
    declared = frozenset(triple[0] for triple in groups.get(TYPE, ()))
    saying = _SAMENESS | LINKS
    same: dict[tuple[NamedNode, NamedNode], None] = {}
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
            new.update(((cycle[0], other), None) for other in cycle[1:])
        if new.keys() <= same.keys():
            break
        same |= new
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
    report: OnProblemText,
) -> list[tuple[NamedNode, ...]]:
    """Report the is-a cycles that `known` does not join yet, and return the IRIs in each of them.

    Cycles with fewer than two IRIs are skipped.
    """
    found = []
    for kind, edges in edges_of(triples).items():
        for cycle in Taxonomy(edges).cycles:
            names = tuple(term for term in cycle if isinstance(term, NamedNode))
            if len(names) < 2 or names[:2] in known:
                continue
            shown = listed([_called(term, roots) for term in cycle], _SHOWN)
            report(
                f"a cycle of {kind}: {shown}",
                "They are treated as one term. Remove a link if they differ.",
            )
            found.append(names)
    return found


def _called(term: Term, roots: Roots) -> str:
    """Return a term for display, with its other names in parentheses."""
    others = ", ".join(map(compact, roots.names(term)))
    return f"{compact(term)} (the same as {others})" if others else compact(term)


# -- reports --------------------------------------------------------------------------------


def report_literals(triples: Iterable[Triple], report: OnProblemText) -> None:
    """Report the triples that have a literal in place of a class, a property or a concept."""
    wrong = [" ".join(map(compact, triple)) for triple in triples if isinstance(triple[2], Literal)]
    if wrong:
        what = f"a literal in the place of an IRI: {listed(wrong, _SHOWN)}"
        report(what, "The triple has no effect. Write an IRI.")


def report_circles(trees: Mapping[str, Taxonomy], report: OnProblemText) -> None:
    """Report the cycles that remain after cycles of RDFS and SKOS links were folded.

    Their links use the ontology's own properties (a declared taxonomy). Their terms stay separate,
    and each is above the others.
    """
    for kind, taxonomy in trees.items():
        for circle in taxonomy.cycles:
            names = [compact(term) for term in circle if isinstance(term, NamedNode)]
            if len(names) > 1:
                report(
                    f"a cycle of {kind}: {listed(names, _SHOWN)}",
                    "They remain separate terms. Remove a link if they differ.",
                )

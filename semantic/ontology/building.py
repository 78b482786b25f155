"""From stated triples to roots, and to triples with the roots put in.

Only the triples that say something about terms (sameness, is-a, types) are looked at
again and again while roots are searched for; all the others are rewritten once.

``A ⊑ B`` and ``A ≡ B`` make one term of both, and the link a loop, which says nothing. It is
legal, and often a mistake (the link was meant to be narrower than it is), so it is reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.ontology.entailment import SCHEMA, Schema
from semantic.ontology.synonyms import Roots, SynonymOptions, SynonymPairs
from semantic.ontology.taxonomy import Taxonomy, find_cycles
from semantic.terms import Term, Triple, compact
from semantic.vocabulary import (
    BROADER,
    BROADER_TRANSITIVE,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    GM,
    INVERSE_OF,
    NARROWER,
    OWL,
    RDF,
    RDFS,
    SAME_AS,
    SKOS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)

Report: TypeAlias = Callable[[str, str], None]
"""Takes what is wrong, and what to do."""

Pair: TypeAlias = tuple[NamedNode, NamedNode]

SAMENESS = frozenset({SAME_AS, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY})
_CLASS_TYPES = frozenset({RDFS["Class"], OWL["Class"]})
_PROPERTY_TYPES = frozenset(
    {RDF["Property"], OWL["ObjectProperty"], OWL["DatatypeProperty"], OWL["AnnotationProperty"]}
)
LINKS = frozenset({TYPE, SUBCLASS, SUBPROPERTY, BROADER, NARROWER, BROADER_TRANSITIVE})
_OF_SKOS = frozenset(
    {
        (BROADER, SUBPROPERTY, BROADER_TRANSITIVE),
        (BROADER, INVERSE_OF, NARROWER),
        (NARROWER, INVERSE_OF, BROADER),
    }
)
"""What SKOS states of its own properties, and the rules know."""

_SAYING = SAMENESS | LINKS
_RULES = SCHEMA | {TYPE}
_BUILT_IN = frozenset({(BROADER, NARROWER), (NARROWER, BROADER), (BROADER, BROADER_TRANSITIVE)})
_SHOWN = 10
"""So many literals in the places of classes are named; the others are counted."""


Groups: TypeAlias = Mapping[Term, Sequence[Triple]]
"""The triples of each property."""


def by_predicate(triples: Iterable[Triple]) -> Groups:
    """Return the triples of each property."""
    found: defaultdict[Term, list[Triple]] = defaultdict(list)
    for triple in triples:
        found[triple[1]].append(triple)
    return found


def declared_taxonomies(typed: Iterable[Triple]) -> tuple[Triple, ...]:
    """Return what makes taxonomies of the properties that are declared as a ``gm:Taxonomy``.

    Each is a kind of ``skos:broader``.
    """
    found: dict[NamedNode, None] = {}
    for subject, _, object_ in typed:
        if object_ == GM["Taxonomy"] and isinstance(subject, NamedNode):
            found[subject] = None
    return tuple((property_, SUBPROPERTY, BROADER) for property_ in found)


def rooted(
    stated: tuple[Triple, ...], pairs: SynonymPairs, options: SynonymOptions, report: Report
) -> tuple[Roots, tuple[Triple, ...], Groups]:
    """Find the roots, and put them in; taxonomies that are declared are made some.

    With roots put in, more terms may turn out to be the same: two cycles that shared no
    term before, say. So this is repeated until nothing is new.

    Returns
    -------
    roots
        Of every term with more than one name.
    triples
        The stated ones, every term replaced by its root.
    groups
        These by their properties.
    """
    groups = by_predicate(stated)
    if extra := declared_taxonomies(groups.get(TYPE, ())):
        stated = tuple(dict.fromkeys((*stated, *extra)))
        groups = by_predicate(stated)
    declared = frozenset(triple[0] for triple in groups.get(TYPE, ()))
    same: dict[Pair, None] = {}
    cycles: list[tuple[NamedNode, ...]] = []
    while True:
        roots = Roots(same, pairs, declared, options)
        saying = (t for p, several in groups.items() if roots.root(p) in _SAYING for t in several)
        triples = roots.rewrite(saying)
        new = dict.fromkeys(same_names(triples))
        found = _cycles(triples, same, roots, report)
        cycles += found
        for cycle in found:
            new.update(((cycle[0], other), None) for other in cycle[1:])
        if new.keys() <= same.keys():
            links = (t for link in LINKS for t in groups.get(link, ()))
            report_own_ancestors(links, roots, cycles, report)
            if roots.is_identity:
                return roots, stated, groups
            rewritten = tuple(roots.rewrite(stated))
            return roots, rewritten, by_predicate(rewritten)
        same |= new


def _cycles(
    triples: Iterable[Triple], known: Container[Pair], roots: Roots, report: Report
) -> list[tuple[NamedNode, ...]]:
    """Find the is-a cycles, report those not known, and return their named members."""
    found = []
    for kind, edges in edges_of(triples, LINKS).items():
        for cycle in find_cycles(edges):
            names = tuple(term for term in cycle if isinstance(term, NamedNode))
            if len(names) < 2 or names[:2] in known:
                continue
            listed = ", ".join(_called(term, roots) for term in cycle)
            report(
                f"a cycle of {kind}: {listed} are all above each other",
                "They are taken as one term; remove a link if they are not.",
            )
            found.append(names)
    return found


def _called(term: Term, roots: Roots) -> str:
    """Write a term with its other names."""
    others = ", ".join(map(compact, roots.names(term)))
    return f"{compact(term)} (the same as {others})" if others else compact(term)


def compiled(groups: Groups) -> Schema:
    """Compile the rules, those included that the ontology has by its own rules only.

    An ontology may state its schema by properties of its own: sub-properties or inverses
    of ``rdfs:subClassOf``, say.
    """
    known = dict.fromkeys(t for p, several in groups.items() if p in _RULES for t in several)
    while True:
        edges = edges_of(known)
        schema = Schema(known, *(Taxonomy(edges[kind]) for kind in edges))
        if not any(map(gives_schema, known)):
            return schema
        giving = [t for p, several in groups.items() if _gives(p, schema) for t in several]
        more = [t for t in schema.close(giving) if t[1] in SCHEMA and t not in known]
        if not more:
            return schema
        known |= dict.fromkeys(more)


def _gives(property_: Term, schema: Schema) -> bool:
    """Whether what has this property may state schema by the ontology's own rules."""
    seen = {property_: None}
    agenda = [property_]
    for current in agenda:
        following = [*schema.properties.ancestors(current), *schema.inverses.get(current, ())]
        if current in schema.domains or current in schema.ranges:
            following.append(TYPE)
        if current == BROADER:
            following.append(BROADER_TRANSITIVE)
        for other in following:
            if other in SCHEMA and (current, other) not in _BUILT_IN:
                return True
            if other not in seen:
                seen[other] = None
                agenda.append(other)
    return False


def link_properties(schema: Schema) -> Mapping[Term, tuple[NamedNode, ...]]:
    """Return the is-a properties that each property says: itself, and those above it."""
    found: dict[Term, tuple[NamedNode, ...]] = {link: (link,) for link in LINKS}
    taxonomy = schema.properties
    for property_ in dict.fromkeys(p for link in LINKS for p in taxonomy.descendants(link)):
        above = (property_, *schema.properties.ancestors(property_))
        if links := tuple(
            dict.fromkeys(p for p in above if isinstance(p, NamedNode) and p in LINKS)
        ):
            found[property_] = links
    return found


def report_literals(groups: Groups, linking: Container[Term], report: Report) -> None:
    """Report literals where a class, a property or a concept should be."""
    said = (p for p in groups if p in _RULES or p in linking)
    saying = (triple for property_ in said for triple in groups[property_])
    wrong = [triple for triple in saying if isinstance(triple[2], Literal)]
    for triple in wrong[:_SHOWN]:
        written = " ".join(map(compact, triple))
        report(
            f"a literal where a term should be: {written}",
            "It says nothing; write an IRI there.",
        )
    if len(wrong) > _SHOWN:
        report(
            f"{len(wrong) - _SHOWN} more literals where a term should be",
            "They say nothing; write IRIs there.",
        )


# -- what is reported -----------------------------------------------------------------------


def report_own_ancestors(
    stated: Iterable[Triple],
    roots: Roots,
    cycles: Iterable[Sequence[Term]],
    report: Report,
) -> None:
    """Report each class, property or concept that is above itself because two names are one.

    Parameters
    ----------
    stated
        The is-a links as they are stated, before roots are put in; other triples do no harm.
    roots
        The roots that were found in the end.
    cycles
        Members of the cycles that were reported already: what became of one is not told twice.
    report
        Takes what is wrong, and what to do.

    Examples
    --------
    >>> from semantic.ontology.synonyms import SynonymPairs
    >>> from semantic.vocabulary import SUBCLASS, Namespace
    >>> ex = Namespace("http://example.org/")
    >>> roots = Roots([(ex["Car"], ex["Auto"])], SynonymPairs(), frozenset())
    >>> stated = [(ex["Car"], SUBCLASS, ex["Auto"])]
    >>> report_own_ancestors(stated, roots, [], lambda what, remedy: print(what))
    <http://example.org/Car> is its own ancestor through equivalence: \
<http://example.org/Auto> is above it, and means the same
    """
    if not len(roots):
        return
    root = roots.root
    told = {root(term) for cycle in cycles for term in cycle}
    for edges in edges_of(stated, LINKS).values():
        for child, parent in edges:
            if child == parent or (one := root(child)) != root(parent) or one in told:
                continue
            told.add(one)
            what = (
                f"{compact(child)} is its own ancestor through equivalence: "
                f"{compact(parent)} is above it, and means the same"
            )
            report(what, "They are taken as one term; remove the link if it says something else.")


def report_circles(trees: Iterable[tuple[str, Taxonomy]], report: Report) -> None:
    """Report the circles that are left when those of RDFS's and SKOS's own links are folded.

    They are of links that the ontology says by properties of its own (a declared taxonomy); their
    terms stay apart, and each is above the others.
    """
    for kind, taxonomy in trees:
        for circle in taxonomy.cycles:
            names = [term for term in circle if isinstance(term, NamedNode)]
            if len(names) > 1:
                listed = ", ".join(map(compact, names))
                report(
                    f"a circle of {kind}: {listed} are all above each other",
                    "They stay terms of their own; remove a link if they are not.",
                )


# -- triples by what they say ---------------------------------------------------------------


def same_names(triples: Iterable[Triple]) -> list[tuple[NamedNode, NamedNode]]:
    """Return the pairs of named terms that are said to mean the same."""
    return [
        (s, o)
        for s, p, o in triples
        if p in SAMENESS and isinstance(s, NamedNode) and isinstance(o, NamedNode)
    ]


def gives_schema(triple: Triple) -> bool:
    """Whether a triple makes a property say what one of the schema's properties says."""
    subject, predicate, object_ = triple
    if triple in _OF_SKOS:
        return False
    if predicate == INVERSE_OF:
        return subject in SCHEMA or object_ in SCHEMA
    return predicate == SUBPROPERTY and object_ in SCHEMA


def edges_of(
    triples: Iterable[Triple], properties: Container[Term] = SCHEMA
) -> dict[str, list[tuple[Term, Term]]]:
    """Sort the is-a triples of these properties into the edges of the three taxonomies."""
    edges: dict[str, list[tuple[Term, Term]]] = {"classes": [], "properties": [], "concepts": []}
    for subject, predicate, object_ in triples:
        if isinstance(object_, Literal) or predicate not in properties:
            continue
        if predicate == SUBCLASS:
            edges["classes"].append((subject, object_))
        elif predicate == SUBPROPERTY:
            edges["properties"].append((subject, object_))
        elif predicate in (BROADER, BROADER_TRANSITIVE):
            edges["concepts"].append((subject, object_))
        elif predicate == NARROWER:
            edges["concepts"].append((object_, subject))
    return edges


def members_of(triples: Iterable[Triple]) -> dict[str, list[Term]]:
    """Sort the declared terms into the three taxonomies."""
    members: dict[str, list[Term]] = {"classes": [], "properties": [], "concepts": []}
    for subject, predicate, object_ in triples:
        if predicate == TYPE and not isinstance(subject, BlankNode):
            if object_ in _CLASS_TYPES:
                members["classes"].append(subject)
            elif object_ in _PROPERTY_TYPES:
                members["properties"].append(subject)
            elif object_ == SKOS["Concept"]:
                members["concepts"].append(subject)
    return members

"""Count the axioms of an ontology that an entailment ignores.

Whether a rule can use a class expression depends on its position. In ``R rdfs:subClassOf C``, an
existential restriction R gives the class C to resources. In ``C rdfs:subClassOf R`` it asks for a
new resource, which no rule creates.

Source: OWL 2 Web Ontology Language Profiles (Second Edition), section 4.3, tables 4 to 9:
https://www.w3.org/TR/owl2-profiles/
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pyoxigraph import Literal, NamedNode

from semantic.errors import plural, unknown_choice
from semantic.ontology.equivalence import Groups
from semantic.terms import Term, expanded
from semantic.vocabulary import OWL, PREFIXES, RDF, RDFS, TYPE, XSD

_T = TypeVar("_T")
AxiomCounts: TypeAlias = Counter[tuple[str, str]]
"""The number of axioms of a kind and a least entailment that uses them: `_NONE` if none does."""

_RDFS, _OWL_RL, _NONE = "rdfs", "owl-rl", ""
_USED: Mapping[str, Container[str]] = {"none": (), _RDFS: (_RDFS,), _OWL_RL: (_RDFS, _OWL_RL)}
"""For each entailment, the least entailments of the axioms that it uses."""
_SUB, _SUPER = 1, 2
"""The side of ``rdfs:subClassOf`` on which a class is; equivalent classes are on both."""


def _by_term(rows: Iterable[tuple[str, _T, str]]) -> dict[Term, tuple[str, _T]]:
    """Map each term of a table to its kind and use."""
    others = {"sh": "http://www.w3.org/ns/shacl#", "swrl": "http://www.w3.org/2003/11/swrl#"}
    prefixes = PREFIXES | others
    return {expanded(term, prefixes): row[:2] for row in rows for term in row[2].split()}


_AXIOMS = _by_term(
    (
        # Kind, least entailment that uses it, properties or classes that state it.
        ("subclass axiom", _RDFS, "rdfs:subClassOf"),
        ("subproperty axiom", _RDFS, "rdfs:subPropertyOf"),
        ("domain", _RDFS, "rdfs:domain"),
        ("range", _RDFS, "rdfs:range"),
        ("equivalence", _RDFS, "owl:equivalentClass owl:equivalentProperty owl:sameAs"),
        ("inverse property", _RDFS, "owl:inverseOf"),
        ("broader concept", _RDFS, "skos:broader skos:broaderTransitive skos:narrower"),
        ("functional property", _OWL_RL, "owl:FunctionalProperty"),
        ("inverse functional property", _OWL_RL, "owl:InverseFunctionalProperty"),
        ("symmetric property", _OWL_RL, "owl:SymmetricProperty"),
        ("asymmetric property", _OWL_RL, "owl:AsymmetricProperty"),
        ("transitive property", _OWL_RL, "owl:TransitiveProperty"),
        ("irreflexive property", _OWL_RL, "owl:IrreflexiveProperty"),
        ("reflexive property", _NONE, "owl:ReflexiveProperty"),
        ("property chain", _OWL_RL, "owl:propertyChainAxiom"),
        ("key axiom", _OWL_RL, "owl:hasKey"),
        ("disjointness axiom", _OWL_RL, "owl:disjointWith owl:AllDisjointClasses"),
        ("disjointness axiom", _OWL_RL, "owl:propertyDisjointWith owl:AllDisjointProperties"),
        ("disjoint union", _NONE, "owl:disjointUnionOf"),
        ("difference axiom", _OWL_RL, "owl:differentFrom owl:AllDifferent"),
        ("negative assertion", _OWL_RL, "owl:NegativePropertyAssertion"),
        ("narrower concept", _NONE, "skos:narrowerTransitive"),
        ("SKOS mapping", _NONE, "skos:exactMatch skos:closeMatch skos:relatedMatch"),
        ("SKOS mapping", _NONE, "skos:broadMatch skos:narrowMatch"),
        ("SHACL rule", _NONE, "sh:rule"),
        ("SWRL rule", _NONE, "swrl:Imp"),
    )
)
_EXPRESSIONS = _by_term(
    (
        # Kind, sides on which owl-rl uses it, properties that state it.
        ("existential restriction", _SUB, "owl:someValuesFrom"),
        ("universal restriction", _SUPER, "owl:allValuesFrom"),
        ("value restriction", _SUB | _SUPER, "owl:hasValue"),
        ("self restriction", 0, "owl:hasSelf"),
        ("cardinality restriction", _SUPER, "owl:maxCardinality owl:maxQualifiedCardinality"),
        ("cardinality restriction", 0, "owl:cardinality owl:qualifiedCardinality"),
        ("cardinality restriction", 0, "owl:minCardinality owl:minQualifiedCardinality"),
        ("union", _SUB, "owl:unionOf"),
        ("intersection", _SUB | _SUPER, "owl:intersectionOf"),
        ("complement", _SUPER, "owl:complementOf"),
        ("enumeration", _SUB, "owl:oneOf"),
        ("restricted datatype", 0, "owl:onDatatype"),
    )
)
_MAXIMA: frozenset[Term] = frozenset({OWL["maxCardinality"], OWL["maxQualifiedCardinality"]})
"""Cardinalities of which owl-rl uses the values in `_SMALL`."""
_SMALL = frozenset(Literal(number, datatype=XSD["nonNegativeInteger"]) for number in "01")
_LISTS: frozenset[Term] = frozenset(
    OWL[name] for name in ("intersectionOf", "unionOf", "oneOf", "propertyChainAxiom", "hasKey")
)
"""Properties whose values owl-rl uses only if they are lists with members."""
_TURNING = frozenset({"complement", "cardinality restriction"})
"""Kinds of expressions on the superclass side whose parts are on the subclass side."""
_SIDES: Mapping[NamedNode, tuple[int, int]] = {
    RDFS["subClassOf"]: (_SUB, _SUPER),
    OWL["equivalentClass"]: (_SUB | _SUPER, _SUB | _SUPER),
    OWL["disjointWith"]: (_SUB, _SUB),
    RDFS["domain"]: (0, _SUPER),
    RDFS["range"]: (0, _SUPER),
    TYPE: (0, _SUPER),
}
"""The sides of the subject and the object of a triple, by its property."""


@dataclass(frozen=True, slots=True)
class UnusedAxioms:
    """The axioms that an entailment ignores; false if there are none.

    Parameters
    ----------
    kinds
        The number of axioms of each kind, the most frequent first.
    owl_rl
        The number of those that ``owl-rl`` uses.

    Examples
    --------
    >>> print(UnusedAxioms("rdfs", {"transitive property": 3, "key axiom": 1}, 4))
    3 transitive properties, 1 key axiom: not used by rdfs; 4 of them are used by owl-rl
    """

    entailment: str
    kinds: Mapping[str, int]
    owl_rl: int

    @classmethod
    def of(cls, counts: AxiomCounts, entailment: str) -> UnusedAxioms:
        """Return the axioms among `counts` that an entailment ignores.

        Raises
        ------
        InputError
            If the entailment is unknown.
        """
        if entailment not in _USED:
            raise unknown_choice("entailment", entailment, _USED)
        kinds, owl_rl = Counter[str](), 0
        for (kind, least), number in counts.items():
            if least not in _USED[entailment]:
                kinds[kind] += number
                owl_rl += number * (least in _USED[_OWL_RL])
        return cls(entailment, dict(kinds.most_common()), owl_rl)

    def __bool__(self) -> bool:
        """Return whether any axiom is ignored."""
        return bool(self.kinds)

    def __str__(self) -> str:
        """Return the counts as one line."""
        listed = ", ".join(
            plural(number, kind, f"{kind[:-1]}ies" if kind.endswith("y") else None)
            for kind, number in self.kinds.items()
        )
        name, users = self.entailment, _OWL_RL
        if name == "none":
            name, users = "entailment none", f"{_RDFS} or {_OWL_RL}"
        text = f"{listed or 'no axioms'}: not used by {name}"
        if self.entailment == _OWL_RL:
            return text
        of_them = f"{self.owl_rl:,} of them {'is' if self.owl_rl == 1 else 'are'}"
        return f"{text}; {of_them} used by {users}"


def count_axioms(groups: Groups, taxonomies: Container[Term]) -> AxiomCounts:
    """Count the axioms of an ontology, each with the least entailment that uses it.

    Parameters
    ----------
    groups
        The triples of the ontology by property.
    taxonomies
        Properties that rules follow like ``skos:broader``.
    """
    counts: AxiomCounts = Counter()
    lists = {node for node, _, _ in groups.get(RDF["first"], ())}
    for term, (kind, least) in _AXIOMS.items():
        stated = groups.get(term, ())
        unused = sum(value not in lists for _, _, value in stated) if term in _LISTS else 0
        counts[kind, _NONE] += unused
        counts[kind, _RDFS if term in taxonomies else least] += len(stated) - unused
    for _, _, class_ in groups.get(TYPE, ()):
        if class_ in _AXIOMS:
            counts[_AXIOMS[class_]] += 1
    sides = _sides(groups, lists)
    for node, kind, used, _ in _expressions(groups, lists):
        counts[kind, _OWL_RL if used & sides[node] else _NONE] += 1
    return +counts


def _expressions(groups: Groups, lists: Container[Term]) -> Iterator[tuple[Term, str, int, Term]]:
    """Yield each class expression, its kind, the sides on which owl-rl uses it, and its part.

    `lists` are the nodes of RDF lists with members.
    """
    classes = {node: class_ for node, _, class_ in groups.get(OWL["onClass"], ())}
    allowed = dict.fromkeys(_MAXIMA, _SMALL) | dict.fromkeys(_LISTS, lists)
    for property_, (kind, used) in _EXPRESSIONS.items():
        for node, _, part in groups.get(property_, ()):
            is_used = property_ not in allowed or part in allowed[property_]
            yield node, kind, used if is_used else 0, classes.get(node, part)


def _sides(groups: Groups, lists: Container[Term]) -> Mapping[Term, int]:
    """Return the sides of each class expression, as far as owl-rl uses what it is a part of."""
    parts = defaultdict[Term, list[tuple[int, bool, Term]]](list)
    for node, kind, used, part in _expressions(groups, lists):
        parts[node].append((used, kind in _TURNING, part))
    for property_ in (RDF["first"], RDF["rest"]):
        for node, _, part in groups.get(property_, ()):
            parts[node].append((_SUB | _SUPER, False, part))
    found = dict.fromkeys(parts, 0)
    todo: list[tuple[Term, int]] = [(t, _SUB | _SUPER) for t in parts if isinstance(t, NamedNode)]
    for property_, (side, other_side) in _SIDES.items():
        for subject, _, object_ in groups.get(property_, ()):
            pairs = (subject, side), (object_, other_side)
            todo += (pair for pair in pairs if pair[0] in parts)
    while todo:
        node, side = todo.pop()
        new = side & ~found.get(node, side)
        if new:
            found[node] |= new
            for used, turns, part in parts[node]:
                below = new & used
                todo.append((part, _SUB if turns and below else below))
    return found

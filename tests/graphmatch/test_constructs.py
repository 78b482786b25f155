"""The constructs of RDFS, OWL, SKOS and SHACL that are applied: the table of docs/reference/owl.md.

Each case has a condition that holds only if a construct is applied. All cases are one ontology, so
that each reasoner starts once. Cases of ``owl-rl`` run if the engine has this entailment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphmatch import Engine, Operator, Reasoner, Shacl
from graphmatch.enrichment import Entailment
from semantic.ontology.ontology import Ontology

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/owl.md"
ENTAILMENTS = [name for name in ("rdfs", "owl-rl") if name in {each.value for each in Entailment}]
NOT_BY_OWL_RL = frozenset(
    {
        *("owl:hasSelf", "owl:minCardinality", "owl:cardinality", "owl:minQualifiedCardinality"),
        "owl:disjointUnionOf",
    }
)
CONTRADICTIONS = frozenset({"owl:complementOf, owl:disjointWith", "owl:AllDisjointClasses"})
"""Constructs from which owl-rl derives only contradictions."""
NAMES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dcterms": "http://purl.org/dc/terms/",
    "sh": "http://www.w3.org/ns/shacl#",
    "op": "urn:graphmatch-operator:",
}
PREFIXES = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in NAMES.items())
DECLARED = ":p a owl:ObjectProperty . :A a owl:Class . :B a owl:Class . :C a owl:Class .\n"
SHORT = {
    "$where": "owl:equivalentClass [ a owl:Restriction ; owl:onProperty :p ;",
    "$is": "owl:equivalentClass [ a owl:Class ;",
    "$one": '"1"^^xsd:nonNegativeInteger',
}


@dataclass(frozen=True)
class Case:
    """A construct, and statements of an ontology and a publication.

    ``condition`` holds for the publication if a rule applies the construct. ``inferred`` holds
    for the ontology if a reasoner applies it. ``member`` is in the class ``:A`` if the operator
    `Reasoner` applies it to the publication.
    """

    construct: str
    ontology: str
    publication: str
    condition: str
    inferred: str = ""
    member: str = "<urn:1>"

    @property
    def prefixes(self) -> str:
        return f"{PREFIXES}PREFIX : <urn:case:{CASES.index(self)}:>\n"

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The cells of the table: ``rdfs``, ``owl-rl``, ``--reason`` and ``op:instance``."""
        if self in BY_RULES:
            return "yes", "yes", "", ""
        if self in BY_NONE:
            return "no", "no", "no", "no"
        owl_rl = "contradictions" if self.construct in CONTRADICTIONS else "yes"
        return "no", "no" if self.construct in NOT_BY_OWL_RL else owl_rl, "yes", "yes"

    @property
    def turtle(self) -> str:
        return f"{self.prefixes}{DECLARED if self.inferred else ''}{self.ontology} .\n"


def cases(text: str) -> list[Case]:
    """Read cases, one per line with its fields between bars; indented lines continue a case."""
    for short, long in SHORT.items():
        text = text.replace(short, long)
    lines = re.split(r"\n(?! )", text.strip())
    return [Case(*(" ".join(field.split()) for field in line.split("|"))) for line in lines]


def topics(*properties: str) -> list[Case]:
    """Return cases of properties that may lead from a topic to a broader one."""
    same = "<urn:1> dcterms:subject :c | ?x dcterms:subject :d"
    return cases("\n".join(f"{name} | :c {name} :d | {same}" for name in properties))


BY_RULES = [
    *cases("""
rdfs:subClassOf | :B rdfs:subClassOf :A | <urn:1> a :B | ?x a :A
rdfs:subPropertyOf | :p rdfs:subPropertyOf :q | <urn:1> :p 1 | ?x :q 1
rdfs:domain | :p rdfs:domain :A | <urn:1> :p 1 | ?x a :A
rdfs:range | :p rdfs:range :A | <urn:2> :p <urn:1> | ?x a :A
owl:equivalentClass | :B owl:equivalentClass :A | <urn:1> a :B | ?x a :A
owl:equivalentProperty | :p owl:equivalentProperty :q | <urn:1> :p 1 | ?x :q 1
owl:sameAs | :i owl:sameAs :j | <urn:1> :p :i | ?x :p :j
owl:inverseOf | :p owl:inverseOf :q | <urn:1> :p <urn:2> | <urn:2> :q <urn:1>
skos:narrower | :d skos:narrower :c | <urn:1> dcterms:subject :c | ?x dcterms:subject :d
"""),
    *topics("skos:broader", "skos:broaderTransitive"),
]
BY_REASONERS = cases("""
owl:SymmetricProperty | :p a owl:SymmetricProperty ; rdfs:domain :A . :i :p :j
    | <urn:1> :p <urn:2> | <urn:2> :p <urn:1> | :j a :A | <urn:2>
owl:TransitiveProperty | :p a owl:TransitiveProperty . :i :p :j . :j :p :k .
    :A $where owl:hasValue :k ] | <urn:1> :p :i | <urn:1> :p :j | :i a :A
owl:propertyChainAxiom | :q owl:propertyChainAxiom ( :p :p ) ; a owl:ObjectProperty ;
    rdfs:domain :A . :i :p :j . :j :p :k | <urn:1> :p :j | <urn:1> :q :k | :i a :A
owl:FunctionalProperty | :p a owl:FunctionalProperty . :i :p :j , :k . :j a :A
    | <urn:2> :p <urn:1> , <urn:3> . <urn:3> a :A | <urn:1> a :A | :k a :A
owl:InverseFunctionalProperty | :p a owl:InverseFunctionalProperty . :i :p :k ; a :A . :j :p :k
    | <urn:1> :p <urn:2> . <urn:3> :p <urn:2> ; a :A | <urn:1> a :A | :j a :A
owl:hasKey | :B owl:hasKey ( :p ) . :i a :B , :A ; :p :k . :j a :B ; :p :k
    | <urn:1> a :B ; :p :k . <urn:2> a :B , :A ; :p :k | <urn:1> a :A | :j a :A
owl:someValuesFrom | :A $where owl:someValuesFrom :C ] . :i :p :j . :j a :C
    | <urn:1> :p <urn:2> . <urn:2> a :C | ?x a :A | :i a :A
owl:allValuesFrom | :B $where owl:allValuesFrom :A ] . :i a :B ; :p :j
    | <urn:2> a :B ; :p <urn:1> | <urn:1> a :A | :j a :A
owl:hasValue | :A $where owl:hasValue :j ] . :i :p :j | <urn:1> :p :j | <urn:1> a :A | :i a :A
owl:hasSelf | :A $where owl:hasSelf true ] . :i :p :i
    | <urn:1> :p <urn:1> | <urn:1> a :A | :i a :A
owl:minCardinality | :A $where owl:minCardinality $one ] . :i :p :j
    | <urn:1> :p :j | <urn:1> a :A | :i a :A
owl:maxCardinality | :B $where owl:maxCardinality $one ] . :i a :B ; :p :j , :k . :j a :A
    | <urn:2> a :B ; :p <urn:1> , <urn:3> . <urn:3> a :A | <urn:1> a :A | :k a :A
owl:cardinality | :B $where owl:cardinality $one ] . :i a :B ; :p :j , :k . :j a :A
    | <urn:2> a :B ; :p <urn:1> , <urn:3> . <urn:3> a :A | <urn:1> a :A | :k a :A
owl:minQualifiedCardinality | :A $where owl:onClass :C ; owl:minQualifiedCardinality $one ] .
    :i :p :j . :j a :C | <urn:1> :p <urn:2> . <urn:2> a :C | ?x a :A | :i a :A
owl:unionOf | :A $is owl:unionOf ( :B :C ) ] . :i a :B | <urn:1> a :B | ?x a :A | :i a :A
owl:intersectionOf | :A $is owl:intersectionOf ( :B :C ) ] . :i a :B , :C
    | <urn:1> a :B , :C | ?x a :A | :i a :A
owl:complementOf, owl:disjointWith | :A $is owl:complementOf :B ] . :C owl:disjointWith :B . :i a :C
    | <urn:1> a :C | ?x a :A | :i a :A
owl:AllDisjointClasses | :A $is owl:complementOf :B ] . :i a :C .
    [ a owl:AllDisjointClasses ; owl:members ( :B :C ) ] | <urn:1> a :C | ?x a :A | :i a :A
owl:disjointUnionOf | :A owl:disjointUnionOf ( :B :C ) . :i a :B | <urn:1> a :B | ?x a :A | :i a :A
owl:oneOf | :A $is owl:oneOf ( :i :j ) ] . :i :p :j
    | <urn:1> :p :i | <urn:1> :p ?y . ?y a :A | :i a :A | :i
""")
BY_NONE = [
    *topics("skos:narrowerTransitive", "skos:related", "skos:exactMatch", "skos:closeMatch"),
    *topics("skos:broadMatch", "skos:narrowMatch", "skos:topConceptOf", "skos:inScheme"),
    *cases("""
rdfs:member | :i rdf:_1 :j | <urn:1> rdf:_1 :j | ?x rdfs:member :j
sh:targetClass, sh:property | :S a sh:NodeShape ; sh:targetClass :B ; sh:class :A
    | <urn:1> a :B | ?x a :A
sh:rule | :S a sh:NodeShape ; sh:targetClass :B ; sh:rule [ a sh:TripleRule ; sh:subject sh:this ;
    sh:predicate rdf:type ; sh:object :A ] | <urn:1> a :B | ?x a :A
"""),
]
CASES = [*BY_RULES, *BY_REASONERS, *BY_NONE]
NOT_COUNTED = frozenset(
    {
        *("skos:related", "skos:topConceptOf", "skos:inScheme", "rdfs:member"),
        "sh:targetClass, sh:property",
    }
)
"""Constructs that are data, so that `Ontology.unused_axioms` does not count them."""
SEEN = "<urn:1> :seen 1"
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.construct)
reasoned = pytest.mark.parametrize("case", BY_REASONERS, ids=lambda case: case.construct)


def holds(
    ontology: Ontology,
    case: Case,
    publication: str,
    condition: str,
    *by: Operator,
    entailment: str = "rdfs",
) -> bool:
    """Return whether a condition holds for a publication, in the names of a case."""
    engine = Engine(ontology, operators=by, entailment=entailment)
    engine.subscribe("one", f"{case.prefixes}ASK {{ {condition} }}")
    document = f"{case.prefixes}{publication} .".encode()
    (report,) = engine.filter(document, "ttl", "document")
    assert not report.undecided
    return bool(report)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("constructs") / "all.ttl"
    path.write_text("".join(case.turtle for case in CASES), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def stated(document: Path) -> Ontology:
    return Ontology.load(document)


@pytest.fixture(scope="module")
def inferred(document: Path) -> Ontology:
    return Ontology.load(document, reason="hermit", cache=False)


@pytest.fixture(scope="module")
def instance(stated: Ontology) -> Iterator[Reasoner]:
    operator = Reasoner(stated.stated)
    yield operator
    operator.close()


@each
@pytest.mark.parametrize("entailment", ENTAILMENTS)
def test_which_constructs_rules_apply(case: Case, entailment: str, stated: Ontology) -> None:
    cell = case.cells[("rdfs", "owl-rl").index(entailment)]
    applied = holds(stated, case, case.publication, case.condition, entailment=entailment)
    assert applied is (cell == "yes")


@each
def test_that_unused_axioms_are_those_of_the_table(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "case.ttl"
    path.write_text(case.turtle, encoding="utf-8")
    ontology = Ontology.load(path)
    is_counted = case.construct not in NOT_COUNTED
    for entailment, cell in zip(("rdfs", "owl-rl"), case.cells, strict=False):
        assert bool(ontology.unused_axioms(entailment)) is (cell == "no" and is_counted)


@reasoned
def test_that_a_reasoner_applies_them_to_the_ontology(
    case: Case, stated: Ontology, inferred: Ontology
) -> None:
    condition = f"{SEEN} . {case.inferred}"
    assert holds(inferred, case, SEEN, condition)
    assert not holds(stated, case, SEEN, condition)


@pytest.mark.parametrize("case", BY_NONE, ids=lambda case: case.construct)
def test_which_constructs_no_reasoner_applies(case: Case, inferred: Ontology) -> None:
    assert not holds(inferred, case, case.publication, case.condition)


@reasoned
def test_that_the_operator_applies_them_to_a_publication(case: Case, instance: Reasoner) -> None:
    condition = f"?s ?p ?o FILTER(op:instance({case.member}, :A))"
    assert holds(Ontology(), case, case.publication, condition, instance)


def test_that_the_operator_of_shapes_uses_constraints_and_no_targets(tmp_path: Path) -> None:
    case = BY_NONE[-1]
    shapes = tmp_path / "shapes.ttl"
    shapes.write_text(f"{case.turtle} :S sh:class :A .", encoding="utf-8")
    for publication, conforms in (("<urn:1> a :A", True), ("<urn:1> a :B", False)):
        condition = "?x a ?type FILTER(op:conforms(?x, :S))"
        assert holds(Ontology(), case, publication, condition, Shacl(shapes)) is conforms


def table() -> str:
    """Return the rows of docs/reference/owl.md."""
    return "".join(
        f"| {', '.join(f'`{name}`' for name in case.construct.split(', '))} |"
        f" {' | '.join(case.cells)} |\n"
        for case in CASES
    )


def test_that_the_page_has_this_table() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")

"""OWL 2 RL on publications: examples, and random cases beside owlrl."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import BlankNode, NamedNode

from graphmatch import Engine
from graphmatch.enrichment import Enricher, Entailment
from graphmatch.explain.evidence import distinct_reasons
from graphmatch.explain.provenance import Provenance
from semantic.clock import utc_now
from semantic.errors import Problem
from semantic.limits import Limits
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Triple
from semantic.vocabulary import EQUIVALENT_CLASS, EQUIVALENT_PROPERTY, TYPE
from tests.graphmatch.test_closure import triples
from tests.owl_rl_cases import Case, Maker, by_owlrl, significant
from tests.strategies import EX

MISSED = ("eq-diff2", "eq-diff3", "prp-adp")
"""Rules of contradictions that owlrl does not always apply."""


def enriched(case: Case) -> tuple[Ontology, set[Triple], set[Triple], list[Problem]]:
    """Return C(O), E(P), and the problems that an engine reports."""
    problems: list[Problem] = []
    ontology = Ontology(case.ontology, on_problem=lambda _: None)
    engine = Engine(ontology, entailment="owl-rl", on_problem=problems.append)
    engine.subscribe("a", f"SELECT ?s {{ ?s a {EX['A']} }}")
    report = engine.match(Publication.of("urn:p", case.publication))
    problems += report.problems
    enricher = Enricher(ontology, Entailment.OWL_RL)
    whole = enricher.enrich(Publication.of("urn:p", case.publication), utc_now()).publication
    derived = set(whole.triples)
    asked = {s for s, p, o in derived if p == TYPE and o == ontology.root(EX["A"])}
    found = {row["s"] for match in report for row in match.solutions}
    assert found == asked  # What a subscription demands is derived, and no less.
    return ontology, set(enricher.closure), derived, problems


def compare(case: Case) -> bool:
    """Compare a closure with owlrl's; return whether the case is consistent."""
    ontology, known, derived, problems = enriched(case)
    ours = set(significant(known | derived, ontology.root))
    expected, is_consistent = by_owlrl([*case.ontology, *case.publication])
    theirs = set(significant(expected, ontology.root))
    contradictions = [one for one in problems if "contradicts" in one.what]
    if is_consistent:
        contradictions = [one for one in contradictions if not any(r in one.what for r in MISSED)]
    assert is_consistent == (not contradictions)
    if is_consistent:
        # A cycle of more than two sub-classes is not stated as equivalences.
        stated = (EQUIVALENT_CLASS, EQUIVALENT_PROPERTY)
        assert {t for t in ours ^ theirs if t[1] not in stated} == set()
    return is_consistent


@pytest.mark.parametrize(("axioms", "facts", "published"), [(3, 5, 0), (7, 7, 0), (4, 5, 3)])
def test_random_cases_beside_owlrl(axioms: int, facts: int, published: int) -> None:
    cases = [Maker(seed).case(axioms, facts, published_axioms=published) for seed in range(25)]
    assert 5 < sum(map(compare, cases)) < 25


@pytest.mark.long
@pytest.mark.parametrize(("axioms", "facts", "published"), [(3, 5, 0), (7, 7, 0), (4, 5, 3)])
def test_ten_thousand_random_cases_beside_owlrl(axioms: int, facts: int, published: int) -> None:
    seeds = range(100, 3_434)
    made = (Maker(seed).case(axioms, facts, published_axioms=published) for seed in seeds)
    assert sum(map(compare, made)) > 1_000


@pytest.mark.parametrize(
    ("ontology", "publication", "more"),
    [
        (":p a owl:SymmetricProperty .", ":x :p :y", ":y :p :x"),
        (":p a owl:TransitiveProperty .", ":x :p :y . :y :p :z", ":x :p :z"),
        (":p a owl:TransitiveProperty . :y :p :z .", ":x :p :y", ":x :p :z"),
        (":u owl:propertyChainAxiom (:p :q) .", ":x :p :y . :y :q :z", ":x :u :z"),
        (":u owl:propertyChainAxiom (:p :q :p) .", ":x :p :y . :y :q :z . :z :p 1", ":x :u 1"),
        ("[] a owl:Restriction ; owl:onProperty :p ; owl:someValuesFrom :B ; rdfs:subClassOf :A .",
         ":x :p :y . :y a :B", ":x a :A"),
        ("[] owl:onProperty :p ; owl:someValuesFrom owl:Thing ; rdfs:subClassOf :A .",
         ":x :p 1", ":x a :A"),
        (":A rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom :B ] .",
         ":x a :A ; :p :y", ":y a :B"),
        (":A owl:equivalentClass [ owl:onProperty :p ; owl:hasValue :v ] .",
         ":x a :A . :y :p :v", ":x :p :v . :y a :A"),
        (':A owl:equivalentClass [ owl:onProperty :p ; owl:hasValue "v" ] .',
         ':x a :A . :y :p "v"', ':x :p "v" . :y a :A'),
        (":A owl:equivalentClass [ owl:intersectionOf (:B :C) ] .",
         ":x a :B, :C . :y a :A . :z a :B", ":x a :A . :y a :B, :C"),
        (":A owl:equivalentClass [ owl:unionOf (:B :C) ] .", ":x a :C", ":x a :A"),
        (":p a owl:FunctionalProperty . :z :q 1 .", ":x :p :y, :z . :y :r 2",
         ":x :p :y . :y owl:sameAs :z, :y . :z owl:sameAs :y, :z ; :r 2 . :y :q 1"),
        (":A owl:hasKey (:p) .", ":x a :A ; :p 1 . :y a :A ; :p 1 . :z :p 1",
         ":x owl:sameAs :y, :x . :y owl:sameAs :x, :y"),
        (":A rdfs:subClassOf [ owl:onProperty :p ;"
         ' owl:maxCardinality "1"^^xsd:nonNegativeInteger ] .',
         ":x a :A ; :p :y, :z", ":y owl:sameAs :z, :y . :z owl:sameAs :y, :z"),
    ],
)  # fmt: skip
def test_rules_by_example(ontology: str, publication: str, more: str) -> None:
    _, known, derived, problems = enriched(Case(triples(ontology), triples(publication)))
    assert not problems
    own = set(triples(publication)) | known
    found = set(significant(derived - own, lambda term: term))
    same = NamedNode("http://www.w3.org/2002/07/owl#sameAs")
    kept = {t for t in triples(more) if t not in own and not (t[1] == same and t[0] == t[2])}
    assert found == kept


@pytest.mark.parametrize(
    ("ontology", "publication"),
    [
        (":A owl:disjointWith :B .", ":x a :A, :B"),
        (":A owl:complementOf :B .", ":x a :A, :B"),
        ("[] a owl:AllDisjointClasses ; owl:members (:A :B :C) .", ":x a :A, :C"),
        ("[] a owl:AllDifferent ; owl:distinctMembers (:x :y :z) .", ":x owl:sameAs :z"),
        (":p a owl:IrreflexiveProperty .", ":x :p :x"),
        (":p a owl:AsymmetricProperty .", ":x :p :y . :y :p :x"),
        (":p owl:propertyDisjointWith :q .", ":x :p :y ; :q :y"),
        ("[] owl:sourceIndividual :x ; owl:assertionProperty :p ; owl:targetIndividual :y .",
         ":x :p :y"),
        ("[] owl:sourceIndividual :x ; owl:assertionProperty :p ; owl:targetValue 1 .", ":x :p 1"),
        (":A rdfs:subClassOf owl:Nothing .", ":x a :A"),
        (":A rdfs:subClassOf [ owl:onProperty :p ;"
         ' owl:maxCardinality "0"^^xsd:nonNegativeInteger ] .', ":x a :A ; :p :y"),
    ],
)  # fmt: skip
def test_contradictions_are_reported(ontology: str, publication: str) -> None:
    *_, problems = enriched(Case(triples(ontology), triples(publication)))
    assert "contradicts the ontology: owl:" in str(problems[0])
    assert "urn:p" in str(problems[0])
    both = triples(ontology + publication + " .")
    engine_problems: list[Problem] = []
    Engine(
        Ontology(both, on_problem=lambda _: None),
        entailment="owl-rl",
        on_problem=engine_problems.append,
    )
    assert "contradicts the ontology" in str(engine_problems[0])


def test_a_contradiction_names_the_construct_and_the_classes() -> None:
    ontology = Ontology(triples(":Cat owl:disjointWith :Dog ."), prefixes={"ex": EX.iri})
    engine = Engine(ontology, entailment="owl-rl", on_problem=lambda _: None)
    engine.subscribe("a", f"ASK {{ ?x a {EX['Cat']} }}")
    report = engine.match(Publication.of("urn:p", triples(":tom a :Cat, :Dog .")))
    (problem,) = report.problems
    assert problem.what == (
        "it contradicts the ontology: owl:disjointWith excludes ex:tom rdf:type ex:Cat, and it is"
        " stated as ex:Dog (rule cax-dw of OWL 2 RL)"
    )


def test_patterns_without_a_property_see_no_helpers() -> None:
    ontology = Ontology(
        triples(
            ":A owl:equivalentClass [ owl:intersectionOf (:B :C) ] ."
            ":u owl:propertyChainAxiom (:p :q) ."
            ":v owl:propertyChainAxiom :list . :list rdf:first :p ; rdf:rest (:q) ."
        )
    )
    engine = Engine(ontology, entailment="owl-rl")
    engine.subscribe("all", f"SELECT ?p ?o {{ {EX['x']} ?p ?o }}")
    published = triples(":x a :B, :C ; :p :y . :y :q :z .")
    (match,) = engine.match(Publication.of("urn:p", published))
    rows = {(row["p"], row["o"]) for row in match.solutions}
    assert {row for row in rows if not isinstance(row[1], BlankNode)} == {
        (TYPE, EX["A"]), (TYPE, EX["B"]), (TYPE, EX["C"]), (EX["p"], EX["y"]), (EX["u"], EX["z"]),
    }  # fmt: skip


def test_a_saved_engine_keeps_its_rules(tmp_path: Path) -> None:
    engine = Engine(Ontology(triples(":p a owl:TransitiveProperty .")), entailment="owl-rl")
    engine.subscribe("far", f"SELECT ?o {{ {EX['x']} {EX['p']} ?o }}")
    engine.save(tmp_path / "engine")
    opened = Engine.open(tmp_path / "engine")
    assert opened.entailment is Entailment.OWL_RL
    (match,) = opened.match(Publication.of("urn:p", triples(":x :p :y . :y :p :z .")))
    assert {row["o"] for row in match.solutions} == {EX["y"], EX["z"]}


@pytest.mark.parametrize(
    ("ontology", "publication", "asked", "last"),
    [
        (":A owl:hasKey (:p) .", ":x a :A ; :p 1 . :y a :A ; :p 1 ; :q 2", ":x :q 2",
         "by owl:hasKey"),
        (":A owl:hasKey (:p) . :y a :A ; :p 1 ; :q 2 .", ":x a :A ; :p 1", ":x :q 2",
         "by owl:hasKey"),
        ("", ":A owl:hasKey (:p) . :x a :A ; :p 1 . :y a :A ; :p 1 ; :q 2", ":x :q 2",
         "by owl:hasKey"),
        (":p a owl:TransitiveProperty .", ":x :p [ :p :z ]", ":x :p :z",
         "by owl:TransitiveProperty"),
        ("", ":A owl:equivalentClass [ owl:oneOf (:x) ]", ":x a :A", "[] owl:oneOf []"),
        (":x :q 1 .", ":x owl:sameAs :y", ":y :q 1", "from :x owl:sameAs :y"),
    ],
)  # fmt: skip
def test_reasons_of_rules_with_several_premises(
    ontology: str, publication: str, asked: str, last: str
) -> None:
    known = Ontology(triples(ontology) if ontology else [], prefixes={"": EX.iri})
    engine = Engine(known, entailment="owl-rl")
    engine.subscribe("a", f"PREFIX : <{EX.iri}> ASK {{ {asked} }}")
    report = engine.match(Publication.of("urn:p", triples(publication)))
    reasons = distinct_reasons(engine.evidence(report)["a"])
    assert reasons[0].startswith("it is derived from")
    assert reasons[-1].endswith(last)


@pytest.mark.parametrize("seed", range(20))
def test_every_derived_triple_has_a_reason(seed: int) -> None:
    case = Maker(seed).case(5, 8, published_axioms=seed % 3)
    ontology = Ontology(case.ontology, on_problem=lambda _: None)
    enricher = Enricher(ontology, Entailment.OWL_RL)
    enriched = enricher.enrich(Publication.of("urn:p", case.publication), utc_now())
    provenance = Provenance(enricher, enriched)
    assert all(map(provenance.reasons, enriched.publication.derived))


def test_explanations_of_rules_with_two_premises() -> None:
    engine = Engine(Ontology(triples(":p a owl:TransitiveProperty .")), entailment="owl-rl")
    engine.subscribe("far", f"SELECT ?o {{ {EX['x']} {EX['p']} {EX['z']} }}")
    published = Publication.of("urn:p", triples(":x :p :y . :y :p :z ."))
    assert "by owl:TransitiveProperty" in str(engine.explain("far", published))


def chain(links: int) -> str:
    """Return links that a transitive property joins, as Turtle."""
    return " ".join(f":n{n} :p :n{n + 1} ." for n in range(links))


def test_rules_stop_when_the_time_of_a_publication_is_over() -> None:
    problems: list[Problem] = []
    engine = Engine(
        Ontology(triples(":p a owl:TransitiveProperty .")),
        entailment="owl-rl",
        limits=Limits(publication_seconds=0.001),
        on_problem=problems.append,
    )
    engine.subscribe("a", f"ASK {{ {EX['n0']} {EX['p']} {EX['n1']} }}")
    report = engine.match(Publication.of("urn:p", triples(chain(300))))
    assert [match.subscription for match in report] == ["a"]
    assert "the rules took the rest" in str(problems[0])


@pytest.mark.long
def test_an_ontology_from_which_too_much_follows_is_reported() -> None:
    problems: list[Problem] = []
    ontology = Ontology(triples(":p a owl:TransitiveProperty ." + chain(3300)))
    Engine(ontology, entailment="owl-rl", on_problem=problems.append)
    assert "its rules derive too many triples" in str(problems[-1])

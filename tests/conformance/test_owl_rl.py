"""W3C's test cases of OWL 2 that its working group approved, for the profile RL or RDF graphs.

A premise is published, or is the ontology, or its schema is the ontology and the rest is published.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, QueryBoolean, RdfFormat, Store, parse

from graphmatch import Engine
from graphmatch.enrichment import Enricher, Entailment
from semantic.clock import utc_now
from semantic.errors import Problem
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import OWL, RDF, RDFS, SAME_AS, TYPE, Namespace
from tests.real_data import DATA

SUITE = Path(os.environ.get("OWL_TESTS", DATA / "owl" / "all.rdf"))
"""The export of all test cases (https://www.w3.org/2009/11/owl-test/)."""
if not SUITE.is_file():
    pytest.skip("set OWL_TESTS to the file all.rdf of W3C's tests", allow_module_level=True)
TEST = Namespace("http://www.w3.org/2007/OWL/testOntology#")
EXPECTED_TESTS = 157
"""Number of approved test cases: 70 of the profile RL, and 87 about RDF graphs."""

_FUNCTIONAL_SYNTAX = "the premise is no RDF; it compares values: table 8 is not applied"
_VALUES = "it compares values: table 8 is not applied"
_REFLEXIVE = "each term is the same as itself, and equivalent to itself: this is not stated"
_AXIOM = "it holds in every graph: triples about terms of OWL and datatypes are not stated"
_DIFFERENT = "OWL 2 RL has no rule that two individuals differ, or are not in a class"
_EXISTENCE = "OWL 2 RL has no rule that a class expression or a list exists"
_CLOSED = "OWL 2 RL has no rule that a property is transitive"
_REFLEXIVE_PROPERTY = "OWL 2 RL has no reflexive properties"
_DATATYPE_HIERARCHY = "OWL 2 RL has no rules about ranges that are datatypes"

IMPOSSIBLE: dict[str, str] = {
    **dict.fromkeys(
        ("Plus and Minus Zero are Distinct", "functionality-clash", "string-integer-clash"),
        _FUNCTIONAL_SYNTAX,
    ),
    "New-Feature-Keys-006": _VALUES,
    **{f"rdfbased-sem-eqdis-{name}-rflxv": _REFLEXIVE for name in ("eqclass", "eqprop", "sameas")},
    **{
        f"rdfbased-sem-class-{name}": _AXIOM
        for name in ("nothing-term", "nothing-type", "thing-type")
    },
    **{
        f"rdfbased-sem-prop-{name}": _AXIOM
        for name in (
            "backwardcompatiblewith-type-annot",
            "comment-type",
            "deprecated-type",
            "incompatiblewith-type-annot",
            "isdefinedby-type",
            "label-type",
            "priorversion-type-annot",
            "seealso-type",
            "versioninfo-type",
        )
    },
    **dict.fromkeys(
        (
            "DisjointClasses-001",
            "DisjointClasses-003",
            "New-Feature-DisjointDataProperties-002",
            "New-Feature-DisjointObjectProperties-001",
            "New-Feature-DisjointObjectProperties-002",
            "New-Feature-ObjectQCR-002",
            "owl2-rl-rules-fp-differentFrom",
            "owl2-rl-rules-ifp-differentFrom",
            "WebOnt-differentFrom-001",
        ),
        _DIFFERENT,
    ),
    "WebOnt-I5.8-011": _AXIOM,
    "New-Feature-ReflexiveProperty-001": _REFLEXIVE_PROPERTY,
    "chain2trans1": _CLOSED,
    **{f"WebOnt-I5.{name}": _EXISTENCE for name in ("26-010", "5-005")},
    **{f"WebOnt-I5.8-{name}": _DATATYPE_HIERARCHY for name in ("006", "008", "009")},
}
"""For each test, the reason why the rules cannot pass it, or are not all applied."""

_ANNOTATION = "the test ignores annotations; equivalent classes share them only in the ontology"
_CYCLE = "a cycle of several equivalent terms has its effects, but is not stated as equivalences"

NOT_PUBLISHED: dict[str, str] = {
    "WebOnt-I4.6-005-Direct": _ANNOTATION,
    "WebOnt-equivalentClass-008-Direct": _ANNOTATION,
    "rdfbased-sem-eqdis-eqclass-trans": _CYCLE,
    "rdfbased-sem-eqdis-eqprop-trans": _CYCLE,
}
"""For each test that only an ontology passes, the reason."""


@dataclass(frozen=True)
class EntailmentTest:
    """A test case.

    Parameters
    ----------
    premise
        The documents of the premise: one, and those that it imports.
    entailed, not_entailed
        The documents of conclusions and of non-conclusions.
    """

    name: str
    premise: tuple[str, ...]
    entailed: tuple[str, ...]
    not_entailed: tuple[str, ...]
    consistent: bool


def read_document(text: str) -> list[Triple]:
    """Return the triples of RDF/XML. Entities may have single quotes, which the parser refuses."""
    text = re.sub(r"<!ENTITY\s+(\S+)\s+'([^']*)'", r'<!ENTITY \1 "\2"', text)
    base = "http://example.org/"
    quads = parse(text, format=RdfFormat.RDF_XML, base_iri=base, lenient=True)
    return [(quad.subject, quad.predicate, quad.object) for quad in quads]


def stored(triples: Iterable[Sequence[Term]]) -> Store:
    """Return a store of triples."""
    store = Store()
    store.load("".join(f"{pattern([one])} .\n" for one in triples), format=RdfFormat.N_TRIPLES)
    return store


def pattern(triples: Iterable[Sequence[Term]]) -> str:
    """Return triples as a pattern of SPARQL."""
    return " . ".join(" ".join(map(str, triple)) for triple in triples)


def collect() -> list[EntailmentTest]:
    """Return the approved test cases of the profile RL and of RDF graphs, by name."""
    store = stored(read_document(SUITE.read_text(encoding="utf-8")))

    def objects(case: Term, property_: NamedNode) -> list[Term]:
        assert isinstance(case, NamedNode | BlankNode)
        return [quad.object for quad in store.quads_for_pattern(case, property_, None)]

    def texts(case: Term, property_: str) -> tuple[str, ...]:
        return tuple(
            str(one.value) for one in objects(case, TEST[property_]) if isinstance(one, Literal)
        )

    tests = []
    for case in (quad.subject for quad in store.quads_for_pattern(None, TYPE, TEST["TestCase"])):
        (name,) = texts(case, "identifier")
        is_of_graphs = name.startswith("rdfbased-")
        if TEST["Approved"] in objects(case, TEST["status"]) and (
            is_of_graphs or TEST["RL"] in objects(case, TEST["profile"])
        ):
            imported = objects(case, TEST["importedOntology"])
            test = EntailmentTest(
                name,
                (
                    *texts(case, "rdfXmlPremiseOntology"),
                    *(text for one in imported for text in texts(one, "rdfXmlInputOntology")),
                ),
                texts(case, "rdfXmlConclusionOntology"),
                texts(case, "rdfXmlNonConclusionOntology"),
                TEST["InconsistencyTest"] not in objects(case, TYPE),
            )
            tests.append(test)
    return sorted(tests, key=lambda test: test.name)


TESTS = collect()


def is_schema(triple: Triple) -> bool:
    """Return whether a triple is about classes and properties."""
    _, property_, value = triple
    vocabularies = tuple(f"<{one.iri}" for one in (RDF, RDFS, OWL))
    if property_ == TYPE:
        about = (OWL["Thing"], OWL["Nothing"], OWL["NamedIndividual"])
        return str(value).startswith(vocabularies) and value not in about
    individuals = (SAME_AS, OWL["differentFrom"])
    return str(property_).startswith(vocabularies) and property_ not in individuals


def divided(premise: Sequence[Triple]) -> tuple[list[Triple], list[Triple]]:
    """Return the ontology of a premise, and the rest. They have no blank node in common."""
    schema = {triple for triple in premise if is_schema(triple)}
    before = -1
    while len(schema) > before:
        before = len(schema)
        blanks = {term for triple in schema for term in triple if isinstance(term, BlankNode)}
        schema.update(triple for triple in premise if not blanks.isdisjoint(triple))
    return list(schema), [triple for triple in premise if triple not in schema]


@dataclass(frozen=True)
class Outcome:
    """The closure of an ontology and a publication, and the contradictions that are reported."""

    root: Callable[[Term], Term]
    closed: Store
    contradictions: Sequence[Problem]

    def entails(self, conclusion: Iterable[Triple]) -> bool:
        """Return whether the closure has a conclusion, whose blank nodes are variables."""
        asked = pattern(tuple(map(self.root, triple)) for triple in conclusion)
        answer = self.closed.query(f"ASK {{ {asked} }}")
        assert isinstance(answer, QueryBoolean)
        return bool(answer)


def outcome(stated: Sequence[Triple], published: Sequence[Triple]) -> Outcome:
    """Match a publication over an ontology."""
    problems: list[Problem] = []
    ontology = Ontology(stated, on_problem=lambda _: None)
    engine = Engine(ontology, entailment="owl-rl", on_problem=problems.append)
    engine.subscribe("any", "SELECT ?s { ?s ?p ?o }")
    publication = Publication.of("urn:p", published)
    engine.match(publication)
    enricher = Enricher(ontology, Entailment.OWL_RL)
    derived = enricher.enrich(publication, utc_now()).publication.triples
    root = ontology.root
    closed = stored(tuple(map(root, triple)) for triple in (*derived, *enricher.closure))
    return Outcome(root, closed, [one for one in problems if "contradicts" in one.what])


def all_published(premise: Sequence[Triple]) -> tuple[list[Triple], list[Triple]]:
    """Return a premise as a publication."""
    return [], [*premise]


def none_published(premise: Sequence[Triple]) -> tuple[list[Triple], list[Triple]]:
    """Return a premise as an ontology."""
    return [*premise], []


Way: TypeAlias = Callable[[Sequence[Triple]], tuple[list[Triple], list[Triple]]]
"""Returns an ontology and a publication."""


def test_that_the_whole_suite_is_read() -> None:
    assert len(TESTS) == EXPECTED_TESTS
    assert {*IMPOSSIBLE, *NOT_PUBLISHED} <= {test.name for test in TESTS}


def cases(*ways: Way) -> list[object]:
    found: list[object] = []
    for way in ways:
        for test in TESTS:
            reason = IMPOSSIBLE.get(test.name)
            if reason is None and way is all_published:
                reason = NOT_PUBLISHED.get(test.name)
            marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
            found.append(pytest.param(test, way, id=f"{way.__name__}-{test.name}", marks=marks))
    return found


@pytest.mark.parametrize(("case", "way"), cases(all_published, divided, none_published))
def test_entailment(case: EntailmentTest, way: Way) -> None:
    stated, published = way([triple for text in case.premise for triple in read_document(text)])
    found = outcome(stated, published)
    assert case.consistent == (not found.contradictions)
    for text in case.entailed:
        assert found.entails(read_document(text))
    for text in case.not_entailed:
        assert not found.entails(read_document(text))
    if case.entailed and published:
        check_subscriptions(case, stated, published)


def check_subscriptions(
    case: EntailmentTest, stated: Sequence[Triple], published: Sequence[Triple]
) -> None:
    """Check that a subscription matches if the publication is necessary for its conclusion."""
    without = outcome(stated, [])
    conclusions = [read_document(text) for text in case.entailed]
    asked = [pattern(one) for one in conclusions if not without.entails(one)]
    engine = Engine(Ontology(stated, on_problem=lambda _: None), entailment="owl-rl")
    for number, conclusion in enumerate(asked):
        engine.subscribe(str(number), f"SELECT * {{ {conclusion} }}")
    assert len(engine.match(Publication.of("urn:p", published))) == len(asked)

"""What terms call for: found out once, forgotten when it may be otherwise, never too little."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from semantic import Ontology, Publication, read_publications
from semantic.annotation.annotate import Annotator, Label
from semantic.attributes.names import attribute
from semantic.concerns import CLASS, Concerns, Remembered
from semantic.enrichment import Enriched, Enricher
from semantic.evaluation import Evaluator
from semantic.mentions import Mentions
from semantic.numbering import Numbering
from semantic.ontology.relevance import Relevance
from semantic.term_texts import TermTexts
from semantic.terms import Term, Triple
from semantic.vocabulary import DC, DOMAIN, RSS, SUBCLASS, SUBPROPERTY, TYPE
from tests.strategies import Profile, Scenario, scenarios

X, Y, P, Q, C, D = (NamedNode(f"urn:{name}") for name in "xypqcd")
NODES = st.sampled_from([f"<urn:{n}>" for n in range(9)])
BLANK = st.sampled_from(["_:x", "_:y"])
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def enricher(*triples: Triple, annotator: Annotator | None = None) -> Enricher:
    ontology = Ontology(triples)
    return Enricher(ontology, Evaluator(ontology, ontology.closure), annotator=annotator)


def added(enriched: Enriched) -> set[Triple]:
    return set(enriched.publication.triples) - set(enriched.stated.triples)


def test_that_a_publication_that_calls_for_nothing_is_passed_on() -> None:
    publication = Publication.of("p", [(X, P, Y), (X, P, Literal("text")), (X, TYPE, D)])
    enriched = enricher((C, SUBCLASS, D), (Q, DOMAIN, C)).enrich(publication)
    assert enriched.publication is publication
    assert enriched.origins == dict.fromkeys(publication.triples)


def test_that_terms_are_looked_at_once() -> None:
    asked: list[Term] = []

    def find(term: Term) -> int:
        asked.append(term)
        return 0

    concerns = Concerns(find, lambda _: 0)
    for _ in range(3):
        assert concerns.of(Numbering.of(((X, P, Y), (Y, P, X)))) == 0
    assert asked == [X, P, Y]


@given(st.lists(st.lists(st.tuples(NODES, NODES, NODES | BLANK), max_size=6), max_size=8))
def test_that_numbers_of_a_lexicon_call_for_what_their_terms_do(
    documents: list[list[tuple[str, str, str]]],
) -> None:
    """As many forget all in between, and some terms are never numbered."""
    bits = {NamedNode(f"urn:{n}"): 1 << n % 7 for n in range(9)}

    def of_term(term: Term) -> int:
        return bits.get(term, CLASS) if isinstance(term, NamedNode) else 1 << 6

    def of_property(term: Term) -> int:
        return of_term(term) << 8

    texts = TermTexts(most=7)
    known, plain = Concerns(of_term, of_property), Concerns(of_term, of_property)
    for document in documents:
        lines = "".join(f"{s} {p} {o} .\n" for s, p, o in document).encode()
        for publication in read_publications(
            BytesIO(lines or b"#"), format="nt", texts=texts, on_problem=lambda _: None
        ):
            again = Numbering.of(publication.triples)
            assert known.of(publication.numbered()) == plain.of(again)
            assert known.agenda(publication.numbered()) == plain.agenda(again)


def test_that_what_is_remembered_is_bounded() -> None:
    known = Remembered(lambda _: 7, most=10)
    for number in range(100):
        assert known[NamedNode(f"urn:{number}")] == 7
        assert len(known) <= 10
    known.clear()
    assert known[Literal("long" * 100)] == 7
    assert not known


def test_that_what_is_asked_for_is_looked_at_again() -> None:
    enriching = enricher((C, SUBCLASS, D), (P, SUBPROPERTY, Q))
    mentions = Mentions()
    relevance = Relevance(enriching._ontology.schema, mentions)
    publication = Publication.of("p", [(X, TYPE, C), (X, P, Y)])

    def found() -> set[Triple]:
        return added(enriching.enrich(publication, relevance, NOW, mentions))

    assert found() == set()
    mentions.add([(TYPE, D)])
    assert found() == {(X, TYPE, D)}
    mentions.add([(Q, None)])
    assert found() == {(X, TYPE, D), (X, Q, Y)}
    assert added(enriching.enrich(publication)) == {(X, TYPE, D), (X, Q, Y)}
    mentions.remove([(TYPE, D)])
    assert found() == {(X, Q, Y)}
    mentions.add([(attribute("p"), None)])
    assert found() == {(X, Q, Y), (X, attribute("p"), Y)}
    mentions.remove([(attribute("p"), None), (Q, None)])
    assert found() == set()
    mentions.add([(None, None)])
    assert found() == {(X, TYPE, D), (X, Q, Y)}


def test_that_what_a_step_adds_is_looked_at() -> None:
    """A concept that the text names has a superclass; nothing else calls for rules."""
    subject = NamedNode("http://purl.org/dc/terms/subject")
    annotator = Annotator([Label("solar energy", "en", C)])
    enriching = enricher((subject, SUBPROPERTY, P), (P, DOMAIN, D), annotator=annotator)
    item = [(X, TYPE, RSS["item"]), (X, RSS["title"], Literal("Solar energy", language="en"))]
    enriched = enriching.enrich(Publication.of("p", item))
    assert set(enriched.publication.triples) - set(item) == {
        (X, subject, C),
        (X, P, C),
        (X, TYPE, D),
    }
    assert enriched.publication.derived == set(enriched.publication.triples) - set(item)
    named = Publication.of("p", [(X, DC["subject"], Literal("Solar energy"))])
    assert enriching.enrich(named).publication is named


@given(scenarios(Profile(), entailment="rdfs"))
def test_that_nothing_is_passed_over(scenario: Scenario) -> None:
    """Each publication has what all steps give, one after the other, whatever its terms are."""
    ontology = Ontology(scenario.ontology, on_problem=lambda _: None)
    enriching = Enricher(ontology, Evaluator(ontology, ontology.closure))
    for publication in scenario.publications:
        enriched = enriching.enrich(publication)
        rooted = ontology.units.normal(ontology.rewrite(publication), lambda _: None)
        assert enriched.publication.triples[: len(rooted.triples)] == rooted.triples
        assert set(enriched.publication.triples) == ontology.inference.follow(rooted.triples).keys()
        assert enriched.origins.keys() == set(enriched.publication.triples)
        again = Numbering.of(enriched.publication.triples)
        made = enriched.publication.numbered()
        assert (tuple(made.terms), made.places) == (again.terms, again.places)

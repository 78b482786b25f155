"""Ontology updates during use: they are atomic and cheap."""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Event, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine, MatchReport
from graphmatch.enrichment import Enricher, OntologyUpdate
from graphmatch.subscription import AttributeSubscription
from semantic import Ontology, Problem, Publication
from semantic.annotation.annotate import Annotator
from semantic.errors import OntologyError
from semantic.mapping import MappingFunction
from semantic.ontology.synonyms import SynonymOptions, SynonymPairs
from semantic.terms import Triple
from semantic.vocabulary import LABEL, RSS, SAME_AS, SUBCLASS, TYPE, Namespace
from tests.oracle import to_sparql
from tests.strategies import FULL, Scenario, scenarios
from tests.test_agreement import answers
from tests.waiting import wait

EX = Namespace("http://example.org/")
FEW = settings(max_examples=60)


def quiet(_: Problem) -> None:
    """Ignore problems, because generated ontologies have some."""


def subscribed(ontology: Ontology, scenario: Scenario) -> Engine:
    engine = Engine(ontology)
    for number, query in enumerate(scenario.queries):
        engine.subscribe(str(number), to_sparql(query))
    return engine


@FEW
@given(scenarios(FULL, publications=1, queries=4), st.data())
def test_that_an_update_is_as_if_it_had_always_been_so(
    scenario: Scenario, data: st.DataObject
) -> None:
    triples = scenario.ontology
    removed = data.draw(st.frozensets(st.sampled_from(triples)) if triples else st.just([]))
    before = data.draw(st.frozensets(st.sampled_from(triples)) if triples else st.just([]))
    late = [triple for triple in triples if triple not in before]
    engine = subscribed(Ontology(before, on_problem=quiet), scenario)
    (publication,) = scenario.publications
    engine.match(publication)
    engine.update_ontology(added=late)
    whole = subscribed(Ontology(triples, on_problem=quiet), scenario)
    assert answers(engine.match(publication)) == answers(whole.match(publication))
    engine.update_ontology(removed=removed)
    less = [triple for triple in triples if triple not in removed]
    fresh = subscribed(Ontology(less, on_problem=quiet), scenario)
    report, expected = engine.match(publication), fresh.match(publication)
    assert answers(report) == answers(expected)
    # The number of index hits depends on the order of subscriptions.
    for what in ("mapped", "evaluated", "matched"):
        assert getattr(report.counters, what) == getattr(expected.counters, what)


def laptops(count: int) -> Engine:
    """Return an engine with one subscription per class."""
    engine = Engine(Ontology([(EX["Laptop"], SUBCLASS, EX["Computer"])]))
    for number in range(count):
        engine.subscribe(str(number), f"ASK {{ ?x a <http://example.org/C{number}> }}")
    return engine


@pytest.mark.parametrize("count", [10, 500])
def test_that_a_change_files_only_what_it_concerns(count: int) -> None:
    engine = laptops(count)
    engine.subscribe("same", f"ASK {{ ?x a {EX['Notebook']} }}")
    new = [(EX["Notebook"], SAME_AS, EX["Laptop"]), (EX["Laptop"], TYPE, EX["Kind"])]
    change = engine.update_ontology(added=new)
    assert change.reindexed == 1
    report = engine.match(Publication.of("p", [(EX["x"], TYPE, EX["Laptop"])]))
    assert [match.subscription for match in report] == ["same"]


def test_that_what_the_ontology_meets_is_filed_otherwise() -> None:
    engine = laptops(50)
    engine.subscribe("maker", "SELECT ?x { ?x <urn:by> ?m . ?m <urn:in> <urn:fr> }")
    made = Publication.of("p", [(EX["x"], NamedNode("urn:by"), EX["acme"])])
    fact = (EX["acme"], NamedNode("urn:in"), NamedNode("urn:fr"))
    assert not engine.match(made).matches
    assert engine.update_ontology(added=[fact]) == OntologyUpdate(triples=1, names=0, reindexed=1)
    assert engine.index_plan("maker").residual == ("a pattern that the ontology may match",)
    assert [m.subscription for m in engine.match(made)] == ["maker"]
    assert engine.update_ontology(removed=[fact]).reindexed == 1
    assert not engine.match(made).matches
    assert engine.index_plan("maker").exact


def test_new_folding_options_reindex_subscriptions_with_text() -> None:
    pairs = SynonymPairs(texts={"US": "United States"})
    engine = Engine(Ontology((), pairs))
    engine.subscribe("us", 'ASK { ?x <urn:country> "us" }')
    item = Publication.of("p", [(EX["x"], NamedNode("urn:country"), Literal("United States"))])
    assert not engine.match(item).matches
    folded = Ontology((), pairs, options=SynonymOptions(casefold=True))
    assert engine.replace_ontology(folded).reindexed == 1
    assert engine.match(item).matches


def test_that_a_label_is_found_from_then_on() -> None:
    engine = Engine()
    engine.subscribe("climate", "ASK { ?x dcterms:subject <http://example.org/Climate> }")
    title = NamedNode("http://purl.org/rss/1.0/title")
    item = Publication.of("p", [(EX["x"], title, Literal("On climate change"))])
    plain = Publication.of(
        "p", [*item.triples, (EX["x"], TYPE, NamedNode("http://purl.org/rss/1.0/item"))]
    )
    assert not engine.match(plain).matches
    engine.update_ontology(added=[(EX["Climate"], LABEL, Literal("climate change"))])
    assert engine.match(plain).matches


def test_that_problems_are_not_told_twice() -> None:
    told: list[Problem] = []
    cycle = [(EX["A"], SUBCLASS, EX["B"]), (EX["B"], SUBCLASS, EX["A"])]
    ontology = Ontology(cycle, on_problem=told.append)
    assert len(told) == 1
    ontology = ontology.update(added=[(EX["C"], SUBCLASS, EX["A"])])
    assert len(told) == 1
    assert len(ontology.problems) == 1
    ontology.update(removed=[(EX["C"], SUBCLASS, EX["D"])])
    assert "not stated, so it cannot be removed" in told[1].what


class Matching(Thread):
    """A thread that matches the same publications until it is stopped."""

    def __init__(self, engine: Engine, publications: list[Publication]) -> None:
        super().__init__()
        self._engine = engine
        self._publications = publications
        self._stop_now = Event()
        self.reports: list[MatchReport] = []

    def run(self) -> None:
        while not self._stop_now.is_set():
            self.reports += [self._engine.match(p) for p in self._publications]

    def finish(self) -> None:
        self._stop_now.set()
        self.join()


def while_matching(
    count: int, change: Callable[[Engine, Ontology], object]
) -> tuple[set[str], set[str], set[str]]:
    """Update the ontology under a matching thread; return the answers seen, before and after."""
    rnd = random.Random(7)
    classes = [EX[f"C{n}"] for n in range(300)]

    def ontology(seed: int) -> Ontology:
        below = random.Random(seed)
        edges: list[Triple] = [
            (classes[n], SUBCLASS, classes[below.randrange(n)]) for n in range(1, len(classes))
        ]
        edges += [(EX[f"i{n}"], TYPE, classes[below.randrange(300)]) for n in range(100)]
        edges += [(EX["old"], SAME_AS, classes[seed])]
        return Ontology(edges)

    def publication(number: int) -> Publication:
        item = EX[f"i{rnd.randrange(100)}"]
        return Publication.of(
            str(number), [(EX["x"], EX["about"], item), (EX["x"], TYPE, rnd.choice(classes))]
        )

    def subscribe(engine: Engine) -> None:
        chosen = random.Random(3)
        for number in range(count):
            one, other = (chosen.choice(classes).value for _ in range(2))
            engine.subscribe(
                str(number),
                f"SELECT ?i {{ ?x a <{one}> ; <{EX['about'].value}> ?i . ?i a <{other}> }}",
            )
        engine.subscribe("renamed", f"ASK {{ ?x a {EX['old']} }}")

    old, new = ontology(1), ontology(2)
    publications = [publication(number) for number in range(20)]

    def answer(report: MatchReport) -> str:
        found = answers(report).items()
        listed = sorted((id, sorted(map(str, a.elements()))) for id, a in found)
        return f"{report.publication}: {listed}"

    engine = Engine(old)
    subscribe(engine)
    before = {answer(engine.match(publication)) for publication in publications}
    thread = Matching(engine, publications)
    thread.start()
    try:
        wait(lambda: len(thread.reports) >= len(publications))
        change(engine, new)
        for publication_ in publications:
            engine.match(publication_)
        seen_late = len(thread.reports)
    finally:
        thread.finish()
    after = {answer(engine.match(publication)) for publication in publications}
    assert len(thread.reports) > seen_late
    return {answer(report) for report in thread.reports}, before, after


def check_threads(count: int) -> None:
    seen, before, after = while_matching(count, Engine.replace_ontology)
    assert before != after
    assert seen <= before | after
    assert seen & (before - after), "no publication was matched before the change"
    assert seen & (after - before), "no publication was matched after the change"


def test_that_a_matching_thread_sees_the_old_or_the_new() -> None:
    check_threads(2_000)


@pytest.mark.long
def test_that_a_matching_thread_sees_the_old_or_the_new_at_size() -> None:
    check_threads(100_000)


def test_that_a_subscription_waits_for_a_unit_that_goes_with_its_attribute() -> None:
    told: list[Problem] = []
    size, base = EX["size"], NamedNode("urn:graphmatch:baseUnit")
    ontology = Ontology([(size, base, Literal("GB"))])
    engine = Engine(ontology, on_problem=told.append)
    ucum = "https://w3id.org/cdt/ucum"
    engine.subscribe("big", f'ASK {{ ?x {size} ?s FILTER(?s >= "1 TB"^^<{ucum}>) }}')
    item = Publication.of("p", [(EX["x"], size, Literal("2000 GB", datatype=NamedNode(ucum)))])
    assert engine.match(item).matches
    kilograms = [(size, base, Literal("kg"))]
    engine.update_ontology(added=kilograms, removed=ontology.stated)
    assert "it matches nothing now" in told[0].what
    assert "big" in engine
    assert not engine.match(item).matches
    assert engine.index_plan("big").suspended
    assert engine.explain("big", item).failure.startswith("it cannot match until")
    engine.update_ontology(added=ontology.stated, removed=kilograms)
    assert engine.match(item).matches
    engine.unsubscribe("big")
    assert not len(engine)


def test_that_new_mapping_functions_find_the_hierarchies_that_they_ask_for() -> None:
    text = """PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
        CONSTRUCT { ?x <urn:kind> ?c } { ?x <urn:of> ?k . ?k rdfs:subClassOf ?c }"""
    function = MappingFunction("kind", text)
    triples = [(EX["A"], SUBCLASS, EX["B"]), (EX["B"], SUBCLASS, EX["C"])]
    engine = Engine(Ontology(triples))
    engine.subscribe("kind", f"ASK {{ ?x <urn:kind> {EX['C']} }}")
    item = Publication.of("p", [(EX["x"], NamedNode("urn:of"), EX["A"])])
    assert not engine.match(item).matches
    engine.replace_ontology(Ontology(triples, mapping=[function]))
    report = engine.match(item)
    assert report.matches
    assert report.counters.mapped == 1


def test_that_an_engine_stays_as_it_is_when_a_replacement_fails() -> None:
    text = f"""CONSTRUCT {{ ?x a <urn:Big> }}
        {{ ?x {EX["size"]} ?s FILTER(?s > "1 kg"^^<https://w3id.org/cdt/ucum>) }}"""
    function = MappingFunction("big", text)
    base = (EX["size"], NamedNode("urn:graphmatch:baseUnit"), Literal("GB"))
    engine = Engine(Ontology([(EX["Climate"], LABEL, Literal("climate change"))]))
    engine.subscribe("climate", f"ASK {{ ?x dcterms:subject {EX['Climate']} }}")
    with pytest.raises(OntologyError, match="kg"):
        engine.replace_ontology(Ontology([base], mapping=[function]), Annotator([]))
    engine.update_ontology(added=[(EX["A"], SUBCLASS, EX["B"])])
    title, rss_item = (NamedNode(f"http://purl.org/rss/1.0/{name}") for name in ("title", "item"))
    item = [(EX["x"], TYPE, rss_item), (EX["x"], title, Literal("On climate change"))]
    assert engine.match(Publication.of("p", item)).matches


def test_a_problem_handler_may_call_the_engine() -> None:
    ucum = NamedNode("https://w3id.org/cdt/ucum")
    base = (EX["size"], NamedNode("urn:graphmatch:baseUnit"), Literal("GB"))
    other = Publication.of("other", [(EX["y"], TYPE, EX["C0"])])
    found: list[int] = []
    engine = Engine(Ontology([base]), on_problem=lambda _: found.append(len(engine.match(other))))
    engine.subscribe("c0", f"ASK {{ ?x a {EX['C0']} }}")
    report = engine.match(
        Publication.of("p", [(EX["x"], EX["size"], Literal("1 kg", datatype=ucum))])
    )
    assert found == [1]
    assert "kg cannot be converted to GB" in report.problems[0].what


def test_that_reasons_are_those_of_the_time_of_the_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later changes to subscriptions or ontology do not matter, and nothing is enriched again."""
    item, computer, device, soup = EX["item"], EX["Computer"], EX["Device"], EX["Soup"]
    stated = [
        (EX["Laptop"], SUBCLASS, computer),
        (computer, SUBCLASS, device),
        (device, SAME_AS, EX["Appliance"]),
        (soup, LABEL, Literal("soup", language="en")),
    ]
    engine = Engine(Ontology(stated), on_problem=quiet)
    engine.subscribe("class", f"SELECT ?x {{ ?x a {EX['Appliance']} }}")
    engine.subscribe("join", f"SELECT ?x {{ ?x a ?c . ?c rdfs:subClassOf {device} }}")
    engine.subscribe("topic", f"SELECT ?x {{ ?x dcterms:subject {soup} }}")
    engine.subscribe("words", 'ASK { ?x gm:words ?w FILTER(CONTAINS(?w, " soups ")) }')
    engine.subscribe(AttributeSubscription.of("isa", {"thing": {"isa": "Computer"}}))
    engine.subscribe("now", f"SELECT ?n {{ ?x {EX['thing']} ?y BIND(NOW() AS ?n) }}")
    title = (item, RSS["title"], Literal("Hot soups", language="en"))
    thing = [(item, EX["thing"], EX["one"]), (EX["one"], TYPE, EX["Laptop"])]
    report = engine.match(Publication.of("p", [(item, TYPE, RSS["item"]), title, *thing]))
    assert report.subscriptions == tuple(one.id for one in engine.subscriptions)
    before = engine.evidence(report)
    assert all(before.values())
    reasons = {
        id: [reason for one in found for reason in one.reasons] for id, found in before.items()
    }
    assert reasons["class"] == [" ⊑ ".join(map(str, (EX["Laptop"], computer, EX["Appliance"])))]
    assert reasons["topic"] == [
        "“soups” in rss:title names <http://example.org/Soup>, as a form of “soup”"
    ]
    assert reasons["words"] == ["“soups” is in rss:title"]
    engine.unsubscribe("class")
    engine.replace("join", "ASK { ?x a ?y }")
    other = [(EX["Laptop"], SUBCLASS, EX["Toy"]), (soup, SAME_AS, EX["Broth"])]
    engine.replace_ontology(Ontology(other))

    def again(*_: object) -> None:
        raise AssertionError("enriched again")

    monkeypatch.setattr(Enricher, "enrich", again)
    for name in ("annotate", "words", "find"):
        monkeypatch.setattr(Annotator, name, again)
    assert engine.evidence(report) == before
    assert engine.evidence(report, ["topic"]) == {"topic": before["topic"]}

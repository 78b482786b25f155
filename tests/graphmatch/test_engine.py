"""The engine: its index, its counters, and changes during use."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine, SubscriptionParser
from graphmatch._native import EvaluationFailedError
from graphmatch.matcher import UnknownSubscriptionError
from graphmatch.published.naive import Naive
from graphmatch.report import CoreMatches
from semantic import Limits, Ontology, Publication
from semantic.errors import GraphMatchError, InputError, Problem, SubscriptionError
from semantic.vocabulary import BROADER, DCTERMS, RSS, SAME_AS, SKOS, SUBCLASS, TYPE, Namespace

EX = "http://example.org/"
URN = Namespace("urn:")
LAPTOP, COMPUTER, ITEM, PRICE = (NamedNode(EX + n) for n in ("Laptop", "Computer", "i", "price"))
KNOWN = Ontology([(LAPTOP, SUBCLASS, COMPUTER), (NamedNode(EX + "museum1"), TYPE, COMPUTER)])


def engine(ontology: Ontology | None = None, **queries: str) -> Engine:
    made = Engine(ontology)
    for id, query in queries.items():
        made.subscribe(id, f"PREFIX : <{EX}> {query}")
    return made


def laptop() -> Publication:
    return Publication.of("urn:p", [(ITEM, TYPE, LAPTOP), (ITEM, PRICE, Literal(350))])


def test_that_an_exact_subscription_is_not_evaluated() -> None:
    report = engine(s="SELECT ?x { ?x :price ?p FILTER(?p < 400) }").match(laptop())
    assert report.counters.evaluated == 0
    assert report.matches[0].solutions == ({"x": ITEM},)


def test_that_only_candidates_are_evaluated() -> None:
    made = engine(
        near="SELECT ?x { ?x :price ?p OPTIONAL { ?x :sale ?s } }",
        **{f"far{n}": f"SELECT ?x {{ ?x :p{n} ?p OPTIONAL {{ ?x :q ?s }} }}" for n in range(20)},
    )
    counters = made.match(laptop()).counters
    assert (counters.candidates, counters.evaluated, counters.matched) == (1, 1, 1)


def test_that_a_filter_keeps_a_candidate_from_being_evaluated() -> None:
    made = engine(s="SELECT ?x { ?x :price ?p FILTER(?p > 400) OPTIONAL { ?x :sale ?s } }")
    assert made.match(laptop()).counters.evaluated == 0


@pytest.mark.parametrize(
    ("query", "residual"),
    [
        ("SELECT * { ?x :price ?p }", ()),
        ("SELECT * { ?x ?any 350 }", ()),
        ("SELECT * { ?x :price ?p . ?x ?any ?o }", ("the ontology may match",)),
        ("ASK { ?x :knows+ :a }", ("path +",)),
        ("SELECT * { ?x a :Computer }", ("the ontology may match",)),
        ("SELECT * { ?x rdfs:subClassOf+ :Computer }", ("path +", "the ontology may match")),
        ("SELECT * { { ?x :p ?y } UNION { ?x :q ?y } }", ("UNION",)),
        ("SELECT ?x { ?x :p ?y } ORDER BY ?y", ("ORDER BY",)),
    ],
)
def test_index_plans(query: str, residual: tuple[str, ...]) -> None:
    plan = engine(KNOWN, s=query).index_plan("s")
    assert all(any(part in reason for reason in plan.residual) for part in residual)
    assert (len(plan.residual) > 0, plan.exact) == (len(residual) > 0, not residual)
    assert plan.entries
    assert not plan.unindexed
    assert not plan.suspended


HALF = "\ud800"
NOT_UNICODE = "the text has a lone surrogate, '\\ud800'. Write the complete character."


def test_one_that_is_not_unicode_keeps_no_other_from_being_taken() -> None:
    engine, query = Engine(), "ASK { ?s ?p ?o }"
    commented = SubscriptionParser().parse("e", query, HALF)
    rows = [("a", query), (f"b{HALF}", query), ("c", query + f"#{HALF}"), commented, ("d", query)]
    refused = engine.subscribe_many(rows)
    assert [type(error) for error in refused] == [SubscriptionError] * 3
    assert [str(error) for error in refused] == [f"{id}: {NOT_UNICODE}" for id in ("b?", "c", "e")]
    assert [subscription.id for subscription in engine.subscriptions] == ["a", "d"]


def test_ids_and_queries_that_are_not_unicode() -> None:
    engine, query = Engine(), "ASK { ?s ?p ?o }"
    engine.subscribe("a", query)
    for take in (engine.subscribe, engine.replace):
        for id, text in ((HALF, query), ("a", query + f"#{HALF}")):
            with pytest.raises(SubscriptionError, match=re.escape(NOT_UNICODE)):
                take(id, text)
    for ask in (
        engine.unsubscribe,
        engine.index_plan,
        engine.operator_calls,
        lambda id: list(engine.lint(id)),
    ):
        with pytest.raises(
            UnknownSubscriptionError, match=re.escape("no subscription has this id")
        ):
            ask(HALF)
    assert HALF not in engine
    assert [subscription.id for subscription in engine.subscriptions] == ["a"]
    with pytest.raises(InputError, match="is unknown"):
        list(engine.filter(b"", HALF))


def test_that_a_feed_item_is_annotated_and_its_topics_are_widened() -> None:
    warming, climate = NamedNode(EX + "Warming"), NamedNode(EX + "Climate")
    ontology = Ontology(
        [
            (warming, BROADER, climate),
            (warming, SKOS["altLabel"], Literal("Klimakrise", language="de")),
        ]
    )
    made = engine(ontology, s="SELECT ?x { ?x dcterms:subject :Climate }")
    title = (ITEM, RSS["title"], Literal("Die Klimakrise ist da"))
    item = Publication.of(ITEM.value, [(ITEM, TYPE, RSS["item"]), title])
    assert [m.subscription for m in made.match(item)] == ["s"]
    assert (ITEM, DCTERMS["subject"], climate) in made.enrich(item).derived
    assert len(made.match(Publication.of(ITEM.value, [title]))) == 0


def test_that_a_part_of_a_word_is_a_reason() -> None:
    climate = NamedNode(EX + "17")
    ontology = Ontology([(climate, SKOS["prefLabel"], Literal("Klima", language="de"))])
    made = engine(ontology, s="SELECT ?x { ?x dcterms:subject :17 }")
    title = (ITEM, RSS["title"], Literal("Neue Klimapolitik", language="de"))
    item = Publication.of(ITEM.value, [(ITEM, TYPE, RSS["item"]), title])
    reason = f"“Klimapolitik” in rss:title contains “Klima”, which names Klima (<{EX}17>)"
    (evidence,) = made.evidence(made.match(item))["s"]
    assert evidence.reasons == (reason,)
    assert made.explain("s", item, "de").evidence == (evidence,)


def test_that_a_parsed_subscription_is_taken_too() -> None:
    made = Engine()
    made.subscribe(SubscriptionParser().parse("s", f"ASK {{ ?x <{PRICE.value}> ?p }}"))
    assert made.match(laptop()).matches[0].solutions == ({},)


SUBQUERY = "{ SELECT ?x { ?x <http://e/p> ?z } }"


@pytest.mark.parametrize(
    ("query", "matched"),
    [
        (f"SELECT ?x (COUNT(?y) AS ?c) {{ ?x a ?y . {SUBQUERY} }} GROUP BY ?x", True),
        (f"SELECT (COUNT(*) AS ?c) {{ ?x a ?y . {SUBQUERY} }} HAVING (COUNT(*) > 0)", True),
        (f"SELECT ?x {{ ?x a ?y . {SUBQUERY} }} GROUP BY ?x ORDER BY COUNT(?y)", True),
        ("SELECT (COUNT(*) AS ?c) { ?z ?p <http://e/none> . { SELECT ?y { ?y a ?k } } }", False),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_that_an_aggregate_over_a_subquery_is_evaluated(
    query: str, matched: bool, known: bool
) -> None:
    e = Namespace("http://e/")
    facts = [(e["r2"], TYPE, e["C0"]), (e["r2"], e["p"], e["r1"])] if known else []
    made = Engine(Ontology(facts))
    made.subscribe("s", query)
    publication = Publication.of("p", [(e["r0"], e["p"], e["r1"]), (e["r0"], TYPE, e["C0"])])
    assert bool(made.match(publication).matches) is matched
    naive = Naive(Ontology(facts))
    naive.subscribe(SubscriptionParser().parse("s", query))
    assert bool(naive.match(publication).matches) is matched


def test_one_is_replaced_in_its_place() -> None:
    engine = Engine()
    for id in ("first", "second", "third"):
        engine.subscribe(id, f"ASK {{ ?x <urn:p> <urn:{id}> }}")
    engine.replace("second", "SELECT ?x { ?x <urn:p> <urn:first> }")
    assert [one.id for one in engine.subscriptions] == ["first", "second", "third"]
    triple = (NamedNode("urn:x"), NamedNode("urn:p"), NamedNode("urn:first"))
    published = Publication.of("p", [triple])
    assert list(engine.match(published).subscriptions) == ["first", "second"]
    with pytest.raises(SubscriptionError):
        engine.replace("second", "SELECT ?x { ?x <urn:p>")
    with pytest.raises(UnknownSubscriptionError):
        engine.replace("fourth", "ASK { ?x <urn:p> <urn:first> }")
    assert list(engine.match(published).subscriptions) == ["first", "second"]


def test_ids_of_reports_are_shared_and_follow_changes() -> None:
    query = "SELECT ?x { ?x a :Laptop }"
    asked = engine(alice=query, bob=query)
    first, second = (asked.match(laptop()).subscriptions for _ in range(2))
    assert first == ("alice", "bob")
    assert all(one is other for one, other in zip(first, second, strict=True))
    before = asked.match(laptop())
    asked.unsubscribe("alice")
    # Carol's subscription reuses Alice's number.
    asked.subscribe("carol", f"PREFIX : <{EX}> {query}")
    assert asked.match(laptop()).subscriptions == ("bob", "carol")
    assert before.subscriptions == ("alice", "bob")
    asked.replace_ontology(KNOWN)
    assert asked.match(laptop()).subscriptions == ("bob", "carol")


def test_terms_of_a_report_stay_when_an_older_report_goes() -> None:
    asked = engine(type="SELECT * { ?s a :A ; ?p ?v }", hello="SELECT * { ?s :p 'hello' }")
    stated = [(ITEM, TYPE, NamedNode(EX + "A")), (ITEM, NamedNode(EX + "p"), Literal("hello"))]
    publication = Publication.of("urn:p", stated)
    reports = [asked.match(publication)]
    asked.unsubscribe("hello")
    for n in range(20):  # Each report uses terms that were released before it was made.
        reports.append(asked.match(publication))
        del reports[0]
        for of in range(3):  # Freed ids are given to new terms.
            asked.subscribe(f"{n}/{of}", f"SELECT * {{ ?s <urn:{n}:{of}> 'secret{n}:{of}' }}")
        assert reports[0].read().triples == tuple(stated)
        solutions = reports[0].matches[0].solutions
        assert {(one["p"], one["v"]) for one in solutions} == {triple[1:] for triple in stated}


def test_that_a_report_of_another_engine_gets_no_evidence() -> None:
    asked, other = engine(laptop="ASK { ?x a :Laptop }"), engine(laptop="ASK { ?x a :Laptop }")
    with pytest.raises(GraphMatchError, match="another engine made this report"):
        asked.evidence(other.match(laptop()))
    nothing = Publication.of("urn:nothing", [])
    assert asked.evidence(asked.match(nothing)) == {}
    (event,) = other.match_events(pa.table({"id": ["e"], "price": [5]}))
    with pytest.raises(GraphMatchError, match="another engine made this report"):
        asked.evidence(event)
    with pytest.raises(GraphMatchError, match="another engine made this report"):
        asked.evidence(other.match(nothing))
    report = other.match(laptop())
    other.update_ontology(added=[(LAPTOP, SUBCLASS, NamedNode(EX + "Device"))])
    assert set(other.evidence(report)) == {"laptop"}


def test_that_a_report_that_is_too_old_gets_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_old(_: CoreMatches) -> NoReturn:
        raise EvaluationFailedError("the report was made before too many changes")

    asked = engine(laptop="ASK { ?x a :Laptop }")
    report = asked.match(laptop())
    monkeypatch.setattr(CoreMatches, "enriched", too_old)
    with pytest.raises(GraphMatchError, match=r"too many changes\. Ask for the evidence"):
        asked.evidence(report)


def test_that_a_report_without_matches_has_no_reasons() -> None:
    asked = engine(never="ASK { ?x :never ?y }", laptop="ASK { ?x a :Laptop }")
    report = asked.match(laptop())
    assert asked.evidence(report, ["never"]) == {}
    assert set(asked.evidence(report, "laptop")) == {"laptop"}
    assert asked.evidence(report, "lap") == {}


@pytest.mark.parametrize(
    "now",
    [
        datetime.max,
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC, microsecond=1),
        datetime(2500, 2, 28, 12, 0, 0, 300_001, timezone(timedelta(hours=-3, minutes=-30))),
        datetime(2026, 1, 2, 3, 4, 5),
    ],
    ids=str,
)
def test_that_the_clock_is_exact(now: datetime) -> None:
    made = Engine(clock=lambda: now)
    made.subscribe("now", f"SELECT ?now {{ ?x a <{EX}Laptop> BIND(STR(NOW()) AS ?now) }}")
    (match,) = made.match(laptop())
    written = match.solutions[0]["now"]
    assert isinstance(written, Literal)
    assert datetime.fromisoformat(written.value.replace("Z", "+00:00")) == now


def test_a_table_of_triples_is_matched_publication_by_publication() -> None:
    engine = Engine()
    engine.subscribe("all", 'SELECT ?x { ?x <urn:p> "a" ; <urn:q> ?y }')
    columns = {
        "publication": ["one", "two", "one", "three"],
        "subject": ["<urn:a>", "<urn:b>", "<urn:a>", "_:c"],
        "predicate": ["<urn:p>", "<urn:p>", "<urn:q>", "<urn:p>"],
        "object": ['"a"', '"a"', "<urn:z>", '"a"'],
    }
    plain = pa.table(columns)
    encoded = pa.table({name: plain[name].dictionary_encode() for name in columns})
    for table in (plain, encoded, plain.to_batches()[0]):
        reports = list(engine.match_table(table))
        assert [(one.publication, len(one)) for one in reports] == [
            ("one", 1),
            ("two", 0),
            ("three", 0),
        ]
        assert reports[0].matches[0].solutions == ({"x": NamedNode("urn:a")},)


@pytest.mark.parametrize(
    "links", [["ee", "eb"], ["bc", "cb", "ce"], ["be", "ed", "bd"], ["bc", "dc", "de", "bb"]]
)
def test_same_resources_share_their_triples(links: list[str]) -> None:
    nodes = sorted(set("".join(links)))
    for said, asked in product(nodes, nodes):
        engine = Engine()
        engine.subscribe("a", f"ASK {{ <urn:{asked}> <urn:q> 5 }}")
        triples = [(URN[one], SAME_AS, URN[other]) for one, other in links]
        fact = (URN[said], URN["q"], Literal(5))
        for place in range(len(triples) + 1):
            whole = [*triples[:place], fact, *triples[place:]]
            assert engine.match(Publication.of("urn:p", whole)), (said, asked, place)


def test_a_query_that_is_too_long() -> None:
    engine = Engine(limits=Limits(text_characters=50))
    long = f"ASK {{ ?s <urn:p> '{'x' * 50}' }}"
    with pytest.raises(SubscriptionError, match="more than 50 characters"):
        engine.subscribe("a", long)
    (refused,) = engine.subscribe_many([("a", long), ("b", "ASK { ?s <urn:p> 1 }")])
    assert "text_characters" in str(refused)
    assert len(engine) == 1


def test_attributes_beyond_the_limit_are_reported() -> None:
    ex, told = Namespace(EX), list[Problem]()
    engine = Engine(limits=Limits(event_paths=5), on_problem=told.append)
    engine.subscribe("last", 'ASK { ?x attribute:p.q "v9" }')
    parts = [(ex["i"], ex["p"], ex[f"n{number}"]) for number in range(10)]
    values = [(ex[f"n{n}"], ex["q"], Literal(f"v{n}")) for n in range(10)]
    report = engine.match(Publication.of(ex["i"].value, [*parts, *values]))
    assert (*report.subscriptions, *told) == report.problems
    assert ["`event_paths`" in problem.what for problem in told] == [True]
    small = Publication.of(ex["i"].value, [(ex["i"], ex["p"], ex["n9"]), values[9]])
    assert engine.match(small).subscriptions == ("last",)
    assert engine.match(small).problems == ()


def test_that_annotation_ends_with_the_time_of_a_publication() -> None:
    soup, tea = NamedNode(EX + "Soup"), NamedNode(EX + "Tea")
    labels = ((tea, "tea"), (soup, "soup"))
    known = Ontology([(one, SKOS["prefLabel"], Literal(name)) for one, name in labels])
    problems: list[Problem] = []
    made = Engine(known, limits=Limits(publication_seconds=0.04), on_problem=problems.append)
    made.subscribe("tea", f"ASK {{ ?x dcterms:subject <{EX}Tea> }}")
    made.subscribe("soup", f"ASK {{ ?x dcterms:subject <{EX}Soup> }}")
    for words, found in ((1, ("tea", "soup")), (3_000_000, ("tea",))):
        texts = {"title": "Some tea", "description": "word " * words + "soup"}
        stated = [(ITEM, RSS[name], Literal(text, language="en")) for name, text in texts.items()]
        report = made.match(Publication.of(ITEM.value, [(ITEM, TYPE, RSS["item"]), *stated]))
        assert report.subscriptions == found
        assert report.problems == tuple(problems)
    (problem,) = problems
    assert "publication_seconds" in problem.what


def test_that_texts_without_time_are_a_problem() -> None:
    sun, problems = NamedNode(EX + "Sun"), list[Problem]()
    known = Ontology([(sun, SKOS["prefLabel"], Literal("solar"))])
    limits = Limits(publication_seconds=0.02)
    made = Engine(known, limits=limits, on_problem=problems.append)
    made.subscribe("sun", f"SELECT ?i {{ ?i dcterms:subject <{EX}Sun> }}")
    items = [NamedNode(f"urn:i{n}") for n in range(100)]
    text = Literal("<p></p>" * 10_000 + " solar n")
    types = [(item, TYPE, RSS["item"]) for item in items]
    texts = [(item, RSS["description"], text) for item in items]
    report = made.match(Publication.of("urn:p", [*types, *texts]))
    found = sum(len(match.solutions) for match in report)
    assert found == len(items) or any("publication_seconds" in p.what for p in report.problems)


@pytest.mark.parametrize("form", ["ttl", "nt", "rdf"])
def test_a_blank_node_of_the_ontology_is_not_one_of_a_publication(
    tmp_path: Path, form: str
) -> None:
    """Labels hold in one document, so the same label names two nodes."""
    (tmp_path / f"o.{form}").write_text(node_of(form, "a", "urn:Secret"))
    ontology = Ontology.load(tmp_path / f"o.{form}")
    engine = Engine(ontology)
    for id, where in {
        "both": "?x a <urn:Secret> ; <urn:p> <urn:open>",
        "one": "?x <urn:p> <urn:open>",
        "pair": "?x a <urn:Secret> . ?y <urn:p> <urn:open>",
        "other": "?x a <urn:Secret> . ?y <urn:p> <urn:open> FILTER(?x != ?y)",
    }.items():
        engine.subscribe(id, f"ASK {{ {where} }}")
    (report,) = engine.filter(node_of(form, "p", "urn:open").encode(), form)
    assert list(report.subscriptions) == ["one", "pair", "other"]


def node_of(form: str, property: str, value: str) -> str:
    """Return a document about a blank node with the label `x`."""
    if form == "rdf":
        rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        element = (
            f'rdf:type rdf:resource="{value}"' if property == "a" else f'u:p rdf:resource="{value}"'
        )
        inside = f'<rdf:Description rdf:nodeID="x"><{element}/></rdf:Description>'
        return f'<rdf:RDF xmlns:rdf="{rdf}" xmlns:u="urn:">{inside}</rdf:RDF>'
    iri = TYPE.value if property == "a" else "urn:p"
    return f"_:x <{iri}> <{value}> .\n"

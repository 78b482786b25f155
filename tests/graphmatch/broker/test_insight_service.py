"""The insight service reads a broker's store, within its limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import pytest
from pydantic import TypeAdapter
from sqlalchemy import insert, true

from graphmatch import Engine
from graphmatch.broker.app.errors import BusyError, InvalidRequestError
from graphmatch.broker.db import queries
from graphmatch.broker.db import store as store_module
from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import dead_letters, feeds, subscriptions
from graphmatch.broker.insight import insight_service, subscription_health, views
from graphmatch.broker.insight.backtest import BacktestResult
from graphmatch.broker.insight.insight_service import InsightService, Upload
from graphmatch.broker.insight.query_by_example import FactHierarchies
from graphmatch.broker.insight.views import Mark, mark_of, publication_graph
from graphmatch.broker.insight.what_if import Difference
from graphmatch.broker.models.findings import FindingKind, HealthReport
from graphmatch.broker.models.stored_publication import StoredPublication
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.service.broker import Broker
from semantic import Ontology
from semantic.errors import OntologyError, Place, Problem, SubscriptionError

ONTOLOGY = Path(__file__).parents[3] / "ontologies/news.ttl"
TOPIC = "https://graphmatch.example/news#"
NEVER = "SELECT ?x { ?x dc:date ?d FILTER(?date > 5) }"
ITEM = (
    "@prefix rss: <http://purl.org/rss/1.0/> . @prefix dcterms: <http://purl.org/dc/terms/> . "
    '<urn:item:{0}> a rss:item ; rss:title "{0}" ; dcterms:subject <' + TOPIC + "{1}> ."
)


class Usage(NamedTuple):
    """Part of the result of `shutil.disk_usage`."""

    free: int


@pytest.fixture
def insight(tmp_path: Path) -> Iterator[InsightService]:
    store = Store(str(tmp_path / "broker.db"))
    broker = Broker(store, Engine(Ontology.load(ONTOLOGY), on_problem=lambda _: None))

    async def publish() -> None:
        for name, topic in (("one", "WindPower"), ("two", "WindPower"), ("three", "Sport")):
            body, id = ITEM.format(name, topic).encode(), f"urn:item:{name}"
            await broker.publications.publish(body, format="ttl", name=id)

    asyncio.run(publish())
    yield InsightService(broker)
    store.close()


def subscribe(insight: InsightService, query: str, name: str) -> str:
    """Add a subscription to the store and the engine, as the match worker does; return its id."""
    broker = insight.broker
    settings = SubscriptionSettings(name=name)
    id = asyncio.run(broker.subscriptions.subscribe({"query": query}, settings)).id
    rows = broker.store.read_now(lambda db: queries.living(db, subscriptions.c.id == id, 1))
    broker.engine.subscribe(str(rows[0]["number"]), query)
    return id


def stored(insight: InsightService, seq: int) -> StoredPublication:
    row = insight.broker.store.read_now(lambda db: queries.item(db, seq))
    assert row is not None
    return queries.stored(row)


def as_json(model: Any, value: object) -> Any:
    """Return a result as FastAPI writes it."""
    return TypeAdapter(model).dump_python(value, mode="json")


def test_a_preview_is_an_answer_in_json(insight: InsightService) -> None:
    query = f"SELECT ?i {{ ?i a rss:item ; dcterms:subject <{TOPIC}WindPower> ; rss:title 'two' }}"
    for question in (insight.preview, insight.backtest):
        result = as_json(BacktestResult, question({"query": query}, "https://broker.example"))
        assert (result["matched"], result["scanned"], result["complete"]) == (1, 3, True)
        (hit,) = result["newest"]
        assert hit["url"] == f"https://broker.example/v1/publications/{hit['seq']}"
        assert (hit["id"], hit["title"], hit["seq"]) == ("urn:item:two", "two", 2)
        assert hit["received_at"].endswith("Z")
        assert hit["because"] == []
        assert result["findings"] == []
        (near,) = result["relaxed_matches"]
        assert near["id"] == "urn:item:one"
        assert near["condition"] == '?i rss:title "two"'
        assert near["failure"] == 'no triple matches ?i rss:title "two"'
        assert result["relaxations"] == [{"condition": near["condition"], "count": 1}]


def test_a_preview_names_conditions_that_never_hold(insight: InsightService) -> None:
    (finding,) = insight.preview({"query": NEVER}).findings
    assert (finding.kind, finding.code) == (FindingKind.NEVER, "unbound-variable")
    assert finding.subscriptions == ()


def test_an_invalid_definition_is_an_error(insight: InsightService) -> None:
    with pytest.raises(SubscriptionError, match="subscription:2:"):
        insight.preview({"query": "SELECT *\n{ ?s ?p }"})
    with pytest.raises(SubscriptionError, match="the query is empty"):
        insight.preview({"query": "  "})
    with pytest.raises(InvalidRequestError, match="the query is missing"):
        insight.preview({})


def test_facts_become_a_query(insight: InsightService) -> None:
    item = stored(insight, 1)
    found = as_json(FactHierarchies, insight.facts(item))
    assert (found["scanned"], found["complete"]) == (3, True)
    assert found["publication"]["seq"] == 1
    assert [fact["sort"] for fact in found["facts"]] == ["concept", "type"]
    concept, common = found["facts"]
    assert (concept["common"], common["common"]) == (False, True)
    assert concept["steps"][0]["label"] == "Wind power"
    counts = [step["count"] for step in concept["steps"]]
    assert counts[0] == 2
    assert counts == sorted(counts)
    query = insight.query_of(item, [concept["steps"][-1]["key"]])
    assert insight.preview({"query": query}).matched == counts[-1]
    assert insight.query_of(item, ["none"]) == ""
    uncounted = insight.facts(item, count=False)
    assert {step.count for fact in uncounted.facts for step in fact.steps} == {None}


def test_terms_are_listed_and_found(insight: InsightService) -> None:
    roots = {term.iri for term in insight.roots()}
    assert f"{TOPIC}Sport" in roots
    assert f"{TOPIC}WindPower" not in roots
    first, *others = insight.search(" energy ")
    assert (first.label, first.below) == ("Energy", len(insight.children(first.iri)))
    assert "Renewable energy" in [term.label for term in others]
    assert insight.search("energy", 1) == [first]
    assert insight.search(" ") == []
    with pytest.raises(OntologyError, match="invalid IRI"):
        insight.children("no iri")


def test_the_browser_follows_a_new_ontology(insight: InsightService) -> None:
    assert insight.search("Wind power")
    insight.broker.engine.replace_ontology(Ontology())
    assert insight.search("Wind power") == insight.roots() == []


def test_what_if_lists_an_owner_or_all(insight: InsightService) -> None:
    id = subscribe(insight, f"SELECT ?i {{ ?i dcterms:subject <{TOPIC}Sport> }}", "Sporting")
    more = f"<{TOPIC}WindPower> <http://www.w3.org/2004/02/skos/core#broader> <{TOPIC}Sport> ."
    files = [Upload("news.ttl", ONTOLOGY.read_bytes()), Upload("more.nt", more.encode())]
    found = as_json(Difference, insight.what_if(files, root="https://broker.example"))
    assert (found["changed"], found["matches_before"], found["matches_after"]) == (1, 1, 3)
    (change,) = found["subscriptions"]
    assert (change["subscription"], change["name"]) == (id, "Sporting")
    assert (change["gained"], change["lost"]) == (2, 0)
    assert [ref["seq"] for ref in change["newest_gained"]] == [2, 1]
    assert change["newest_gained"][0]["url"] == "https://broker.example/v1/publications/2"
    others = insight.what_if(files, owner=99)
    assert (others.changed, others.subscriptions) == (1, [])
    for name in ("news.exe", "../x.TTL\0", "ttl"):
        with pytest.raises(OntologyError, match="cannot be an ontology"):
            insight.what_if([Upload(name, b"")])
    with pytest.raises(OntologyError, match=r"mine\.ttl:1"):
        insight.what_if([Upload("mine.ttl", b"<a")])


def test_health_reports_subscriptions_by_their_ids(insight: InsightService) -> None:
    never = subscribe(insight, NEVER, "Never")
    first = subscribe(insight, "SELECT ?x { ?x a <urn:Twice> }", "First")
    second = subscribe(insight, "SELECT ?y { ?y a <urn:Twice> }", "Second")
    report = insight.health(true())
    assert [(f.kind, f.subscriptions) for f in report.findings] == [
        (FindingKind.NEVER, (never,)),
        (FindingKind.DUPLICATE, (first, second)),
    ]
    order = list(FindingKind)
    assert report.findings == sorted(report.findings, key=lambda one: order.index(one.kind))
    assert report.names == {never: "Never", first: "First", second: "Second"}
    assert (report.subscriptions, report.examined) == (3, 3)
    assert as_json(HealthReport, report)["findings"][0]["kind"] == "can never match"
    none = insight.health(subscriptions.c.id == "sub_0")
    assert (none.findings, none.names, none.subscriptions, none.examined) == ([], {}, 0, 0)


def test_health_reports_feeds_dead_letters_and_the_disk(
    insight: InsightService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(db: Any) -> None:
        for url, state in (
            ("https://a.example/", {"errors": 2, "problem": "404 Not Found"}),
            ("https://b.example/", {"errors": 0}),
        ):
            row = {"url": url, "state": state, "created_at": 0}
            db.execute(insert(feeds).values(**row))
        letter = {"task": "matching", "record": "publication 1", "error": "bad", "at": 0}
        db.execute(insert(dead_letters).values(**letter))

    insight.broker.store.write_now(work)
    monkeypatch.setattr(store_module, "disk_usage", lambda _: Usage(5_000_000))
    assert insight.health(true()).findings == []
    findings = insight.health(true(), includes_broker=True).findings
    assert [(finding.kind, finding.text) for finding in findings] == [
        (FindingKind.DISK, "the disk of the store has 5 MB left"),
        (FindingKind.DEAD_LETTERS, "1 record could not be processed in three attempts"),
        (FindingKind.FEED, "https://a.example/ cannot be read: 404 Not Found"),
    ]
    usage = Usage(subscription_health.LOW_DISK_BYTES)
    monkeypatch.setattr(store_module, "disk_usage", lambda _: usage)
    kinds = {finding.kind for finding in insight.health(true(), includes_broker=True).findings}
    assert FindingKind.DISK not in kinds


def test_reasons_name_the_item_and_use_prefixes(insight: InsightService) -> None:
    query = f"SELECT ?i {{ ?i dcterms:subject <{TOPIC}Energy> }}"
    machine = insight.reasons("sub_1", query, stored(insight, 1))
    assert machine.evidence[0]["triple"].startswith("<urn:item:one> <http://purl.org/dc/terms/")
    found = insight.why(query, stored(insight, 1))
    assert found.matches
    assert found.evidence[0]["triple"] == "the item dcterms:subject news:Energy"
    assert found.evidence[0]["because"]


def test_the_graph_has_the_triples_of_the_ontology_last(
    insight: InsightService, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, engine = stored(insight, 1), insight.broker.engine
    graph = publication_graph(engine, item)
    assert graph.more == 0
    assert [row.is_added for row in graph.rows] == sorted(row.is_added for row in graph.rows)
    assert len(graph.rows) == len(engine.enrich(item.read()).visible_to_all)
    labels = {(row.object_label, row.is_added) for row in graph.rows}
    assert labels >= {("one", False), ("Wind power", False), ("Energy", True)}
    monkeypatch.setattr(views, "MAX_TRIPLES", 2)
    short = publication_graph(engine, item)
    assert (short.rows, short.more) == (graph.rows[:2], len(graph.rows) - 2)


def test_a_mark_shows_the_place_of_a_problem() -> None:
    query = "SELECT *\n{ ?s ?p nonsense:here }"

    def mark(line: int | None, column: int | None) -> Mark | None:
        return mark_of(query, Problem("wrong", Place("a", line, column), "Correct it."))

    assert mark(2, 9) == Mark(2, 9, "{ ?s ?p ", "nonsense:here", " }")
    assert mark(2, 24) == Mark(2, 24, "{ ?s ?p nonsense:here }", "⏎", "")
    assert mark(1, None) == Mark(1, 1, "", "SELECT", " *")
    assert mark(None, None) is None
    assert mark(3, 1) is None


def test_a_full_lane_refuses_questions(
    insight: InsightService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long questions do not block short ones, and a long one returns its memory."""
    returned, ready, finish = list[bool](), Event(), Event()
    monkeypatch.setattr(insight_service, "return_memory", lambda: returned.append(True))

    def question(*_: object) -> int:
        ready.set()
        finish.wait(10)
        return 7

    async def ask() -> None:
        insight.short.limit = 1
        running = asyncio.create_task(insight.ask(question))
        await asyncio.to_thread(ready.wait, 10)
        with pytest.raises(BusyError, match="too many requests"):
            await insight.ask(insight.roots)
        assert (await insight.ask(insight.backtest, {"query": NEVER})).scanned == 3
        assert returned == [True]
        finish.set()
        assert await running == 7
        assert returned == [True]
        assert (insight.short.waiting, insight.long.waiting) == (0, 0)

    asyncio.run(ask())


def test_a_result_is_complete_only_if_all_publications_were_read(
    insight: InsightService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(insight_service, "BACKTEST_PUBLICATIONS", 2)
    result = insight.backtest({"query": "SELECT ?s { ?s a rss:item }"})
    assert (result.scanned, result.complete, result.truncated) == (2, False, [])
    monkeypatch.setattr(insight_service, "BACKTEST_SECONDS", 0.0)
    result = insight.backtest({"query": "SELECT ?s { ?s a rss:item }"})
    assert (result.scanned, result.complete) == (0, False)
    assert result.truncated == ["the time limit of 0 s"]

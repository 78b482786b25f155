"""Insight and feeds over HTTP: previews, explanations, what-if, health, and OPML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from sqlalchemy import func, select

from graphmatch.broker.api.dependencies import ApiOptions
from graphmatch.broker.api.insight import ONTOLOGY_TYPES
from graphmatch.broker.db import queries
from graphmatch.broker.db.tables import audit
from graphmatch.broker.feeds import opml
from graphmatch.broker.insight import insight_service
from tests.graphmatch.broker.live_broker import ALL, TURTLE, LiveBroker, Process
from tests.graphmatch.broker.test_api import HOSTILE, check, token
from tests.waiting import wait

NEWS = Path("ontologies/news.ttl")
TOPIC = "https://graphmatch.example/news#"
ABOUT = (
    '<urn:item:{0}> a rss:item ; rss:title "{0}" ; dcterms:subject <' + TOPIC + "{1}> ; "
    'dc:language "en" .'
)
HEAD = (
    "@prefix rss: <http://purl.org/rss/1.0/> . @prefix dcterms: <http://purl.org/dc/terms/> . "
    "@prefix dc: <http://purl.org/dc/elements/1.1/> . "
)
NEVER = "SELECT ?x { GRAPH <urn:a> { ?x ?p ?y } GRAPH <urn:b> { ?x ?p ?z } }"
"""A query that can never match, because it needs two publications."""


def about(name: str, topic: str) -> str:
    return HEAD + ABOUT.format(name, topic)


@pytest.fixture(scope="module")
def live_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with LiveBroker(tmp_path_factory.mktemp("insight"), knowing=[NEWS]) as running:
        for name, topic in (("one", "WindPower"), ("two", "WindPower"), ("three", "Sport")):
            running.publish(about(name, topic))
        running.settled()
        yield running


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    options = ApiOptions(local=False, hosts=None)
    with LiveBroker(tmp_path_factory.mktemp("public"), options=options) as running:
        yield running


def audited(live_broker: LiveBroker) -> int:
    return live_broker.read(lambda db: db.scalar(select(func.count()).select_from(audit))) or 0


# -- Before subscribing -------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["backtest", "preview"])
def test_a_backtest_shows_past_matches(live_broker: LiveBroker, way: str) -> None:
    path = f"/v1/subscriptions:{way}"

    def ask(**definition: Any) -> Any:
        answer = live_broker.call("POST", path, definition)
        assert answer.status == 200, answer.content
        return answer.json

    said = ask(topics=["Energy"], words=["two"])
    assert said["query"].startswith("SELECT")
    assert (said["matched"], said["complete"], said["findings"]) == (1, True, [])
    (hit,) = said["newest"]
    assert hit["url"] == f"{live_broker.url}/v1/publications/{hit['seq']}"
    assert hit["because"]
    assert said["days"][0]["matched"] == 1
    assert said["scanned"] == said["days"][0]["scanned"] >= 3
    near = {one["id"] for one in said["relaxed_matches"]}
    assert len(near) == sum(one["count"] for one in said["relaxations"]) >= 1
    assert all(one["condition"] and one["failure"] for one in said["relaxed_matches"])
    assert ask(where={"price": {"<": 5}})["matched"] == 0
    (found,) = ask(query=NEVER)["findings"]
    assert (found["kind"], found["subscriptions"]) == ("can never match", [])
    wrong = check(live_broker.call("POST", path, {"query": "SELECT ?s\n{ ?s ?p }"}), 422)
    refused = check(
        live_broker.call("POST", "/v1/subscriptions", {"query": "SELECT ?s\n{ ?s ?p }"}), 422
    )
    assert wrong | {"request_id": ""} == refused | {"request_id": ""}
    check(live_broker.call("POST", path, {"query": " "}), 422, "the query is empty")
    check(live_broker.call("POST", path, {}), 422, "the query is missing")
    check(live_broker.call("POST", path, {"topics": ["No such"]}), 422)
    check(live_broker.call("POST", path, {"query": ALL, "expires_in": 1}), 422)


def test_questions_need_a_scope(public: LiveBroker) -> None:
    publishing, asking = token(public, "p", "publish"), token(public, "s", "subscribe")
    public.publish(**publishing)
    for path, body in (
        ("/v1/subscriptions:backtest", {"query": ALL}),
        ("/v1/subscriptions:preview", {"query": ALL}),
        ("/v1/publications/1/facts", None),
        ("/v1/publications/1/query", {"facts": ["no"]}),
        ("/v1/subscription-health", None),
    ):
        method = "GET" if body is None else "POST"
        check(public.call(method, path, body), 401)
        check(public.call(method, path, body, publishing), 403)
        assert public.call(method, path, body, asking).status == (422 if "query" in path else 200)
    what_if = "/v1/ontology:what-if"
    check(public.call("POST", what_if, "", TURTLE), 401)
    check(public.call("POST", what_if, "", TURTLE | asking), 403)
    check(public.call("GET", "/v1/feeds"), 401)
    check(public.call("GET", "/v1/feeds", headers=asking), 403)
    assert public.call("GET", "/v1/feeds", headers=token(public, "f", "feeds")).status == 200


def test_too_many_questions_are_refused(
    live_broker: LiveBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long questions have their own limit, so they do not block short ones."""
    insight = live_broker.app.state.api.insight
    monkeypatch.setattr(insight.long, "waiting", insight.long.limit)
    said = live_broker.call("POST", "/v1/subscriptions:backtest", {"query": ALL})
    check(said, 503, "too many requests are running")
    assert int(said.headers["retry-after"]) > 0
    check(live_broker.call("POST", "/v1/ontology:what-if", "", TURTLE), 503)
    assert live_broker.call("POST", "/v1/subscriptions:preview", {"query": ALL}).status == 200
    monkeypatch.setattr(insight.short, "waiting", insight.short.limit)
    check(live_broker.call("POST", "/v1/subscriptions:preview", {"query": ALL}), 503)


def test_the_number_of_recent_publications_is_limited(
    live_broker: LiveBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seqs(**limits: int) -> tuple[list[str], bool]:
        recent = queries.Recent(live_broker.store, **limits)
        return [one.id for one in recent], recent.whole

    every, whole = seqs()
    assert whole
    assert len(every) >= 3
    monkeypatch.setattr(queries, "BATCH_SIZE", 2)
    monkeypatch.setattr(queries, "BATCH_BYTES", 1)
    assert seqs() == (every, True)
    assert seqs(most=2) == (every[:2], False)
    assert seqs(bytes=1) == (every[:1], False)


# -- Publications -------------------------------------------------------------------------------


def test_facts_of_an_item_become_a_subscription(live_broker: LiveBroker) -> None:
    client = live_broker.client()
    said = live_broker.call("GET", "/v1/publications/1/facts").json
    assert said["publication"]["seq"] == 1
    assert (said["scanned"] >= 3, said["complete"]) == (True, True)
    (wind,) = (one for one in said["facts"] if one["steps"][0]["pattern"].count("news:WindPower"))
    assert wind["sort"] == "concept"
    counts = [step["count"] for step in wind["steps"]]
    assert counts[0] == 2
    assert counts == sorted(counts)
    above = wind["steps"][-1]
    path = "/v1/publications/1/query"
    query = live_broker.call("POST", path, {"facts": [above["key"]]}).json["query"]
    tried = client.backtest(query=query)
    assert tried["matched"] == above["count"]
    assert client.subscribe(query=query).id
    body = {"facts": ["0123456789abcdef"]}
    check(live_broker.call("POST", path, body), 422, "none of these facts")
    before = audited(live_broker)
    check(live_broker.call("GET", "/v1/publications/9999/facts"), 404, "no such publication")
    check(live_broker.call("POST", "/v1/publications/9999/query", body), 404)
    assert audited(live_broker) == before + 2


def test_matches_and_misses_are_explained(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe(None, topics=["Wind power"])
    path = f"/v1/subscriptions/{id}/why?publication="

    def why(publication: int) -> Any:
        answer = live_broker.call("GET", f"{path}{publication}", headers=ticket)
        assert answer.status == 200, answer.content
        return answer.json

    before = why(1)
    assert (before["matches"], before["before"]) == (True, True)
    assert before["reasons"]["subscription"] == id
    assert before["reasons"]["evidence"]
    said = why(live_broker.publish(about("four", "Sport")))
    assert (said["matches"], said["before"]) == (False, False)
    assert said["reasons"]["failure"]
    live_broker.call("DELETE", f"/v1/subscriptions/{id}", headers=ticket)
    assert why(1)["matches"]
    noted = audited(live_broker)
    missing = live_broker.call("GET", f"{path}9999", headers=ticket)
    check(missing, 404, "there is no such publication")
    wrong = {"Authorization": "Ticket gmt_no"}
    check(live_broker.call("GET", f"{path}1", headers=wrong), 404)
    assert audited(live_broker) == noted + 2
    assert live_broker.call("GET", f"{path}1").status == 200  # The local user owns it.
    check(live_broker.call("GET", f"{path}1", headers={"X-Forwarded-For": "192.0.2.1"}), 401)


# -- Ontology and health ------------------------------------------------------------------------


def test_what_if_shows_gained_and_lost_matches(live_broker: LiveBroker) -> None:
    id, _ = live_broker.subscribe(None, topics=["Sport"], name="Sporting")
    live_broker.subscribe("SELECT ?s { ?s a <urn:Nothing> }")
    live_broker.caught_up()
    text, path = NEWS.read_bytes(), "/v1/ontology:what-if"
    same = live_broker.call("POST", path, text, TURTLE).json
    assert (same["changed"], same["subscriptions"]) == (0, [])
    more = f"<{TOPIC}WindPower> <http://www.w3.org/2004/02/skos/core#broader> <{TOPIC}Sport> ."
    said = live_broker.call("POST", path, text + more.encode(), TURTLE).json
    assert said["complete"]
    assert said["matches_after"] > said["matches_before"]
    (mine,) = (one for one in said["subscriptions"] if one["subscription"] == id)
    assert (mine["gained"], mine["lost"]) == (2, 0)
    assert {one["seq"] for one in mine["newest_gained"]} == {1, 2}
    check(live_broker.call("POST", path, b"<a> <b> ."), 415)
    check(live_broker.call("POST", path, "{}", {"Content-Type": "application/json"}), 415)
    wrong = check(live_broker.call("POST", path, "<a> <b> .", TURTLE), 422)
    assert wrong["where"]["source"].startswith("body")
    check(live_broker.call("POST", path, b" " * 4_000_001, TURTLE), 413)


def test_health_shows_only_own_subscriptions(public: LiveBroker) -> None:
    mine, other = token(public, "mine", "subscribe"), token(public, "other", "subscribe")
    never = NEVER
    twice = "SELECT ?x { ?x a <urn:Twice> }"

    def subscribe(headers: dict[str, str], query: str) -> str:
        said = public.call("POST", "/v1/subscriptions", {"query": query, "name": "n"}, headers)
        return str(said.json["id"])

    def kinds(headers: dict[str, str]) -> dict[str, list[list[str]]]:
        said = public.call("GET", "/v1/subscription-health", headers=headers).json
        found: dict[str, list[list[str]]] = {}
        for one in said["findings"]:
            found.setdefault(one["kind"], []).append(one["subscriptions"])
        return found

    first, second = subscribe(mine, never), subscribe(mine, twice)
    third, fourth = subscribe(other, twice), subscribe(mine, twice)
    public.caught_up()
    assert kinds(mine) == {"can never match": [[first]], "duplicate": [[second, fourth]]}
    assert kinds(other) == {}
    whole = kinds(token(public, "root", "admin"))
    assert whole["duplicate"] == [[second, third], [second, fourth]]
    public.clock.forward = timedelta(days=40)
    try:
        assert kinds(other)["has not matched"] == [[third]]
    finally:
        public.clock.forward = timedelta(0)
    check(public.call("GET", "/v1/subscription-health"), 401)
    ticket = {"Authorization": "Ticket gmt_no"}
    check(public.call("GET", "/v1/subscription-health", headers=ticket), 401)


def test_the_local_user_gets_the_health_of_own_subscriptions(live_broker: LiveBroker) -> None:
    path = "/v1/subscription-health"
    id, _ = live_broker.subscribe(NEVER)
    live_broker.caught_up()
    for headers in ({}, token(live_broker, "root", "admin")):
        said = live_broker.call("GET", path, headers=headers).json
        assert [id] in [one["subscriptions"] for one in said["findings"]]
    check(live_broker.call("GET", path, headers={"Via": "1.1 a"}), 401, "needs a token")


# -- Feeds --------------------------------------------------------------------------------------


def feeds(live_broker: LiveBroker) -> list[Any]:
    return list(live_broker.call("GET", "/v1/feeds").json["feeds"])


def test_feeds_are_added_listed_and_removed(
    live_broker: LiveBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [one["url"] for one in feeds(live_broker)]
    assert before == sorted(before)
    body = {"url": "feed:https://new.example/a?b=c&d", "title": "New"}
    made = live_broker.call("POST", "/v1/feeds", body).json
    assert (made["url"], made["title"]) == ("https://new.example/a?b=c&d", "New")
    again = live_broker.call("POST", "/v1/feeds", {"url": made["url"]})
    assert again.json["title"] == "New"
    assert live_broker.call("GET", f"/v1/feeds/{made['id']}").json == made
    seen, path = [], "/v1/feeds?limit=1"
    while path:
        page = live_broker.call("GET", path).json
        seen += [one["url"] for one in page["feeds"]]
        path = (page["next"] or "").removeprefix(live_broker.url)
    assert seen == sorted({*before, made["url"]})
    said = live_broker.call("POST", "/v1/feeds", {"url": "https://new.example/z"})
    assert said.status == 201
    own = f"/v1/feeds/{said.json['id']}"
    assert said.headers["location"] == f"{live_broker.url}{own}"
    assert live_broker.call("DELETE", own).status == 204
    check(
        live_broker.call("POST", "/v1/feeds", {"url": "file:///etc/passwd"}), 422, "not the address"
    )
    noted = audited(live_broker)
    for method in ("GET", "DELETE"):
        check(live_broker.call(method, own), 404, "no such feed")
    assert audited(live_broker) == noted + 2
    monkeypatch.setattr(opml, "MAX_FEEDS", len(seen))
    check(live_broker.call("POST", "/v1/feeds", {"url": "https://one.too.many/"}), 422, "more than")
    assert live_broker.call("POST", "/v1/feeds", {"url": made["url"]}).status == 201


def test_feeds_are_exported_as_opml(live_broker: LiveBroker) -> None:
    made = {"url": "https://opml.example/1?a&b", "title": 'A & "B"'}
    assert live_broker.call("POST", "/v1/feeds", made).status == 201
    answer = live_broker.call("GET", "/v1/feeds.opml")
    found = {one.url: one.title for one in opml.parse_feed_list(answer.content, "opml")}
    assert found[made["url"]] == made["title"]
    assert set(found) == {one["url"] for one in feeds(live_broker)}
    assert answer.headers["content-type"].startswith("text/x-opml")


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_bodies_never_cause_server_errors(live_broker: LiveBroker, number: int) -> None:
    for path, media_types in (
        ("/v1/subscriptions:preview", ("application/json",)),
        ("/v1/publications/1/query", ("application/json",)),
        ("/v1/feeds", ("application/json",)),
        ("/v1/ontology:what-if", (*ONTOLOGY_TYPES, "")),
    ):
        for media_type in media_types:
            said = live_broker.call("POST", path, HOSTILE[number], {"Content-Type": media_type})
            assert said.status < 500, (path, media_type, said.content)
            if said.status >= 400:
                check(said, said.status)


def test_a_long_question_returns_its_memory(
    live_broker: LiveBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[bool] = []
    monkeypatch.setattr(insight_service, "return_memory", lambda: given.append(True))
    query = {"query": ALL}
    assert live_broker.call("POST", "/v1/subscriptions:preview", query).json["truncated"] == []
    assert given == []
    assert live_broker.call("POST", "/v1/subscriptions:backtest", query).status == 200
    assert given == [True]
    insight_service.CDLL(None)  # Check that the C library is found.


@pytest.mark.long
def test_trials_of_a_cross_product_of_large_publications_keep_their_limits(tmp_path: Path) -> None:
    """Each takes at most 12 seconds, and the process does not grow."""
    query = {"query": "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"}
    with Process(tmp_path, "serve", "--store", str(tmp_path / "b.db"), "--port", "0") as broker:
        for number in range(12):
            lines = (f":s{number}-{n % 5000} :p{n % 50} {n} .\n" for n in range(250_000))
            text = "@prefix : <urn:x:> .\n" + "".join(lines)
            assert broker.call("POST", "/v1/publications", text, TURTLE).status == 202
        wait(lambda: broker.counted("graphmatch_publications_unmatched") == 0, 120)
        for _ in range(4):
            begun = monotonic()
            said = broker.call("POST", "/v1/subscriptions:backtest", query)
            assert said.status == 200
            assert said.json["matched"] > 0
            assert monotonic() - begun < 12
        status = Path(f"/proc/{broker.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        assert int(found[1]) < 500_000

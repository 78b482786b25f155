"""The API over real HTTP: permissions, errors, and inboxes that conform to LDN."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select

from graphmatch.broker.api import guard, system
from graphmatch.broker.api.dependencies import ApiOptions
from graphmatch.broker.api.guard import LINE_TYPES
from graphmatch.broker.api.problems import TYPE
from graphmatch.broker.app.security import derived_key, digest_of
from graphmatch.broker.db.store import counted
from graphmatch.broker.db.tables import audit, dead_letters, deliveries, owners, subscriptions
from graphmatch.broker.insight.insight_service import InsightService
from graphmatch.broker.models.limits import BrokerLimits
from tests.graphmatch.broker.live_broker import ALL, TURTLE, Answer, LiveBroker
from tests.waiting import pause, wait

LDN = "http://www.w3.org/ns/ldp"
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def live_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with LiveBroker(tmp_path_factory.mktemp("api")) as running:
        yield running


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    options = ApiOptions(local=False, hosts=None)
    with LiveBroker(tmp_path_factory.mktemp("public"), options=options) as running:
        yield running


def token(live_broker: LiveBroker, owner: str, *scopes: str) -> dict[str, str]:
    made = asyncio.run(live_broker.broker.accounts.new_token(owner, scopes))
    return {"Authorization": f"Bearer {made}"}


def check(answer: Answer, status: int, what: str = "") -> Any:
    """Check a problem (RFC 9457), and return it."""
    assert answer.status == status, answer.content
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json
    assert said["type"].startswith(TYPE)
    assert said["status"] == status
    assert said["title"]
    assert said["detail"] == str(said["detail"])
    assert said["where"]["source"]
    assert said["remedy"]
    assert what in said["what"]
    return said


# -- Linked Data Notifications: the checks of ldn-tests for receivers ---------------------------


def test_the_root_names_the_inbox(live_broker: LiveBroker) -> None:
    for method in ("GET", "HEAD"):
        said = live_broker.call(method, "/")
        inbox = f"{live_broker.url}/v1/publications"
        assert f'<{inbox}>; rel="{LDN}#inbox"' in said.headers["link"]
    assert live_broker.call("GET", "/").json["inbox"] == inbox


def test_options_and_head_describe_the_inbox(live_broker: LiveBroker) -> None:
    said = live_broker.call("OPTIONS", "/v1/publications")
    assert said.status == 204
    assert {"GET", "HEAD", "OPTIONS", "POST"} == set(said.headers["allow"].split(", "))
    assert "application/ld+json" in said.headers["accept-post"]
    said = live_broker.call("HEAD", "/v1/publications", headers={"Accept": "application/ld+json"})
    assert (said.status, said.content) == (200, b"")
    assert said.headers["content-type"] == "application/ld+json"


@pytest.mark.parametrize("profile", ["", '; profile="http://www.w3.org/ns/activitystreams"'])
def test_a_notification_is_accepted_listed_and_read(live_broker: LiveBroker, profile: str) -> None:
    body = {"@context": {"n": "http://example.org/"}, "@id": "", "n:p": "Hello"}
    sent = live_broker.call(
        "POST",
        "/v1/publications",
        json.dumps(body),
        {"Content-Type": "application/ld+json" + profile},
    )
    assert sent.status == 202
    assert sent.json["problems"] == []
    address = sent.headers["location"]
    listed = live_broker.call("GET", "/v1/publications", headers={"Accept": "application/ld+json"})
    assert listed.headers["content-type"] == "application/ld+json"
    assert listed.json["@context"] == LDN
    assert address in listed.json["contains"]
    path = address.removeprefix(live_broker.url)
    for accept in ({"Accept": "application/ld+json"}, {}):
        read = live_broker.call("GET", path, headers=accept)
        assert read.headers["content-type"] == "application/ld+json"
        (node,) = read.json
        assert node["http://example.org/p"] == [{"@value": "Hello"}]
        assert node["@id"] == sent.json["publications"][0]["id"]
    turtle = live_broker.call("GET", path, headers={"Accept": "text/turtle"})
    assert b"<http://example.org/p>" in turtle.content
    state = live_broker.call("GET", path, headers={"Accept": "application/json"}).json
    assert state["source"] == "http"
    check(live_broker.call("GET", path, headers={"Accept": "image/png"}), 406)


def test_a_refused_notification_links_to_the_constraints(live_broker: LiveBroker) -> None:
    for body, media_type, status in (
        (b"{", "application/ld+json", 422),
        (b"<a>", "text/turtle", 422),
        (b"", "text/turtle", 422),
        (b"x=1", "application/x-www-form-urlencoded", 415),
        ("<urn:ä> <urn:p> 1 .".encode("latin-1"), "text/turtle; charset=latin-1", 422),
    ):
        said = live_broker.call("POST", "/v1/publications", body, {"Content-Type": media_type})
        check(said, status)
        assert f'rel="{LDN}#constrainedBy"' in said.headers["link"]


# -- Publishing ---------------------------------------------------------------------------------


def test_many_publications_are_published_at_once(live_broker: LiveBroker) -> None:
    quads = b"<urn:a> <urn:p> <urn:b> <urn:g1> .\n<urn:a> <urn:p> <urn:c> <urn:g2> .\n"
    said = live_broker.call(
        "POST", "/v1/publications", quads, {"Content-Type": "application/n-quads"}
    )
    assert [one["id"] for one in said.json["publications"]] == ["urn:g1", "urn:g2"]
    lines = [
        {"id": "urn:l1", "data": "<> <urn:p> 1 .", "format": "text/turtle"},
        {"data": {"@id": "urn:x", "urn:p": 1}},
        {"data": 1},
        {"data": "<urn:a> <urn:p>", "format": "ttl"},
        {"data": "<urn:a> <urn:p> 1 .", "format": "klingon"},
        {"more": 1},
    ]
    body = "\n".join(map(json.dumps, lines)) + "\n\n{\n"
    said = live_broker.call("POST", "/v1/publications", body, LINES)
    assert said.status == 202
    assert len(said.json["publications"]) == 2
    assert said.json["publications"][0]["id"] == "urn:l1"
    assert [one["where"]["line"] for one in said.json["problems"]] == [3, 4, 5, 6, 8]
    check(live_broker.call("POST", "/v1/publications", "\n", LINES), 422, "no publication in it")


def test_a_feed_is_published_under_any_media_type(live_broker: LiveBroker) -> None:
    feed = Path("data/feeds/science.atom").read_bytes()
    for media_type in ("application/atom+xml", "application/xml", "text/plain", ""):
        sent = {"Content-Type": media_type} if media_type else {}
        said = live_broker.call("POST", "/v1/publications", feed, sent)
        assert len(said.json["publications"]) > 3


def test_the_size_of_bodies_is_limited(tmp_path: Path) -> None:
    limits = BrokerLimits(body_bytes=1000, publications=3)
    fine, large = b"<urn:a> <urn:p> 1 .", b"<urn:a> <urn:p> 1 ." + b" " * 1000
    with LiveBroker(tmp_path, limits=limits) as live_broker:

        def sent(body: bytes, headers: dict[str, str], **more: Any) -> Answer:
            return live_broker.call("POST", "/v1/publications", body, headers, **more)

        check(sent(large, TURTLE), 413)
        pieces: Any = iter([fine, b" " * 500, b" " * 500])
        check(sent(pieces, TURTLE, encode_chunked=True), 413)
        assert sent(fine, TURTLE).status == 202
        check(sent(fine, TURTLE | {"Content-Encoding": "gzip"}), 415)
        many = "\n".join(json.dumps({"data": fine.decode()}) for _ in range(4))
        check(sent(many.encode(), LINES), 422, "more than 3 publications")
        assert len(live_broker.call("GET", "/v1/publications").json["contains"]) == 1


def test_a_body_that_does_not_arrive_times_out(
    live_broker: LiveBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    head = b"POST /v1/publications HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n1"
    assert live_broker.raw(head).startswith(b"HTTP/1.1 408 ")


HOSTILE = [
    b"\0" * 100,
    b"\xff\xfe\xfd",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"query": "\\ud800"}',
    b'{"name": "\\u0000", "query": "ASK { ?s ?p ?o }"}',
    b'{"query": "ASK { ?s ?p ?o }", "expires_in": 1e400}',
    b'{"query": "ASK { ?s ?p ?o }", "expires_in": 99999999999999999999999}',
    b'{"where": {"a": NaN}}',
    b'{"where": {"a": {"lt": 1e999}}}',
    b'{"where": {"\\ud800": 1}}',
    b'{"where": [[[[]]]]}',
    b'{"topics": ["\\ud800"]}',
    b'{"topics": []}',
    b'{"words": [""]}',
    b'{"query": null}',
    b"null",
    b"1",
    b'"x"',
    b'{"query": "ASK { ?s ?p ?o }", "quiet_hours": {"from": 1, "to": []}}',
    b'{"query": "ASK { ?s ?p ?o }", "quiet_hours": {"from": "1:00", "to": "2:00", "zone": "../x"}}',
    b'{"query": "ASK { ?s ?p ?o }", "digest": {"every": true}}',
    b'{"query": "ASK { ?s ?p ?o }", "digest": {"at": ["25:00"]}}',
    b'{"query": "ASK { ?s ?p ?o }", "sink": {"kind": "webhook", "url": "http://["}}',
    b'{"query": "ASK { ?s ?p ?o }", "sink": {"kind": "inbox", "url": "http://a:99999/"}}',
    b'{"query": "ASK { ?s ?p ?o }", "sink": {"kind": "email", "address": "a@b\\u0000"}}',
    b'{"query": "' + b"(" * 50_000 + b'"}',
    b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><a>&b;</a>",
    b'<urn:a> <urn:p> "\\u0000" .',
    b"@prefix : <" + b"a" * 100_000 + b"> . :a :b :c .",
    b"<urn:a> <urn:p> " + b"(" * 50_000,
    b"<urn:a> <urn:p> " + b"<<( " * 10_000,
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_bodies_never_cause_server_errors(live_broker: LiveBroker, number: int) -> None:
    body = HOSTILE[number]
    for path, media_types in (
        ("/v1/subscriptions", ("application/json", "text/plain", "")),
        ("/v1/publications", ("application/ld+json", "text/turtle", "application/xml", LINES_TYPE)),
    ):
        for media_type in media_types:
            said = live_broker.call("POST", path, body, {"Content-Type": media_type})
            assert said.status < 500, (path, media_type, said.content)
            if said.status >= 400:
                check(said, said.status)
    assert live_broker.call("GET", "/readyz").status == 200


LINES_TYPE = LINES["Content-Type"]


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: [\r\n\r\n",
        b"GET /%00%ff?since=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/matches/99999999999999999999 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/matches/-1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/matches/1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: \xff\r\n\r\n",
        b"GET /v1/matches/1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://[\r\n\r\n",
        b"HELLO\r\n\r\n",
    ],
)
def test_hostile_heads_never_cause_server_errors(live_broker: LiveBroker, head: bytes) -> None:
    assert live_broker.raw(head).startswith(b"HTTP/1.1 4")


# -- Requests forged through browsers -----------------------------------------------------------


def test_pages_of_other_sites_cannot_use_the_api(live_broker: LiveBroker) -> None:
    path, body = "/v1/publications", "<urn:a> <urn:p> 1 ."
    check(live_broker.call("GET", "/", headers={"Host": "evil.example"}), 421)
    foreign = {"Origin": "http://evil.example"}
    check(live_broker.call("POST", path, body, TURTLE | foreign), 403)
    check(live_broker.call("POST", path, body, TURTLE | {"Origin": "null"}), 403)
    own = {"Origin": live_broker.url, "Host": f"127.0.0.1:{live_broker.port}"}
    assert live_broker.call("POST", path, body, TURTLE | own).status == 202


# -- Permissions --------------------------------------------------------------------------------


def test_each_scope_allows_its_requests(public: LiveBroker) -> None:
    publishing = token(public, "one", "publish")
    subscribing = token(public, "one", "subscribe")
    asked, body = {"query": ALL}, "<urn:a> a <urn:C> ."
    for headers, subscribed, published in (
        ({}, 401, 401),
        ({"Authorization": "Bearer gmk_no"}, 401, 401),
        ({"Authorization": "Basic YTpi"}, 401, 401),
        ({"Authorization": "Ticket gmt_no"}, 401, 401),
        (publishing, 403, 202),
        (subscribing, 201, 403),
        (token(public, "one", "admin"), 201, 202),
    ):
        said = public.call("POST", "/v1/subscriptions", asked, headers)
        assert said.status == subscribed
        if subscribed == 401:
            assert "Bearer" in said.headers["www-authenticate"]
        said = public.call("POST", "/v1/publications", body, TURTLE | headers)
        assert said.status == published
    check(public.call("GET", "/metrics"), 401)
    assert public.call("GET", "/metrics", headers=token(public, "a", "admin")).status == 200


_WHY = ("GET", "/v1/subscriptions/{id}/why")


def test_objects_of_other_owners_are_not_found(public: LiveBroker) -> None:
    mine, other = token(public, "mine", "subscribe", "publish"), token(public, "o", "subscribe")
    made = public.call("POST", "/v1/subscriptions", {"query": ALL}, mine).json
    id, ticket = made["id"], {"Authorization": f"Ticket {made['ticket']}"}
    seq = public.call("POST", "/v1/publications", "<urn:a> a <urn:C> .", TURTLE | mine)
    published = seq.json["publications"][0]["seq"]
    public.settled()
    match = public.call("GET", f"/v1/subscriptions/{id}/matches", headers=mine).json["last"]
    number = _delivery(public, id)
    count = select(func.count()).select_from(audit)
    things = {
        "/v1/subscriptions/{id}": (id, "sub_0123456789abcdef"),
        "/v1/matches/{seq}": (match, 99999),
        "/v1/deliveries/{number}": (number, 99999),
        "/v1/publications/{seq}": (published, 99999),
    }
    others_ = [
        ("DELETE", "/v1/tokens/{number}"),  # Administrators may use it.
        ("GET", "/v1/subscriptions/{id}/link"),  # It shows a button to all clients.
        ("GET", "/v1/publications/{seq}/facts"),  # All subscribers may use it.
        ("POST", "/v1/publications/{seq}/query"),
        ("GET", "/v1/feeds/{id}"),  # All who may manage feeds may use it.
        ("DELETE", "/v1/feeds/{id}"),
    ]
    paths = []
    # Take each path with a parameter from the description, so that none is forgotten.
    for template, methods in public.call("GET", "/openapi.json").json["paths"].items():
        for method in map(str.upper, methods):
            if "{" not in template or (method, template) in others_:
                continue
            [thing] = [one for one in things if template.startswith(one)]
            there, not_there = (
                template.replace("{format}", "atom").replace(thing, _filled(thing, x))
                for x in things[thing]
            )
            assert "{" not in there, "say what it is of"
            more = f"?publication={published}" if (method, template) == _WHY else ""
            paths.append((method, there + more, not_there + more))
    assert len(paths) >= 15
    theirs = public.call("POST", "/v1/subscriptions", {"query": ALL}, other).json
    for method, path, absent in paths:
        body = {"since": 0} if path.endswith("/replay") else {} if method == "PATCH" else None
        for headers in (
            other,
            {"Authorization": "Ticket gmt_no"},
            {"Authorization": f"Ticket {theirs['ticket']}"},
        ):
            before = public.read(lambda db: db.scalar(count)) or 0
            refused = public.call(method, path, body, headers)
            assert public.read(lambda db: db.scalar(count)) == before + 1
            missing = public.call(method, absent, body, headers)
            assert (refused.status, missing.status) == (404, 404)
            for key in ("type", "what", "remedy", "title"):
                assert refused.json[key] == missing.json[key]
    for headers in (mine, ticket):
        for method, path, _ in paths:
            if method == "GET" and not path.endswith("/events"):
                assert public.call(method, path, headers=headers).status == 200, path
    assert public.call("GET", f"/v1/subscriptions/{id}").status == 401


def _filled(template: str, value: object) -> str:
    return f"{template.partition('{')[0]}{value}"


def _delivery(live_broker: LiveBroker, id: str) -> int:
    """Return a failed delivery of a subscription."""
    row = live_broker.read(
        lambda db: db.scalar(select(subscriptions.c.number).where(subscriptions.c.id == id))
    )
    values = {"kind": "match", "host": "a:80", "state": "failed", "attempt": 3, "due_at": 1}

    def work(db: Connection) -> int:
        number = counted(db, "delivery")
        db.execute(insert(deliveries).values(id=number, subscription=row, created_at=1, **values))
        return number

    return live_broker.store.write_now(work)


def test_a_failed_delivery_can_be_retried(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe()
    number = _delivery(live_broker, id)
    (one,) = live_broker.call("GET", f"/v1/subscriptions/{id}/deliveries", headers=ticket).json[
        "deliveries"
    ]
    assert (one["id"], one["state"], one["subscription"]) == (number, "failed", id)
    path = f"/v1/deliveries/{number}"
    again = live_broker.call("POST", f"{path}/retry", headers=ticket)
    assert (again.status, again.json["state"], again.json["attempt"]) == (202, "waiting", 3)
    done = deliveries.update().where(deliveries.c.id == number).values(state="delivered")
    live_broker.store.write_now(lambda db: db.execute(done))
    check(live_broker.call("POST", f"{path}/retry", headers=ticket), 409)


def test_administrators_create_and_revoke_tokens(public: LiveBroker) -> None:
    admin = token(public, "root", "admin")
    asked = {"owner": "new", "scopes": ["publish", "subscribe"]}
    check(public.call("POST", "/v1/tokens", asked, token(public, "x", "publish")), 403)
    made = public.call("POST", "/v1/tokens", asked, admin)
    assert made.status == 201
    headers = {"Authorization": f"Bearer {made.json['token']}"}
    ids = [
        public.call("POST", "/v1/subscriptions", {"query": ALL}, headers).json["id"]
        for _ in range(3)
    ]
    first = public.call("GET", "/v1/subscriptions?limit=2", headers=headers).json
    second = public.call("GET", first["next"].removeprefix(public.url), headers=headers).json
    listed = [one["id"] for page in (first, second) for one in page["subscriptions"]]
    assert listed == ids
    [made] = public.call("GET", "/v1/tokens?owner=new", headers=admin).json["tokens"]
    assert public.call("DELETE", f"/v1/tokens/{made['id']}", headers=admin).status == 204
    check(public.call("GET", "/v1/subscriptions", headers=headers), 401)
    assert public.read(lambda db: db.scalar(select(func.count()).select_from(owners)))


# -- Subscriptions ------------------------------------------------------------------------------


def test_secrets_are_shown_once(live_broker: LiveBroker) -> None:
    sink = {"kind": "ntfy", "url": "https://ntfy.example/x", "token": "tk_secret"}
    made = live_broker.call("POST", "/v1/subscriptions", {"query": ALL, "sink": sink})
    headers = {"Authorization": f"Ticket {made.json['ticket']}"}
    path = made.headers["location"].removeprefix(live_broker.url)
    shown = live_broker.call("GET", path, headers=headers).content.decode()
    assert "tk_secret" not in shown
    assert made.json["ticket"] not in shown
    assert made.headers["cache-control"] == "no-store"


def test_null_removes_a_digest(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe(digest={"every": 600})
    path = f"/v1/subscriptions/{id}"
    assert live_broker.call("PATCH", path, {"name": "n"}, ticket).json["subscription"]["digest"]
    said = live_broker.call("PATCH", path, {"digest": None}, ticket)
    assert said.json["subscription"]["digest"] is None


def test_a_changed_query_matches_later_publications(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe("SELECT ?s { ?s a <urn:Never> }")
    live_broker.publish("<urn:x> a <urn:Changed> .")
    path = f"/v1/subscriptions/{id}"
    query = {"query": "SELECT ?s { ?s a <urn:Changed> }"}
    assert live_broker.call("PATCH", path, query, ticket).json["subscription"]["generation"] == 2
    live_broker.publish("<urn:y> a <urn:Changed> .")
    live_broker.settled()
    (one,) = live_broker.call("GET", f"{path}/matches", headers=ticket).json["matches"]
    assert one["solutions"] == [{"s": "<urn:y>"}]
    assert live_broker.call("PATCH", path, {"state": "paused"}, ticket).status == 200
    live_broker.publish("<urn:z> a <urn:Changed> .")
    live_broker.settled()
    assert len(live_broker.call("GET", f"{path}/matches", headers=ticket).json["matches"]) == 1


# -- The whole API ------------------------------------------------------------------------------


def test_errors_name_the_address_the_method_and_the_field(live_broker: LiveBroker) -> None:
    check(live_broker.call("GET", "/nix"), 404)
    for path, allowed in (
        ("/v1/publications", {"GET", "HEAD", "OPTIONS", "POST"}),
        ("/v1/subscriptions/x", {"GET", "HEAD", "PATCH", "DELETE"}),
    ):
        said = live_broker.call("PUT", path)
        check(said, 405)
        assert set(said.headers["allow"].split(", ")) == allowed
    said = check(
        live_broker.call("POST", "/v1/subscriptions", b"{", {"Content-Type": "application/json"}),
        400,
    )
    assert said["where"]["source"] == "body"
    said = check(live_broker.call("POST", "/v1/subscriptions", {"query": 1, "colour": 2}), 422)
    assert {one["where"]["item"] for one in said["problems"]} == {"query", "colour"}
    said = check(
        live_broker.call("POST", "/v1/subscriptions", {"query": "SELECT ?s\n{ ?s ?p }"}), 422
    )
    assert said["where"]["line"] == 2


def test_an_internal_error_has_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reasons(*_: object) -> None:
        raise ZeroDivisionError("gmt_secret")

    monkeypatch.setattr(InsightService, "reasons", reasons)
    with LiveBroker(tmp_path) as live_broker:
        id, ticket = live_broker.subscribe()
        live_broker.publish()
        live_broker.settled()
        said = live_broker.call("GET", "/v1/matches/1/why", headers=ticket)
        assert "gmt_" not in said.content.decode()
        check(said, 500)
        assert id


def test_failed_requests_are_logged_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "graphmatch.broker")
    with LiveBroker(tmp_path) as live_broker:
        id, ticket = live_broker.subscribe()
        links = live_broker.call("GET", f"/v1/subscriptions/{id}", headers=ticket).json["links"]
        feed = links["feed"].removeprefix(live_broker.url)
        assert live_broker.call("GET", feed).status == 200
        secret = ticket["Authorization"].split()[1]
        path = f"/v1/subscriptions/{secret}?ticket={secret}"
        missing = live_broker.call("GET", path, headers=ticket)
        assert live_broker.call("POST", f"{feed}1").status == 405
        rows = live_broker.read(lambda db: db.execute(select(audit)).all())
    records = [vars(one) for one in caplog.records if one.message == "request"]
    assert [(one["method"], one["status"]) for one in records] == [("GET", 404), ("POST", 405)]
    assert records[0]["request_id"] == missing.headers["x-request-id"]
    assert records[0]["ms"] > 0
    said = repr(records) + repr(rows)
    assert secret[4:] not in said
    assert feed.partition("gmr_")[2] not in said


def test_metrics_count_publications(live_broker: LiveBroker) -> None:
    live_broker.publish()
    live_broker.settled()

    def metrics() -> str:
        return live_broker.call("GET", "/metrics").content.decode()

    wait(lambda: "graphmatch_publications_unmatched 0.0" in metrics())
    text = metrics()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")
    published = live_broker.call("GET", "/v1/publications?limit=1").json["contains"][0]
    assert float(values["graphmatch_publications_total"]) == int(published.rpartition("/")[2])
    assert values["graphmatch_publications_unmatched"] == "0.0"
    assert float(values["graphmatch_match_latency_seconds_count"]) > 0
    assert any("/v1/publications" in name for name in values)
    assert live_broker.call("GET", "/healthz").json["status"] == "ok"


def test_a_broker_without_a_matcher_is_not_ready(tmp_path: Path) -> None:
    with LiveBroker(tmp_path, matching=False) as live_broker:
        said = live_broker.call("GET", "/readyz")
        assert (said.status, said.json["status"]) == (503, "not ready")
        assert live_broker.call("GET", "/healthz").status == 200


@pytest.mark.parametrize("media_type", ["text/turtle", LINES["Content-Type"]])
def test_the_server_responds_while_a_body_is_read(
    live_broker: LiveBroker, monkeypatch: pytest.MonkeyPatch, media_type: str
) -> None:
    begun, goes_on = Event(), Event()
    read = live_broker.broker.publications.read

    def slowly(*given: Any, **more: Any) -> Any:
        begun.set()
        assert goes_on.wait(60)
        return read(*given, **more)

    monkeypatch.setattr(live_broker.broker.publications, "read", slowly)
    body = "#" * 20_000  # Short bodies are read without a thread.
    if media_type in LINES.values():
        body = json.dumps({"data": "<urn:a> <urn:p> 1 ."})
    sent = ("POST", "/v1/publications", body, {"Content-Type": media_type})
    thread = Thread(target=live_broker.call, args=sent)
    thread.start()
    assert begun.wait(5)
    assert live_broker.call("GET", "/healthz").status == 200
    assert thread.is_alive()
    goes_on.set()
    thread.join()


def test_every_endpoint_is_described(live_broker: LiveBroker) -> None:
    said = live_broker.call("GET", "/openapi.json").json
    for path, methods in said["paths"].items():
        for one in methods.values():
            assert one["summary"], path
            assert one["description"], path
            bodies = one.get("requestBody", {}).get("content", {})
            examples = ["example" in body or _examples(said, body) for body in bodies.values()]
            assert any(examples) == bool(bodies), path
    assert "9007199254740993" not in json.dumps(said)
    schemas = said["components"]["schemas"]
    fields = schemas["SubscriptionView"]["properties"]  # Docstrings describe fields.
    assert "Number of stored matches" in fields["match_count"]["description"]
    assert set(schemas["Place"]["properties"]) == {"source", "line", "column", "item"}
    assert not [one for one in schemas.values() if "---" in one.get("description", "")]
    assert "HTTPValidationError" not in schemas


def test_the_documentation_needs_no_other_server(live_broker: LiveBroker) -> None:
    page = live_broker.call("GET", "/docs")
    addresses = page.all("//@src | //@href")
    assert len(addresses) == 3
    for address in addresses:
        assert address.startswith("/docs/")
        assert live_broker.call("GET", address).status == 200
    assert "/openapi.json" in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'self'")


def test_messages_of_webhooks_are_described(live_broker: LiveBroker) -> None:
    said = live_broker.call("GET", "/openapi.json").json
    body = said["webhooks"]["message"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["$ref"].endswith("/Notification")
    fields = said["components"]["schemas"]["Notification"]["properties"]
    assert {"type", "id", "subscription", "matches", "total", "link"} <= fields.keys()


def _examples(said: Any, body: Any) -> bool:
    schema = body["schema"]
    for one in (schema, *schema.get("anyOf", ())):
        if "$ref" in one:
            found = said["components"]["schemas"][one["$ref"].rpartition("/")[2]]
            if found.get("examples"):
                return True
    return False


@pytest.mark.parametrize("examples", [1, pytest.param(1700, marks=pytest.mark.long)])
def test_generated_requests_conform_to_the_description(tmp_path: Path, examples: int) -> None:
    """Schemathesis: no 5xx status, and every response conforms to the description."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, settings
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    schemathesis.serializer.alias(list(LINE_TYPES), "text/plain")
    checks = [
        not_a_server_error,
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    ]
    with LiveBroker(tmp_path) as live_broker:
        id, ticket = live_broker.subscribe()
        live_broker.publish()
        live_broker.settled()
        described = live_broker.call("GET", "/openapi.json").json
        schema = schemathesis.openapi.from_dict(described)
        schema.config.update(base_url=live_broker.url)
        ran = 0
        for found in schema.get_all_operations():
            operation = found.ok()
            if operation.path.endswith("/events"):
                continue  # This stream never ends.

            def run(case: Any) -> None:
                nonlocal ran
                ran += 1
                known: dict[str, Any] = {"id": id, "seq": 1}
                if ran % 2:
                    shared = known.keys() & case.path_parameters.keys()
                    case.path_parameters |= {key: known[key] for key in shared}
                if ran % 2 and case.path.endswith("{id}/why"):
                    case.query = {"publication": 1}
                case.headers = {**(case.headers or {}), **ticket} if ran % 3 else case.headers
                case.call_and_validate(checks=checks, timeout=20)

            test = operation.as_strategy()
            _given(
                test,
                run,
                settings(
                    max_examples=examples,
                    deadline=None,
                    database=None,
                    derandomize=True,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
        assert ran >= 20 * examples
        assert live_broker.call("GET", "/readyz").status == 200


def _given(strategy: Any, run: Any, how: Any) -> None:
    from hypothesis import given

    how(given(strategy)(run))()


# -- Earlier errors of lower layers -------------------------------------------------------------


@pytest.mark.parametrize("body", [b"-1\r\na\r\n", b"5\r\n<urn"])
def test_an_interrupted_body_is_not_logged_as_an_error(
    live_broker: LiveBroker, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    head = f"POST /v1/publications HTTP/1.1\r\nHost: 127.0.0.1:{live_broker.port}\r\n"
    head += "Content-Type: text/turtle\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", live_broker.port), timeout=10) as connection:
        connection.sendall(head.encode() + body)
    pause(0.3)
    assert not [record for record in caplog.records if record.exc_info]


def test_an_endless_head_closes_the_connection(live_broker: LiveBroker) -> None:
    head = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{live_broker.port}\r\n".encode()
    with socket.create_connection(("127.0.0.1", live_broker.port), timeout=10) as connection:
        connection.sendall(head + b"X: ")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            connection.sendall(b"a" * 50_000_000)
    assert live_broker.raw(head + b"X: " + b"a" * 50_000 + b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_the_end_of_a_large_body_is_not_read_as_a_head(live_broker: LiveBroker) -> None:
    body = b"<urn:a> a <urn:C> .\n#" + b" " * 5_000_000
    head = (
        f"POST /v1/publications HTTP/1.1\r\nHost: 127.0.0.1:{live_broker.port}\r\n"
        f"Content-Type: text/turtle\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", live_broker.port), timeout=10) as connection:
        connection.sendall(head.encode() + body[:10])
        pause(0.1)
        connection.sendall(body[10:])
        assert connection.recv(100).startswith(b"HTTP/1.1 202")


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/publications?id=a%00b", "<urn:a> a <urn:C> .", None),
        ("/v1/subscriptions", {"query": "ASK { ?s ?p 'a\0' }"}, "query"),
        ("/v1/subscriptions", {"query": "ASK { ?s ?p ?o }", "name": "a\0b"}, "name"),
        ("/v1/subscriptions", {"where": {"a": {"=": ["\0"]}}}, "where"),
        ("/v1/subscriptions", {"words": ["a", "b\0"]}, "words"),
        ("/v1/subscriptions:backtest", {"query": "ASK { ?s ?p 'a\0' }"}, "query"),
        ("/v1/feeds", {"url": "https://example.org/", "title": "\0"}, "title"),
        ("/v1/subscriptions/a%00b/test", None, None),
    ],
)
def test_a_nul_is_refused_and_its_field_named(
    live_broker: LiveBroker, path: str, body: Any, field: str | None
) -> None:
    """PostgreSQL cannot store it, so a backup of SQLite could not be restored there."""
    said = live_broker.call("POST", path, body, TURTLE if isinstance(body, str) else None)
    assert said.status in (400, 422)
    assert said.json["where"]["source"] == ("body" if field else "address")
    assert said.json["where"].get("item") == field
    assert "NUL" in said.json["what"]


def test_a_very_long_id_is_refused(live_broker: LiveBroker) -> None:
    """PostgreSQL could not index it."""
    data = f"<urn:{'x' * 3000}> {{ <urn:s> <urn:p> 1 }} <urn:short> {{ <urn:s> <urn:p> 1 }}"
    answer = live_broker.call(
        "POST", "/v1/publications", data, {"Content-Type": "application/trig"}
    )
    assert [one["id"] for one in answer.json["publications"]] == ["urn:short"]
    assert "an id of more than 2,000 bytes" in str(answer.json["problems"])


def test_a_wrong_ticket_needs_a_token_even_locally(live_broker: LiveBroker) -> None:
    headers = {"Authorization": "Ticket gmt_wrong"}
    body = {"query": "SELECT ?x { ?x a <urn:C> }"}
    assert live_broker.call("POST", "/v1/subscriptions", body, headers).status == 401


def test_a_nul_in_an_id_of_a_line_refuses_that_line(live_broker: LiveBroker) -> None:
    lines = '{"id": "urn:a\\u0000", "data": ""}\n{"id": "urn:b", "data": "<urn:a> a <urn:C> ."}'
    said = live_broker.call("POST", "/v1/publications", lines, LINES).json
    assert [one["id"] for one in said["publications"]] == ["urn:b"]
    [problem] = said["problems"]
    assert "NUL" in problem["what"]
    assert (problem["where"]["line"], problem["where"]["item"]) == (1, "id")


# -- Operation of the API -----------------------------------------------------------------------


def test_each_answer_has_a_request_id(live_broker: LiveBroker) -> None:
    given = live_broker.call("GET", "/healthz", headers={"X-Request-Id": "trace-1"})
    assert given.headers["x-request-id"] == "trace-1"
    for method, path, status in (("GET", "/nix", 404), ("PUT", "/v1/feeds", 405)):
        said = live_broker.call(method, path, headers={"X-Request-Id": "a b\tc" * 50})
        body = check(said, status)
        assert body["request_id"] == said.headers["x-request-id"]
        assert len(body["request_id"]) == 16
    refused = live_broker.call("GET", "/", headers={"Host": "evil.example", "X-Request-Id": "t2"})
    assert check(refused, 421)["request_id"] == "t2"


def test_problems_have_stable_codes(live_broker: LiveBroker) -> None:
    subscriptions = "/v1/subscriptions"
    for method, path, body, headers, status, code in (
        ("GET", "/nix", None, {}, 404, "not-found"),
        ("GET", f"{subscriptions}/sub_no", None, {}, 404, "not-found"),
        ("POST", subscriptions, {"query": "SELECT"}, {}, 422, "invalid-subscription"),
        ("POST", subscriptions, {}, {}, 422, "invalid-request"),
        ("POST", subscriptions, b"{", {"Content-Type": "application/json"}, 400, "invalid-json"),
        ("POST", subscriptions, b"a=b", {}, 415, "unsupported-media-type"),
        ("POST", "/v1/feeds", b"a", {"Content-Type": "text/plain"}, 415, "unsupported-media-type"),
        ("GET", subscriptions, None, {"Authorization": "Bearer no"}, 401, "unauthorized"),
        ("POST", "/v1/publications", b"<a>", {"Content-Type": "text/turtle"}, 422, None),
    ):
        said = check(live_broker.call(method, path, body, headers), status)
        assert code is None or said["code"] == code
        assert said["type"] == TYPE + said["code"]


def test_lines_create_subscriptions(live_broker: LiveBroker) -> None:
    lines = [
        json.dumps({"query": ALL, "name": "first"}),
        "",
        '{"query": ',
        json.dumps({"query": "SELECT", "colour": 1}),
        json.dumps({"query": "SELECT ?s { ?s"}),
        json.dumps({"words": ["two"], "sink": {"kind": "feed"}}),
    ]
    said = live_broker.call("POST", "/v1/subscriptions:bulk", "\n".join(lines), LINES)
    assert said.status == 200, said.content
    first, broken, unknown, invalid, last = said.json["subscriptions"]
    ticket = {"Authorization": f"Ticket {first['ticket']}"}
    path = first["links"]["self"].removeprefix(live_broker.url)
    assert live_broker.call("GET", path, headers=ticket).json["name"] == "first"
    assert last["id"] != first["id"]
    assert [one["code"] for one in (broken, unknown, invalid)] == ["invalid-subscription"] * 3
    assert (broken["where"]["line"], unknown["where"]["line"]) == (3, 4)
    assert unknown["where"]["item"] == "colour"
    assert invalid["what"]
    path = "/v1/subscriptions:bulk"
    check(live_broker.call("POST", path, "\n", LINES), 422, "0 subscriptions")
    check(live_broker.call("POST", path, {"query": ALL}), 415)
    several = live_broker.client().subscribe_many([{"topics": ["Energy"]}, {"not_words": 1}])
    assert "ticket" in several[0]
    assert several[1]["status"] == 422


def test_a_repeated_subscription_is_created_once(public: LiveBroker) -> None:
    key = token(public, "once", "subscribe") | {"Idempotency-Key": "k1"}
    first = public.call("POST", "/v1/subscriptions", {"query": ALL}, key)
    again = public.call("POST", "/v1/subscriptions", {"query": ALL}, key)
    assert (first.status, again.status) == (201, 201)
    assert again.json["id"] == first.json["id"]
    assert first.json["ticket"]
    assert again.json["ticket"] is None
    assert again.json["read_key"] == first.json["read_key"]
    other = public.call("POST", "/v1/subscriptions", {"words": ["a"]}, key)
    assert check(other, 409)["code"] == "conflict"


def test_the_rate_of_requests_is_limited(tmp_path: Path) -> None:
    options = ApiOptions(local=False, anonymous=True)
    with LiveBroker(tmp_path, options=options, limits=BrokerLimits(requests=3)) as broker:
        headers = token(broker, "eager", "subscribe", "publish")
        answers = [broker.call("GET", "/v1/subscriptions", headers=headers) for _ in range(4)]
        assert [one.status for one in answers] == [200, 200, 200, 429]
        assert check(answers[3], 429)["code"] == "too-many-requests"
        assert int(answers[3].headers["retry-after"]) > 0
        said = [broker.call("POST", "/v1/publications", "<urn:a> a 1 .", TURTLE) for _ in range(4)]
        assert [one.status for one in said] == [202, 202, 202, 429]  # By address.
        forwarded = TURTLE | {"X-Forwarded-For": "192.0.2.1, 192.0.2.7"}
        assert broker.call("POST", "/v1/publications", "<urn:a> a 1 .", forwarded).status == 202
        assert broker.call("GET", "/healthz").status == 200


def test_wrong_tokens_are_slowed_down(tmp_path: Path) -> None:
    with LiveBroker(tmp_path, options=ApiOptions(local=False)) as broker:
        wrong = {"Authorization": "Bearer gmk_no"}
        statuses = [broker.call("GET", "/v1/feeds", headers=wrong).status for _ in range(15)]
        assert statuses[0] == 401
        assert statuses[-1] == 429


def test_tokens_are_listed_revoked_and_expire(public: LiveBroker) -> None:
    admin = token(public, "root", "admin")
    asked = {"owner": "lister", "scopes": ["subscribe"], "name": "laptop", "expires_in": 3600}
    made = public.call("POST", "/v1/tokens", asked, admin).json
    second = public.call("POST", "/v1/tokens", asked | {"name": "phone"}, admin).json
    check(public.call("GET", "/v1/tokens", headers=token(public, "x", "subscribe")), 403)
    listed = public.call("GET", "/v1/tokens?owner=lister", headers=admin)
    assert made["token"] not in listed.text
    rows = {one["name"]: one for one in listed.json["tokens"]}
    assert rows.keys() == {"laptop", "phone"}
    assert rows["laptop"]["scopes"] == ["subscribe"]
    number = rows["laptop"]["id"]
    assert public.call("DELETE", f"/v1/tokens/{number}", headers=admin).status == 204
    check(public.call("DELETE", "/v1/tokens/99999", headers=admin), 404)
    bearer = {"Authorization": f"Bearer {made['token']}"}
    check(public.call("GET", "/v1/subscriptions", headers=bearer), 401)
    bearer = {"Authorization": f"Bearer {second['token']}"}
    assert public.call("GET", "/v1/subscriptions", headers=bearer).status == 200
    public.clock.forward = timedelta(hours=2)
    try:
        check(public.call("GET", "/v1/subscriptions", headers=bearer), 401)
    finally:
        public.clock.forward = timedelta(0)


def test_dead_letters_are_listed_and_counted(tmp_path: Path) -> None:
    with LiveBroker(tmp_path) as broker:
        assert broker.call("GET", "/readyz").json["dead_letters"] == 0
        row = {"task": "matching", "record": "publication 1", "error": "E: gmt_abc", "at": 1}
        broker.store.write_now(lambda db: db.execute(insert(dead_letters).values(row)))
        ready = broker.call("GET", "/readyz")
        assert (ready.status, ready.json["dead_letters"]) == (200, 1)
        said = broker.call("GET", "/v1/dead-letters").json
        assert said["total"] == 1
        [letter] = said["dead_letters"]
        assert (letter["record"], letter["error"]) == ("publication 1", "E: gmt_…")
        assert broker.call("GET", "/v1/dead-letters", headers={"Via": "1.1 a"}).status == 401


def test_a_full_disk_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LiveBroker(tmp_path) as broker:
        monkeypatch.setattr(system, "FREE_BYTES", 10**18)
        said = broker.call("GET", "/readyz")
        assert said.status == 503
        assert "disk" in said.json["reasons"][0]


def test_pages_of_named_origins_may_use_the_api(tmp_path: Path) -> None:
    origin = {"Origin": "https://app.example"}
    ask = origin | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    with LiveBroker(tmp_path, options=ApiOptions(cors_origins=("https://app.example",))) as broker:
        said = broker.call("OPTIONS", "/v1/subscriptions", headers=ask)
        assert said.status == 200
        assert said.headers["access-control-allow-origin"] == "https://app.example"
        headers = origin | token(broker, "a", "subscribe")
        made = broker.call("POST", "/v1/subscriptions", {"query": ALL}, headers)
        assert made.status == 201
        assert made.headers["access-control-allow-origin"] == "https://app.example"
        assert broker.call("POST", "/v1/subscriptions", {"query": ALL}, origin).status == 403


def test_without_named_origins_there_is_no_cors(live_broker: LiveBroker) -> None:
    said = live_broker.call("GET", "/healthz", headers={"Origin": "https://app.example"})
    assert "access-control-allow-origin" not in said.headers


# -- CloudEvents --------------------------------------------------------------------------------


def cloud_event(**more: Any) -> dict[str, Any]:
    event = {"specversion": "1.0", "id": "7", "source": "urn:shop", "type": "org.example.offer"}
    return event | {"datacontenttype": "text/turtle", "data": "<urn:a> a <urn:C> ."} | more


def test_structured_cloudevents_are_published(live_broker: LiveBroker) -> None:
    kind = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
    for event, id in (
        (cloud_event(), "urn:shop#7"),
        (cloud_event(id="urn:own"), "urn:own"),
        (cloud_event(data=None, data_base64="PHVybjphPiBhIDx1cm46Qz4gLg=="), "urn:shop#7"),
        (cloud_event(datacontenttype=None, data={"@id": "urn:x", "@type": "urn:C"}), "urn:shop#7"),
        (cloud_event(extension="ignored"), "urn:shop#7"),
    ):
        event = {key: value for key, value in event.items() if value is not None}
        said = live_broker.call("POST", "/v1/publications", event, kind)
        assert said.status == 202, said.content
        assert [one["id"] for one in said.json["publications"]] == [id]
    for event, item in (
        (cloud_event(specversion="0.3"), "specversion"),
        (cloud_event(id=""), "id"),
        (cloud_event(data=5), "data"),
    ):
        said = check(live_broker.call("POST", "/v1/publications", event, kind), 422)
        assert item in said["where"]["item"]


def test_a_batch_of_cloudevents_is_published(live_broker: LiveBroker) -> None:
    kind = {"Content-Type": "application/cloudevents-batch+json"}
    events = [cloud_event(id="urn:b:1"), cloud_event(type=""), cloud_event(id="urn:b:3")]
    said = live_broker.call("POST", "/v1/publications", events, kind)
    assert [one["id"] for one in said.json["publications"]] == ["urn:b:1", "urn:b:3"]
    [problem] = said.json["problems"]
    assert problem["where"]["item"] == "type"
    check(live_broker.call("POST", "/v1/publications", b"[", kind), 422, "not JSON")
    check(live_broker.call("POST", "/v1/publications", b"[]", kind), 422, "no publication")


# -- Test messages and replays ------------------------------------------------------------------

WEBHOOK = {"kind": "webhook", "url": "https://hook.example/"}


def test_a_test_message_is_enqueued(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe(sink=WEBHOOK)
    said = live_broker.call("POST", f"/v1/subscriptions/{id}/test", headers=ticket)
    assert said.status == 202
    assert (said.json["kind"], said.json["state"], said.json["matches"]) == ("test", "waiting", [])
    fetched, ticket = live_broker.subscribe()
    refused = live_broker.call("POST", f"/v1/subscriptions/{fetched}/test", headers=ticket)
    check(refused, 422, "sends nothing")


def test_matches_are_replayed_in_one_digest(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe(sink=WEBHOOK)
    path = f"/v1/subscriptions/{id}"
    body = {"since": 0}
    check(live_broker.call("POST", f"{path}/replay", body, ticket), 422, "no matches")
    for number in range(3):
        live_broker.publish(f"<urn:r{number}> a <urn:C> .")
    live_broker.settled()
    seqs = [
        one["seq"]
        for one in live_broker.call("GET", f"{path}/matches", headers=ticket).json["matches"]
    ]
    check(live_broker.call("POST", f"{path}/replay", body, ticket), 422, "no matches")  # They wait.
    done = deliveries.update().values(state="delivered")
    live_broker.store.write_now(lambda db: db.execute(done))
    said = live_broker.call("POST", f"{path}/replay", {"since": seqs[0]}, ticket)
    assert said.status == 202
    assert (said.json["kind"], said.json["matches"]) == ("digest", seqs[1:])


# -- Links in emails ----------------------------------------------------------------------------


def test_a_link_unsubscribes_with_one_click(live_broker: LiveBroker) -> None:
    made = live_broker.call("POST", "/v1/subscriptions", {"query": ALL}).json
    ticket = {"Authorization": f"Ticket {made['ticket']}"}
    key = derived_key(digest_of(made["ticket"]), made["id"], "unsubscribe")
    path = f"/v1/subscriptions/{made['id']}"
    link = f"{path}/link?key={key}"
    page = live_broker.call("GET", link)
    assert "<form method='post'>" in page.text
    assert page.headers["referrer-policy"] == "same-origin"
    assert live_broker.call("GET", path, headers=ticket).json["state"] == "active"
    check(live_broker.call("POST", f"{path}/link?key=gmu_no"), 404)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    said = live_broker.call("POST", link, "List-Unsubscribe=One-Click", form)
    assert (said.status, "has ended" in said.text) == (200, True)
    assert live_broker.call("GET", path, headers=ticket).json["state"] == "ended"


def test_an_email_address_is_confirmed(live_broker: LiveBroker) -> None:
    sink = {"kind": "email", "address": "ada@example.org"}
    made = live_broker.call("POST", "/v1/subscriptions", {"query": ALL, "sink": sink}).json
    ticket = {"Authorization": f"Ticket {made['ticket']}"}
    path = f"/v1/subscriptions/{made['id']}"
    assert live_broker.call("GET", path, headers=ticket).json["state"] == "unconfirmed"
    check(live_broker.call("POST", f"{path}/link?key=gmc_no"), 404)
    mine = select(subscriptions.c.confirmation).where(subscriptions.c.id == made["id"])
    key = live_broker.read(lambda db: db.scalar(mine))
    assert "Confirm" in live_broker.call("GET", f"{path}/link?key={key}").text
    assert live_broker.call("POST", f"{path}/link?key={key}").status == 200
    assert live_broker.call("GET", path, headers=ticket).json["state"] == "active"

"""Interrupted streams lose and repeat nothing; pages and feeds agree with them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from threading import Event, Thread
from typing import Any
from xml.etree import ElementTree

import pytest

from graphmatch.broker.api.dependencies import ApiOptions
from graphmatch.broker.api.sse import STREAMS
from graphmatch.broker.app import server
from graphmatch.broker.models.limits import BrokerLimits
from tests.graphmatch.broker.live_broker import LiveBroker
from tests.waiting import wait

ATOM = "{http://www.w3.org/2005/Atom}"
PROXIED = {"X-Forwarded-For": "192.0.2.1"}
"""Headers of a remote client, because the local user may do everything."""


@pytest.fixture
def live_broker(tmp_path: Path) -> Iterator[LiveBroker]:
    with LiveBroker(tmp_path) as made:
        yield made


OPENED: list[EventStream] = []


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


class EventStream:
    """An open event stream, read line by line."""

    def __init__(
        self,
        live_broker: LiveBroker,
        id: str,
        ticket: dict[str, str],
        query: str = "",
        **headers: str,
    ) -> None:
        self.connection = HTTPConnection("127.0.0.1", live_broker.port, timeout=20)
        OPENED.append(self)
        path = f"/v1/subscriptions/{id}/events{query}"
        self.connection.request("GET", path, headers=ticket | headers)
        self.response: HTTPResponse = self.connection.getresponse()
        self.status = self.response.status

    def frame(self) -> dict[str, str] | None:
        """Return the next frame except comments, or ``None`` at the end of the stream."""
        said: dict[str, str] = {}
        comments = 0
        while line := self.response.readline():
            comments += line.startswith(b":")
            assert comments < 100, "only comments came"
            text = line.decode().rstrip("\n")
            if not text and said:
                return said
            name, _, value = text.partition(": ")
            if name and not text.startswith(":"):
                said[name] = value
        return None

    def match(self) -> dict[str, Any]:
        while True:
            frame = self.frame()
            assert frame is not None
            if frame.get("event") == "match":
                return {"id": int(frame["id"]), **json.loads(frame["data"])}

    def close(self) -> None:
        if hasattr(self, "response"):
            self.response.close()
        self.connection.close()


def test_a_match_is_an_event_with_its_number(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe()
    stream = EventStream(live_broker, id, ticket)
    assert stream.response.getheader("Content-Type", "").startswith("text/event-stream")
    assert stream.frame() == {"retry": "2000", "id": "0"}
    seq = live_broker.publish("<urn:a> a <urn:C> .")
    found = stream.match()
    stream.close()
    assert (found["id"], found["subscription"]) == (found["seq"], id)
    assert found["publication"]["seq"] == seq
    assert found["solutions"] == [{"s": "<urn:a>"}]
    page = live_broker.call("GET", f"/v1/subscriptions/{id}/matches", headers=ticket).json
    assert [one["seq"] for one in page["matches"]] == [found["seq"]]


def test_a_stream_begins_after_the_given_number(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe()
    for number in range(3):
        live_broker.publish(f"<urn:{number}> a <urn:C> .")
    live_broker.settled()
    for query, headers, first in (
        ("?since=0", {}, 1),
        ("?since=2", {}, 3),
        ("?since=0", {"Last-Event-ID": "2"}, 3),  # A reconnecting client keeps its address.
        ("?since=999", {}, 4),  # A number from an older store must not block matches.
        ("", {}, 4),
    ):
        stream = EventStream(live_broker, id, ticket, query, **headers)
        stream.frame()
        if first == 4:
            live_broker.publish()
            assert stream.match()["id"] > 3
        else:
            assert stream.match()["id"] == first
        stream.close()


@pytest.mark.parametrize("cuts", [50, pytest.param(1000, marks=pytest.mark.long)])
def test_interrupted_streams_have_no_gap_and_no_repeat(live_broker: LiveBroker, cuts: int) -> None:
    """Cut streams at any byte, during publishing and a restart."""
    chance = random.Random(cuts)
    id, ticket = live_broker.subscribe()
    other, _ = live_broker.subscribe("SELECT ?s WHERE { ?s a <urn:C> ; <urn:p> ?o }")
    published: list[int] = []
    stopping = False

    def publishing() -> None:
        client = live_broker.client()
        while not stopping:
            number = len(published)
            more = " ; <urn:p> 1" if number % 3 == 0 else ""
            made = client.publish(f"<urn:{number}> a <urn:C>{more} .", "text/turtle")
            published.append(made.publications[0].seq)

    thread = Thread(target=publishing)
    thread.start()
    seen: list[tuple[int, int]] = []
    last = 0
    try:
        for cut in range(cuts):
            if cut == cuts // 2:
                live_broker.stop()
                live_broker.start()
            with suppress(OSError, HTTPException):
                stream = EventStream(
                    live_broker, id, ticket, "?since=0", **{"Last-Event-ID": str(last)}
                )
                stream.frame()
                for _ in range(chance.randrange(4)):
                    found = stream.match()
                    seen.append((found["id"], found["publication"]["seq"]))
                    last = found["id"]
                stream.response.read1(chance.randrange(1, 400))  # Cut within the next frame.
            OPENED.pop().close()
    finally:
        stopping = True
        thread.join()
    live_broker.settled()
    stream = EventStream(live_broker, id, ticket, "", **{"Last-Event-ID": str(last)})
    stream.frame()
    while len(seen) < len(published):
        found = stream.match()
        seen.append((found["id"], found["publication"]["seq"]))
    stream.close()
    assert [seq for _, seq in seen] == published
    assert [number for number, _ in seen] == sorted({number for number, _ in seen})
    assert len(published) > cuts / 2
    assert other != id


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[LiveBroker]:
    """Yield a broker whose streams wake only when notified."""
    with LiveBroker(tmp_path, options=ApiOptions(alive_seconds=600)) as made:
        yield made


def test_matches_wake_streams(patient: LiveBroker) -> None:
    id, ticket = patient.subscribe()
    stream = EventStream(patient, id, ticket)
    stream.frame()
    for number in range(20):
        patient.publish(f"<urn:{number}> a <urn:C> .")
        assert stream.match()["solutions"] == [{"s": f"<urn:{number}>"}]


def test_nothing_is_lost_between_reading_and_waiting(patient: LiveBroker) -> None:
    """A match can arrive after a stream has read, but before it waits."""
    id, ticket = patient.subscribe()
    read = patient.streams._page
    told = patient.matcher.on_matched
    woken = Event()

    def late(db: Any, **what: Any) -> Any:
        found = read(db, **what)
        if not woken.is_set():
            patient.publish("<urn:late> a <urn:C> .")
            assert woken.wait(10)
        return found

    def noted(numbers: Any) -> None:
        told(numbers)
        patient.server_loop.call_soon_threadsafe(woken.set)

    patient.streams._page, patient.matcher.on_matched = late, noted
    stream = EventStream(patient, id, ticket)
    assert stream.match()["solutions"] == [{"s": "<urn:late>"}]


def test_comments_keep_a_stream_alive(tmp_path: Path) -> None:
    with LiveBroker(tmp_path, options=ApiOptions(alive_seconds=0.05)) as live_broker:
        id, ticket = live_broker.subscribe()
        stream = EventStream(live_broker, id, ticket)
        stream.frame()
        lines = [stream.response.readline() for _ in range(4)]
        stream.close()
        assert lines == [b": alive\n", b"\n"] * 2


def test_the_end_is_announced_and_final(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe()
    live_broker.publish()
    live_broker.settled()
    stream = EventStream(live_broker, id, ticket, "?since=0")
    assert stream.match()["id"] == 1
    assert live_broker.call("DELETE", f"/v1/subscriptions/{id}", headers=ticket).status == 204
    frame = stream.frame()
    assert frame is not None
    assert frame["event"] == "ended"
    assert "id" not in frame
    assert stream.frame() is None
    assert EventStream(live_broker, id, ticket, "?since=1").status == 204
    again = EventStream(live_broker, id, ticket, "?since=0")
    assert again.match()["id"] == 1


def test_a_limited_replay_is_announced(tmp_path: Path) -> None:
    with LiveBroker(tmp_path, limits=BrokerLimits(replayed=timedelta(hours=1))) as live_broker:
        id, ticket = live_broker.subscribe(expires_in=10**6)
        live_broker.publish("<urn:old> a <urn:C> .")
        live_broker.settled()
        live_broker.clock.forward = timedelta(hours=2)
        live_broker.publish("<urn:new> a <urn:C> .")
        live_broker.settled()
        stream = EventStream(live_broker, id, ticket, "?since=0")
        stream.frame()
        frame = stream.frame()
        assert frame is not None
        assert (frame["event"], "id" in frame) == ("truncated", False)
        assert stream.match()["solutions"] == [{"s": "<urn:new>"}]
        stream.close()
        page = live_broker.call("GET", f"/v1/subscriptions/{id}/matches", headers=ticket).json
        assert len(page["matches"]) == 2


def test_streams_are_for_their_owner_only(live_broker: LiveBroker) -> None:
    mine, ticket = live_broker.subscribe()
    other, others = live_broker.subscribe()
    assert EventStream(live_broker, mine, others).status == 404
    assert EventStream(live_broker, mine, PROXIED).status == 401
    assert EventStream(live_broker, mine, {}, "?key=gmr_no").status == 404
    key = live_broker.call("GET", f"/v1/subscriptions/{mine}", headers=ticket).json["links"]["feed"]
    key = key.partition("key=")[2]
    assert EventStream(live_broker, other, {}, f"?key={key}").status == 404
    stream = EventStream(live_broker, mine, {}, f"?key={key}")
    assert stream.status == 200
    stream.close()


def test_the_number_of_streams_is_limited(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe()
    open_ = [EventStream(live_broker, id, ticket) for _ in range(STREAMS)]
    assert [one.status for one in open_] == [200] * STREAMS
    wait(lambda: len(live_broker.streams) == STREAMS)
    assert EventStream(live_broker, id, ticket).status == 429
    for one in open_:
        one.close()
    wait(lambda: len(live_broker.streams) == 0)
    assert EventStream(live_broker, id, ticket).status == 200
    OPENED.pop().close()


def test_a_stop_ends_open_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the stop would wait for the streams, here for an hour."""
    monkeypatch.setattr(server, "STOP_SECONDS", 3600)
    live_broker = LiveBroker(tmp_path)
    live_broker.start()
    id, ticket = live_broker.subscribe()
    stream = EventStream(live_broker, id, ticket)
    stream.frame()
    live_broker.stop()
    assert stream.frame() is None


def test_a_stream_reads_pages(live_broker: LiveBroker) -> None:
    """A late client needs more than one page."""
    id, ticket = live_broker.subscribe()
    lines = "\n".join(json.dumps({"data": f"<urn:{n}> a <urn:C> ."}) for n in range(130))
    said = live_broker.call(
        "POST", "/v1/publications", lines, {"Content-Type": "application/x-ndjson"}
    )
    assert len(said.json["publications"]) == 130
    live_broker.settled()
    stream = EventStream(live_broker, id, ticket, "?since=0")
    assert [stream.match()["id"] for _ in range(130)] == list(range(1, 131))
    stream.close()
    several = live_broker.client().matches(id, ticket["Authorization"].split()[1])
    assert [one.seq for one in several] == list(range(1, 131))


def test_many_solutions_are_truncated_with_a_link(tmp_path: Path) -> None:
    with LiveBroker(tmp_path, limits=BrokerLimits(payload_bytes=1000)) as live_broker:
        id, ticket = live_broker.subscribe("SELECT ?o WHERE { ?s <urn:p> ?o }")
        live_broker.publish("<urn:a> <urn:p> " + ", ".join(f'"{n:0100}"' for n in range(50)) + " .")
        live_broker.settled()
        stream = EventStream(live_broker, id, ticket, "?since=0")
        found = stream.match()
        stream.close()
        assert found["truncated"]
        assert found["solutions"] == []
        path = found["url"].removeprefix(live_broker.url)
        assert len(live_broker.call("GET", path, headers=ticket).json["solutions"]) == 50


def test_the_atom_feed_has_all_matches(live_broker: LiveBroker) -> None:
    id, ticket = live_broker.subscribe(name="A < B & \x07")
    feed = live_broker.call("GET", f"/v1/subscriptions/{id}", headers=ticket).json["links"]["feed"]
    path = feed.removeprefix(live_broker.url)
    item = '<urn:i> a <urn:C> ; <http://purl.org/dc/terms/title> "<b>\\u0007 & c" .'
    live_broker.publish(item)
    live_broker.publish("<urn:second> a <urn:C> .")
    live_broker.settled()
    said = live_broker.call("GET", path)
    assert said.status == 200
    root = ElementTree.fromstring(said.content)
    assert [one.findtext(f"{ATOM}id") for one in root.iter(f"{ATOM}entry")] == [
        f"urn:graphmatch:{id}:2",
        f"urn:graphmatch:{id}:1",
    ]
    assert root.findtext(f"{ATOM}title") == "A < B & \ufffd"
    assert "gmt_" not in said.content.decode()
    tag = {"If-None-Match": said.headers["etag"]}
    again = live_broker.call("GET", path, headers=tag)
    assert (again.status, again.content) == (304, b"")
    live_broker.publish("<urn:third> a <urn:C> .")
    live_broker.settled()
    assert live_broker.call("GET", path, headers=tag).status == 200
    assert live_broker.call("GET", path[:-1] + "_").status == 404
    for method, rest in (("DELETE", ""), ("GET", ""), ("POST", "/test")):
        key = path.partition("?")[2]
        only = live_broker.call(method, f"/v1/subscriptions/{id}{rest}?{key}", headers=PROXIED)
        assert only.status == 401, "the key is for reading matches"

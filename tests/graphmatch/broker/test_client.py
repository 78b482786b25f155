"""The client: its requests, retries and errors."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from graphmatch.broker.app.security import digest_of, read_key
from graphmatch.broker.client import BrokerError, Client
from tests.graphmatch.broker.live_broker import ALL, LiveBroker


@pytest.fixture(scope="module")
def live_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with LiveBroker(tmp_path_factory.mktemp("client")) as running:
        yield running


def test_a_client_manages_a_subscription(live_broker: LiveBroker) -> None:
    client = live_broker.client()
    made = client.subscribe(query=ALL, name="all", expires_in=600)
    assert made.ticket not in repr(made)
    assert made.read_key == read_key(digest_of(made.ticket), made.id)
    assert client.subscription(made.id, made.ticket)["state"] == "active"
    assert client.change(made.id, made.ticket, state="paused")["subscription"]["state"] == "paused"
    changed = client.change(made.id, made.ticket, name="other", digest={"at": ["08:00"]})
    assert changed["subscription"]["name"] == "other"
    assert changed["subscription"]["digest"] == {"at": ["08:00"], "zone": "UTC"}
    before = changed["subscription"]["expires_at"]
    renewed = client.change(made.id, made.ticket, expires_in=900)
    assert renewed["subscription"]["expires_at"] > before
    client.unsubscribe(made.id, made.ticket)
    assert client.subscription(made.id, made.ticket)["reason"] == "unsubscribed"


def test_a_client_publishes_and_reads(live_broker: LiveBroker) -> None:
    client = live_broker.client()
    texts = {"topics": ["Energy or Climate"], "not_topics": "Sport", "not_words": ["coal or oil"]}
    made = client.subscribe(**texts)
    shown = client.subscription(made.id, made.ticket)
    assert shown["definition"] == {key.replace("_", "-"): text for key, text in texts.items()}
    assert shown["name"] == "(Energy or Climate), not Sport, not (coal or oil)"
    made = client.subscribe(query=ALL)
    said = client.publish("<urn:a> a <urn:C> .", "text/turtle", id="urn:p")
    assert [one.id for one in said.publications] == ["urn:p"]
    event = next(client.events(made.id, made.ticket, since=0))
    assert (event.publication.id, event.solutions) == ("urn:p", [{"s": "<urn:a>"}])
    assert list(client.matches(made.id, made.ticket)) == [event]
    assert client.match(event.seq, made.ticket) == event
    assert client.why(event.seq, made.ticket)["match"]["seq"] == event.seq
    assert list(client.deliveries(made.id, made.ticket)) == []


def test_a_request_with_a_key_is_accepted_once(live_broker: LiveBroker) -> None:
    client = live_broker.client()
    first = client.publish("<urn:a> a <urn:D> .", "text/turtle", key="one")
    assert client.publish("<urn:a> a <urn:D> .", "text/turtle", key="one") == first
    with pytest.raises(BrokerError, match="this key was used for another body") as caught:
        client.publish("<urn:b> a <urn:D> .", "text/turtle", key="one")
    assert caught.value.status == 409


def test_a_request_without_an_answer_is_sent_again(live_broker: LiveBroker) -> None:
    """The server swallows the first response."""
    swallowed: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def hand_on() -> None:
            for first in (True, False):
                taken, _ = listening.accept()
                with taken, socket.create_connection(("127.0.0.1", live_broker.port)) as there:
                    data = taken.recv(65536)
                    while not data.endswith(b"<urn:E> ."):
                        data += taken.recv(65536)
                    there.sendall(
                        data.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nConnection: close\r\n")
                    )
                    answer = b""
                    while piece := there.recv(65536):
                        answer += piece
                    swallowed.append(answer)
                    if not first:
                        taken.sendall(answer)

        thread = Thread(target=hand_on)
        thread.start()
        said = Client(f"http://127.0.0.1:{port}").publish("<urn:a> a <urn:E> .", "text/turtle")
        thread.join()
    assert len(swallowed) == 2
    assert b" 202 " in swallowed[0].splitlines()[0]
    assert (
        said.publications[0].seq
        == live_broker.client().publish("<urn:f> a <urn:F> .").publications[0].seq - 1
    )


def test_events_continue_after_a_restart(tmp_path: Path) -> None:
    with LiveBroker(tmp_path) as live_broker:
        client = live_broker.client()
        made = client.subscribe(query=ALL)
        events = client.events(made.id, made.ticket, since=0)
        client.publish("<urn:1> a <urn:C> .", "text/turtle")
        assert next(events).solutions == [{"s": "<urn:1>"}]
        live_broker.stop()
        live_broker.start()
        client.publish("<urn:2> a <urn:C> .", "text/turtle")
        assert next(events).solutions == [{"s": "<urn:2>"}]
        client.unsubscribe(made.id, made.ticket)
        assert list(events) == []


def test_a_refusal_has_a_status_and_a_problem(live_broker: LiveBroker) -> None:
    client = live_broker.client()
    with pytest.raises(BrokerError) as caught:
        client.subscribe(query="SELECT")
    assert (caught.value.status, caught.value.problem.where.line) == (422, 1)
    with pytest.raises(BrokerError) as caught:
        client.publish(b"x" * 25_000_000, "text/turtle")
    # The server may close before the client reads the response.
    assert caught.value.status in (0, 413)
    with pytest.raises(BrokerError, match="subscription"):
        client.subscription("sub_..?y", "gmt_no")
    with pytest.raises(BrokerError, match="unexpected end of hex escape"):
        client.publish(b'{"data": "\\ud800"}', "application/x-ndjson")


def test_an_invalid_or_dead_address_is_refused() -> None:
    with pytest.raises(BrokerError, match="not the address of a broker"):
        Client("ftp://example.org")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(BrokerError, match="the broker does not answer"):
        Client(f"http://127.0.0.1:{port}").subscription("sub_1")

"""Messages and match feeds: their JSON, their texts and their sizes."""

from __future__ import annotations

import email
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, update

from graphmatch.broker.app.security import derived_key
from graphmatch.broker.db.match_queries import last_matches
from graphmatch.broker.db.tables import deliveries, matches, publications, subscriptions
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.models.times import millis
from graphmatch.broker.outbox.email_sender import SmtpServer
from graphmatch.broker.outbox.match_feed import atom, json_feed, readable, rss
from graphmatch.broker.outbox.payloads import fitted, match_view
from tests.graphmatch.broker.harness import (
    NOON,
    QUERY,
    BrokerHarness,
    FakeClock,
    Receiver,
    Smtp,
    harness,
    talking,
)
from tests.waiting import until

ROOT = "http://127.0.0.1:8000"
ANN = {"kind": "email", "address": "ann@example.org"}


@asynccontextmanager
async def mailing(folder: Path, clock: FakeClock) -> AsyncIterator[tuple[BrokerHarness, Smtp]]:
    """Yield a broker with an SMTP server."""
    server = Smtp()
    async with talking(server.talk) as port:
        smtp = SmtpServer("127.0.0.1", "broker@example.com", port, "none")
        async with harness(folder, clock, smtp=smtp) as broker:
            yield broker, server


async def subscribe(broker: BrokerHarness, sink: dict[str, Any], **more: Any) -> str:
    settings = SubscriptionSettings(name="Soup", sink=sink, **more)
    made = await broker.broker.subscriptions.subscribe({"query": QUERY}, settings)
    active = update(subscriptions).values(state="active")
    await broker.store.write(lambda db: db.execute(active))
    return made.id


async def describe(broker: BrokerHarness, **values: str) -> None:
    """Change the description of all publications."""
    await broker.store.write(lambda db: db.execute(update(publications).values(**values)))


def mails(server: Smtp) -> list[EmailMessage]:
    parsed = [email.message_from_bytes(one[:-3], policy=default) for one in server.mails]
    return [one for one in parsed if isinstance(one, EmailMessage)]


async def test_a_match_has_one_json_on_every_channel(hook: Receiver, broker: BrokerHarness) -> None:
    id = await subscribe(broker, {"kind": "webhook", "url": hook.url()})
    await broker.publish("a")
    await until(broker.all_are("delivered"))
    [row] = await broker.store.read(lambda db: last_matches(db, 1, 9))
    [match] = json.loads(hook.got[0].body)["matches"]
    assert match == match_view(row, ROOT)
    assert match == {
        "seq": 1,
        "subscription": id,
        "generation": 1,
        "publication": {
            "seq": 1,
            "id": "urn:g-a",
            "url": f"{ROOT}/v1/publications/1",
            "title": None,
            "link": None,
            "summary": None,
        },
        "sources": ["http"],
        "matched_at": "2026-01-14T12:00:00Z",
        "solutions": [{"s": "<urn:a>"}],
        "truncated": False,
        "ontology_version": "0",
        "url": f"{ROOT}/v1/matches/1",
    }
    large = match_view({**row, "ontology_version": -1}, ROOT)  # type: ignore[arg-type]
    assert large["ontology_version"] == "f" * 16


async def test_a_webhook_may_get_cloudevents(hook: Receiver, broker: BrokerHarness) -> None:
    sink = {"kind": "webhook", "url": hook.url()}
    id = await subscribe(broker, sink)
    wanted = update(subscriptions).values(sink={**sink, "format": "cloudevents", "secret": SECRET})
    await broker.store.write(lambda db: db.execute(wanted))
    await broker.publish("a")
    await until(broker.all_are("delivered"))
    [got] = hook.got
    assert got.headers["Content-Type"] == "application/cloudevents+json"
    event = json.loads(got.body)
    data = event.pop("data")
    assert event == {
        "specversion": "1.0",
        "id": got.id,
        "source": f"{ROOT}/v1/subscriptions/{id}",
        "time": "2026-01-14T12:00:00Z",
        "type": "org.graphmatch.match",
        "datacontenttype": "application/json",
    }
    assert (data["id"], data["matches"][0]["seq"]) == (got.id, 1)


SECRET = "whsec_" + "AAAA" * 8


async def test_a_message_names_the_sources_of_a_match(tmp_path: Path, clock: FakeClock) -> None:
    async with mailing(tmp_path, clock) as (broker, server):
        await subscribe(broker, ANN, digest={"every": 60})
        await broker.publish("a", "b")
        several = update(matches).where(matches.c.seq == 1).values(sources="https://e.org/a\nhttp")
        await broker.store.write(lambda db: db.execute(several))
        clock.forward(seconds=61)
        broker.dispatcher.wake()
        await until(lambda: len(server.mails) == 1)
        [mail] = mails(server)
        assert mail["Subject"] == "Soup: 2 new"
        text = mail.get_content().replace("\r\n", "\n")
        assert text.startswith("urn:g-a\n  in https://e.org/a, http\nurn:g-b\n")


async def test_an_email_can_be_unsubscribed_with_one_click(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with mailing(tmp_path, clock) as (broker, server):
        id = await subscribe(broker, ANN)
        await broker.publish("a")
        await until(lambda: len(server.mails) == 1)
        [row], [mail] = await broker.rows(subscriptions), mails(server)
        url = f"{ROOT}/v1/subscriptions/{id}/link?key="
        url += derived_key(row["ticket"], id, "unsubscribe")
        assert mail["List-Unsubscribe"] == f"<{url}>"
        assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert url in mail.get_content()


async def test_an_unconfirmed_address_only_gets_the_confirmation(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with mailing(tmp_path, clock) as (broker, server):
        settings = SubscriptionSettings(name="Soup", sink=ANN)
        created = await broker.broker.subscriptions.subscribe({"query": QUERY}, settings)
        [subscription] = await broker.rows(subscriptions)
        row = {"id": 2, "subscription": 1, "kind": "expiring", "host": "smtp:", "state": "waiting"}
        row |= {"attempt": 0, "due_at": millis(NOON), "created_at": millis(NOON)}
        await broker.store.write(lambda db: db.execute(insert(deliveries).values(row)))
        broker.dispatcher.wake()

        async def done() -> bool:
            return "waiting" not in {row["state"] for row in await broker.rows(deliveries)}

        await until(done)
        [mail] = mails(server)
        url = f"{ROOT}/v1/subscriptions/{created.id}/link?key={subscription['confirmation']}"
        assert url in mail.get_content()
        assert "Soup" not in server.mails[0].decode()  # A stranger may have chosen the name.
        assert [row["state"] for row in await broker.rows(deliveries)] == ["delivered", "failed"]


async def test_a_test_message_has_a_text(tmp_path: Path, clock: FakeClock) -> None:
    async with mailing(tmp_path, clock) as (broker, server):
        await subscribe(broker, ANN)
        row = {"id": 2, "subscription": 1, "kind": "test", "host": "smtp:", "state": "waiting"}
        row |= {"attempt": 0, "due_at": millis(NOON), "created_at": millis(NOON)}
        await broker.store.write(lambda db: db.execute(insert(deliveries).values(row)))
        broker.dispatcher.wake()
        await until(lambda: bool(server.mails))
        [mail] = mails(server)
        assert mail["Subject"] == "Soup: test message"
        assert mail.get_content().startswith("This is a test message. The sink works.")


async def test_feeds_have_readable_entries(tmp_path: Path) -> None:
    async with harness(tmp_path, running=False) as broker:
        await subscribe(broker, {"kind": "feed"})
        await broker.publish("a")
        await describe(broker, title="A <b>&\x01", link="https://e.org/a", summary="1 < 2")
        await broker.publish("b")
        [row] = await broker.rows(subscriptions)

        def read(db: Any) -> list[tuple[bytes, str]]:
            hub = f"{ROOT}/websub"
            feeds = [rss(db, row, ROOT, 999), json_feed(db, row, ROOT, 999)]
            return [atom(db, row, ROOT, 999, hub), *feeds]

        written = await broker.store.read(read)
        xml, second, text = (content for content, _ in written)
        assert len({tag for _, tag in written}) == 3
        assert {root.tag for root in map(ElementTree.fromstring, (xml, second))} == {
            "{http://www.w3.org/2005/Atom}feed",
            "rss",
        }
        for content in (xml, second):
            parsed = feedparser.parse(content)
            assert not parsed.bozo
            assert parsed.feed.title == "Soup"
            assert [entry.link for entry in parsed.entries] == [
                f"{ROOT}/v1/matches/2",
                "https://e.org/a",
            ]
            assert all(entry.id.startswith("urn:graphmatch:sub_") for entry in parsed.entries)
        items = json.loads(text)["items"]
        assert [item["content_text"] for item in items] == ["s: urn:b", "1 < 2"]
        assert [item["title"] for item in items] == ["urn:g-b", "A <b>&\x01"]
        assert b'rel="hub"' in xml
        assert b"feed.rss?key=gmr_" in second


@pytest.mark.parametrize(
    ("solutions", "text"),
    [
        ([{"a": "<urn:x>", "b": '"1"^^<urn:t>'}, {"a": "_:b0"}], "a: urn:x\nb: 1\na: _:b0"),
        ([{"a": r'"q\"\\ \n\u0001ä"@en'}], 'a: q"\\ \n\x01ä'),
        ([{"a": "<<( <urn:s> <urn:p> <urn:o> )>>"}], "a: <<( <urn:s> <urn:p> <urn:o> )>>"),
        ({"graph": ["<urn:s> <urn:p> <urn:o> ."]}, "<urn:s> <urn:p> <urn:o> ."),
        ([], ""),
    ],
)
def test_solutions_are_readable(solutions: Any, text: str) -> None:
    assert readable({"publication": {"summary": None}, "solutions": solutions}) == text


@given(st.lists(st.text(max_size=40), max_size=30), st.sampled_from([100, 300, 1000]))
def test_payloads_fit(entries: list[str], limit: int) -> None:
    def document(some: Sequence[str]) -> dict[str, object]:
        return {"link": "x" * 40, "matches": some}

    body = fitted(document, [entries], limit)
    assert len(body) <= limit
    shown = json.loads(body)["matches"]
    assert shown == entries[: len(shown)]
    if len(shown) < len(entries):
        more = fitted(document, [entries[: len(shown) + 1]], 10**6)
        assert len(more) > limit  # There was no room for one more.

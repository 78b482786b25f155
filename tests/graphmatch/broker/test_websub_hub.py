"""The WebSub hub: its requests to callbacks go through the outbox.

The tests follow the checks of websub.rocks for hubs (100 to 105).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from aiohttp import web
from sqlalchemy import RowMapping

from graphmatch.broker.app.security import Principal
from graphmatch.broker.db.tables import deliveries, subscriptions, websub_callbacks
from graphmatch.broker.models.attempt import RETRY_SCHEDULE
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.models.times import millis
from graphmatch.broker.outbox import match_feed, websub_hub
from graphmatch.broker.outbox.match_feed import feed_url
from graphmatch.broker.outbox.websub_hub import MAX_LEASE, MIN_LEASE, Hub
from graphmatch.broker.outbox.websub_protocol import (
    LEASE,
    Response,
    discover,
    header_links,
    is_signed,
    sign,
)
from tests.graphmatch.broker.harness import (
    QUERY,
    BrokerHarness,
    FakeClock,
    Receiver,
    harness,
    receivers,
)
from tests.waiting import until

ROOT, ATOM = "http://127.0.0.1:8000", "{http://www.w3.org/2005/Atom}"
ADMIN = Principal(scopes=frozenset({"admin"}))


@dataclass
class Service:
    """A broker with a hub, a subscription with its topic, and a callback."""

    broker: BrokerHarness
    hub: Hub
    receiver: Receiver
    id: str = ""
    topic: str = ""
    verified: list[dict[str, str]] = field(default_factory=list)
    documents: list[tuple[bytes, Any]] = field(default_factory=list)
    agrees: bool = True
    status: int = 200

    @property
    def callback(self) -> str:
        return self.receiver.url("/callback?mine=1")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            self.verified.append(dict(request.query))
            if not self.agrees:
                return web.Response(status=404)
            return web.Response(text=request.query.get("hub.challenge", ""))
        self.documents.append((await request.read(), request.headers))
        return web.Response(status=self.status)

    def titles(self) -> list[list[str | None]]:
        """Return the titles of the entries of each received document."""
        path = f"{ATOM}entry/{ATOM}title"
        roots = [ElementTree.fromstring(body) for body, _ in self.documents]
        return [[one.text for one in root.findall(path)] for root in roots]

    async def ask(self, mode: str = "subscribe", **more: str) -> Response:
        form = {"hub.mode": mode, "hub.topic": self.topic, "hub.callback": self.callback}
        return await self.hub.request(form | {f"hub.{name}": more[name] for name in more})

    async def settled(self) -> None:
        """Wait until all callbacks are verified and the outbox is empty."""

        async def check() -> bool:
            return not self.hub.verifications and all(
                row["state"] != "waiting" for row in await self.broker.rows(deliveries)
            )

        await until(check)

    async def subscribe(self, **more: str) -> None:
        assert (await self.ask(**more)).status == 202
        await self.settled()

    async def publish(self, *names: str) -> None:
        await self.broker.publish(*names)
        await self.hub.update()

    async def callbacks(self) -> Sequence[RowMapping]:
        return await self.broker.rows(websub_callbacks)

    async def deliveries(self) -> list[tuple[str, str, int]]:
        rows = await self.broker.rows(deliveries)
        return [(row["kind"], row["state"], row["attempt"]) for row in rows]


async def made(broker: BrokerHarness, receiver: Receiver) -> Service:
    service = Service(
        broker,
        Hub(broker.broker, broker.dispatcher.senders.client, broker.dispatcher.wake),
        receiver,
    )
    receiver.answer = service.answer
    settings = SubscriptionSettings(
        name="Soup", sink={"kind": "feed"}, expires_in=timedelta(days=90)
    )
    created = await broker.broker.subscriptions.subscribe({"query": QUERY}, settings)
    [row] = await broker.rows(subscriptions)
    service.id, service.topic = created.id, feed_url(row, ROOT)
    return service


@pytest.fixture
async def service(broker: BrokerHarness, hook: Receiver) -> Service:
    return await made(broker, hook)


async def test_hub_100_a_typical_subscription_works(service: Service) -> None:
    await service.subscribe(secret="geheim", lease_seconds="3600")
    [query] = service.verified
    assert query["mine"] == "1"  # The callback's own parameters stay.
    assert (query["hub.mode"], query["hub.topic"]) == ("subscribe", service.topic)
    assert query["hub.lease_seconds"] == "3600"
    assert len(query["hub.challenge"]) >= 43
    await service.publish("a")
    await service.settled()
    [(body, headers)] = service.documents
    assert service.titles() == [["urn:g-a"]]
    assert headers["Content-Type"] == "application/atom+xml"
    assert is_signed("geheim", body, headers["X-Hub-Signature"])
    found = discover("https://e.org/", header_links([headers["Link"]]))
    assert (found.hubs, found.topic) == ((f"{ROOT}/websub",), service.topic)
    await service.hub.update()
    assert await service.deliveries() == [("websub", "delivered", 1)]  # The match is sent once.

    await service.subscribe(secret="second")
    await service.publish("b")
    await service.settled()
    body, headers = service.documents[1]
    assert headers["X-Hub-Signature"] == sign("second", body)
    await service.ask("unsubscribe")
    await service.settled()
    assert service.verified[-1]["hub.mode"] == "unsubscribe"
    await service.publish("c")
    assert (len(service.documents), await service.callbacks()) == (2, [])
    assert (await service.ask("unsubscribe")).status == 404


async def test_an_unverified_renewal_changes_nothing(service: Service) -> None:
    await service.subscribe(secret="first")
    before = await service.callbacks()
    service.agrees = False
    await service.subscribe(secret="an attacker's")
    await service.ask("unsubscribe")
    await service.settled()
    assert await service.callbacks() == before
    await service.publish("a")
    await service.settled()
    [(body, headers)] = service.documents
    assert headers["X-Hub-Signature"] == sign("first", body)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"mode": "publish"}, 400),
        ({"mode": ""}, 400),
        ({"topic": "https://e.org/another"}, 404),
        ({"topic": ""}, 404),
        ({"callback": ""}, 400),
        ({"callback": "file:///etc/passwd"}, 400),
        ({"callback": "http://user:password@e.org/"}, 400),
        ({"callback": "http://e.org/" + "a" * 3000}, 400),
        ({"secret": "a" * 200}, 400),
        ({"secret": "ä" * 100}, 400),
        ({"lease_seconds": "-1"}, 400),
        ({"lease_seconds": "soon"}, 400),
    ],
)
async def test_a_hub_refuses_invalid_requests(
    more: dict[str, str], status: int, service: Service
) -> None:
    mode = more.pop("mode", "subscribe")
    assert (await service.ask(mode, **more)).status == status
    assert (await service.callbacks(), await service.deliveries()) == ([], [])


async def test_the_hub_refuses_unknown_topics(service: Service) -> None:
    topic = service.topic
    wrong = [
        topic[:-1],
        topic[:-40] + "A" * 40,
        topic.partition("?")[0],
        topic.replace(service.id, "sub_0000000000000000"),
        topic.replace("feed.atom", "events"),
        f"{topic}&more=1",
        f"{ROOT}/",
    ]
    for each in wrong:
        assert (await service.ask(topic=each)).status == 404, each
    await service.broker.broker.subscriptions.unsubscribe(service.id, ADMIN, None)
    assert (await service.ask()).status == 404


@pytest.mark.parametrize("challenge", ["another", "", "challenge "])
async def test_a_callback_must_repeat_the_challenge(challenge: str, service: Service) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=challenge)

    service.receiver.answer = answer
    await service.subscribe()
    assert await service.callbacks() == []


async def test_a_redirecting_callback_is_not_verified_and_gets_nothing(service: Service) -> None:
    async def answer(request: web.Request) -> web.Response:
        challenge = request.query.get("hub.challenge", "")
        return web.Response(status=302, headers={"Location": "/callback"}, text=challenge)

    service.receiver.answer = answer
    await service.subscribe()
    assert await service.callbacks() == []
    service.receiver.answer = service.answer
    await service.subscribe()
    service.receiver.answer = answer
    await service.publish("a")

    async def tried() -> bool:
        return (await service.deliveries())[-1] == ("websub", "waiting", 1)

    await until(tried)
    assert service.documents == []


@pytest.mark.parametrize(
    ("asked", "lease"),
    [
        ("1", MIN_LEASE),
        ("999999999", MAX_LEASE),
        ("86400", timedelta(days=1)),
        ("", LEASE),
    ],
)
async def test_leases_have_limits_and_end(
    asked: str, lease: timedelta, service: Service, clock: FakeClock
) -> None:
    await service.subscribe(lease_seconds=asked)
    [row] = await service.callbacks()
    assert row["expires_at"] == millis(clock() + lease)
    assert int(service.verified[0]["hub.lease_seconds"]) == lease.total_seconds()
    clock.now += lease
    await service.publish("a")
    await service.settled()
    assert (service.documents, await service.callbacks()) == ([], [])


async def test_an_unreachable_callback_is_not_subscribed(service: Service) -> None:
    await service.receiver.leave()
    await service.subscribe()
    assert await service.callbacks() == []


async def test_several_matches_are_one_delivery(service: Service, clock: FakeClock) -> None:
    """A delivery sends the topic's content of that time; a failed one keeps its due time."""
    await service.subscribe()
    service.status = 503
    await service.publish("a", "b", "c")
    await until(lambda: len(service.documents) == 1)
    for name in "def":
        await service.publish(name)
    service.status = 200
    clock.now += RETRY_SCHEDULE[0] * 2
    service.broker.dispatcher.wake()
    await service.settled()
    await service.hub.update()
    assert [len(titles) for titles in service.titles()] == [3, 6]
    assert await service.deliveries() == [("websub", "delivered", 2)]


async def test_a_match_during_a_delivery_is_not_lost(service: Service) -> None:
    await service.subscribe()
    sent, release = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        sent.set()
        await release.wait()
        return await service.answer(request)

    service.receiver.answer = slow
    await service.publish("a")
    await sent.wait()
    await service.publish("b")
    service.receiver.answer = service.answer
    release.set()
    await service.settled()
    await service.hub.update()
    await service.settled()
    assert [sorted(map(str, one)) for one in service.titles()] == [
        ["urn:g-a"],
        ["urn:g-a", "urn:g-b"],
    ]


async def test_a_match_between_the_request_and_its_verification_is_sent(service: Service) -> None:
    await service.publish("old")
    release = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        await release.wait()
        return await service.answer(request)

    service.receiver.answer = slow
    await service.ask()
    await service.publish("new")
    release.set()
    await service.settled()
    await service.hub.update()
    await service.settled()
    assert service.titles() == [["urn:g-new", "urn:g-old"]]


async def test_a_second_request_during_a_verification_is_verified(service: Service) -> None:
    sent, release = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        sent.set()
        await release.wait()
        return await service.answer(request)

    service.receiver.answer = slow
    await service.ask(secret="first")
    await sent.wait()
    await service.ask(secret="second")
    release.set()
    await until(lambda: len(service.verified) == 2)
    await service.settled()
    [row] = await service.callbacks()
    assert row["secret"] == "second"


async def test_status_410_ends_a_subscription(service: Service) -> None:
    await service.subscribe()
    service.status = 410
    await service.publish("a")
    await service.settled()
    assert await service.callbacks() == []
    [row] = await service.broker.rows(subscriptions)
    assert row["state"] == "active"


async def test_the_end_of_a_topic_ends_its_callbacks(service: Service) -> None:
    await service.subscribe()
    await service.broker.broker.subscriptions.unsubscribe(service.id, ADMIN, None)
    await service.hub.update()
    assert await service.callbacks() == []
    await service.settled()
    assert len(service.verified) == 1


async def test_one_slow_callback_holds_up_no_other(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        if request.method == "POST":
            await release.wait()
        return web.Response(text=request.query.get("hub.challenge", ""))

    async with receivers(2) as [one, other], harness(tmp_path) as broker:
        service = await made(broker, one)
        other.answer = slow
        await service.subscribe()
        await service.subscribe(callback=other.url())
        for number, name in enumerate("abc", 1):
            await service.publish(name)

            async def arrived(number: int = number) -> bool:
                await service.hub.update()  # The delivery before may not be written back yet.
                return len(service.documents) == number

            await until(arrived)
        release.set()


async def test_a_topic_has_a_limited_number_of_callbacks(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websub_hub, "CALLBACKS_PER_TOPIC", 1)
    await service.subscribe()
    assert (await service.ask(callback=service.receiver.url("/other"))).status == 429
    assert (await service.ask()).status == 202  # A known one may ask again.


async def test_one_slow_host_cannot_fill_a_hub(service: Service) -> None:
    release = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        await release.wait()
        return await service.answer(request)

    service.receiver.answer = slow
    urls = [service.receiver.url(f"/{number}") for number in range(3)]
    statuses = [(await service.ask(callback=url)).status for url in urls]
    assert statuses == [202, 202, 429]
    assert (await service.ask(callback="http://127.0.0.2/")).status == 202
    release.set()
    await service.settled()
    assert len(await service.callbacks()) == 2


async def test_nothing_is_sent_to_addresses_that_are_not_public(tmp_path: Path) -> None:
    async with receivers() as [hook], harness(tmp_path, allow=[]) as broker:
        service = await made(broker, hook)
        await service.subscribe()
        assert (service.verified, await service.callbacks()) == ([], [])


async def test_a_feed_that_cannot_be_written_is_given_up_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.subscribe()
    with monkeypatch.context() as broken:
        broken.setattr(match_feed, "readable", lambda _: 1 / 0)
        await service.publish("a")
        await service.settled()
        await service.hub.update()
    assert await service.deliveries() == [
        ("websub", "failed", 0),
    ]
    await service.publish("b")
    await service.settled()
    assert service.titles() == [["urn:g-b", "urn:g-a"]]


async def test_rounds_of_the_hub_are_supervised(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websub_hub, "ROUND_SECONDS", 0.01)
    await service.subscribe()
    update, failures = service.hub.update, [ValueError("no luck")]

    async def broken() -> float:
        if failures:
            raise failures.pop()
        return await update()

    monkeypatch.setattr(service.hub, "update", broken)
    stop = asyncio.Event()
    running = asyncio.create_task(service.hub.run(stop))
    await until(lambda: service.broker.broker.supervisor.failing() != [])
    assert service.broker.broker.supervisor.failing() == ["WebSub hub fails: ValueError: no luck"]
    await service.broker.publish("a")
    await until(lambda: bool(service.documents))
    assert service.broker.broker.supervisor.failing() == []
    stop.set()
    await running


async def test_the_hub_works_with_postgresql(database: str) -> None:
    async with receivers() as [hook], harness(database, FakeClock()) as broker:
        service = await made(broker, hook)
        await service.subscribe(secret="geheim")
        await service.publish("a")
        await service.settled()
        assert service.titles() == [["urn:g-a"]]
        await broker.broker.subscriptions.unsubscribe(service.id, ADMIN, None)
        await service.hub.update()
        assert await service.callbacks() == []

"""Senders and their HTTP client, against real servers on loopback, which `allow` contains."""

from __future__ import annotations

import asyncio
import email
import email.header
import gzip
import json
import random
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import default
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.broker.retries import (
    FAILURES,
    OPEN_SECONDS,
    OPEN_SECONDS_MOST,
    PROBE_SECONDS,
    WAITS,
    Breaker,
    BreakerState,
    next_try,
)
from graphmatch.broker.safe_http import (
    REPLY_BYTES,
    ForbiddenAddressError,
    HttpClient,
    Reply,
    UnreachableError,
    forbidden,
)
from graphmatch.broker.signatures import SignatureError, key_of, new_secret, sign, signed_headers
from graphmatch.broker.transport import (
    NTFY_BYTES,
    PAYLOAD_BYTES,
    REASON_CHARACTERS,
    Email,
    Message,
    Ntfy,
    Outcome,
    SmtpServer,
    TransportError,
    Verdict,
    Webhook,
    checked_mailbox,
    inbox_of,
    shortened,
)
from tests.graphmatch.broker.rig import Smtp, talking

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LOOPBACK = ("127.0.0.0/8",)
SECRET, OTHER = new_secret(), new_secret()

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBqzCCAVGgAwIBAgIUeOAYR8rconI3kkCpm+J9wyJQt30wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzE4MDIwM1oYDzIxMjYxMDMw
MTgwMjAzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQhwFi9tTPLcoaYbTzz9fQhUsmqWDYLWBP1/HnqA3lwG2uiqAAT/5nA
072vyHcWNun+YJDU09OVc9icO/Gqs5bko38wfTAdBgNVHQ4EFgQULvwq2bF3Bn3s
rC7KVPW8qIlr7X0wHwYDVR0jBBgwFoAULvwq2bF3Bn3srC7KVPW8qIlr7X0wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwDgYDVR0P
AQH/BAQDAgKEMAoGCCqGSM49BAMCA0gAMEUCIC2knN2bBBH2BCbCFuG1D6GgScPJ
BBXQH/pjjac7p+DiAiEAn0dY9nhuw8QoKMWJJK6DhsDB4jQm5P/oklmN78+wm9I=
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglIwjIW+16fPYmYTb
7YNk8Y3atW/85fwzjLmaQDgCWsehRANCAAQhwFi9tTPLcoaYbTzz9fQhUsmqWDYL
WBP1/HnqA3lwG2uiqAAT/5nA072vyHcWNun+YJDU09OVc9icO/Gqs5bk
-----END PRIVATE KEY-----
"""
"""Key of a loopback server, used only in these tests."""


def message(**changes: Any) -> Message:
    values: dict[str, Any] = {
        "id": "dlv_1",
        "subscription": "s1",
        "name": "Floods",
        "title": "Water rises",
        "text": "The river is high.\nStay away.",
        "payload": b'{"type":"match","data":{"x":"\xc3\xa9"}}',
        "created": NOW,
        "link": "https://example.org/a",
    }
    return Message(**{**values, **changes})


@dataclass
class Server:
    """An HTTP server, and its received requests."""

    port: int = 0
    scheme: str = "http"
    seen: list[tuple[web.Request, bytes]] = field(default_factory=list)

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(scheme="https" if tls else "http")

    async def handle(request: web.Request) -> web.StreamResponse:
        server.seen.append((request, await request.read()))
        return await handler(request)

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


def answer(status: int = 204, **more: Any) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, **more)

    return handle


class Names(AbstractResolver):
    """A resolver with fixed responses, which repeats the last one."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            ResolveResult(hostname=host, host=one, port=port, family=family, proto=0, flags=0)
            for one in answer
        ]

    async def close(self) -> None:
        pass


def post(handler: Handler, **client: Any) -> tuple[Outcome, Server]:
    """Send a message to a webhook."""

    async def run() -> tuple[Outcome, Server]:
        async with (
            serving(handler) as server,
            HttpClient(**{"allow": LOOPBACK, **client}) as http,
        ):
            return await Webhook(http, server.url(), [SECRET]).send(message()), server

    return asyncio.run(run())


def get(url: str, *, allow: Sequence[str] = (), **more: Any) -> Reply:
    async def run() -> Reply:
        async with HttpClient(allow, connect_seconds=2, total_seconds=3) as http:
            return await http.request("GET", url, **more)

    return asyncio.run(run())


# --- Forbidden addresses -------------------------------------------------------------------------

FORBIDDEN = [
    "127.0.0.1",
    "127.8.9.10",
    "127.0.0.1.",
    "127.1",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "017700000001",
    "2130706433",
    "0",
    "0.0.0.0",
    "①②⑦.0.0.1",
    "10.0.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "233.252.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::808:808]",
    "[2002:7f00:1::]",
    "[2002:808:808::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fec0::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[100::1]",
    "[5f00::1]",
]


@pytest.mark.parametrize("host", [*FORBIDDEN, "localhost", "LOCALHOST"])
def test_nothing_is_sent_to_a_forbidden_address(host: str) -> None:
    async def run() -> tuple[Outcome, Server]:
        async with serving(answer()) as server, HttpClient(connect_seconds=1) as http:
            with pytest.raises(ForbiddenAddressError):
                await http.request("GET", server.url(host=host), redirects=5)
            return await Webhook(http, server.url(host=host), [SECRET]).send(message()), server

    outcome, server = asyncio.run(run())
    assert outcome.verdict is Verdict.REFUSED
    assert outcome.status is None
    assert not server.seen


def test_that_allowed_networks_are_reached() -> None:
    async def run() -> Server:
        async with serving(answer()) as server, HttpClient(LOOPBACK) as http:
            for host in "127.0.0.1", "localhost":
                assert (await http.request("GET", server.url(host=host))).status == 204
            return server

    assert len(asyncio.run(run()).seen) == 2


PUBLIC = ["8.8.8.8", "1.1.1.1", "192.0.1.1", "172.32.0.1", "100.128.0.1", "223.255.255.254"]
PUBLIC_6 = ["2606:4700:4700::1111", "2a00:1450:4001::1", "2400::1", "2001:200::1", "2003::1"]


@pytest.mark.parametrize("text", [*PUBLIC, *PUBLIC_6, "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_public_addresses_are_allowed(text: str) -> None:
    assert forbidden(ip_address(text)) is None


@given(st.ip_addresses())
def test_what_is_allowed_is_global(address: IPv4Address | IPv6Address) -> None:
    if forbidden(address) is None:
        assert address.is_global
        assert not address.is_multicast


@given(st.ip_addresses(v=4) | st.sampled_from([ip_address(one) for one in PUBLIC]))
def test_an_embedded_address_is_judged_as_what_it_is(address: IPv4Address) -> None:
    number = int(address)
    for prefix in ("::ffff:0:0", "64:ff9b::"):
        assert forbidden(IPv6Address(int(IPv6Address(prefix)) + number)) == forbidden(address)
    teredo = int(IPv6Address("2001::")) + (number ^ 0xFFFFFFFF)
    six_to_four = int(IPv6Address("2002::")) + (number << 80)
    for other in (number, teredo, six_to_four):
        assert forbidden(IPv6Address(other))


def test_rebinding_gains_nothing() -> None:
    names = Names(["93.184.216.34"], ["127.0.0.1"])

    async def run() -> tuple[Outcome, Server]:
        async with serving(answer()) as server, HttpClient(resolver=names) as http:
            url = server.url(host="rebind.example")
            # This check resolves the first address.
            [checked] = await names.resolve("rebind.example")
            assert forbidden(ip_address(checked["host"])) is None
            return await Webhook(http, url, [SECRET]).send(message()), server

    outcome, server = asyncio.run(run())
    assert outcome.verdict is Verdict.REFUSED
    assert outcome.reason == "nothing is sent to 127.0.0.1, which is loopback"
    assert not server.seen


@pytest.mark.parametrize("last", ["::ffff:127.0.0.1", "10.0.0.1", "::1"])
def test_a_name_of_forbidden_addresses_only(last: str) -> None:
    outcome, server = post_to_names("127.0.0.2", last)
    assert outcome.verdict is Verdict.REFUSED
    assert not server.seen


def test_a_name_of_forbidden_and_other_addresses() -> None:
    outcome, _ = post_to_names("127.0.0.2", "127.0.0.1", allow=["127.0.0.1/32"])
    assert outcome.verdict is Verdict.DELIVERED
    outcome, _ = post_to_names("127.0.0.2", "127.0.0.3", "10.0.0.1", allow=["127.0.0.3/32"])
    assert outcome.verdict is Verdict.RETRY, "one of them may answer later"
    assert outcome.host_failed


def post_to_names(*addresses: str, allow: Sequence[str] = ()) -> tuple[Outcome, Server]:
    async def run() -> tuple[Outcome, Server]:
        async with (
            serving(answer()) as server,
            HttpClient(allow, resolver=Names(addresses)) as http,
        ):
            webhook = Webhook(http, server.url(host="names.example"), [SECRET])
            return await webhook.send(message()), server

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("ftp://example.org/", "neither http nor https"),
        ("file:///etc/passwd", "neither http nor https"),
        ("unix:///run/docker.sock", "neither http nor https"),
        ("/hook", "neither http nor https"),
        ("", "neither http nor https"),
        ("https://ann:word@example.org/", "a URL with credentials"),
        ("https://ann@example.org/", "a URL with credentials"),
        ("https:///hook", "its host or its port cannot be one"),
        ("https://example.org:0/", "its host or its port cannot be one"),
        ("https://a..example/", "its host or its port cannot be one"),
        (f"https://{'a' * 64}.example/", "its host or its port cannot be one"),
        ("https://exa mple.org/", "its host or its port cannot be one"),
        ("https://example.org:99999/", "it is no URL"),
        ("https://[::1/", "it is no URL"),
        ("https://example.org\\@127.0.0.1/", "it is no URL"),
    ],
)
def test_urls_that_are_refused(url: str, what: str) -> None:
    with pytest.raises(ForbiddenAddressError) as caught:
        get(url, allow=["0.0.0.0/0"])
    assert caught.value.problem.what == what
    assert "word" not in str(caught.value)
    assert caught.value.problem.remedy


@pytest.mark.parametrize("host", ["10.0.0.1", "[::ffff:10.0.0.1]"])
def test_a_literal_is_refused_before_anything_is_sent(host: str) -> None:
    with pytest.raises(ForbiddenAddressError, match="which is private"):
        HttpClient().check(f"https://{host}/")
    assert HttpClient(["10.0.0.0/24"]).check(f"https://{host}/").path == "/"


def test_that_a_client_is_open() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        asyncio.run(HttpClient().request("GET", "http://example.org/"))


def test_that_proxies_and_passwords_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ann password word\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    outcome, server = post(answer())
    assert outcome.verdict is Verdict.DELIVERED
    assert "Authorization" not in server.seen[0][0].headers


# --- Redirects -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "to", ["/other", "http://169.254.169.254/", "//127.0.0.2/", "https://a.b/"]
)
def test_a_delivery_follows_no_redirect(status: int, to: str) -> None:
    outcome, server = post(answer(status, headers={"Location": to}))
    assert (outcome.verdict, outcome.status) == (Verdict.RETRY, status)
    assert outcome.reason.endswith("redirects are not followed")
    assert not outcome.host_failed
    assert len(server.seen) == 1


def redirecting(*steps: str) -> Handler:
    """Redirect along some URLs; ``PORT`` in one is the server's port."""

    async def handle(request: web.Request) -> web.StreamResponse:
        number = int(request.path.strip("/") or 0)
        if number == len(steps):
            return web.Response(text="there")
        to = steps[number].replace("PORT", str(request.url.port))
        return web.Response(status=301, headers={"Location": to})

    return handle


def follow(*steps: str, redirects: int = 5, **more: Any) -> tuple[Reply, Server]:
    async def run() -> tuple[Reply, Server]:
        async with serving(redirecting(*steps)) as server, HttpClient(["127.0.0.1/32"]) as http:
            url = server.url("/0")
            return await http.request("GET", url, redirects=redirects, **more), server

    return asyncio.run(run())


def test_a_feed_follows_redirects() -> None:
    reply, server = follow("/1", "2?x=1", "//localhost:PORT/3", headers={"Authorization": "secret"})
    assert (reply.status, reply.body, reply.cut) == (200, b"there", False)
    port = server.port
    assert reply.url == f"http://localhost:{port}/3"
    hops = [f"http://127.0.0.1:{port}/1", f"http://127.0.0.1:{port}/2?x=1", reply.url]
    assert reply.hops == tuple((301, hop) for hop in hops)
    told = [request.headers.get("Authorization") for request, _ in server.seen]
    assert told == ["secret", "secret", "secret", None], "another host is told no secrets"


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.2:PORT/1",
        "http://169.254.169.254/latest",
        "http://[::1]:PORT/1",
        "http://0x7f.1:PORT/1",
        "file:///etc/passwd",
        "http://ann:word@127.0.0.1:PORT/1",
    ],
)
def test_each_hop_is_checked(to: str) -> None:
    with pytest.raises(ForbiddenAddressError):
        follow(to)


def test_redirects_end() -> None:
    reply, server = follow("/0", redirects=3)
    assert (reply.status, len(reply.hops), len(server.seen)) == (301, 3, 4)
    with pytest.raises(UnreachableError, match="leads to no URL"):
        follow("http://[::1")


# --- Responses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "verdict", "host_failed"),
    [
        (200, Verdict.DELIVERED, False),
        (202, Verdict.DELIVERED, False),
        (299, Verdict.DELIVERED, False),
        (400, Verdict.RETRY, False),
        (404, Verdict.RETRY, False),
        (410, Verdict.GONE, False),
        (429, Verdict.RETRY, True),
        (500, Verdict.RETRY, True),
        (503, Verdict.RETRY, True),
        (999, Verdict.RETRY, True),
    ],
)
def test_statuses(status: int, verdict: Verdict, host_failed: bool) -> None:
    outcome, _ = post(answer(status))
    assert (outcome.verdict, outcome.status) == (verdict, status)
    assert outcome.host_failed is host_failed
    assert outcome.reason.startswith(str(status))
    assert 0 < outcome.seconds < 5


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60),
        ("Fri, 02 Jan 2026 03:05:05", 60),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("99999999999", 86400),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86400),
        ("9" * 5000, None),
        ("-5", None),
        ("soon", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503, 500])
def test_retry_after(status: int, value: str, seconds: float | None) -> None:
    async def run() -> Outcome:
        handler = answer(status, headers={"Retry-After": value})
        async with serving(handler) as server, HttpClient(LOOPBACK) as http:
            return await Webhook(http, server.url(), [SECRET], lambda: NOW).send(message())

    assert asyncio.run(run()).retry_after == (None if status == 500 else seconds)


def test_a_reason_is_short_and_has_no_secrets() -> None:
    async def tell(request: web.Request) -> web.StreamResponse:
        said = f"no,\r\n\x00 {request.headers['webhook-signature']} {SECRET} " + "x" * 9999
        return web.Response(status=500, text=said)

    outcome, _ = post(tell)
    assert outcome.reason.startswith("500 Internal Server Error: no, v1,")
    assert len(outcome.reason) < REASON_CHARACTERS + 40
    assert SECRET not in outcome.reason
    assert outcome.reason.isprintable()


def test_a_slow_server() -> None:
    async def wait(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.6)
        return web.Response()

    outcome, _ = post(wait, total_seconds=0.2)
    assert outcome.seconds >= 0.2
    assert outcome.verdict is Verdict.RETRY
    assert outcome.reason == "there was no whole answer within 0.2 seconds"
    assert outcome.host_failed


def test_a_server_that_never_ends() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async def run() -> Outcome:
        async with talking(drip) as port, HttpClient(LOOPBACK, total_seconds=0.3) as http:
            url = f"http://127.0.0.1:{port}/"
            with pytest.raises(UnreachableError):
                await http.request("GET", url)
            return await Webhook(http, url, [SECRET]).send(message())

    begin = time.monotonic()
    assert asyncio.run(run()).verdict is Verdict.DELIVERED, "it said that it took it"
    assert time.monotonic() - begin < 3


def test_headers_that_never_end() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-A: " + b"a" * 4000 + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0.001)

    outcome = post_to(drip)
    assert outcome.verdict is Verdict.RETRY


@pytest.mark.parametrize("most", [0, 1, REPLY_BYTES, 100_000])
def test_a_huge_body(most: int) -> None:
    sent = 0

    async def pour(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(10_000):
            await response.write(b"x" * 100_000)
            sent += 100_000
        return response

    async def run() -> Reply:
        async with serving(pour) as server, HttpClient(LOOPBACK) as http:
            return await http.request("GET", server.url(), most=most)

    reply = asyncio.run(run())
    assert (len(reply.body), reply.cut) == (most, True)
    assert sent < 50_000_000


def test_a_body_that_expands() -> None:
    bomb = gzip.compress(bytes(10_000_000))

    async def run() -> tuple[Reply, Reply]:
        handler = answer(200, body=bomb, headers={"Content-Encoding": "gzip"})
        async with serving(handler) as server, HttpClient(LOOPBACK) as http:
            first = await http.request("GET", server.url(), most=1000)
            return first, await http.request("GET", server.url(), most=20_000_000)

    small, large = asyncio.run(run())
    assert (len(small.body), small.cut) == (1000, True)
    assert (len(large.body), large.cut) == (10_000_000, False)


def post_to(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> Outcome:
    async def run() -> Outcome:
        async with talking(talk) as port, HttpClient(LOOPBACK, total_seconds=1) as http:
            webhook = Webhook(http, f"http://127.0.0.1:{port}/secret-path", [SECRET])
            return await webhook.send(message())

    outcome = asyncio.run(run())
    assert "secret-path" not in outcome.reason
    return outcome


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


async def speak_ssh(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    await reader.read()


@pytest.mark.parametrize(
    ("talk", "reason"),
    [
        (reset, "the connection failed: Connection reset by peer"),
        (leave, "the connection was closed"),
        (speak_ssh, "the answer is not valid HTTP"),
    ],
)
def test_broken_connections(talk: Any, reason: str) -> None:
    outcome = post_to(talk)
    assert (outcome.verdict, outcome.status, outcome.reason) == (Verdict.RETRY, None, reason)
    assert outcome.host_failed


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(UnreachableError, match="Connection refused"):
            get(f"http://127.0.0.1:{port}/", allow=LOOPBACK)


def test_a_name_that_means_nothing() -> None:
    async def run() -> Outcome:
        async with HttpClient(resolver=Names([])) as http:
            return await Webhook(http, "https://nowhere.example/", [SECRET]).send(message())

    outcome = asyncio.run(run())
    assert outcome.verdict is Verdict.RETRY
    assert outcome.reason == "the host's name cannot be looked up"


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS contexts of a server and of a client that trusts it."""
    path = tmp_path / "both.pem"
    path.write_text(KEY + CERTIFICATE, encoding="ascii")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cadata=CERTIFICATE)


def test_certificates_are_verified(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def run(client: ssl.SSLContext | None) -> Outcome:
        async with (
            serving(answer(), tls=tls[0]) as server,
            HttpClient(LOOPBACK, tls=client) as http,
        ):
            return await Webhook(http, server.url(), [SECRET]).send(message())

    assert asyncio.run(run(tls[1])).verdict is Verdict.DELIVERED
    outcome = asyncio.run(run(None))
    assert outcome.verdict is Verdict.RETRY
    assert outcome.reason.startswith("the host's certificate is not trusted: self")


def test_tls_with_something_else(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def run() -> None:
        async with serving(answer()) as server, HttpClient(LOOPBACK) as http:
            server.scheme = "https"
            with pytest.raises(UnreachableError, match="no TLS connection"):
                await http.request("GET", server.url())

    asyncio.run(run())


# --- Signatures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("secrets", [[SECRET], [SECRET, OTHER], [OTHER, SECRET]])
def test_signatures_are_those_of_standard_webhooks(secrets: list[str]) -> None:
    async def run() -> Server:
        async with serving(answer()) as server, HttpClient(LOOPBACK) as http:
            for id in ("dlv_1", "dlv_1", "2"):
                outcome = await Webhook(http, server.url(), secrets).send(message(id=id))
                assert outcome.verdict is Verdict.DELIVERED
            return server

    server = asyncio.run(run())
    assert [request.headers["webhook-id"] for request, _ in server.seen] == ["dlv_1", "dlv_1", "2"]
    for request, body in server.seen:
        assert request.method == "POST"
        assert request.headers["Content-Type"] == "application/json"
        assert request.headers["User-Agent"].startswith("graphmatch/")
        headers = dict(request.headers)
        for secret in secrets:
            receiver = standardwebhooks.Webhook(secret)
            assert receiver.verify(body, headers) == json.loads(message().payload)
            for changed in (
                {"webhook-id": "other"},
                {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)},
            ):
                with pytest.raises(standardwebhooks.WebhookVerificationError):
                    receiver.verify(body, headers | changed)
            with pytest.raises(standardwebhooks.WebhookVerificationError):
                receiver.verify(body.replace(b"match", b"patch"), headers)
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            standardwebhooks.Webhook(new_secret()).verify(body, headers)


@given(st.binary(min_size=24, max_size=64), st.text("a.{é\n", max_size=99), st.floats(0, 1e10))
def test_signatures_against_the_other_library(key: bytes, body: str, second: float) -> None:
    at, theirs = datetime.fromtimestamp(second, UTC), standardwebhooks.Webhook(key)
    secret = "whsec_" + b64encode(key).decode()
    assert sign(secret, "m", at, body.encode()) == theirs.sign("m", at, body)


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "AAAA" * 8, "whsec_" + "!" * 40, "whsec_" + "A" * 28, "whsec_" + "A" * 88],
)
def test_secrets_that_are_refused(secret: str) -> None:
    with pytest.raises(SignatureError) as caught:
        sign(secret, "id", NOW, b"")
    assert len(secret) < 7 or secret[6:] not in str(caught.value)


def test_secrets() -> None:
    assert len({new_secret() for _ in range(9)}) == 9
    assert len(key_of("whsec_" + "A" * 86)) == 64, "without padding"
    with pytest.raises(SignatureError, match="there is no secret"):
        signed_headers([], "id", NOW, b"")
    for webhook in [Webhook(HttpClient(), "https://example.org", [SECRET])]:
        assert SECRET not in repr(webhook)


@pytest.mark.parametrize("id", ["", "a.b", "a b", "a\r\nb", "a\n", "é", "x" * 129])
def test_ids_that_are_refused(id: str) -> None:
    with pytest.raises(SignatureError):
        message(id=id)
    with pytest.raises(SignatureError):
        sign(SECRET, id, NOW, b"")


# --- ntfy ----------------------------------------------------------------------------------------


def notify(sent: Message, **ntfy: Any) -> tuple[Outcome, web.Request, str]:
    async def run() -> tuple[Outcome, web.Request, str]:
        async with serving(answer(200, text="{}")) as server, HttpClient(LOOPBACK) as http:
            outcome = await Ntfy(http, server.url("/my-topic"), **ntfy).send(sent)
            [(request, body)] = server.seen
            return outcome, request, body.decode()

    return asyncio.run(run())


def test_ntfy() -> None:
    outcome, request, body = notify(message(), token="tk_1", tags=["ocean", "a,b", "x\r\ny", "+1"])
    assert outcome.verdict is Verdict.DELIVERED
    assert (request.method, request.path, body) == ("POST", "/my-topic", message().text)
    told = {name: request.headers.get(name) for name in ("Title", "Tags", "Click", "Authorization")}
    assert told == {
        "Title": "Water rises",
        "Tags": "ocean,+1",
        "Click": "https://example.org/a",
        "Authorization": "Bearer tk_1",
    }
    assert "webhook-signature" not in request.headers


def test_ntfy_with_hostile_texts() -> None:
    hostile = message(
        title="Überschwemmung\r\nTags: skull\x00\u2028\ud800",
        text="ä" * 5000 + "\ud800",
        link="https://example.org/\r\nTags: skull",
    )
    outcome, request, body = notify(hostile)
    assert outcome.verdict is Verdict.DELIVERED
    assert not {"Tags", "Click", "Authorization"} & set(request.headers)
    title = str(email.header.make_header(email.header.decode_header(request.headers["Title"])))
    assert title == "Überschwemmung Tags: skull ?"
    assert len(body.encode()) <= NTFY_BYTES
    assert body.startswith("äää")
    assert body.endswith("ä…")


def test_that_tokens_are_not_told() -> None:
    async def tell(request: web.Request) -> web.StreamResponse:
        return web.Response(status=403, text=request.headers["Authorization"])

    async def run() -> Outcome:
        async with serving(tell) as server, HttpClient(LOOPBACK) as http:
            ntfy = Ntfy(http, server.url("/t"), token="tk_secret")
            assert "tk_secret" not in repr(ntfy)
            return await ntfy.send(message())

    assert asyncio.run(run()).reason == "403 Forbidden: Bearer …"


def test_a_topic_at_a_forbidden_address() -> None:
    async def run() -> Outcome:
        async with HttpClient() as http:
            return await Ntfy(http, "http://192.168.0.1/topic").send(message())

    assert asyncio.run(run()).verdict is Verdict.REFUSED


# --- Email ---------------------------------------------------------------------------------------


def send(
    smtp: Smtp,
    sent: Message | None = None,
    *,
    to: str = "ann@example.org",
    server_tls: ssl.SSLContext | None = None,
    **more: Any,
) -> Outcome:
    async def run() -> Outcome:
        async with talking(smtp.talk, tls=server_tls) as port:
            settings = {"security": "none", "seconds": 5, **more}
            host = "localhost" if more.get("tls") else "127.0.0.1"
            server = SmtpServer(host, "broker@example.com", port, **settings)
            return await Email(server, to).send(sent or message())

    return asyncio.run(run())


def parsed(smtp: Smtp) -> EmailMessage:
    [mail] = smtp.mails
    return email.message_from_bytes(mail[:-3], policy=default)


def test_email() -> None:
    smtp, url = Smtp(), "https://broker.example/unsubscribe?ticket=" + "a_b" * 50
    outcome = send(smtp, message(unsubscribe=url))
    assert (outcome.verdict, outcome.status) == (Verdict.DELIVERED, 250)
    mail = parsed(smtp)
    assert (mail["From"], mail["To"]) == ("broker@example.com", "ann@example.org")
    assert mail["Subject"] == "Water rises"
    assert mail["Message-ID"] == "<dlv_1@example.com>"
    assert mail["Date"] == "Fri, 02 Jan 2026 03:04:05 +0000"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert f"\r\nList-Unsubscribe: <{url}>\r\n".encode() in smtp.mails[0], "as one line"
    text = f"{message().text}\n\nhttps://example.org/a\n\n-- \nFloods\n"
    assert mail.get_content().replace("\r\n", "\n") == text
    assert [line for line in smtp.said if "@" in line] == [
        "mail FROM:<broker@example.com>",
        "rcpt TO:<ann@example.org>",
    ]
    send(smtp)
    ids = [email.message_from_bytes(one)["Message-ID"] for one in smtp.mails]
    assert ids == ["<dlv_1@example.com>"] * 2


HOSTILE = [
    "x\r\nBcc: eve@example.org",
    "x\nBcc: eve@example.org",
    "x\r\rBcc: eve@example.org\r\n\r\nbody",
    "x\x0b\x0c\x1c\x85\u2028\u2029Bcc: eve@example.org",
    "=?utf-8?q?x=0D=0ABcc:_eve=40example.org?=",
    "ü\r\n.\r\nMAIL FROM:<eve@example.org>\r\n\ud800",
    "ü" * 5000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_header_can_be_added(text: str) -> None:
    smtp = Smtp()
    hostile = message(title=text, name=text, text=text, link=text, unsubscribe=text)
    assert send(smtp, hostile).verdict is Verdict.DELIVERED
    mail = parsed(smtp)
    assert sorted(mail.keys()) == [
        "Auto-Submitted",
        "Content-Transfer-Encoding",
        "Content-Type",
        "Date",
        "From",
        "MIME-Version",
        "Message-ID",
        "Subject",
        "To",
    ]
    assert len([line for line in smtp.said if line.lower().startswith(("mail", "rcpt"))]) == 2
    assert smtp.mails[0].isascii()
    assert max(map(len, smtp.mails[0].split(b"\r\n"))) <= 998


def test_that_a_link_adds_no_header() -> None:
    smtp = Smtp()
    url = "https://broker.example/?x=?utf-8?q?x=0D=0ABcc:_eve=40example.org?="
    send(smtp, message(unsubscribe=url))
    assert "Bcc" not in parsed(smtp)
    line = f"List-Unsubscribe: <{url.replace('=?utf', '=%3Futf')}>\r\n"
    assert line.encode() in smtp.mails[0]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ann",
        "ann@",
        "@example.org",
        "ann@example.org, eve@example.org",
        "Ann <ann@example.org>",
        "ann@example.org\r\nBcc: eve@example.org",
        "ann@example.org\n",
        "=?utf-8?q?a=0A?=@example.org",
        "ann@[127.0.0.1]",
        '"a b"@example.org',
    ],
)
def test_addresses_of_email_that_are_refused(address: str) -> None:
    with pytest.raises(TransportError, match="it is no address of email"):
        checked_mailbox(address)
    with pytest.raises(TransportError):
        Email(SmtpServer("127.0.0.1", "broker@example.com"), address)


@pytest.mark.parametrize(
    ("command", "says", "verdict", "host_failed"),
    [
        ("RCPT", "550 5.1.1 nobody here", Verdict.REFUSED, False),
        ("RCPT", "450 later", Verdict.RETRY, False),
        ("RCPT", "421 closing", Verdict.RETRY, True),
        ("MAIL", "451 later", Verdict.RETRY, False),
        ("MAIL", "530 no", Verdict.REFUSED, False),
        ("text", "554 spam", Verdict.REFUSED, False),
        ("text", "452 full", Verdict.RETRY, False),
        ("DATA", "451 later", Verdict.RETRY, False),
        ("greeting", "554 no", Verdict.RETRY, True),
        ("text", "leave", Verdict.RETRY, True),
        ("RCPT", "leave", Verdict.RETRY, True),
        ("RCPT", "silence", Verdict.RETRY, True),
        ("QUIT", "500 what", Verdict.DELIVERED, False),
        ("QUIT", "silence", Verdict.DELIVERED, False),
        ("QUIT", "leave", Verdict.DELIVERED, False),
    ],
)
def test_answers_of_smtp(command: str, says: str, verdict: Verdict, host_failed: bool) -> None:
    outcome = send(Smtp({command: says}), seconds=0.3 if says == "silence" else 5)
    assert (outcome.verdict, outcome.host_failed) == (verdict, host_failed)
    if says[0].isdigit() and verdict is not Verdict.DELIVERED:
        assert (outcome.status, outcome.reason) == (int(says[:3]), says)
    elif verdict is Verdict.RETRY:
        assert outcome.reason.startswith("the SMTP server")


def test_smtp_over_tls(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server, client = tls
    login = {"user": "broker", "password": "hunter2"}
    smtp = Smtp(upgrade=server)
    outcome = send(smtp, security="starttls", tls=client, **login)
    assert outcome.verdict is Verdict.DELIVERED, outcome
    verbs = [line.partition(" ")[0].upper() for line in smtp.said]
    assert verbs == ["EHLO", "STARTTLS", "EHLO", "AUTH", "MAIL", "RCPT", "DATA", "QUIT"]
    smtp = Smtp()
    outcome = send(smtp, security="tls", tls=client, server_tls=server, **login)
    assert outcome.verdict is Verdict.DELIVERED
    assert smtp.mails
    refusing = Smtp({"AUTH": "535 wrong: hunter2"})
    outcome = send(refusing, security="tls", tls=client, server_tls=server, **login)
    assert (outcome.verdict, outcome.reason) == (Verdict.RETRY, "535 wrong: …")


def test_nothing_is_sent_without_the_tls_that_was_asked_for(
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    # One has no TLS, the other an untrusted certificate.
    for smtp in (Smtp(), Smtp(upgrade=tls[0])):
        outcome = send(smtp, security="starttls", user="broker", password="hunter2")
        assert (outcome.verdict, outcome.host_failed) == (Verdict.RETRY, True)
        assert not smtp.mails
        assert not any(line.startswith("AUTH") for line in smtp.said)
    outcome = send(smtp := Smtp(), security="tls", server_tls=tls[0])
    assert (outcome.verdict, smtp.mails) == (Verdict.RETRY, [])
    assert outcome.reason.startswith("no TLS with the SMTP server: self")
    with pytest.raises(TransportError, match="without TLS"):
        SmtpServer("127.0.0.1", "broker@example.com", security="none", user="broker")
    server = SmtpServer("127.0.0.1", "broker@example.com", user="broker", password="hunter2")
    assert "hunter2" not in repr(server)


def test_addresses_in_other_scripts() -> None:
    smtp = Smtp(extensions=("SMTPUTF8", "8BITMIME"))
    assert send(smtp, to="jörg@example.org").verdict is Verdict.DELIVERED
    assert parsed(smtp)["To"] == "jörg@example.org"
    assert send(Smtp(), to="jörg@example.org").verdict is Verdict.REFUSED


# --- Retries -------------------------------------------------------------------------------------

FAILED = Outcome(Verdict.RETRY, "503", 503, host_failed=True)
TAKEN = Outcome(Verdict.DELIVERED, "204", 204)


def test_ten_tries_take_three_days() -> None:
    chance, now, tries = random.Random(5), NOW, 1
    while (after := next_try(tries, FAILED, now, chance)) is not None:
        wait = WAITS[tries - 1]
        assert 0.9 * wait <= after - now <= 1.1 * wait
        now, tries = after, tries + 1
    assert tries == 10
    assert sum(WAITS, timedelta()) == timedelta(hours=75, minutes=35, seconds=5)
    assert abs(now - NOW - sum(WAITS, timedelta())) < timedelta(hours=7.6)
    assert all(one < other for one, other in pairwise(WAITS))


def test_the_next_try() -> None:
    first = {next_try(3, FAILED, NOW, random.Random(seed)) for seed in range(20)}
    assert len(first) == 20
    assert next_try(3, FAILED, NOW, random.Random(1)) == next_try(3, FAILED, NOW, random.Random(1))
    asked = Outcome(Verdict.RETRY, "429", 429, retry_after=3600)
    assert next_try(1, asked, NOW, random.Random(1)) == NOW + timedelta(hours=1)
    later = next_try(9, asked, NOW, random.Random(1))
    assert later is not None
    assert later > NOW + timedelta(hours=20)
    for verdict in (Verdict.DELIVERED, Verdict.GONE, Verdict.REFUSED):
        assert next_try(1, Outcome(verdict, ""), NOW, random.Random(1)) is None


def seconds(number: float) -> datetime:
    return NOW + timedelta(seconds=number)


def opened(failures: int = FAILURES) -> Breaker:
    breaker = Breaker()
    for _ in range(failures):
        breaker = breaker.after(FAILED, NOW)
    return breaker


def test_a_breaker_opens_and_closes() -> None:
    assert opened(FAILURES - 1).state(NOW) is BreakerState.CLOSED
    breaker = opened()
    assert breaker.state(NOW) is BreakerState.OPEN
    assert breaker.state(seconds(OPEN_SECONDS - 0.001)) is BreakerState.OPEN
    later = seconds(OPEN_SECONDS)
    assert breaker.state(later) is BreakerState.HALF_OPEN
    probing = breaker.probing(later)
    assert probing.state(later) is BreakerState.OPEN, "one probe at a time"
    assert probing.state(later + timedelta(seconds=PROBE_SECONDS)) is BreakerState.HALF_OPEN
    assert probing.after(TAKEN, later) == Breaker()
    again = probing.after(FAILED, later)
    assert again.open_until == later + timedelta(seconds=2 * OPEN_SECONDS)
    assert breaker.probing(NOW) == breaker, "open: none"
    assert Breaker(2).probing(NOW) == Breaker(2), "closed: any number"


def test_what_a_breaker_counts() -> None:
    four = opened(FAILURES - 1)
    assert four.after(TAKEN, NOW) == Breaker(), "failures in a row"
    not_found = Outcome(Verdict.RETRY, "404", 404)
    assert four.after(not_found, NOW) == Breaker(), "the host answers"
    assert four.after(Outcome(Verdict.GONE, "410", 410), NOW) == Breaker()
    assert four.after(Outcome(Verdict.REFUSED, "10.0.0.1"), NOW) == four, "nothing was sent"
    assert four.after(Outcome(Verdict.REFUSED, "550", 550), NOW) == Breaker(), "SMTP: it answers"
    asked = Outcome(Verdict.RETRY, "503", 503, retry_after=7200, host_failed=True)
    assert four.after(asked, NOW).open_until == seconds(7200)


def test_how_long_a_breaker_is_open() -> None:
    until = [opened(FAILURES + more).open_until for more in range(100)]
    waits = [(one - NOW).total_seconds() for one in until if one is not None]
    assert len(waits) == 100
    assert waits[:4] == [OPEN_SECONDS, 2 * OPEN_SECONDS, 4 * OPEN_SECONDS, 8 * OPEN_SECONDS]
    assert max(waits) == waits[-1] == OPEN_SECONDS_MOST
    assert opened(5000).open_until == seconds(OPEN_SECONDS_MOST)


# --- Payloads ------------------------------------------------------------------------------------

LINK = "https://broker.example/v1/deliveries/1"


def payload(solutions: int = 0, evidence: int = 0, **data: Any) -> dict[str, Any]:
    return {
        "type": "match",
        "timestamp": "2026-01-02T03:04:05Z",
        "data": {
            "subscription": "s1",
            "solutions": [{"x": f"<http://example.org/é/{n}>"} for n in range(solutions)],
            "evidence": [f"triple {n}" for n in range(evidence)],
            **data,
        },
    }


def test_a_small_payload_is_left_alone() -> None:
    assert json.loads(shortened(payload(3, 3), LINK)) == payload(3, 3)


@pytest.mark.parametrize(
    ("solutions", "evidence"), [(100, 5000), (450, 450), (5000, 0), (0, 5000), (5000, 5000)]
)
def test_a_large_payload_is_cut(solutions: int, evidence: int) -> None:
    whole = payload(solutions, evidence)
    text = shortened(whole, LINK)
    assert PAYLOAD_BYTES - 60 < len(text) <= PAYLOAD_BYTES, "as much as there is room for"
    got = json.loads(text)
    assert (got["type"], got["timestamp"]) == (whole["type"], whole["timestamp"])
    data = got["data"]
    assert data["full"] == LINK
    for name, count in {"solutions": solutions, "evidence": evidence}.items():
        entries = data.get(name, [])
        assert entries == whole["data"][name][: len(entries)]
        assert len(entries) == count or data["cut"][name] == count
    if solutions == 100:
        assert len(data["solutions"]) == 100, "evidence goes first"
        assert data["evidence"]
    if solutions == evidence == 5000:
        assert "evidence" not in data
    assert whole == payload(solutions, evidence), "the caller's is not changed"


@given(
    st.integers(0, 60),
    st.integers(0, 60),
    st.integers(0, 3000),
    st.sampled_from([300, 1000, 2500]),
    st.booleans(),
)
def test_that_payloads_fit(solutions: int, evidence: int, long: int, most: int, flat: bool) -> None:
    whole = payload(solutions, evidence, title="ä" * long)
    text = shortened(whole["data"] if flat else whole, LINK, most)
    assert len(text) <= most
    got = json.loads(text) if flat else json.loads(text)["data"]
    assert got == whole["data"] or got["full"] == LINK


def test_payloads_of_digests_and_of_no_room() -> None:
    digest = {"data": {"subscription": "s1", "matches": [{"title": "x" * 100}] * 1000}}
    data = json.loads(shortened(digest, LINK, lists=["matches"]))["data"]
    assert data["cut"] == {"matches": 1000}
    assert 150 < len(data["matches"]) < 200
    with pytest.raises(ValueError, match="around its data"):
        shortened({"type": "x" * 999, "data": {"a": "b" * 999}}, LINK, 500)
    text = shortened(payload(9, title="\ud800"), LINK).decode()
    assert json.loads(text), "UTF-8 and JSON, whatever the text is"


@pytest.mark.parametrize("most", range(260, 340))
def test_as_many_entries_as_fit(most: int) -> None:
    whole = payload(30)["data"]
    text = shortened(whole, LINK, most, lists=["solutions"])
    data = json.loads(text)
    kept = len(data["solutions"])
    more = {**data, "solutions": whole["solutions"][: kept + 1]}
    size = len(json.dumps(more, ensure_ascii=False, separators=(",", ":")).encode())
    assert 0 < kept < 30
    assert len(text) <= most < size


# --- Inboxes -------------------------------------------------------------------------------------

RELATION = '; rel="http://www.w3.org/ns/ldp#inbox"'


def find_inbox(*links: str) -> str:
    """Find the inbox of a resource with these `Link` headers; {} is its place."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.Response()
        for link in links:
            response.headers.add("Link", link)
        return response

    async def run() -> str:
        async with serving(handle) as server, HttpClient(LOOPBACK) as http:
            return (await inbox_of(http, server.url())).replace(server.url("/"), "/")

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("link", "inbox"),
    [
        (f"</in>{RELATION}", "/in"),
        ('</a>; rel="next", </in>; rel="x http://www.w3.org/ns/ldp#inbox"', "/in"),
        (f"<http://[>{RELATION}", "/hook"),
        (f"<http://[>{RELATION}, </in>{RELATION}", "/in"),
        ("<a>; rel=next", "/hook"),
    ],
)
def test_an_inbox_is_named_by_a_header(link: str, inbox: str) -> None:
    assert find_inbox(link) == inbox


def test_headers_that_are_no_links_take_no_time() -> None:
    begin = time.monotonic()
    assert find_inbox(*["<" * 8000] * 20) == "/hook"
    assert time.monotonic() - begin < 2

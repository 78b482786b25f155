"""Senders and their HTTP client, against real servers on loopback, which `allow` contains."""

from __future__ import annotations

import asyncio
import base64
import email
import gzip
import hmac
import json
import random
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import default
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.broker.app.errors import InvalidRequestError
from graphmatch.broker.models.attempt import (
    FAILURES,
    OPEN_SECONDS,
    OPEN_SECONDS_MOST,
    AttemptResult,
    CircuitBreaker,
    RetryDecision,
    next_try,
)
from graphmatch.broker.models.webhook_secret import key_of, new_secret
from graphmatch.broker.outbox.dispatcher import NTFY_BYTES, NetworkSenders
from graphmatch.broker.outbox.email_sender import LINE_CHARACTERS, SmtpServer, checked_mailbox
from graphmatch.broker.outbox.payloads import Message
from graphmatch.broker.outbox.safe_http import (
    REPLY_BYTES,
    ForbiddenAddressError,
    HttpClient,
    Reply,
    TransportError,
    UnreachableError,
    is_forbidden,
)
from tests.graphmatch.broker.harness import (
    LOOPBACK,
    Receiver,
    Smtp,
    hang,
    receivers,
    status,
    talking,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = new_secret()

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
        "name": "Floods",
        "title": "Water rises",
        "text": "The river is high.\nStay away.",
        "body": b'{"type":"match","data":{"x":"\xc3\xa9"}}',
        "created": NOW,
        "link": "https://example.org/a",
    }
    return Message(**{**values, **changes})


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


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient(LOOPBACK) as made:
        yield made


async def post(to: Receiver, http: HttpClient, host: str = "127.0.0.1") -> AttemptResult:
    """Send a message to a webhook."""
    return await NetworkSenders(http).send(webhook(to.url(host=host)), message())


def webhook(url: str) -> dict[str, str]:
    return {"kind": "webhook", "url": url, "secret": SECRET}


def topic(hook: Receiver, **more: str) -> dict[str, str]:
    return {"kind": "ntfy", "url": hook.url("/topic"), **more}


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
async def test_nothing_is_sent_to_a_forbidden_address(hook: Receiver, host: str) -> None:
    async with HttpClient(total_seconds=1) as http:
        with pytest.raises(ForbiddenAddressError):
            await http.request("GET", hook.url(host=host), redirects=5)
        outcome = await post(hook, http, host)
    assert (outcome.decision, outcome.status) == (RetryDecision.REFUSED, None)
    assert not hook.got


PUBLIC = ["8.8.8.8", "1.1.1.1", "192.0.1.1", "172.32.0.1", "100.128.0.1", "223.255.255.254"]
PUBLIC_6 = ["2606:4700:4700::1111", "2a00:1450:4001::1", "2400::1", "2001:200::1", "2003::1"]


@pytest.mark.parametrize("text", [*PUBLIC, *PUBLIC_6, "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_public_addresses_are_allowed(text: str) -> None:
    assert not is_forbidden(ip_address(text))


@given(st.ip_addresses())
def test_only_global_addresses_are_allowed(address: IPv4Address | IPv6Address) -> None:
    if not is_forbidden(address):
        assert address.is_global
        assert not address.is_multicast


@given(st.ip_addresses(v=4) | st.sampled_from([ip_address(one) for one in PUBLIC]))
def test_an_embedded_address_is_checked_like_the_address_itself(address: IPv4Address) -> None:
    number = int(address)
    for prefix in ("::ffff:0:0", "64:ff9b::"):
        assert is_forbidden(IPv6Address(int(IPv6Address(prefix)) + number)) == is_forbidden(address)
    teredo = int(IPv6Address("2001::")) + (number ^ 0xFFFFFFFF)
    six_to_four = int(IPv6Address("2002::")) + (number << 80)
    for other in (number, teredo, six_to_four):
        assert is_forbidden(IPv6Address(other))


async def test_a_name_that_resolves_to_another_address_later_is_refused(hook: Receiver) -> None:
    names = Names(["93.184.216.34"], ["127.0.0.1"])
    [checked] = await names.resolve("rebind.example")
    assert not is_forbidden(ip_address(checked["host"]))
    async with HttpClient(resolver=names) as http:
        outcome = await post(hook, http, "rebind.example")
    assert outcome.decision is RetryDecision.REFUSED
    said = "nothing is sent to 127.0.0.1, which is not public, without --allow 127.0.0.0/8"
    assert outcome.reason == said
    assert not hook.got


@pytest.mark.parametrize(
    ("addresses", "allow", "decision", "host_failed"),
    [
        (["127.0.0.2", "::ffff:127.0.0.1"], [], RetryDecision.REFUSED, False),
        (["127.0.0.2", "10.0.0.1"], [], RetryDecision.REFUSED, False),
        (["127.0.0.2", "::1"], [], RetryDecision.REFUSED, False),
        (["127.0.0.2", "127.0.0.1"], ["127.0.0.1/32"], RetryDecision.DELIVERED, False),
        # One of the addresses may answer later.
        (["127.0.0.2", "127.0.0.3", "10.0.0.1"], ["127.0.0.3/32"], RetryDecision.RETRY, True),
    ],
)
async def test_only_the_allowed_addresses_of_a_name_are_used(
    hook: Receiver,
    addresses: list[str],
    allow: list[str],
    decision: RetryDecision,
    host_failed: bool,
) -> None:
    async with HttpClient(allow, resolver=Names(addresses)) as http:
        outcome = await post(hook, http, "names.example")
    assert (outcome.decision, outcome.host_failed) == (decision, host_failed)
    assert len(hook.got) == (decision is RetryDecision.DELIVERED)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "file:///etc/passwd",
        "unix:///run/docker.sock",
        "/hook",
        "",
        "https://ann:word@example.org/",
        "https://ann@example.org/",
        "https:///hook",
        "https://example.org:0/",
        "https://a..example/",
        f"https://{'a' * 64}.example/",
        "https://exa mple.org/",
        "https://example.org:99999/",
        "https://[::1/",
        "https://example.org\\@127.0.0.1/",
    ],
)
async def test_an_invalid_url_is_refused(url: str) -> None:
    async with HttpClient(["0.0.0.0/0"]) as http:
        with pytest.raises(ForbiddenAddressError) as caught:
            await http.request("GET", url)
    assert caught.value.problem.what == "the URL cannot be used"
    assert "word" not in str(caught.value)
    assert caught.value.problem.remedy


@pytest.mark.parametrize("host", ["10.0.0.1", "[::ffff:10.0.0.1]"])
def test_a_forbidden_address_in_a_url_is_refused_at_once(host: str) -> None:
    with pytest.raises(ForbiddenAddressError, match="which is not public"):
        HttpClient().check(f"https://{host}/")
    assert HttpClient(["10.0.0.0/24"]).check(f"https://{host}/").path == "/"


async def test_proxies_and_passwords_of_the_environment_are_not_used(
    hook: Receiver, http: HttpClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ann password word\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await post(hook, http)).decision is RetryDecision.DELIVERED
    assert "Authorization" not in hook.got[0].headers


# --- Redirects -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status_", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "to", ["/other", "http://169.254.169.254/", "//127.0.0.2/", "https://a.b/"]
)
async def test_a_delivery_follows_no_redirect(
    hook: Receiver, http: HttpClient, status_: int, to: str
) -> None:
    hook.answer = status(status_, Location=to)
    outcome = await post(hook, http)
    assert (outcome.decision, outcome.status) == (RetryDecision.RETRY, status_)
    assert outcome.reason.endswith("redirects are not followed")
    assert not outcome.host_failed
    assert len(hook.got) == 1


async def follow(hook: Receiver, *steps: str, redirects: int = 5, **more: Any) -> Reply:
    """Follow redirects along some URLs; ``PORT`` in one is the server's port."""

    async def redirect(request: web.Request) -> web.StreamResponse:
        number = int(request.path.strip("/") or 0)
        if number == len(steps):
            return web.Response(text="there")
        to = steps[number].replace("PORT", str(hook.port))
        return web.Response(status=301, headers={"Location": to})

    hook.answer = redirect
    async with HttpClient(["127.0.0.1/32"]) as http:
        return await http.request("GET", hook.url("/0"), redirects=redirects, **more)


async def test_a_feed_follows_redirects(hook: Receiver) -> None:
    reply = await follow(hook, "/1", "2?x=1", "//localhost:PORT/3")
    assert (reply.status, reply.body, reply.truncated) == (200, b"there", False)
    assert reply.url == hook.url("/3", "localhost")
    hops = [hook.url("/1"), hook.url("/2?x=1"), reply.url]
    assert reply.hops == tuple((301, hop) for hop in hops)


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
async def test_each_hop_is_checked(hook: Receiver, to: str) -> None:
    with pytest.raises(ForbiddenAddressError):
        await follow(hook, to)


async def test_the_number_of_redirects_is_limited(hook: Receiver) -> None:
    reply = await follow(hook, "/0", redirects=3)
    assert (reply.status, len(reply.hops), len(hook.got)) == (301, 3, 4)
    with pytest.raises(UnreachableError, match="leads to no URL"):
        await follow(hook, "http://[::1")
    with pytest.raises(UnreachableError, match="leads to no URL"):
        await follow(hook, "https://[::1]@")


@pytest.mark.parametrize("status_", [301, 302, 303])
async def test_a_post_is_not_repeated_at_another_address(
    hook: Receiver, http: HttpClient, status_: int
) -> None:
    hook.answer = status(status_, Location=hook.url("/other"))
    reply = await http.request("POST", hook.url(), body=b"secret", redirects=5)
    assert (reply.status, len(hook.got)) == (status_, 1)


# --- Responses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "decision", "host_failed"),
    [
        (200, RetryDecision.DELIVERED, False),
        (202, RetryDecision.DELIVERED, False),
        (299, RetryDecision.DELIVERED, False),
        (400, RetryDecision.RETRY, False),
        (404, RetryDecision.RETRY, False),
        (410, RetryDecision.GONE, False),
        (429, RetryDecision.RETRY, True),
        (500, RetryDecision.RETRY, True),
        (503, RetryDecision.RETRY, True),
        (999, RetryDecision.RETRY, True),
    ],
)
async def test_the_status_decides_about_a_retry(
    hook: Receiver, http: HttpClient, code: int, decision: RetryDecision, host_failed: bool
) -> None:
    hook.answer = status(code)
    outcome = await post(hook, http)
    assert (outcome.decision, outcome.status) == (decision, code)
    assert outcome.host_failed is host_failed
    assert outcome.reason.startswith(str(code))
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
@pytest.mark.parametrize("code", [429, 503, 500])
async def test_retry_after_is_read(
    hook: Receiver, http: HttpClient, code: int, value: str, seconds: float | None
) -> None:
    hook.answer = status(code, Retry_After=value)
    outcome = await NetworkSenders(http, clock=lambda: NOW).send(webhook(hook.url()), message())
    wait = None if seconds is None else timedelta(seconds=seconds)
    assert outcome.retry_after == wait


async def test_a_reason_is_short_and_has_no_secrets(hook: Receiver, http: HttpClient) -> None:
    async def repeat(request: web.Request) -> web.StreamResponse:
        sent = request.headers
        secrets = f"{sent.get('webhook-signature')} {sent.get('Authorization')} {SECRET}"
        return web.Response(status=500, text=f"no,\r\n\x00 {secrets} " + "x" * 9999)

    hook.answer = repeat
    ntfy = await NetworkSenders(http).send(topic(hook, token="tk_secret"), message())
    for outcome, own in ((await post(hook, http), SECRET), (ntfy, "tk_")):
        assert outcome.reason.startswith("500 Internal Server Error: no, ")
        assert len(outcome.reason) < LINE_CHARACTERS + 40
        assert own not in outcome.reason
        assert outcome.reason.isprintable()


async def test_a_slow_server_is_tried_again(hook: Receiver) -> None:
    hook.answer = hang
    async with HttpClient(LOOPBACK, total_seconds=0.2) as http:
        outcome = await post(hook, http)
    assert outcome.seconds >= 0.2
    assert outcome.decision is RetryDecision.RETRY
    assert outcome.reason == "there was no whole answer within 0.2 seconds"
    assert outcome.host_failed


async def test_a_body_that_never_ends_counts_as_delivered() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with talking(drip) as port, HttpClient(LOOPBACK, total_seconds=0.3) as http:
        url = f"http://127.0.0.1:{port}/"
        with pytest.raises(UnreachableError):
            await http.request("GET", url)
        outcome = await NetworkSenders(http).send(webhook(url), message())
    assert outcome.decision is RetryDecision.DELIVERED, "the status says so"


@pytest.mark.parametrize("limit", [0, 1, REPLY_BYTES, 100_000])
async def test_a_huge_body_is_truncated(hook: Receiver, http: HttpClient, limit: int) -> None:
    sent = 0

    async def pour(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(10_000):
            await response.write(b"x" * 100_000)
            sent += 100_000
        return response

    hook.answer = pour
    reply = await http.request("GET", hook.url(), limit=limit)
    assert (len(reply.body), reply.truncated) == (limit, True)
    assert sent < 50_000_000


async def test_a_body_is_truncated_after_decompression(hook: Receiver, http: HttpClient) -> None:
    hook.answer = status(200, gzip.compress(bytes(10_000_000)), Content_Encoding="gzip")
    small = await http.request("GET", hook.url(), limit=1000)
    assert (len(small.body), small.truncated) == (1000, True)
    large = await http.request("GET", hook.url(), limit=20_000_000)
    assert (len(large.body), large.truncated) == (10_000_000, False)


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send headers without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-A: " + b"a" * 4000 + b"\r\n")
        await writer.drain()
        await asyncio.sleep(0.001)


async def speak_ssh(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    await reader.read()


@pytest.mark.parametrize(
    ("talk", "reason"),
    [
        (reset, "the connection failed: Connection reset by peer"),
        (leave, "the connection was closed"),
        (speak_ssh, "the answer is not valid HTTP"),
        (drip, "the answer is not valid HTTP"),
    ],
)
async def test_a_broken_connection_is_tried_again(talk: Any, reason: str) -> None:
    async with talking(talk) as port, HttpClient(LOOPBACK, total_seconds=1) as http:
        url = f"http://127.0.0.1:{port}/secret-path"
        outcome = await NetworkSenders(http).send(webhook(url), message())
    assert (outcome.decision, outcome.status, outcome.reason) == (RetryDecision.RETRY, None, reason)
    assert outcome.host_failed


async def test_a_host_that_cannot_be_reached_is_named(http: HttpClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(UnreachableError, match="Connection refused"):
        await http.request("GET", f"http://127.0.0.1:{port}/")
    async with HttpClient(resolver=Names([])) as nowhere:
        outcome = await NetworkSenders(nowhere).send(webhook("https://nowhere.example/"), message())
    assert outcome.decision is RetryDecision.RETRY
    assert outcome.reason == "the host's name cannot be looked up"


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS contexts of a server and of a client that trusts it."""
    path = tmp_path / "both.pem"
    path.write_text(KEY + CERTIFICATE, encoding="ascii")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cadata=CERTIFICATE)


async def test_certificates_are_verified(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async with receivers(tls=tls[0]) as [server], receivers() as [plain]:
        async with HttpClient(LOOPBACK, tls=tls[1]) as http:
            assert (await post(server, http)).decision is RetryDecision.DELIVERED
        async with HttpClient(LOOPBACK) as http:
            outcome = await post(server, http)
            with pytest.raises(UnreachableError, match="no TLS connection"):
                await http.request("GET", plain.url().replace("http:", "https:"))
    assert outcome.decision is RetryDecision.RETRY
    assert outcome.reason.startswith("the host's certificate is not trusted: self")


# --- Signatures ----------------------------------------------------------------------------------


async def test_signatures_are_those_of_standard_webhooks(hook: Receiver, http: HttpClient) -> None:
    for id in ("dlv_1", "dlv_1", "2"):
        outcome = await NetworkSenders(http).send(webhook(hook.url()), message(id=id))
        assert outcome.decision is RetryDecision.DELIVERED
    assert [one.id for one in hook.got] == ["dlv_1", "dlv_1", "2"]
    for one in hook.got:
        assert one.method == "POST"
        assert one.headers["Content-Type"] == "application/json"
        assert one.headers["User-Agent"].startswith("graphmatch/")
        headers = dict(one.headers)
        signed = f"{one.id}.{headers['webhook-timestamp']}.".encode() + one.body
        code = hmac.new(base64.b64decode(SECRET.removeprefix("whsec_")), signed, "sha256").digest()
        assert headers["webhook-signature"] == f"v1,{base64.b64encode(code).decode()}"
        receiver = standardwebhooks.Webhook(SECRET)
        assert receiver.verify(one.body, headers) == json.loads(message().body)
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            standardwebhooks.Webhook(new_secret()).verify(one.body, headers)


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "AAAA" * 8, "whsec_" + "!" * 40, "whsec_" + "A" * 28, "whsec_" + "A" * 88],
)
def test_an_invalid_secret_is_refused(secret: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        key_of(secret)
    assert len(secret) < 7 or secret[6:] not in str(caught.value)


# --- ntfy ----------------------------------------------------------------------------------------


async def test_ntfy_gets_a_message_with_headers(hook: Receiver, http: HttpClient) -> None:
    outcome = await NetworkSenders(http).send(topic(hook, token="tk_1"), message())
    assert outcome.decision is RetryDecision.DELIVERED
    [one] = hook.got
    assert (one.method, one.path, one.body.decode()) == ("POST", "/topic", message().text)
    names = ("Title", "Click", "Authorization", "webhook-signature")
    assert {name: one.headers.get(name) for name in names} == {
        "Title": "Water rises",
        "Click": "https://example.org/a",
        "Authorization": "Bearer tk_1",
        "webhook-signature": None,
    }


async def test_hostile_texts_add_no_headers_to_ntfy(hook: Receiver, http: HttpClient) -> None:
    hostile = message(
        title="Überschwemmung\r\nTags: skull\x00\u2028\ud800",
        text="ä" * 5000 + "\ud800",
        link="https://example.org/\r\nTags: skull",
    )
    outcome = await NetworkSenders(http).send(topic(hook), hostile)
    assert outcome.decision is RetryDecision.DELIVERED
    [one] = hook.got
    assert not {"Tags", "Authorization"} & set(one.headers)
    assert "Click" not in one.headers
    assert one.headers["Title"] == "Überschwemmung Tags: skull ?"
    assert len(one.body) <= NTFY_BYTES
    assert one.body.decode().startswith("äää")
    assert one.body.decode().endswith("ä")


async def test_ntfy_opens_only_web_addresses(hook: Receiver, http: HttpClient) -> None:
    await NetworkSenders(http).send(topic(hook), message(link="javascript:alert(1)"))
    long = f"https://example.org/{'a' * 300}"
    await NetworkSenders(http).send(topic(hook), message(link=long))
    assert [one.headers.get("Click") for one in hook.got] == [None, long]


# --- Email ---------------------------------------------------------------------------------------


async def send(
    smtp: Smtp,
    sent: Message | None = None,
    *,
    to: str = "ann@example.org",
    server_tls: ssl.SSLContext | None = None,
    **more: Any,
) -> AttemptResult:
    async with talking(smtp.talk, tls=server_tls) as port:
        settings = {"security": "none", "seconds": 5, **more}
        host = "localhost" if more.get("tls") else "127.0.0.1"
        server = SmtpServer(host, "broker@example.com", port, **settings)
        async with HttpClient() as http:
            sink = {"kind": "email", "address": to}
            return await NetworkSenders(http, server).send(sink, sent or message())


def parsed(smtp: Smtp) -> EmailMessage:
    [mail] = smtp.mails
    return email.message_from_bytes(mail[:-3], policy=default)


async def test_an_email_has_its_headers_and_text() -> None:
    smtp, url = Smtp(), "https://broker.example/unsubscribe?key=" + "a_b" * 50
    outcome = await send(smtp, message(unsubscribe=url))
    assert (outcome.decision, outcome.status) == (RetryDecision.DELIVERED, 250)
    mail = parsed(smtp)
    assert (mail["From"], mail["To"]) == ("broker@example.com", "ann@example.org")
    assert mail["Subject"] == "Water rises"
    assert mail["Message-ID"] == "<dlv_1@example.com>"
    assert mail["Date"] == "Fri, 02 Jan 2026 03:04:05 +0000"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert f"\r\nList-Unsubscribe: <{url}>\r\n".encode() in smtp.mails[0], "as one line"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    text = f"{message().text}\n\nhttps://example.org/a\n\n-- \nFloods\nUnsubscribe: {url}\n"
    assert mail.get_content().replace("\r\n", "\n") == text
    assert [line for line in smtp.said if "@" in line] == [
        "mail FROM:<broker@example.com>",
        "rcpt TO:<ann@example.org>",
    ]
    await send(smtp)
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
async def test_hostile_texts_add_no_headers_to_email(text: str) -> None:
    smtp = Smtp()
    hostile = message(title=text, name=text, text=text, link=text, unsubscribe=text)
    assert (await send(smtp, hostile)).decision is RetryDecision.DELIVERED
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


async def test_a_hostile_link_adds_no_header() -> None:
    smtp = Smtp()
    url = "https://broker.example/?x=?utf-8?q?x=0D=0ABcc:_eve=40example.org?="
    await send(smtp, message(unsubscribe=url))
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
async def test_an_invalid_email_address_is_refused(address: str) -> None:
    with pytest.raises(TransportError, match="it is not an e-mail address"):
        checked_mailbox(address)
    outcome = await send(smtp := Smtp(), to=address)
    assert (outcome.decision, smtp.mails) == (RetryDecision.REFUSED, [])


@pytest.mark.parametrize(
    ("command", "says", "decision", "host_failed"),
    [
        ("RCPT", "550 5.1.1 nobody here", RetryDecision.REFUSED, False),
        ("RCPT", "450 later", RetryDecision.RETRY, False),
        ("RCPT", "421 closing", RetryDecision.RETRY, True),
        ("MAIL", "451 later", RetryDecision.RETRY, False),
        ("MAIL", "530 no", RetryDecision.REFUSED, False),
        ("text", "554 spam", RetryDecision.REFUSED, False),
        ("text", "452 full", RetryDecision.RETRY, False),
        ("DATA", "451 later", RetryDecision.RETRY, False),
        ("greeting", "554 no", RetryDecision.RETRY, True),
        ("text", "leave", RetryDecision.RETRY, True),
        ("RCPT", "leave", RetryDecision.RETRY, True),
        ("RCPT", "silence", RetryDecision.RETRY, True),
        ("QUIT", "500 what", RetryDecision.DELIVERED, False),
        ("QUIT", "silence", RetryDecision.DELIVERED, False),
        ("QUIT", "leave", RetryDecision.DELIVERED, False),
    ],
)
async def test_answers_of_smtp_decide_about_a_retry(
    command: str, says: str, decision: RetryDecision, host_failed: bool
) -> None:
    outcome = await send(Smtp({command: says}), seconds=0.3 if says == "silence" else 5)
    assert (outcome.decision, outcome.host_failed) == (decision, host_failed)
    if says[0].isdigit() and decision is not RetryDecision.DELIVERED:
        assert outcome.status == int(says[:3])
        assert says[4:] in outcome.reason
    elif decision is RetryDecision.RETRY:
        assert outcome.reason.startswith("the SMTP server")


async def test_email_is_sent_over_tls(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server, client = tls
    login = {"user": "broker", "password": "hunter2"}
    smtp = Smtp(upgrade=server)
    outcome = await send(smtp, security="starttls", tls=client, **login)
    assert outcome.decision is RetryDecision.DELIVERED, outcome
    verbs = [line.partition(" ")[0].upper() for line in smtp.said]
    assert verbs == ["EHLO", "STARTTLS", "EHLO", "AUTH", "MAIL", "RCPT", "DATA", "QUIT"]
    smtp = Smtp()
    outcome = await send(smtp, security="tls", tls=client, server_tls=server, **login)
    assert outcome.decision is RetryDecision.DELIVERED
    assert smtp.mails
    refusing = Smtp({"AUTH": "535 wrong: hunter2"})
    outcome = await send(refusing, security="tls", tls=client, server_tls=server, **login)
    assert (outcome.decision, outcome.status) == (RetryDecision.RETRY, 535)
    assert "wrong: …" in outcome.reason


async def test_no_email_is_sent_without_the_requested_tls(
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    # One has no TLS, the other an untrusted certificate.
    for smtp in (Smtp(), Smtp(upgrade=tls[0])):
        outcome = await send(smtp, security="starttls", user="broker", password="hunter2")
        assert (outcome.decision, outcome.host_failed) == (RetryDecision.RETRY, True)
        assert not smtp.mails
        assert not any(line.startswith("AUTH") for line in smtp.said)
    outcome = await send(smtp := Smtp(), security="tls", server_tls=tls[0])
    assert (outcome.decision, smtp.mails) == (RetryDecision.RETRY, [])
    assert "self" in outcome.reason
    with pytest.raises(TransportError, match="without TLS"):
        SmtpServer("127.0.0.1", "broker@example.com", security="none", user="broker")
    server = SmtpServer("127.0.0.1", "broker@example.com", user="broker", password="hunter2")
    assert "hunter2" not in repr(server)


async def test_addresses_in_other_scripts_need_smtputf8() -> None:
    smtp = Smtp(extensions=("SMTPUTF8", "8BITMIME"))
    assert (await send(smtp, to="jörg@example.org")).decision is RetryDecision.DELIVERED
    assert parsed(smtp)["To"] == "jörg@example.org"
    smtp = Smtp()
    result = await send(smtp, to="jörg@example.org")
    assert (result.decision, result.host_failed) == (RetryDecision.REFUSED, False)
    assert not smtp.mails


# --- Retries -------------------------------------------------------------------------------------

FAILED = AttemptResult(RetryDecision.RETRY, "503", 503, host_failed=True)
TAKEN = AttemptResult(RetryDecision.DELIVERED, "204", 204)


def test_a_retry_waits_for_its_schedule_or_for_retry_after() -> None:
    first = {next_try(3, FAILED, NOW, random.Random(seed)) for seed in range(20)}
    assert len(first) == 20
    assert next_try(3, FAILED, NOW, random.Random(1)) == next_try(3, FAILED, NOW, random.Random(1))
    asked = AttemptResult(RetryDecision.RETRY, "429", 429, retry_after=timedelta(hours=1))
    assert next_try(1, asked, NOW, random.Random(1)) == NOW + timedelta(hours=1)
    later = next_try(9, asked, NOW, random.Random(1))
    assert later is not None
    assert later > NOW + timedelta(hours=20)
    for decision in (RetryDecision.DELIVERED, RetryDecision.GONE, RetryDecision.REFUSED):
        assert next_try(1, AttemptResult(decision, ""), NOW, random.Random(1)) is None


def seconds(number: float) -> datetime:
    return NOW + timedelta(seconds=number)


def opened(failures: int = FAILURES) -> CircuitBreaker:
    breaker = CircuitBreaker()
    for _ in range(failures):
        breaker = breaker.after(FAILED, NOW)
    return breaker


def test_a_breaker_counts_failures_of_the_host_in_a_row() -> None:
    four = opened(FAILURES - 1)
    assert four.after(TAKEN, NOW) == CircuitBreaker(), "failures in a row"
    not_found = AttemptResult(RetryDecision.RETRY, "404", 404)
    assert four.after(not_found, NOW) == CircuitBreaker(), "the host answers"
    assert four.after(AttemptResult(RetryDecision.GONE, "410", 410), NOW) == CircuitBreaker()
    assert four.after(AttemptResult(RetryDecision.REFUSED, "10.0.0.1"), NOW) == four, (
        "nothing was sent"
    )
    assert four.after(AttemptResult(RetryDecision.REFUSED, "550", 550), NOW) == CircuitBreaker(), (
        "SMTP: it answers"
    )
    wait = timedelta(hours=2)
    asked = AttemptResult(RetryDecision.RETRY, "503", 503, retry_after=wait, host_failed=True)
    assert four.after(asked, NOW).open_until == NOW + wait


def test_a_breaker_is_open_for_longer_after_each_failure() -> None:
    until = [opened(FAILURES + more).open_until for more in range(100)]
    waits = [(one - NOW).total_seconds() for one in until if one is not None]
    assert len(waits) == 100
    assert waits[:4] == [OPEN_SECONDS, 2 * OPEN_SECONDS, 4 * OPEN_SECONDS, 8 * OPEN_SECONDS]
    assert max(waits) == waits[-1] == OPEN_SECONDS_MOST
    assert opened(5000).open_until == seconds(OPEN_SECONDS_MOST)

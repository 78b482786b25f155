"""Local clients need no token, but requests through a proxy need one.

The proxy is Debian's nginx, with its defaults. `test_real_proxies` has the documented settings.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphmatch.broker.api.dependencies import ApiOptions
from graphmatch.cli import app
from graphmatch.command.serve import ServeOptions
from tests.graphmatch.broker.live_broker import NGINX, TURTLE, Answer, Called, Process
from tests.graphmatch.broker.page_client import PageServer, Visitor, item
from tests.waiting import wait

URL = "https://broker.example.org"
DEFAULT = "server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{to}; }} }}"
"""Default settings of nginx: HTTP/1.0, ``Host: 127.0.0.1``, no header that names the client."""
CALLS: Mapping[str, tuple[str, str, object]] = {
    "subscribe": ("POST", "/v1/subscriptions", {"query": "ASK { ?s a <urn:C> }"}),
    "list subscriptions": ("GET", "/v1/subscriptions", None),
    "preview": ("POST", "/v1/subscriptions:preview", {"words": ["climate"]}),
    "publish": ("POST", "/v1/publications", "<urn:a> a <urn:C> ."),
    "read": ("GET", "/v1/publications/1", None),
    "add a feed": ("POST", "/v1/feeds", {"url": "https://e.example/feed"}),
    "list feeds": ("GET", "/v1/feeds", None),
    "export feeds": ("GET", "/v1/feeds.opml", None),
    "metrics": ("GET", "/metrics", None),
    "what if": ("POST", "/v1/ontology:what-if", "<urn:A> <urn:p> <urn:B> ."),
    "health": ("GET", "/v1/subscription-health", None),
    "make a token": ("POST", "/v1/tokens", {"owner": "eve", "scopes": ["admin"]}),
}
PAGES = ("/", "/subscriptions", "/items", "/feeds", "/what-if", "/health", "/deliveries")


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    with PageServer(tmp_path_factory.mktemp("proxy"), filled=False) as made:
        made.publish_item(item("Climate change"))
        yield made


@contextmanager
def allowing(page_server: PageServer, options: ApiOptions) -> Iterator[None]:
    """Change the broker's permissions until the block ends."""
    before = page_server.page.api.options
    page_server.page.api.options = options
    try:
        yield
    finally:
        page_server.page.api.options = before


@dataclass
class Nginx(Called):
    """A client of a running nginx."""

    port: int = 0


@contextmanager
def nginx(folder: Path, server: str, to: int) -> Iterator[Nginx]:
    """Run nginx before a port, until the block ends."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is missing: install Debian's package nginx-light")
    port = _free_port()
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, sites=server.format(port=port, to=to)))
    command = [program, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)]
    with subprocess.Popen(command) as process:
        try:
            wait(lambda: process.poll() is not None or _listens(port))
            assert process.poll() is None, (folder / "error.log").read_text()
            yield Nginx(port)
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def called(to: Called, headers: Mapping[str, str] | None = None) -> dict[str, Answer]:
    """Make all calls without a token; return the responses."""
    answers = {}
    for name, (method, path, body) in CALLS.items():
        kind = TURTLE if method == "POST" and isinstance(body, str) else {}
        answers[name] = to.call(method, path, body, {**kind, **(headers or {})})  # type: ignore[arg-type]
    return answers


def allowed(answers: Mapping[str, Answer]) -> set[str]:
    assert not [one for one in answers.values() if one.status >= 500]
    return {name for name, one in answers.items() if one.status not in (401, 403, 421)}


def check_pages_ask_for_a_token(port: int, **headers: str) -> None:
    for path in PAGES:
        answer = Visitor(port).get(path, **headers)
        assert answer.status == 303, path
        assert answer.headers["location"].startswith("/login")
    assert Visitor(port).get("/login", **headers).status == 200


# -- Without nginx ------------------------------------------------------------------------------


def test_local_clients_need_no_token(page_server: PageServer) -> None:
    answers = called(page_server)
    assert allowed(answers) == CALLS.keys() - {"make a token"}
    assert all(Visitor(page_server.port).get(path).status == 200 for path in PAGES)


def test_a_local_subscription_belongs_to_the_local_user(page_server: PageServer) -> None:
    """The API and the page list it, and change it without its ticket."""
    made = page_server.call(*CALLS["subscribe"]).json  # type: ignore[arg-type]
    own = f"/v1/subscriptions/{made['id']}"
    listed = page_server.call("GET", "/v1/subscriptions").json["subscriptions"]
    assert made["id"] in [one["id"] for one in listed]
    assert page_server.call("PATCH", own, {"state": "paused"}).status == 200
    visitor = Visitor(page_server.port)
    assert f"/subscriptions/{made['id']}" in visitor.get("/subscriptions").text
    assert visitor.post(f"/subscriptions/{made['id']}/resume", {}).status == 303
    assert page_server.call("DELETE", own).status == 204
    other = {"Authorization": f"Bearer {page_server.token('ada', 'subscribe')}"}
    theirs = page_server.call(*CALLS["subscribe"], other).json  # type: ignore[arg-type]
    assert page_server.call("GET", f"/v1/subscriptions/{theirs['id']}").status == 404


def test_local_publications_are_listed_with_those_of_feeds(page_server: PageServer) -> None:
    sent = page_server.call("POST", "/v1/publications", "<urn:a> a <urn:C> .", TURTLE)
    listed = page_server.call("GET", "/v1/publications").json["contains"]
    seqs = [int(one.rpartition("/")[2]) for one in listed]
    assert {1, sent.json["publications"][0]["seq"]} <= {*seqs}  # The first has no owner.


@pytest.mark.parametrize(
    "header",
    [
        *("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Server"),
        *("Forwarded", "X-Real-IP", "Via", "CF-Connecting-IP", "X_Forwarded_For", "X-Forwarded"),
        *("X-Cluster-Client-IP", "X-Original-Forwarded-For", "CDN-Loop", "Client-IP", "CF-Ray"),
    ],
)
def test_forwarded_requests_need_a_token(page_server: PageServer, header: str) -> None:
    headers = {header: "127.0.0.1"}
    answers = called(page_server, headers)
    assert allowed(answers) == set()
    said = answers["subscribe"].json
    assert said["what"] == (
        "this needs a token for 'subscribe': the request came through a proxy, "
        f"which added the header {header.lower()}"
    )
    assert "graphmatch serve --new-token OWNER:SCOPE" in said["remedy"]
    check_pages_ask_for_a_token(page_server.port, **headers)
    login = Visitor(page_server.port).get("/login", **headers).text
    assert f"which added the header {header.lower()}" in login
    assert "--new-token" in login


def test_forwarded_requests_are_answered_with_a_token(page_server: PageServer) -> None:
    token = page_server.token("ada", "publish", "subscribe", "feeds")
    headers = {"X-Forwarded-For": "192.0.2.1", "Authorization": f"Bearer {token}"}
    refused = CALLS.keys() - allowed(called(page_server, headers))
    assert refused == {"metrics", "what if", "make a token"}


def test_old_http_needs_a_token(page_server: PageServer) -> None:
    """nginx before 1.29.7 uses HTTP/1.0 by default, and adds no header."""
    with socket.create_connection(("127.0.0.1", page_server.port), timeout=10) as connection:
        head = f"GET /v1/feeds HTTP/1.0\r\nHost: 127.0.0.1:{page_server.port}\r\n\r\n"
        connection.sendall(head.encode())
        said = b"".join(iter(lambda: connection.recv(65536), b""))
    assert said.split()[1] == b"401"
    assert b"the request uses HTTP/1.0, as a proxy does" in said


def test_a_broker_with_a_public_address_needs_tokens(page_server: PageServer) -> None:
    with allowing(page_server, ApiOptions(local=False, hosts=None, url=URL)):
        answers = called(page_server)
        assert allowed(answers) == set()
        assert "the broker is open to other machines" in answers["publish"].json["what"]
        check_pages_ask_for_a_token(page_server.port)


def test_anonymous_clients_publish_and_subscribe_only(page_server: PageServer) -> None:
    with allowing(page_server, ApiOptions(local=False, anonymous=True, hosts=None)):
        answers = called(page_server)
        assert allowed(answers) == {"subscribe", "publish"}
        check_pages_ask_for_a_token(page_server.port)
        made = answers["subscribe"].json
        ticket, own = (
            {"Authorization": f"Ticket {made['ticket']}"},
            f"/v1/subscriptions/{made['id']}",
        )
        for path in (own, f"{own}/matches", f"{own}/deliveries"):
            assert page_server.call("GET", path, headers=ticket).status == 200
            assert page_server.call("GET", path).status == 401
    listed = page_server.call("GET", "/v1/subscriptions").json["subscriptions"]
    assert made["id"] not in [one["id"] for one in listed]
    assert Visitor(page_server.port).get(f"/subscriptions/{made['id']}").status == 404


@pytest.mark.parametrize("options", [ApiOptions(local=False), ApiOptions()])
def test_no_endpoint_is_forgotten(page_server: PageServer, options: ApiOptions) -> None:
    """Each documented endpoint refuses clients without a token, a ticket or a key."""
    bodies: dict[str, object] = {path: body for _, path, body in CALLS.values() if body}
    bodies |= {
        "/v1/subscriptions:backtest": {"words": ["a"]},
        "/v1/subscriptions/{id}": {"name": "a"},
        "/v1/subscriptions/{id}/replay": {"since": 0},
    }
    bodies |= {"/v1/publications/{seq}/query": {"facts": ["a"]}}
    answered = set()
    with allowing(page_server, options):
        paths = page_server.call("GET", "/openapi.json").json["paths"]
        assert len(paths) > 25
        for template, methods in paths.items():
            path = re.sub(r"\{seq\}|\{number\}", "1", template.replace("{format}", "atom"))
            path = path.replace("{id}", "a")
            for method in map(str.upper, methods):
                body = bodies.get(template) if method in ("PATCH", "POST") else None
                headers = {"X-Forwarded-For": "192.0.2.1"} | (TURTLE if type(body) is str else {})
                answer = page_server.call(method, f"{path}?publication=1", body, headers)  # type: ignore[arg-type]
                if answer.status != 401:
                    answered.add((method, template))
    open_to_all = {("GET", path) for path in ("/", "/healthz", "/readyz")}
    link = "/v1/subscriptions/{id}/link"  # With a key.
    open_to_all |= {("GET", link), ("POST", link)}
    assert answered == {*open_to_all, ("OPTIONS", "/v1/publications")}


def test_what_if_on_the_page_needs_an_admin(
    page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(type(page_server.page.api.insight), "what_if", lambda *_: asked.append(1))
    with allowing(page_server, ApiOptions(local=False, hosts=None)):
        for scopes, status in ((("subscribe", "feeds"), 403), (("admin",), 200)):
            visitor = Visitor(page_server.port)
            visitor.post("/login", {"token": page_server.token("ada", *scopes)})
            assert visitor.get("/what-if").status == status
            assert ("What if" in visitor.get("/").all("//nav/a")) == (status == 200)
            if status == 403:
                refused = visitor.upload("/what-if", ontology=("a.ttl", b"<urn:a> a <urn:b> ."))
                assert refused.status == 403
    assert asked == []


def test_only_local_brokers_need_no_token() -> None:
    assert ServeOptions().trusts_local
    assert ServeOptions(url="http://localhost:8080").trusts_local
    assert ServeOptions(host="::1", url="http://[::1]:8080/").trusts_local
    assert not ServeOptions(url=URL).trusts_local
    assert not ServeOptions(url="http://192.168.1.7:8080").trusts_local
    assert not ServeOptions(host="0.0.0.0", public=True, url="http://127.0.0.1").trusts_local


@pytest.mark.parametrize(
    "url", ["broker.example.org", "https://", "ftp://a", "http://[::1", "http://a:x"]
)
def test_invalid_addresses_are_refused(tmp_path: Path, url: str) -> None:
    ran = CliRunner().invoke(app, ["serve", "--store", str(tmp_path / "b.db"), "--url", url])
    assert ran.exit_code == 2
    assert "not a web address" in " ".join(ran.output.split())


# -- With nginx ---------------------------------------------------------------------------------


def test_through_nginx_all_need_a_token(page_server: PageServer, tmp_path: Path) -> None:
    """The broker recognizes a proxy without configuration, as far as possible."""
    with nginx(tmp_path, DEFAULT, page_server.port) as proxy:
        assert allowed(called(proxy)) == set()
        check_pages_ask_for_a_token(proxy.port)
        assert proxy.call("GET", "/healthz").status == 200
        forged = {"Origin": f"http://127.0.0.1:{page_server.port}", "Host": "localhost"}
        for origin in (forged["Origin"], "http://localhost"):
            answer = Visitor(proxy.port).post("/feeds", {}, **{**forged, "Origin": origin})
            assert answer.status == 403 or answer.headers["location"].startswith("/login")


def test_a_service_behind_nginx_works_with_tokens(tmp_path: Path) -> None:
    """Every request needs a token with ``--url``; API, page and streams work through nginx."""
    port, outer = _free_port(), {"Host": "broker.example.org"}
    options = ("--url", URL, "--new-token", "ada:subscribe,publish", "--port", str(port))
    store = ("--store", str(tmp_path / "broker.db"))
    with Process(tmp_path, "serve", *store, *options, says="listening at") as broker:
        for headers in ({}, outer):
            assert allowed(called(Nginx(port), headers)) == set()
        named = re.search(r"^ada: (\S+)$", broker.said, re.MULTILINE)
        assert named is not None
        with nginx(tmp_path, DEFAULT, port) as proxy:
            assert allowed(called(proxy, outer)) == set()
            check_all_works(proxy, named[1], outer)


def check_all_works(proxy: Nginx, token: str, outer: dict[str, str]) -> None:
    bearer = {**outer, "Authorization": f"Bearer {token}"}
    made = proxy.call(*CALLS["subscribe"], bearer)  # type: ignore[arg-type]
    assert made.status == 201, made.content
    assert made.json["links"]["self"].startswith(f"{URL}/v1/subscriptions/")
    visitor = Visitor(proxy.port)
    for origin, status in (("https://evil.example", 403), ("null", 403), (URL, 303)):
        answer = visitor.post("/login", {"token": token}, Origin=origin, **outer)
        assert answer.status == status
    assert "; secure" in answer.headers["set-cookie"].lower()
    assert made.json["id"] in visitor.get("/subscriptions", **outer).text
    stream = HTTPConnection("127.0.0.1", proxy.port, timeout=5)
    stream.request("GET", f"/v1/subscriptions/{made.json['id']}/events", None, bearer)
    assert stream.getresponse().readline() == b"retry: 2000\n"
    stream.close()

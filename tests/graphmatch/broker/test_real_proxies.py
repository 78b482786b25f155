"""The real nginx and Caddy in front of the broker, with TLS: default and documented settings."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, HTTPSHandler, Request, build_opener

import pytest
from lxml import html

from tests.graphmatch.broker.live_broker import NGINX, Process
from tests.waiting import wait

DEPLOY = Path(__file__).parents[3] / "docs/deploy"
HOST = "broker.example.org"
NGINX_DEFAULT = """server {
    listen 443 ssl;
    server_name broker.example.org;
    ssl_certificate /etc/ssl/certs/broker.pem;
    ssl_certificate_key /etc/ssl/private/broker.key;
    location / { proxy_pass http://127.0.0.1:8080; }
}"""
CADDY_DEFAULT = "{\n}\nbroker.example.org {\n\treverse_proxy 127.0.0.1:8080\n}\n"
CALLS: tuple[tuple[str, str, str], ...] = (
    ("POST", "/v1/subscriptions", '{"query": "ASK { ?s a <urn:C> }"}'),
    ("GET", "/v1/subscriptions", ""),
    ("POST", "/v1/publications", "{}"),
    ("GET", "/v1/publications", ""),
    ("POST", "/v1/feeds", '{"url": "https://e.example/feed"}'),
    ("GET", "/v1/feeds", ""),
    ("GET", "/metrics", ""),
    ("POST", "/v1/tokens", '{"owner": "eve", "scopes": ["admin"]}'),
)
PAGES = ("/", "/subscriptions", "/items", "/feeds", "/deliveries", "/health")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def replaced(text: str, **parts: str) -> str:
    """Replace parts of settings that tests cannot use; each must be there."""
    for old, new in parts.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@dataclass
class Site:
    """The address of the proxy, its certificate, and the port of the broker."""

    folder: Path
    port: int
    broker: int

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def certificate(self) -> Path:
        return self.folder / "cert.pem"

    @property
    def key(self) -> Path:
        return self.folder / "key.pem"

    def nginx(self, documented: bool) -> tuple[list[str], dict[str, str]]:
        text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8") if documented else NGINX_DEFAULT
        places = {
            "443 ssl": f"127.0.0.1:{self.port} ssl",
            "/etc/ssl/certs/broker.pem": str(self.certificate),
            "/etc/ssl/private/broker.key": str(self.key),
            "127.0.0.1:8080": f"127.0.0.1:{self.broker}",
        }
        if documented:
            places["listen 80;"] = f"listen 127.0.0.1:{free_port()};"
        sites = replaced(text, **places)
        config = self.folder / "nginx.conf"
        config.write_text(NGINX.format(folder=self.folder, sites=sites), encoding="utf-8")
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None:
            pytest.skip("nginx is missing: install Debian's package nginx-light")
        log = str(self.folder / "error.log")
        return [program, "-p", str(self.folder), "-e", log, "-c", str(config)], {}

    def caddy(self, documented: bool) -> tuple[list[str], dict[str, str]]:
        text = (DEPLOY / "Caddyfile").read_text(encoding="utf-8") if documented else CADDY_DEFAULT
        site = f"{HOST}:{self.port} {{\n\ttls {self.certificate} {self.key}\n"
        text = replaced(
            text, **{f"{HOST} {{\n": site, "127.0.0.1:8080": f"127.0.0.1:{self.broker}"}
        )
        options = "{\n\tadmin off\n\tauto_https disable_redirects\n"
        config = self.folder / "Caddyfile"
        config.write_text(re.sub(r"^\{\n", options, text, flags=re.MULTILINE), encoding="utf-8")
        program = shutil.which("caddy")
        if program is None:
            pytest.skip("Caddy is missing: install Debian's package caddy")
        command = [program, "run", "--config", str(config), "--adapter", "caddyfile"]
        return command, {"HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder)}


@contextmanager
def running(command: list[str], environment: Mapping[str, str], site: Site) -> Iterator[None]:
    """Run a proxy until the block ends."""
    log = site.folder / "proxy.log"
    with (
        log.open("wb") as file,
        subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=file, stderr=file
        ) as process,
    ):
        try:
            wait(lambda: process.poll() is not None or listens(site.port))
            assert process.poll() is None, log.read_text()
            yield
        finally:
            process.terminate()


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Browser:
    """A browser with cookies and the certificate, which follows redirects."""

    def __init__(self, site: Site, answers: ExitStack) -> None:
        self._answers = answers
        context = ssl.create_default_context(cafile=str(site.certificate))
        self.cookies, self.site = CookieJar(), site
        self._opener = build_opener(
            HTTPSHandler(context=context), HTTPCookieProcessor(self.cookies)
        )

    def open(
        self, path: str, data: bytes | None = None, method: str | None = None, **headers: str
    ) -> HTTPResponse | HTTPError:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request(self.site.url + path, data, names, method=method)
        try:
            answer: HTTPResponse = self._opener.open(request, timeout=20)
        except HTTPError as error:
            self._answers.enter_context(error)
            return error
        return self._answers.enter_context(answer)

    def log_in(self, token: str) -> html.HtmlElement:
        """Send the form to which a page redirects; return the page after it."""
        answer = self.open("/subscriptions", Accept="text/html")
        assert "/login" in str(answer.geturl())
        (form,) = html.document_fromstring(answer.read()).forms
        form.fields["token"] = token
        data = urlencode(form.form_values()).encode()
        answer = self.open(form.action, data, form.method, Origin=self.site.url, Accept="text/html")
        assert answer.status == 200, answer.read()
        return html.document_fromstring(answer.read())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str]]:
    """Yield the site of a broker that runs as documented, and a token."""
    folder = tmp_path_factory.mktemp("proxies")
    site = Site(folder, free_port(), free_port())
    subject = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    files = ["-keyout", str(site.key), "-out", str(site.certificate)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *files, *subject]
    subprocess.run(command, check=True, capture_output=True)
    store = ("--store", str(folder / "broker.db"), "--port", str(site.broker))
    token = ("--url", site.url, "--new-token", "ada:subscribe,publish")
    with Process(folder, "serve", *store, *token, says="listening at") as broker:
        found = re.search(r"^ada: (\S+)$", broker.said, re.MULTILINE)
        assert found is not None
        yield site, found[1]


@pytest.fixture(params=["nginx", "caddy"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["default", "documented"])
def proxy(
    request: pytest.FixtureRequest,
    kind: str,
    served: tuple[Site, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Site]:
    """Yield the site of a running proxy. The name of the broker resolves to this machine."""
    site, _ = served
    resolve = socket.getaddrinfo

    def local(host: Any, *arguments: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if host == HOST else host, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", local)
    command, environment = getattr(site, kind)(request.param)
    with running(command, environment, site):
        yield site


@pytest.fixture
def browser(proxy: Site) -> Iterator[Browser]:
    with ExitStack() as answers:
        yield Browser(proxy, answers)


def test_a_proxy_lets_nobody_in_without_a_token(browser: Browser) -> None:
    for method, path, body in CALLS:
        kind = "application/json" if path != "/v1/publications" else "application/ld+json"
        answer = browser.open(path, body.encode() or None, method, Content_Type=kind)
        assert answer.status in (401, 403), (method, path)
    for path in PAGES:
        assert "/login" in str(browser.open(path, Accept="text/html").geturl()), path
    assert browser.open("/healthz").status == 200


def test_the_page_logs_in_over_tls_and_its_cookie_is_secure(
    browser: Browser, proxy: Site, served: tuple[Site, str]
) -> None:
    page = browser.log_in(served[1])
    assert page.xpath("//form[contains(@action, 'logout')]")
    assert browser.open("/items", Accept="text/html").geturl() == f"{proxy.url}/items"
    assert [cookie.secure for cookie in browser.cookies] == [True]
    form = urlencode({"token": served[1]}).encode()
    assert browser.open("/login", form, Origin="https://evil.example").status == 403


def test_event_streams_flow_through_a_proxy(
    browser: Browser, proxy: Site, served: tuple[Site, str]
) -> None:
    bearer = f"Bearer {served[1]}"
    body = b'{"query": "SELECT ?s { ?s a <urn:C> }"}'
    made = browser.open(
        "/v1/subscriptions", body, Content_Type="application/json", Authorization=bearer
    )
    assert made.status == 201
    stream = browser.open(
        f"{made.headers['Location'].removeprefix(proxy.url)}/events", Authorization=bearer
    )
    assert stream.readline() == b"retry: 2000\n"
    turtle = {"Content_Type": "text/turtle", "Authorization": bearer}
    assert browser.open("/v1/publications", b"<urn:a> a <urn:C> .", **turtle).status == 202
    lines = iter(stream.readline, b"")
    assert next(line for line in lines if line.startswith(b"event: ")) == b"event: match\n"
    assert b"urn:a" in stream.readline()

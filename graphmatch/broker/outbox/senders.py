"""Senders: each sends one message to one subscriber, once.

A message goes in and an `AttemptResult` comes out. The result decides about a retry. Its reason may
be shown and stored, so it has no secrets, no path of a URL, and only the start of an answer.

Webhooks follow Standard Webhooks 1.0: the body is signed, 2xx is success, 410 pauses the
subscription, and redirects are failures. Users name the URLs, so nothing is sent to addresses that
are not public (`graphmatch.broker.outbox.safe_http`). The operator names the SMTP server, so that
rule does not apply to it.

Delivery is at least once: if an answer is lost, the message is sent again. Receivers recognize it
by its ``webhook-id``, or by the ``Message-ID`` of an email.
"""

from __future__ import annotations

import asyncio
import re
import smtplib
import ssl
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime
from functools import partial
from http import HTTPStatus
from http.client import responses
from typing import Any, Literal
from urllib.parse import urljoin

from pyoxigraph import RdfFormat, parse

from graphmatch.broker.models.attempt import LONGEST_RETRY_AFTER, AttemptResult, RetryDecision
from graphmatch.broker.models.webhook_secret import signed_headers
from graphmatch.broker.outbox.safe_http import (
    HttpClient,
    Reply,
    TransportError,
    UnreachableError,
    retry_after,
)
from graphmatch.broker.outbox.websub_protocol import header_links
from semantic.clock import Clock, utc_now
from semantic.errors import GraphMatchError, Place, Problem

REASON_CHARACTERS = 200
"""Maximum length of an answer's text in a reason."""
SMTP_SECONDS = 20.0
"""Time limit of one answer of the SMTP server, in seconds."""
NTFY_BYTES = 4096
"""Maximum size of a text for ntfy, whose servers turn longer ones into files."""
SUBJECT_CHARACTERS = 200
"""Maximum length of a title in a header."""

_CONTROLS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MAILBOX = re.compile(r"(?!.*=\?)[^\s\x00-\x1f\x7f\"(),:;<>@\[\]\\]{1,64}@[A-Za-z0-9.-]{1,253}")
_LINK = re.compile(r"https?://[!-;=?-~]+")
_INBOX = "http://www.w3.org/ns/ldp#inbox"
_REDIRECTS = 3
_TARGET_BYTES = 200_000
"""Maximum size of a document that may name an inbox."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to a subscriber.

    Parameters
    ----------
    id
        Id of the delivery, the same for each attempt: letters, digits, ``-`` and ``_``.
    name
        Name of the subscription.
    title, text
        Text for people; ``text`` has lines.
    body, content_type
        Payload for programs.
    created
        Time of the first match, with its zone.
    link
        URL of the publication, or of the delivery.
    unsubscribe
        URL that ends the subscription with one click.
    """

    id: str
    name: str
    title: str
    text: str
    created: datetime
    body: bytes = b""
    link: str = ""
    unsubscribe: str | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class HubRequest:
    """A request of the WebSub hub to a callback.

    Parameters
    ----------
    body
        The match feed; ``None`` for the GET of a verification.
    challenge
        Text that the callback must repeat; empty if none is expected.
    version
        Last match of the feed.
    pending
        Request of the subscriber that is verified.
    """

    callback: int
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    challenge: str = ""
    version: int = 0
    pending: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """The SMTP server of the operator.

    Parameters
    ----------
    sender
        Address that email comes from.
    security
        ``starttls`` (port 587), ``tls`` from the first byte (465), or ``none`` for a server on
        this machine. A password is never sent without TLS.
    user, password
        Login; without a user there is none.
    tls
        Trusted certificates; by default, those of the system.
    seconds
        Time limit of one answer.

    Raises
    ------
    TransportError
        If the sender is not an address, or there is a user but no TLS.
    """

    host: str
    sender: str
    port: int = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    seconds: float = SMTP_SECONDS

    def __post_init__(self) -> None:
        checked_mailbox(self.sender)
        if self.user is not None and self.security == "none":
            what = "a password would be sent without TLS"
            raise TransportError(Problem(what, Place("SMTP server"), "Use `starttls` or `tls`."))


@dataclass(frozen=True, slots=True)
class NetworkSenders:
    """The senders of all kinds of sinks.

    Parameters
    ----------
    client
        Client for webhooks, inboxes, ntfy and callbacks.
    smtp
        Server for email; ``None`` if there is none.
    clock
        Time for signatures and for dates in ``Retry-After``.
    """

    client: HttpClient
    smtp: SmtpServer | None = None
    clock: Clock = utc_now

    async def send(self, sink: Mapping[str, Any], message: Message | HubRequest) -> AttemptResult:
        """Send a message once; an error of the receiver or of the sink is a result."""
        begin = time.monotonic()
        try:
            outcome = await self._send(sink, message)
        except UnreachableError as error:
            outcome = AttemptResult(RetryDecision.RETRY, error.problem.what, host_failed=True)
        except GraphMatchError as error:
            outcome = AttemptResult(RetryDecision.REFUSED, error.problem.what)
        return replace(outcome, seconds=time.monotonic() - begin)

    async def _send(self, sink: Mapping[str, Any], message: Message | HubRequest) -> AttemptResult:
        if isinstance(message, HubRequest):
            return await self._call_back(message)
        kind = sink["kind"]
        if kind == "webhook":
            headers = signed_headers(sink["secret"], message.id, self.clock(), message.body)
            headers["Content-Type"] = message.content_type
            return await self._post(sink["url"], message.body, headers, sink["secret"])
        if kind == "inbox":
            inbox = sink.get("inbox") or await inbox_of(self.client, sink["url"])
            headers = {"Content-Type": "application/ld+json", "webhook-id": message.id}
            return replace(await self._post(inbox, message.body, headers), inbox=inbox)
        if kind == "ntfy":
            token = sink.get("token")
            headers = {"Title": _encoded(_line(message.title)), "Content-Type": "text/plain"}
            if _LINK.fullmatch(message.link):
                headers["Click"] = message.link
            if token:
                headers["Authorization"] = f"Bearer {_line(token)}"
            body = message.text.encode("utf-8", "replace")
            if len(body) > NTFY_BYTES:
                body = body[: NTFY_BYTES - 3].decode("utf-8", "ignore").encode() + "…".encode()
            return await self._post(sink["url"], body, headers, token or "")
        if self.smtp is None:
            what, remedy = "the broker has no SMTP server", "Configure one, or use another sink."
            raise TransportError(Problem(what, Place("sink"), remedy))
        return await asyncio.to_thread(_send_email, self.smtp, sink["address"], message)

    async def _post(
        self, url: str, body: bytes, headers: Mapping[str, str], secret: str = ""
    ) -> AttemptResult:
        reply = await self.client.request("POST", url, body=body, headers=headers, whole=False)
        return outcome_of(reply, self.clock(), secret)

    async def _call_back(self, call: HubRequest) -> AttemptResult:
        if call.body is not None:
            return await self._post(call.url, call.body, call.headers)
        reply = await self.client.request("GET", call.url)
        outcome = outcome_of(reply, self.clock())
        if outcome.host_failed:
            return outcome
        is_valid = reply.status < 300 and reply.body == call.challenge.encode()
        if call.challenge and not is_valid:
            reason = "the callback did not confirm the request"
            return AttemptResult(RetryDecision.REFUSED, reason, reply.status)
        return replace(outcome, decision=RetryDecision.DELIVERED)


def outcome_of(reply: Reply, now: datetime, secret: str = "") -> AttemptResult:
    """Return the result that an answer means.

    Parameters
    ----------
    secret
        Text to remove from the answer before it becomes part of the reason.
    """
    status = reply.status
    reason = f"{status} {responses.get(status, '')}".rstrip()
    if 200 <= status < 300:
        return AttemptResult(RetryDecision.DELIVERED, reason, status)
    if 300 <= status < 400:
        reason += ": redirects are not followed"
    elif text := _excerpt(reply.body, secret):
        reason += f": {text}"
    if status == HTTPStatus.GONE:
        return AttemptResult(RetryDecision.GONE, reason, status)
    failed = status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS
    after = None
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        wait = retry_after(reply.headers.get("Retry-After"), now, LONGEST_RETRY_AFTER)
        after = None if wait is None else wait.total_seconds()
    return AttemptResult(RetryDecision.RETRY, reason, status, retry_after=after, host_failed=failed)


# --- Inboxes -------------------------------------------------------------------------------------


async def inbox_of(client: HttpClient, target: str) -> str:
    """Return the inbox that a target names in its ``Link`` or its RDF, or else the target.

    Source: https://www.w3.org/TR/ldn/#discovery.

    Raises
    ------
    ForbiddenAddressError, UnreachableError
        See `HttpClient.request`.
    """
    headers = {"Accept": "text/turtle, application/ld+json;q=0.9"}
    options: dict[str, Any] = {"headers": headers, "limit": _TARGET_BYTES, "redirects": _REDIRECTS}
    for method in ("HEAD", "GET"):
        reply = await client.request(method, target, whole=False, **options)
        for name, to in header_links(reply.headers.getall("Link", [])):
            if name == _INBOX:
                with suppress(ValueError):  # The link is not a URL.
                    return urljoin(reply.url, to)
    syntax = RdfFormat.from_media_type(reply.headers.get("Content-Type", ""))
    if reply.status == HTTPStatus.OK and not reply.truncated and syntax is not None:
        with suppress(SyntaxError, ValueError, OSError):  # The body is not RDF.
            for triple in parse(reply.body, syntax, base_iri=reply.url):
                about = getattr(triple.subject, "value", "").partition("#")[0]
                if triple.predicate.value == _INBOX and about in (target, reply.url):
                    return str(getattr(triple.object, "value", target))
    return target


# --- Email ---------------------------------------------------------------------------------------


def checked_mailbox(address: str) -> str:
    """Return an email address, if it is ``name@host`` and nothing else.

    Raises
    ------
    TransportError
        If it is not an address, several addresses, or an address with a name.

    Examples
    --------
    >>> checked_mailbox("ann@example.org")
    'ann@example.org'
    """
    if not _MAILBOX.fullmatch(address):
        problem = Problem("it is not an e-mail address", Place("email"), "Write `name@host`.")
        raise TransportError(problem)
    return address


class _Policy(EmailPolicy):
    """Python's policy, which would turn a long URL in a header into an encoded word."""

    def fold_binary(self, name: str, value: str) -> bytes:
        if name == "List-Unsubscribe":
            return f"{name}: {value}{self.linesep}".encode("ascii")
        return super().fold_binary(name, value)


_POLICY = _Policy(linesep="\r\n", cte_type="7bit")


def email_of(server: SmtpServer, address: str, message: Message) -> EmailMessage:
    """Return an email. No text of a message can add a header or a recipient."""
    mail = EmailMessage(_POLICY)
    mail["From"], mail["To"] = server.sender, checked_mailbox(address)
    mail["Subject"] = _line(message.title)
    mail["Date"] = format_datetime(message.created.astimezone(UTC))
    mail["Message-ID"] = f"<{message.id}@{server.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    footer = f"\n\n-- \n{_line(message.name)}\n"
    if message.unsubscribe and _LINK.fullmatch(message.unsubscribe):
        mail["List-Unsubscribe"] = f"<{message.unsubscribe.replace('=?', '=%3F')}>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        footer += f"Unsubscribe: {message.unsubscribe}\n"
    link = f"\n\n{message.link}" if message.link else ""
    mail.set_content(f"{message.text}{link}{footer}".encode("utf-8", "replace").decode())
    return mail


def _send_email(server: SmtpServer, address: str, message: Message) -> AttemptResult:
    """Send an email; a refusal of the recipient or the text (5xx) is final."""
    mail, context = email_of(server, address, message), server.tls or ssl.create_default_context()
    connect: type[smtplib.SMTP] | partial[smtplib.SMTP] = smtplib.SMTP
    if server.security == "tls":
        connect = partial(smtplib.SMTP_SSL, context=context)
    try:
        smtp = connect(server.host, server.port, timeout=server.seconds)
        try:
            if server.security == "starttls":
                smtp.starttls(context=context)
            if server.user is not None:
                smtp.login(server.user, server.password)
            smtp.send_message(mail, server.sender, [address])
            with suppress(smtplib.SMTPException, OSError):  # The server has accepted it.
                smtp.quit()
        finally:
            smtp.close()
    except smtplib.SMTPRecipientsRefused as error:
        return _refused(*error.recipients[address], server.password)
    except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
        return _refused(error.smtp_code, error.smtp_error, server.password)
    except (smtplib.SMTPException, OSError) as error:
        reason = f"the SMTP server: {_excerpt(str(error), server.password)}"
        status = getattr(error, "smtp_code", None)
        return AttemptResult(RetryDecision.RETRY, reason, status, host_failed=True)
    return AttemptResult(RetryDecision.DELIVERED, "250 OK", 250)


def _refused(code: int, text: bytes | str, secret: str) -> AttemptResult:
    """Return the result of a refusal: 5xx is final, and 421 is a failure of the server."""
    decision = RetryDecision.REFUSED if code >= 500 else RetryDecision.RETRY
    return AttemptResult(
        decision, f"{code} {_excerpt(text, secret)}", code, host_failed=code == 421
    )


# --- Texts ---------------------------------------------------------------------------------------


def _line(text: str) -> str:
    """Return a text as one line for a header, without line breaks and control characters.

    Encoded words (RFC 2047) are broken, because Python's `email` makes headers of their content, or
    refuses them (CVE-2024-6923).
    """
    line = _CONTROLS.sub(" ", text).strip().replace("=?", "= ?")
    return _short(line, SUBJECT_CHARACTERS).encode("utf-8", "replace").decode()


def _short(line: str, limit: int) -> str:
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _encoded(line: str) -> str:
    """Return a line as an HTTP header: if it is not ASCII, as RFC 2047 defines."""
    if line.isascii():
        return line
    return f"=?UTF-8?B?{b64encode(line.encode()).decode('ascii')}?="


def _excerpt(text: bytes | str, secret: str) -> str:
    """Return the start of an answer as one line without a secret."""
    decoded = text if isinstance(text, str) else text.decode("utf-8", "replace")
    if secret:
        decoded = decoded.replace(secret, "…")
    return _short(_CONTROLS.sub(" ", decoded).strip(), REASON_CHARACTERS)

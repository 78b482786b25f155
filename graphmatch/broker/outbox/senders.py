"""Sends one message to one subscriber, once: by webhook, ntfy or email.

A sender keeps one protocol, `Sender`: a `Message` goes in and an `AttemptResult` comes out, never an
error of the other side. An outcome says whether to try again, and its reason can be shown and kept:
it has no secret, no path of a URL, and little of what the other side said. When to try again, and
whether to spare a host for a while, is `graphmatch.broker.outbox.retry_policy`.

Webhooks keep Standard Webhooks 1.0: the body is signed (`graphmatch.broker.models.webhook_secret`), 2xx is
success, 410 ends it, a redirect is a failure and is not followed. URLs of webhooks and topics are
users': nothing is sent to an address that is not public (`graphmatch.broker.outbox.safe_http`). The SMTP
server is configured by whoever runs the broker, often on this machine; that rule is not for it.

Delivery is at least once: an answer that is lost on its way makes an attempt a failure, and the
message comes again. Receivers know it by ``webhook-id``, or by an email's ``Message-ID``.
"""

from __future__ import annotations

import asyncio
import json
import re
import smtplib
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime
from functools import partial
from http import HTTPStatus
from http.client import responses
from typing import Literal, Protocol
from urllib.parse import urljoin

from pyoxigraph import RdfFormat, parse

from graphmatch.broker.models.attempt import LONGEST_RETRY_AFTER, AttemptResult, RetryDecision
from graphmatch.broker.models.webhook_secret import check_id, signed_headers
from graphmatch.broker.outbox.safe_http import (
    ForbiddenAddressError,
    HttpClient,
    Reply,
    TransportError,
    UnreachableError,
    retry_after,
)
from graphmatch.broker.outbox.websub_protocol import header_links
from semantic.clock import Clock, utc_now
from semantic.errors import Place, Problem

PAYLOAD_BYTES = 20 * 1024
"""A webhook's body has at most so many bytes, see `shortened`."""
REASON_CHARACTERS = 200
"""So much of what the other side says is in a reason."""
SMTP_SECONDS = 20.0
"""So long an SMTP server may be silent."""
NTFY_BYTES = 4096
"""A text for ntfy has at most so many bytes; its servers make a file of a longer one."""
SUBJECT_CHARACTERS = 200
"""So many characters of a title are in a header."""

_CONTROLS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MAILBOX = re.compile(r"(?!.*=\?)[^\s\x00-\x1f\x7f\"(),:;<>@\[\]\\]{1,64}@[A-Za-z0-9.-]{1,253}")
_LINK = re.compile(r"https?://[!-;=?-~]+")
_TAG = re.compile(r"[A-Za-z0-9_+-]+")
_HELD = (429, 503)
_INBOX = "http://www.w3.org/ns/ldp#inbox"
_HOPS = 3
_TARGET_BYTES = 200_000
"""So much is read of what may name its inbox."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a subscriber is told.

    Parameters
    ----------
    id
        Of the delivery, the same at each attempt: letters, digits, ``-`` and ``_``.
    subscription, name
        Its id, and what its owner calls it.
    title, text
        For people; ``text`` has lines.
    payload
        For programs: JSON, see `shortened`.
    created
        When there was something to tell, with its zone.
    link
        Where the publication is.
    unsubscribe
        Where a person can end the subscription.

    Raises
    ------
    SignatureError
        When the id has other characters.
    """

    id: str
    subscription: str
    name: str
    title: str
    text: str
    payload: bytes
    created: datetime
    link: str | None = None
    unsubscribe: str | None = None

    def __post_init__(self) -> None:
        check_id(self.id)


class Sender(Protocol):
    """A way to one subscriber."""

    async def send(self, message: Message) -> AttemptResult:
        """Send a message once; what goes wrong on the way is an outcome, not an error."""


# --- Over HTTP -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WebhookSender:
    """Posts the payload, signed.

    Parameters
    ----------
    url
        The subscriber's.
    secrets
        The one in force; and the one before, while it is being replaced.
    clock
        When it is, for the signature and for dates in ``Retry-After``.
    """

    client: HttpClient
    url: str
    secrets: Sequence[str] = field(repr=False)
    clock: Clock = utc_now

    async def send(self, message: Message) -> AttemptResult:
        """Post the payload, and take any 2xx for a yes.

        Raises
        ------
        SignatureError
            When there is no secret, or it is none.
        """
        headers = signed_headers(self.secrets, message.id, self.clock(), message.payload)
        headers["Content-Type"] = "application/json"
        return await _post(
            self.client, self.url, message.payload, headers, self.clock, self.secrets
        )


@dataclass(frozen=True, slots=True)
class NtfySender:
    """Posts the text to a topic of ntfy (https://docs.ntfy.sh/publish), for phones.

    Parameters
    ----------
    url
        The topic's, such as ``https://ntfy.sh/my-topic``.
    token
        What a topic that is protected asks for.
    tags
        Of each message; others than letters, digits, ``_``, ``+`` and ``-`` are left out.
    clock
        When it is, for dates in ``Retry-After``.
    """

    client: HttpClient
    url: str
    token: str | None = field(default=None, repr=False)
    tags: Sequence[str] = ()
    clock: Clock = utc_now

    async def send(self, message: Message) -> AttemptResult:
        """Post the text, cut to `NTFY_BYTES`."""
        headers = {"Title": _encoded(_line(message.title)), "Content-Type": "text/plain"}
        if tags := [tag for tag in self.tags if _TAG.fullmatch(tag)]:
            headers["Tags"] = ",".join(tags)
        if message.link and _LINK.fullmatch(message.link):
            headers["Click"] = message.link
        if self.token:
            headers["Authorization"] = f"Bearer {_line(self.token)}"
        body = message.text.encode("utf-8", "replace")
        if len(body) > NTFY_BYTES:
            body = body[: NTFY_BYTES - 3].decode("utf-8", "ignore").encode() + "…".encode()
        secrets = [self.token] if self.token else []
        return await _post(self.client, self.url, body, headers, self.clock, secrets)


async def _post(
    client: HttpClient,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    clock: Clock,
    secrets: Sequence[str],
) -> AttemptResult:
    """Post something once, and return what became of it."""
    begin = time.monotonic()
    try:
        reply = await client.request("POST", url, body=body, headers=headers, whole=False)
        outcome = outcome_of(reply, clock(), secrets)
    except ForbiddenAddressError as error:
        outcome = AttemptResult(RetryDecision.REFUSED, error.problem.what)
    except UnreachableError as error:
        outcome = AttemptResult(RetryDecision.RETRY, error.problem.what, host_failed=True)
    return replace(outcome, seconds=time.monotonic() - begin)


def outcome_of(reply: Reply, now: datetime, secrets: Sequence[str] = ()) -> AttemptResult:
    """Return what an answer to a POST means.

    Parameters
    ----------
    secrets
        What is taken out of the answer's text before that becomes part of the reason.
    """
    status = reply.status
    reason = f"{status} {responses.get(status, '')}".rstrip()
    if 200 <= status < 300:
        return AttemptResult(RetryDecision.DELIVERED, reason, status)
    if 300 <= status < 400:
        reason += ": redirects are not followed"
    elif said := _excerpt(reply.body, secrets):
        reason += f": {said}"
    if status == HTTPStatus.GONE:
        return AttemptResult(RetryDecision.GONE, reason, status)
    wait = retry_after(reply.headers.get("Retry-After"), now, LONGEST_RETRY_AFTER)
    after = None if wait is None or status not in _HELD else wait.total_seconds()
    failed = status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS
    return AttemptResult(RetryDecision.RETRY, reason, status, retry_after=after, host_failed=failed)


# --- To an inbox ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InboxSender:
    """Posts the payload, JSON-LD, to an inbox of Linked Data Notifications.

    Parameters
    ----------
    target
        What the subscriber named: an inbox, or something that names its inbox.
    inbox
        What was found before; ``None``: it is looked for.
    found
        Told what was found.
    clock
        When it is, for dates in ``Retry-After``.
    """

    client: HttpClient
    target: str
    inbox: str | None = None
    found: Callable[[str], None] = lambda _: None
    clock: Clock = utc_now

    async def send(self, message: Message) -> AttemptResult:
        """Post the payload, and take any 2xx for a yes."""
        begin = time.monotonic()
        inbox = self.inbox
        if inbox is None:
            try:
                inbox = await inbox_of(self.client, self.target)
            except ForbiddenAddressError as error:
                return AttemptResult(RetryDecision.REFUSED, error.problem.what)
            except UnreachableError as error:
                taken = time.monotonic() - begin
                return AttemptResult(
                    RetryDecision.RETRY, error.problem.what, seconds=taken, host_failed=True
                )
            self.found(inbox)
        headers = {"Content-Type": "application/ld+json", "webhook-id": message.id}
        return await _post(self.client, inbox, message.payload, headers, self.clock, [])


async def inbox_of(client: HttpClient, target: str) -> str:
    """Return the inbox of something: what its ``Link`` says, or its RDF; else it is one itself.

    Source: https://www.w3.org/TR/ldn/#discovery.

    Raises
    ------
    ForbiddenAddressError, UnreachableError
        As `HttpClient.request` has them.
    """
    reply = await client.request("HEAD", target, redirects=_HOPS)
    if inbox := _linked(reply, _INBOX):
        return inbox
    accept = {"Accept": "text/turtle, application/ld+json;q=0.9"}
    reply = await client.request(
        "GET", target, headers=accept, most=_TARGET_BYTES, redirects=_HOPS, whole=False
    )
    if inbox := _linked(reply, _INBOX):
        return inbox
    syntax = RdfFormat.from_media_type(reply.headers.get("Content-Type", ""))
    if reply.status != HTTPStatus.OK or reply.cut or syntax is None:
        return target
    try:
        for triple in parse(reply.body, syntax, base_iri=reply.url):
            about = getattr(triple.subject, "value", "").partition("#")[0]
            if triple.predicate.value == _INBOX and about in (target, reply.url):
                return str(getattr(triple.object, "value", target))
    except (SyntaxError, ValueError, OSError):
        pass  # it is not RDF
    return target


def _linked(reply: Reply, relation: str) -> str | None:
    """Return where a ``Link`` of an answer leads (RFC 8288)."""
    for name, to in header_links(reply.headers.getall("Link", [])):
        if name == relation:
            with suppress(ValueError):  # it is no address
                return urljoin(reply.url, to)
    return None


# --- By email ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """The server that takes the broker's email, as whoever runs the broker configures it.

    Parameters
    ----------
    sender
        The address that email comes from.
    security
        ``starttls`` (port 587), ``tls`` from the first byte (465), or ``none``, for a server on
        this machine; a password is never sent without TLS.
    user, password
        What to log in with; without a user there is no log-in.
    tls
        What certificates to trust; without it, those of the system.
    seconds
        How long it may be silent.

    Raises
    ------
    TransportError
        When the sender is no address, or there is a user and no TLS.
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


def checked_mailbox(address: str) -> str:
    """Return an address of email, if it is one: ``name@host`` and nothing else.

    Raises
    ------
    TransportError
        When it is none, or several, or has a name with it.

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
    """Python's, but for one header: it would make an encoded word of a URL that is long."""

    def fold_binary(self, name: str, value: str) -> bytes:
        if name == "List-Unsubscribe":
            return f"{name}: {value}{self.linesep}".encode("ascii")
        return super().fold_binary(name, value)


_POLICY = _Policy(linesep="\r\n", cte_type="7bit")


@dataclass(frozen=True, slots=True)
class EmailSender:
    """Sends the text to one address, in a thread.

    Parameters
    ----------
    server
        The operator's, which may be on this machine.
    to
        The subscriber's address.

    Raises
    ------
    TransportError
        When the address is none.
    """

    server: SmtpServer
    to: str

    def __post_init__(self) -> None:
        checked_mailbox(self.to)

    async def send(self, message: Message) -> AttemptResult:
        """Send the text; a refusal of the recipient or the text (5xx) is for good."""
        begin = time.monotonic()
        outcome = await asyncio.to_thread(self._send, self.email(message))
        return replace(outcome, seconds=time.monotonic() - begin)

    def email(self, message: Message) -> EmailMessage:
        """Return the email: nothing in a message can add a header to it, or a recipient."""
        mail = EmailMessage(_POLICY)
        mail["From"], mail["To"] = self.server.sender, self.to
        mail["Subject"] = _line(message.title)
        mail["Date"] = format_datetime(message.created.astimezone(UTC))
        mail["Message-ID"] = f"<{message.id}@{self.server.sender.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"
        if message.unsubscribe and _LINK.fullmatch(message.unsubscribe):
            mail["List-Unsubscribe"] = f"<{message.unsubscribe.replace('=?', '=%3F')}>"
        link = f"\n\n{message.link}" if message.link else ""
        text = f"{message.text}{link}\n\n-- \n{_line(message.name)}\n"
        mail.set_content(text.encode("utf-8", "replace").decode())
        return mail

    def _send(self, mail: EmailMessage) -> AttemptResult:
        server = self.server
        try:
            context = server.tls or ssl.create_default_context()
            connect: Callable[..., smtplib.SMTP] = smtplib.SMTP
            if server.security == "tls":
                connect = partial(smtplib.SMTP_SSL, context=context)
            smtp = connect(server.host, server.port, timeout=server.seconds)
            try:
                if server.security == "starttls":
                    smtp.starttls(context=context)
                if server.user is not None:
                    smtp.login(server.user, server.password)
                smtp.send_message(mail, server.sender, [self.to])
                with suppress(smtplib.SMTPException, OSError):  # it was taken already
                    smtp.quit()
            finally:
                smtp.close()
        except smtplib.SMTPRecipientsRefused as error:
            code, said = error.recipients[self.to]
            return self._refused(code, said)
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            return self._refused(error.smtp_code, error.smtp_error)
        except smtplib.SMTPResponseException as error:  # a greeting, or a log-in: not the message
            reason = f"{error.smtp_code} {self._excerpt(error.smtp_error)}"
            return AttemptResult(RetryDecision.RETRY, reason, error.smtp_code, host_failed=True)
        except smtplib.SMTPNotSupportedError as error:
            if mail["To"].isascii():
                return AttemptResult(RetryDecision.RETRY, _line(str(error)), host_failed=True)
            reason = "the SMTP server takes no addresses in other scripts"
            return AttemptResult(RetryDecision.REFUSED, reason)
        except ssl.SSLError as error:
            why = getattr(error, "verify_message", "") or error.reason
            reason = f"no TLS with the SMTP server: {why}"
            return AttemptResult(RetryDecision.RETRY, reason, host_failed=True)
        except TimeoutError:
            reason = f"the SMTP server was silent for {server.seconds:g} seconds"
            return AttemptResult(RetryDecision.RETRY, reason, host_failed=True)
        except (smtplib.SMTPException, OSError) as error:
            kind = getattr(error, "strerror", None) or "the connection was closed"
            return AttemptResult(RetryDecision.RETRY, f"the SMTP server: {kind}", host_failed=True)
        return AttemptResult(RetryDecision.DELIVERED, "250 OK", 250)

    def _refused(self, code: int, said: bytes | str) -> AttemptResult:
        """Return the outcome of a refusal: 5xx is for good, 421 is the server's state."""
        verdict = RetryDecision.REFUSED if code >= 500 else RetryDecision.RETRY
        closing = code == 421
        return AttemptResult(verdict, f"{code} {self._excerpt(said)}", code, host_failed=closing)

    def _excerpt(self, said: bytes | str) -> str:
        data = said.encode() if isinstance(said, str) else said
        return _excerpt(data, [self.server.password] if self.server.password else [])


# --- Texts and payloads --------------------------------------------------------------------------


def _line(text: str) -> str:
    """Return a text as one line for a header: no line breaks, no control characters.

    Nor encoded words (RFC 2047): Python's `email` makes headers of what is in them, or refuses it
    where it has that mended (CVE-2024-6923).
    """
    line = _CONTROLS.sub(" ", text).strip().replace("=?", "= ?")
    if len(line) > SUBJECT_CHARACTERS:
        line = line[: SUBJECT_CHARACTERS - 1] + "…"
    return line.encode("utf-8", "replace").decode()


def _encoded(line: str) -> str:
    """Return a line as a header of HTTP may have it: RFC 2047 where it is not ASCII."""
    if line.isascii():
        return line
    return f"=?UTF-8?B?{b64encode(line.encode()).decode('ascii')}?="


def _excerpt(said: bytes, secrets: Sequence[str]) -> str:
    """Return the start of what another side said, as one line without secrets."""
    text = said.decode("utf-8", "replace")
    for secret in secrets:
        text = text.replace(secret, "…")
    line = _CONTROLS.sub(" ", text).strip()
    return line if len(line) <= REASON_CHARACTERS else line[: REASON_CHARACTERS - 1] + "…"


def shortened(
    payload: Mapping[str, object],
    full: str,
    most: int = PAYLOAD_BYTES,
    lists: Sequence[str] = ("evidence", "solutions"),
) -> bytes:
    """Return a payload as JSON of at most so many bytes.

    What is too large is cut in its ``data`` (in itself, where it has none): the lists, in their
    order, lose their last entries until the rest fits, or are left out; then whatever is largest.
    ``cut`` then has the number of entries that each list had, and ``full`` where all of it is.

    Parameters
    ----------
    payload
        As Standard Webhooks has it: ``type``, ``timestamp`` and ``data``.
    full
        The URL of the whole payload.
    lists
        The members that are cut, what is worth least first.

    Examples
    --------
    >>> solutions = [{"x": f"<http://example.org/{n}>"} for n in range(100)]
    >>> data = {"subscription": "s1", "solutions": solutions, "evidence": ["a b c"] * 9}
    >>> shortened({"data": data}, "https://broker.example/d/1", most=200).decode()
    '{"data":{"subscription":"s1","solutions":[{"x":"<http://example.org/0>"},\
{"x":"<http://example.org/1>"}],"full":"https://broker.example/d/1","truncated":{"evidence":9,"solutions":100}}}'

    Raises
    ------
    ValueError
        When what is around the data is larger than that.
    """
    whole = _json(payload)
    if len(whole) <= most:
        return whole
    inner = payload.get("data")
    around = dict(payload) if isinstance(inner, Mapping) else None
    data: dict[str, object] = dict(inner) if isinstance(inner, Mapping) else dict(payload)

    def size() -> int:
        return len(_json(data)) + over

    over = 0 if around is None else len(_json({**around, "data": 0})) - 1
    counts: dict[str, int] = {}
    data |= {"full": full, "truncated": counts}
    for name in lists:
        entries = data.get(name)
        if not isinstance(entries, Sequence) or isinstance(entries, str):
            continue
        if size() <= most:
            break
        counts[name] = len(entries)
        data[name] = []
        room = most - size() + 1  # the first entry has no comma
        kept = 0
        for entry in entries:
            room -= len(_json(entry)) + 1
            if room < 0:
                break
            kept += 1
        if kept:
            data[name] = list(entries[:kept])
        else:
            del data[name]
    while size() > most:
        rest = [name for name in data if name not in ("full", "truncated")]
        if not rest:
            msg = f"a payload of more than {most} bytes around its data"
            raise ValueError(msg)
        del data[max(rest, key=lambda name: len(_json(data[name])))]
    return _json(data if around is None else {**around, "data": data})


def _json(value: object) -> bytes:
    """Return JSON without spaces, in UTF-8."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")

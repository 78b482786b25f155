"""Email to subscribers, through the SMTP server of the operator.

Users do not name that server, so the rule of `graphmatch.broker.outbox.safe_http` does not apply.
"""

from __future__ import annotations

import re
import smtplib
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import EmailPolicy
from functools import partial
from typing import Literal

from graphmatch.broker.models.attempt import AttemptResult, RetryDecision
from graphmatch.broker.outbox.payloads import Message
from graphmatch.broker.outbox.safe_http import TransportError
from semantic.errors import Place, Problem

LINE_CHARACTERS = 200
"""Maximum length of a title in a header, and of an answer's text in a reason."""
LINK = re.compile(r"https?://[!-;=?-~]+")
"""A URL that may be in a header."""
_CONTROLS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MAILBOX = re.compile(r"(?!.*=\?)[^\s\x00-\x1f\x7f\"(),:;<>@\[\]\\]{1,64}@[A-Za-z0-9.-]{1,253}")


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
    seconds: float = 20.0

    def __post_init__(self) -> None:
        checked_mailbox(self.sender)
        if self.user is not None and self.security == "none":
            what = "a password would be sent without TLS"
            raise TransportError(Problem(what, Place("SMTP server"), "Use `starttls` or `tls`."))


def one_line(text: bytes | str, secret: str = "") -> str:
    """Return the start of a text as one line for a header or a reason, without a secret.

    Encoded words (RFC 2047) are broken, because Python's `email` makes headers of their content, or
    refuses them (CVE-2024-6923).
    """
    decoded = text if isinstance(text, str) else text.decode("utf-8", "replace")
    if secret:
        decoded = decoded.replace(secret, "…")
    line = _CONTROLS.sub(" ", decoded).strip().replace("=?", "= ?")
    if len(line) > LINE_CHARACTERS:
        line = line[: LINE_CHARACTERS - 1] + "…"
    return line.encode("utf-8", "replace").decode()


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


def email_of(server: SmtpServer, address: str, message: Message) -> EmailMessage:
    """Return an email. No text of a message can add a header or a recipient."""
    mail = EmailMessage(_Policy(linesep="\r\n", cte_type="7bit"))
    mail["From"], mail["To"] = server.sender, checked_mailbox(address)
    mail["Subject"] = one_line(message.title)
    mail["Date"] = message.created
    mail["Message-ID"] = f"<{message.id}@{server.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    footer = f"\n\n-- \n{one_line(message.name)}\n"
    if message.unsubscribe and LINK.fullmatch(message.unsubscribe):
        mail["List-Unsubscribe"] = f"<{message.unsubscribe.replace('=?', '=%3F')}>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        footer += f"Unsubscribe: {message.unsubscribe}\n"
    link = f"\n\n{message.link}" if message.link else ""
    mail.set_content(f"{message.text}{link}{footer}".encode("utf-8", "replace").decode())
    return mail


def send_email(server: SmtpServer, address: str, message: Message) -> AttemptResult:
    """Send an email; a refusal of the recipient or the text is final if its code is 5xx.

    421 is a failure of the server.
    """
    text: bytes | str
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
        code, text = error.recipients[address]
    except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
        code, text = error.smtp_code, error.smtp_error
    except (smtplib.SMTPException, OSError) as error:
        reason = f"the SMTP server: {one_line(str(error), server.password)}"
        if isinstance(error, smtplib.SMTPNotSupportedError) and not address.isascii():
            return AttemptResult(RetryDecision.REFUSED, reason)
        status = getattr(error, "smtp_code", None)
        return AttemptResult(RetryDecision.RETRY, reason, status, host_failed=True)
    else:
        return AttemptResult(RetryDecision.DELIVERED, "250 OK", 250)
    reason = f"{code} {one_line(text, server.password)}"
    decision = RetryDecision.REFUSED if code >= 500 else RetryDecision.RETRY
    return AttemptResult(decision, reason, code, host_failed=code == 421)

"""Recode a feed as UTF-8, even if its encoding is undeclared, wrong, or was applied twice."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from importlib import import_module

from semantic.errors import InputError, Severity
from semantic.feeds.model import ProblemReporter
from semantic.safe_xml import is_wide, recode_xml

_XML_DECLARATION = re.compile(r"\A\s*<\?xml\s[^>]*\?>")
_SAMPLE = 65536
"""Maximum number of bytes, from lines that are not ASCII, for the encoding detector."""
_ENCODINGS = [
    *("cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "iso8859_5", "cp1253", "iso8859_7"),
    *("cp1254", "cp1255", "iso8859_8", "cp1256", "cp1257", "cp932", "euc_jp", "cp949"),
    *("gb18030", "big5", "cp874", "cp1258", "cp866"),
]
"""Encodings that the detector may return: those in use on the web."""
_CONTROLS = (
    re.compile(rb"\xc2[\x80-\x9f]"),
    re.compile(rb"&#(?:0*(?:12[89]|1[34][0-9]|15[0-9])|[xX]0*[89][0-9A-Fa-f]);"),
)
"""Separate patterns, because each begins with bytes that can be searched for fast."""
_BYTES = {ord(c): b for b in range(128, 160) for c in bytes([b]).decode("cp1252", "ignore")}
"""Bytes of the windows-1252 characters that replace control characters."""
_TAIL = f"[\x80-\xbf{''.join(map(chr, _BYTES))}]"
_TWICE = re.compile(f"[\xc2-\xc5\xce-\xd1]{_TAIL}|[\xe0-\xef]{_TAIL}{{2}}|[\xf0-\xf4]{_TAIL}{{3}}")
"""UTF-8 that was decoded byte by byte. Two-byte sequences cover Latin, Greek and Cyrillic letters
only: a capital before a typographic sign would otherwise become a letter of a rare script.
"""
_BEGUN_TWICE = re.compile(rb"\xc3[\x82-\xb4][\xc2\xc5\xc6\xcb\xe2]")


def in_utf8(data: bytes, report: ProblemReporter) -> bytes:
    """Recode a document as UTF-8 and report each guess.

    As in HTML, a control character between 128 and 159 is replaced by the windows-1252 character
    with this number. If nearly all non-ASCII characters come from UTF-8 that was decoded as Latin-1
    or windows-1252, the whole document is decoded again as UTF-8.

    Raises
    ------
    InputError
        The document is not valid in its encoding, and no other encoding was detected.

    Examples
    --------
    >>> feed = "<rss>café dü</rss>".encode().decode("latin-1").encode()
    >>> in_utf8(feed, ProblemReporter("a.rss", print)).decode()
    a.rss: the text is UTF-8 that was decoded as Latin-1 or windows-1252. It was read as UTF-8. \
Encode the text once, and declare UTF-8.
    '<rss>café dü</rss>'
    """
    data = _recoded(data, report)
    for controls in _CONTROLS:
        if controls.search(data):
            data = controls.sub(_windows_character, data)
    begun = len(_BEGUN_TWICE.findall(data))
    text = data.decode() if begun else ""
    foreign = _foreign(text)
    # Each sequence has two to four characters, so more than one in five must begin one.
    if 5 * begun <= foreign:
        return data
    found = _TWICE.findall(text)
    if len(set(found)) < 2 or 5 * len("".join(found)) < 4 * foreign:
        return data
    what = "the text is UTF-8 that was decoded as Latin-1 or windows-1252"
    report.warn(what, "It was read as UTF-8. Encode the text once, and declare UTF-8.")
    return _TWICE.sub(_decoded_again, text).encode()


def _recoded(data: bytes, report: ProblemReporter) -> bytes:
    """Recode a document as UTF-8; if its encoding is wrong, guess another, and report it.

    Raise `InputError` if no other encoding is detected.
    """
    try:
        return recode_xml(data, report.source)
    except InputError as error:
        guess = _guess(data, error.__cause__)
        if guess is None:
            raise
        text, encoding = guess
        remedy = f"It was read as {encoding}. Declare the actual encoding."
        if isinstance(error.__cause__, UnicodeDecodeError) and error.__cause__.encoding == encoding:
            remedy = f"It was read as {encoding}, with U+FFFD for invalid bytes."
        report.on_problem(replace(error.problem, remedy=remedy, severity=Severity.WARNING))
        return _XML_DECLARATION.sub("", text.removeprefix("\ufeff")).encode()


def _guess(data: bytes, cause: BaseException | None) -> tuple[str, str] | None:
    """Return text and encoding of a document: by its mark, UTF-8 with few errors, or detector.

    Return ``None`` if the detector finds no encoding. If it finds windows-1252 as likely as its
    best guess, windows-1252 wins: it is by far the most common. `cause` is the error of strict
    decoding.
    """
    if isinstance(cause, UnicodeDecodeError) and is_wide(cause.encoding):
        return data.decode(cause.encoding, "replace"), cause.encoding
    text = data.decode("utf-8", "replace")
    if 4 * text.count("\ufffd") <= _foreign(text):
        return text, "utf-8"
    lines = (line for line in data.splitlines() if not line.isascii())
    detector = import_module("charset_normalizer")  # It is rarely needed.
    found = detector.from_bytes(b"\n".join(lines)[:_SAMPLE], cp_isolation=_ENCODINGS)
    best = found.best()
    if best is None:
        return None
    as_likely = (match.encoding for match in found if match.chaos <= best.chaos)
    encoding: str = "cp1252" if "cp1252" in as_likely else best.encoding
    return data.decode(encoding, "replace"), encoding


def _windows_character(found: re.Match[bytes]) -> bytes:
    """Return HTML's replacement for a control character or a reference to one."""
    said = found[0]
    reference = said if said.startswith(b"&") else b"&#%d;" % said[1]
    return unescape(reference.decode()).encode()


def _foreign(text: str) -> int:
    """Count the non-ASCII characters."""
    return len(text) - len(text.encode("ascii", "ignore"))


def _decoded_again(found: re.Match[str]) -> str:
    try:
        return found[0].translate(_BYTES).encode("latin-1").decode()
    except UnicodeDecodeError:
        return found[0]

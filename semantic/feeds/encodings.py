"""A feed's bytes in UTF-8: declared or not, in another encoding than it says, or encoded twice."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from importlib import import_module

from semantic.errors import InputError, Severity
from semantic.feeds.model import Report
from semantic.guards import is_wide, recode_xml

_XML_DECLARATION = re.compile(r"\A\s*<\?xml\s[^>]*\?>")
_SAMPLE = 65536
"""So many bytes of the lines that are not ASCII are shown to the detector of encodings."""
_ENCODINGS = [
    *("cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "iso8859_5", "cp1253", "iso8859_7"),
    *("cp1254", "cp1255", "iso8859_8", "cp1256", "cp1257", "cp932", "euc_jp", "cp949"),
    *("gb18030", "big5", "cp874", "cp1258", "cp866"),
]
"""What the detector may find: the encodings that are found in the web."""
_CONTROLS = (
    re.compile(rb"\xc2[\x80-\x9f]"),
    re.compile(rb"&#(?:0*(?:12[89]|1[34][0-9]|15[0-9])|[xX]0*[89][0-9A-Fa-f]);"),
)
"""Apart, as each begins with bytes that are searched for fast."""
_BYTES = {ord(c): b for b in range(128, 160) for c in bytes([b]).decode("cp1252", "ignore")}
"""What windows-1252 has in place of control characters."""
_TAIL = f"[\x80-\xbf{''.join(map(chr, _BYTES))}]"
_TWICE = re.compile(f"[\xc2-\xc5\xce-\xd1]{_TAIL}|[\xe0-\xef]{_TAIL}{{2}}|[\xf0-\xf4]{_TAIL}{{3}}")
"""UTF-8 read byte by byte. Of two bytes only those of Latin, Greek and Cyrillic letters: a capital
before a typographic sign would be of a rare script."""
_BEGUN_TWICE = re.compile(rb"\xc3[\x82-\xb4][\xc2\xc5\xc6\xcb\xe2]")


def in_utf8(data: bytes, report: Report) -> bytes:
    """Recode a document as UTF-8, reporting what was guessed.

    As HTML does it, a control character between 128 and 159 is windows-1252's character. Where
    nearly all that is not ASCII is UTF-8 read byte by byte, the whole document is mended.

    Raises
    ------
    InputError
        The document is not in its encoding, and no other fits.

    Examples
    --------
    >>> feed = "<rss>café dü</rss>".encode().decode("latin-1").encode()
    >>> in_utf8(feed, Report("a.rss", print)).decode()
    a.rss: its text is UTF-8 that was taken for Latin-1 or windows-1252. It is read as UTF-8: \
declare that encoding, and encode it once.
    '<rss>café dü</rss>'
    """
    data = _recoded(data, report)
    for controls in _CONTROLS:
        if controls.search(data):
            data = controls.sub(_windows_character, data)
    begun = len(_BEGUN_TWICE.findall(data))
    text = data.decode() if begun else ""
    foreign = _foreign(text)
    if 5 * begun <= foreign:  # none, or too few, since each stands for two to four characters
        return data
    found = _TWICE.findall(text)
    if len(set(found)) < 2 or 5 * len("".join(found)) < 4 * foreign:
        return data
    what = "its text is UTF-8 that was taken for Latin-1 or windows-1252"
    report.warn(what, "It is read as UTF-8: declare that encoding, and encode it once.")
    return _TWICE.sub(_decoded_again, text).encode()


def _recoded(data: bytes, report: Report) -> bytes:
    """Recode a document; one that is not in its encoding by what that seems to be."""
    try:
        return recode_xml(data, report.source)
    except InputError as error:
        guess = _guess(data, error.__cause__)
        if guess is None:
            raise
        text, encoding = guess
        remedy = f"It is read as {encoding}: declare the encoding that it is in."
        if isinstance(error.__cause__, UnicodeDecodeError) and error.__cause__.encoding == encoding:
            remedy = f"It is read as {encoding} all the same, with U+FFFD for what is damaged."
        report.on_problem(replace(error.problem, remedy=remedy, severity=Severity.WARNING))
        return _XML_DECLARATION.sub("", text.removeprefix("\ufeff")).encode()


def _guess(data: bytes, cause: BaseException | None) -> tuple[str, str] | None:
    """Decode by a byte order mark, as UTF-8 with a few faults, or as the detector says.

    Where it finds windows-1252 as likely as another, it is that: the commonest by far.
    """
    if isinstance(cause, UnicodeDecodeError) and is_wide(cause.encoding):
        return data.decode(cause.encoding, "replace"), cause.encoding
    text = data.decode("utf-8", "replace")
    if 4 * text.count("\ufffd") <= _foreign(text):
        return text, "utf-8"
    lines = (line for line in data.splitlines() if not line.isascii())
    detector = import_module("charset_normalizer")  # rarely needed
    found = detector.from_bytes(b"\n".join(lines)[:_SAMPLE], cp_isolation=_ENCODINGS)
    best = found.best()
    if best is None:
        return None
    as_likely = (match.encoding for match in found if match.chaos <= best.chaos)
    encoding: str = "cp1252" if "cp1252" in as_likely else best.encoding
    return data.decode(encoding, "replace"), encoding


def _windows_character(found: re.Match[bytes]) -> bytes:
    """Return what HTML says that a control character, or a reference to one, is."""
    said = found[0]
    reference = said if said.startswith(b"&") else b"&#%d;" % said[1]
    return unescape(reference.decode()).encode()


def _foreign(text: str) -> int:
    """Count the characters that are not ASCII."""
    return len(text) - len(text.encode("ascii", "ignore"))


def _decoded_again(found: re.Match[str]) -> str:
    try:
        return found[0].translate(_BYTES).encode("latin-1").decode()
    except UnicodeDecodeError:
        return found[0]

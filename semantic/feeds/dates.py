"""Dates of feeds (RFC 822 and 3339, W3C-DTF, and their usual misspellings) to xsd:dateTime.

The value is in UTC, so that equal instants are equal terms. A date without a time is its
midnight, a time without a zone is taken as UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_tz

from pyoxigraph import Literal

from semantic.vocabulary import XSD

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ]\s*(\d\d:\d\d)(?::(\d\d))?(?:[.,](\d{1,6})\d*)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
_COMMENT = re.compile(r"\([^()]*\)")
_OFFSET = re.compile(
    r"(?:(?<=:\d\d)| |GMT ?|UTC? ?)([+-])(\d\d?):?(\d\d)?$", re.ASCII | re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(
    r"(mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*",
    re.IGNORECASE,
)
_EARLY_YEAR = re.compile(r"(?<!\S)00\d\d(?!\S)", re.ASCII)
_OFFSETS = {
    "-0800": "PST",
    "-0700": "PDT MST",
    "-0600": "MDT CST",
    "-0500": "CDT EST",
    "-0400": "EDT",
    "+0000": "Z UT UTC GMT WET",
    "+0100": "WEST BST CET MET",
    "+0200": "CEST MEST EET",
    "+0300": "EEST MSK",
    "+0900": "JST",
    "+1000": "AEST",
    "+1100": "AEDT",
}
_ZONES = {name: offset for offset, names in _OFFSETS.items() for name in names.split()}


def read_date(text: str) -> Literal | None:
    """Return the instant that a feed's date names, or ``None`` where it cannot be read.

    Examples
    --------
    >>> read_date("Sat, 13 Dec 2003 18:30:02 +0200").value
    '2003-12-13T16:30:02Z'
    >>> read_date("2003-12-13").value
    '2003-12-13T00:00:00Z'
    >>> read_date("last Tuesday") is None
    True
    """
    try:
        instant = _iso(text.strip()) or _rfc822(text)
        if instant is None:
            return None
        utc = instant.astimezone(UTC)
    except (ValueError, OverflowError):  # no such day, or outside the calendar
        return None
    text = utc.replace(tzinfo=None).isoformat()
    text = text.rstrip("0") if "." in text else text
    return Literal(f"{text}Z", datatype=XSD["dateTime"])


def _iso(text: str) -> datetime | None:
    parts = _ISO.fullmatch(text)
    if parts is None:
        return None
    day, minutes, seconds, fraction, zone = parts.groups()
    zone = "+00:00" if zone is None or zone.upper() in ("Z", "UTC", "GMT") else zone
    clock = f"{minutes or '00:00'}:{seconds or '00'}.{(fraction or '').ljust(6, '0')}"
    return datetime.fromisoformat(f"{day}T{clock}{zone}")


def _rfc822(text: str) -> datetime | None:
    """Read RFC 822; every word is checked, since `parsedate_tz` passes over what it knows not."""
    text = " ".join(_COMMENT.sub("", text).replace(",", " ").split())
    text = _WORD.sub(_known_word, _OFFSET.sub(_four_digits, text))
    parts = parsedate_tz(text if ":" in text else f"{text} 00:00:00")
    if parts is None or "?" in text:
        return None
    year, month, day, hour, minute, second, *_, offset = parts
    early = _EARLY_YEAR.search(text)  # parsedate_tz takes 0001 for 2001
    shift = timezone(timedelta(seconds=offset or 0))
    return datetime(
        int(early[0]) if early else year, month, day, hour, minute, second, tzinfo=shift
    )


def _four_digits(offset: re.Match[str]) -> str:
    sign, hours, minutes = offset.groups()
    return f" {sign}{hours:0>2}{minutes or '00'}"


def _known_word(word: re.Match[str]) -> str:
    """Return a name's three letters, a zone's offset, or a question mark."""
    name = _NAME.fullmatch(word[0])
    return name[1] if name else _ZONES.get(word[0].upper(), "?")

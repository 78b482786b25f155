"""Write items as triples, in one vocabulary for every format (table in docs/reference/feeds.md).

Text is plain ``xsd:string`` without a language tag, because constants in patterns match by term:
``"Climate"`` would not match ``"Climate"@en``, and few feeds declare their language correctly. The
declared language becomes ``dc:language``. The channel has properties of its own, so that a pattern
on an item's title or text matches items only.

Dates (RFC 822 and 3339, W3C-DTF, and their usual misspellings) become xsd:dateTime in UTC, so that
equal instants are equal terms. A date without a time means midnight, and a time without a zone
means UTC. Links are resolved to IRIs, and repaired if the repair is unambiguous.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import TypeAlias
from urllib.parse import quote, urljoin

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.errors import Place
from semantic.feeds.model import Channel, Enclosure, Item, ProblemReporter
from semantic.publication import Publication, Row
from semantic.terms import Term, Triple
from semantic.vocabulary import CONTENT, DC, DCTERMS, ENCLOSURE, FOAF, GM, RSS, TYPE, XSD

OwnTriples: TypeAlias = tuple[NamedNode | BlankNode | None, tuple[Triple, ...]]
"""The node of an item and the triples that a source in RDF states about it."""

_ITEM, _TITLE, _LINK, _DESCRIPTION = (RSS[n] for n in ("item", "title", "link", "description"))
_CONTENT, _IDENTIFIER = CONTENT["encoded"], DCTERMS["identifier"]
_DATE, _CREATOR, _SUBJECT, _LANGUAGE = (DC[n] for n in ("date", "creator", "subject", "language"))
_MODIFIED, _IS_PART_OF, _DATE_TIME = DCTERMS["modified"], DCTERMS["isPartOf"], XSD["dateTime"]
_ENCLOSURE, _URL, _FILE_TYPE, _LENGTH = (
    ENCLOSURE[n] for n in ("enclosure", "url", "type", "length")
)

_NAME_LENGTH = 300
"""Maximum length of a guid in an IRI; longer ones are hashed."""
_DATE_LENGTH = 100
"""Maximum length of a date."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NOT_IN_IRIS = re.compile(r"[\x00-\x20\"<>\\^`{|}\x7f-\x9f\[\]]|%(?![0-9A-Fa-f]{2})")
_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)?(.*)", re.DOTALL)
_RFC_822 = re.compile(
    r"(?:[A-Za-z]{3}, )?(\d\d?) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (\d{4}) "
    r"(\d\d:\d\d:\d\d (?:GMT|[+-]\d\d[0-5]\d))",
    re.ASCII,
)
"""RFC 822 as most feeds write it."""
_ISO = re.compile(
    r"(\d{4})([-/])(\d\d?)\2(\d\d?)"
    r"(?:[Tt ]\s*(\d\d?):(\d\d)(?::(\d\d?))?(?:[.,](\d{1,6})\d*)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
_DAY_FIRST = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})(?!\S)", re.ASCII)
_COMMENT = re.compile(r"\([^()]*\)")
_OFFSET = re.compile(
    r"(?:(?<=:\d\d)| |GMT ?|UTC? ?)([+-])(\d\d?):?(\d\d)?$", re.ASCII | re.IGNORECASE
)
_WEEKDAY = re.compile(r"\s*[^\W\d_]+\.?,")
_HALF_DAY = re.compile(r"(\d\d?)(:\d\d(?::\d\d)?) ?([ap])\.?m\b\.?", re.ASCII | re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(
    r"(mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*",
    re.IGNORECASE,
)
_MONTH_NAMES = "JanFebMarAprMayJunJulAugSepOctNovDec"
_PAIR = re.compile(r"(\w+)=(\S+)")
_MONTHS = dict(
    _PAIR.findall(
        "ene=jan gen=jan fev=feb fév=feb mär=mar mrt=mar abr=apr avr=apr mai=may mag=may mei=may "
        "maj=may juin=jun giu=jun juil=jul lug=jul ago=aug aoû=aug set=sep okt=oct out=oct ott=oct "
        "dez=dec dic=dec déc=dec"
    )
)
"""First letters of month names in other languages."""
_EARLY_YEAR = re.compile(r"(?<!\S)00\d\d(?!\S)", re.ASCII)
_ZONES = dict(
    _PAIR.findall(
        "PST=-0800 PDT=-0700 MST=-0700 MDT=-0600 CST=-0600 CDT=-0500 EST=-0500 EDT=-0400 Z=+0000 "
        "UT=+0000 UTC=+0000 GMT=+0000 WET=+0000 WEST=+0100 BST=+0100 CET=+0100 MET=+0100 "
        "CEST=+0200 MEST=+0200 EET=+0200 EEST=+0300 MSK=+0300 JST=+0900 AEST=+1000 AEDT=+1100"
    )
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """An item to write, with its link, node, publication id, and triples of an RDF source."""

    item: Item
    link: NamedNode | Literal | None
    node: NamedNode
    id: str
    own_triples: tuple[Triple, ...]


class ItemWriter:
    """Converts the items of one feed to publications, with the channel's triples in each.

    Parameters
    ----------
    channel
        The feed that contains the items.
    report
        Receives reports of unusable links, dates and lengths.
    node
        The channel's IRI, if the source is RDF and names it; otherwise the IRI is its link, its
        id, or made from its title.

    Examples
    --------
    >>> writer = ItemWriter(Channel(title="News"), ProblemReporter("a.rss", print))
    >>> item = Item(1, link="http://example.org/1", title="Hello")
    >>> [publication.id for publication in writer.publications([item])]
    ['http://example.org/1']
    """

    def __init__(
        self, channel: Channel, report: ProblemReporter, node: NamedNode | None = None
    ) -> None:
        self._channel = channel
        self._report = report
        self._item = Item(0)  # Messages name the current item.
        self._place: str | None = "the channel"
        self._site = channel.link
        link = self._link(channel.link, channel.base)
        self._site = link.value if isinstance(link, NamedNode) else ""
        node = node or (link if isinstance(link, NamedNode) else absolute_iri(channel.id))
        self._node = node or NamedNode(f"{GM.iri}feed:{_digest(channel.title)}")
        self._feed_names = {channel.id, channel.link, self._site, self._node.value}
        self._channel_rows = self._describe_channel(link)

    def publications(
        self, items: Sequence[Item], own_triples: Sequence[OwnTriples] | None = None
    ) -> Iterator[Publication]:
        """Yield the publications of all items of a feed; different items get distinct ids.

        Pass all items in one call, because ids must be distinct in the feed. Duplicate items are
        reported and left out.

        Parameters
        ----------
        items
            The items of the feed.
        own_triples
            Each item's node and own triples, which come first, if the source is RDF.
        """
        pairs = zip(items, own_triples or [(None, ())] * len(items), strict=True)
        for entry in self._told_apart([self._entry(item, *own) for item, own in pairs]):
            self._item, self._place = entry.item, entry.node.value
            rows = (*entry.own_triples, *self._describe(entry), *self._channel_rows)
            source = Place(self._report.source, entry.item.line, item=entry.node.value)
            yield Publication.of_rows(entry.id, rows, source)

    # -- identity of items -----------------------------------------------------------------

    def _entry(
        self, item: Item, own: NamedNode | BlankNode | None, triples: tuple[Triple, ...]
    ) -> _Entry:
        self._item, self._place = item, f"item {item.number}"
        link = self._link(item.link, item.base)
        node = own if isinstance(own, NamedNode) else self._name(item, link)
        if own != node:
            triples = tuple(
                (node if s == own else s, p, node if o == own else o) for s, p, o in triples
            )
        return _Entry(item, link, node, node.value, triples)

    def _name(self, item: Item, link: NamedNode | Literal | None) -> NamedNode:
        """Return an item's IRI, made from its guid, otherwise its link, otherwise its content.

        A guid or link of the whole feed does not identify an item.
        """
        if item.id and item.id not in self._feed_names:
            if (iri := absolute_iri(item.id)) is not None:
                return iri
            own = quote(item.id, safe="") if len(item.id) <= _NAME_LENGTH else _digest(item.id)
            return NamedNode(f"{GM.iri}item:{quote(self._node.value, safe=':/')}:{own}")
        if isinstance(link, NamedNode) and link.value not in self._feed_names:
            return link
        return NamedNode(f"{GM.iri}item:{_digest(self._node.value, item)}")

    def _told_apart(self, entries: list[_Entry]) -> list[_Entry]:
        """Leave out duplicate items, and rename different items that share a name; report both.

        The item with the earliest date keeps the name, so that an item with a later date does not
        change its id.
        """
        if len({entry.id for entry in entries}) == len(entries):
            return entries
        named: defaultdict[NamedNode, dict[Item, _Entry]] = defaultdict(dict)
        for entry in entries:
            named[entry.node].setdefault(entry.item, entry)
        eldest = {node: min(same.values(), key=_age) for node, same in named.items()}
        apart = []
        for entry in entries:
            first, oldest = named[entry.node][entry.item], eldest[entry.node]
            if first is not entry:
                self._item, self._place = entry.item, entry.node.value
                what = f"the item is the same as item {first.item.number}"
                self._warn(what, "It is delivered once.")
            else:
                apart.append(entry if entry is oldest else self._renamed(entry, oldest))
        return apart

    def _renamed(self, entry: _Entry, other: _Entry) -> _Entry:
        joint = "-" if "#" in entry.id else "#"
        id = f"{entry.id}{joint}{_digest(entry.item)}"
        self._item, self._place = entry.item, entry.node.value
        what = f"the item has the same id as item {other.item.number}, but other content"
        self._warn(what, f"Both are delivered, this one with the id {id}.")
        return replace(entry, id=id, node=entry.node if entry.own_triples else NamedNode(id))

    # -- triples of items ------------------------------------------------------------------

    def _describe(self, entry: _Entry) -> list[Row]:
        item, node = entry.item, entry.node
        rows = _rows(
            node,
            (TYPE, _ITEM),
            (_TITLE, item.title),
            (_LINK, entry.link),
            (_DESCRIPTION, item.description),
            (_CONTENT, item.content),
            (_DATE, self._date(item.published or item.updated, is_first=True)),
            (_MODIFIED, self._date(item.updated, is_first=bool(item.published))),
            *[(_CREATOR, creator) for creator in item.creators],
            *[(_SUBJECT, subject) for subject in item.subjects],
            (_LANGUAGE, item.language or self._channel.language),
        )
        for enclosure in item.enclosures:
            rows += self._enclosure(node, enclosure)
        return rows + _rows(node, (_IDENTIFIER, item.id), (_IS_PART_OF, self._node))

    def _describe_channel(self, link: NamedNode | Literal | None) -> list[Row]:
        return _rows(
            self._node,
            (TYPE, RSS["channel"]),
            (DCTERMS["title"], self._channel.title),
            (FOAF["homepage"], link),
            (DCTERMS["description"], self._channel.description),
            (DCTERMS["language"], self._channel.language),
        )

    def _date(self, text: str, *, is_first: bool) -> Literal | str | None:
        """Return a date, or its text if it cannot be read; return ``None`` for an empty text.

        An unreadable text is reported only if `is_first` is true: its first use in the item.
        """
        if not text:
            return None
        date = read_date(text)
        if date is None and is_first:
            self._warn(f"the date {_shown(text)} cannot be read", "It was kept as a string.")
        return date or text

    def _enclosure(self, node: NamedNode, enclosure: Enclosure) -> list[Row]:
        url = self._link(enclosure.url, self._item.base)
        file = url if isinstance(url, NamedNode) else BlankNode()
        length = None
        if enclosure.length.isdecimal() and enclosure.length.isascii():
            length = Literal(enclosure.length, datatype=XSD["integer"])
        elif enclosure.length:
            what = f"the enclosure's length {_shown(enclosure.length)} is not a number"
            self._warn(what, "It was ignored.")
        own = [(_URL, url or enclosure.url), (_FILE_TYPE, enclosure.type), (_LENGTH, length)]
        return [(node, _ENCLOSURE, file), *_rows(file, *own)]

    def _link(self, text: str, base: str) -> NamedNode | Literal | None:
        """Return a link as an IRI, or a string literal if it cannot be one; ``None`` if empty.

        Invalid links and repairs are reported.
        """
        if not text:
            return None
        text = text.replace("&amp;", "&")  # Feeds often escape it twice.
        iri = absolute_iri(text)
        if iri is not None:
            return iri
        iri = mended_iri(text, base, self._site)
        if iri is None:
            self._warn(f"the link {_shown(text)} is not a valid IRI", "It was kept as a string.")
            return Literal(text)
        if not base or " " in text:
            self._warn(
                f"the link {_shown(text)} is not a valid IRI", f"It was read as {iri.value}."
            )
        return iri

    def _warn(self, what: str, remedy: str) -> None:
        self._report.warn(what, remedy, self._item.line, self._place)


def _rows(
    subject: NamedNode | BlankNode, *values: tuple[NamedNode, Term | str | None]
) -> list[Row]:
    """Return the triples of a subject from pairs of property and value; leave out empty values."""
    return [(subject, predicate, value) for predicate, value in values if value]


def _age(entry: _Entry) -> tuple[str, int]:
    """Return a sort key for the age of an item, oldest first.

    Items without a date come first, then those with earlier dates; at the same date, the feed's
    last item comes first.
    """
    date = read_date(entry.item.published or entry.item.updated)
    return date.value if date else "", -entry.item.number


def _digest(*said: object) -> str:
    """Return a hash of these values that is stable across processes."""
    return hashlib.sha256(repr(said).encode("utf-8", errors="replace")).hexdigest()[:32]


def _shown(text: str) -> str:
    return f"'{text}'" if len(text) <= 80 else f"'{text[:77]}...'"


# Links --------------------------------------------------------------------------------------


def absolute_iri(text: str) -> NamedNode | None:
    """Return the text as an IRI, unchanged; return ``None`` if it is invalid or relative.

    Examples
    --------
    >>> absolute_iri("tag:example.org,2003:3")
    <NamedNode value=tag:example.org,2003:3>
    >>> absolute_iri("post 3") is None
    True
    """
    if _SCHEME.match(text) is None:
        return None
    try:
        return NamedNode(text)
    except ValueError:
        return None


def mended_iri(text: str, base: str, site: str) -> NamedNode | None:
    """Resolve a link, percent-encode characters that IRIs forbid; ``None`` if still invalid.

    Parameters
    ----------
    text
        The link, which is not an absolute IRI.
    base
        The feed's own base IRI; may be empty.
    site
        The channel's link, used as the base of a path from the root (``/a/b``).

    Examples
    --------
    >>> mended_iri("http://example.org/a b", "", "")
    <NamedNode value=http://example.org/a%20b>
    >>> mended_iri("/a", "", "http://example.org/feeds/")
    <NamedNode value=http://example.org/a>
    >>> mended_iri("example.org/a", "", "http://example.org/") is None
    True
    """
    base = base or (site if text.startswith("/") else "")
    try:
        absolute = urljoin(base, text) if base else text
    except ValueError:  # The host is invalid.
        return None
    parts = _AUTHORITY.fullmatch(absolute)
    if parts is None:
        return None
    encoded = _NOT_IN_IRIS.sub(lambda found: quote(found[0], safe=""), parts[2])
    return absolute_iri((parts[1] or "") + encoded)


# Dates --------------------------------------------------------------------------------------


def read_date(text: str) -> Literal | None:
    """Return a feed's date as an instant in UTC, or ``None`` if it cannot be read.

    Examples
    --------
    >>> read_date("Sat, 13 Dec 2003 18:30:02 +0200").value
    '2003-12-13T16:30:02Z'
    >>> read_date("2003-12-13").value
    '2003-12-13T00:00:00Z'
    >>> read_date("last Tuesday") is None
    True
    """
    if len(text) > _DATE_LENGTH:
        return None
    text = text.strip()
    if common := _RFC_822.fullmatch(text):
        day, month, year, rest = common.groups()
        text = f"{year}-{_MONTH_NAMES.index(month) // 3 + 1}-{day} {rest}"
    try:
        instant = _iso(text) or _iso(_DAY_FIRST.sub(r"\3-\2-\1", text)) or _rfc822(text)
        if instant is None:
            return None
        utc = instant.astimezone(UTC)
    except (ValueError, OverflowError):  # The day does not exist, or is outside the calendar.
        return None
    text = utc.replace(tzinfo=None).isoformat()
    text = text.rstrip("0") if "." in text else text
    return Literal(f"{text}Z", datatype=_DATE_TIME)


def _iso(text: str) -> datetime | None:
    parts = _ISO.fullmatch(text)
    if parts is None:
        return None
    year, _, month, day, hour, minute, second, fraction, zone = parts.groups("0")
    zone = "+00:00" if zone.upper() in ("0", "Z", "UTC", "GMT") else zone
    clock = f"{hour:0>2}:{minute:0>2}:{second:0>2}.{fraction:0<6}"
    return datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{clock}{zone}")


def _rfc822(text: str) -> datetime | None:
    """Parse a date of RFC 822 or similar; return ``None`` if it has an unknown word.

    Every word is checked, because `parsedate_tz` skips unknown ones.
    """
    from email.utils import parsedate_tz  # This imports sockets.

    text = _WEEKDAY.sub("", _COMMENT.sub("", text), 1).replace(",", " ")
    text = _HALF_DAY.sub(_whole_day, " ".join(text.split()))
    text = _WORD.sub(_known_word, _OFFSET.sub(_four_digits, text))
    parts = parsedate_tz(text if ":" in text else f"{text} 00:00:00")
    if parts is None or "?" in text:
        return None
    year, month, day, hour, minute, second, *_, offset = parts
    early = _EARLY_YEAR.search(text)  # parsedate_tz reads 0001 as 2001.
    shift = timezone(timedelta(seconds=offset or 0))
    return datetime(
        int(early[0]) if early else year, month, day, hour, minute, second, tzinfo=shift
    )


def _whole_day(time: re.Match[str]) -> str:
    """Convert a time with a.m. or p.m. (a match of `_HALF_DAY`) to 24 hours."""
    hour = int(time[1])
    hour = hour if hour > 12 else hour % 12 + 12 * (time[3] in "Pp")
    return f"{hour}{time[2]}"


def _four_digits(offset: re.Match[str]) -> str:
    sign, hours, minutes = offset.groups()
    return f" {sign}{hours:0>2}{minutes or '00'}"


def _known_word(word: re.Match[str]) -> str:
    """Return a word of an RFC 822 date as `parsedate_tz` reads it; ``?`` if it is unknown.

    Days and months become three letters, and zones become offsets such as ``+0100``.
    """
    name = _NAME.fullmatch(word[0])
    if name:
        return name[1]
    lower = word[0].lower()
    months = (month for start, month in _MONTHS.items() if lower.startswith(start))
    return _ZONES.get(word[0].upper()) or next(months, "?")

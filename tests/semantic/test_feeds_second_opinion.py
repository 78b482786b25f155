"""feedparser, which shares no code with the project, agrees on every feed except `ALLOWED`."""

from __future__ import annotations

import html
import os
import re
from calendar import timegm
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from time import struct_time
from typing import Any

import feedparser
import pytest
from pyoxigraph import NamedNode

from semantic.errors import InputError, Problem
from semantic.feeds import read_feed
from semantic.publication import Publication
from semantic.terms import Term
from semantic.vocabulary import CONTENT, DC, DCTERMS, ENCLOSURE, FOAF, RSS, TYPE
from tests.real_data import DATA

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "data" / "feeds").glob("*"))
REAL = sorted((DATA / "feeds").glob("*"))
FEEDS = [path for path in (*SAMPLES, *REAL) if path.suffix != ".json"]

Texts = tuple[str, ...]


@dataclass(frozen=True)
class ReadItem:
    """One reader's values of an item; a missing field is empty."""

    title: Texts
    link: Texts
    id: Texts
    published: Texts
    updated: Texts
    creators: Texts
    subjects: Texts
    enclosures: tuple[Texts, ...]
    description: Texts
    content: Texts
    language: Texts
    channel_title: Texts
    channel_link: Texts
    channel_description: Texts


@dataclass(frozen=True)
class Case:
    """Two readings of one item, and the context that the rules need."""

    ours: ReadItem
    theirs: ReadItem
    feed_authors: Texts
    captions: frozenset[str]


# Readings -----------------------------------------------------------------------------------


def our_reading(publication: Publication) -> ReadItem:
    def values(subject: Term, predicate: NamedNode) -> Texts:
        return tuple(o.value for s, p, o in publication.triples if (s, p) == (subject, predicate))

    def last(subject: Term, predicate: NamedNode) -> Texts:
        return values(subject, predicate)[-1:]  # In RSS 1.0, its own value precedes the common one.

    (item,) = {s for s, p, o in publication.triples if (p, o) == (TYPE, RSS["item"])}
    (channel,) = {o for s, p, o in publication.triples if (s, p) == (item, DCTERMS["isPartOf"])}
    files = [o for s, p, o in publication.triples if (s, p) == (item, ENCLOSURE["enclosure"])]
    described = ("url", "type", "length")
    return ReadItem(
        title=last(item, RSS["title"]),
        link=last(item, RSS["link"]),
        id=values(item, DCTERMS["identifier"]),
        published=last(item, DC["date"]),
        updated=values(item, DCTERMS["modified"]),
        creators=tuple(dict.fromkeys(values(item, DC["creator"]))),
        subjects=tuple(dict.fromkeys(values(item, DC["subject"]))),
        enclosures=tuple(
            tuple("".join(values(file, ENCLOSURE[name])) for name in described) for file in files
        ),
        description=last(item, RSS["description"]),
        content=last(item, CONTENT["encoded"]),
        language=last(item, DC["language"]),
        channel_title=last(channel, DCTERMS["title"]),
        channel_link=last(channel, FOAF["homepage"]),
        channel_description=last(channel, DCTERMS["description"]),
    )


def their_reading(entry: Any, feed: Any) -> ReadItem:
    links = [(x.get("href", ""), x.get("type", ""), x.get("length", "")) for x in entry.enclosures]
    media = [
        (x.get("url", ""), x.get("type", ""), x.get("filesize", ""))
        for x in entry.get("media_content", ())
    ]
    detail = entry.get("title_detail") or entry.get("summary_detail") or {}
    languages = texts(entry.get("language"), detail.get("language"), feed.get("language"))
    return ReadItem(
        title=texts(entry.get("title")),
        link=texts(entry.get("link")),
        id=texts(entry.get("id")),
        published=instant(entry.get("published_parsed")),
        updated=instant(entry.get("updated_parsed") if "updated" in entry else None),
        creators=names(entry),
        subjects=texts(*(text for tag in entry.get("tags", ()) for text in (tag.term, tag.label))),
        enclosures=tuple({file[0]: file for file in reversed((*links, *media))}.values())[::-1],
        description=texts(entry.get("summary")),
        content=texts(*(content.value for content in entry.get("content", ()))),
        language=languages[:1],
        channel_title=texts(feed.get("title")),
        channel_link=texts(feed.get("link")),
        channel_description=texts(feed.get("subtitle")),
    )


def texts(*values: str | None) -> Texts:
    return tuple(value for value in values if value)


def names(described: Any) -> Texts:
    people = (
        a.get("name") or a.get("email") or a.get("href") for a in described.get("authors", ())
    )
    return texts(*people)


def instant(time: struct_time | None) -> Texts:
    return () if time is None else (iso(datetime.fromtimestamp(timegm(time), UTC)),)


def iso(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat() + "Z"


def second_opinion(data: bytes) -> Any:
    """Parse with feedparser, without the text after the end of the document.

    On damage, feedparser would use another parser, which ignores XML's rules for line ends and
    character references.
    """
    end = max(data.rfind(tag) + len(tag) for tag in (b"</rss>", b"</feed>", b"</rdf:RDF>"))
    return feedparser.parse(data[:end], sanitize_html=False, resolve_relative_uris=False)


def cases(path: Path) -> Iterator[Case]:
    data = path.read_bytes()
    problems: list[Problem] = []
    publications = list(read_feed(data, path.name, on_problem=problems.append))
    parsed = second_opinion(data)
    assert not parsed.bozo
    entries = [e for n, e in enumerate(parsed.entries) if e not in parsed.entries[:n]]
    assert len(publications) == len(entries) > 0
    captions = frozenset(map(without_tags, _CAPTION.findall(data.decode("utf-8-sig"))))
    for publication, entry in zip(publications, entries, strict=True):
        theirs = their_reading(entry, parsed.feed)
        yield Case(our_reading(publication), theirs, names(parsed.feed), captions)


_CAPTION = re.compile(r"<media:description[^>]*(?<!/)>(.*?)</media:description>", re.DOTALL)


def without_tags(markup: str) -> str:
    text = html.unescape(re.sub(r"<!\[CDATA\[|\]\]>", "", markup))
    return " ".join(re.sub(r"<[^>]*>", "", text).split())


# Allowed differences ------------------------------------------------------------------------


def to_the_second(times: Texts) -> Texts:
    return tuple(re.sub(r"\.\d+", "", time) for time in times)


def as_one_tag(markup: Iterable[str]) -> Texts:
    return tuple(re.sub(r"></(?:img|br|hr)>", " />", text) for text in markup)


def only_captions_more(case: Case) -> bool:
    ours = {*case.ours.description, *case.ours.content}
    theirs = {*case.theirs.description, *case.theirs.content}
    return ours <= theirs and {*map(without_tags, theirs - ours)} <= case.captions


ALLOWED: dict[str, tuple[Texts, str, Callable[[Case], bool]]] = {
    "references": (
        ("title",),
        "feedparser gives titles as HTML, we as text, with character references resolved",
        lambda case: case.ours.title == tuple(map(html.unescape, case.theirs.title)),
    ),
    "fractions": (
        ("published", "updated"),
        "feedparser's times have no fractions of a second",
        lambda case: (
            to_the_second(case.ours.updated) == case.theirs.updated
            and to_the_second(case.ours.published) in (case.theirs.published, case.theirs.updated)
        ),
    ),
    "last change": (
        ("published",),
        "an item that says only when it was changed was published then: our rule, in the docs",
        lambda case: not case.theirs.published and case.ours.published == case.theirs.updated,
    ),
    "dc:date": (
        ("published", "updated"),
        "feedparser takes RSS's dc:date for the last change; it is the date of publishing",
        lambda case: not case.ours.updated and case.ours.published == case.theirs.updated,
    ),
    "feed's authors": (
        ("creators",),
        "an Atom entry without authors has the feed's (RFC 4287, 4.2.1); feedparser leaves it out",
        lambda case: not case.theirs.creators and case.ours.creators == case.feed_authors,
    ),
    "categories twice": (
        ("subjects",),
        "a publication is a set: a category that is named twice is there once",
        lambda case: case.ours.subjects == tuple(dict.fromkeys(case.theirs.subjects)),
    ),
    "copied content": (
        ("description",),
        "where there is no summary, feedparser copies the content",
        lambda case: not case.ours.description and case.theirs.description == case.theirs.content,
    ),
    "captions": (
        ("description", "content"),
        "feedparser takes a picture's media:description for the item's own, or for its content",
        only_captions_more,
    ),
    "empty elements": (
        ("content",),
        "feedparser writes <br></br>, which HTML reads as two breaks",
        lambda case: case.ours.content == as_one_tag(case.theirs.content),
    ),
}


def differences(case: Case) -> Iterator[tuple[str, str | None]]:
    """Yield the fields that differ, each with the rule that allows it, or ``None``."""
    for field in (field.name for field in fields(ReadItem)):
        if getattr(case.ours, field) != getattr(case.theirs, field):
            rules = (name for name, rule in ALLOWED.items() if field in rule[0] and rule[2](case))
            yield field, next(rules, None)


@pytest.mark.parametrize("path", FEEDS, ids=lambda path: path.name)
def test_feedparser_reads_the_same(path: Path) -> None:
    for case in cases(path):
        for field, rule in differences(case):
            assert rule is not None, (field, getattr(case.ours, field), getattr(case.theirs, field))


@pytest.mark.data
def test_each_rule_is_needed_and_none_covers_more_than_it_did() -> None:
    used = Counter(rule for path in FEEDS for case in cases(path) for _, rule in differences(case))
    assert used == {
        "references": 12,
        "fractions": 134,
        "last change": 147,
        "dc:date": 236,
        "feed's authors": 20,
        "categories twice": 2,
        "copied content": 104,
        "captions": 169,
        "empty elements": 12,
    }


# Test files of feedparser -------------------------------------------------------------------

THEIR_FILES = Path(os.environ.get("FEEDPARSER_TESTS", DATA / "feedparser" / "tests"))
"""The `tests` folder of feedparser's source distribution."""
FOLDERS = ("wellformed", "illformed", "encoding", "entities")
FEWER = {
    "wellformed/lang/entry_content_xml_lang_blank_3.xml": "two entries that say the same",
    "wellformed/node_precedence/atom10_arbitrary_element.xml": "two entries that say the same",
    "wellformed/node_precedence/atom10_id.xml": "two entries that say the same",
    "wellformed/node_precedence/atom10_title.xml": "two entries that say the same",
    "illformed/rss_incomplete_cdata.xml": "its only item is cut: reported, and left out",
}


@pytest.mark.long
@pytest.mark.skipif(
    not THEIR_FILES.is_dir(),
    reason="unpack feedparser's sources, and set FEEDPARSER_TESTS to their folder tests",
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_item_that_feedparser_finds_in_its_own_tests_is_found() -> None:
    paths = [path for name in FOLDERS for path in sorted((THEIR_FILES / name).rglob("*.xml"))]
    fewer, theirs = set(), 0
    for path in paths:
        data, problems = path.read_bytes(), list[Problem]()
        try:
            ours = len(list(read_feed(data, path.name, on_problem=problems.append)))
        except InputError as error:
            ours = 0
            problems.append(error.problem)
        entries = feedparser.parse(data).entries
        theirs += len(entries)
        if ours < len(entries):
            fewer.add(path.relative_to(THEIR_FILES).as_posix())
            assert problems
    assert theirs > 1000
    assert fewer == set(FEWER)

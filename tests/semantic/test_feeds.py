"""Feeds of every format yield one vocabulary, and no data is lost silently."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from datetime import date
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

from semantic.errors import InputError, Place, Problem, ProblemWarning, Severity
from semantic.feeds import FeedFormat, read_feed, sniff_feed
from semantic.limits import Limits
from semantic.publication import Publication
from semantic.reading import read_publications
from semantic.terms import Term, compact
from semantic.vocabulary import CONTENT, DC, DCTERMS, ENCLOSURE, FOAF, RSS, TYPE, XSD
from tests.real_data import DATA

REAL_FEEDS = sorted((DATA / "feeds").glob("*.json"))


RSS2 = """<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:content="http://purl.org/rss/1.0/modules/content/"
  xmlns:media="http://search.yahoo.com/mrss/" xmlns:atom="http://www.w3.org/2005/Atom">
<channel><title>News</title><link>http://example.org/</link><description>All of it</description>
<language>de</language><atom:link rel="self" href="http://example.org/feed"/>
<item>
  <atom:link rel="self" href="http://example.org/self"/>
  <title>Caf&amp;eacute; &amp;amp; Bar</title><link> http://example.org/1 </link>
  <description>&lt;p&gt;Short&lt;/p&gt;</description>
  <content:encoded><![CDATA[<p>Long</p>]]></content:encoded>
  <pubDate>Sat, 13 Dec 2003 18:30:02 +0200</pubDate>
  <author>a@example.org (Anna)</author><dc:creator>Ben</dc:creator><dc:creator>Cem</dc:creator>
  <category>Climate</category><category domain="x">Energy</category><dc:subject>Sea</dc:subject>
  <enclosure url="http://example.org/1.mp3" type="audio/mpeg" length="77"/>
  <media:group><media:content url="http://example.org/1.jpg" type="image/jpeg" fileSize="9"/>
  </media:group>
  <guid>http://example.org/1</guid>
</item></channel></rss>"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de" xml:base="http://example.org/x/">
<title type="html">&lt;b&gt;News&lt;/b&gt;</title><subtitle>All of it</subtitle>
<link rel="self" href="/feed"/><link href="/"/><id>urn:feed</id>
<author><name>Feed Author</name></author>
<entry xml:lang="fr">
  <title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">Hello <b>you</b></div></title>
  <link rel="self" href="self/1"/><link href="1"/><link rel="alternate" href="other"/>
  <link rel="enclosure" href="1.mp3" type="audio/mpeg" length="77"/>
  <id>tag:example.org,2003:1</id><summary>Short</summary>
  <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">A &amp; <i>B</i></div></content>
  <published>2003-12-13T18:30:02.250+02:00</published><updated>2003-12-14T00:00:00Z</updated>
  <author><name>Anna</name></author><author><name>Ben</name></author>
  <category term="climate" label="Climate"/><category term="sea"/>
</entry>
<entry><title>Second</title><id>tag:example.org,2003:2</id><updated>2004-01-01T00:00:00Z</updated>
</entry></feed>"""

RDF1 = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:foaf="http://xmlns.com/foaf/0.1/" xml:lang="en">
<channel rdf:about="http://example.org/feed"><title>News</title><link>http://example.org/</link>
<description>All of it</description><dc:language>en</dc:language>
<items><rdf:Seq><rdf:li rdf:resource="http://example.org/1"/></rdf:Seq></items></channel>
<item rdf:about="http://example.org/1"><title>One</title><link>http://example.org/1</link>
<dc:date>2003-12-13</dc:date><foaf:maker rdf:resource="http://example.org/anna"/></item>
<item rdf:about="http://example.org/2"><title>Two</title><link>http://example.org/2</link></item>
<foaf:Person rdf:about="http://example.org/anna"><foaf:name>Anna</foaf:name></foaf:Person>
</rdf:RDF>"""

JSON = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "News",
    "home_page_url": "http://example.org/",
    "description": "All of it",
    "language": "de",
    "authors": [{"name": "Feed Author"}],
    "items": [
        {
            "id": "http://example.org/1",
            "url": "http://example.org/1",
            "title": "One",
            "summary": "Short",
            "content_html": "<p>Long</p>",
            "date_published": "2003-12-13T18:30:02+02:00",
            "date_modified": "2003-12-14T00:00:00Z",
            "authors": [{"name": "Anna"}, {"name": "Ben"}],
            "tags": ["Climate", "Sea"],
            "attachments": [
                {"url": "http://example.org/1.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 77}
            ],
        },
        {"id": 2, "content_text": "Second"},
    ],
}


def read(feed: str | bytes, limits: Limits | None = None) -> tuple[list[Publication], list[str]]:
    """Read a feed; return its publications and problems."""
    data = feed.encode() if isinstance(feed, str) else feed
    problems: list[Problem] = []
    found = read_feed(data, "f.xml", on_problem=problems.append, limits=limits or Limits())
    return list(found), [f"{p.severity.value}: {p}" for p in problems]


def refusal(feed: str | bytes, limits: Limits | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read(feed, limits)
    return str(caught.value)


def rss(*items: str, head: str = "") -> str:
    channel = f"<title>T</title><link>http://example.org/</link>{head}{''.join(items)}"
    return f'<rss version="2.0"><channel>{channel}</channel></rss>'


def item(fields: str = "", link: str = "http://example.org/1") -> str:
    return f"<item><title>t</title><link>{link}</link>{fields}</item>"


def titled(title: str, fields: str = "", link: str = "http://e/one") -> str:
    return f"<item><title>{title}</title><link>{link}</link>{fields}</item>"


def guid(text: str) -> str:
    return f"<guid isPermaLink='false'>{text}</guid>"


def atom(fields: str, namespace: str = "http://www.w3.org/2005/Atom") -> str:
    return f"<feed xmlns='{namespace}'><entry><id>urn:a</id>{fields}</entry></feed>"


def values(
    publication: Publication, predicate: NamedNode, subject: Term | None = None
) -> list[str]:
    subject = subject or NamedNode(publication.id)
    return [
        compact(o) for s, p, o in publication.triples if (s, p) == (subject, predicate)
    ]  # They stay in the publication's order.


def channel_of(publication: Publication) -> Term:
    (channel,) = {o for _, p, o in publication.triples if p == DCTERMS["isPartOf"]}
    return channel


# Shared vocabulary --------------------------------------------------------------------------


def test_rss_2() -> None:
    (publication,), problems = read(RSS2)
    assert problems == []
    assert publication.id == "http://example.org/1"
    assert (publication.source.line, publication.source.item) == (7, "http://example.org/1")
    assert values(publication, TYPE) == ["rss:item"]
    assert values(publication, RSS["title"]) == ['"Café & Bar"']
    assert values(publication, RSS["link"]) == ["<http://example.org/1>"]
    assert values(publication, RSS["description"]) == ['"<p>Short</p>"']
    assert values(publication, CONTENT["encoded"]) == ['"<p>Long</p>"']
    assert values(publication, DC["date"]) == ['"2003-12-13T16:30:02Z"^^xsd:dateTime']
    assert values(publication, DCTERMS["modified"]) == []
    assert values(publication, DC["creator"]) == ['"Anna"', '"Ben"', '"Cem"']
    assert values(publication, DC["subject"]) == ['"Climate"', '"Energy"', '"Sea"']
    assert values(publication, DC["language"]) == ['"de"']
    assert values(publication, DCTERMS["identifier"]) == ['"http://example.org/1"']


def test_rss_2_enclosures_and_media() -> None:
    (publication,), _ = read(RSS2)
    sound, picture = NamedNode("http://example.org/1.mp3"), NamedNode("http://example.org/1.jpg")
    assert values(publication, ENCLOSURE["enclosure"]) == [str(sound), str(picture)]
    assert values(publication, ENCLOSURE["url"], sound) == [str(sound)]
    assert values(publication, ENCLOSURE["type"], sound) == ['"audio/mpeg"']
    assert values(publication, ENCLOSURE["length"], sound) == ["77"]
    assert values(publication, ENCLOSURE["length"], picture) == ["9"]


@pytest.mark.parametrize("feed", [RSS2, ATOM, RDF1, json.dumps(JSON)])
def test_the_channel(feed: str) -> None:
    for publication in read(feed)[0]:
        channel = channel_of(publication)
        assert values(publication, TYPE, channel) == ["rss:channel"]
        assert values(publication, DCTERMS["title"], channel) == ['"News"']
        assert values(publication, FOAF["homepage"], channel) == ["<http://example.org/>"]
        assert values(publication, DCTERMS["description"], channel) == ['"All of it"']
        assert values(publication, DCTERMS["language"], channel)[-1] in ('"de"', '"en"')
        properties = {p.value for s, p, _ in publication.triples if s == channel}
        assert not any(p.startswith((RSS.iri, DC.iri)) for p in properties)


def test_atom() -> None:
    (publication, second), problems = read(ATOM)
    assert problems == []
    assert publication.id == "tag:example.org,2003:1"
    assert values(publication, RSS["title"]) == ['"Hello you"']
    assert values(publication, RSS["link"]) == ["<http://example.org/x/1>"]
    assert values(publication, RSS["description"]) == ['"Short"']
    assert values(publication, CONTENT["encoded"]) == ['"A &amp; <i>B</i>"']
    assert values(publication, DC["date"]) == ['"2003-12-13T16:30:02.25Z"^^xsd:dateTime']
    assert values(publication, DCTERMS["modified"]) == ['"2003-12-14T00:00:00Z"^^xsd:dateTime']
    assert values(publication, DC["creator"]) == ['"Anna"', '"Ben"']
    assert values(publication, DC["subject"]) == ['"climate"', '"Climate"', '"sea"']
    assert values(publication, DC["language"]) == ['"fr"']
    assert values(publication, DCTERMS["identifier"]) == ['"tag:example.org,2003:1"']
    enclosure = NamedNode("http://example.org/x/1.mp3")
    assert values(publication, ENCLOSURE["enclosure"]) == [str(enclosure)]
    assert values(publication, ENCLOSURE["length"], enclosure) == ["77"]
    assert second.id == "tag:example.org,2003:2"
    assert values(second, RSS["link"]) == []
    assert values(second, DC["creator"]) == ['"Feed Author"']
    assert values(second, DC["language"]) == ['"de"']
    assert values(second, DC["date"]) == ['"2004-01-01T00:00:00Z"^^xsd:dateTime']


def test_an_atom_entry_alone() -> None:
    entry = '<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:a</id><title>A</title></entry>'
    assert [p.id for p in read(entry)[0]] == ["urn:a"]


def test_rss_1_keeps_its_triples_and_gains_the_common_ones() -> None:
    (publication, second), problems = read(RDF1)
    assert problems == []
    assert [publication.id, second.id] == ["http://example.org/1", "http://example.org/2"]
    assert values(publication, RSS["title"]) == ['"One"@en', '"One"']
    assert values(publication, DC["date"]) == [
        '"2003-12-13"@en',
        '"2003-12-13T00:00:00Z"^^xsd:dateTime',
    ]
    anna = NamedNode("http://example.org/anna")
    assert values(publication, NamedNode("http://xmlns.com/foaf/0.1/maker")) == [str(anna)]
    assert values(publication, NamedNode("http://xmlns.com/foaf/0.1/name"), anna) == ['"Anna"@en']
    assert values(publication, RSS["items"], channel_of(publication)) == []
    assert channel_of(publication) == NamedNode("http://example.org/feed")
    assert anna not in {s for s, _, _ in second.triples}


@pytest.mark.parametrize("host", ["my", "channel"])
def test_rss_090_is_read_by_its_elements(host: str) -> None:
    feed = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
      xmlns="http://{host}.netscape.com/rdf/simple/0.9/"><channel><title>T</title></channel>
      <item><title>One</title><link>http://example.org/1</link></item></rdf:RDF>"""
    (publication,), problems = read(feed)
    assert problems == []
    assert values(publication, RSS["title"]) == ['"One"']
    assert values(publication, DCTERMS["title"], channel_of(publication)) == ['"T"']


def test_json_feed() -> None:
    (publication, second), problems = read(json.dumps(JSON))
    assert problems == []
    assert publication.id == "http://example.org/1"
    assert values(publication, RSS["title"]) == ['"One"']
    assert values(publication, RSS["description"]) == ['"Short"']
    assert values(publication, CONTENT["encoded"]) == ['"<p>Long</p>"']
    assert values(publication, DC["date"]) == ['"2003-12-13T16:30:02Z"^^xsd:dateTime']
    assert values(publication, DCTERMS["modified"]) == ['"2003-12-14T00:00:00Z"^^xsd:dateTime']
    assert values(publication, DC["creator"]) == ['"Anna"', '"Ben"']
    assert values(publication, DC["subject"]) == ['"Climate"', '"Sea"']
    assert values(publication, DC["language"]) == ['"de"']
    enclosure = NamedNode("http://example.org/1.mp3")
    assert values(publication, ENCLOSURE["length"], enclosure) == ["77"]
    assert second.id == "urn:graphmatch:item:http://example.org/:2"
    assert values(second, DCTERMS["identifier"]) == ['"2"']
    assert values(second, DC["creator"]) == ['"Feed Author"']


def test_atom_without_a_namespace() -> None:
    (first, second), problems = read(ATOM.replace(' xmlns="http://www.w3.org/2005/Atom"', "", 1))
    assert problems == []
    assert [first.title, second.title] == ["Hello you", "Second"]
    assert first.channel == "<b>News</b>" or first.channel == "News"


def test_atom_in_a_page() -> None:
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head/><body><div>%s</div></body></html>'
    publications, problems = read(page % ATOM)
    assert [p.title for p in publications] == ["Hello you", "Second"]
    assert [p.channel for p in publications] == ["News", "News"]
    assert problems == []


def test_cdf() -> None:
    feed = """<?xml version="1.0"?><!DOCTYPE Channel SYSTEM "http://www.w3c.org/Channel.dtd">
    <CHANNEL HREF="http://example.org/" LASTMOD="2003-12-13T00:00"><TITLE>News</TITLE>
    <ITEM HREF="http://example.org/1" LASTMOD="2003-12-13T18:30"><TITLE>One</TITLE>
    <ABSTRACT>Short</ABSTRACT></ITEM></CHANNEL>"""
    (publication,), problems = read(feed)
    assert problems == []
    assert (publication.id, publication.title) == ("http://example.org/1", "One")
    assert publication.channel == "News"
    assert values(publication, RSS["description"]) == ['"Short"']
    assert values(publication, DC["date"]) == ['"2003-12-13T18:30:00Z"^^xsd:dateTime']


@pytest.mark.parametrize("version", ["1.1", "1", 1.1, "https://jsonfeed.org/version/1.2"])
def test_versions_of_json_feed(version: object) -> None:
    assert len(read(json.dumps({**JSON, "version": version}))[0]) == 2


def test_base64_in_atom() -> None:
    title, content = (b64encode(text).decode() for text in ("Übel".encode(), b"<b>A</b>"))
    feed = (
        '<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><id>urn:a</id>'
        f'<title mode="base64">{title}</title>'
        f'<content type="text/html" mode="base64">{content}</content></entry>'
        '<entry><id>urn:b</id><title mode="base64">no base64!</title>'
        f'<content type="image/png">{b64encode(bytes(range(256))).decode()}</content>'
        "</entry></feed>"
    )
    (first, second), _ = read(feed)
    assert (first.title, values(first, CONTENT["encoded"])) == ("Übel", ['"<b>A</b>"'])
    assert second.title == "no base64!"


# Quirks of publishers -----------------------------------------------------------------------

SCRIPT = "A &lt;script&gt;1 &lt; 2&lt;/script&gt;&lt;b&gt;c&lt;/b&gt;"
XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'
DC_TERMS = 'xmlns="http://purl.org/dc/elements/1.1/"'
DTD = '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://example.org/rss.dtd">'
DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    '<a xlink:href="/b">x</a></svg>'
)
PODCAST = """<itunes:keywords>sea, ice ,sea</itunes:keywords>
<itunes:category text="Science"><itunes:category text="Nature"/></itunes:category>
<itunes:summary>Short</itunes:summary><itunes:author>Anna</itunes:author>
<media:group><media:content url="http://e/a"><media:keywords>wind</media:keywords>
<media:category label="Air">x</media:category></media:content></media:group>"""
PODCASTS = [
    rss(item(PODCAST)).replace(
        "<rss", f'<rss xmlns:media="{media}" xmlns:itunes="http://www.itunes.com/{itunes}"'
    )
    for media, itunes in (
        ("http://search.yahoo.com/mrss/", "dtds/podcast-1.0.dtd"),
        ("http://search.yahoo.com/mrss", "DTDs/Podcast-1.0.dtd"),  # They are misspelt.
    )
]
ONE_AUTHOR = {"version": "https://jsonfeed.org/version/1", "items": [{"author": {"name": "Anna"}}]}
FIELDS: dict[NamedNode, dict[str, list[str]]] = {
    DC["date"]: {
        atom("<published>2003-01-02</published>"): ["2003-01-02T00:00:00Z"],
        atom("<issued>2003-01-02</issued>", "http://purl.org/atom/ns#"): ["2003-01-02T00:00:00Z"],
        atom("<created>2026-01-02T03:04:05Z</created>"): ["2026-01-02T03:04:05Z"],
        rss(item('<issued xmlns="http://purl.org/dc/terms/">2003-12-13</issued>')): [
            "2003-12-13T00:00:00Z"
        ],
        rss(item(guid("12"))): [],
    },
    RSS["title"]: {
        atom(f'<title type="html">{SCRIPT}</title>'): ["A c"],
        atom('<title type="html">A c&lt;STYLE type="x"&gt;b</title>'): ["A c"],
        atom(f'<title type="xhtml"><div {XHTML}>A <script>b</script>c</div></title>'): ["A c"],
        atom(f"<title {DC_TERMS}>Solar</title>"): ["Solar"],
        DTD + rss(titled("Caf&eacute;")): ["Café"],
        '<!DOCTYPE rss [<!ENTITY co "Acme">]>' + rss(titled("An &co; day")): ["An Acme day"],
        "<RSS><Channel><ITEM><TITLE>One</TITLE></ITEM></Channel></RSS>": ["One"],
        rss(titled("it&#146;s &#0146; &#x92; \x92")): ["it\u2019s \u2019 \u2019 \u2019"],
        # These only look as if they were encoded twice.
        rss(titled("Ã© is how é looks, “when” read")): ["Ã© is how é looks, “when” read"],
        rss(titled("4 \xd7\xa05 and 6 \xd7\xa07")): ["4 \xd7\xa05 and 6 \xd7\xa07"],
        rss(titled("JOSÉ\u2019S NESCAFÉ® AT HOME")): ["JOSÉ\u2019S NESCAFÉ® AT HOME"],
    },
    RSS["link"]: {
        rss("<item><guid>http://e/2</guid></item>"): ["http://e/2"],
        rss(f"<item>{guid('http://e/2')}</item>"): [],
        rss("<item><guid>post 7</guid></item>"): [],
        rss(item(link="http://e/?a=1&amp;amp;b=2")): ["http://e/?a=1&b=2"],
        "<feed><entry><id>http://e/1</id></entry></feed>": ["http://e/1"],
        "<feed><entry><id>http://e/1</id><link href='http://e/b'/></entry></feed>": ["http://e/b"],
        atom(""): [],
    },
    ENCLOSURE["enclosure"]: {feed: ["http://e/a"] for feed in PODCASTS},
    DC["subject"]: {
        atom('<category>a</category><category term="b" label="C"/>'): ["a", "b", "C"],
        rss(item("<categories><category>Sea</category></categories>")): ["Sea"],
        PODCASTS[0]: ["sea", "ice", "wind", "Science", "Nature", "x", "Air"],
    },
    RSS["description"]: {
        PODCASTS[0]: ["Short"],
        atom(f"<description {DC_TERMS}>Power</description>"): ["Power"],
        **{
            rss(item(f"<description><![CDATA[{text}]]></description>")): [text]
            for text in (
                "The post office appeared first.",
                "<a href='/1'>Read more</a> books",
                "Continue reading",
                "<?xml version='1.0'?>",
            )
        },
        atom(f'<summary><div {XHTML}><img src="a.png" /></div></summary>'): ['<img src="a.png" />'],
        rss(item(f"<description>{DRAWING}</description>")): ['<svg><a xlink:href="/b">x</a></svg>'],
    },
    CONTENT["encoded"]: {
        rss(item(f"<body {XHTML}><p>A &lt; <br/>B</p></body>")): ["<p>A &lt; <br />B</p>"]
    },
    DC["creator"]: {
        rss(item("<author>a@example.org (Anna B.)</author>")): ["Anna B."],
        rss(item('<author>"Anna" &lt;a@example.org&gt;</author>')): ["Anna"],
        rss(item("<author>Anna (a@example.org)</author>")): ["Anna"],
        rss(item("<author>Anna (Ben)</author>")): ["Anna (Ben)"],
        rss(item("<author>a@example.org</author>")): ["a@example.org"],
        json.dumps(ONE_AUTHOR): ["Anna"],
        **{feed: ["Anna"] for feed in PODCASTS},
    },
}
"""For each property, feeds of one item and the values that it gets."""


@pytest.mark.parametrize(
    ("predicate", "feed", "expected"),
    [(p, *case) for p, cases in FIELDS.items() for case in cases.items()],
)
def test_items_are_read_as_publishers_mean_them(
    predicate: NamedNode, feed: str, expected: list[str]
) -> None:
    (publication,), problems = read(feed)
    assert [o.value for _, p, o in publication.triples if p == predicate] == expected
    assert problems == []


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("Sat, 13 Dec 2003 18:30:02 GMT", "2003-12-13T18:30:02Z"),
        ("13 Dec 03 18:30 EST", "2003-12-13T23:30:00Z"),
        ("Sat, 13 Dec 2003 18:30:02 CEST", "2003-12-13T16:30:02Z"),
        ("Sat, 13 Dec 2003 18:30:02", "2003-12-13T18:30:02Z"),
        ("2003-12-13 18:30:02 +0200", "2003-12-13T16:30:02Z"),
        ("2003-12-13T18:30Z", "2003-12-13T18:30:00Z"),
        ("2003-12-13T18:30:02.123456789Z", "2003-12-13T18:30:02.123456Z"),
        ("2003-12-13", "2003-12-13T00:00:00Z"),
        ("13 Dec 2003", "2003-12-13T00:00:00Z"),
        ("Mon, 01 Jan 0001 00:00:00 +0000", "0001-01-01T00:00:00Z"),
        ("Mon, 01 Jan 01 00:00:00 -0000", "2001-01-01T00:00:00Z"),
        ("Sat, 13 Dec 2003 18:30:02 +02:00", "2003-12-13T16:30:02Z"),
        ("Sat, 13 Dec 2003 18:30:02 GMT+2", "2003-12-13T16:30:02Z"),
        ("Sat, 13 Dec 2003 18:30:02+0200 (CEST)", "2003-12-13T16:30:02Z"),
        ("Sat Dec 13 18:30:02 CET 2003", "2003-12-13T17:30:02Z"),
        ("Saturday, 13 Sept, 2003 18:30:02 EDT", "2003-09-13T22:30:02Z"),
        ("Sat, 13 Dec 2003 6:30:02 PM", "2003-12-13T18:30:02Z"),
        ("December 13, 2003 12:30 a.m. EST", "2003-12-13T05:30:00Z"),
        ("2003/2/13 8:30:2", "2003-02-13T08:30:02Z"),
        ("13.2.2003", "2003-02-13T00:00:00Z"),
        ("Sáb, 13 Set 2003 18:30:02 -0300", "2003-09-13T21:30:02Z"),
        ("jeu., 3 juillet 2003 18:30 CEST", "2003-07-03T16:30:00Z"),
        ("3 März 2003", "2003-03-03T00:00:00Z"),
    ],
)
def test_dates(written: str, read_as: str) -> None:
    (publication,), problems = read(rss(item(f"<pubDate>{written}</pubDate>")))
    date = Literal(read_as, datatype=XSD["dateTime"])
    assert (values(publication, DC["date"]), problems) == ([compact(date)], [])


@pytest.mark.parametrize(
    "written",
    [
        "yesterday",
        "2003-02-30",
        "Sat, 13 Dec 2003 18:30:02 XYZ",
        "Sat, 13 Dec 2003 18:30:02 +zz:00",
        "Sat, 13 Dec 2003 6:30:02 QM",
        "13.14.2003",
        "Sat Dec 13 18:30:02 XYZ 2003",
        "0000-01-01",
        "13 Dec 99999",
        "2003",
    ],
)
def test_dates_that_cannot_be_read(written: str) -> None:
    (publication,), problems = read(rss(item(f"<pubDate>{written}</pubDate>")))
    assert values(publication, DC["date"]) == [f'"{written}"']
    assert problems == [
        f"warning: f.xml:1 (http://example.org/1): the date '{written}' cannot be read. "
        "It was kept as a string."
    ]


def test_a_long_text_is_not_read_as_a_date() -> None:
    """In damaged feeds, the date of an item can run to the end of the document."""
    written = "13 Dec 2003 18:30:02 GMT" + " x" * 100_000
    (publication,), problems = read(rss(item(f"<pubDate>{written}</pubDate>")))
    assert values(publication, DC["date"]) == [f'"{written}"']
    assert len(problems) == 1


def test_each_unreadable_date_is_reported_once() -> None:
    atom = '<atom:updated xmlns:atom="http://www.w3.org/2005/Atom">later</atom:updated>'
    (publication,), problems = read(rss(item(atom)))
    assert (
        values(publication, DCTERMS["modified"]) == values(publication, DC["date"]) == ['"later"']
    )
    assert len(problems) == 1
    assert len(read(rss(item("<pubDate>soon</pubDate>" + atom)))[1]) == 2


def test_markup_as_elements_in_rss_1_that_is_read_item_by_item() -> None:
    body = '<body xmlns="http://www.w3.org/1999/xhtml" rdf:parseType="Literal"><p>A</p></body>'
    spoiled = RDF1.replace("</item>", f"{body}</item>").replace('"http://example.org/2"', '"a b"')
    publications, problems = read(spoiled)
    assert [values(p, CONTENT["encoded"])[-1] for p in publications] == ['"<p>A</p>"'] * 2
    assert len(problems) == 1  # Only the IRI with the space is a problem.


@pytest.mark.parametrize(
    "namespace", ["https://www.rssboard.org/any", "http://www.w3.org/2005/Atom"]
)
def test_rss_with_a_namespace_of_its_own(namespace: str) -> None:
    feed = rss(item("<category>Sea</category>")).replace("<rss ", f"<rss\nxmlns='{namespace}' ")
    (publication,), _ = read(feed)
    assert (publication.title, publication.channel) == ("t", "T")
    assert values(publication, DC["subject"]) == ['"Sea"']
    assert publication.source == Place("f.xml", 2, item="http://example.org/1")
    quoted = "<description><![CDATA[<rss xmlns='a'>]]></description>"
    assert values(read(rss(item(quoted)))[0][0], RSS["description"]) == ["\"<rss xmlns='a'>\""]


def test_rss_1_whose_namespace_is_declared_late() -> None:
    feed = RDF1.replace(' xmlns="http://purl.org/rss/1.0/"', "")
    for name in ("channel", "item"):
        feed = feed.replace(f"<{name} ", f'<{name} xmlns="http://purl.org/rss/1.0/" ')
    assert [p.title for p in read(feed)[0]] == ["One", "Two"]


def test_rss_1_whose_items_have_no_names() -> None:
    feed = RDF1.replace('<item rdf:about="http://example.org/1">', "<item>")
    first, _ = read(feed)[0]
    assert (first.id, first.title, first.link) == ("http://example.org/1", "One", first.id)
    assert sum(o == RSS["item"] for _, _, o in first.triples) == 1


def test_rdf_whose_items_have_no_namespace() -> None:
    feed = RDF1.replace(' xmlns="http://purl.org/rss/1.0/"', "").replace(" rdf:about=", " id=")
    feed = feed.replace('<channel id="http://example.org/feed">', "<channel>")
    assert [p.title for p in read(feed)[0]] == ["One", "Two"]


def test_references_to_invalid_characters_are_removed() -> None:
    (publication,), (problem,) = read(rss(titled("a&#8;b&#x1F;c&#65; &amp; &#xD800;d")))
    assert publication.title == "abcA & d"
    assert "not well-formed" in problem


# Links --------------------------------------------------------------------------------------


def test_spaces_in_links_are_encoded() -> None:
    (publication,), problems = read(rss(item(link="http://example.org/a b|c")))
    assert publication.id == "http://example.org/a%20b%7Cc"
    assert problems == [
        "warning: f.xml:1 (item 1): the link 'http://example.org/a b|c' is not a valid IRI. "
        "It was read as http://example.org/a%20b%7Cc."
    ]


def test_paths_belong_to_the_site() -> None:
    (publication,), problems = read(rss(item(link="/a")))
    assert publication.id == "http://example.org/a"
    assert len(problems) == 1


def test_relative_links_without_a_base_stay_text() -> None:
    (publication,), problems = read(rss(item(link="example.org/a")))
    assert publication.id.startswith("urn:graphmatch:item:")
    assert values(publication, RSS["link"]) == ['"example.org/a"']
    assert problems == [
        "warning: f.xml:1 (item 1): the link 'example.org/a' is not a valid IRI. It was kept as a "
        "string."
    ]


def test_items_without_a_link_have_the_same_name_every_time() -> None:
    first, second = read(rss("<item><title>a</title></item><item><title>b</title></item>"))[0]
    again, _ = read(rss("<item><title>a</title></item><item><title>b</title></item>"))[0]
    assert first.id == again.id != second.id


def test_an_item_that_links_to_the_site_is_not_the_channel() -> None:
    (publication,), _ = read(
        rss(item("<guid isPermaLink='false'>urn:a</guid>", "http://example.org/"))
    )
    assert publication.id == "urn:a"
    assert values(publication, RSS["link"]) == ["<http://example.org/>"]


# Identity of items --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "items",
    [
        [titled("a", guid("urn:a")), titled("b", guid("urn:b")), titled("c", guid("urn:c"))],
        [titled("a", guid("1")), titled("b", guid("2")), titled("c", guid("3"))],
        [titled("a"), titled("b"), titled("c")],
        [titled("a", guid("1")), titled("b", guid("1")), titled("c", guid("1"))],
        [titled("a", link=""), titled("b", link=""), titled("c", link="")],
        [titled(t, link="http://example.org/") for t in "abc"],
        [titled(t, "<guid>http://example.org/</guid>", "http://example.org/") for t in "abc"],
    ],
)
def test_a_new_item_on_top_is_the_only_new_id(items: list[str]) -> None:
    fetches = [{p.id: p.title for p in read(rss(*items[n:]))[0]} for n in (2, 1, 0)]
    assert [len(fetch) for fetch in fetches] == [1, 2, 3]
    for before, after in pairwise(fetches):
        (new,) = set(after) - set(before)
        assert before == {id: title for id, title in after.items() if id != new}


def test_with_dates_a_new_item_below_is_the_only_new_id() -> None:
    old = titled("a", "<pubDate>2003-12-13</pubDate>")
    new = titled("b", "<pubDate>2003-12-14</pubDate>")
    before, after = ({p.id: p.title for p in read(rss(*each))[0]} for each in ([old], [old, new]))
    assert [after[id] for id in set(after) - set(before)] == ["b"]


@pytest.mark.parametrize(
    ("fields", "id"),
    [
        (guid("tag:example.org,2003:1"), "tag:example.org,2003:1"),
        ("<guid>http://e/2</guid>", "http://e/2"),
        (guid("a b:c/é"), "urn:graphmatch:item:http://example.org/:a%20b%3Ac%2F%C3%A9"),
        ("", "http://e/one"),
    ],
)
def test_the_id_is_the_guid_or_else_the_link(fields: str, id: str) -> None:
    (publication,), problems = read(rss(titled("a", fields)))
    assert (publication.id, problems) == (id, [])
    assert publication.link == "http://e/one"
    assert values(publication, RSS["title"]) == ['"a"']


def test_a_long_guid_has_a_short_name() -> None:
    first, second = read(rss(*(titled("a", guid("x" * 5000 + end)) for end in "ab")))[0]
    assert len(first.id) < 100
    assert first.id != second.id


def test_an_item_that_is_there_twice_is_delivered_once() -> None:
    publications, problems = read(rss(item(), item(link="http://e/2"), item()))
    assert [p.id for p in publications] == ["http://example.org/1", "http://e/2"]
    assert problems == [
        "warning: f.xml:1 (http://example.org/1): the item is the same as item 1. "
        "It is delivered once."
    ]


def test_two_items_with_one_name_are_both_delivered() -> None:
    (new, old), problems = read(
        rss(titled("b", link="http://e/#a"), titled("a", link="http://e/#a"))
    )
    assert old.id == "http://e/#a"
    assert re.fullmatch(r"http://e/#a-[0-9a-f]{32}", new.id)
    assert values(new, RSS["title"]) == ['"b"']
    assert problems == [
        "warning: f.xml:1 (http://e/#a): the item has the same id as item 2, but other "
        f"content. Both are delivered, this one with the id {new.id}."
    ]


# Facts about a publication ------------------------------------------------------------------


@pytest.mark.parametrize("feed", [RSS2, ATOM, RDF1, json.dumps(JSON)])
def test_the_facts_of_an_item(feed: str) -> None:
    publication = read(feed)[0][0]
    assert publication.title in ("Café & Bar", "Hello you", "One")
    assert publication.link in ("http://example.org/1", "http://example.org/x/1")
    assert publication.date is not None
    assert publication.date.date() == date(2003, 12, 13)
    assert publication.guid in (publication.id, "tag:example.org,2003:1")
    assert publication.channel == "News"
    assert publication.source.source == "f.xml"


def test_publications_that_are_not_items_have_no_facts() -> None:
    (publication,) = read_publications(BytesIO(b'<urn:a> <http://purl.org/rss/1.0/title> "A" .'))
    facts = publication.title, publication.link, publication.date, publication.guid
    assert (*facts, publication.channel) == (None,) * 5


def test_facts_that_cannot_be_had() -> None:
    (publication,), _ = read(rss(item("<pubDate>soon</pubDate>", link="no iri")))
    assert (publication.date, publication.link) == (None, "no iri")
    (early,), _ = read(rss(item("<pubDate>0000-01-01</pubDate>")))
    assert early.date is None


@pytest.mark.parametrize("feed", [RSS2, ATOM, RDF1, json.dumps(JSON)])
def test_only_items_have_the_properties_of_items(feed: str) -> None:
    for publication in read(feed)[0]:
        items = {s for s, p, o in publication.triples if (p, o) == (TYPE, RSS["item"])}
        told = {s for s, p, _ in publication.triples if p.value.startswith((RSS.iri, DC.iri))}
        assert told == items


def test_enclosures_that_are_wrong() -> None:
    wrong = '<enclosure url="no iri" length="big"/><enclosure length="3"/>'
    (publication,), problems = read(rss(item(wrong)))
    (node,) = {o for _, p, o in publication.triples if p == ENCLOSURE["enclosure"]}
    assert values(publication, ENCLOSURE["url"], node) == ['"no iri"']
    assert [p.rpartition(": ")[2] for p in problems] == [
        "the link 'no iri' is not a valid IRI. It was kept as a string.",
        "the enclosure's length 'big' is not a number. It was ignored.",
    ]


# Format detection ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (RSS2, FeedFormat.RSS),
        (ATOM, FeedFormat.ATOM),
        (RDF1, FeedFormat.RSS1),
        (json.dumps(JSON), FeedFormat.JSON_FEED),
        (
            '\n <!-- <feed> --><?x <rdf?><!DOCTYPE rss [<!ENTITY a "b">]><rss version="0.91">',
            FeedFormat.RSS,
        ),
        ('<a:feed xmlns:a="http://www.w3.org/2005/Atom">', FeedFormat.ATOM),
        ("<feed>", FeedFormat.ATOM),
        ("<CHANNEL HREF='http://example.org/'>", FeedFormat.RSS),
        (
            '<html xmlns="http://www.w3.org/1999/xhtml"><body>'
            '<feed xmlns="http://www.w3.org/2005/Atom">',
            FeedFormat.ATOM,
        ),
        ('{"version": "1.1", "feed_url": "x"}', FeedFormat.JSON_FEED),
        ('{"version": 1, "items": []}', FeedFormat.JSON_FEED),
        ('{"version": "2.0", "items": []}', None),
        ('{"version": "1.1", "licence": "x"}', None),
        ("<html>", None),
        ('<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">', None),
        ('{"items": []}', None),
        ("", None),
    ],
)
def test_sniffing(head: str, expected: FeedFormat | None) -> None:
    assert sniff_feed(head.encode()) is expected
    assert sniff_feed(head.encode("utf-8-sig")) is expected
    assert sniff_feed(head.encode("utf-16")) is expected


@pytest.mark.parametrize(
    "encoding", ["unicode_escape", "raw_unicode_escape", "utf-7", "punycode", "base64", "rot13"]
)
def test_encodings_of_python_are_unknown(encoding: str) -> None:
    """A declared Python codec is ignored, because escapes could hide markup."""
    said = "\\u003cb\\u003e +ADw-b+AD4-"
    feed = f'<?xml version="1.0" encoding="{encoding}"?>' + rss(titled(said))
    (publication,), (problem, *_) = read(feed)
    assert publication.title == said
    assert f"unknown encoding: {encoding}" in problem
    assert "It was read as utf-8" in problem
    told = json.dumps({**JSON, "encoding": encoding, "title": said}, ensure_ascii=False)
    assert read(told)[0][0].channel == said


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "shift_jis", "koi8-r", "utf-8-sig"])
def test_encodings(encoding: str) -> None:
    word = {"shift_jis": "気候", "koi8-r": "климат"}.get(encoding, "Übel")
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    feed = f'<?xml version="1.0" encoding="{declared}"?>' + rss(
        f"<item><title>{word}</title></item>"
    )
    assert values(read(feed.encode(encoding))[0][0], RSS["title"]) == [f'"{word}"']


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Die größten Flüsse führen im Frühling Hochwasser; das Café “hier” schließt"),
        ("koi8-r", "Как пережить новогоднюю ночь и не замёрзнуть по дороге домой"),
        ("shift_jis", "気候変動についての記事が投稿されました。新しい研究が発表された"),
        ("gb18030", "不归移民漫画系列专业工作和新的气候研究报告已经发表"),
    ],
)
@pytest.mark.parametrize("declaration", ["", "<?xml version='1.0' encoding='utf-8'?>"])
def test_encodings_that_are_not_declared(encoding: str, text: str, declaration: str) -> None:
    feed = declaration + rss(titled(text), titled("plain", link="http://e/2"))
    (publication, _), (problem,) = read(feed.encode(encoding))
    assert publication.title == text
    assert problem.startswith("warning: f.xml:1:")
    assert "not in the declared encoding, utf-8" in problem


def test_latin_1_that_other_encodings_could_be_as_well() -> None:
    text = "Eleição: os números não mudam nas simulações de 2º turno"
    assert read(rss(titled(text)).encode("latin-1"))[0][0].title == text


@pytest.mark.parametrize("taken_for", ["latin-1", "cp1252"])
def test_utf_8_that_was_taken_for_something_else(taken_for: str) -> None:
    text = "Größe “wie” im März… 5 €"
    # A cp1252 decoder rejects the bytes of ”.
    other = text.replace("”", "“").encode().decode(taken_for)
    (publication,), (problem,) = read(rss(titled(other)))
    assert publication.title == text.replace("”", "“")
    assert problem == (
        "warning: f.xml: the text is UTF-8 that was decoded as Latin-1 or windows-1252. "
        "It was read as UTF-8. Encode the text once, and declare UTF-8."
    )
    declared = "<?xml version='1.0' encoding='iso-8859-1'?>" + rss(titled(text))
    assert read(declared)[0][0].title == text


def test_a_few_invalid_bytes_of_utf_8_are_replaced() -> None:
    feed = rss(titled("Übel über Übel§")).encode().replace("§".encode(), b"\xc3")
    (publication,), (problem,) = read(feed)
    assert publication.title == "Übel über Übel\ufffd"
    assert problem.endswith("It was read as utf-8, with U+FFFD for invalid bytes.")


@pytest.mark.parametrize("declared", ["x-no", "utf-7"])
def test_an_encoding_that_there_is_not(declared: str) -> None:
    feed = f"<?xml version='1.0' encoding='{declared}'?>" + rss(titled("Übel"))
    (publication,), (problem,) = read(feed)
    assert publication.title == "Übel"
    assert problem.startswith(
        f"warning: f.xml:1: unknown encoding: {declared}. It was read as utf-8"
    )


def test_utf_16_that_is_cut_inside_a_character() -> None:
    text = rss(titled("Übel"))
    told = f"f.xml:1:{len(text) + 1}: not in the declared encoding, utf-16-"
    for encoding in ("utf-16", "utf-16-be"):
        (publication,), problems = read(text.encode(encoding) + b"x")
        # The text after the end is the second problem.
        assert (publication.title, len(problems)) == ("Übel", 2)
        assert told in problems[0]
        assert problems[0].endswith("with U+FFFD for invalid bytes.")


# Unusable feeds -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        ("", "f.xml: the feed is empty. Get the feed again."),
        (" \n", "f.xml: the feed is empty. Get the feed again."),
        ("<!doctype html><p>", "f.xml: an HTML page, not RDF or a feed. Give the address of the"),
        (
            "<opml version='2.0'/>",
            "f.xml: an OPML list of feeds, not a feed. Get the feeds that it lists",
        ),
        ("<kml/>", "f.xml: the document is not a feed. Give RSS, Atom or JSON Feed."),
        ("Hello", "f.xml: the document is not a feed. Give RSS, Atom or JSON Feed."),
        ("<rss><channel><item><title>", "f.xml:1: the document ends early, at 1:28. No item"),
        ("<rss><channel><it", "f.xml:1: the document ends early, at 1:15. No item"),
        (
            "<rss><channel></rss>",
            "f.xml:1:17: the XML is not well-formed at 1:17 (mismatched tag). No item",
        ),
        ("<rss>" + "<a>" * 300, "f.xml:1:771: the elements are nested more than 256 deep"),
        ('{"version": "https://jsonfeed.org/version/1"}', "f.xml: the feed has no list of items"),
        (
            '{"version": "https://jsonfeed.org/version/1", "items": [{',
            "f.xml:1:58: the JSON is not valid",
        ),
    ],
)
def test_feeds_that_cannot_be_used(feed: str | bytes, message: str) -> None:
    assert refusal(feed).startswith(message)


def test_an_entity_bomb_is_refused() -> None:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE rss [<!ENTITY l0 "lol">{entities}]>' + rss(item("&l9;"))
    assert "raise the limit xml_expansion" in refusal(bomb)
    doctype = bomb[: bomb.index("]>") + 2].replace("rss", "rdf:RDF")
    assert "raise the limit xml_expansion" in refusal(doctype + RDF1.replace("One", "&l9;"))


def test_a_large_feed_is_refused() -> None:
    assert refusal(RSS2, Limits(document_bytes=100)) == (
        "f.xml: the feed is larger than 100 bytes. Raise the limit document_bytes, or split the "
        "feed."
    )


def test_a_feed_may_have_no_items() -> None:
    assert read(rss()) == ([], [])


@pytest.mark.parametrize("feed", [RSS2, ATOM, RDF1, json.dumps(JSON)])
def test_items_of_too_many_triples_are_refused(feed: str) -> None:
    problems: list[Problem] = []
    whole = list(read_publications(BytesIO(feed.encode())))
    most = max(len(publication.triples) for publication in whole)
    limits = Limits(publication_triples=most - 1)
    found = read_publications(BytesIO(feed.encode()), on_problem=problems.append, limits=limits)
    kept = [publication.id for publication in found]
    assert kept == [p.id for p in whole if len(p.triples) < most] != [p.id for p in whole]
    assert len(kept) + len(problems) == len(whole)
    assert {problem.severity for problem in problems} == {Severity.REFUSED}
    assert f"the publication has more than {most - 1} triples. Raise" in str(problems[0])


# Broken feeds -------------------------------------------------------------------------------


def test_text_after_the_end_is_passed_over() -> None:
    publications, problems = read(rss(item()) + "\nmore")
    assert len(publications) == 1
    assert problems == [
        "warning: f.xml:2: there is text after the document's end, at 2:1. It was ignored."
    ]


@pytest.mark.parametrize("feed", [rss(*[item(link=f"http://e/{n}") for n in range(5)]), RDF1, ATOM])
def test_wherever_a_feed_is_cut_each_item_is_delivered_or_reported(feed: str) -> None:
    whole, _ = read(feed)
    start = feed.index("</item>" if "</item>" in feed else "</entry>") + 8
    for end in range(start, len(feed.rstrip())):
        cut = feed[:end]
        publications, problems = read(cut)
        begun = len(re.findall(r"<(?:item|entry)[ >]", cut))
        refused = [p for p in problems if p.startswith("refused: ")]
        assert len(publications) + len(refused) == begun
        assert len(problems) == 1
        assert "the document ends early, at " in problems[0]
        assert [p.id for p in publications] == [p.id for p in whole[: len(publications)]]


def test_a_cut_json_feed() -> None:
    text = json.dumps(JSON)
    publications, problems = read(text[:-10])
    assert [p.id for p in publications] == ["http://example.org/1"]
    assert problems[0].startswith("refused: f.xml:1 (item 2): the JSON is not valid (")


def test_damage_is_repaired_without_a_loss() -> None:
    damaged = item("<category>A & B\x01</category>", "http://e/?a=1&b=2") + item(
        "<media:title>x</media:title><category>Caf&eacute; &unheard; &lt;</category>", "http://e/2"
    )
    publications, problems = read(
        rss(damaged, "<item><description><![CDATA[&x]]></description></item>")
    )
    assert [p.id for p in publications[:2]] == ["http://e/?a=1&b=2", "http://e/2"]
    assert values(publications[0], DC["subject"]) == ['"A & B"']
    assert values(publications[1], DC["subject"]) == ['"Café &unheard; <"']
    assert values(publications[2], RSS["description"]) == ['"&x"']
    (problem,) = problems
    assert problem.startswith("warning: f.xml:1: the XML is not well-formed at 1:")
    assert problem.endswith(
        "The feed was repaired as far as possible. Ask the publisher to fix it."
    )


def test_an_xml_declaration_that_is_not_at_the_start() -> None:
    publications, problems = read("<!-- kept for an hour -->\n" + RSS2)
    assert [p.id for p in publications] == ["http://example.org/1"]
    assert [p.source.line for p in publications] == [8]
    assert len(problems) == 1


def test_tags_that_do_not_fit() -> None:
    publications, problems = read(rss(item("<b><i></b>"), item(link="http://example.org/2")))
    assert [p.id for p in publications] == ["http://example.org/1", "http://example.org/2"]
    assert "(mismatched tag)" in problems[0]


def test_items_that_recovery_cannot_reach_are_counted() -> None:
    lost = item("<description><![CDATA[never closed</description>") + item() + item()
    publications, problems = read(rss(item(link="http://e/0"), lost))
    assert [p.id for p in publications] == ["http://e/0"]
    assert problems[0].startswith("refused: f.xml:1 (item 2): the document ends early")
    assert problems[1] == "refused: f.xml: 2 more items cannot be read. Get the whole document."


@pytest.mark.parametrize("opener", ["<![CDATA[", "<!-- ", "&<!--"])
def test_many_asides_that_are_not_closed(opener: str) -> None:
    publications, problems = read(rss(item()).removesuffix("</channel></rss>") + opener * 100_000)
    assert len(publications) == 1
    assert problems != []


def test_a_bad_item_of_rss_1_spoils_no_other() -> None:
    spoiled = RDF1.replace('<item rdf:about="http://example.org/2">', '<item rdf:about="a b">')
    publications, problems = read(spoiled)
    assert [p.link for p in publications] == ["http://example.org/1", "http://example.org/2"]
    assert [p.title for p in publications] == ["One", "Two"]
    assert problems == [
        "warning: f.xml:9 (item 2): the item is not valid RDF. It was read by its element names "
        "instead."
    ]


def test_rss_1_items_with_one_name_keep_their_own_triples() -> None:
    doubled = RDF1.replace("http://example.org/2", "http://example.org/1")
    first, second = read(doubled)[0]
    node = NamedNode("http://example.org/1")
    assert values(first, RSS["title"], node) == ['"One"@en', '"One"']
    assert values(second, RSS["title"], node) == ['"Two"@en', '"Two"']
    assert (first.id.partition("#")[0], second.id) == (node.value, node.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("title", 5, "the field 'title' is not text. It was ignored."),
        ("tags", "a", "the field 'tags' is not a list. It was ignored."),
        ("tags", [1], "the field 'tags' member '1' is not text. It was ignored."),
        ("authors", ["Anna"], "the field 'authors' member 'Anna' is not an object."),
        ("author", "Anna", "the field 'author' is not an object. It was ignored."),
        (
            "attachments",
            [{"url": "http://e/", "size_in_bytes": "big"}],
            "the field 'size_in_bytes' is not a number. It was ignored.",
        ),
    ],
)
def test_json_fields_of_the_wrong_type(field: str, value: object, message: str) -> None:
    items = [{"id": "urn:a", field: value}]
    publications, problems = read(json.dumps({**JSON, "items": items}))
    assert [p.id for p in publications] == ["urn:a"]
    (problem,) = problems
    assert problem.startswith(f"warning: f.xml (item 1): {message}")


def test_a_json_item_must_be_an_object() -> None:
    publications, problems = read(json.dumps({**JSON, "items": [3, {"id": "urn:a"}]}))
    assert [p.id for p in publications] == ["urn:a"]
    assert problems == ["refused: f.xml (item 1): the item is not an object. The item is left out."]


def test_half_a_surrogate_pair_in_json() -> None:
    feed = json.dumps({**JSON, "items": [{"id": "urn:a", "title": "x\ud800", "tags": ["\udc00"]}]})
    assert values(read(feed)[0][0], RSS["title"]) == ['"x?"']


def test_problems_are_warnings_without_a_handler() -> None:
    with pytest.warns(ProblemWarning, match="text after the document's end"):
        list(read_feed((rss() + "more").encode(), "f.xml"))


# Real feeds ---------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("path", REAL_FEEDS, ids=lambda path: path.name)
def test_every_field_of_a_real_json_feed_is_read(path: Path) -> None:
    problems: list[Problem] = []
    publications = list(read_feed(path.read_bytes(), path.name, on_problem=problems.append))
    members = json.JSONDecoder().raw_decode(path.read_text("utf-8-sig"))[0]["items"]
    assert len(publications) == len(members)
    for member, predicate in {"title": RSS["title"], "date_published": DC["date"]}.items():
        having = [p for p in publications if any(q == predicate for _, q, _ in p.triples)]
        assert len(having) == sum(member in one for one in members)

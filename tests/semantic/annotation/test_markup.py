"""The text of HTML, compared with the output of `html.parser`."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import partial
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic.annotation.annotate import Annotator
from tests.real_data import DATA

ANNOTATOR = Annotator([])
plain_text, readable_text = ANNOTATOR.plain_text, partial(ANNOTATOR.plain_text, links=False)
BLOCKS = ("p", "div", "li", "ul", "td", "tr", "table", "h2", "blockquote", "pre", "hr")


class Reference(HTMLParser):
    """Extract text with `html.parser`, which joins words at block elements it does not know."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.hidden = False
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden = tag in ("script", "style")
        self.parts.append({"br": "\n"}.get(tag, "\n\n" if tag in BLOCKS else ""))

    def handle_endtag(self, tag: str) -> None:
        self.hidden = False
        self.parts.append("\n\n" if tag in BLOCKS else "")

    def handle_data(self, data: str) -> None:
        self.parts.append("" if self.hidden else data)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("2 < 3 & 4 > 1", "2 < 3 & 4 > 1"),
        ("<b>C</b>limate", "Climate"),
        ("<P CLASS=a>one</P><p>two", "\n\none\n\n\n\ntwo"),
        ("one<br/>two<BR>three", "one\ntwo\nthree"),
        ("<img alt=\"a > b\" title='<p>'>text", "text"),
        ("a<!-- <p> climate -->b<!-- <p> cut", "ab"),
        ("a<script>if (1 < 2) climate</script >b", "ab"),
        ("a<style>p {}</style>b<script>cut", "ab"),
        ("<?xml version='1.0'?><!DOCTYPE html>text", "text"),
        ("&lt;b&gt; caf&eacute; &#8217;&#x20AC; AT&T &unknown;", "<b> café ’€ AT&T &unknown;"),  # noqa: RUF001
        ('text <a href="http://example.org/cut of', "text "),
        ("<scripture>text", "text"),
        ("<b title=it's>Soup</b> is <a href=a'b>good</a>", "Soup is good"),
        ("a&#" + "1" * 5000 + ";b &#99999999;&#xD800;", "a\ufffdb \ufffd\ufffd"),
        ("<preface>text<pre>", "text\n\n"),
        ("", ""),
    ],
)
def test_text_of_markup(markup: str, text: str) -> None:
    assert plain_text(markup) == text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (
            "<p>Sun.</p><p>The post <a>Coal</a> appeared first on <a>Oil</a>.</p>",
            "\n\nSun.\n\n\n\n\n\n",
        ),
        ("Sun […] <a>Continue reading <b>“Coal”</b></a>\nWind", "Sun […] \nWind"),
        ("Sonne… Weiterlesen über Kohle", "Sonne… "),
        ("Sun<ul><li>Share on Coal<li>Click to share on Oil", "Sun\n\n\n\n\n\n"),
        ("They read. Read more books on coal, says the minister.", None),
        ("We read more about coal", None),
        ("Read more about coal", None),
        ("Sun. Read more " + "coal " * 50, None),
        ("The post office", None),
    ],
)
def test_what_feeds_add_is_left_out(markup: str, text: str | None) -> None:
    assert readable_text(markup) == (plain_text(markup) if text is None else text)


TEXT = st.sampled_from(
    ["climate", " ", "2 < 3", "&amp;", "&lt;p&gt;", "&eacute;", "it's", '"', ">"]
)
NAMES = st.sampled_from([*BLOCKS, "b", "a", "span", "x-y", "h7", "B", "Section1"])
VALUES = st.sampled_from(["", " a", " a=1", ' a="x > y"', " a='<b>'", ' a="it\'s" b', " a='\"'"])
OTHERS = st.sampled_from(
    ["<br>", "<!-- it's -->", "<script>a < b</script>", "<STYLE>it's</STYLE>", "<b></b>"]
)
ELEMENTS = st.recursive(
    TEXT | OTHERS,
    lambda inside: st.builds(
        lambda name, values, parts: f"<{name}{values}>{''.join(parts)}</{name}>",
        NAMES,
        VALUES,
        st.lists(inside, min_size=1, max_size=3),
    ),
)


@given(st.lists(ELEMENTS, max_size=5).map("".join))
def test_agrees_with_a_parser(markup: str) -> None:
    assert plain_text(markup) == "".join(Reference(markup).parts)


@pytest.mark.parametrize(
    "piece",
    [
        "<a ",
        '<a "',
        "<a '\"' ",
        "<!--",
        "<script>",
        "<",
        "</",
        "<![CDATA[",
        "<?",
        "<a b='",
        "&",
        "&#",
        ". Read more ",
        ". The post ",
    ],
)
def test_hostile_markup_takes_linear_time(piece: str) -> None:
    # Quadratic code would take minutes: `html.parser` needs 23 s for a tenth of this input.
    assert len(readable_text(piece * 200_000)) <= len(piece) * 200_000


@pytest.mark.data
def test_agrees_with_a_parser_on_real_descriptions() -> None:
    count = 0
    for path in sorted((DATA / "feeds").glob("????????????????.rss")):
        for item in ET.parse(path).iter("item"):
            markup = item.findtext("description") or ""
            count += "<" in markup
            letters = "".join(plain_text(markup).split())
            assert letters == "".join("".join(Reference(markup).parts).split())
    assert count > 300

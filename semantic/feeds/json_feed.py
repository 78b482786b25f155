"""Read JSON Feed 1 and 1.1 (jsonfeed.org); report and skip fields of the wrong type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from semantic.feeds.elements import distinct
from semantic.feeds.model import Channel, Enclosure, Item, ProblemReporter
from semantic.terms import SURROGATE

_DECODER = json.JSONDecoder()
_ITEMS = re.compile(r"\"items\"\s*:\s*\[")
_SEPARATOR = re.compile(r"[\s,]*(?=\{)")


class _Object:
    """A JSON object of a feed; its methods return fields of one type, and report others."""

    def __init__(self, value: dict[str, Any], report: ProblemReporter, item: str) -> None:
        self._value = value
        self._report = report
        self._item = item

    def text(self, *names: str) -> str:
        """Return the first of these fields that holds text; otherwise ``""``.

        A field before it that is neither text nor null is reported.
        """
        for name in names:
            value = self._value.get(name)
            if isinstance(value, str) and value.strip():
                return _sound(value)
            if value is not None and not isinstance(value, str):
                self._pass_over(name, "text")
        return ""

    def identifier(self) -> str:
        """Return the field ``id``; a number is accepted, because it is common and unambiguous."""
        value = self._value.get("id")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        return self.text("id")

    def size(self, name: str) -> str:
        """Return the field's nonnegative number as text; report any other value, return ``""``."""
        value = self._value.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
            return str(value).removesuffix(".0")
        if value is not None:
            self._pass_over(name, "a number")
        return ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the distinct strings in the field's list; report and skip other members."""
        texts = []
        for value in self._list(name):
            if isinstance(value, str):
                texts.append(_sound(value))
            else:
                self._pass_over(f"{name}' member '{value}", "text")
        return distinct(texts)

    def objects(self, name: str) -> Iterator[_Object]:
        """Yield the objects in the field's list; report and skip other members."""
        for value in self._list(name):
            if isinstance(value, dict):
                yield _Object(value, self._report, self._item)
            else:
                self._pass_over(f"{name}' member '{value}", "an object")

    def names(self) -> tuple[str, ...]:
        """Return the distinct names of the authors (without a name, the URL).

        Version 1.1 has a list of authors, version 1 one object.
        """
        authors = list(self.objects("authors"))
        author = self._value.get("author")
        if isinstance(author, dict):
            authors.append(_Object(author, self._report, self._item))
        elif author is not None:
            self._pass_over("author", "an object")
        names = (author.text("name", "url") for author in authors)
        return distinct(names)

    def _list(self, name: str) -> list[Any]:
        value = self._value.get(name)
        if isinstance(value, list):
            return value
        if value is not None:
            self._pass_over(name, "a list")
        return []

    def _pass_over(self, field: str, wanted: str) -> None:
        what = f"the field '{field}' is not {wanted}"
        self._report.warn(what, "It was ignored.", item=self._item)


def read_json_feed(text: str, report: ProblemReporter) -> tuple[Channel, list[Item]]:
    """Return the channel and the items of a JSON Feed; report fields of the wrong type.

    Raises
    ------
    InputError
        The text is not JSON, or has no list of items.

    Examples
    --------
    >>> feed = '{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": 7, "title": []}]}'
    >>> channel, items = read_json_feed(feed, ProblemReporter("a.json", print))
    a.json (item 1): the field 'title' is not text. It was ignored.
    >>> items[0].id
    '7'
    """
    document = _parse(text, report)
    feed = _Object(document, report, "the channel")
    members = document.get("items")
    if not isinstance(members, list):
        report.fail("the feed has no list of items", "A JSON Feed needs one, even if it is empty.")
    channel = Channel(
        id=feed.text("feed_url"),
        title=feed.text("title"),
        link=feed.text("home_page_url"),
        description=feed.text("description"),
        language=feed.text("language"),
        creators=feed.names(),
        self_link=feed.text("feed_url"),
        hubs=distinct(hub.text("url") for hub in feed.objects("hubs")),
    )
    return channel, list(_items(members, channel, report))


def _parse(text: str, report: ProblemReporter) -> dict[str, Any]:
    start = len(text) - len(text.lstrip())
    try:
        document, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return _salvage(text, error, report)
    except (RecursionError, ValueError):  # It nests too deep, or a number is too long.
        report.fail(
            "the JSON is nested too deeply or has a number with too many digits",
            "Ask the publisher to fix it.",
        )
    if not isinstance(document, dict):
        report.fail("the feed is not a JSON object", "Give a JSON Feed.")
    if text[end:].strip():
        line = text.count("\n", 0, end) + 1
        report.warn("there is text after the document's end", "It was ignored.", line)
    return document


def _salvage(text: str, error: json.JSONDecodeError, report: ProblemReporter) -> dict[str, Any]:
    """Return the fields before the items and the complete items of a feed that is not valid JSON.

    Report the first item that is incomplete. Raise `InputError` if none is complete.
    """
    what = f"the JSON is not valid ({error.msg}) at {error.lineno}:{error.colno}"
    remedy = "No item is complete. Get the whole document."
    start = _ITEMS.search(text)
    try:
        document = json.loads(text[: start.end()] + "]}") if start else {}
    except (ValueError, RecursionError):
        document = {}
    items = _complete(text, start.end()) if start else []
    if not items or not isinstance(document, dict):
        report.fail(what, remedy, error.lineno, error.colno)
    remedy = "The items before it are used. Get the whole document."
    report.refuse(what, remedy, error.lineno, f"item {len(items) + 1}")
    return {**document, "items": items}


def _complete(text: str, position: int) -> list[Any]:
    items = []
    try:
        while separator := _SEPARATOR.match(text, position):
            item, position = _DECODER.raw_decode(text, separator.end())
            items.append(item)
    except (ValueError, RecursionError):  # This item is truncated.
        pass
    return items


def _sound(text: str) -> str:
    """Strip a text, and replace lone surrogates, which JSON can escape and RDF cannot hold."""
    return SURROGATE.sub("?", text.strip())


def _items(members: list[Any], channel: Channel, report: ProblemReporter) -> Iterator[Item]:
    for number, member in enumerate(members, 1):
        place = f"item {number}"
        if isinstance(member, dict):
            yield _item(number, _Object(member, report, place), channel)
        else:
            report.refuse("the item is not an object", "The item is left out.", item=place)


def _item(number: int, fields: _Object, channel: Channel) -> Item:
    return Item(
        number,
        id=fields.identifier(),
        link=fields.text("url", "external_url"),
        title=fields.text("title"),
        description=fields.text("summary"),
        content=fields.text("content_html", "content_text"),
        published=fields.text("date_published"),
        updated=fields.text("date_modified"),
        language=fields.text("language"),
        creators=fields.names() or channel.creators,
        subjects=fields.texts("tags"),
        enclosures=tuple(_enclosures(fields)),
    )


def _enclosures(fields: _Object) -> Iterator[Enclosure]:
    for file in fields.objects("attachments"):
        url = file.text("url")
        if url:
            yield Enclosure(url, file.text("mime_type"), file.size("size_in_bytes"))

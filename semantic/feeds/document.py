"""Parse a feed's XML, even if truncated or damaged, to a tree with the line of each item.

Expat parses strictly: it reads everything, knows positions, and is fast. If it stops:

- Text after the end is skipped.
- If the document ends early, the complete items are kept and the truncated one is refused.
- Damaged XML is repaired and parsed again: first without loss, then with libxml2's recovery. Bare
  ``&`` must be repaired first, because libxml2 would drop ``&b`` of ``?a=1&b=2``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape, unescape
from html.entities import html5
from importlib import import_module
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from semantic.feeds.elements import NAMESPACES, short_name
from semantic.feeds.model import ProblemReporter
from semantic.limits import Limits
from semantic.safe_xml import check_attributes, check_xml
from semantic.syntax_detection import after_root_name

_ITEMS = frozenset({"item", "rss:item", "entry", "atom:entry", "atom:item"})
_MESSAGES = expat.errors
_JUNK_AFTER_END = _MESSAGES.codes[_MESSAGES.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]
_EARLY_END = frozenset(
    _MESSAGES.codes[message]
    for message in (
        _MESSAGES.XML_ERROR_NO_ELEMENTS,
        _MESSAGES.XML_ERROR_UNCLOSED_TOKEN,
        _MESSAGES.XML_ERROR_PARTIAL_CHAR,
        _MESSAGES.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
)

_ITEM_START = re.compile(r"<(?:[A-Za-z_][\w.-]*:)?(?:item|entry)[\s>/]", re.IGNORECASE)
# An unclosed comment or CDATA section extends to the end. Otherwise the pattern would search the
# rest of the text again for each of them.
_ASIDE = r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
_ASIDES = re.compile(_ASIDE, re.DOTALL)
_AMPERSAND = re.compile(
    rf"({_ASIDE})|&(?:(#[0-9]+|#x[0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9._-]{{0,40}});)?", re.DOTALL
)
_CONTROLS = bytes({*range(32)} - {*b"\t\n\r"})
_XML_DECLARATION = re.compile(r"<\?xml\s[^>]*\?>")
_ENTITY_NAME = re.compile(r"<!ENTITY\s+([^\s%]+)")
_OWN_ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos"})
_PREFIX = re.compile(r"(?:</?|\s)([A-Za-z_][\w.-]*):[A-Za-z_]")
_DECLARED_PREFIX = re.compile(r"\sxmlns:([\w.-]+)\s*=")


@dataclass(slots=True)
class FeedDocument:
    """The readable part of a feed in XML.

    Parameters
    ----------
    data
        The parsed document in UTF-8, after any repair.
    root
        The root element, empty if the document has none.
    items
        The complete items, each with its first line (``None`` if a repair moved lines).
    sound
        Whether the document is complete, perhaps after a repair.
    """

    data: bytes
    root: Element = field(default_factory=lambda: Element(""))
    items: list[tuple[int | None, Element]] = field(default_factory=list)
    sound: bool = True


def read_document(data: bytes, report: ProblemReporter, limits: Limits) -> FeedDocument:
    """Parse a feed's XML, if necessary after repairs; report truncation, repairs and skipped text.

    Parameters
    ----------
    data
        The document in UTF-8.

    Raises
    ------
    InputError
        No item can be read and the document is incomplete, or the document is hostile
        (`semantic.safe_xml.check_xml`).

    Examples
    --------
    >>> from semantic.limits import DEFAULT_LIMITS
    >>> cut = b"<rss><channel><item><title>a</title></item><item><ti"
    >>> document = read_document(cut, ProblemReporter("cut.rss", print), DEFAULT_LIMITS)
    cut.rss:1 (item 2): the document ends early, at 1:50. The item is left out. Get the whole \
document.
    >>> len(document.items)
    1
    """
    check_attributes(data, report.source)
    reading = _Reading(data, report, limits)
    error = reading.error
    if error is not None and _is_damage(error):
        reading = _mend(data, error, report, limits)
    ending = reading.error
    if ending is not None and ending.code == _JUNK_AFTER_END:
        what = f"there is text after the document's end, at {_position(ending)}"
        report.warn(what, "It was ignored.", ending.lineno)
        reading.document.sound = True
    elif ending is not None:
        _report_end(reading, ending, _begun(data), report)
    elif error is not None:
        _report_lost(_begun(data) - len(reading.document.items), report)
    return reading.document


def _is_damage(error: expat.ExpatError) -> bool:
    return error.code not in _EARLY_END and error.code != _JUNK_AFTER_END


def _position(error: expat.ExpatError) -> str:
    return f"{error.lineno}:{error.offset + 1}"


def _mend(
    data: bytes, error: expat.ExpatError, report: ProblemReporter, limits: Limits
) -> _Reading:
    what = f"the XML is not well-formed at {_position(error)} ({expat.ErrorString(error.code)})"
    mended = _Reading(mend_text(data.decode()).encode(), report, limits)
    if mended.error is not None and _is_damage(mended.error):
        mended = _Reading(recover(mended.document.data), report, limits, recovered=True)
    if not mended.document.items:
        remedy = "No item can be read. Ask the publisher to fix the feed."
        report.fail(what, remedy, error.lineno, error.offset + 1)
    remedy = "The feed was repaired as far as possible. Ask the publisher to fix it."
    report.warn(what, remedy, error.lineno)
    return mended


def _report_end(
    reading: _Reading, error: expat.ExpatError, begun: int, report: ProblemReporter
) -> None:
    what = f"the document ends early, at {_position(error)}"
    items = len(reading.document.items)
    if not items:
        report.fail(what, "No item is complete. Get the whole document.", error.lineno)
    if begun <= items:
        report.warn(what, "The items before it are used.", error.lineno)
        return
    line = reading.cut_line or error.lineno
    remedy = "The item is left out. Get the whole document."
    report.refuse(what, remedy, line, f"item {items + 1}")
    _report_lost(begun - items - 1, report)


def _report_lost(items: int, report: ProblemReporter) -> None:
    if items > 0:
        report.refuse(f"{items} more items cannot be read", "Get the whole document.")


def _begun(data: bytes) -> int:
    """Count the start tags of items in the text, without parsing."""
    return len(_ITEM_START.findall(_without_asides(data.decode())))


class _Reading:
    """The result of one strict parse up to the first error: the document and the `error`, if any.

    `cut_line` is the first line of an item that the error truncated. Recovery moves lines and can
    nest items inside an unclosed item, so a recovered document counts nested items. In other
    documents, an entry inside an entry is content.
    """

    def __init__(
        self, data: bytes, report: ProblemReporter, limits: Limits, *, recovered: bool = False
    ) -> None:
        self.document = FeedDocument(data)
        self.error: expat.ExpatError | None = None
        self.cut_line: int | None = None
        self._report = report
        self._limits = limits
        self._recovered = recovered
        self._depth = 0
        self._item: tuple[int, Element, int] | None = None  # line, element, depth
        self._builder = TreeBuilder()
        self._tags = _Tags()
        self._parser = expat.ParserCreate("utf-8", "}")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._builder.data
        self._parser.SkippedEntityHandler = self._skipped
        if b"<!DOCTYPE" in data:  # Only a DTD can define entities that expand.
            check_xml(data, report.source, limits)
        self._read(data)

    def _read(self, data: bytes) -> None:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            self.error = error
            self.document.sound = False
        finally:
            # The parser refers to methods of this object. Without this deletion, only the garbage
            # collector would free both.
            del self._parser
        if self._item is not None:
            self.cut_line = self._item[0]

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag, is_item = self._tags[name]
        self._depth += 1
        if self._depth > self._limits.xml_depth:
            remedy = "If you trust the document, raise the limit xml_depth."
            what = f"the elements are nested more than {self._limits.xml_depth} deep"
            line, column = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber
            self._report.fail(what, remedy, line, column + 1)
        if attributes:
            attributes = {_qualified(key): value for key, value in attributes.items()}
        element = self._builder.start(tag, attributes)
        if self._depth == 1:
            self.document.root = element
        if not is_item:
            return
        if self._recovered:
            self.document.items.append((None, element))
        elif self._item is None:
            self._item = (self._parser.CurrentLineNumber, element, self._depth)

    def _end(self, name: str) -> None:
        self._builder.end(name)  # The builder only counts ends; expat compares the names.
        if self._item is not None and self._item[2] == self._depth:
            self.document.items.append(self._item[:2])
            self._item = None
        self._depth -= 1

    def _skipped(self, name: str, is_parameter: bool) -> None:
        """Add the character of an HTML entity, which expat skips because no DTD is fetched.

        RSS 0.91 declares these entities by a reference to its DTD. Unknown ones stay as written.
        """
        if not is_parameter:
            self._builder.data(html5.get(f"{name};", f"&{name};"))


class _Tags(dict[str, tuple[str, bool]]):
    """Cache from an element's name in expat's form to its tag, and whether it is an item."""

    def __missing__(self, name: str) -> tuple[str, bool]:
        tag = _qualified(name)
        self[name] = tag, short_name(tag) in _ITEMS
        return self[name]


def _qualified(name: str) -> str:
    return "{" + name if "}" in name else name


# Repair ---------------------------------------------------------------------------------------


def mend_text(text: str) -> str:
    """Repair damage that can be repaired without loss, and keep the line numbers.

    Repairs cover bare ``&``, HTML entities, control characters and references to them, undeclared
    prefixes, comments, and a misplaced XML declaration.

    Examples
    --------
    >>> mend_text("<rss><a>Caf&eacute; A & B</a></rss>")
    '<rss><a>Café A &amp; B</a></rss>'
    """
    # A regular expression takes 50 times as long.
    text = text.encode().translate(None, _CONTROLS).decode()
    text = text.replace("\ufffe", "").replace("\uffff", "")
    start = after_root_name(text)
    text = _XML_DECLARATION.sub("", text[:start]) + text[start:]
    declared = frozenset(_ENTITY_NAME.findall(text)) | _OWN_ENTITIES

    def mend(found: re.Match[str]) -> str:
        aside, name = found.groups()
        if aside and aside.startswith("<!--") and aside.endswith("-->"):
            return "\n" * aside.count("\n")  # XML forbids "--" in a comment.
        if aside or name in declared:
            return found[0]
        if name and name.startswith("#"):
            return found[0] if unescape(found[0]) not in ("", "\ufffd") else ""
        character = html5.get(f"{name};")
        return escape(character, quote=False) if character else "&amp;" + found[0][1:]

    return _declare_prefixes(_AMPERSAND.sub(mend, text))


def _declare_prefixes(text: str) -> str:
    bare = _without_asides(text)
    used = set(_PREFIX.findall(bare)) - set(_DECLARED_PREFIX.findall(bare)) - {"xml", "xmlns"}
    iris = {prefix: NAMESPACES.get(prefix, f"urn:graphmatch:prefix:{prefix}") for prefix in used}
    declarations = "".join(f' xmlns:{prefix}="{iri}"' for prefix, iri in sorted(iris.items()))
    position = after_root_name(text)
    return text[:position] + declarations + text[position:]


def recover(data: bytes) -> bytes:
    """Repair XML with libxml2, which closes open elements; return no bytes if nothing can be read.

    Entities are not expanded, and no files are fetched.

    Examples
    --------
    >>> recover(b"<rss><a><b></a></rss>")
    b'<rss><a><b/></a></rss>'
    """
    etree = import_module("lxml.etree")  # It is slow to import and rarely needed.
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)
    try:
        root = etree.fromstring(data, parser=parser)
    except etree.XMLSyntaxError:
        return b""
    text: str = "" if root is None else etree.tostring(root.getroottree(), encoding="unicode")
    return text.encode()


def _without_asides(text: str) -> str:
    """Return a text without comments and CDATA sections.

    Unclosed ones stay, because they may contain items.
    """
    return _ASIDES.sub(lambda found: "" if found[0].endswith(("]]>", "-->")) else found[0], text)

"""A feed's XML as a tree, with the line of each item; cut and damaged documents included.

The strict reading is expat's: complete, with positions, and as fast as any. Where it stops:

- text after the end is passed over;
- at an early end, the items complete before it are kept, the cut one is refused;
- at damage, the document is mended and read again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.entities import html5
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from semantic.feeds.mend import mend_text, recover, without_asides
from semantic.feeds.names import ATOM_NAMESPACES, RSS_NAMESPACES
from semantic.feeds.report import Report
from semantic.limits import Limits

_ITEM_TAGS = frozenset(
    ["item", *(f"{{{namespace}}}item" for namespace in RSS_NAMESPACES)]
    + [f"{{{namespace}}}entry" for namespace in ATOM_NAMESPACES]
)
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

_ITEM_START = re.compile(r"<(?:[A-Za-z_][\w.-]*:)?(?:item|entry)[\s>/]")


@dataclass(slots=True)
class Document:
    """What could be read.

    Parameters
    ----------
    text
        The document as it was read, after mending.
    root
        The root element; empty where there is none.
    items
        The complete items, each with the line where it begins (``None`` after a mending that
        moves lines).
    sound
        Whether the document, perhaps mended, is whole.
    """

    text: str
    root: Element = field(default_factory=lambda: Element(""))
    items: list[tuple[int | None, Element]] = field(default_factory=list)
    sound: bool = True


def read_document(text: str, report: Report, limits: Limits) -> Document:
    """Read a document's items, reporting what is cut, mended or passed over.

    Raises
    ------
    InputError
        Not one item can be read, and the document is not whole; or it nests too deep.

    Examples
    --------
    >>> from semantic.limits import DEFAULT_LIMITS
    >>> cut = "<rss><channel><item><title>a</title></item><item><ti"
    >>> document = read_document(cut, Report("cut.rss", print), DEFAULT_LIMITS)
    cut.rss:1 (item 2): the document ends early, at 1:50. The item is left out: get the whole \
document.
    >>> len(document.items)
    1
    """
    reading = _Reading(text, report, limits)
    error = reading.error
    if error is not None and _is_damage(error):
        reading = _mend(text, reading, report, limits)
    ending = reading.error
    if ending is not None and ending.code == _JUNK_AFTER_END:
        what = f"there is text after the document's end, at {_position(ending)}"
        report.warn(what, "It is passed over.", ending.lineno)
        reading.document.sound = True
    elif ending is not None:
        _report_end(reading, ending, _begun(text), report)
    elif error is not None:
        lost = _begun(text) - len(reading.document.items)
        _report_lost(lost, report)
    return reading.document


def _is_damage(error: expat.ExpatError) -> bool:
    return error.code not in _EARLY_END and error.code != _JUNK_AFTER_END


def _position(error: expat.ExpatError) -> str:
    return f"{error.lineno}:{error.offset + 1}"


def _mend(text: str, reading: _Reading, report: Report, limits: Limits) -> _Reading:
    error = reading.error
    if error is None:
        return reading
    what = f"the XML is damaged at {_position(error)} ({expat.ErrorString(error.code)})"
    mended = _Reading(mend_text(text), report, limits)
    if mended.error is not None and _is_damage(mended.error):
        mended = _Reading(recover(mended.document.text), report, limits, recovered=True)
    if not mended.document.items:
        remedy = "No item can be read: have the feed mended where it is made."
        report.fail(what, remedy, error.lineno, error.offset + 1)
    remedy = "It was mended, as far as that goes; have it mended where it is made."
    report.warn(what, remedy, error.lineno)
    return mended


def _report_end(reading: _Reading, error: expat.ExpatError, begun: int, report: Report) -> None:
    what = f"the document ends early, at {_position(error)}"
    items = len(reading.document.items)
    if not items:
        report.fail(what, "No item is complete: get the whole document.", error.lineno)
    if begun <= items:
        report.warn(what, "The items before it are used.", error.lineno)
        return
    line = reading.cut_line or error.lineno
    remedy = "The item is left out: get the whole document."
    report.refuse(what, remedy, line, f"item {items + 1}")
    _report_lost(begun - items - 1, report)


def _report_lost(items: int, report: Report) -> None:
    if items > 0:
        report.refuse(f"{items} more items cannot be read", "Get the whole document.")


def _begun(text: str) -> int:
    """Count the items that begin somewhere, by the text alone."""
    return len(_ITEM_START.findall(without_asides(text)))


class _Reading:
    """One strict reading, as far as it goes.

    In a recovered document, whose lines have moved, items may stand inside an item that was not
    closed; in others an entry inside an entry is somebody's content.
    """

    def __init__(
        self, text: str, report: Report, limits: Limits, *, recovered: bool = False
    ) -> None:
        self.document = Document(text)
        self.error: expat.ExpatError | None = None
        self.cut_line: int | None = None
        self._report = report
        self._limits = limits
        self._recovered = recovered
        self._depth = 0
        self._item: tuple[int, Element, int] | None = None  # line, element, depth
        self._builder = TreeBuilder()
        self._parser = expat.ParserCreate("utf-8", "}")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._builder.data
        self._parser.SkippedEntityHandler = self._skipped
        self._read(text)

    def _read(self, text: str) -> None:
        try:
            self._parser.Parse(text.encode("utf-8"), True)
        except expat.ExpatError as error:
            self.error = error
            self.document.sound = False
        if self._item is not None:
            self.cut_line = self._item[0]

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _qualified(name)
        element = self._builder.start(tag, {_qualified(k): v for k, v in attributes.items()})
        if self._depth == 0:
            self.document.root = element
        self._depth += 1
        if self._depth > self._limits.xml_depth:
            what = f"its elements nest more than {self._limits.xml_depth} deep"
            remedy = "If you trust the document, raise the limit xml_depth."
            self._report.fail(what, remedy, self._parser.CurrentLineNumber)
        if tag in _ITEM_TAGS and self._recovered:
            self.document.items.append((None, element))
        elif tag in _ITEM_TAGS and self._item is None:
            self._item = (self._parser.CurrentLineNumber, element, self._depth)

    def _end(self, name: str) -> None:
        self._builder.end(_qualified(name))
        if self._item is not None and self._item[2] == self._depth:
            self.document.items.append(self._item[:2])
            self._item = None
        self._depth -= 1

    def _skipped(self, name: str, is_parameter: bool) -> None:
        """Read an entity of the DTD that is not fetched: RSS 0.91's are HTML's."""
        if not is_parameter:
            self._builder.data(html5.get(f"{name};", f"&{name};"))


def _qualified(name: str) -> str:
    return "{" + name if "}" in name else name

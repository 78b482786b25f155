"""Decode XML, and refuse dangerous documents before they are parsed.

If a parser expands internal entities, a document of a few hundred bytes can fill the memory (each
entity doubles the one before, or one long entity is used often). OWL files use entities
legitimately, so they cannot simply be forbidden. Expat therefore reads a document first, while this
module counts the delivered characters and the depth of elements. External entities are refused.
Cost: about 10 ms per megabyte, 30 to 40 with entities.

If a document is not well-formed, the error is returned, because the caller decides about it.
Nothing is fetched. After this check, expat parses feeds and OWL/XML. For RDF/XML, the compiled core
has its own check in the tokenizer of its parser.

Source: XML 1.0 section 4 (entities) and appendix F (detection of encodings).
"""

from __future__ import annotations

import codecs
import re
from typing import NoReturn, TypeAlias
from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers import expat

from semantic.errors import InputError, Place, Problem
from semantic.limits import DEFAULT_LIMITS, Limits

Fault: TypeAlias = expat.ExpatError
"""A well-formedness error: `code`, `lineno`, `offset`."""

# Expat calls it XML_ERROR_AMPLIFICATION_LIMIT_BREACH; pyexpat has no name for it.
_AMPLIFICATION = 43

_MOST_ATTRIBUTES = 10_000
_MOST_ENTITIES = 1000
_PIECE = 1 << 14
_LONG_TAG = re.compile(rb"<[^<>]{50000,}")  # A tag with too many attributes is at least this long.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # It begins with the mark of UTF-16, so it comes first.
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_INSIDE = bytes(range(0x80, 0xC0))
"""UTF-8 bytes that do not begin a character."""
_UNMARKED = ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"))
_DECLARATION = re.compile(r"\s*<\?xml\s[^>]*?\?>")
_DECLARED_ENCODING = re.compile(
    rb"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']"
)
_NOT_ENCODINGS = frozenset(
    {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "utf-7"}
)


def check_xml(data: bytes, source: str, limits: Limits = DEFAULT_LIMITS) -> Fault | None:
    """Refuse a document with external entities, or too much expansion, depth or attributes.

    Parameters
    ----------
    data
        The document, in any encoding. If it cannot be decoded, it is checked as Latin-1, in which
        markup is the same.
    source
        The document's name, for messages.
    limits
        `Limits.xml_expansion` (characters that entities add) and `Limits.xml_depth`.

    Returns
    -------
    Fault or None
        The first well-formedness error, for the caller to judge.

    Raises
    ------
    InputError
        If the document is refused; the error has the line, the column and the limit's name.

    Examples
    --------
    >>> check_xml(b'<!DOCTYPE a [<!ENTITY owl "http://www.w3.org/">]><a b="&owl;"/>', "a.owl")
    >>> check_xml(b"<a>cut", "a.owl").lineno
    1
    >>> check_xml(b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>', "a.owl")
    Traceback (most recent call last):
    ...
    semantic.errors.InputError: a.owl:1:14: the entity 'e' is outside the document. Entities \
are not fetched. Write the text into the document.
    """
    try:
        utf8 = recode_xml(data, source)
    except InputError:
        utf8 = data.decode("latin-1").encode()
    check_attributes(utf8, source)
    return _LimitedParse(utf8, source, limits).check()


def parse_xml(data: bytes, source: str, limits: Limits = DEFAULT_LIMITS) -> Element:
    """Return the root of a document that passes `check_xml`.

    Raises
    ------
    InputError
        If the document is refused, not well-formed, or not in its encoding; the error has the
        place.

    Examples
    --------
    >>> parse_xml(b"<a><b/></a>", "a.xml").tag
    'a'
    """
    fault: Fault | ParseError | None = check_xml(data, source, limits)
    if fault is None:
        try:
            return fromstring(recode_xml(data, source))  # noqa: S314 -- it has been looked through
        except ParseError as error:  # The check does not find undeclared prefixes.
            fault = error
    line, column = (fault.lineno, fault.offset) if isinstance(fault, Fault) else fault.position
    what, place = f"not valid XML: {fault}", Place(source, line, column + 1)
    raise InputError(Problem(what, place, "Correct the document there.")) from fault


def root_prefixes(data: bytes) -> dict[str, str]:
    """Return the prefixes that a document's root declares, with their namespaces.

    Parameters
    ----------
    data
        A document in UTF-8 that was read within the limits. The result is empty if expat rejects
        it, or if its number of entities could make older versions recurse too deep.

    Examples
    --------
    >>> root_prefixes(b"<!DOCTYPE a [<!ENTITY e 'urn:e'>]><a xmlns:e='&e;:' xmlns='urn:a'/>")
    {'e': 'urn:e:'}
    """
    if data.count(b"<!ENTITY") > _MOST_ENTITIES:
        return {}
    roots: list[dict[str, str]] = []
    parser = expat.ParserCreate("utf-8")
    parser.specified_attributes = True
    parser.StartElementHandler = lambda _, attributes: roots.append(attributes)
    for begin in range(0, len(data), _PIECE):
        try:
            parser.Parse(data[begin : begin + _PIECE])
        except expat.ExpatError:
            break
        if roots:
            break
    found = roots[0] if roots else {}
    return {name[6:]: iri for name, iri in found.items() if name.startswith("xmlns:")}


def check_attributes(data: bytes, source: str) -> None:
    """Refuse a document with a tag of more than 10,000 attributes: expat would take seconds.

    Parameters
    ----------
    data
        A document in UTF-8.

    Raises
    ------
    InputError
        If an element has too many attributes; the error has its line.

    Examples
    --------
    >>> check_attributes(b"<a b='1'/>", "a.rss")
    """
    for tag in _LONG_TAG.finditer(data):
        if tag[0].count(b"=") > _MOST_ATTRIBUTES:
            _refuse_attributes(Place(source, data.count(b"\n", 0, tag.start()) + 1))


def decode_xml(data: bytes) -> str:
    r"""Decode a document by its byte order mark or XML declaration, otherwise as UTF-8.

    Blanks replace the declaration, because decoded text has no encoding. White space before it,
    which XML forbids, then does no harm. Lines and columns stay the same.

    Raises
    ------
    UnicodeDecodeError
        If the bytes are not in the encoding.
    LookupError
        If the encoding is unknown.

    Examples
    --------
    >>> decode_xml(b"<?xml version='1.0' encoding='koi8-r'?><a>\xc4\xc1</a>").strip()
    '<a>да</a>'
    """
    text = _decode(data)
    declaration = _DECLARATION.match(text)
    if declaration is None:
        return text
    return re.sub(r"\S", " ", declaration[0]) + text[declaration.end() :]


def recode_xml(data: bytes, source: str) -> bytes:
    """Recode a document as UTF-8 for RDF/XML parsers, which need it; see `decode_xml`.

    A document in UTF-8, the usual case, is only checked.

    Raises
    ------
    InputError
        If the document is not in its encoding (the error has the place), or the encoding is
        unknown.
    """
    try:
        declared = _DECLARED_ENCODING.match(data[:1024])
        is_declared = declared is None or declared[1].lower() == b"utf-8"
        if is_declared and data[:1] == b"<" and data[1:2] != b"\0":
            data.decode()
            return data
        return decode_xml(data).encode()
    except UnicodeDecodeError as error:
        what = f"not in the declared encoding, {error.encoding} ({error.reason})"
        place = _place(error.object, error.start, source, error.encoding)
        remedy = "Declare the actual encoding, or save the document as UTF-8."
        if is_wide(error.encoding):  # Its first bytes declare this.
            remedy = "It is damaged or incomplete. Get it again, or save it as UTF-8."
        raise InputError(Problem(what, place, remedy)) from error
    except LookupError as error:
        remedy = "Save the document as UTF-8, and declare UTF-8."
        raise InputError(Problem(f"{error}", Place(source, line=1), remedy)) from error


def is_wide(encoding: str) -> bool:
    """Return whether an encoding is UTF-16 or UTF-32.

    Examples
    --------
    >>> is_wide("utf-16-le"), is_wide("utf-8")
    (True, False)
    """
    return encoding.startswith(("utf-16", "utf-32"))


def _place(data: bytes, offset: int, source: str, encoding: str = "utf-8") -> Place:
    before = data[:offset].decode(encoding, errors="replace")
    return Place(source, before.count("\n") + 1, len(before) - before.rfind("\n"))


def _decode(data: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding)
    for start, encoding in _UNMARKED:
        if data.startswith(start):
            return data.decode(encoding)
    declared = _DECLARED_ENCODING.match(data[:1024])
    name = declared[1].decode("ascii").lower() if declared else "utf-8"
    if is_wide(name) or name.startswith(("ucs-2", "iso-10646-ucs")):
        name = "utf-8"  # Its declaration was readable as ASCII.
    try:
        if codecs.lookup(name).name.replace("_", "-") not in _NOT_ENCODINGS:
            return data.decode(name)
    except LookupError:
        pass  # Some encodings of Python are not for text.
    raise LookupError(f"unknown encoding: {name}")


class _LimitedParse:
    """A parse by expat that is refused if its nesting, attributes or entities exceed the limits.

    External entities are refused, too.
    """

    def __init__(self, utf8: bytes, source: str, limits: Limits) -> None:
        self._data = utf8
        self._source = source
        self._limits = limits
        self._depth = 0
        self._referring = 0
        self._room: int | None = None
        self._parser = expat.ParserCreate("utf-8")
        # Entities of the internal DTD subset are parsed; external ones are refused.
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
        self._parser.buffer_text = True
        self._parser.ordered_attributes = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = self._declare
        self._parser.AttlistDeclHandler = self._count

    def check(self) -> Fault | None:
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            if error.code == _AMPLIFICATION:
                place = Place(self._source, error.lineno, error.offset + 1)
                _refuse_expansion(place, self._limits)
            return error
        finally:
            # The parser refers to methods of this object. Without this deletion, only the garbage
            # collector would free both.
            del self._parser
        return None

    def _start(self, _name: str, attributes: list[str]) -> None:
        if len(attributes) > 2 * _MOST_ATTRIBUTES:
            _refuse_attributes(self._place())
        self._depth += 1
        if self._depth > self._limits.xml_depth:
            _refuse_depth("the elements are nested", self._place(), self._limits)

    def _end(self, _name: str) -> None:
        self._depth -= 1

    def _declare(
        self,
        name: str,
        _is_parameter: bool,
        value: str | None,
        _base: str | None,
        system: str | None,
        _public: str | None,
        _notation: str | None,
    ) -> None:
        """Refuse an external entity, and count entities that refer to others.

        Older versions of expat expand these recursively, no deeper than their number.
        """
        if system is not None:
            end = self._parser.CurrentByteIndex + 1
            begin = max(self._data.rfind(b"<!ENTITY", 0, end), 0)
            what = f"the entity '{name}' is outside the document"
            remedy = "Entities are not fetched. Write the text into the document."
            raise InputError(Problem(what, _place(self._data, begin, self._source), remedy))
        self._referring += value is not None and ("&" in value or "%" in value)
        if self._referring > self._limits.xml_depth:
            _refuse_depth(
                "the references of entities to entities are nested", self._place(), self._limits
            )
        self._count()

    def _count(self, *_declared: object) -> None:
        """Start to count characters, because an entity or an attribute's default may add some."""
        if self._room is None:
            characters = len(self._data.translate(None, _INSIDE))
            self._room = characters + self._limits.xml_expansion
            self._parser.CharacterDataHandler = self._deliver
            self._parser.StartElementHandler = self._start_counting

    def _start_counting(self, name: str, attributes: list[str]) -> None:
        self._start(name, attributes)
        for value in attributes[1::2]:
            self._deliver(value)

    def _deliver(self, characters: str) -> None:
        self._room = (self._room or 0) - len(characters)
        if self._room < 0:
            _refuse_expansion(self._place(), self._limits)

    def _place(self) -> Place:
        parser = self._parser
        return Place(self._source, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)


def _refuse_expansion(place: Place, limits: Limits) -> NoReturn:
    what = f"the entities expand to more than {limits.xml_expansion:,} characters"
    remedy = "If you trust the document, raise the limit xml_expansion."
    raise InputError(Problem(what, place, remedy))


def _refuse_depth(what: str, place: Place, limits: Limits) -> NoReturn:
    remedy = "If you trust the document, raise the limit xml_depth."
    raise InputError(Problem(f"{what} more than {limits.xml_depth} deep", place, remedy))


def _refuse_attributes(place: Place) -> NoReturn:
    what = f"an element has more than {_MOST_ATTRIBUTES:,} attributes"
    remedy = "Normal documents need fewer. Check the source of this one."
    raise InputError(Problem(what, place, remedy))

"""Refuse what would take the machine down before it is parsed: entities, and deep nesting.

**XML.** An RDF/XML or feed parser that expands internal entities can be made to fill the memory
by a document of a few hundred bytes (each entity twice the one before; or one long entity, used
often). OWL files use entities legitimately, so they cannot simply be forbidden. Two passes:

1. The declarations, read with a regular expression (only where there are any): how long each
   entity becomes, how deep they refer to each other, and what all references add up to. No
   text is expanded, and it holds for parsers that are laxer than the standard.
2. The document, run through expat, which counts what it delivers and how deep elements nest.
   Cost: about 10 ms a megabyte (30 to 40 with entities), as pyoxigraph's own parse takes 10.

What is not well-formed is returned, not refused: that is up to who reads it. Nothing is fetched.

**JSON-LD and triple terms** are parsed by recursion on the machine's stack; when that overflows
there is no exception to catch. So depth is counted first. Cost: about a fifth of parsing for JSON,
and a search for ``<<`` in a text that has none.

Source: XML 1.0 section 4 (entities) and appendix F (detection of encodings).
"""

from __future__ import annotations

import codecs
import re
from typing import NoReturn, TypeAlias
from xml.parsers import expat

from semantic.errors import InputError, Place, Problem
from semantic.limits import DEFAULT_LIMITS, Limits

Fault: TypeAlias = expat.ExpatError
"""Something that is not well-formed: `code`, `lineno`, `offset`."""

_AMPLIFICATION = 43  # expat's XML_ERROR_AMPLIFICATION_LIMIT_BREACH; pyexpat has no name for it

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNMARKED = ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"))
_DECLARATION = re.compile(r"\s*<\?xml\s[^>]*?\?>")
_DECLARED_ENCODING = re.compile(
    rb"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']"
)
_NOT_ENCODINGS = frozenset(
    {"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "utf-7"}
)

_ENTITY = re.compile(
    r"<!ENTITY\s+(?P<parameter>%\s+)?(?P<name>[^\s\"'<>%&;]+)\s+"
    r"(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<external>SYSTEM|PUBLIC)\b)"
)
_REFERENCE = re.compile(r"([&%])([^;#&%\s<>\"']{1,200});")
_ESCAPED_AMPERSAND = re.compile(r"&#(?:38|x0*26);")

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_ALIKE = bytes.maketrans(b"[]", b"{}")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TRIPLE_TERM = re.compile(rb"<<\(|\)>>")


def check_xml(data: bytes, source: str, limits: Limits = DEFAULT_LIMITS) -> Fault | None:
    """Refuse a document with external entities, or one that expands or nests beyond the limits.

    Parameters
    ----------
    data
        The document, in any encoding; one that cannot be decoded is searched as Latin-1, in
        which markup reads the same.
    source
        The document's name, for messages.
    limits
        `Limits.xml_expansion` (characters that entities add) and `Limits.xml_depth`.

    Returns
    -------
    Fault or None
        The first thing that is not well-formed, for the reader to judge.

    Raises
    ------
    InputError
        With the line and column, and the name of the limit.

    Examples
    --------
    >>> check_xml(b'<!DOCTYPE a [<!ENTITY owl "http://www.w3.org/">]><a b="&owl;"/>', "a.owl")
    >>> check_xml(b"<a>cut", "a.owl").lineno
    1
    >>> check_xml(b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>', "a.owl")
    Traceback (most recent call last):
    ...
    semantic.errors.InputError: a.owl:1:14: the entity 'e' lies outside the document. Nothing is \
fetched: write its text into the document instead.
    """
    try:
        text = decode_xml(data)
    except (UnicodeDecodeError, LookupError):
        text = data.decode("latin-1")
    if "<!ENTITY" in text:
        _Declarations(text, source, limits).check()
    return _Delivery(text, source, limits).check()


def decode_xml(data: bytes) -> str:
    r"""Decode a document by its byte order mark, its XML declaration, or else as UTF-8.

    The declaration is blanked out (the text has no encoding any more), and with it any white
    space before it, which XML does not allow there; lines and columns stay where they were.

    Raises
    ------
    UnicodeDecodeError
        The bytes are not in the encoding.
    LookupError
        There is no such encoding.

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
    """Recode a document as UTF-8, which is all that parsers of RDF/XML know; see `decode_xml`.

    One that is in UTF-8 already, as most are, is only looked at.

    Raises
    ------
    InputError
        When it is not in its encoding, with the place; when there is no such encoding.
    """
    try:
        declared = _DECLARED_ENCODING.match(data[:1024])
        is_declared = declared is None or declared[1].lower() == b"utf-8"
        if is_declared and data[:1] == b"<" and data[1:2] != b"\0":
            data.decode()
            return data
        return decode_xml(data).encode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", errors="replace")) + 1
        what = f"not in its encoding, {error.encoding} ({error.reason})"
        remedy = "Declare the encoding that it is in, or save it as UTF-8."
        place = Place(source, before.count(b"\n") + 1, column)
        raise InputError(Problem(what, place, remedy)) from error
    except LookupError as error:
        remedy = "Save the document as UTF-8, and declare that."
        raise InputError(Problem(f"{error}", Place(source, line=1), remedy)) from error


def _decode(data: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding)
    for start, encoding in _UNMARKED:
        if data.startswith(start):
            return data.decode(encoding)
    declared = _DECLARED_ENCODING.match(data[:1024])
    name = declared[1].decode("ascii").lower() if declared else "utf-8"
    if name.startswith(("utf-16", "utf-32", "ucs-2", "iso-10646-ucs")):
        name = "utf-8"  # its own declaration was readable as ASCII
    if codecs.lookup(name).name in _NOT_ENCODINGS:
        raise LookupError(f"unknown encoding: {name}")
    return data.decode(name)


class _Declarations:
    """What the entities of a document amount to, without expanding any."""

    def __init__(self, text: str, source: str, limits: Limits) -> None:
        self._text = text
        self._source = source
        self._limits = limits
        self._found: dict[str, re.Match[str]] = {}  # "&name" or "%name" to its declaration
        self._lengths: dict[str, int] = {}
        self._depths: dict[str, int] = {}

    def check(self) -> None:
        doctype = self._text.find("<!DOCTYPE")
        if doctype < 0:
            return
        for found in _ENTITY.finditer(self._text, doctype):
            if found["external"]:
                place = _place(self._source, self._text, found.start())
                _refuse_external(found["name"], place)
            key = ("%" if found["parameter"] else "&") + found["name"]
            self._found.setdefault(key, found)
        for key in self._found:
            self._measure(key)
        self._check_references(doctype)

    def _check_references(self, doctype: int) -> None:
        added = -len(self._text)
        for found in _REFERENCE.finditer(self._text, doctype):
            added += self._lengths.get(found[1] + found[2], 0)
            if added > self._limits.xml_expansion:
                place = _place(self._source, self._text, found.start())
                _refuse_expansion(place, self._limits)

    def _measure(self, key: str) -> None:
        """Compute length and depth of an entity after those it refers to, without recursion."""
        pending = [key]
        while pending:
            current = pending[-1]
            if current in self._depths:
                pending.pop()
                continue
            references = self._references(current)
            unknown = {name for name in references if name not in self._lengths}
            if current not in self._lengths and unknown:
                self._lengths[current] = 0  # a cycle ends here; parsers refuse it
                pending.extend(unknown)
            else:
                self._settle(pending.pop(), references)

    def _settle(self, key: str, references: list[str]) -> None:
        found = self._found[key]
        length = len(_value(found)) + sum(self._lengths[name] for name in references)
        self._lengths[key] = length
        self._depths[key] = 1 + max((self._depths.get(name, 0) for name in references), default=0)
        if length > self._limits.xml_expansion:
            _refuse_expansion(_place(self._source, self._text, found.start()), self._limits)
        if self._depths[key] > self._limits.xml_depth:
            place = _place(self._source, self._text, found.start())
            _refuse_depth("its entities refer to each other", place, self._limits)

    def _references(self, key: str) -> list[str]:
        value = _ESCAPED_AMPERSAND.sub("&", _value(self._found[key]))
        names = (found[1] + found[2] for found in _REFERENCE.finditer(value))
        return [name for name in names if name in self._found]


class _Delivery:
    """What expat delivers of a document: how many characters, how deep."""

    def __init__(self, text: str, source: str, limits: Limits) -> None:
        self._data = text.encode("utf-8", errors="replace")
        self._source = source
        self._limits = limits
        self._depth = 0
        self._room = len(text) + limits.xml_expansion
        self._parser = expat.ParserCreate("utf-8")
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)  # internal ones
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
        return None

    def _start(self, _name: str, _attributes: list[str]) -> None:
        self._depth += 1
        if self._depth > self._limits.xml_depth:
            _refuse_depth("its elements nest", self._place(), self._limits)

    def _end(self, _name: str) -> None:
        self._depth -= 1

    def _declare(
        self,
        name: str,
        _is_parameter: bool,
        _value: str | None,
        _base: str | None,
        system: str | None,
        _public: str | None,
        _notation: str | None,
    ) -> None:
        if system is not None:
            _refuse_external(name, self._place())
        self._count()

    def _count(self, *_declared: object) -> None:
        """Begin to count, now that there is an entity or an attribute's default to deliver."""
        self._parser.CharacterDataHandler = self._deliver
        self._parser.StartElementHandler = self._start_counting

    def _start_counting(self, name: str, attributes: list[str]) -> None:
        self._start(name, attributes)
        for value in attributes[1::2]:
            self._deliver(value)

    def _deliver(self, characters: str) -> None:
        self._room -= len(characters)
        if self._room < 0:
            _refuse_expansion(self._place(), self._limits)

    def _place(self) -> Place:
        parser = self._parser
        return Place(self._source, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)


def _value(found: re.Match[str]) -> str:
    return found["double"] or found["single"] or ""


def _place(source: str, text: str, position: int) -> Place:
    before = text[:position]
    return Place(source, before.count("\n") + 1, position - before.rfind("\n"))


def _refuse_external(name: str, place: Place) -> NoReturn:
    what = f"the entity '{name}' lies outside the document"
    remedy = "Nothing is fetched: write its text into the document instead."
    raise InputError(Problem(what, place, remedy))


def _refuse_expansion(place: Place, limits: Limits) -> NoReturn:
    what = f"its entities would add more than {limits.xml_expansion:,} characters"
    remedy = "If you trust the document, raise the limit xml_expansion."
    raise InputError(Problem(what, place, remedy))


def _refuse_depth(what: str, place: Place, limits: Limits) -> NoReturn:
    remedy = "If you trust the document, raise the limit xml_depth."
    raise InputError(Problem(f"{what} more than {limits.xml_depth} deep", place, remedy))


def json_depth(document: bytes, most: int) -> int:
    """Return how deep the objects and lists of a JSON document nest.

    Parameters
    ----------
    most
        Anything deeper is counted as one more than this.

    Examples
    --------
    >>> json_depth(b'{"a": [1, {"b": "[[["}]}', most=10)
    3
    """
    plain = _ESCAPE.sub(b"", document) if b"\\" in document else document
    brackets = b"".join(plain.split(b'"')[::2]).translate(_ALIKE, _NOT_BRACKETS)
    for depth in range(most + 1):  # each time, take the innermost pairs out
        rest = brackets.replace(b"{}", b"")
        if len(rest) == len(brackets):
            return min(most + 1, depth + rest.count(b"{"))
        brackets = rest
    return most + 1


def triple_term_depth(text: bytes, start: int = 0) -> tuple[int, int]:
    """Return how deep triple terms nest in a piece of text, and how deep it is at its end.

    Parameters
    ----------
    text
        A piece of Turtle, TriG, N-Triples or N-Quads. What looks like a triple term in a literal
        counts too.
    start
        How deep it is at the beginning.

    Examples
    --------
    >>> triple_term_depth(b"<<( <urn:a> <urn:b> <<( <urn:a> <urn:b> 5 )>> )>> .")
    (2, 0)
    """
    if b"<<" not in text and b">>" not in text:
        return start, start
    depths = [start]
    for found in _TRIPLE_TERM.finditer(text):
        depths.append(max(0, depths[-1] + (1 if found[0] == b"<<(" else -1)))
    return max(depths), depths[-1]

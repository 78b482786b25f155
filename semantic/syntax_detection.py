"""Detect the syntax of a document.

If the file extension or media type belongs to an RDF syntax, it decides; otherwise the content
does. If a document is certainly not RDF, the error names its actual format.
"""

from __future__ import annotations

import codecs
import re

from pyoxigraph import RdfFormat

from semantic.errors import InputError, Place, Problem, unknown_choice
from semantic.files import plain
from semantic.safe_xml import decode_xml, is_wide

HEAD_BYTES = 8192
"""Number of bytes in which the syntax is detected."""

BLANK = b" \t\r\n\xef\xbb\xbf\0"
"""Bytes that an empty document may contain."""

NAME_IT = "Name the syntax (`format=` or `--format`): for example ttl, nq, jsonld, rdf."

_EXTENSIONS = ("nt", "nq", "ttl", "trig", "n3", "rdf", "jsonld")
_RDF_NAMESPACE = "rdf-syntax-ns#"
_COMMENTS = re.compile(r"(?:\s+|#[^\n]*(?:\n|\Z))*")
_STATEMENT = re.compile(
    r"""
    (?:<[^>\s]*>|_:\S+) \s+ <[^>\s]*> \s+
    (?:<[^>\s]*>|_:\S+|\"(?:[^\"\\]|\\.)*+\"(?:@[\w-]+|\^\^<[^>\s]*>)?|<<\(.*\)>>)
    (?:\s+(?:<[^>\s]*>|_:\S+))? \s* \. \s* (?:\#.*)?
    """,
    re.VERBOSE,
)
_DIRECTIVE = re.compile(r"\s*(?:@(?:prefix|base)|prefix\s+[\w.-]*:\s*<|base\s*<)", re.IGNORECASE)
_TEXT = re.compile(
    r"""
    @(?:prefix|base|version)\b | (?i:prefix)\s+[\w.-]*:\s*< | (?i:base)\s*< | (?i:version)\s+["']
  | (?i:graph)\s+[<\[_\w] | [<\[({] | _:\w | [\w.-]*:[\w<%\\-]
    """,
    re.VERBOSE,
)
_JSON = re.compile(r"\{\s*[\"}]|\[\s*[\[{\"\d-]")
_XML = re.compile(
    r"""
    <\?xml\b | <!DOCTYPE\b | <!-- | <[A-Za-z_][\w.-]*(?::[\w.-]+)?\s+[\w:.-]+\s*=
  | <[A-Za-z_][\w.-]*>(?=.*</)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_PROLOGUE = re.compile(
    r"(?:\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>)*", re.DOTALL | re.IGNORECASE
)
_ROOT = re.compile(r"<((?:[\w.-]+:)?[\w.-]+)([^>]*)")
_NAMESPACE = re.compile(r"\sxmlns(?::([\w.-]+))?\s*=\s*[\"']([^\"']*)[\"']")

_BINARY = (
    (b"\x1f\x8b", "compressed with gzip"),
    (b"BZh", "compressed with bzip2"),
    (b"\xfd7zXZ\0", "compressed with xz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"PK\x03\x04", "a ZIP archive"),
)
_STATEMENTS = re.compile(rb"<[A-Za-z][^\s<>:]*+:[^\s<>]*+>[ \t]|_:[^\0]")
"""Usual beginnings of N-Triples, with an IRI or a blank node; no other format has them."""
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_ANYTHING = "Give RDF (Turtle, RDF/XML, JSON-LD, N-Quads, …) or a feed (RSS, Atom, JSON Feed)."


def format_of_name(name: str) -> RdfFormat | None:
    """Return the RDF format of a file name's extension; ``None`` if it does not identify one.

    Extensions such as ``xml`` and ``json`` have other uses, so they identify none.

    Examples
    --------
    >>> format_of_name("a/b.ttl"), format_of_name("feed.xml"), format_of_name("notes")
    (<RdfFormat Turtle>, None, None)
    """
    extension = name.rpartition("/")[2].rpartition(".")[2].lower()
    if extension in ("xml", "json", "txt", name):
        return None  # It may be a feed or anything else, so the content decides.
    return RdfFormat.RDF_XML if extension == "owl" else RdfFormat.from_extension(extension)


def format_of_media_type(media_type: str) -> RdfFormat:
    """Return the format of a media type (``text/turtle``) or an extension (``ttl``).

    Raises
    ------
    InputError
        If it is not an RDF syntax.
    """
    name = plain(media_type)
    found = RdfFormat.from_media_type(name) or RdfFormat.from_extension(name.lstrip("."))
    if found == RdfFormat.STREAMING_JSON_LD:
        return RdfFormat.JSON_LD
    if found is None:
        raise unknown_choice("format", media_type, _EXTENSIONS)
    return found


def format_of_content(head: bytes) -> RdfFormat | None:
    """Return the format that a document's beginning looks like, or ``None`` if it is not RDF.

    The result includes simpler syntaxes: TriG stands for Turtle, and N-Quads for N-Triples.

    Examples
    --------
    >>> format_of_content(b"@prefix a: <urn:a> .")
    <RdfFormat TriG>
    >>> format_of_content(b"<urn:a> <urn:b> <urn:c> .")
    <RdfFormat N-Quads>
    >>> format_of_content(b"<!DOCTYPE html><html>") is None
    True
    """
    body = decode_head(head).lstrip()
    if _XML.match(body):
        return RdfFormat.RDF_XML if _RDF_NAMESPACE in body else None
    if _JSON.match(body):
        return RdfFormat.JSON_LD
    comments = _COMMENTS.match(body)
    body = body[comments.end() :] if comments else body
    if _is_of_lines(body):
        return RdfFormat.N_QUADS
    return RdfFormat.TRIG if _TEXT.match(body) else None


def _is_of_lines(body: str) -> bool:
    """Return whether most lines are N-Quads statements, and none is a directive of Turtle.

    The last line may be truncated.
    """
    lines = [line for line in body.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    if any(_DIRECTIVE.match(line) for line in lines):
        return False
    whole = lines[:-1] if len(lines) > 1 and not body.endswith(("\n", "\r")) else lines
    return 2 * sum(_STATEMENT.fullmatch(line.strip()) is not None for line in whole) > len(whole)


def tell_syntax(head: bytes, source: str, remedy: str = NAME_IT) -> RdfFormat:
    """Return the syntax of a document from its name, otherwise from its beginning.

    Parameters
    ----------
    remedy
        Advice for a document that neither its name nor its content identifies.

    Raises
    ------
    InputError
        If it is not RDF; the message names its actual format, if known.
    """
    named, seen = format_of_name(source), format_of_content(head)
    refuse_foreign(head, source, named)
    if named is None and seen is None and source.lower().endswith(".json"):
        return RdfFormat.JSON_LD
    found = named or seen
    if found is None:
        raise InputError(
            Problem(
                "neither the name nor the content shows an RDF syntax or a feed format",
                Place(source),
                remedy,
            )
        )
    return found


def refuse_foreign(head: bytes, source: str, named: RdfFormat | None = None) -> None:
    """Refuse documents that are not RDF: web pages, archives, other XML, UTF-16 except XML.

    Parameters
    ----------
    named
        The syntax from the caller or the name: RDF/XML may have any root element.

    Raises
    ------
    InputError
        If it is refused; the message has its format and a remedy.
    """
    if _STATEMENTS.match(head):
        return
    for start, what in _BINARY:
        if head.startswith(start):
            raise InputError(Problem(what, Place(source), "Unpack it first."))
    body = decode_head(head).lstrip()
    if _XML.match(body):
        _refuse_other_xml(body, source, named)
    elif _is_wide(head):
        what = "the encoding is UTF-16 or UTF-32, but this syntax requires UTF-8"
        raise InputError(Problem(what, Place(source), "Save the document as UTF-8."))


def _refuse_other_xml(body: str, source: str, named: RdfFormat | None) -> None:
    name = root_element(body)[0]
    if _is_html(body, name):
        what = "an HTML page, not RDF or a feed"
        remedy = "Give the address of the data itself; a page often names its feed in a <link>."
    elif _RDF_NAMESPACE in body:
        return
    elif "www.w3.org/2002/07/owl#" in body:
        what = "OWL/XML is not an RDF syntax"
        remedy = "Save the ontology as RDF/XML or Turtle."
    elif name.lower() == "opml":
        what = "an OPML list of feeds, not a feed"
        remedy = "Get the feeds that it lists (its xmlUrl attributes), and give those."
    elif name and named != RdfFormat.RDF_XML:
        what, remedy = f"XML, but neither RDF/XML nor a feed: its root is <{name}>", _ANYTHING
    else:
        return
    raise InputError(Problem(what, Place(source), remedy))


def _is_wide(head: bytes) -> bool:
    """Return whether a document begins like UTF-16 or UTF-32: a mark, or every other byte zero."""
    start = head[:32] if len(head) >= 4 else b"no"
    zeros = not any(start[::2]), not any(start[1::2])
    return head.startswith(_WIDE) or sum(zeros) == 1


def is_html(head: bytes) -> bool:
    """Return whether a document begins like an HTML page."""
    body = decode_head(head).lstrip()
    return _is_html(body, root_element(body)[0])


def _is_html(body: str, root: str) -> bool:
    return body[:14].lower() == "<!doctype html" or root.lower() == "html"


def root_element(text: str) -> tuple[str, dict[str, str]]:
    """Return the root element's qualified name and the namespaces that it declares, by prefix.

    If the text has no root element, the name is empty.

    Examples
    --------
    >>> root_element("<?xml version='1.0'?><a:b xmlns:a='urn:a'/>")
    ('a:b', {'a': 'urn:a'})
    """
    start = _PROLOGUE.match(text)
    root = _ROOT.match(text, start.end() if start else 0)
    if root is None:
        return "", {}
    return root[1], {prefix: iri.strip() for prefix, iri in _NAMESPACE.findall(root[2])}


def after_root_name(text: str) -> int:
    """Return the position after the root element's name, before its attributes; 0 without a root.

    Examples
    --------
    >>> after_root_name("<rss version='2.0'/>")
    4
    """
    start = _PROLOGUE.match(text)
    root = _ROOT.match(text, start.end() if start else 0)
    return root.end(1) if root else 0


def decode_head(head: bytes) -> str:
    """Decode a document's beginning, which may end inside a character; replace invalid bytes."""
    try:
        return decode_xml(head).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        encoding = error.encoding if is_wide(error.encoding) else "utf-8"
    except LookupError:
        encoding = "utf-8"
    return head.decode(encoding, errors="replace").removeprefix("\ufeff")

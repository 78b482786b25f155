"""Mending damaged XML: first what loses nothing, then libxml2's recovery.

Bare ``&`` must be mended before recovery: libxml2 would drop ``&b`` of ``?a=1&b=2``.
"""

from __future__ import annotations

import re
from html import escape
from html.entities import html5
from importlib import import_module

from semantic.feeds.names import NAMESPACES
from semantic.syntax import after_root_name

# An aside that is not closed reaches to the end: else each of many would be searched for its own.
_ASIDE = r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
_ASIDES = re.compile(_ASIDE, re.DOTALL)
_AMPERSAND = re.compile(
    rf"({_ASIDE})|&(?!#[0-9]+;|#x[0-9A-Fa-f]+;)(?:([A-Za-z][A-Za-z0-9._-]{{0,40}});)?", re.DOTALL
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_XML_DECLARATION = re.compile(r"<\?xml\s[^>]*\?>")
_ENTITY_NAME = re.compile(r"<!ENTITY\s+([^\s%]+)")
_OWN_ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos"})
_PREFIX = re.compile(r"(?:</?|\s)([A-Za-z_][\w.-]*):[A-Za-z_]")
_DECLARED_PREFIX = re.compile(r"\sxmlns:([\w.-]+)\s*=")


def mend_text(text: str) -> str:
    """Mend what can be mended without a loss, on the same lines.

    That is bare ``&``, HTML's entities, control characters, prefixes that are not declared,
    and an XML declaration that is not at the start.

    Examples
    --------
    >>> mend_text("<rss><a>Caf&eacute; A & B</a></rss>")
    '<rss><a>Café A &amp; B</a></rss>'
    """
    text = _CONTROL.sub("", text)
    start = after_root_name(text)
    text = _XML_DECLARATION.sub("", text[:start]) + text[start:]
    declared = frozenset(_ENTITY_NAME.findall(text)) | _OWN_ENTITIES

    def mend(found: re.Match[str]) -> str:
        aside, name = found.groups()
        if aside or name in declared:
            return found[0]
        character = html5.get(f"{name};")
        return escape(character, quote=False) if character else "&amp;" + found[0][1:]

    return _declare_prefixes(_AMPERSAND.sub(mend, text))


def _declare_prefixes(text: str) -> str:
    bare = without_asides(text)
    used = set(_PREFIX.findall(bare)) - set(_DECLARED_PREFIX.findall(bare)) - {"xml", "xmlns"}
    declarations = "".join(f' xmlns:{prefix}="{_namespace(prefix)}"' for prefix in sorted(used))
    position = after_root_name(text)
    return text[:position] + declarations + text[position:]


def _namespace(prefix: str) -> str:
    return NAMESPACES.get(prefix, (f"urn:graphmatch:prefix:{prefix}",))[0]


def recover(text: str) -> str:
    """Let libxml2 close what is open; no entity is expanded, nothing fetched.

    Examples
    --------
    >>> recover("<rss><a><b></a></rss>")
    '<rss><a><b/></a></rss>'
    """
    etree = import_module("lxml.etree")  # heavy, and rarely needed
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)
    try:
        root = etree.fromstring(text.encode("utf-8"), parser=parser)
    except etree.XMLSyntaxError:
        return ""
    recovered: str = "" if root is None else etree.tostring(root.getroottree(), encoding="unicode")
    return recovered


def without_asides(text: str) -> str:
    """Drop comments and CDATA sections, except one that is not closed: it may have items.

    Examples
    --------
    >>> without_asides("a<!-- b -->c<![CDATA[d")
    'ac<![CDATA[d'
    """
    return _ASIDES.sub(lambda found: "" if found[0].endswith(("]]>", "-->")) else found[0], text)

"""Links of feeds to IRIs: resolved, and mended where there is one way to mend them."""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin

from pyoxigraph import NamedNode

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NOT_IN_IRIS = re.compile(r"[\x00-\x20\"<>\\^`{|}\x7f-\x9f\[\]]|%(?![0-9A-Fa-f]{2})")
_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)?(.*)", re.DOTALL)


def absolute_iri(text: str) -> NamedNode | None:
    """Return the IRI that a text is, exactly; ``None`` where it is none, or a relative one.

    Examples
    --------
    >>> absolute_iri("tag:example.org,2003:3")
    <NamedNode value=tag:example.org,2003:3>
    >>> absolute_iri("post 3") is None
    True
    """
    if _SCHEME.match(text) is None:
        return None
    try:
        return NamedNode(text)
    except ValueError:
        return None


def mended_iri(text: str, base: str, site: str) -> NamedNode | None:
    """Resolve a link and percent-encode what IRIs do not allow.

    Parameters
    ----------
    text
        The link, which is no absolute IRI as it stands.
    base
        What the feed itself says links are relative to; may be empty.
    site
        The channel's link, which a path from the root (``/a/b``) is taken to belong to.

    Examples
    --------
    >>> mended_iri("http://example.org/a b", "", "")
    <NamedNode value=http://example.org/a%20b>
    >>> mended_iri("/a", "", "http://example.org/feeds/")
    <NamedNode value=http://example.org/a>
    >>> mended_iri("example.org/a", "", "http://example.org/") is None
    True
    """
    base = base or (site if text.startswith("/") else "")
    try:
        absolute = urljoin(base, text) if base else text
    except ValueError:  # an impossible host
        return None
    parts = _AUTHORITY.fullmatch(absolute)
    if parts is None:
        return None
    encoded = _NOT_IN_IRIS.sub(lambda found: quote(found[0], safe=""), parts[2])
    return absolute_iri((parts[1] or "") + encoded)

"""How deep a text's brackets nest: deeper than a limit, a recursive parser would end the process.

JSON-LD and RDF 1.2's triple terms are parsed by recursion on the machine's stack; when that
overflows there is no exception to catch. So depth is counted before they are parsed. Cost: about
a fifth of parsing for JSON, and a search for ``<<`` in a text that has none.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_ALIKE = bytes.maketrans(b"[]", b"{}")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TRIPLE_TERM = re.compile(rb"<<\(|\)>>")


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

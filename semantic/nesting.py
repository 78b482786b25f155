"""How deep a text's brackets nest: deeper than a limit, a recursive parser would end the process.

JSON-LD, RDF 1.2's triple terms and SPARQL are parsed by recursion on the machine's stack; when
that overflows there is no exception to catch. So depth is counted before they are parsed. Cost:
about 3 ms a megabyte of JSON, and a search for ``<<`` in a text that has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate

_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_OPEN, _CLOSE = ord("{"), ord("}")
_ALIKE = bytes.maketrans(b"[]", b"{}")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TRIPLE_TERM = re.compile(rb"<<\(|\)>>")
_QUERY_PART = re.compile(
    r"""
    \#[^\n\r]* | <[^<>\"{}|^`\\\s]*>
  | \"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+\"\"\" | '''(?:[^'\\]|\\.|'(?!''))*+'''
  | \"(?:[^\"\\\n\r]|\\.)*+\" | '(?:[^'\\\n\r]|\\.)*+'
  | (?P<open>[({\[]) | (?P<close>[)}\]])
    """,
    re.VERBOSE | re.DOTALL,
)


def json_depth(document: bytes) -> int:
    """Return how deep the objects and lists of a JSON document nest.

    Examples
    --------
    >>> json_depth(b'{"a": [1, {"b": "[[["}]}')
    3
    """
    brackets = _JSON_STRING.sub(b"", document).translate(_ALIKE, _NOT_BRACKETS)
    return _deepest(1 if bracket == _OPEN else -1 for bracket in brackets)


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


def query_depth(query: str) -> int:
    """Return how deep the groups, brackets and calls of a SPARQL query nest.

    Examples
    --------
    >>> query_depth("SELECT * { ?s <urn:(((> '((' { ?s ?p (1 2) } } # (((")
    3
    """
    parts = (found.lastgroup for found in _QUERY_PART.finditer(query))
    return _deepest(1 if part == "open" else -1 for part in parts if part)


def _deepest(steps: Iterable[int]) -> int:
    return max(accumulate(steps, initial=0))

"""The conditions of a query, and the query without each of them.

A condition is a part of the outermost group: a triple pattern, a filter or an operand of its
``&&``, a group, UNION, GRAPH, MINUS or VALUES. OPTIONAL, BIND and SERVICE are not conditions.

The core writes a query in a normal form. In this text, each triple pattern stands alone, and each
group has at most one filter, at its end. A condition is deleted from the text, so that the rest
keeps its meaning. The result may be an invalid subscription, for example if no condition is left.

Limits: a subquery is one condition, and so are the group before a final VALUES and an ``&&`` in
brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice, pairwise
from typing import TypeAlias

from graphmatch import _native
from graphmatch.subscription import Query
from semantic.terms import compact
from semantic.vocabulary import PREFIXES

MAX_CONDITIONS = 12
"""Maximum number of conditions of a query."""

_TERM = re.compile(r'"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^<>\s]*>)?|<[^<>\s]*>')
_TOKEN = re.compile(rf'{_TERM.pattern}|[^\s(){{}}<>"]+|\S')
_Tokens: TypeAlias = Sequence[re.Match[str]]


def conditions(query: Query, prefixes: Mapping[str, str] = PREFIXES) -> dict[str, str]:
    """Return the conditions of a query in order, each with the query without it.

    There are at most `MAX_CONDITIONS`.

    Parameters
    ----------
    prefixes
        Prefixes for the IRIs of conditions.

    Examples
    --------
    >>> from graphmatch import SubscriptionParser
    >>> query = "ASK { ?x <urn:p> ?y, ?z FILTER(?y > 1 && ?y < 9) }"
    >>> found = conditions(SubscriptionParser().query("alice", query))
    >>> list(found)
    ['?x <urn:p> ?y', '?x <urn:p> ?z', 'FILTER(?y > 1)', 'FILTER(?y < 9)']
    >>> print(found["FILTER(?y > 1)"].replace("http://www.w3.org/2001/XMLSchema#", "xsd:"))
    ASK WHERE { ?x <urn:p> ?y . ?x <urn:p> ?z . FILTER(( (?y < "9"^^<xsd:integer>))) }
    """
    source = query.text
    tokens = list(_TOKEN.finditer(source))
    begin = [token[0] for token in tokens].index("WHERE") + 2
    parts = chain.from_iterable(map(_parts, _elements(tokens[begin:])))
    found: dict[str, str] = {}
    for condition, deleted in islice(parts, MAX_CONDITIONS):
        text = source[condition[0].start() : condition[-1].end()].removesuffix(" .")
        if condition is not deleted:
            text = f"FILTER{text}" if text.startswith("(") else f"FILTER({text})"
        text = _TERM.sub(lambda term: compact(_native.term(term[0]), prefixes), text)
        found[text] = source[: deleted[0].start()] + source[deleted[-1].end() :]
    return found


def _depths(tokens: _Tokens) -> Iterable[int]:
    """Return the number of open brackets after each token."""
    return accumulate((token[0] in "({") - (token[0] in ")}") for token in tokens)


def _elements(tokens: _Tokens) -> Iterator[_Tokens]:
    """Yield the elements of the group that begins here, without OPTIONAL, BIND and SERVICE."""
    begin = 0
    for end, depth in enumerate(_depths(tokens), 1):
        if depth < 0:
            return
        first, last = tokens[begin][0], tokens[end - 1][0]
        is_end = last == "." or (last == "}" and tokens[end][0] != "UNION")
        if depth == 0 and (is_end or (last == ")" and first in ("FILTER", "BIND"))):
            if first not in ("OPTIONAL", "BIND", "SERVICE"):
                yield tokens[begin:end]
            begin = end


def _parts(element: _Tokens) -> Iterator[tuple[_Tokens, _Tokens]]:
    """Yield the conditions of an element, each with the tokens to delete."""
    inner = element[2:-1] if element[0][0] == "FILTER" else element
    depths = _depths(inner) if inner[0][0] == "(" else ()
    signs = [n for n, depth in enumerate(depths) if depth == 1 and inner[n][0] == "&&"]
    if not signs:
        yield inner, element
        return
    for begin, end in pairwise([0, *signs, len(inner) - 1]):
        yield inner[begin + 1 : end], inner[begin:end] if begin else inner[1 : end + 1]

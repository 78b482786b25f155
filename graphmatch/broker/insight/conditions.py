"""The conditions of a query, and the query without each of them.

A condition is a part of the outermost group: a triple pattern, a filter or an operand of its
``&&``, a group, UNION, GRAPH, MINUS or VALUES. OPTIONAL, BIND and SERVICE are not conditions.

The query is changed as text, so that the rest keeps its meaning. A condition in a list is deleted
with its separator. Another condition is replaced by ``{}``, the empty group, which is valid in each
place and changes no solutions. The result may be an invalid subscription, for example if no
condition is left.

Limits: a query that consists of a subquery has no conditions. Nor has a CONSTRUCT query with a
template but without the word WHERE.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice, zip_longest

MAX_CONDITIONS = 12
"""Maximum number of conditions of a query."""

_TOKEN = re.compile(
    r"""
    \#[^\n]*
  | <[^<>"{}|^`\\\s]*>
  | (?: \"\"\"(?:\"{0,2}(?:[^"\\]|\\.))*\"\"\" | '''(?:'{0,2}(?:[^'\\]|\\.))*'''
      | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
    (?: @[\w-]+ | \^\^<[^<>\s]*> | \^\^[\w.-]*:[\w.-]*\w )?
  | [?$]\w+
  | [+-]?\d*\.?\d+(?:[eE][+-]?\d+)?
  | (?: [\w:%-] | \\. | \.+(?=[\w:%\\-]) )+
  | && | \|\| | \S
    """,
    re.VERBOSE | re.DOTALL,
)
_OPTIONS = ("OPTIONAL", "BIND", "SERVICE")
_KEYWORDS = ("FILTER", "MINUS", "GRAPH", "VALUES", *_OPTIONS)


@dataclass(frozen=True, slots=True)
class _Part:
    """A token, or a pair of brackets with the parts inside.

    `word` is the token in upper case, or the opening bracket.
    """

    word: str
    begin: int
    end: int
    parts: Sequence[_Part] = ()


def conditions(query: str) -> dict[str, str]:
    """Return the conditions of a valid query in order, each with the query without it.

    A condition is on one line. There are at most `MAX_CONDITIONS`.

    Examples
    --------
    >>> query = "SELECT * { ?x a <urn:C> ; <urn:p> ?y FILTER(?y > 1 && ?y < 9) }"
    >>> for condition, rest in conditions(query).items():
    ...     print(condition, "|", rest)
    ?x a <urn:C> | SELECT * { ?x <urn:p> ?y FILTER(?y > 1 && ?y < 9) }
    ?x <urn:p> ?y | SELECT * { ?x a <urn:C> FILTER(?y > 1 && ?y < 9) }
    FILTER(?y > 1) | SELECT * { ?x a <urn:C> ; <urn:p> ?y FILTER(?y < 9) }
    FILTER(?y < 9) | SELECT * { ?x a <urn:C> ; <urn:p> ?y FILTER(?y > 1) }
    """
    # Spaces in place of comments keep all positions.
    source = _TOKEN.sub(lambda m: " " * len(m[0]) if m[0].startswith("#") else m[0], query)
    group = _outermost_group(_parts(source))
    if group is None or not group.parts or group.parts[0].word == "SELECT":
        return {}
    elements = (e for e in _elements(group.parts) if e[0].word not in _OPTIONS)
    pairs = chain.from_iterable(_conditions(source, element) for element in elements)
    return dict(islice(pairs, MAX_CONDITIONS))


def _parts(source: str) -> Sequence[_Part]:
    """Return the tokens and brackets of a query."""
    open_parts: list[list[_Part]] = [[]]
    begins: list[int] = []
    for token in _TOKEN.finditer(source):
        word = token[0].upper()
        if word in "([{":
            begins.append(token.start())
            open_parts.append([])
        elif word in ")]}" and begins:
            begin, parts = begins.pop(), open_parts.pop()
            open_parts[-1].append(_Part(source[begin], begin, token.end(), parts))
        else:
            open_parts[-1].append(_Part(word, token.start(), token.end()))
    return open_parts[0]


def _outermost_group(parts: Sequence[_Part]) -> _Part | None:
    words = [part.word for part in parts]
    begin = words.index("WHERE") if "WHERE" in words else 0
    if begin == 0 and "CONSTRUCT" in words:
        return None
    return next((part for part in parts[begin:] if part.word == "{"), None)


def _elements(parts: Sequence[_Part]) -> Iterator[Sequence[_Part]]:
    """Yield the elements of a group: triples with one subject, filters, groups, etc."""
    element: list[_Part] = []
    for part, after in zip_longest(parts, parts[1:]):
        if part.word == ".":
            continue
        element.append(part)
        first, following = element[0].word, after.word if after else "."
        if first == "{" or first in _KEYWORDS:
            is_last = part.word in ("{" if first == "VALUES" else "({") and following != "UNION"
        else:
            is_last = following in (".", "{", *_KEYWORDS)
        if is_last:
            yield element
            element = []


def _conditions(source: str, element: Sequence[_Part]) -> Iterator[tuple[str, str]]:
    """Yield the conditions of an element, each with the query without it."""

    def text(parts: Sequence[_Part]) -> str:
        return source[parts[0].begin : parts[-1].end] if parts else ""

    def condition(text: str, *lists: tuple[Sequence[Sequence[_Part]], int]) -> tuple[str, str]:
        begin, end, instead = _removal(element, lists)
        return " ".join(text.split()), f"{source[:begin]}{instead}{source[end:]}"

    first, last = element[0], element[-1]
    is_split = first.word == "FILTER" and len(element) == 2
    is_split = is_split and all(part.word != "||" for part in last.parts)
    operands = _split(last.parts, "&&") if is_split else []
    for number, operand in enumerate(operands):
        yield condition(f"FILTER({text(operand)})", (operands, number))
    lists = [] if first.word in ("{", *_KEYWORDS) else _split(element[1:], ";")
    if not operands and not lists:
        yield condition(text(element))
    for number, properties in enumerate(lists):
        pair, *others = _split(properties, ",")
        objects = [pair[-1:], *others]
        for place, object_ in enumerate(objects):
            pattern = f"{text([first])} {text(pair[:-1])} {text(object_)}"
            yield condition(pattern, (objects, place), (lists, number))


def _split(parts: Sequence[_Part], sign: str) -> list[Sequence[_Part]]:
    groups = groupby(parts, lambda part: part.word == sign)
    return [list(group) for is_sign, group in groups if not is_sign]


def _removal(
    element: Sequence[_Part], lists: Iterable[tuple[Sequence[Sequence[_Part]], int]]
) -> tuple[int, int, str]:
    """Return the range to delete, and the text to put in its place.

    `lists` contains the lists of the condition and its number in each, the innermost list first.
    The only item of a list is not deleted from it.
    """
    for items, number in lists:
        if number:
            return items[number - 1][-1].end, items[number][-1].end, ""
        if len(items) > 1:
            return items[0][0].begin, items[1][0].begin, ""
    return element[0].begin, element[-1].end, "{}"

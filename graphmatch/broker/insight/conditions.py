"""The conditions of a query, and the query without each: for near misses.

A condition is what stands by itself in the outermost group: a triple pattern (those that ``;`` and
``,`` join are several), a filter (each part of a conjunction in brackets), a group, an alternative,
MINUS, VALUES. OPTIONAL and BIND are none. The text around stays as it is but for layout, so the
query without a condition means what it says; some may be no query, as ``{ }`` is not to an engine.

Limits: a query that begins with a subquery has no conditions here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST = 12
"""So many conditions of a query are looked at."""

_TOKEN = re.compile(
    r"""
    (?P<skip> \s+ | \#[^\n]* )
  | (?P<iri> <[^<>"{}|^`\\\s]*> )
  | (?P<text> (?:\"\"\"(?:\"{0,2}(?:[^"\\]|\\.))*\"\"\" | '''(?:'{0,2}(?:[^'\\]|\\.))*'''
            | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
            (?: @[A-Za-z][A-Za-z0-9-]* | \^\^<[^<>\s]*> | \^\^[\w.-]*:[\w.-]*\w )? )
  | (?P<variable> [?$]\w+ )
  | (?P<number> \d*\.\d+(?:[eE][+-]?\d+)? | \d+(?:\.\d*)?[eE][+-]?\d+ | \d+ )
  | (?P<name> (?:\w(?:[\w.-]*[\w-])?)?:(?:(?:[\w:.%-]|\\.)*(?:[\w:%-]|\\.))? )
  | (?P<word> \w+ )
  | (?P<sign> && | \|\| | \^\^ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSE = frozenset("{(["), frozenset("})]")
_ELEMENTS = ("FILTER", "OPTIONAL", "MINUS", "GRAPH", "SERVICE", "BIND", "VALUES")


@dataclass(frozen=True, slots=True)
class Condition:
    """A part of a query that has to hold.

    Parameters
    ----------
    text
        The condition as the query has it, on one line.
    without
        The query without it.
    line, column
        Where it stands, counted from 1.
    """

    text: str
    without: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    begin: int
    end: int

    def says(self, *words: str) -> bool:
        """Whether it is one of some keywords or signs."""
        return self.kind in ("word", "sign") and self.text.upper() in words


def conditions(query: str) -> tuple[Condition, ...]:
    """Return the conditions of a valid query, in their order; at most `MOST`.

    Examples
    --------
    >>> query = "SELECT * { ?x a <urn:C> ; <urn:p> ?y FILTER(?y > 1 && ?y < 9) }"
    >>> for condition in conditions(query):
    ...     print(condition.text, "|", condition.without)
    ?x a <urn:C> | SELECT * { ?x <urn:p> ?y . FILTER(?y > 1 && ?y < 9) }
    ?x <urn:p> ?y | SELECT * { ?x a <urn:C> . FILTER(?y > 1 && ?y < 9) }
    FILTER(?y > 1) | SELECT * { ?x a <urn:C> ; <urn:p> ?y . FILTER(?y < 9) }
    FILTER(?y < 9) | SELECT * { ?x a <urn:C> ; <urn:p> ?y . FILTER(?y > 1) }
    """
    tokens = [
        _Token(str(found.lastgroup), found[0], found.start(), found.end())
        for found in _TOKEN.finditer(query)
        if found.lastgroup != "skip"
    ]
    begin = _group(tokens)
    if begin is None:
        return ()
    end = _closing(tokens, begin)
    body = tokens[begin + 1 : end]
    if end == len(tokens) or not body or body[0].says("SELECT"):
        return ()
    head, tail = query[: tokens[begin].end], query[tokens[end].begin :]
    elements = list(_elements(body))
    texts = [_separated(element, _shown(element)) for element in elements]
    found: dict[str, Condition] = {}
    for place, element in enumerate(elements):
        at = element[0].begin
        line = query.count("\n", 0, at) + 1
        column = at - query.rfind("\n", 0, at)
        for text, instead in _conditions(element):
            changed = _separated(element, instead)
            kept = filter(None, (*texts[:place], changed, *texts[place + 1 :]))
            without = f"{head} {' '.join(kept)} {tail}"
            found.setdefault(without, Condition(text, without, line, column))
            if len(found) == MOST:
                return tuple(found.values())
    return tuple(found.values())


def _group(tokens: Sequence[_Token]) -> int | None:
    """Return where the outermost group begins."""
    depth, braces = 0, []
    for place, token in enumerate(tokens):
        if depth == 0 and token.says("WHERE"):
            return place + 1 if place + 1 < len(tokens) and tokens[place + 1].says("{") else None
        if token.kind == "sign" and token.text in _OPEN:
            if depth == 0 and token.text == "{":
                braces.append(place)
            depth += 1
        elif token.kind == "sign" and token.text in _CLOSE:
            depth -= 1
    if not braces:
        return None
    is_construct = any(token.says("CONSTRUCT") for token in tokens[: braces[0]])
    return next(iter(braces[is_construct:]), None)


def _closing(tokens: Sequence[_Token], begin: int) -> int:
    """Return where the bracket closes that opens at a place."""
    depth = 0
    for place in range(begin, len(tokens)):
        if tokens[place].kind == "sign":
            depth += tokens[place].text in _OPEN
            depth -= tokens[place].text in _CLOSE
        if depth == 0:
            return place
    return len(tokens)


def _elements(body: Sequence[_Token]) -> Iterator[Sequence[_Token]]:
    """Yield what a group consists of."""
    place = 0
    while place < len(body):
        end = _end(body, place)
        if not body[place].says("."):
            yield body[place:end]
        place = end


def _separated(element: Sequence[_Token], text: str) -> str:
    """Return the text of an element as others may stand behind it."""
    is_group = element[0].says("{", *_ELEMENTS)
    return text if is_group or not text else f"{text} ."


def _conditions(element: Sequence[_Token]) -> Iterator[tuple[str, str]]:
    """Yield the conditions of an element, each with what is left of the element without it."""
    if element[0].says("FILTER"):
        yield from _of_filter(element)
    elif element[0].says("{", "MINUS", "GRAPH", "VALUES"):
        yield _shown(element), ""
    elif not element[0].says(*_ELEMENTS):
        yield from _of_triples(element)


def _end(body: Sequence[_Token], begin: int) -> int:
    """Return where an element of a group ends."""
    token = body[begin]
    if token.says("."):
        return begin + 1
    if token.says("{"):
        end = _closing(body, begin) + 1
        while end < len(body) and body[end].says("UNION"):
            end = _closing(body, end + 1) + 1
        return end
    if token.says(*_ELEMENTS):
        brackets = ("{",) if token.says("VALUES", "GRAPH", "SERVICE") else ("{", "(")
        place = begin + 1
        while place < len(body) and not body[place].says(*brackets):
            place += 1
        return _closing(body, place) + 1
    place = begin
    while place < len(body) and not body[place].says(".", "{", *_ELEMENTS):
        place = _closing(body, place) + 1
    return place


def _of_filter(element: Sequence[_Token]) -> Iterator[tuple[str, str]]:
    """Yield the parts of a conjunction in brackets, or the filter."""
    inner = element[2:-1] if element[1].says("(") else []
    parts = [_shown(part) for part in _split(inner, "&&")]
    if len(parts) < 2 or len(_split(inner, "||")) > 1:
        yield _shown(element), ""
        return
    for place, part in enumerate(parts):
        rest = " && ".join(parts[:place] + parts[place + 1 :])
        yield f"FILTER({part})", f"FILTER({rest})"


def _of_triples(element: Sequence[_Token]) -> Iterator[tuple[str, str]]:
    """Yield the triple patterns of a subject."""
    after = _closing(element, 0) + 1
    subject = _shown(element[:after])
    said: list[tuple[str, list[str]]] = []
    for chunk in filter(None, _split(element[after:], ";")):
        verb = _verb(chunk)
        objects = [_shown(each) for each in _split(chunk[verb:], ",")]
        said.append((_shown(chunk[:verb]), objects))
    for number, (property_, objects) in enumerate(said):
        for place, object_ in enumerate(objects):
            rest = [*said]
            rest[number] = property_, objects[:place] + objects[place + 1 :]
            left = [f"{p} {', '.join(several)}" for p, several in rest if several]
            instead = f"{subject} {' ; '.join(left)}" if left else ""
            yield f"{subject} {property_} {object_}", instead


def _verb(chunk: Sequence[_Token]) -> int:
    """Return where a property, or a path of properties, ends."""
    place = 0
    while place < len(chunk):
        while place < len(chunk) and chunk[place].says("^", "!"):
            place += 1
        place = _closing(chunk, place) + 1
        while place < len(chunk) and chunk[place].says("*", "+", "?"):
            place += 1
        if place >= len(chunk) or not chunk[place].says("/", "|"):
            break
        place += 1
    return place


def _split(tokens: Sequence[_Token], sign: str) -> list[Sequence[_Token]]:
    """Cut tokens at a sign that stands in no bracket."""
    found, begin, place = [], 0, 0
    while place < len(tokens):
        if tokens[place].says(sign):
            found.append(tokens[begin:place])
            begin = place + 1
            place = begin
        else:
            place = _closing(tokens, place) + 1
    return [*found, tokens[begin:]]


def _shown(tokens: Sequence[_Token]) -> str:
    """Write tokens on one line, with a space where the text has any, and without comments."""
    text, end = "", tokens[0].begin if tokens else 0
    for token in tokens:
        gap = " " if token.begin > end else ""
        text += f"{gap}{token.text}"
        end = token.end
    return text

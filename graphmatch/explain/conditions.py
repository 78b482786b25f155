"""The conditions of a query, with the query without each of them.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from typing import TypeAlias

from pyoxigraph import Literal, Variable

from graphmatch import _native
from graphmatch.explain.evidence import tests_of
from graphmatch.subscription import Query, SubscriptionParser
from semantic.annotation.words import WORDS
from semantic.branch import Branch, Comparison, TextTest
from semantic.errors import SubscriptionError
from semantic.terms import Node, Term, compact
from semantic.values import ComparisonOperator
from semantic.vocabulary import DC, DCTERMS, PREFIXES

MAX_CONDITIONS = 12
"""Maximum number of conditions of a query."""

_TERM = re.compile(r'"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^<>\s]*>)?|<[^<>\s]*>')
_TOKEN = re.compile(rf'{_TERM.pattern}|[^\s(){{}}<>"]+|\S')
_Tokens: TypeAlias = Sequence[re.Match[str]]
_KINDS: Mapping[Node, str] = {DCTERMS["subject"]: "topic", DC["subject"]: "category", WORDS: "word"}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a query.

    Parameters
    ----------
    text
        The condition in SPARQL, with prefixes.
    without
        The query without it.
    group
        The group pattern that it requires to have a solution, or to have none.
    excludes
        Whether the group must have no solution (``NOT EXISTS``, ``MINUS``).
    """

    text: str
    without: str
    group: str
    excludes: bool

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The branches of the group; empty if they are not the whole group."""
        try:
            group = SubscriptionParser().parse("", f"SELECT * WHERE {{ {self.group} }}")
        except SubscriptionError:
            return ()
        return group.branches if set(group.remainder) <= {"UNION"} else ()

    def describe(self, show: Callable[[Term], str]) -> str:
        """Return a condition on topics or words for people, and another one in SPARQL.

        Parameters
        ----------
        show
            Returns the name of a topic.

        Examples
        --------
        >>> from graphmatch import SubscriptionParser, Topics
        >>> query = Topics(words=("law or treaty",), not_topics=("sport",)).query()
        >>> found = conditions(SubscriptionParser().query("alice", query))
        >>> [condition.describe(str) for condition in found[1:]]
        ['the word “law” or “treaty”', 'not the category “sport”']
        """
        branches = self.branches
        if len(branches) != 1 or len(branches[0].patterns) != 1:
            return self.text
        [pattern], filters = branches[0].patterns, branches[0].filters
        values: list[Term] = []
        if not (filters or isinstance(pattern.object, Variable)):
            values.append(pattern.object)
        for test in (test for filter_ in filters for test in tests_of(filter_)):
            match test:
                case Comparison(_, ComparisonOperator.EQ, value) | TextTest(_, _, value):
                    values.append(value)
                case _:
                    return self.text
        kind = _KINDS.get(pattern.predicate)
        if kind is None or not values:
            return self.text
        names = (f"“{v.value.strip()}”" if isinstance(v, Literal) else show(v) for v in values)
        return f"{'not ' if self.excludes else ''}the {kind} {' or '.join(names)}"


def conditions(query: Query, prefixes: Mapping[str, str] = PREFIXES) -> list[Condition]:
    """Return the conditions of a query in order, at most `MAX_CONDITIONS`.

    Parameters
    ----------
    prefixes
        Prefixes for the IRIs of conditions.

    Examples
    --------
    >>> from graphmatch import SubscriptionParser
    >>> query = "ASK { ?x <urn:p> ?y, ?z FILTER(?y > 1 && ?y < 9) }"
    >>> found = conditions(SubscriptionParser().query("alice", query))
    >>> [condition.text for condition in found]
    ['?x <urn:p> ?y', '?x <urn:p> ?z', 'FILTER(?y > 1)', 'FILTER(?y < 9)']
    >>> print(found[2].without.replace("http://www.w3.org/2001/XMLSchema#", "xsd:"))
    ASK WHERE { ?x <urn:p> ?y . ?x <urn:p> ?z . FILTER(( (?y < "9"^^<xsd:integer>))) }
    """
    source = query.text
    tokens = list(_TOKEN.finditer(source))
    begin = [token[0] for token in tokens].index("WHERE") + 2
    parts = chain.from_iterable(map(_parts, _elements(tokens[begin:])))
    found: dict[str, Condition] = {}
    for condition, deleted in islice(parts, MAX_CONDITIONS):
        text = source[condition[0].start() : condition[-1].end()].removesuffix(" .")
        excludes = condition[0][0] in ("NOT", "MINUS")
        group = text[text.index("{") :] if excludes else text
        if condition is not deleted:
            text = f"FILTER{text}" if text.startswith("(") else f"FILTER({text})"
        text = _TERM.sub(lambda term: compact(_native.term(term[0]), prefixes), text)
        without = source[: deleted[0].start()] + source[deleted[-1].end() :]
        found[text] = Condition(text, without, group, excludes)
    return list(found.values())


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

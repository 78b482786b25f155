"""Queries that ask for attributes and for any property: two kinds of triples, kept apart.

An attribute that somebody asks for is found, and is a triple then; a variable property must not be
met by it, or what it is bound to would depend on who else asks. Where a query has both, these
attributes are stored under properties that nobody can name (`hidden`), and the query is written
again: ``attribute:a`` in a pattern becomes the path ``attribute:a|hidden``, a variable property
gets a filter that it is not hidden, and a negated property set excludes what is hidden.

The filter stands in every group of the query, also where it says nothing: a variable can only be
bound to a hidden property by being one, so nothing is lost.

Cost: a parse a skeleton; a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pyoxigraph import NamedNode, Variable
from rdflib.paths import Path
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery

from semantic.sparql.algebra import edges, parts
from semantic.sparql.exact import Context, contexts
from semantic.sparql.mentions import steps_of
from semantic.sparql.parse import SubscriptionParser
from semantic.sparql.paths import with_inverses_named
from semantic.sparql.query import Query, Skeleton
from semantic.sparql.slots import slot, slot_number, to_node
from semantic.terms import Term
from semantic.vocabulary import HIDDEN

_SOME = NamedNode(HIDDEN.iri)
_REMEMBERED = 1024


def hidden(term: Term) -> Term:
    """Return the property under which an attribute is stored; another term stays as it is.

    Examples
    --------
    >>> hidden(NamedNode("urn:graphmatch:attribute:a")).value
    'urn:graphmatch:hidden:urn:graphmatch:attribute:a'
    """
    return HIDDEN[term.value] if isinstance(term, NamedNode) else term


def is_hidden(term: Term) -> bool:
    """Whether a term is such a property."""
    return isinstance(term, NamedNode) and term.value.startswith(HIDDEN.iri)


def not_hidden(variable: Variable) -> str:
    """Write the filter that a variable property is not hidden, with a space between its pieces."""
    is_bound, is_iri = f"BOUND ( {variable} )", f"isIRI ( {variable} )"
    return f'! {is_bound} || ! {is_iri} || ! STRSTARTS ( STR ( {variable} ) , "{HIDDEN.iri}" )'


def either(property_: Term) -> str:
    """Write the path along an attribute, stored as it is or hidden."""
    return f"({property_}|{hidden(property_)})"


def apart(query: Query) -> Query:
    """Return a query as it has to be asked where attributes are hidden.

    Examples
    --------
    >>> read = SubscriptionParser().parse("s", "ASK { ?x <urn:a> ?v ; ?p ?v }").query
    >>> print(apart(read).text().strip())  # doctest: +ELLIPSIS
    ASK { FILTER ( ! BOUND ( ?p ) ... ) ?x ( <urn:a> | <urn:graphmatch:hidden:urn:a> ) ?v ; ?p ?v }
    """
    constants = query.constants
    skeleton = _apart(query.skeleton.source, len(constants))
    return Query(skeleton, constants + tuple(map(hidden, constants)))


@lru_cache(maxsize=_REMEMBERED)
def _apart(source: tuple[str, ...], constants: int) -> Skeleton:
    """Return a skeleton of twice as many slots: the second half is of hidden properties."""
    base, *pieces = source
    algebra = translateQuery(parseQuery(" ".join(with_inverses_named(pieces)))).algebra
    properties, variables = _asked_along(algebra.p)
    named = {str(slot(n, _SOME)): str(slot(n + constants, _SOME)) for n in properties}
    filters = [piece for v in variables for piece in f"FILTER ( {not_hidden(v)} )".split()]
    head, rest = _construct_apart(pieces)
    written = _excluding(_with_filters(rest, filters), list(named.values()))
    return SubscriptionParser().skeleton((base, *head, *_along_either(written, named)))


def _asked_along(algebra: Any) -> tuple[list[int], list[Variable]]:
    """Return the slots of properties, negated ones aside, and the variables that are properties."""
    slots: dict[int, None] = {}
    variables: dict[Variable, None] = {}
    for part in parts(algebra):
        for _, path, _ in edges(part):
            if not isinstance(path, Path) and isinstance(node := to_node(path), Variable):
                variables[node] = None
            numbers = map(slot_number, (step for step in steps_of(path) if step is not None))
            slots.update((number, None) for number in numbers if number is not None)
    return list(slots), list(variables)


def _construct_apart(pieces: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the pieces of a template, which takes no paths and filters, and the others.

    Examples
    --------
    >>> _construct_apart("CONSTRUCT WHERE { ?s ?p ?o }".split())[0]
    ['CONSTRUCT', '{', '?s', '?p', '?o', '}']
    """
    if pieces[0].upper() != "CONSTRUCT":
        return (), pieces
    begin = pieces.index("{")
    end = pieces.index("}", begin) + 1
    return ["CONSTRUCT", *pieces[begin:end]], pieces[end if begin == 1 else 1 :]


def _with_filters(pieces: Sequence[str], filters: Sequence[str]) -> list[str]:
    """Write filters at the beginning of every group."""
    written: list[str] = []
    values = False
    for index, piece in enumerate(pieces):
        written.append(piece)
        if piece.upper() == "VALUES":
            values = True
        elif piece == "{":
            if not values and pieces[index + 1].upper() != "SELECT":
                written += filters
            values = False
    return written


def _excluding(pieces: Sequence[str], names: Sequence[str]) -> list[str]:
    """Exclude properties from every negated property set, along each way that it goes."""
    written: list[str] = []
    rest = iter(_bracketed(pieces))
    for piece in rest:
        written.append(piece)
        if piece != "!!":
            continue
        written[-1:] = ["!", next(rest)]
        members: list[str] = []
        while (piece := next(rest))[0] != ")":
            members.append(piece)
        inverse = [n for n, member in enumerate(members) if member == "^"]
        forward = len([m for m in members if m not in ("^", "|")]) > len(inverse)
        more = [["^", name] for name in names if inverse]
        more += [[name] for name in names if forward or not members]
        for number, one in enumerate(more):
            members += ["|", *one] if members or number else one
        written += [*members, piece]
    return written


def _bracketed(pieces: Sequence[str]) -> Iterator[str]:
    """Yield pieces with the brackets of each negated property set, after ``!!`` in place of ``!``.

    Examples
    --------
    >>> " ".join(_bracketed("?s !  ^ <urn:p>* ?o FILTER ( ! BOUND ( ?o ) )".split()))
    '?s !! ( ^ <urn:p> )* ?o FILTER ( ! BOUND ( ?o ) )'
    """
    places = contexts(pieces)
    index = 0
    while index < len(pieces):
        piece = pieces[index]
        index += 1
        if piece != "!" or places[index - 1][0] is not Context.PATTERN:
            yield piece
            continue
        yield "!!"
        if pieces[index] == "(":
            continue
        yield "("
        if pieces[index] == "^":
            yield "^"
            index += 1
        member, modifier = _with_modifier(pieces[index])
        yield from (member, f"){modifier}")
        index += 1


def _with_modifier(piece: str) -> tuple[str, str]:
    """Return a step of a path, and the ``*``, ``+`` or ``?`` that its piece ends with."""
    return (piece[:-1], piece[-1]) if piece[-1] in "*+?" else (piece, "")


def _along_either(pieces: Sequence[str], named: Mapping[str, str]) -> Iterator[str]:
    """Yield pieces with a path in the place of each property that has another name, too."""
    for piece in pieces:
        step, modifier = _with_modifier(piece)
        if step in named:
            yield from ("(", step, "|", named[step], f"){modifier}")
        else:
            yield piece

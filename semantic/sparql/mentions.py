"""Which triples a query can tell apart from nothing: what its patterns mention.

A triple that no pattern of a query can meet changes nothing about its answer. What a
pattern asks is kept as its property and its object, ``None`` standing for any: that
is what entailment needs to leave out what nobody asks for (`semantic.mentions`). A query that asks
for any property mentions the others, too: attributes are found for who names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyoxigraph import BlankNode, Variable
from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, Path, SequencePath
from rdflib.plugins.sparql.parserutils import CompValue

from semantic.sparql.algebra import edges, parts
from semantic.sparql.paths import may_be_empty
from semantic.sparql.query import ANYTHING, Mention
from semantic.sparql.slots import to_node
from semantic.terms import Node


def mentions(query: CompValue) -> frozenset[Mention]:
    """Return what the patterns of a query's algebra mention, those under EXISTS included."""
    found: set[Mention] = {ANYTHING} if query.name == "DescribeQuery" else set()
    for part in parts(query.p):
        for subject, path, object_ in edges(part):
            found.update(_of_edge(to_node(subject), path, to_node(object_)))
    return frozenset(found)


def _of_edge(subject: Node, path: Any, object_: Node) -> Iterator[Mention]:
    if isinstance(path, Path):
        if may_be_empty(path) and _is_open(subject) and _is_open(object_):
            yield ANYTHING  # a path of no steps leads from any node to itself
        yield from ((step, None) for step in steps_of(path))
        return
    predicate = to_node(path)
    if _is_open(predicate):
        yield ANYTHING
    else:
        yield predicate, None if _is_open(object_) else object_


def _is_open(node: Node) -> bool:
    return isinstance(node, Variable | BlankNode)


def steps_of(path: Any) -> Iterator[Node | None]:
    """Yield the properties that a path may go along; ``None`` for any."""
    match path:
        case NegatedPath():
            yield None
        case InvPath():
            yield from steps_of(path.arg)
        case MulPath():
            yield from steps_of(path.path)
        case SequencePath() | AlternativePath():
            for argument in path.args:
                yield from steps_of(argument)
        case _:
            yield to_node(path)

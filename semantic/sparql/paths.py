"""Property paths: which become triple patterns, and how one rests on a publication.

Source: SPARQL 1.1 sections 9 and 18.2.2.4 (sequence and inverse paths are triple
patterns with fresh variables, alternatives are unions).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyoxigraph import Variable
from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, Path, SequencePath

from semantic.pattern import TriplePattern
from semantic.sparql.slots import to_node
from semantic.terms import Node
from semantic.vocabulary import TYPE

Fresh = Callable[[], Variable]
"""Makes a variable that the query does not use."""

Steps = list[tuple[TriplePattern, ...]]
"""Alternatives, each a conjunction of triple patterns."""


TOO_MANY = "more branches than subscription_branches"


def expand(
    subject: Node, path: Any, object_: Node, fresh: Fresh, limit: int
) -> tuple[Steps, tuple[str, ...]]:
    """Return what is necessary for a path between two nodes, and what that leaves open.

    Parameters
    ----------
    subject, object_
        The path's ends.
    path
        An rdflib term or path.
    fresh
        Makes variables for the steps inside.
    limit
        How many alternatives a sequence may multiply to; of one with more, only as many steps
        are returned as make no more.

    Returns
    -------
    steps
        One of these conjunctions holds wherever the path does.
    open
        Why they may hold where the path does not; empty when they are equivalent.
    """
    if not isinstance(path, Path):
        return [(TriplePattern(subject, to_node(path), object_),)], ()
    if isinstance(path, InvPath):
        return expand(object_, path.arg, subject, fresh, limit)
    if isinstance(path, AlternativePath):
        several = [expand(subject, arg, object_, fresh, limit) for arg in path.args]
        open_ = tuple(reason for _, reasons in several for reason in reasons)
        return [step for steps, _ in several for step in steps], open_
    if isinstance(path, SequencePath):
        return _sequence(subject, list(path.args), object_, fresh, limit)
    if isinstance(path, NegatedPath):
        return [()], ("path !",)
    assert isinstance(path, MulPath)
    if path.mod == "+":
        steps, _ = expand(subject, path.path, fresh(), fresh, limit)
        return steps, ("path +",)
    return [()], (f"path {path.mod}",)


def _sequence(
    subject: Node, args: list[Any], object_: Node, fresh: Fresh, limit: int
) -> tuple[Steps, tuple[str, ...]]:
    steps: Steps = [()]
    open_: tuple[str, ...] = ()
    start = subject
    for index, arg in enumerate(args):
        end = object_ if index == len(args) - 1 else fresh()
        more, why = expand(start, arg, end, fresh, limit)
        open_ += why
        if len(steps) * len(more) > limit:
            open_ += (TOO_MANY,)
        else:
            steps = [a + b for a in steps for b in more]
        start = end
    return steps, open_


def may_be_empty(path: Any) -> bool:
    """Whether a path holds between a node and itself without any triple."""
    if isinstance(path, MulPath):
        return bool(path.zero) or may_be_empty(path.path)
    if isinstance(path, InvPath):
        return may_be_empty(path.arg)
    if isinstance(path, AlternativePath):
        return any(map(may_be_empty, path.args))
    return isinstance(path, SequencePath) and all(map(may_be_empty, path.args))


def write(path: Any) -> str:
    """Write a path as SPARQL, fully bracketed."""
    if isinstance(path, InvPath):
        return f"(^{write(path.arg)})"
    if isinstance(path, AlternativePath):
        return f"({'|'.join(map(write, path.args))})"
    if isinstance(path, SequencePath):
        return f"({'/'.join(map(write, path.args))})"
    if isinstance(path, MulPath):
        return f"({write(path.path)}{path.mod})"
    if isinstance(path, NegatedPath):
        return f"(!({'|'.join(map(_negated, path.args))}))"
    return str(to_node(path))


def _negated(arg: Any) -> str:
    name = str(arg)
    return f"^<{name.removeprefix(_INVERSE)}>" if name.startswith(_INVERSE) else str(to_node(arg))


_INVERSE = "urn:graphmatch:inverse:"


def with_inverses_named(pieces: Sequence[str]) -> list[str]:
    """Return a query's pieces with each ``^p`` of a negated property set as one IRI.

    rdflib's grammar forgets what stands behind the ``^`` there.

    Examples
    --------
    >>> " ".join(with_inverses_named("?s ! ( <urn:p> | ^ <urn:q> ) ?o".split()))
    '?s ! ( <urn:p> |  <urn:graphmatch:inverse:urn:q> ) ?o'
    """
    written = list(pieces)
    negated = False
    for index, piece in enumerate(pieces[:-1]):
        before = pieces[index - 1] if index else ""
        if piece == "^" and (negated or before == "!"):
            written[index] = ""
            name = str(TYPE) if pieces[index + 1] == "a" else pieces[index + 1]
            written[index + 1] = f"<{_INVERSE}{name[1:-1]}>"
        negated = piece not in (")", "{") and (negated or (piece == "(" and before == "!"))
    return written


def touching(subject: Node, path: Any, object_: Node, fresh: Fresh) -> list[str]:
    """Write group patterns for walks along a path with a step in the publication's graph.

    Returns
    -------
    list of str
        Alternatives; the path rests on the publication when one of them has a solution.
    """
    if isinstance(path, InvPath):
        return touching(object_, path.arg, subject, fresh)
    if isinstance(path, AlternativePath):
        return [text for arg in path.args for text in touching(subject, arg, object_, fresh)]
    if isinstance(path, SequencePath):
        return _touching_sequence(subject, list(path.args), object_, fresh)
    if isinstance(path, MulPath):
        if path.mod == "?":
            return touching(subject, path.path, object_, fresh)
        before, after, any_number = fresh(), fresh(), f"({write(path.path)}*)"
        return [
            f"{subject} {any_number} {before} . {text} {after} {any_number} {object_} ."
            for text in touching(before, path.path, after, fresh)
        ]
    return [f"GRAPH {fresh()} {{ {subject} {write(path)} {object_} }}"]


def _touching_sequence(subject: Node, args: list[Any], object_: Node, fresh: Fresh) -> list[str]:
    nodes = [subject, *(fresh() for _ in args[1:]), object_]
    walks = [f"{nodes[i]} {write(arg)} {nodes[i + 1]} ." for i, arg in enumerate(args)]
    return [
        " ".join([*walks[:i], text, *walks[i + 1 :]])
        for i, arg in enumerate(args)
        for text in touching(nodes[i], arg, nodes[i + 1], fresh)
    ]

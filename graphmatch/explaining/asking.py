"""A branch as a question to the evaluator, with some of its variables bound already."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import BlankNode, NamedNode, Variable

from graphmatch._native import Evaluation
from semantic.pattern import Branch, TriplePattern
from semantic.terms import Node, Solution, Triple, written


def solutions(
    evaluation: Evaluation, branch: Branch, bindings: Solution | None = None, most: int = 1000
) -> Iterator[Solution]:
    """Yield the solutions of a branch that agree with bindings, these included; at most so many."""
    bound = {n: t for n, t in (bindings or {}).items() if not isinstance(t, BlankNode)}
    if not all(_can_be(pattern, bound) for pattern in branch.patterns):
        return
    is_all = len(bound) == len(bindings or {})
    for solution in evaluation.solutions(_where(branch, bound), most if is_all else None):
        whole = {**bound, **solution}
        if all(whole.get(name, term) == term for name, term in (bindings or {}).items()):
            yield whole


def first(
    evaluation: Evaluation, branch: Branch, bindings: Solution | None = None
) -> Solution | None:
    """Return a solution of a branch that agrees with bindings, if there is one."""
    return next(solutions(evaluation, branch, bindings, 1), None)


def instance(pattern: TriplePattern, solution: Solution) -> Triple:
    """Return the triple that a solution makes of a pattern."""
    s, p, o = (solution[n.value] if isinstance(n, Variable) else n for n in pattern)
    return s, p, o


def _can_be(pattern: TriplePattern, bindings: Solution) -> bool:
    """Whether a bound pattern can be a triple: another branch may have bound a property's place."""
    subject, predicate = (
        bindings.get(node.value, node) if isinstance(node, Variable) else node
        for node in (pattern.subject, pattern.predicate)
    )
    may_be_subject = isinstance(subject, NamedNode | BlankNode | Variable)
    return may_be_subject and isinstance(predicate, NamedNode | Variable)


def _where(branch: Branch, bindings: Solution) -> str:
    """Write a branch as a group pattern, with terms for the variables that are bound."""

    def write(node: Node) -> str:
        return written(bindings.get(node.value, node) if isinstance(node, Variable) else node)

    patterns = " . ".join(" ".join(map(write, pattern)) for pattern in branch.patterns)
    filters = (f for f in branch.filters if f.variable.value not in bindings)
    return f"{{ {patterns} {' '.join(f'FILTER({f.write({})})' for f in filters)} }}"

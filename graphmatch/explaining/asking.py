"""A branch as a question to the evaluator, with some of its variables bound already."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from semantic.attributes.names import is_derived
from semantic.evaluation import Evaluation
from semantic.pattern import COMPARE, AnyOf, Branch, Filter, TaxonomyTest, TriplePattern
from semantic.sparql.apart import either, not_hidden
from semantic.sparql.exact import LEXICAL, VALUE, protect
from semantic.terms import Node, Solution, Triple
from semantic.text.tests import RegexTest, TextTest, View
from semantic.units.vocabulary import is_quantity
from semantic.vocabulary import GM


def solutions(
    evaluation: Evaluation, branch: Branch, bindings: Solution | None = None
) -> Iterator[Solution]:
    """Yield the solutions of a branch that agree with bindings, these included."""
    bound = {n: t for n, t in (bindings or {}).items() if not isinstance(t, BlankNode)}
    if not all(_can_be(pattern, bound) for pattern in branch.patterns):
        return
    named = frozenset(p.predicate for p in branch.patterns if is_derived(p.predicate))
    for solution in evaluation.solutions(_where(branch, bound), named):
        whole = {**bound, **solution}
        if all(whole.get(name, term) == term for name, term in (bindings or {}).items()):
            yield whole


def first(
    evaluation: Evaluation, branch: Branch, bindings: Solution | None = None
) -> Solution | None:
    """Return a solution of a branch that agrees with bindings, if there is one."""
    return next(solutions(evaluation, branch, bindings), None)


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
    asked = branch.patterns

    def write(node: Node) -> str:
        if isinstance(node, Variable):
            if node.value not in bindings:
                return str(node)
            node = bindings[node.value]
        return str(protect(node))

    def along(node: Node) -> str:
        if isinstance(node, Variable):
            return write(node)
        return either(node) if is_derived(node) else str(node)

    patterns = " . ".join(
        f"{write(p.subject)} {along(p.predicate)} {write(p.object)}" for p in asked
    )
    filters = [_filter_text(f) for f in branch.filters if f.variable.value not in bindings]
    filters += [
        not_hidden(v)
        for v in dict.fromkeys(p.predicate for p in asked)
        if isinstance(v, Variable) and v.value not in bindings
    ]
    return f"{{ {patterns} {' '.join(f'FILTER({text})' for text in filters)} }}"


def _filter_text(filter_: Filter) -> str:
    """Write a filter as the evaluator has to be asked it, see `semantic.sparql.exact`."""
    match filter_:
        case TaxonomyTest(variable, operator, concept):
            return f"{GM[operator.value]}({variable}, {concept})"
        case AnyOf(_, tests):
            return " || ".join(map(_filter_text, tests)) or "false"
        case TextTest():
            return filter_.applied(_view_text(filter_.view, filter_.variable))
        case RegexTest():
            return filter_.write()
    value, constant = f"{VALUE}({filter_.variable})", filter_.constant
    if isinstance(constant, Literal) and is_quantity(constant):
        return f'{COMPARE}({value}, "{filter_.word}", {constant})'
    return f"{value} {filter_.word} {constant}"


def _view_text(view: View, variable: Variable) -> str:
    match view:
        case View.TERM:
            return f"{VALUE}({variable})"
        case View.STR:
            return f"STR({LEXICAL}({variable}))"
        case View.LANG:
            return f"LANG({VALUE}({variable}))"

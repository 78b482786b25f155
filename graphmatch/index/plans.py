"""Programs and plans: what is asked of a publication, apart from the constants.

A *program* is the patterns and filters of a branch with numbers for variables and without
constants: subscriptions that differ in constants or in the names of variables only have the
same one, which is their shape. A *plan* is a program in the order in which its patterns are
joined: always one of which most is known. A pattern without variables needs no join. Filters are
checked as soon as their variable is bound.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Variable

from graphmatch.index.arrays import grown
from graphmatch.index.comparing import ASK, EQ, GE, GT, LE, LT
from graphmatch.index.gates import OBJECT, PREDICATE, SUBJECT
from graphmatch.index.joins import ANY_PROPERTY, BEFORE, FIRST, HEADER, NOBODY, SLOT, SPARE, STEP
from graphmatch.index.terms import Mentioned, Passes
from semantic.pattern import AnyOf, Branch, Comparison, Filter
from semantic.text.tests import TextTest
from semantic.values import Operator

_OPERATORS = {
    Operator.EQ: EQ,
    Operator.LT: LT,
    Operator.LE: LE,
    Operator.GT: GT,
    Operator.GE: GE,
}

_COMPARISONS = {number: operator for operator, number in _OPERATORS.items()}
_ANYBODY = Variable("x")

Place: TypeAlias = int
"""A variable's number, or -1 for a constant."""
Places: TypeAlias = tuple[Place, Place, Place]
Layout: TypeAlias = tuple[int, ...]
"""By constant of a program, where it is in a row."""
_Constant = TypeVar("_Constant", bound=Hashable)
TEXTS = -1
"""The operator of tests of text, which are no checks: that a term passes one is a triple."""

_BITS = (SUBJECT, PREDICATE, OBJECT)


@dataclass(frozen=True, slots=True)
class Program:
    """A branch without its constants.

    Parameters
    ----------
    patterns
        Three places each, in the order in which they are joined.
    checks
        Filters: the variable's number, the operator, and the number of the constant; those of the
        filters come after the patterns'. The constant of `kernels.ASK` is the whole filter.
    variables
        How many variables there are.
    """

    patterns: tuple[Places, ...]
    checks: tuple[tuple[int, int, int], ...]
    variables: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """A branch as a program, and what its numbers stand for.

    Parameters
    ----------
    names
        The variables, in the order of their numbers.
    constants
        The patterns', then the filters'.
    """

    program: Program
    names: tuple[str, ...]
    constants: tuple[Mentioned, ...]


def compiled(branch: Branch) -> Compiled:
    """Make the program of a branch; its filters are on variables of its patterns.

    Examples
    --------
    >>> from semantic.sparql.parse import SubscriptionParser
    >>> branch = SubscriptionParser().parse("s", "ASK { ?x a ?c . ?c a ?x }").branches[0]
    >>> compiled(branch).program.patterns
    ((0, -1, 1), (1, -1, 0))
    """
    patterns = [(p.subject, p.predicate, p.object) for p in branch.patterns]
    filters = [(f.variable, *wanted(f)) for f in branch.filters]
    program, constants = arranged(patterns, filters)
    return Compiled(program, branch.names, constants)


def arranged(
    patterns: Iterable[tuple[_Constant | Variable | Passes, ...]],
    filters: Iterable[tuple[Variable, int, _Constant]],
) -> tuple[Program, tuple[_Constant | Passes, ...]]:
    """Make the program of patterns and filters, and say where its constants are.

    Parameters
    ----------
    patterns
        Three places each.
    filters
        Variable, operator (`TEXTS` for a test of text), and what it is compared with.
    """
    numbers: dict[Variable, int] = {}
    constants: list[_Constant | Passes] = []
    asked = list(patterns)
    for node in (node for pattern in asked for node in pattern):
        if isinstance(node, Variable):
            numbers.setdefault(node, len(numbers))
    filters = list(filters)
    asked += [(v, Passes.PASSES, c) for v, operator, c in filters if operator == TEXTS]

    def place(node: _Constant | Variable | Passes) -> Place:
        if isinstance(node, Variable):
            return numbers[node]
        constants.append(node)
        return -1

    joined = tuple((place(s), place(p), place(o)) for s, p, o in _joinable(asked, numbers))
    checks = []
    for variable, operator, constant in filters:
        if operator != TEXTS:
            checks.append((numbers[variable], operator, len(constants)))
            constants.append(constant)
    return Program(joined, tuple(checks), len(numbers)), tuple(constants)


def wanted(filter_: Filter) -> tuple[int, Mentioned]:
    """Return what a filter wants of its variable: an operator, and the constant.

    Of a test of text (`TEXTS`) and of what is left to the caller (`ASK`) that is the filter itself.
    """
    if texts_of(filter_):
        return TEXTS, anybodys(filter_)
    if isinstance(filter_, Comparison):
        return _OPERATORS[filter_.operator], filter_.constant
    return ASK, anybodys(filter_)


def texts_of(mentioned: Mentioned) -> tuple[TextTest, ...]:
    """Return the tests of text one of which a filter wants; none if it wants something else.

    Such filters are decided for all subscriptions at once, by looking at a term.
    """
    tests = mentioned.tests if isinstance(mentioned, AnyOf) else (mentioned,)
    texts = tuple(test for test in tests if isinstance(test, TextTest))
    return texts if len(texts) == len(tests) else ()


def anybodys(filter_: Filter) -> Filter:
    """Return a filter on a variable of no account, so that equal ones are found to be equal."""
    if isinstance(filter_, AnyOf):
        tests = dict.fromkeys(replace(test, variable=_ANYBODY) for test in filter_.tests)
        return AnyOf(_ANYBODY, tuple(tests))
    return replace(filter_, variable=_ANYBODY)


def filter_of(operator: int, constant: Mentioned) -> Filter:
    """Return the filter that a check stands for, on a variable of any name."""
    if operator == ASK:
        assert isinstance(constant, Filter)
        return constant
    assert isinstance(constant, NamedNode | Literal)
    return Comparison(_ANYBODY, _COMPARISONS[operator], constant)


def _joinable(
    patterns: Iterable[tuple[_Constant | Variable | Passes, ...]], numbers: Mapping[Variable, int]
) -> list[tuple[_Constant | Variable | Passes, ...]]:
    """Order distinct patterns as they are joined."""
    distinct = list(dict.fromkeys(patterns))

    def place(node: _Constant | Variable | Passes) -> Place:
        return numbers[node] if isinstance(node, Variable) else -1

    places = tuple((place(s), place(p), place(o)) for s, p, o in distinct)
    return [distinct[n] for n in _order(places)]


@lru_cache(maxsize=4096)
def _order(patterns: tuple[Places, ...]) -> tuple[int, ...]:
    return tuple(_ordered(patterns))


class PlanTable:
    """All plans, as one array of integers.

    Examples
    --------
    >>> table = PlanTable()
    >>> program = Program(((0, -1, 1), (1, -1, -1)), (), 2)
    >>> plan = table.plan(program)
    >>> table.program(plan) == program, table.plan(program) == plan
    (True, True)
    >>> table.plan(program, (0, 1, 0)) == plan, table.layout(table.plan(program, (0, 1, 0)))
    (False, array([0, 1, 0]))
    """

    def __init__(self) -> None:
        self.kinds = 0
        """The kinds of look-up that plans need, a bit each."""
        self.compare = False
        """Whether plans compare terms with constants."""
        self.code = np.zeros(64, np.int32)
        """All plans; a plan is known by its place here."""
        self._end = 2
        self._made: list[tuple[Program, NDArray[np.intp]]] = []
        self._plans: dict[tuple[Program, Layout | None], int] = {}

    def plan(self, program: Program, layout: Layout | None = None) -> int:
        """Return a program's plan, for rows that have their constants in some places.

        Parameters
        ----------
        layout
            By constant, where it is in a row: those that are equal may be in one place. By
            default, each has its own.
        """
        plan = self._plans.get((program, layout))
        if plan is None:
            plan = self._plans[program, layout] = self._append(program, layout)
        return plan

    def program(self, plan: int) -> Program:
        """Return what a plan is a plan of."""
        return self._made[int(self.code[plan - 1])][0]

    def layout(self, plan: int) -> NDArray[np.intp]:
        """Return where the constants of a plan's rows are."""
        return self._made[int(self.code[plan - 1])][1]

    def document(self) -> list[Any]:
        """Return all plans in their order, as JSON can hold them."""
        return [
            [program.patterns, program.checks, program.variables, layout.tolist()]
            for program, layout in self._made
        ]

    @classmethod
    def of_document(cls, document: Iterable[Any]) -> PlanTable:
        """Return the plans that gave this document: each in the place that it had."""
        table = cls()
        for patterns, checks, variables, layout in document:
            s = tuple(tuple(places) for places in patterns)
            program = Program(s, tuple(tuple(check) for check in checks), variables)
            table.plan(program, tuple(layout))
        return table

    def _append(self, program: Program, layout: Layout | None) -> int:
        plan = self._end + 1
        self.compare |= any(operator != ASK for _, operator, _ in program.checks)
        places = range(_constants(program)) if layout is None else layout
        width = max(places, default=-1) + 1
        begin = BEFORE + program.variables
        constants = [begin + HEADER + place for place in places]
        code = [
            len(self._made),
            *(len(program.patterns), program.variables, width),
            *self._steps(program, constants, plan + FIRST),
        ]
        frame = begin + -(-(HEADER + width) // SLOT) * SLOT
        self._made.append((program, np.array(places, np.intp)))
        self.code = grown(self.code, self._end + len(code))
        self.code[self._end : self._end + len(code)] = code
        self.code[:2] = np.maximum(self.code[:2], [len(program.patterns), frame])
        self._end += len(code)
        return plan

    def _steps(self, program: Program, constants: Sequence[int], begin: int) -> list[int]:
        """Return a plan's steps, which are written from `begin` on, and what they refer to."""
        bound: set[int] = set()
        steps: list[int] = []
        more: list[int] = []
        checks = list(program.checks)
        unused = iter(constants)
        for places in program.patterns:
            kind, full = _kinds(places, bound)
            self.kinds |= 1 << kind | 1 << full
            at = [next(unused) if v < 0 else BEFORE + v for v in places]
            new = [v >= 0 and v not in bound for v in places]
            twice = len({v for v, n in zip(places, new, strict=True) if n}) < sum(new)
            read = [NOBODY if n else place for n, place in zip(new, at, strict=True)]
            write = [place if n or twice else SPARE for n, place in zip(new, at, strict=True)]
            bound.update(v for v in places if v >= 0)
            now = [(op, BEFORE + v, constants[number]) for v, op, number in checks if v in bound]
            checks = [check for check in checks if check[0] not in bound]
            rest = [twice, len(now), *(n for check in now for n in check)]
            end = begin + STEP * len(program.patterns) + len(more)
            known = ANY_PROPERTY if places[1] in bound else 0
            steps += [full + known, *read, *write, end if twice or now else 0]
            more += rest if twice or now else []
        return steps + more


def _ordered(patterns: Sequence[Places]) -> list[int]:
    """Order patterns: always one of which most is known."""
    rest = list(range(len(patterns)))
    ordered: list[int] = []
    bound: set[int] = set()
    while rest:
        best = max(rest, key=lambda n: _weight(patterns[n], bound))
        rest.remove(best)
        ordered.append(best)
        bound.update(patterns[best])
    return ordered


def _weight(places: Places, bound: set[int]) -> tuple[bool, int, int]:
    """Return how much is known of a pattern; what is bound is worth more than what is constant."""
    known = sum(w for v, w in zip(places, (4, 2, 5), strict=True) if v < 0)
    return max(places) < 0, sum(v in bound for v in places if v >= 0), known


def _kinds(places: Places, bound: set[int]) -> tuple[int, int]:
    constant = sum(bit for v, bit in zip(places, _BITS, strict=True) if v < 0)
    return constant, constant | sum(bit for v, bit in zip(places, _BITS, strict=True) if v in bound)


def _constants(program: Program) -> int:
    return sum(v < 0 for places in program.patterns for v in places) + len(program.checks)

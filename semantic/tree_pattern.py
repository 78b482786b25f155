"""A tree-shaped graph subscription as attribute constraints.

A branch whose patterns hang together as a tree is, seen from one of its variables, a conjunction of
constraints on paths: ``?offer price ?p . ?p value ?v FILTER(?v <= 400) . ?p currency units:USD`` is
*price.value <= 400* and *price.currency = units:USD* from ``?offer``. Each path that ends, or whose
end something is asked of, is a *column*; a table of such columns is what an index has for
attribute subscriptions.

That all columns are satisfied is necessary for a solution. It is sufficient where each *shared*
node, one below the root that several columns go through, has but one value in the publication:
with two prices, one column may be satisfied by the one and the other by the other, and the
solution has to be looked for in the graph.

Cost: linear in the patterns; done once a skeleton.

Source: CTPS (Zhang, Wang, Huang and Yung), section 3.3, which takes subscription graphs apart so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

from pyoxigraph import Literal, NamedNode, Variable

from semantic.pattern import Branch, Comparison, Filter, TriplePattern
from semantic.terms import Term
from semantic.values import Instant, Number, Operator, value_of


@dataclass(frozen=True, slots=True)
class Step:
    """One property of a path, gone from subject to object (forward) or back."""

    property: NamedNode
    forward: bool = True

    def __str__(self) -> str:
        """Return the step as a property path writes it."""
        return str(self.property) if self.forward else f"^{self.property}"


Path: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers or times between two ends; ``None`` for an end that is not there."""

    low: Literal | None = None
    high: Literal | None = None
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """What is asked of the values at the end of one path.

    Where neither a constant nor an interval nor a test is there, a value has to exist.

    Parameters
    ----------
    path
        From the root; empty for what is asked of the root itself.
    variable
        The variable at its end; ``None`` where a constant stands there.
    constant
        The value, as RDF term.
    interval
        Of its value as a number or a time; one value has to be in it and pass the tests, too.
    tests
        The other filters on the variable, and comparisons that no interval says.
    """

    path: Path
    variable: Variable | None
    constant: Term | None = None
    interval: Interval | None = None
    tests: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """A branch as columns.

    Parameters
    ----------
    root
        The variable from which paths go.
    columns
        In the order in which the patterns stand.
    shared
        Path of each node below the root that several columns go through, with the numbers of
        these columns; shorter paths first.
    """

    root: Variable
    columns: tuple[Column, ...]
    shared: tuple[tuple[Path, tuple[int, ...]], ...]


def constraints(branch: Branch, root: Variable) -> Tree | None:
    """Return a branch as constraints on paths from one of its variables.

    Parameters
    ----------
    branch
        Triple patterns and filters.
    root
        A variable of them in a subject's or object's place.

    Returns
    -------
    tree
        ``None`` where the branch is none: a variable is reached in two ways or not at all, stands
        in a property's place, or a pattern has no variable.

    Examples
    --------
    >>> from semantic.sparql.parse import SubscriptionParser
    >>> text = "ASK { ?o <urn:price> ?p . ?p <urn:value> ?v ; <urn:currency> <urn:USD> }"
    >>> tree = constraints(SubscriptionParser().parse("s", text).branches[0], Variable("o"))
    >>> for written in sorted(" / ".join(map(str, column.path)) for column in tree.columns):
    ...     print(written)
    <urn:price> / <urn:currency>
    <urn:price> / <urn:value>
    >>> [columns for _, columns in tree.shared]
    [(0, 1)]
    """
    try:
        walk = _walk(branch.patterns, root)
    except _NoTreeError:
        return None
    filters: defaultdict[Variable, list[Filter]] = defaultdict(list)
    for filter_ in branch.filters:
        filters[filter_.variable].append(filter_)
    if not filters.keys() <= walk.of.keys():
        return None
    found = list(_columns(walk, filters))
    shared = _shared([nodes for _, nodes in found], walk)
    return Tree(root, tuple(column for column, _ in found), tuple(shared))


@dataclass(frozen=True, slots=True)
class _End:
    """Where a pattern leads to: a path, the variables on it below the root, and its end."""

    path: Path
    nodes: tuple[Variable, ...]
    end: Variable | Term


@dataclass(slots=True)
class _Walk:
    """The way from a root along patterns.

    Parameters
    ----------
    ends
        By the number of the pattern that leads there.
    of
        The variables that were reached, each with the end that it is.
    inner
        The variables from which a pattern leads on.
    """

    root: Variable
    ends: dict[int, _End] = field(default_factory=dict)
    of: dict[Variable, _End] = field(default_factory=dict)
    inner: set[Variable] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin at the root."""
        self.of[self.root] = _End((), (), self.root)

    def step(self, number: int, pattern: TriplePattern, start: Variable) -> Variable | None:
        """Go along a pattern, and return the variable that it leads to, if it is one.

        Raises
        ------
        _NoTreeError
            When the variable was reached before.
        """
        subject, predicate, object_ = pattern
        assert isinstance(predicate, NamedNode)
        forward = subject == start
        end = object_ if forward else subject
        before = self.of[start]
        self.inner.add(start)
        nodes = before.nodes if start == self.root else (*before.nodes, start)
        found = _End((*before.path, Step(predicate, forward)), nodes, end)
        self.ends[number] = found
        if not isinstance(end, Variable):
            return None
        if end in self.of:
            raise _NoTreeError
        self.of[end] = found
        return end


class _NoTreeError(Exception):
    """The patterns are no tree."""


def _walk(patterns: Sequence[TriplePattern], root: Variable) -> _Walk:
    """Go from the root along the patterns.

    Raises
    ------
    _NoTreeError
        When they are no tree with this root.
    """
    meeting: defaultdict[Variable, list[int]] = defaultdict(list)
    for number, (subject, predicate, object_) in enumerate(patterns):
        if not isinstance(predicate, NamedNode) or subject == object_:
            raise _NoTreeError
        for node in (subject, object_):
            if isinstance(node, Variable):
                meeting[node].append(number)
    if root not in meeting:
        raise _NoTreeError
    walk = _Walk(root)
    agenda = [root]
    for variable in agenda:
        for number in meeting[variable]:
            if number not in walk.ends:
                following = walk.step(number, patterns[number], variable)
                agenda += [] if following is None else [following]
    if len(walk.ends) < len(patterns):
        raise _NoTreeError
    return walk


def _columns(
    walk: _Walk, filters: Mapping[Variable, list[Filter]]
) -> Iterator[tuple[Column, tuple[Variable, ...]]]:
    """Yield the columns, each with the variables below the root that it goes through."""
    if walk.root in filters:
        yield _column((), walk.root, filters[walk.root]), ()
    for number in sorted(walk.ends):
        found = walk.ends[number]
        end = found.end
        if not isinstance(end, Variable):
            yield Column(found.path, None, end), found.nodes
        elif end not in walk.inner:
            yield _column(found.path, end, filters.get(end, ())), found.nodes
        elif end in filters:
            yield _column(found.path, end, filters[end]), (*found.nodes, end)


def _column(path: Path, variable: Variable, filters: Sequence[Filter]) -> Column:
    low: Comparison | None = None
    high: Comparison | None = None
    tests: list[Filter] = []
    for filter_ in filters:
        if not _is_bound(filter_) or not _goes_with(filter_, low or high):
            tests.append(filter_)
            continue
        is_low, is_high = (end in _ENDS[filter_.operator] for end in ("low", "high"))
        if (is_low and low is not None) or (is_high and high is not None):
            tests.append(filter_)
            continue
        low = filter_ if is_low else low
        high = filter_ if is_high else high
    if low is None and high is None:
        return Column(path, variable, None, None, tuple(tests))
    interval = Interval(
        _constant(low),
        _constant(high),
        low is not None and low.operator is Operator.GT,
        high is not None and high.operator is Operator.LT,
    )
    return Column(path, variable, None, interval, tuple(tests))


_ENDS: Mapping[Operator, str] = {
    Operator.EQ: "low high",
    Operator.LT: "high",
    Operator.LE: "high",
    Operator.GT: "low",
    Operator.GE: "low",
}


def _is_bound(filter_: Filter) -> TypeGuard[Comparison]:
    """Whether a filter is an end of an interval of numbers or times."""
    if not isinstance(filter_, Comparison) or not isinstance(filter_.constant, Literal):
        return False
    return isinstance(value_of(filter_.constant), Number | Instant)


def _goes_with(one: Comparison, other: Comparison | None) -> bool:
    """Whether two ends are of one line: numbers, dates, or times."""
    return other is None or _line(one) == _line(other)


def _line(comparison: Comparison) -> tuple[object, ...]:
    assert isinstance(comparison.constant, Literal)
    value = value_of(comparison.constant)
    return (value.kind, value.zoned) if isinstance(value, Instant) else ()


def _constant(filter_: Comparison | None) -> Literal | None:
    if filter_ is None:
        return None
    assert isinstance(filter_.constant, Literal)
    return filter_.constant


def _shared(
    through: Sequence[tuple[Variable, ...]], walk: _Walk
) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """Yield the paths of the variables that several columns go through, with these columns.

    Two variables may have equal paths (``?x p ?a . ?x p ?b``): each is a node of its own.
    """
    columns: defaultdict[Variable, list[int]] = defaultdict(list)
    for number, nodes in enumerate(through):
        for node in nodes:
            columns[node].append(number)
    several = [(walk.of[node].path, tuple(those)) for node, those in columns.items() if those[1:]]
    yield from sorted(several, key=lambda found: len(found[0]))

"""Atoms: what one triple pattern asks of one triple, variables' names aside.

An atom is a gate's key, (subject or ``*``, property or ``*``, object or ``*``), which places have
the same variable, and the filters on its variables. Patterns of any number of subscriptions that
ask the same share an atom, and an atom's *binding table* has a column for each of its variables.

A filter stands in one pattern of its branch, if it may in one that has its variable as object: the
values that filters compare stand there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyoxigraph import Variable

from semantic.pattern import AnyOf, Branch, Filter, TaxonomyTest, TriplePattern
from semantic.terms import Term, compact

Key = tuple[Term | None, Term | None, Term | None]
"""A gate's key: ``None`` for any term."""

_OWN = Variable("v")


@dataclass(frozen=True, slots=True)
class Atom:
    """What one triple pattern asks of one triple.

    Parameters
    ----------
    key
        Its constants.
    slots
        For each place the number of its variable, in the order of the text; -1 for a constant.
    filters
        Numbers of variables with filters on them.
    """

    key: Key
    slots: tuple[int, int, int]
    filters: tuple[tuple[int, Filter], ...] = ()

    @property
    def width(self) -> int:
        """How many variables there are."""
        return max(self.slots) + 1

    @property
    def places(self) -> tuple[int, ...]:
        """For each variable the first place that it stands at."""
        return tuple(self.slots.index(variable) for variable in range(self.width))

    @property
    def equal(self) -> tuple[tuple[int, int], ...]:
        """Pairs of places that have one variable."""
        firsts = ((self.slots.index(slot), n) for n, slot in enumerate(self.slots) if slot >= 0)
        return tuple((first, place) for first, place in firsts if first != place)

    def of_triples(self) -> Sequence[tuple[int, Filter]]:
        """Return the filters that a triple's own terms decide."""
        return [(slot, f) for slot, f in self.filters if not asks_taxonomy(f)]

    def of_graph(self) -> Sequence[tuple[int, Filter]]:
        """Return the filters for which links are followed through the graph."""
        return [(slot, f) for slot, f in self.filters if asks_taxonomy(f)]

    def write(self, prefixes: Mapping[str, str]) -> str:
        """Write the atom for people: a key, and what its variables have to be."""
        nodes = [
            f"?{'xyz'[slot]}" if term is None else compact(term, prefixes)
            for term, slot in zip(self.key, self.slots, strict=True)
        ]
        tests = [replaced(f, Variable("xyz"[slot])).write(prefixes) for slot, f in self.filters]
        return " ".join(nodes) + "".join(f" FILTER({test})" for test in tests)


def asks_taxonomy(filter_: Filter) -> bool:
    """Whether a filter follows is-a links."""
    return isinstance(filter_, TaxonomyTest) or (
        isinstance(filter_, AnyOf) and any(isinstance(t, TaxonomyTest) for t in filter_.tests)
    )


def replaced(filter_: Filter, variable: Variable) -> Filter:
    """Return a filter of another variable.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.pattern import Unequal
    >>> replaced(Unequal(Variable("x"), NamedNode("urn:a")), Variable("y")).write({})
    '?y != <urn:a>'
    """
    if isinstance(filter_, AnyOf):
        tests = tuple(replace(test, variable=variable) for test in filter_.tests)
        return AnyOf(variable, tests, filter_.word)
    return replace(filter_, variable=variable)


@dataclass(frozen=True, slots=True)
class Part:
    """A pattern of a branch: its atom's number, and the variables of its table's columns."""

    atom: int
    variables: tuple[str, ...]


class Atoms:
    """The atoms of all questions, numbered in the order in which they came.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> p, (x, y) = NamedNode("urn:p"), map(Variable, "xy")
    >>> atoms = Atoms()
    >>> [atoms.parts(Branch((TriplePattern(*nodes, y),)))[0].atom for nodes in ((x, p), (x, p))]
    [0, 0]
    """

    def __init__(self) -> None:
        self._numbers: dict[Atom, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def all(self) -> tuple[Atom, ...]:
        """The atoms by number."""
        return tuple(self._numbers)

    def parts(self, branch: Branch) -> tuple[Part, ...]:
        """Return the patterns of a branch as atoms; what they ask for is numbered."""
        filters = _placed(branch)
        parts: dict[Part, None] = {}
        for number, pattern in enumerate(branch.patterns):
            nodes = tuple(pattern)
            names = tuple(dict.fromkeys(n.value for n in nodes if isinstance(n, Variable)))
            s, p, o = (names.index(n.value) if isinstance(n, Variable) else -1 for n in nodes)
            a, b, c = (None if isinstance(n, Variable) else n for n in nodes)
            on_own = dict.fromkeys(
                (names.index(f.variable.value), replaced(f, _OWN)) for f in filters[number]
            )
            in_order = sorted(on_own, key=str)
            atom = Atom((a, b, c), (s, p, o), tuple(in_order))
            parts[Part(self._numbers.setdefault(atom, len(self._numbers)), names)] = None
        return tuple(parts)


def _placed(branch: Branch) -> Mapping[int, Sequence[Filter]]:
    """Return the filters of each pattern, by its number; each filter in one of them."""
    placed: defaultdict[int, list[Filter]] = defaultdict(list)
    for filter_ in branch.filters:
        having = [n for n, p in enumerate(branch.patterns) if filter_.variable in p.variables]
        as_object = _having(branch.patterns, having, filter_.variable)
        placed[min(as_object or having)].append(filter_)
    return placed


def _having(
    patterns: Sequence[TriplePattern], among: Iterable[int], variable: Variable
) -> list[int]:
    return [number for number in among if patterns[number].object == variable]

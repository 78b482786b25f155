"""The nearest miss: what of a publication came closest to a pattern or filter that failed.

Of a triple pattern these are the triples that share the most terms with it, and of these those
whose object is the fewest is-a links away from the one that is wanted; of a filter, the values
that are nearest to its constant.

Cost: one look at each triple, or at each of the first 1,000 solutions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from pyoxigraph import BlankNode, Literal, Variable

from graphmatch._native import Evaluation
from graphmatch.explaining.asking import instance, solutions
from graphmatch.explaining.distance import Distances, Miss
from graphmatch.explaining.wording import Wording
from graphmatch.provenance import Provenance
from semantic.attributes.names import attribute, isa_name_of, name_of, steps
from semantic.pattern import Branch, Filter, TriplePattern
from semantic.terms import Term, Triple
from semantic.values import Operator, compare
from semantic.vocabulary import TYPE

LOOKED_AT = 1000
"""How many solutions are looked at."""
NEAREST = 3
"""How many near misses are shown."""


@dataclass(frozen=True, slots=True)
class Near:
    """A triple that came close to what failed.

    Parameters
    ----------
    triple
        One of the publication, stated or derived, or of the ontology.
    why
        Why it does not do; empty where the triple says it.
    reasons
        Why the triple holds, as in `Evidence`.
    """

    triple: Triple
    why: str = ""
    reasons: tuple[str, ...] = ()


class Nearest:
    """Near misses in one publication.

    Parameters
    ----------
    evaluation
        The publication, ready for queries.
    provenance
        Why its triples hold.
    """

    def __init__(self, evaluation: Evaluation, provenance: Provenance) -> None:
        self._evaluation, self._provenance = evaluation, provenance
        self._distances = Distances(provenance.ontology, provenance.links, provenance.prefixes)

    # -- patterns ---------------------------------------------------------------------------

    def to_pattern(self, pattern: TriplePattern) -> tuple[Near, ...]:
        """Return the triples that come closest to a pattern that no triple meets."""
        if (name := isa_name_of(pattern.predicate)) is not None:
            return self._to_class(pattern, name)
        publication = self._provenance.publication
        triples = publication.seen_by_any
        if name_of(pattern.predicate) is not None:
            triples = publication.triples
        sharing = {triple: _shared(pattern, triple) for triple in triples}
        most = max(sharing.values(), default=0)
        if not most and (name := name_of(pattern.predicate)) is not None:
            return self._to_attribute(name)
        found = self._kept([t for t, shared in sharing.items() if shared and shared == most])
        rest = [t for t, shared in sharing.items() if 0 < shared < most]
        misses = [(triple, self._object_miss(pattern, triple)) for triple in found]
        misses.sort(key=lambda each: _rank(each[1]))
        more = [(triple, None) for triple in sorted(rest, key=lambda t: -sharing[t])]
        return tuple(self._near(t, miss) for t, miss in [*misses, *more][:NEAREST])

    def _kept(self, triples: Sequence[Triple]) -> list[Triple]:
        """Leave out those that were derived from others."""
        chosen = frozenset(triples)
        return [t for t in triples if not chosen.intersection(self._provenance.sources(t))]

    def _object_miss(self, pattern: TriplePattern, triple: Triple) -> Miss | None:
        """Say how an object differs from that of a pattern, where nothing else does."""
        wanted, given = pattern.object, triple[2]
        if isinstance(wanted, Variable) or wanted == given or pattern.predicate != triple[1]:
            return None
        if not isinstance(pattern.subject, Variable) and pattern.subject != triple[0]:
            return None
        if isinstance(wanted, Literal):
            return self._texts(wanted, given)
        if isinstance(given, Literal | BlankNode) and given not in self._provenance.links:
            return None
        if not self._provenance.ontology.parents(wanted) + self._provenance.ontology.children(
            wanted
        ):
            return None
        return self._distances.not_below(given, wanted)

    def _texts(self, wanted: Literal, given: Term) -> Miss | None:
        """Say what of a literal is the same as of another one."""
        if not isinstance(given, Literal):
            return None
        if compare(given, Operator.EQ, wanted):
            return Miss(0, "it is equal by value, but a pattern asks for the very term")
        if wanted.value == given.value:
            return Miss(0, "the text is the same, its language or datatype is not")
        if wanted.value.casefold() == given.value.casefold():
            return Miss(1, "the text is the same but for upper and lower case")
        return None

    def _to_class(self, pattern: TriplePattern, name: str) -> tuple[Near, ...]:
        """Return the values of an attribute, or all classes there are, that come near a class."""
        triples, wanted = self._provenance.publication.triples, pattern.object
        found = [t for t in triples if t[1] == attribute(name)] or [
            t for t in triples if t[1] == TYPE
        ]
        if isinstance(wanted, Variable):
            return tuple(self._near(t, None) for t in found[:NEAREST])
        misses = [(t, self._class_miss(t[2], wanted)) for t in self._kept(found)]
        misses.sort(key=lambda each: _rank(each[1]))
        return tuple(self._near(t, miss) for t, miss in misses[:NEAREST])

    def _class_miss(self, value: Term, wanted: Term) -> Miss | None:
        classes = self._provenance.classes_called(value) if isinstance(value, Literal) else (value,)
        misses = [self._distances.not_below(each, wanted) for each in classes]
        if not misses:
            return Miss(float("inf"), f"no class or concept is called {value}")
        return min(misses, key=_rank)

    def _to_attribute(self, name: str) -> tuple[Near, ...]:
        """Return what is said of attributes that share a step with one that is not there."""
        asked = frozenset(steps(name))
        shared = {
            triple: len(asked.intersection(steps(own)))
            for triple in self._provenance.publication.triples
            if (own := name_of(triple[1])) is not None
        }
        close = sorted((t for t, count in shared.items() if count), key=lambda t: -shared[t])
        return tuple(self._near(triple, None) for triple in close[:NEAREST])

    # -- filters ----------------------------------------------------------------------------

    def to_filter(self, branch: Branch, filter_: Filter) -> Iterator[tuple[Term, Near]]:
        """Yield the values that come closest to passing a filter, and where they stand.

        Parameters
        ----------
        branch
            All that is met without the filter.
        """
        name = filter_.variable.value
        values: dict[Term, Triple] = {}
        for solution in solutions(self._evaluation, branch, None, LOOKED_AT):
            if solution[name] not in values:
                binding = next(p for p in branch.patterns if filter_.variable in p.variables)
                values[solution[name]] = instance(binding, solution)
        misses = [(value, self._distances.miss(filter_, value)) for value in values]
        misses.sort(key=lambda each: _rank(each[1]))
        for value, miss in misses[:NEAREST]:
            yield value, self._near(values[value], miss)

    # -- joins ------------------------------------------------------------------------------

    def of_join(self, pattern: TriplePattern, other: TriplePattern) -> tuple[Near, ...]:
        """Return triples that meet each of two patterns that are not met together."""
        found = (self._meeting(p, NEAREST - 1) for p in (pattern, other))
        return tuple(self._near(triple, None) for triples in found for triple in triples)

    def _meeting(self, pattern: TriplePattern, most: int) -> list[Triple]:
        found = solutions(self._evaluation, Branch((pattern,)), None, most)
        return [instance(pattern, solution) for solution in found]

    def apart(self, pattern: TriplePattern, other: TriplePattern, words: Wording) -> str:
        """Say which variable of two patterns has no value in common."""
        for variable in sorted(pattern.variables & other.variables, key=str):
            one, two = (self._values(p, variable) for p in (pattern, other))
            if not one.keys() & two.keys():
                here, there = _some(one, words), _some(two, words)
                return f"{words.variable(variable)} is {here} in the one, {there} in the other"
        return "no two triples agree in all that they share"

    def _values(self, pattern: TriplePattern, variable: Variable) -> dict[Term, None]:
        found = solutions(self._evaluation, Branch((pattern,)))
        return dict.fromkeys(solution[variable.value] for solution in found)

    def _near(self, triple: Triple, miss: Miss | None) -> Near:
        reasons = tuple(self._provenance.reasons(triple))
        return Near(triple, miss.why if miss is not None else "", reasons)


def _shared(pattern: TriplePattern, triple: Triple) -> int:
    """Return how many terms a triple shares with a pattern."""
    return sum(node == term for node, term in zip(pattern, triple, strict=True))


def _rank(miss: Miss | None) -> Fraction | float:
    return float("inf") if miss is None else miss.distance


def _some(values: dict[Term, None], words: Wording) -> str:
    shown = [words.term(value) for value in islice(values, NEAREST)]
    more = f" or {len(values) - NEAREST:,} more" if len(values) > NEAREST else ""
    return " or ".join(shown) + more

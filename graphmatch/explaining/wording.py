"""Patterns and filters in the words of their subscriber: SPARQL's, or those of attributes.

``?event attribute:price.value ?price_value FILTER(?price_value <= 400)`` was written as
``{"price.value": {"<=": 400}}``; whoever wrote that is told that ``price.value <= 400`` fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyoxigraph import Variable

from semantic.attributes.names import isa_name_of, name_of
from semantic.pattern import AnyOf, Branch, Comparison, Filter, TriplePattern, Unequal
from semantic.terms import Term, compact


class Wording:
    """How a branch is spoken of.

    Parameters
    ----------
    branch
        One that asks for attributes of one subject and nothing else is written as constraints.
    prefixes
        For showing terms.

    Examples
    --------
    >>> from graphmatch.subscription import AttributeSubscription
    >>> from semantic.vocabulary import PREFIXES
    >>> where = {"price.value": {"<=": 400}, "brand": "Acme"}
    >>> branch = AttributeSubscription.of("alice", where).branches[0]
    >>> words = Wording(branch, PREFIXES)
    >>> words.conjunction(branch.patterns), words.filter(branch.filters[0])
    ('price.value exists and brand = "Acme"', 'price.value <= 400')
    """

    def __init__(self, branch: Branch, prefixes: Mapping[str, str]) -> None:
        self.prefixes = prefixes
        named = [_attribute_of(pattern) for pattern in branch.patterns]
        subjects = {pattern.subject for pattern in branch.patterns}
        self.of_attributes = len(subjects) == 1 and all(name is not None for name in named)
        self._names: dict[Variable, str] = {}
        if self.of_attributes:
            for pattern, name in zip(branch.patterns, named, strict=True):
                if isinstance(pattern.object, Variable) and name is not None:
                    self._names.setdefault(pattern.object, name)

    def pattern(self, pattern: TriplePattern) -> str:
        """Write a triple pattern."""
        name = _attribute_of(pattern)
        if not self.of_attributes or name is None:
            return pattern.write(self.prefixes)
        if isinstance(pattern.object, Variable):
            return f"{name} exists"
        sign = "isa" if isa_name_of(pattern.predicate) is not None else "="
        return f"{name} {sign} {compact(pattern.object, self.prefixes)}"

    def conjunction(self, patterns: Iterable[TriplePattern]) -> str:
        """Write several triple patterns."""
        return (" and " if self.of_attributes else " . ").join(map(self.pattern, patterns))

    def variable(self, variable: Variable) -> str:
        """Write a variable."""
        return self._names.get(variable, str(variable))

    def filter(self, filter_: Filter) -> str:
        """Write a filter."""
        name = self._names.get(filter_.variable)
        if name is None:
            return f"FILTER({filter_.write(self.prefixes)})"
        if isinstance(filter_, AnyOf) and filter_.word != "IN":
            return " || ".join(map(self.filter, filter_.tests))
        if isinstance(filter_, Comparison | Unequal):
            return f"{name} {filter_.word} {self.term(filter_.constant)}"
        return filter_.write(self.prefixes).replace(str(filter_.variable), name, 1)

    def term(self, term: Term) -> str:
        """Write a term."""
        return compact(term, self.prefixes)


def _attribute_of(pattern: TriplePattern) -> str | None:
    """Return the name of the attribute that a pattern asks for."""
    name = name_of(pattern.predicate)
    return isa_name_of(pattern.predicate) if name is None else name

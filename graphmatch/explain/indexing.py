"""How a subscription is filed: what the index is asked, and what is checked afterwards.

The index knows publications only. A triple pattern that the ontology alone might
meet is therefore not necessary *in the publication*, and is left to the check; if
all patterns of a branch are such, some pattern of the query (an optional one
perhaps) has to be met by the publication, so each is filed by itself. What cannot
be indexed at all makes the subscription a candidate of every publication, with the
reason recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyoxigraph import Variable

from graphmatch import _native
from graphmatch.knowledge import Knowledge
from graphmatch.subscription import Query, Subscription
from semantic.pattern import Branch, TriplePattern
from semantic.terms import compact

AccessPattern: TypeAlias = Sequence[str | None]
"""The terms of an access pattern as N-Triples has them; ``None`` for any."""

_LEAST_SHARE = 0.00001
"""Smaller shares of publications are shown as less than this."""


@dataclass(frozen=True, slots=True)
class Filed:
    """A subscription as the engine keeps it.

    Parameters
    ----------
    subscription
        As it was submitted.
    query
        Its query with roots put in, in base units.
    branches
        Its branches, likewise.
    entries
        What the index is given: each by itself makes the subscription a candidate.
    unindexed
        Why every publication is a candidate; empty when the entries decide.
    checks
        What is left to be evaluated on candidates; empty when the index's answer is the answer.
    """

    subscription: Subscription
    query: Query
    branches: tuple[Branch, ...]
    entries: tuple[Branch, ...]
    unindexed: tuple[str, ...]
    checks: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether the index's solutions are the answer."""
        return not self.checks

    def describe(self, prefixes: Mapping[str, str]) -> tuple[str, ...]:
        """Say how the subscription is filed, one line a fact."""
        lines = []
        for entry in self.entries:
            lines.append("indexed: " + " . ".join(p.write(prefixes) for p in entry.patterns))
            lines += [f"indexed: FILTER({f.write(prefixes)})" for f in entry.filters]
        if self.unindexed:
            lines.append(f"a candidate of every publication: {'; '.join(self.unindexed)}")
        if self.checks:
            lines.append(f"evaluated as SPARQL on candidates: {'; '.join(self.checks)}")
        else:
            lines.append("the index decides: nothing is left to evaluate")
        return tuple(lines)


def file(subscription: Subscription, knowledge: Knowledge) -> Filed:
    """Decide how a subscription is filed under an ontology, as the core does.

    Raises
    ------
    SubscriptionError
        When a unit in it is unknown, or incompatible with its attribute's.
    """
    rewritten = subscription.rewritten(knowledge.root, knowledge.units)
    entries: dict[Branch, None] = {}
    unindexed: dict[str, None] = {}
    checks = dict.fromkeys(rewritten.remainder)
    for branch in rewritten.branches:
        own = [
            pattern
            for pattern in branch.patterns
            if not knowledge.meets(None if isinstance(n, Variable) else n for n in pattern)
        ]
        if len(own) < len(branch.patterns):
            checks["a pattern that the ontology may meet"] = None
        if own:
            entries[_part(branch, own)] = None
        elif not rewritten.supports:
            unindexed["no pattern to index it by but paths of any length"] = None
        else:
            entries.update((Branch((pattern,)), None) for pattern in rewritten.supports)
    return Filed(
        subscription,
        rewritten.query,
        rewritten.branches,
        () if unindexed else tuple(entries),
        tuple(unindexed),
        tuple(checks),
    )


def suspended(subscription: Subscription, why: str) -> Filed:
    """Return how a subscription is kept that cannot be filed for now: it is never a candidate."""
    return Filed(
        subscription,
        subscription.query,
        subscription.branches,
        (),
        (),
        (f"nothing, for now: {why}",),
    )


def _part(branch: Branch, patterns: Iterable[TriplePattern]) -> Branch:
    """Return a branch's patterns with the filters on their variables."""
    part = Branch(tuple(patterns))
    bound = part.variables
    return replace(part, filters=tuple(f for f in branch.filters if f.variable in bound))


@dataclass(frozen=True, slots=True)
class Placement:
    """How one row of a subscription is filed.

    Parameters
    ----------
    access
        The access pattern that it is filed under.
    second
        The pattern that is looked for next, before the row is joined.
    frequency
        The estimated share of publications that have the access pattern.
    met, sampled
        How many of the sampled publications had it, and how many these are.
    postings
        How many rows are filed under it.
    alike
        How many rows have the same join program: the same patterns but for constants.
    """

    access: AccessPattern
    second: AccessPattern | None
    frequency: float
    met: int
    sampled: int
    postings: int
    alike: int

    def describe(self, prefixes: Mapping[str, str]) -> Iterator[str]:
        """Yield lines for people."""
        written = _write(self.access, prefixes)
        rows = "1 row is" if self.postings == 1 else f"{self.postings:,} rows are"
        yield f"access pattern: {written}: {self._figures()}; {rows} filed there"
        if self.second is not None:
            yield f"  then looked for: {_write(self.second, prefixes)}"
        shared = "no other row" if self.alike == 1 else f"{self.alike - 1:,} other rows"
        yield f"query template: shared with {shared}"

    def as_json(self) -> dict[str, object]:
        """Return it as what JSON has."""
        return {
            "access pattern": self.access,
            "second pattern": self.second,
            "frequency": self.frequency,
            "met": self.met,
            "sampled": self.sampled,
            "rows": self.postings,
            "same template": self.alike,
        }

    def _figures(self) -> str:
        percent = f"{100 * self.frequency:.3g} %"
        if self.frequency < _LEAST_SHARE:
            percent = f"less than {100 * _LEAST_SHARE:.3g} %"
        if self.met:
            return f"met by {self.met:,} of {self.sampled:,} publications, estimated at {percent}"
        return f"estimated at {percent} of publications"


def _write(pattern: AccessPattern, prefixes: Mapping[str, str]) -> str:
    return " ".join(
        "*" if text is None else compact(_native.term(text), prefixes) for text in pattern
    )

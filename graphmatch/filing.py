"""How a subscription is filed: what the index is asked, and what is checked afterwards.

The index knows publications only. A triple pattern that the ontology alone might
meet is therefore not necessary *in the publication*, and is left to the check; if
all patterns of a branch are such, some pattern of the query (an optional one
perhaps) has to be met by the publication, so each is filed by itself. What cannot
be indexed at all makes the subscription a candidate of every publication, with the
reason recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyoxigraph import Variable

from graphmatch.knowledge import Knowledge
from graphmatch.subscription import Query, Subscription
from semantic.pattern import Branch, TriplePattern


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
        own = [p for p in branch.patterns if not _meets(knowledge, p)]
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


def _meets(knowledge: Knowledge, pattern: TriplePattern) -> bool:
    return knowledge.meets(None if isinstance(n, Variable) else n for n in pattern)


def _part(branch: Branch, patterns: Iterable[TriplePattern]) -> Branch:
    """Return a branch's patterns with the filters on their variables."""
    part = Branch(tuple(patterns))
    bound = part.variables
    return replace(part, filters=tuple(f for f in branch.filters if f.variable in bound))

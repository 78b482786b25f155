"""The index plan of a subscription: its rows in the index, and why candidates are evaluated.

The core decides (`Engine::index_plan` in ``engine.rs``). The index covers publications only, so
evaluation handles the patterns that ontology triples may match. If a branch has no other patterns,
the index gets each pattern that a solution can use as a separate branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphmatch.subscription import Subscription, branch_of
from semantic.branch import Branch
from semantic.terms import compact
from semantic.units.quantities import read_in_unit

UNINDEXED = "the index supports none of its patterns, or there are too many of them"
"""The reason why every publication is a candidate of an unindexed subscription."""

SUSPENDED = "it cannot match until the ontology fits its units and class names"
"""The reason why a suspended subscription does not match."""


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The index plan of a subscription.

    Parameters
    ----------
    subscription
        The subscription with root terms and in base units, without its comment.
    entries
        The branches in the index. Each makes the subscription a candidate.
    residual
        Why candidates are evaluated; empty if the solutions of the index are final.
    unindexed
        Whether every publication is a candidate, because the index takes none of the patterns.
    suspended
        Whether the subscription matches nothing until the ontology changes.
    """

    subscription: Subscription
    entries: tuple[Branch, ...]
    residual: tuple[str, ...]
    unindexed: bool
    suspended: bool

    @classmethod
    def of(cls, id: str, plan: Mapping[str, Any]) -> IndexPlan:
        """Create the plan from the core's description; see `_native.Core.index_plan`."""
        return cls(
            Subscription.of(id, plan["query"]),
            tuple(branch_of(*entry) for entry in plan["entries"]),
            tuple(plan["residual"]),
            plan["unindexed"],
            plan["suspended"],
        )

    @property
    def exact(self) -> bool:
        """Whether the solutions of the index are final."""
        return not (self.residual or self.unindexed or self.suspended)

    def describe(self, prefixes: Mapping[str, str]) -> tuple[str, ...]:
        """Return the plan as lines."""
        lines = []
        for entry in self.entries:
            lines.append("indexed: " + " . ".join(p.write(prefixes) for p in entry.patterns))
            lines += [f"indexed: FILTER({f.write(prefixes)})" for f in entry.filters]
            units = filter(None, (read_in_unit(p.predicate) for p in entry.patterns))
            shown = dict.fromkeys(compact(unit, prefixes) for _, unit in units)
            lines += [f"numbers are converted to {unit}" for unit in shown]
        if self.unindexed:
            lines.append(f"a candidate of every publication: {UNINDEXED}")
        if self.suspended:
            lines.append(f"suspended: {SUSPENDED}")
        elif self.residual:
            lines.append(f"evaluated as SPARQL on candidates: {'; '.join(self.residual)}")
        elif self.exact:
            lines.append("the index decides; nothing is left to evaluate")
        return tuple(lines)

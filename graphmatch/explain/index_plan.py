"""The index plan of a subscription: its rows in the index, and why candidates are evaluated.

The core decides (`Engine::index_plan` in ``engine.rs``). The index covers publications only, so
evaluation handles the patterns that ontology triples may match. If a branch has no other patterns,
the index gets each pattern that a solution can use as a separate branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphmatch import _native
from graphmatch.subscription import Subscription, branch_of
from semantic.branch import Branch
from semantic.errors import plural
from semantic.terms import compact
from semantic.units.quantities import read_in_unit, without_unit

AccessPattern: TypeAlias = Sequence[str | None]
"""The terms of an access pattern in N-Triples, ``None`` for any."""

UNINDEXED = "the index supports none of its patterns, or there are too many of them"
"""The reason why every publication is a candidate of an unindexed subscription."""

SUSPENDED = "it cannot match until the ontology fits its units and class names"
"""The reason why a suspended subscription does not match."""

_LEAST_SHARE = 0.00001
"""Smallest share of publications that is shown; smaller ones are shown as less than this."""


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The index plan of a subscription.

    Parameters
    ----------
    subscription
        The subscription with root terms and in base units, without its comment.
    entries
        The branches in the index. Each makes the subscription a candidate.
    rows
        The plans of these branches, except those in predicate tables.
    residual
        Why candidates are evaluated; empty if the solutions of the index are final.
    unindexed
        Whether every publication is a candidate, because the index takes none of the patterns.
    suspended
        Whether the subscription matches nothing until the ontology changes.
    """

    subscription: Subscription
    entries: tuple[Branch, ...]
    rows: tuple[RowPlan, ...]
    residual: tuple[str, ...]
    unindexed: bool
    suspended: bool

    @classmethod
    def of(cls, id: str, plan: Mapping[str, Any]) -> IndexPlan:
        """Create the plan from the core's description; see `_native.Core.index_plan`."""
        return cls(
            Subscription.of(id, plan["query"]),
            tuple(branch_of(*entry) for entry in plan["entries"]),
            tuple(RowPlan(**row) for row in plan["rows"]),
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


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The index plan of one branch.

    Parameters
    ----------
    access
        The access pattern of its posting list.
    second
        The next pattern to look up, before the join.
    frequency
        The estimated share of publications with the access pattern.
    met, sampled
        The number of sampled publications with the access pattern, and of all sampled ones.
    postings
        The length of the posting list.
    alike
        The number of rows with equal patterns except for constants, which share a join program.
    """

    access: AccessPattern
    second: AccessPattern | None
    frequency: float
    met: int
    sampled: int
    postings: int
    alike: int

    def describe(self, prefixes: Mapping[str, str]) -> Iterator[str]:
        """Yield the plan as lines."""
        written = _write(self.access, prefixes)
        rows = "1 row is" if self.postings == 1 else f"{self.postings:,} rows are"
        yield f"access pattern: {written}: {self._figures()}; {rows} stored there"
        if self.second is not None:
            yield f"  second pattern: {_write(self.second, prefixes)}"
        yield f"query template: shared with {plural(self.alike - 1, 'other row')}"

    def as_json(self) -> dict[str, object]:
        """Return the plan for JSON."""
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
            return f"in {self.met:,} of {self.sampled:,} publications, estimated at {percent}"
        return f"estimated at {percent} of publications"


def _write(pattern: AccessPattern, prefixes: Mapping[str, str]) -> str:
    return " ".join(
        "*" if text is None else compact(without_unit(_native.term(text)), prefixes)
        for text in pattern
    )

"""The reasons why a subscription matches a publication, or the first condition that fails.

An explanation evaluates the necessary part pattern by pattern, then filter by filter, then the
whole query. The first step without a solution is the reason. This is slow and thorough, because it
serves a person who asks about one pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyoxigraph import Literal

from graphmatch._native import Evaluation
from graphmatch.explain.conditions import Condition, conditions
from graphmatch.explain.evidence import Evidence, evidence, first, proofs
from graphmatch.explain.index_plan import SUSPENDED, IndexPlan
from graphmatch.explain.near_miss import NearMiss, NearMissFinder, Wording
from graphmatch.explain.provenance import Provenance
from graphmatch.report import Match, shorten
from semantic import html
from semantic.branch import Branch, TriplePattern
from semantic.terms import Triple, compact
from semantic.units.quantities import without_unit
from semantic.vocabulary import PREFIXES

_LONGEST = 200
"""Maximum length of a literal in text output."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result of `Engine.explain`; ``str()`` formats it for people.

    Parameters
    ----------
    plan
        The index plan of the subscription.
    match
        The match, or ``None``.
    evidence
        For a match, the triples of one solution.
    failure
        Without a match, the first condition that failed.
    nearest
        The triples closest to that condition.
    held
        Without a match, the triples of one solution of the conditions before the failed one.
    calls
        The operator calls in order, with results, as lines.
    """

    subscription: str
    publication: str
    plan: IndexPlan
    match: Match | None
    evidence: tuple[Evidence, ...] = ()
    failure: str = ""
    nearest: tuple[NearMiss, ...] = ()
    held: tuple[Evidence, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=lambda: PREFIXES)
    calls: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the explanation as lines."""
        return "\n".join(self._lines())

    def as_json(self) -> dict[str, object]:
        """Return the explanation for JSON, as written by ``graphmatch explain --json``."""
        return {
            "subscription": self.subscription,
            "publication": self.publication,
            "matches": self.match is not None,
            "plan": list(self.plan.describe(self.prefixes)),
            "evidence": [each.as_json() for each in self.evidence],
            "calls": list(self.calls),
            "failure": self.failure or None,
            "held": [each.as_json() for each in self.held],
            "nearest": [near.as_json() for near in self.nearest],
        }

    def _lines(self) -> Iterator[str]:
        verb = "matches" if self.match else "does not match"
        yield f"{self.publication} {verb} {self.subscription}"
        for found in self.evidence:
            yield f"  ✓ {found.write(self.prefixes)}"
            if found.triple is not None:
                yield f"      {self._write(found.triple)}"
            if found.value is not None and not isinstance(found.pattern, TriplePattern):
                value = compact(found.value, self.prefixes)
                yield f"      {found.pattern.variable} is {value}"
            yield from (f"        because {reason}" for reason in found.reasons)
        if self.failure:
            yield f"  ✗ {self.failure}"
        for near in self.nearest:
            yield f"      nearest triple: {self._write(near.triple)}"
            yield from (f"        because {reason}" for reason in near.reasons)
            if near.why:
                yield f"        but {near.why}"
        yield from (f"  → {call}" for call in self.calls)

    def _repr_html_(self) -> str:
        title, *lines = self._lines()
        return html.block(title, (), *html.outline(lines))

    def _write(self, triple: Triple) -> str:
        subject, property_, object_ = (compact(without_unit(t), self.prefixes) for t in triple)
        is_text = isinstance(triple[2], Literal)
        return f"{subject} {property_} {shorten(object_, _LONGEST) if is_text else object_}"


def explain(
    plan: IndexPlan, match: Match | None, evaluation: Evaluation, provenance: Provenance
) -> Explanation:
    """Explain why a subscription matches a publication (`match`), or which condition fails.

    `evaluation` queries the enriched publication. `provenance` gives the reasons of its triples.
    """
    prefixes, publication = provenance.prefixes, provenance.publication
    branches = plan.subscription.branches
    blank = Explanation(plan.subscription.id, publication.id, plan, match, prefixes=prefixes)
    if match is not None:
        proof = evidence(plan.subscription, match, evaluation, provenance)
        return replace(blank, evidence=tuple(proof))
    if plan.suspended:
        return replace(blank, failure=SUSPENDED)
    nearest = NearMissFinder(evaluation, provenance)
    excluding = [c for c in conditions(plan.subscription.query, prefixes) if c.excludes]
    failures = [_failure(branch, excluding, nearest) for branch in branches]
    found = [failed for failed in failures if failed is not None]
    met = [b for b, failed in zip(branches, failures, strict=True) if failed is None]
    if met or not found:
        text = "the indexed part of the query matches, but the whole query has no solution"
        text += f"; not indexed: {'; '.join(plan.residual or plan.subscription.remainder)}"
        found = [(text, (), met[0] if met else Branch(()))]
    text, misses, before = found[0]
    if len(found) > 1:
        text += f" (each of the other {len(found) - 1} branches fails, too)"
    held = tuple(proofs(before, {}, evaluation, provenance)) if before.patterns else ()
    return replace(blank, failure=text, nearest=misses, held=held)


def _failure(
    branch: Branch, excluding: Sequence[Condition], nearest: NearMissFinder
) -> tuple[str, tuple[NearMiss, ...], Branch] | None:
    """Return the first failed condition of a branch, its near misses, and the conditions before it.

    Conditions in `excluding` come last. Return ``None`` if none fails.
    """
    evaluation, provenance = nearest.evaluation, nearest.provenance
    words = Wording(branch, provenance.prefixes)
    for number, pattern in enumerate(branch.patterns):
        before = branch.patterns[:number]
        if first(evaluation, Branch((pattern,))) is None:
            text = words.pattern(pattern)
            text = f"{text} is not true" if words.of_attributes else f"no triple matches {text}"
            return text, nearest.to_pattern(pattern), Branch(before)
        if first(evaluation, Branch((*before, pattern))) is None:
            return nearest.apart(pattern, before, words), (), Branch(before)
    for number, filter_ in enumerate(branch.filters):
        met = Branch(branch.patterns, branch.filters[:number])
        if first(evaluation, Branch(branch.patterns, branch.filters[: number + 1])) is None:
            value, near = nearest.to_filter(met, filter_)
            shown = f"{words.variable(filter_.variable)} is {words.term(value)}"
            return f"{words.filter(filter_)} is not true: {shown}", near, met
    for condition in excluding:
        for excluded in condition.branches:
            both = Branch(branch.patterns + excluded.patterns, branch.filters + excluded.filters)
            proof = tuple(proofs(both, {}, evaluation, provenance))
            found = proof[len(branch.patterns) : len(both.patterns)]
            if near := tuple(NearMiss(e.triple, "; ".join(e.reasons)) for e in found if e.triple):
                text = condition.describe(provenance.write).removeprefix("not ")
                return f"excluded by {text}", near, branch
    return None

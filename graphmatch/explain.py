"""Why a subscription matches a publication, or what is the first thing that fails.

The necessary part is asked pattern by pattern, then filter by filter, then whole;
the first question without an answer is the reason. Slow and thorough: it is made
for a person who wonders about one pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyoxigraph import Variable

from graphmatch._native import Evaluation
from graphmatch.explaining.asking import first, instance
from graphmatch.explaining.failure import failure
from graphmatch.explaining.nearest import LOOKED_AT, Near, Nearest
from graphmatch.explaining.placement import Placement
from graphmatch.explaining.wording import Wording
from graphmatch.filing import Filed
from graphmatch.matcher import Match
from graphmatch.provenance import Provenance
from semantic.pattern import AnyOf, Branch, Filter, TaxonomyTest, TriplePattern
from semantic.terms import Solution, Term, Triple, compact
from semantic.vocabulary import PREFIXES


@dataclass(frozen=True, slots=True)
class Evidence:
    """A triple that met a pattern, or a value that a filter is true of, and why it holds.

    Parameters
    ----------
    pattern
        The triple pattern, or the filter.
    triple
        What met the pattern; ``None`` for a filter.
    reasons
        Why the triple holds, or an is-a that the filter asks for.
    value
        What the filter's variable is bound to; ``None`` for a pattern.
    """

    pattern: TriplePattern | Filter
    triple: Triple | None
    reasons: tuple[str, ...]
    value: Term | None = None

    def write(self, prefixes: Mapping[str, str]) -> str:
        """Write what was asked for."""
        written = self.pattern.write(prefixes)
        return written if isinstance(self.pattern, TriplePattern) else f"FILTER({written})"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `Engine.explain` returns; ``str()`` of it is for people.

    Parameters
    ----------
    filing
        How the subscription is filed: what is indexed, what is evaluated, and why.
    placements
        Its gate and its shape, for each entry in the index.
    match
        The match, or ``None``.
    evidence
        For a match, the triples of one solution.
    failure
        For no match, the first thing that failed.
    nearest
        What came closest to what failed.
    """

    subscription: str
    publication: str
    filing: tuple[str, ...]
    placements: tuple[Placement, ...]
    match: Match | None
    evidence: tuple[Evidence, ...] = ()
    failure: str = ""
    nearest: tuple[Near, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=lambda: PREFIXES)

    @property
    def placing(self) -> tuple[str, ...]:
        """The gates and shapes as lines."""
        return tuple(line for each in self.placements for line in each.describe(self.prefixes))

    def __str__(self) -> str:
        """Return the explanation as lines."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        verb = "matches" if self.match else "does not match"
        yield f"{self.publication} {verb} {self.subscription}"
        yield from (f"  {line}" for line in (*self.filing, *self.placing))
        for evidence in self.evidence:
            yield f"  ✓ {evidence.write(self.prefixes)}"
            if evidence.triple is not None:
                yield f"      {self._write(evidence.triple)}"
            if evidence.value is not None and not isinstance(evidence.pattern, TriplePattern):
                value = compact(evidence.value, self.prefixes)
                yield f"      {evidence.pattern.variable} is {value}"
            yield from (f"        because {reason}" for reason in evidence.reasons)
        if self.failure:
            yield f"  ✗ {self.failure}"
        for near in self.nearest:
            yield f"      the nearest: {self._write(near.triple)}"
            yield from (f"        because {reason}" for reason in near.reasons)
            if near.why:
                yield f"        but {near.why}"

    def _write(self, triple: Triple) -> str:
        return " ".join(compact(term, self.prefixes) for term in triple)


def describe_filing(filed: Filed, prefixes: Mapping[str, str]) -> tuple[str, ...]:
    """Say how a subscription is filed, one line a fact."""
    lines = []
    for entry in filed.entries:
        lines.append("indexed: " + " . ".join(p.write(prefixes) for p in entry.patterns))
        lines += [f"indexed: FILTER({f.write(prefixes)})" for f in entry.filters]
    if filed.unindexed:
        lines.append(f"a candidate of every publication: {'; '.join(filed.unindexed)}")
    if filed.checks:
        lines.append(f"evaluated as SPARQL on candidates: {'; '.join(filed.checks)}")
    else:
        lines.append("the index decides: nothing is left to evaluate")
    return tuple(lines)


def explain(
    filed: Filed,
    placements: Sequence[Placement],
    match: Match | None,
    evaluation: Evaluation,
    provenance: Provenance,
) -> Explanation:
    """Explain one pair.

    Parameters
    ----------
    placements
        How the subscription stands in the index.
    match
        What matching them gave.
    evaluation
        The publication, enriched, and ready for queries.
    provenance
        Why its triples hold.
    """
    prefixes, publication = provenance.prefixes, provenance.publication
    blank = Explanation(
        filed.subscription.id,
        publication.id,
        describe_filing(filed, prefixes),
        tuple(placements),
        match,
        prefixes=prefixes,
    )
    if match is not None:
        return replace(blank, evidence=tuple(evidence(filed, match, evaluation, provenance)))
    nearest = Nearest(evaluation, provenance)
    failures = [failure(b, evaluation, nearest, Wording(b, prefixes)) for b in filed.branches]
    found = [failed for failed in failures if failed is not None]
    if len(found) < len(failures) or not found:
        return replace(blank, failure=_rest_failed(filed))
    text = found[0].text
    if len(found) > 1:
        text += f" (and likewise in each of the other {len(found) - 1} branches)"
    return replace(blank, failure=text, nearest=found[0].nearest)


def _rest_failed(filed: Filed) -> str:
    if not filed.checks:
        return "its patterns are met by the ontology alone: no news"
    why = "; ".join(filed.checks)
    return f"the necessary part is met; what is evaluated as SPARQL is not: {why}"


def evidence(
    filed: Filed, match: Match, evaluation: Evaluation, provenance: Provenance
) -> Iterator[Evidence]:
    """Yield the triples that a match's first solution rests on, with their reasons."""
    first = match.solutions[0] if match.solutions else {}
    # A step inside a path of any length may be any that the branch allows: it tells nothing.
    loose = any(check.startswith("path ") for check in filed.checks)
    for row in evaluation.rows(filed.query, LOOKED_AT):
        known = frozenset(map(Variable, row))
        if any(row.get(name, term) != term for name, term in first.items()):
            continue
        for branch in filed.branches:
            found = tuple(_evidence(branch, row, evaluation, provenance))
            if loose:
                found = tuple(e for e in found if _variables(e.pattern) <= known)
            if any(e.triple is not None and provenance.holds(e.triple) for e in found):
                yield from found
                return


def _evidence(
    branch: Branch, row: Solution, evaluation: Evaluation, provenance: Provenance
) -> Iterator[Evidence]:
    """Yield the evidence for one branch with the bindings of a row, if it holds."""
    solution = first(evaluation, branch, row)
    if solution is None:
        return
    for pattern in branch.patterns:
        triple = instance(pattern, solution)
        yield Evidence(pattern, triple, tuple(provenance.reasons(triple)))
    for filter_ in branch.filters:
        value = solution[filter_.variable.value]
        yield Evidence(filter_, None, tuple(_true(filter_, value, provenance)), value)


def _true(filter_: Filter, value: Term, provenance: Provenance) -> Iterator[str]:
    """Yield the ways through the ontology that make a filter true."""
    for test in filter_.tests if isinstance(filter_, AnyOf) else (filter_,):
        if isinstance(test, TaxonomyTest) and provenance.is_true(test, value):
            reason = provenance.taxonomy_reason(test, value)
            yield from (reason,) if reason else ()


def _variables(pattern: TriplePattern | Filter) -> frozenset[Variable]:
    if isinstance(pattern, TriplePattern):
        return pattern.variables
    return frozenset({pattern.variable})

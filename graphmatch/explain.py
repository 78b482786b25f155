"""Why a subscription matches a publication, or what is the first thing that fails.

The necessary part is asked pattern by pattern, then filter by filter, then whole;
the first question without an answer is the reason. Slow and thorough: it is made
for a person who wonders about one pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from pyoxigraph import BlankNode, Literal, Variable

from graphmatch.filing import Filed
from graphmatch.matcher import Match
from graphmatch.provenance import Provenance
from semantic.evaluation import Evaluation
from semantic.pattern import COMPARE, AnyOf, Branch, Filter, TaxonomyTest, TriplePattern
from semantic.publication import Publication
from semantic.sparql.exact import LEXICAL, VALUE, protect
from semantic.terms import Node, Solution, Triple, compact
from semantic.text.tests import RegexTest, TextTest, View
from semantic.units.vocabulary import is_quantity
from semantic.vocabulary import GM, PREFIXES

LOOKED_AT = 1000
"""How many solutions are searched for the one that a match reports."""

NEAREST = 3
"""How many near misses are shown."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A triple that met a pattern, or a filter that needed the taxonomy, and why it holds."""

    pattern: TriplePattern | TaxonomyTest
    triple: Triple | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `Engine.explain` returns; ``str()`` of it is for people.

    Parameters
    ----------
    filing
        How the subscription is filed: what is indexed, what is evaluated, and why.
    match
        The match, or ``None``.
    evidence
        For a match, the triples of one solution.
    failure
        For no match, the first thing that failed.
    nearest
        Triples of the publication that came close to a pattern that nothing met.
    """

    subscription: str
    publication: str
    filing: tuple[str, ...]
    match: Match | None
    evidence: tuple[Evidence, ...] = ()
    failure: str = ""
    nearest: tuple[Triple, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=lambda: PREFIXES)

    def __str__(self) -> str:
        """Return the explanation as lines."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        verb = "matches" if self.match else "does not match"
        yield f"{self.publication} {verb} {self.subscription}"
        yield from (f"  {line}" for line in self.filing)
        for evidence in self.evidence:
            yield f"  ✓ {evidence.pattern.write(self.prefixes)}"
            if evidence.triple is not None:
                yield f"      {self._write(evidence.triple)}"
            yield from (f"        because {reason}" for reason in evidence.reasons)
        if self.failure:
            yield f"  ✗ {self.failure}"
        for triple in self.nearest:
            yield f"      the nearest: {self._write(triple)}"

    def _write(self, triple: Triple) -> str:
        return " ".join(compact(term, self.prefixes) for term in triple)


def describe_filing(filed: Filed, prefixes: Mapping[str, str]) -> tuple[str, ...]:
    """Say how a subscription is filed, one line a fact."""
    lines = []
    for entry in filed.entries:
        lines.append("indexed: " + _conjunction(entry.patterns, prefixes))
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
    match: Match | None,
    publication: Publication,
    evaluation: Evaluation,
    provenance: Provenance,
) -> Explanation:
    """Explain one pair.

    Parameters
    ----------
    match
        What matching them gave.
    publication
        The publication, enriched.
    evaluation
        The same, ready for queries.
    """
    prefixes = provenance.prefixes
    blank = Explanation(
        filed.subscription.id,
        publication.id,
        describe_filing(filed, prefixes),
        match,
        prefixes=prefixes,
    )
    if match is not None:
        return replace(blank, evidence=tuple(evidence(filed, match, evaluation, provenance)))
    failures = [_failure(b, publication, evaluation, prefixes) for b in filed.branches]
    found = [failure for failure in failures if failure is not None]
    if len(found) < len(failures) or not found:
        return replace(blank, failure=_rest_failed(filed))
    text, nearest = found[0]
    if len(found) > 1:
        text += f" (and likewise in each of the other {len(found) - 1} branches)"
    return replace(blank, failure=text, nearest=nearest)


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
    for row in islice(evaluation.rows(filed.query), LOOKED_AT):
        known = frozenset(map(Variable, row))
        if any(row.get(name, term) != term for name, term in first.items()):
            continue
        for branch in filed.branches:
            found = tuple(_evidence(branch, row, evaluation, provenance))
            if loose:
                found = tuple(e for e in found if e.pattern.variables <= known)
            if any(e.triple is not None and provenance.holds(e.triple) for e in found):
                yield from found
                return


def _evidence(
    branch: Branch, row: Solution, evaluation: Evaluation, provenance: Provenance
) -> Iterator[Evidence]:
    """Yield the evidence for one branch with the bindings of a row, if it holds."""
    solution = _first(evaluation, branch, row)
    if solution is None:
        return
    for pattern in branch.patterns:
        triple = _instance(pattern, solution)
        yield Evidence(pattern, triple, tuple(provenance.reasons(triple)))
    for filter_ in branch.filters:
        if isinstance(filter_, TaxonomyTest):
            reason = provenance.taxonomy_reason(filter_, solution[filter_.variable.value])
            yield Evidence(filter_, None, (reason,) if reason else ())


def _failure(
    branch: Branch,
    publication: Publication,
    evaluation: Evaluation,
    prefixes: Mapping[str, str],
) -> tuple[str, tuple[Triple, ...]] | None:
    for number, pattern in enumerate(branch.patterns):
        if _first(evaluation, Branch((pattern,))) is None:
            return f"no triple meets {pattern.write(prefixes)}", _nearest(
                pattern, publication.triples
            )
        if _first(evaluation, Branch(branch.patterns[: number + 1])) is None:
            before = _conjunction(branch.patterns[:number], prefixes)
            return f"{pattern.write(prefixes)} is met, but not together with {before}", ()
    for number, filter_ in enumerate(branch.filters):
        if _first(evaluation, Branch(branch.patterns, branch.filters[: number + 1])) is None:
            solution = _first(evaluation, Branch(branch.patterns, branch.filters[:number]))
            value = (solution or {}).get(filter_.variable.value)
            shown = (
                f": {filter_.variable} is {compact(value, prefixes)}" if value is not None else ""
            )
            return f"FILTER({filter_.write(prefixes)}) is not true{shown}", ()
    return None


def _first(
    evaluation: Evaluation, branch: Branch, bindings: Solution | None = None
) -> Solution | None:
    """Return a solution of a branch in which some variables are bound already."""
    bound = {n: t for n, t in (bindings or {}).items() if not isinstance(t, BlankNode)}
    for solution in evaluation.solutions(_where(branch, bound)):
        whole = {**bound, **solution}
        if all(whole.get(name, term) == term for name, term in (bindings or {}).items()):
            return whole
    return None


def _conjunction(patterns: Iterable[TriplePattern], prefixes: Mapping[str, str]) -> str:
    return " . ".join(pattern.write(prefixes) for pattern in patterns)


def _nearest(pattern: TriplePattern, triples: Sequence[Triple]) -> tuple[Triple, ...]:
    """Return the triples that share the most terms with a pattern, at least one."""

    def shared(triple: Triple) -> int:
        return sum(node == term for node, term in zip(pattern, triple, strict=True))

    close = sorted((t for t in triples if shared(t)), key=shared, reverse=True)
    return tuple(close[:NEAREST])


def _where(branch: Branch, bindings: Solution) -> str:
    """Write a branch as a group pattern, with terms for the variables that are bound."""

    def write(node: Node) -> str:
        if isinstance(node, Variable):
            if node.value not in bindings:
                return str(node)
            node = bindings[node.value]
        return str(protect(node))

    patterns = " . ".join(" ".join(map(write, pattern)) for pattern in branch.patterns)
    filters = " ".join(
        f"FILTER({_filter_text(f)})" for f in branch.filters if f.variable.value not in bindings
    )
    return f"{{ {patterns} {filters} }}"


def _filter_text(filter_: Filter) -> str:
    """Write a filter as the evaluator has to be asked it, see `semantic.sparql.exact`."""
    match filter_:
        case TaxonomyTest(variable, operator, concept):
            return f"{GM[operator.value]}({variable}, {concept})"
        case AnyOf(_, tests):
            return " || ".join(map(_filter_text, tests)) or "false"
        case TextTest():
            return filter_.applied(_view_text(filter_.view, filter_.variable))
        case RegexTest():
            return filter_.write()
    value, constant = f"{VALUE}({filter_.variable})", filter_.constant
    if isinstance(constant, Literal) and is_quantity(constant):
        return f'{COMPARE}({value}, "{filter_.word}", {constant})'
    return f"{value} {filter_.word} {constant}"


def _view_text(view: View, variable: Variable) -> str:
    match view:
        case View.TERM:
            return f"{VALUE}({variable})"
        case View.STR:
            return f"STR({LEXICAL}({variable}))"
        case View.LANG:
            return f"LANG({VALUE}({variable}))"


def _instance(pattern: TriplePattern, solution: Solution) -> Triple:
    s, p, o = (solution[n.value] if isinstance(n, Variable) else n for n in pattern)
    return s, p, o

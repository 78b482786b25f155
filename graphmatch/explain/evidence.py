"""The triples that a match uses, and why they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import BlankNode, NamedNode, Variable
from pyoxigraph import Triple as TripleTerm

from graphmatch._native import Evaluation
from graphmatch.explain.provenance import Provenance
from graphmatch.report import Match
from graphmatch.subscription import Subscription
from semantic.branch import (
    Alternative,
    AnyOf,
    Branch,
    Filter,
    TaxonomyTest,
    TextTest,
    TriplePattern,
)
from semantic.filter_evaluation import text_holds
from semantic.terms import Node, Solution, Term, Triple, written
from semantic.units.quantities import without_unit

LOOKED_AT = 1000
"""Maximum number of solutions to examine."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A triple that matches a pattern, or a value that satisfies a filter, with reasons.

    Parameters
    ----------
    pattern
        The triple pattern, or the filter.
    triple
        The triple that matches the pattern; ``None`` for a filter.
    reasons
        Why the triple holds, or why the is-a relation that the filter tests holds.
    value
        The value of the filter's variable; ``None`` for a pattern.
    """

    pattern: TriplePattern | Filter
    triple: Triple | None
    reasons: tuple[str, ...]
    value: Term | None = None

    def write(self, prefixes: Mapping[str, str]) -> str:
        """Return the pattern, or the filter as ``FILTER(…)``, in SPARQL with these prefixes."""
        written = self.pattern.write(prefixes)
        return written if isinstance(self.pattern, TriplePattern) else f"FILTER({written})"

    def as_json(self) -> dict[str, object]:
        """Return the evidence for JSON, with terms in N-Triples."""
        return {
            "pattern": self.pattern.write({}),
            "triple": self.triple and in_ntriples(self.triple),
            "value": self.value and str(self.value),
            "because": list(self.reasons),
        }


def in_ntriples(triple: Iterable[Node]) -> str:
    """Return a triple or pattern as three terms in N-Triples, without the final full stop."""
    return " ".join(str(without_unit(term)) for term in triple)


def distinct_reasons(evidence: Iterable[Evidence]) -> list[str]:
    """Return the distinct reasons of all evidence, in order.

    Leave out "in the ontology", the reason of triples that only the ontology states.
    """
    found = (r for each in evidence for r in each.reasons if r != "in the ontology")
    return list(dict.fromkeys(found))


def evidence(
    subscription: Subscription, match: Match, evaluation: Evaluation, provenance: Provenance
) -> Iterator[Evidence]:
    """Yield the evidence for one solution of a match, from a branch that uses the publication.

    The solution agrees with the first one of the match. Only `LOOKED_AT` solutions are searched; if
    none fits, yield nothing.
    """
    first = match.solutions[0] if match.solutions else {}
    # The branch leaves the steps inside a path of any length open, so they prove nothing.
    loose = any(check.startswith("path ") for check in subscription.remainder)
    for row in evaluation.rows(subscription.query, LOOKED_AT):
        known = frozenset(map(Variable, row))
        if any(row.get(name, term) != term for name, term in first.items()):
            continue
        for branch in subscription.branches:
            found = tuple(proofs(branch, row, evaluation, provenance))
            if loose:
                found = tuple(e for e in found if _variables(e.pattern) <= known)
            if any(e.triple is not None and provenance.holds(e.triple) for e in found):
                yield from found
                return


def proofs(
    branch: Branch, row: Solution, evaluation: Evaluation, provenance: Provenance
) -> Iterator[Evidence]:
    """Yield the evidence for a branch with the bindings of `row`; nothing if it does not match."""
    solution = first(evaluation, branch, row)
    if solution is None:
        return
    for pattern in branch.patterns:
        triple = instance(pattern, solution)
        tests = (t for f in branch.filters if f.variable == pattern.object for t in tests_of(f))
        words = [
            test.argument.value.strip()
            for test in tests
            if isinstance(test, TextTest) and text_holds(test, triple[2])
        ]
        yield Evidence(pattern, triple, tuple(provenance.reasons(triple, words)))
    for filter_ in branch.filters:
        value = solution[filter_.variable.value]
        yield Evidence(filter_, None, tuple(_true(filter_, value, provenance)), value)


def _true(filter_: Filter, value: Term, provenance: Provenance) -> Iterator[str]:
    """Yield the is-a paths that make the taxonomy tests of a filter true; none for other tests."""
    for test in tests_of(filter_):
        if isinstance(test, TaxonomyTest) and provenance.is_true(test, value):
            reason = provenance.taxonomy_reason(test, value)
            yield from (reason,) if reason else ()


def tests_of(filter_: Filter) -> Sequence[Alternative]:
    """Return the tests of a filter, one of which must be true."""
    return filter_.tests if isinstance(filter_, AnyOf) else (filter_,)


def _variables(pattern: TriplePattern | Filter) -> frozenset[Variable]:
    if isinstance(pattern, TriplePattern):
        return pattern.variables
    return frozenset({pattern.variable})


def solutions(
    evaluation: Evaluation, branch: Branch, bindings: Solution | None = None, most: int = 1000
) -> Iterator[Solution]:
    """Yield solutions of a branch that agree with `bindings` and include them.

    At most `most` are searched, unless `bindings` has blank nodes or triple terms, which a query
    cannot contain. Then all solutions are compared with these.
    """
    # Blank nodes cannot be written, and deep triple terms take long to parse.
    bound = {n: t for n, t in (bindings or {}).items() if not isinstance(t, BlankNode | TripleTerm)}
    if not all(_can_be(pattern, bound) for pattern in branch.patterns):
        return
    is_all = len(bound) == len(bindings or {})
    for solution in evaluation.solutions(_where(branch, bound), most if is_all else None):
        whole = {**bound, **solution}
        if all(whole.get(name, term) == term for name, term in (bindings or {}).items()):
            yield whole


def first(
    evaluation: Evaluation, branch: Branch, bindings: Solution | None = None
) -> Solution | None:
    """Return a solution of a branch that agrees with `bindings`; ``None`` if there is none."""
    return next(solutions(evaluation, branch, bindings, 1), None)


def instance(pattern: TriplePattern, solution: Solution) -> Triple:
    """Return the triple that matches a pattern with the bindings of a solution."""
    s, p, o = (solution[n.value] if isinstance(n, Variable) else n for n in pattern)
    return s, p, o


def _can_be(pattern: TriplePattern, bindings: Solution) -> bool:
    """Return whether a pattern with `bindings` can be a triple.

    Its subject must not be a literal, and its predicate must be an IRI. The bindings of another
    branch may break these rules.
    """
    subject, predicate = (
        bindings.get(node.value, node) if isinstance(node, Variable) else node
        for node in (pattern.subject, pattern.predicate)
    )
    may_be_subject = isinstance(subject, NamedNode | BlankNode | Variable)
    return may_be_subject and isinstance(predicate, NamedNode | Variable)


def _where(branch: Branch, bindings: Solution) -> str:
    """Return a branch as a SPARQL group pattern, with bound variables replaced by their terms.

    Filters of bound variables are left out.
    """

    def write(node: Node) -> str:
        return written(bindings.get(node.value, node) if isinstance(node, Variable) else node)

    patterns = " . ".join(" ".join(map(write, pattern)) for pattern in branch.patterns)
    filters = (f for f in branch.filters if f.variable.value not in bindings)
    return f"{{ {patterns} {' '.join(f'FILTER({f.write({})})' for f in filters)} }}"

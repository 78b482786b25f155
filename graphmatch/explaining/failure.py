"""What is the first thing that fails of a branch, pattern by pattern, then filter by filter."""

from __future__ import annotations

from dataclasses import dataclass

from graphmatch._native import Evaluation
from graphmatch.explaining.asking import first
from graphmatch.explaining.nearest import Near, Nearest
from graphmatch.explaining.wording import Wording
from semantic.pattern import Branch, TriplePattern


@dataclass(frozen=True, slots=True)
class Failure:
    """The first pattern or filter that failed.

    Parameters
    ----------
    text
        Says which.
    nearest
        The nearest misses, the nearest first.
    """

    text: str
    nearest: tuple[Near, ...] = ()


def failure(
    branch: Branch, evaluation: Evaluation, nearest: Nearest, words: Wording
) -> Failure | None:
    """Return the first thing that fails of a branch, ``None`` if nothing does."""
    for number, pattern in enumerate(branch.patterns):
        before = branch.patterns[:number]
        if first(evaluation, Branch((pattern,))) is None:
            what = "nothing" if words.of_attributes else "no triple"
            text = f"{what} meets {words.pattern(pattern)}"
            return Failure(text, nearest.to_pattern(pattern))
        if first(evaluation, Branch((*before, pattern))) is None:
            return _not_together(pattern, before, evaluation, nearest, words)
    for number, filter_ in enumerate(branch.filters):
        met = Branch(branch.patterns, branch.filters[:number])
        if first(evaluation, Branch(branch.patterns, branch.filters[: number + 1])) is None:
            near = list(nearest.to_filter(met, filter_))
            value = f"{words.variable(filter_.variable)} is {words.term(near[0][0])}"
            text = f"{words.filter(filter_)} is not true: {value}"
            return Failure(text, tuple(miss for _, miss in near))
    return None


def _not_together(
    pattern: TriplePattern,
    before: tuple[TriplePattern, ...],
    evaluation: Evaluation,
    nearest: Nearest,
    words: Wording,
) -> Failure:
    """Say which patterns are met, each by itself, but not by triples that go together."""
    met = f"{words.pattern(pattern)} is met, but not together with"
    for other in before:
        if first(evaluation, Branch((other, pattern))) is None:
            apart = nearest.apart(pattern, other, words)
            text = f"{met} {words.pattern(other)}: {apart}"
            return Failure(text, nearest.of_join(pattern, other))
    return Failure(f"{met} all of {words.conjunction(before)}")

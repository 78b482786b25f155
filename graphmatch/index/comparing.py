"""Comparing a publication's term with a constant, in the compiled loops."""

from __future__ import annotations

from typing import NamedTuple

from graphmatch.index.numbers import ASKED, NOTHING, TEXT, ZONE_SECONDS
from graphmatch.index.terms import LOCAL, Numbers
from semantic.jit import part

EQ, LT, LE, GT, GE, ASK = range(6)
"""The operators of checks; `ASK` leaves the decision to the caller."""
NO, YES, MAYBE, LEFT = 0, 1, 2, 4
"""What checks say: `MAYBE` where a comparison is not certain, `LEFT` where the caller decides. A
solution may be both."""


class Values(NamedTuple):
    """What checks compare: by term that has an id, and by term of the publication's own."""

    numbers: Numbers
    local: Numbers


@part
def compare(term: int, constant: int, op: int, values: Values) -> int:
    """Decide a comparison of a publication's term with a constant: NO, YES or MAYBE."""
    numbers = values.numbers
    kind_of = int(numbers[constant, 0])
    if kind_of == NOTHING or (kind_of == TEXT and op == EQ):
        return YES if term == constant and op == EQ else NO
    if term >= LOCAL:
        term -= LOCAL
        numbers_of = values.local
    else:
        numbers_of = numbers
    kind = int(numbers_of[term, 0])
    if kind == ASKED or kind_of == ASKED:
        return NO if kind == NOTHING else MAYBE
    if kind >> 1 != kind_of >> 1:
        return NO
    if kind == TEXT:
        return MAYBE
    error = numbers[constant, 2] + numbers_of[term, 2]
    if kind != kind_of:
        error += ZONE_SECONDS
    apart = numbers_of[term, 1] - numbers[constant, 1]
    if error > 0.0 and -error <= apart <= error:
        return MAYBE
    if op == EQ:
        true = apart == 0.0
    elif op == LT:
        true = apart < 0.0
    elif op == LE:
        true = apart <= 0.0
    elif op == GT:
        true = apart > 0.0
    else:
        true = apart >= 0.0
    return YES if true else NO

"""A skeleton by rdflib's algebra: the general way, for all of SPARQL."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from pyoxigraph import Variable
from rdflib.plugins.sparql.parserutils import CompValue

from semantic.limits import Limits
from semantic.pattern import Form
from semantic.sparql import resting
from semantic.sparql.algebra import (
    Analysis,
    operators,
    rewritable_literals,
    without_blanks,
)
from semantic.sparql.mentions import mentions
from semantic.sparql.query import QueryText, Resting, Skeleton
from semantic.sparql.slots import SlottedText
from semantic.sparql.uses import uses_of

_FORMS = {"SelectQuery": Form.SELECT, "AskQuery": Form.ASK} | {
    "ConstructQuery": Form.CONSTRUCT,
    "DescribeQuery": Form.DESCRIBE,
}


def of_algebra(
    query: CompValue,
    pieces: Sequence[str],
    plain: QueryText,
    exact: QueryText,
    values: frozenset[int],
    limits: Limits,
) -> Skeleton:
    """Return the skeleton of a query.

    Parameters
    ----------
    query
        Its algebra.
    pieces
        Its text, constants as slots.
    plain, exact, values
        As in `Skeleton`.
    limits
        `Limits.subscription_branches` bounds the branches.
    """
    analysis = Analysis(limits, _unused_prefix(pieces))
    branches = [without_blanks(b, analysis.fresh) for b in analysis.branches(query.p)]
    form = _FORMS[query.name]
    if form in (Form.CONSTRUCT, Form.DESCRIBE):
        analysis.leave_open(form.value)
    if analysis.subquery:
        mode = Resting.BOTH if analysis.aggregates else Resting.WHOLE
        condition = resting.whole_condition(analysis.groups, analysis.fresh)
    else:
        mode = Resting.PATTERN if analysis.aggregates else Resting.SOLUTIONS
        condition = resting.condition(analysis.groups, analysis.fresh)
    return Skeleton(
        form,
        _projection(query, pieces) if form is Form.SELECT else (),
        _is_distinct(query),
        tuple(branches),
        analysis.supports(),
        tuple(analysis.remainder),
        plain,
        exact,
        values,
        SlottedText(condition),
        mode,
        rewritable_literals(query),
        mentions(query),
        uses_of(query, pieces),
    )


def _projection(query: CompValue, pieces: Sequence[str]) -> tuple[Variable, ...]:
    """Return the projected variables in the order in which the query names them."""
    names = [str(variable) for variable in query.PV]
    order = {piece[1:]: -i for i, piece in reversed(list(enumerate(pieces))) if piece[0] == "?"}
    if "*" in pieces[1:3]:
        names.sort(key=lambda name: -order.get(name, 0))
    return tuple(Variable(name) for name in names)


def _is_distinct(query: CompValue) -> bool:
    modifiers = takewhile(lambda o: o.name in ("Slice", "Distinct"), operators(query.p))
    return any(operator.name == "Distinct" for operator in modifiers)


def _unused_prefix(pieces: Sequence[str]) -> str:
    prefix = "gm_"
    while any(piece.startswith("?" + prefix) for piece in pieces):
        prefix += "_"
    return prefix

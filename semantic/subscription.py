"""A subscription: a standing query with an id, and what of it an index can use.

`semantic.sparql.parse_subscription` makes one of SPARQL text. The query itself is
kept whole (`query`); beside it stands its *necessary part*: branches of triple
patterns and filters such that every solution of the query is a solution of one
of the branches. Where the necessary part is all there is (`exact`), a matcher's
solutions are the answer; otherwise `remainder` names what has to be evaluated on
the candidates, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pyoxigraph import Variable

from semantic.errors import Place, Problem, SubscriptionError, UnknownNameError
from semantic.pattern import Branch, Form, TriplePattern
from semantic.sparql.filters import filled
from semantic.sparql.query import Position, Query, put
from semantic.terms import Node, Term
from semantic.units.numbers import UnitError
from semantic.units.units import Units


@dataclass(frozen=True, slots=True)
class Subscription:
    """A standing query with an id.

    Parameters
    ----------
    id
        What matches are reported under; distinct within a matcher.
    query
        The whole query, ready to be evaluated.
    form
        SELECT, ASK, CONSTRUCT or DESCRIBE.
    projection
        The variables that solutions bind, in the order of the SELECT clause.
    distinct
        Whether equal solutions count once.
    branches
        Every solution meets all patterns and filters of at least one of these.
    supports
        Every triple pattern that a solution can rest on, optional ones too; ``None`` where a
        path has steps that are no patterns.
    remainder
        What the branches leave open, one entry a reason (``"OPTIONAL"``,
        ``"FILTER REGEX"``); empty when the one branch is the whole query.
    comment
        What the subscriber says about it, for people.
    """

    id: str
    query: Query
    form: Form
    projection: tuple[Variable, ...]
    distinct: bool
    branches: tuple[Branch, ...]
    supports: tuple[TriplePattern, ...] | None
    remainder: tuple[str, ...] = ()
    comment: str = ""

    @property
    def exact(self) -> bool:
        """Whether the solutions of the one branch are the solutions of the query."""
        return not self.remainder

    @classmethod
    def of(cls, id: str, query: Query, comment: str = "") -> Subscription:
        """Make the subscription of a query: its constants are put into its skeleton."""
        skeleton, constants = query.skeleton, query.constants
        supports = skeleton.support_places
        remainder = dict.fromkeys(skeleton.remainder)
        branches = []
        for branch, places in zip(skeleton.branches, skeleton.pattern_places, strict=True):
            filters = []
            for filter_ in branch.filters:
                whole = filled(filter_, constants)
                if whole is not None:
                    filters.append(whole)
                else:
                    remainder[f"FILTER {filter_.word}"] = None
            branches.append(Branch(_filled(places, constants), tuple(filters)))
        return cls(
            id,
            query,
            skeleton.form,
            skeleton.projection,
            skeleton.distinct,
            tuple(branches),
            None if supports is None else _filled(supports, constants),
            tuple(remainder),
            comment,
        )

    def rewritten(self, root: Callable[[Term], Term], units: Units | None = None) -> Subscription:
        """Return the subscription as an ontology reads it: roots put in, in base units.

        Parameters
        ----------
        root
            Gives each constant its root.
        units
            What is known of units; without it, quantities stay as they are.

        Raises
        ------
        SubscriptionError
            When a unit is unknown, or incompatible with its attribute's; when a class is named
            that is unknown.
        """
        try:
            query = self.query.rewritten(root, units)
        except UnitError as error:
            raise SubscriptionError(Problem(error.what, Place(self.id), error.remedy)) from error
        except UnknownNameError as error:
            told = replace(error.problem, where=Place(self.id))
            raise SubscriptionError(told) from error
        return Subscription.of(self.id, query, self.comment)


def _filled(
    patterns: Iterable[tuple[Position, ...]], constants: Sequence[Term]
) -> tuple[TriplePattern, ...]:
    return tuple(TriplePattern(*(_node(place, constants) for place in p)) for p in patterns)


def _node(place: Position, constants: Sequence[Term]) -> Node:
    node = put(place, constants)
    assert node is not None
    return node

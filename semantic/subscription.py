"""A subscription: a standing query with an id, and what of it an index can use.

`semantic.sparql.parse_subscription` makes one of SPARQL text. The query itself is
kept whole (`query`); beside it stands its *necessary part*: branches of triple
patterns and filters such that every solution of the query is a solution of one
of the branches. Where the necessary part is all there is (`exact`), a matcher's
solutions are the answer; otherwise `remainder` names what has to be evaluated on
the candidates, and why.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import Variable

from semantic.pattern import Branch, Form, TriplePattern
from semantic.sparql.query import Query


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

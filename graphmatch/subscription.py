"""A subscription: a standing query with an id, and its necessary part for an index.

`SubscriptionParser` parses SPARQL text with the compiled core. A subscription keeps the whole query
(`query`) and its *necessary part*: branches of triple patterns and filters. Every solution of the
query is a solution of one of the branches. If the necessary part is the whole query (`exact`), a
matcher's solutions are final. Otherwise `remainder` names the parts to evaluate on the candidates,
with reasons.

The engine needs only texts. This module serves code that inspects queries: published algorithms,
explanations, mapping functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pyoxigraph import Variable

from graphmatch import _native
from semantic.attributes.constraints import attribute_query
from semantic.branch import (
    AnyOf,
    Branch,
    Comparison,
    Filter,
    Folding,
    QueryForm,
    TaxonomyOperator,
    TaxonomyTest,
    TermPart,
    TextOperator,
    TextTest,
    TriplePattern,
    Unequal,
)
from semantic.errors import Place, Problem, SubscriptionError, UnknownNameError
from semantic.files import plain
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.terms import SURROGATE_REMEDY, Term
from semantic.units.quantities import UnitError
from semantic.units.units import Units
from semantic.values import ComparisonOperator
from semantic.vocabulary import PREFIXES

Query: TypeAlias = _native.Query

_PROLOGUE = re.compile(
    r"(?:\s+|#[^\n]*|PREFIX\s+[^\s:<>]*:\s*<[^>]*>|BASE\s*<[^>]*>|VERSION\s+[\"'][^\"']*[\"'])*+",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d]\w*|\S")
_BEGINNINGS = frozenset({"SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "PREFIX", "BASE", "VERSION"})
_UNREADABLE = ("not SPARQL: ", "the prefix ")
"""Beginnings of core messages that a wrong first word may cause."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A standing query with an id.

    Parameters
    ----------
    id
        Unique id within a matcher; matches refer to it.
    query
        The whole query.
    form
        SELECT, ASK, CONSTRUCT or DESCRIBE.
    projection
        The variables that solutions bind, in the order of the SELECT clause.
    distinct
        Whether duplicate solutions are removed.
    branches
        Every solution satisfies all patterns and filters of at least one of these.
    supports
        Every triple pattern that a solution can use, including optional ones, each with its own
        variables; for a path, any triple with one of its properties.
    remainder
        Parts that the branches leave open, one entry per reason (``"OPTIONAL"``,
        ``"FILTER REGEX"``); empty if the only branch is the whole query.
    comment
        The subscriber's comment, for people.
    """

    id: str
    query: Query
    form: QueryForm
    projection: tuple[Variable, ...]
    distinct: bool
    branches: tuple[Branch, ...]
    supports: tuple[TriplePattern, ...]
    remainder: tuple[str, ...] = ()
    comment: str = ""

    @property
    def exact(self) -> bool:
        """Whether the solutions of the only branch are the solutions of the query."""
        return not self.remainder

    @classmethod
    def of(cls, id: str, query: Query, comment: str = "") -> Subscription:
        """Create a subscription from a query that the core has parsed."""
        branches, supports, remainder = query.view()
        return cls(
            id,
            query,
            QueryForm(query.form),
            tuple(query.projection()),
            query.distinct,
            tuple(branch_of(*branch) for branch in branches),
            tuple(TriplePattern(*nodes) for nodes in supports),
            tuple(remainder),
            comment,
        )

    def rewritten(self, root: Callable[[Term], Term], units: Units | None = None) -> Subscription:
        """Return the subscription with root terms and converted quantities.

        Parameters
        ----------
        root
            Returns the root of a constant.
        units
            The ontology's units; without them, quantities are unchanged.

        Raises
        ------
        SubscriptionError
            If a unit is unknown or incompatible with its attribute, or a class name is unknown.
        """
        query = rewritten_query(self.id, self.query, root, units)
        return Subscription.of(self.id, query, self.comment)


def rewritten(query: Query, root: Callable[[Term], Term], units: Units | None = None) -> Query:
    """Return a query with its constants as root terms, and its quantities converted.

    Raises
    ------
    UnitError
        If a unit of the query is unknown or incompatible with its attribute.
    UnknownNameError
        If it names an unknown class.
    """
    terms: list[Term] = [root(term) if replaced else term for term, replaced in query.constants()]
    if units is not None and units.concern(terms):
        terms = units.constants(terms, query.measurable())
    return query.with_constants(terms)


def rewritten_query(
    id: str, query: Query, root: Callable[[Term], Term], units: Units | None
) -> Query:
    """Return the query of a subscription, `rewritten`.

    Raises
    ------
    SubscriptionError
        If a unit is unknown or incompatible with its attribute, or a class name is unknown.
    """
    try:
        return rewritten(query, root, units)
    except UnitError as error:
        raise SubscriptionError(Problem(error.what, Place(id), error.remedy)) from error
    except UnknownNameError as error:
        raise SubscriptionError(replace(error.problem, where=Place(id))) from error


def branch_of(patterns: Iterable[Sequence[Any]], filters: Iterable[Sequence[Any]]) -> Branch:
    """Convert the core's patterns and filters to a branch: see `_native.Query.view`."""
    return Branch(
        tuple(TriplePattern(*nodes) for nodes in patterns),
        tuple(_filter(*made) for made in filters),
    )


def _filter(kind: str, variable: Variable, *parts: Any) -> Filter:
    """Convert a filter of the core: see `_native.Query.view`."""
    match kind:
        case "compare":
            operator, constant = parts
            if operator == "!=":
                return Unequal(variable, constant)
            return Comparison(variable, ComparisonOperator(operator), constant)
        case "text":
            operator, argument, view, folding = parts
            test = TextOperator(operator), argument, TermPart(view), Folding(folding)
            return TextTest(variable, *test)
        case "taxonomy":
            operator, concept = parts
            return TaxonomyTest(variable, TaxonomyOperator(operator), concept)
        case "any":
            word, tests = parts
            made = (_filter(*test) for test in tests)
            return AnyOf(variable, tuple(t for t in made if not isinstance(t, AnyOf)), word)
    raise ValueError(f"no filter: {kind}")


class SubscriptionParser:
    """Parser of subscriptions in SPARQL.

    Cost: about 30 µs per subscription of a few patterns.

    Parameters
    ----------
    prefixes
        The prefixes that need no declaration.
    limits
        Limits on a subscription.
    operators
        The operators that queries may call: IRI, and whether it has an index.

    Examples
    --------
    >>> parser = SubscriptionParser()
    >>> query = "SELECT ?item { ?item dcterms:subject <http://e/Climate> } ORDER BY ?item"
    >>> subscription = parser.parse("alice/climate", query)
    >>> print(subscription.branches[0].patterns[0])
    ?item dcterms:subject <http://e/Climate>
    >>> subscription.remainder
    ('ORDER BY',)
    """

    def __init__(
        self,
        prefixes: Mapping[str, str] = PREFIXES,
        limits: Limits = DEFAULT_LIMITS,
        operators: Sequence[tuple[str, bool]] = (),
    ) -> None:
        self._core = _native.Parser(list(prefixes.items()), limits, list(operators))
        self._limits = limits

    def query(self, id: str, text: str) -> Query:
        """Parse the SPARQL text of a subscription; its id is the place of errors.

        Raises
        ------
        SubscriptionError
            If the text is not SPARQL, or not a valid subscription; with line and column. Also if it
            is too long.
        """
        try:
            return self._core.parse(text)
        except _native.InvalidSubscriptionError as error:
            raise refusal(id, error, text) from None
        except UnicodeEncodeError as error:
            raise not_unicode(id, error) from None

    def parse(self, id: str, text: str, comment: str = "") -> Subscription:
        """Parse the SPARQL text of a subscription with an id; errors are those of `query`."""
        return Subscription.of(id, self.query(id, text), comment)


def not_unicode(id: str, error: UnicodeEncodeError) -> SubscriptionError:
    """Return the error to raise for an id, a text or a comment with a lone surrogate."""
    what = f"the text has a lone surrogate, {error.object[error.start]!a}"
    return SubscriptionError(Problem(what, Place(plain(id)), SURROGATE_REMEDY))


def refusal(id: str, error: _native.InvalidSubscriptionError, text: str = "") -> SubscriptionError:
    """Convert the core's error about an invalid query (`text`) to the error to raise.

    If the query does not begin with a keyword of SPARQL, that is the error, with its position.
    """
    what, remedy, line, column = error.args
    begin = _PROLOGUE.match(text)
    found = _WORD.match(text, begin.end() if begin else 0)
    if found and found[0].upper() not in _BEGINNINGS and what.startswith(_UNREADABLE):
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        what = f"not SPARQL: a query cannot begin with “{found[0][:40]}”"
        remedy = "Begin it with SELECT, ASK, CONSTRUCT or DESCRIBE, after any PREFIX and BASE."
    return SubscriptionError(Problem(what, Place(id, line, column), remedy))


class AttributeSubscription:
    """Creates subscriptions from attribute constraints, as in CTPS, DEXIN and Gryphon."""

    @staticmethod
    def of(
        id: str,
        where: Mapping[str, object],
        comment: str = "",
        parser: SubscriptionParser | None = None,
    ) -> Subscription:
        """Create a subscription from constraints.

        Parameters
        ----------
        where
            Attribute to constraint (docs/reference/attributes.md).
        parser
            Parses the resulting query; sharing one between subscriptions saves time.

        Raises
        ------
        SubscriptionError
            If an attribute or a constraint is invalid.

        Examples
        --------
        >>> subscription = AttributeSubscription.of("alice", {"price.value": {"<=": 400}})
        >>> for pattern in subscription.branches[0].patterns:
        ...     print(pattern)
        ?event attribute:price.value ?price_value
        >>> subscription.branches[0].filters[0].constant.value, subscription.exact
        ('400', True)
        """
        return (parser or SubscriptionParser()).parse(id, attribute_query(id, where), comment)

"""A subscription: a standing query with an id, and what of it an index can use.

`SubscriptionParser` makes one of SPARQL text, by the compiled core. The query itself is kept whole
(`query`); beside it stands its *necessary part*: branches of triple patterns and filters such that
every solution of the query is a solution of one of the branches. Where the necessary part is all
there is (`exact`), a matcher's solutions are the answer; otherwise `remainder` names what has to be
evaluated on the candidates, and why.

The engine takes texts as they are; this is for whoever looks at what a query asks for: published
algorithms, explanations, mapping functions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pyoxigraph import Variable

from graphmatch import _native
from semantic.attributes.constraints import attribute_query
from semantic.errors import Place, Problem, SubscriptionError, UnknownNameError
from semantic.files import plain
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.pattern import (
    AnyOf,
    Branch,
    Comparison,
    Filter,
    Folding,
    Form,
    TaxonomyOperator,
    TaxonomyTest,
    TextOperator,
    TextTest,
    TriplePattern,
    Unequal,
    View,
)
from semantic.terms import Term
from semantic.units.quantities import UnitError, in_base
from semantic.units.units import Units, Use
from semantic.values import Operator
from semantic.vocabulary import PREFIXES

Query: TypeAlias = _native.Query

_PROLOGUE = re.compile(
    r"(?:\s+|#[^\n]*|PREFIX\s+[^\s:<>]*:\s*<[^>]*>|BASE\s*<[^>]*>|VERSION\s+[\"'][^\"']*[\"'])*+",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d]\w*|\S")
_BEGINNINGS = frozenset({"SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "PREFIX", "BASE", "VERSION"})
_UNREADABLE = ("not SPARQL: ", "the prefix ")
"""How the core's messages begin that a wrong first word may lead to."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A standing query with an id.

    Parameters
    ----------
    id
        What matches are reported under; distinct within a matcher.
    query
        The whole query.
    form
        SELECT, ASK, CONSTRUCT or DESCRIBE.
    projection
        The variables that solutions bind, in the order of the SELECT clause.
    distinct
        Whether equal solutions count once.
    branches
        Every solution meets all patterns and filters of at least one of these.
    supports
        Every triple pattern that a solution can rest on, optional ones too, each with variables of
        its own; of a path any triple with one of its properties.
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
    supports: tuple[TriplePattern, ...]
    remainder: tuple[str, ...] = ()
    comment: str = ""

    @property
    def exact(self) -> bool:
        """Whether the solutions of the one branch are the solutions of the query."""
        return not self.remainder

    @classmethod
    def of(cls, id: str, query: Query, comment: str = "") -> Subscription:
        """Make the subscription of a query that was analysed."""
        branches, supports, remainder = query.view()
        return cls(
            id,
            query,
            Form(query.form),
            tuple(query.projection()),
            query.distinct,
            tuple(branch_of(*branch) for branch in branches),
            tuple(TriplePattern(*nodes) for nodes in supports),
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
        query = rewritten_query(self.id, self.query, root, units)
        return Subscription.of(self.id, query, self.comment)


def rewritten(query: Query, root: Callable[[Term], Term], units: Units | None = None) -> Query:
    """Return a query with its constants replaced by their roots, and in base units.

    Raises
    ------
    UnitError
        When a unit of the query is unknown, or incompatible with its attribute's.
    UnknownNameError
        When it names a class that is unknown.
    """
    terms: list[Term] = [root(term) if replaced else term for term, replaced in query.constants()]
    if units is not None and units.concern(terms):
        of: defaultdict[int, list[Use]] = defaultdict(list)
        converted: set[int] = set()  # Properties whose values are asked for in base units.
        for constant, attribute, siblings in query.uses():
            if (attribute, constant) in siblings:  # A unit is named.
                places = [p for p, _ in siblings if units.in_base_units(terms[attribute], terms[p])]
                converted.update((attribute, *places) if places else ())
            beside = ((terms[p], None if value is None else terms[value]) for p, value in siblings)
            of[constant].append(Use(terms[attribute], tuple(beside)))
        terms = [
            in_base(term) if number in converted else units.constant(term, of[number])
            for number, term in enumerate(terms)
        ]
    return query.with_constants(terms)


def rewritten_query(
    id: str, query: Query, root: Callable[[Term], Term], units: Units | None
) -> Query:
    """Return what `rewritten` gives for the query of a subscription.

    Raises
    ------
    SubscriptionError
        When a unit is unknown, or incompatible with its attribute's; when a class is named that is
        unknown.
    """
    try:
        return rewritten(query, root, units)
    except UnitError as error:
        raise SubscriptionError(Problem(error.what, Place(id), error.remedy)) from error
    except UnknownNameError as error:
        raise SubscriptionError(replace(error.problem, where=Place(id))) from error


def branch_of(patterns: Iterable[Sequence[Any]], filters: Iterable[Sequence[Any]]) -> Branch:
    """Return a branch of the core's patterns and filters: see `_native.Query.view`."""
    return Branch(
        tuple(TriplePattern(*nodes) for nodes in patterns),
        tuple(_filter(*made) for made in filters),
    )


def _filter(kind: str, variable: Variable, *parts: Any) -> Filter:
    """Return a filter as the core says it: see `_native.Query.view`."""
    match kind:
        case "compare":
            operator, constant = parts
            if operator == "!=":
                return Unequal(variable, constant)
            return Comparison(variable, Operator(operator), constant)
        case "text":
            operator, argument, view, folding = parts
            test = TextOperator(operator), argument, View(view), Folding(folding)
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
    """Makes subscriptions of SPARQL text.

    Cost: some 30 µs a subscription of a few patterns.

    Parameters
    ----------
    prefixes
        Those that hold without being declared.
    limits
        Bounds on a subscription.
    operators
        Those that queries may call: IRI, whether it has an index.

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
        """Return the query that a text says.

        Raises
        ------
        SubscriptionError
            When the text is not SPARQL, or cannot be a subscription; with line and column. When
            it is too long.
        """
        try:
            return self._core.parse(text)
        except _native.InvalidSubscriptionError as error:
            raise refusal(id, error, text) from None
        except UnicodeEncodeError as error:
            raise not_unicode(id, error) from None

    def parse(self, id: str, text: str, comment: str = "") -> Subscription:
        """Return the subscription that a text says; see `query`."""
        return Subscription.of(id, self.query(id, text), comment)


def not_unicode(id: str, error: UnicodeEncodeError) -> SubscriptionError:
    """Return the error of an id, a text or a comment that has half a character."""
    what = f"not Unicode: a surrogate, {error.object[error.start]!a}"
    return SubscriptionError(Problem(what, Place(plain(id)), "Write the character itself."))


def refusal(id: str, error: _native.InvalidSubscriptionError, text: str = "") -> SubscriptionError:
    """Return the error of a text that the core refuses; see first whether it begins as a query."""
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
    """A conjunction of attribute constraints: what CTPS, DEXIN and Gryphon subscribe."""

    @staticmethod
    def of(
        id: str,
        where: Mapping[str, object],
        comment: str = "",
        parser: SubscriptionParser | None = None,
    ) -> Subscription:
        """Return the subscription that some constraints are.

        Parameters
        ----------
        where
            Attribute to constraint (docs/reference/attributes.md).
        parser
            Reads the query that they are; one for many subscriptions saves time.

        Raises
        ------
        SubscriptionError
            When an attribute or a constraint means nothing.

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

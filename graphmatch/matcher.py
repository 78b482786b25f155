"""The matcher protocol: add subscriptions, and match publications against them.

The engine and every published algorithm implement this protocol, so that each can replace another,
be compared with it, and be tested against the oracle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from graphmatch.report import MatchReport
from graphmatch.subscription import Subscription
from semantic.errors import GraphMatchError, Place, Problem
from semantic.files import plain
from semantic.publication import Publication


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The features of a matcher; it rejects the others with `UnsupportedError`.

    Parameters
    ----------
    property_variables
        Variables in the predicate of a triple pattern.
    comparisons
        Filters that compare a variable with a constant.
    taxonomy
        The taxonomy operators of ``gm:``.
    text
        Filters that test a text or a language, ``!=``, and alternatives of tests of one variable.
    full_sparql
        Subscriptions that are not `Subscription.exact`.
    entailment
        Whether it applies the ontology's rules to publications itself: all of them, or only those
        of its trees (sub-properties, subclasses), depending on the algorithm.
    joins
        Patterns with several subjects, variables in several places, several patterns with one
        property. Without them a subscription is a conjunction of constraints on the attributes
        of one resource.
    terms
        Constants as objects, and equality with an IRI or a text.
    presence
        Variables as objects without further conditions.
    exact
        Whether all reported matches are true; otherwise it may report too many.
    """

    property_variables: bool = True
    comparisons: bool = True
    taxonomy: bool = True
    text: bool = True
    full_sparql: bool = False
    entailment: bool = False
    joins: bool = True
    terms: bool = True
    presence: bool = True
    exact: bool = True


class Matcher(Protocol):
    """Protocol of matchers: they store subscriptions, and match publications against them.

    Tests check every implementation against these laws:

    1. `subscribe` with an id that is taken raises `DuplicateSubscriptionError` and changes nothing.
    2. `subscribe` with unsupported features raises `UnsupportedError` and changes nothing.
    3. `unsubscribe` with an unknown id raises `UnknownSubscriptionError`. With a known id, the
       matcher then behaves as if the subscription had never existed, and the id is free again.
    4. A matcher without subscriptions matches nothing.
    5. `match` changes neither its argument nor the result of the next call: the same publication
       gives the same report, up to the order of solutions.
    6. The matches are those of docs/reference/semantics.md; a subscription appears at most
       once, in the order of subscribing. The order of solutions is undefined, unless the query
       defines it.
    7. `match_many` returns the results of `match`, one after the other.
    """

    capabilities: ClassVar[Capabilities]

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription."""

    def unsubscribe(self, id: str) -> None:
        """Remove a subscription."""

    def match(self, publication: Publication) -> MatchReport:
        """Return the matches of a publication."""

    def match_many(self, publications: Iterable[Publication]) -> Iterator[MatchReport]:
        """Yield the report of each publication, which is matched when its report is requested."""
        for publication in publications:
            yield self.match(publication)

    def __len__(self) -> int:
        """Return the number of subscriptions."""

    def __contains__(self, id: object) -> bool:
        """Return whether there is a subscription with this id."""


class DuplicateSubscriptionError(GraphMatchError):
    """A new subscription has the id of an existing one."""

    def __init__(self, id: str) -> None:
        what = "a subscription with this id already exists"
        super().__init__(Problem(what, Place(id), "Choose another id, or unsubscribe it first."))


class UnknownSubscriptionError(GraphMatchError):
    """No subscription has the id."""

    def __init__(self, id: str) -> None:
        super().__init__(Problem("no subscription has this id", Place(plain(id)), "Check the id."))


class UnsupportedError(GraphMatchError):
    """A subscription uses features that the matcher does not support."""

    def __init__(self, id: str, what: str) -> None:
        remedy = "Use the engine, which accepts all of SPARQL."
        super().__init__(Problem(f"not supported by this algorithm: {what}", Place(id), remedy))

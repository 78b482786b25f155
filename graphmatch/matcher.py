"""The matcher protocol: add subscriptions, and match publications against them.

The engine and every published algorithm implement this protocol, so that each can replace another,
be compared with it, and be tested against the oracle.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from pyoxigraph import Literal, NamedNode

from graphmatch.subscription import Subscription
from semantic.errors import GraphMatchError, Place, Problem
from semantic.files import plain
from semantic.publication import Publication
from semantic.terms import Solution, Term, Triple, compact
from semantic.vocabulary import XSD

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_LONG = 60


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
    complete
        Whether it reports all matches.
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
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Match:
    """One subscription that a publication matches.

    Parameters
    ----------
    subscription, publication
        The ids.
    solutions
        One mapping per solution of SELECT (with repetitions, as in SPARQL); one empty mapping for
        ASK; empty for CONSTRUCT and DESCRIBE.
    graph
        The result of CONSTRUCT or DESCRIBE; ``None`` for the other forms.
    """

    subscription: str
    publication: str
    solutions: tuple[Solution, ...]
    graph: tuple[Triple, ...] | None = None


class Counters(NamedTuple):
    """Counters of the work for one publication; tests assert these instead of times.

    Parameters
    ----------
    probes
        Look-ups in the index.
    gates
        Index keys that occur in the publication.
    candidates
        Subscriptions (or shared parts of several) that were checked one by one.
    joins
        Candidates that were joined; in G-ToPSS, natural joins of two binding tables.
    verified
        Solutions with a filter that was decided outside the index.
    mapped
        Mapping functions that were run.
    evaluated
        Subscriptions that were evaluated as SPARQL.
    matched
        Subscriptions that matched.
    called
        Operator calls that were made.
    recalled
        Operator calls that were not made, because an earlier result was cached.
    triples
        Stated triples of the publication; engine only.
    """

    probes: int = 0
    gates: int = 0
    candidates: int = 0
    joins: int = 0
    verified: int = 0
    mapped: int = 0
    evaluated: int = 0
    matched: int = 0
    called: int = 0
    recalled: int = 0
    triples: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """An operator call for a publication.

    Parameters
    ----------
    operator
        The operator's IRI.
    arguments
        The arguments.
    given
        The result; ``None`` if it is unknown.
    seconds
        The duration.
    why
        Why the result is unknown.
    kept
        Whether the result was cached from an earlier publication.
    """

    operator: str
    arguments: tuple[Term, ...]
    given: Term | None
    seconds: float
    why: str = ""
    kept: bool = False

    def __str__(self) -> str:
        """Return the call and its result as one line."""
        said = ", ".join(map(_short, self.arguments))
        given = f"unknown: {self.why}" if self.given is None else _short(self.given)
        took = "cached" if self.kept else f"{1000 * self.seconds:.3g} ms"
        return f"{compact(NamedNode(self.operator))}({said}) is {given}; {took}"


def _short(term: Term) -> str:
    """Write a term in about 60 characters."""
    if isinstance(term, Literal) and term.datatype in (XSD["boolean"], XSD["double"]):
        return term.value
    text = compact(term)
    return text if len(text) <= _LONG else f"{text[:_LONG]} …"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A subscription left undecided by failed calls.

    Parameters
    ----------
    subscription
        The id.
    calls
        The failed calls.
    matched
        Whether it matches nevertheless, perhaps with fewer solutions.
    """

    subscription: str
    calls: tuple[Call, ...]
    matched: bool


class Matches(Sequence[Match]):
    """Matches that are created on access; equal to any sequence of equal matches."""

    @property
    @abstractmethod
    def subscriptions(self) -> Sequence[str]:
        """The ids of the subscriptions."""

    @property
    @abstractmethod
    def numbers(self) -> NDArray[np.uint32]:
        """The numbers of the subscriptions."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        )

    def __repr__(self) -> str:
        return repr(tuple(self))


@dataclass(slots=True)
class MatchReport:
    """The matches of one publication, in the order of subscribing, with counters.

    It is iterable: ``for match in matcher.match(publication)``.

    Parameters
    ----------
    publication
        The id.
    matches
        One match per matching subscription. The engine creates them on access; `subscriptions` is
        enough for their ids.
    counters
        The counters of the work done.
    problems
        The unusable parts of the publication, and failed mapping functions.
    """

    publication: str
    matches: Sequence[Match]
    counters: Counters = field(default_factory=Counters)
    problems: tuple[Problem, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    """Undecided subscriptions, or those whose solutions may be incomplete."""
    calls: Sequence[Call] = field(default=(), repr=False, compare=False)
    """The operator calls that were made or cached, in order."""
    origin: Callable[[], Publication | None] | None = field(default=None, repr=False, compare=False)
    """Returns the publication again."""

    def read(self) -> Publication:
        """Return the publication with the stated triples.

        Raises
        ------
        LookupError
            If nothing matched, or the matcher keeps no publications.
        """
        found = None if self.origin is None else self.origin()
        if found is None:
            raise LookupError(f"the publication {self.publication} is not available")
        return found

    def __iter__(self) -> Iterator[Match]:
        """Yield the matches."""
        return iter(self.matches)

    def __len__(self) -> int:
        """Return the number of matching subscriptions."""
        return len(self.matches)

    @property
    def subscriptions(self) -> Sequence[str]:
        """The ids of the subscriptions that matched."""
        if isinstance(self.matches, Matches):
            return self.matches.subscriptions
        return tuple(match.subscription for match in self.matches)

    @property
    def numbers(self) -> NDArray[np.uint32]:
        """The numbers of the matching subscriptions, stable as long as these exist.

        If the matcher has no such numbers, these are their places in this report.
        """
        return self.matches.numbers if isinstance(self.matches, Matches) else _places(self)


def _places(report: MatchReport) -> NDArray[np.uint32]:
    import numpy as np

    return np.arange(len(report), dtype=np.uint32)


class Matcher(Protocol):
    """Protocol of matchers: they store subscriptions, and match publications against them.

    Tests check every implementation against these laws:

    1. `subscribe` with an id that is taken raises `DuplicateError` and changes nothing.
    2. `subscribe` with unsupported features raises `UnsupportedError` and changes nothing.
    3. `unsubscribe` with an unknown id raises `UnknownError`. Afterwards the matcher behaves as if
       the subscription had never existed; the id is free again.
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
        """Match several publications, lazily."""
        for publication in publications:
            yield self.match(publication)

    def __len__(self) -> int:
        """Return the number of subscriptions."""

    def __contains__(self, id: object) -> bool:
        """Whether there is a subscription with this id."""


class DuplicateError(GraphMatchError):
    """The id of a new subscription is taken."""

    def __init__(self, id: str) -> None:
        what = "a subscription with this id already exists"
        super().__init__(Problem(what, Place(id), "Choose another id, or unsubscribe it first."))


class UnknownError(GraphMatchError):
    """The id belongs to no subscription."""

    def __init__(self, id: str) -> None:
        super().__init__(Problem("no subscription has this id", Place(plain(id)), "Check the id."))


class UnsupportedError(GraphMatchError):
    """The matcher does not support a subscription."""

    def __init__(self, id: str, what: str) -> None:
        remedy = "Use the engine, which accepts all of SPARQL."
        super().__init__(Problem(f"not supported by this algorithm: {what}", Place(id), remedy))

"""What a matcher is: subscriptions go in, publications are matched against them.

The engine and every published algorithm keep this protocol, so that each can be
put in another's place, compared with it, and held against the oracle.
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
    """What a matcher can express; what it cannot, it refuses with `UnsupportedError`.

    Parameters
    ----------
    property_variables
        Variables in the property's place of a triple pattern.
    comparisons
        Filters that compare a variable with a constant.
    taxonomy
        The taxonomy operators of ``gm:``.
    text
        Filters that test a text or a language, ``!=``, and alternatives of tests of one variable.
    full_sparql
        Subscriptions that are not `Subscription.exact`.
    entailment
        Whether it applies the ontology's rules to publications itself: all of them, or those of
        its trees (sub-properties, subclasses) if the algorithm knows no others.
    joins
        Patterns with several subjects, variables in several places, several patterns with one
        property. Without them a subscription is a conjunction of constraints on the attributes
        of one resource.
    terms
        Constants in an object's place, and equality with an IRI or a text.
    presence
        Variables in an object's place of which no more is asked.
    exact
        Whether it reports what matches, and nothing else; one that is not may report too many.
    complete
        Whether it reports all that matches.
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
        Their ids.
    solutions
        One mapping a solution of SELECT (with repetitions, as SPARQL has them); one empty
        mapping for ASK; none for CONSTRUCT and DESCRIBE.
    graph
        What CONSTRUCT or DESCRIBE gives; ``None`` for the other forms.
    """

    subscription: str
    publication: str
    solutions: tuple[Solution, ...]
    graph: tuple[Triple, ...] | None = None


class Counters(NamedTuple):
    """What a matcher did for one publication; tests assert these instead of times.

    Parameters
    ----------
    probes
        Look-ups in the index.
    gates
        Keys of the index that the publication has.
    candidates
        Subscriptions (or what several share) that were looked at one by one.
    joins
        Those of them that were joined; in G-ToPSS, natural joins of two binding tables.
    verified
        Solutions of which a filter was decided outside the index.
    mapped
        Mapping functions that were run.
    evaluated
        Subscriptions that were evaluated as SPARQL.
    matched
        Subscriptions that matched.
    called
        Calls of operators that were made.
    recalled
        Those that were not made, as an earlier publication's were kept.
    triples
        Triples that the publication states; of the engine only.
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
    """A call of an operator that was made for a publication.

    Parameters
    ----------
    operator
        Its IRI.
    arguments
        What it was called with.
    given
        What it gave; ``None`` when that is unknown.
    seconds
        What it took.
    why
        Why it is unknown.
    kept
        Whether it was made for an earlier publication.
    """

    operator: str
    arguments: tuple[Term, ...]
    given: Term | None
    seconds: float
    why: str = ""
    kept: bool = False

    def __str__(self) -> str:
        """Return the call and what it gave as one line."""
        said = ", ".join(map(_short, self.arguments))
        given = f"unknown: {self.why}" if self.given is None else _short(self.given)
        took = "known from before" if self.kept else f"{1000 * self.seconds:.3g} ms"
        return f"{compact(NamedNode(self.operator))}({said}) is {given}; {took}"


def _short(term: Term) -> str:
    """Write a term in some 60 characters."""
    if isinstance(term, Literal) and term.datatype in (XSD["boolean"], XSD["double"]):
        return term.value
    text = compact(term)
    return text if len(text) <= _LONG else f"{text[:_LONG]} …"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A subscription that calls left open which gave nothing.

    Parameters
    ----------
    subscription
        Its id.
    calls
        What is unknown.
    matched
        Whether it is among the matches nevertheless, perhaps with fewer solutions.
    """

    subscription: str
    calls: tuple[Call, ...]
    matched: bool


class Matches(Sequence[Match]):
    """Matches that are made when they are looked at; equal to any sequence of equal ones."""

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
    """The matches of one publication, in the order of subscribing, and what they took.

    It is iterable: ``for match in matcher.match(publication)``.

    Parameters
    ----------
    publication
        Its id.
    matches
        One for each subscription that it matches. Those of the engine are made when they are looked
        at; whoever wants no solutions asks for `subscriptions`.
    counters
        What matching did.
    problems
        What of the publication could not be used, and mapping functions that failed.
    """

    publication: str
    matches: Sequence[Match]
    counters: Counters = field(default_factory=Counters)
    problems: tuple[Problem, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    """Subscriptions that are neither reported nor refuted, or not with all solutions."""
    calls: Sequence[Call] = field(default=(), repr=False, compare=False)
    """The calls of operators that were made or known from before, in their order."""
    origin: Callable[[], Publication | None] | None = field(default=None, repr=False, compare=False)
    """Gives the publication again."""

    def read(self) -> Publication:
        """Return the publication, with the triples that were stated.

        Raises
        ------
        LookupError
            If nothing matched, or the matcher keeps no publications.
        """
        found = None if self.origin is None else self.origin()
        if found is None:
            raise LookupError(f"the publication {self.publication} is not kept")
        return found

    def __iter__(self) -> Iterator[Match]:
        """Yield the matches."""
        return iter(self.matches)

    def __len__(self) -> int:
        """Return how many subscriptions matched."""
        return len(self.matches)

    @property
    def subscriptions(self) -> Sequence[str]:
        """The ids of the subscriptions that matched."""
        if isinstance(self.matches, Matches):
            return self.matches.subscriptions
        return tuple(match.subscription for match in self.matches)

    @property
    def numbers(self) -> NDArray[np.uint32]:
        """The numbers of the subscriptions that matched: equal for equal ones, while they stand.

        Of a matcher that numbers none, their places in this report.
        """
        return self.matches.numbers if isinstance(self.matches, Matches) else _places(self)


def _places(report: MatchReport) -> NDArray[np.uint32]:
    import numpy as np

    return np.arange(len(report), dtype=np.uint32)


class Matcher(Protocol):
    """Takes subscriptions in and says which of them a publication matches.

    The laws, which tests hold every implementation to:

    1. `subscribe` with an id that is taken raises `DuplicateError` and changes nothing.
    2. `subscribe` with what the matcher cannot express raises `UnsupportedError`, likewise.
    3. `unsubscribe` with an unknown id raises `UnknownError`. After it the matcher behaves as if
       the subscription had never been there; the id is free again.
    4. A matcher without subscriptions matches nothing.
    5. `match` changes neither its argument nor what the next call returns: the same publication
       gives the same report, up to the order of solutions.
    6. The matches are those of docs/reference/semantics.md; a subscription appears at most
       once, in the order of subscribing. The order of solutions is not fixed, unless the query
       fixes it.
    7. `match_many` gives what `match` gives, one after the other.
    """

    capabilities: ClassVar[Capabilities]

    def subscribe(self, subscription: Subscription) -> None:
        """Take a subscription in."""

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription."""

    def match(self, publication: Publication) -> MatchReport:
        """Say which subscriptions a publication matches, and how."""

    def match_many(self, publications: Iterable[Publication]) -> Iterator[MatchReport]:
        """Match several publications, lazily."""
        for publication in publications:
            yield self.match(publication)

    def __len__(self) -> int:
        """Return how many subscriptions there are."""

    def __contains__(self, id: object) -> bool:
        """Whether there is a subscription with this id."""


class DuplicateError(GraphMatchError):
    """A subscription whose id is taken."""

    def __init__(self, id: str) -> None:
        what = "this id has a subscription already"
        super().__init__(Problem(what, Place(id), "Choose another id, or unsubscribe it first."))


class UnknownError(GraphMatchError):
    """An id that no subscription has."""

    def __init__(self, id: str) -> None:
        super().__init__(Problem("no subscription has this id", Place(plain(id)), "Check the id."))


class UnsupportedError(GraphMatchError):
    """A subscription that a matcher cannot express."""

    def __init__(self, id: str, what: str) -> None:
        remedy = "Give it to the engine, which accepts all of SPARQL."
        super().__init__(Problem(f"not expressible here: {what}", Place(id), remedy))

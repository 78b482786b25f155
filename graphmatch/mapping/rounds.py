"""Mapping functions in turn with the rules, until nothing is new: one attempt at it.

In each round all functions whose turn it is see the same triples. What they give is
added, the rules are applied, and the next round looks only at what is new to find
whose turn it is. As long as a function's answer depends on nothing but the triples
that its patterns ask for, the result is that of running all of them in every round.

An attempt ends with the first round in which a function fails. `MappingFunctions.run`
then makes another one, without the functions to blame.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from pyoxigraph import BlankNode

from graphmatch import _native
from graphmatch.mapping.blank_nodes import named_by_content
from graphmatch.subscription import Query
from semantic.limits import Limits
from semantic.ontology.entailment import Derived
from semantic.publication import Publication
from semantic.terms import Mention, Term, Triple

_LOOP = (
    "The publication goes on without it: see that it does not read what follows from what it adds"
    ", or raise the limit."
)
_NARROW = "The publication goes on without it: narrow its pattern, or raise the limit."

Follow: TypeAlias = Callable[[Sequence[Triple]], Derived]
"""Returns triples, roots put in, and all that follows from them by rules."""


class Evaluator(Protocol):
    """What evaluates queries over an ontology and a publication: `graphmatch.knowledge`."""

    def evaluation(self, publication: Publication, now: datetime) -> _native.Evaluation:
        """Prepare questions about a publication."""

    def meets(self, pattern: Iterable[Term | None]) -> bool:
        """Whether a triple that follows from the ontology has these terms, ``None`` for any."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A mapping function as it is asked: roots put in.

    Parameters
    ----------
    query
        The CONSTRUCT query.
    reads
        What its solutions can rest on.
    mentions
        What its answer depends on.
    """

    query: Query
    reads: frozenset[Mention]
    mentions: frozenset[Mention]


@dataclass(frozen=True, slots=True)
class Enriching:
    """A publication on its way, and what it takes to go on with it.

    Parameters
    ----------
    rooted
        The publication, roots put in.
    closed
        Its triples and what follows from them by rules.
    follow
        Applies the rules.
    evaluator
        Evaluates queries.
    now
        What ``NOW()`` gives.
    """

    rooted: Publication
    closed: Derived
    follow: Follow
    evaluator: Evaluator
    now: datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """A function that cannot go on, and why."""

    function: int
    what: str
    remedy: str


class Triggers:
    """Which functions a triple concerns; functions are numbers here.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> price, dear = NamedNode("urn:price"), NamedNode("urn:Dear")
    >>> triggers = Triggers([frozenset({(price, None)}), frozenset({(None, None)})])
    >>> sorted(triggers.of((NamedNode("urn:x"), price, dear)))
    [0, 1]
    """

    def __init__(self, mentions: Sequence[Set[Mention]]) -> None:
        self._functions: defaultdict[Mention, set[int]] = defaultdict(set)
        for number, several in enumerate(mentions):
            for mention in several:
                self._functions[mention].add(number)
        self._properties = {property_ for property_, _ in self._functions}
        self._always = self._functions.get((None, None), set())

    @property
    def always(self) -> bool:
        """Whether every triple concerns some function."""
        return bool(self._always)

    def properties(self) -> Iterator[Term]:
        """Yield the properties whose triples may concern a function."""
        return (property_ for property_ in self._properties if property_ is not None)

    def any_of(self, triples: Iterable[Triple]) -> bool:
        """Whether any of the triples may concern any function."""
        return bool(self._always) or not self._properties.isdisjoint(t[1] for t in triples)

    def of(self, triple: Triple) -> set[int]:
        """Return the functions that a triple concerns."""
        _, property_, object_ = triple
        if property_ not in self._properties:
            return self._always
        functions = self._functions
        return self._always.union(
            functions.get((property_, None), ()), functions.get((property_, object_), ())
        )


class Attempt:
    """One way through the rounds.

    Parameters
    ----------
    asked
        The functions, in their order.
    reads, mentions
        Which functions can rest on a triple, and which depend on it.
    root
        Puts roots into what functions give.
    limits
        ``mapping_rounds`` and ``mapping_triples``.
    """

    def __init__(
        self,
        asked: Sequence[Asked],
        reads: Triggers,
        mentions: Triggers,
        root: Callable[[Term], Term],
        limits: Limits,
    ) -> None:
        self._asked = asked
        self._reads = reads
        self._mentions = mentions
        self._root = root
        self._limits = limits
        self.mapped: dict[Triple, int] = {}
        """What functions gave, each triple with the first function that gave it."""
        self.runs = 0
        """How many times a function was run."""
        self._given: Counter[int] = Counter()
        self._pending: set[int] = set()
        self._awake: set[int] = set()
        self._fed: defaultdict[int, set[int]] = defaultdict(set)
        """Functions to those for which they made something new to look at."""

    def go(self, enriching: Enriching, dropped: Set[int]) -> Derived | list[Failure]:
        """Return the closure under rules and functions, or who failed.

        Parameters
        ----------
        dropped
            The functions to be left out.
        """
        closed = enriching.closed
        fresh: Iterable[Triple] = closed
        rounds = 0
        while due := self._due(fresh, closed, dropped):
            new: dict[Triple, int] = {}
            failures: list[Failure] = []
            so_far = _so_far(enriching.rooted, closed)
            asked = enriching.evaluator.evaluation(so_far, enriching.now)
            for function in due:
                answer = self._answer(function, closed, asked, enriching.evaluator)
                if isinstance(answer, Failure):
                    failures.append(answer)
                    continue
                for triple in answer:
                    new.setdefault(triple, function)
            if failures:
                return failures
            if not new:
                break
            if rounds == self._limits.mapping_rounds:
                return list(self._endless(set(new.values())))
            rounds += 1
            self.mapped |= new
            before = closed
            closed = enriching.follow((*enriching.rooted.triples, *self.mapped))
            fresh = [triple for triple in closed if triple not in before]
        return closed

    def _due(self, fresh: Iterable[Triple], closed: Derived, dropped: Set[int]) -> list[int]:
        """Return the functions whose turn it is, now that there are new triples."""
        for triple in fresh:
            concerned = self._mentions.of(triple)
            if not concerned:
                continue
            self._pending |= concerned
            self._awake |= self._reads.of(triple)
            if self.mapped and (source := self._source(triple, closed)) is not None:
                self._fed[source] |= concerned
        due = (self._pending & self._awake) - dropped
        self._pending -= due
        return sorted(due)

    def _source(self, triple: Triple, closed: Derived) -> int | None:
        """Return the function by whose triple rules led to this one."""
        seen = set()
        current: Triple | None = triple
        while current is not None and current not in seen:
            if current in self.mapped:
                return self.mapped[current]
            seen.add(current)
            current = closed.get(current)
        return None

    def _answer(
        self, function: int, closed: Derived, asked: _native.Evaluation, evaluator: Evaluator
    ) -> list[Triple] | Failure:
        """Run a function; return what is new in its answer."""
        self.runs += 1
        limit = self._limits.mapping_triples
        most = limit + len(closed)
        try:
            found = asked.answer(self._asked[function].query, resting=True, most=most + 1)
        except _native.EvaluationFailedError as error:
            remedy = "The publication goes on without it: correct the query."
            return Failure(function, f"it cannot be evaluated: {error}", remedy)
        given: Sequence[Triple] = () if found is None else found[1] or ()
        longest = max((len(str(triple[2])) for triple in given), default=0)
        if longest > self._limits.mapping_characters:
            return Failure(function, _too_long(self._limits.mapping_characters), _NARROW)
        if len(given) > most:
            return Failure(function, _too_much(limit), _NARROW)
        if any(isinstance(term, BlankNode) for triple in given for term in triple):
            given = named_by_content(given, _is_new(closed, evaluator))
        rooted = dict.fromkeys((self._root(s), self._root(p), self._root(o)) for s, p, o in given)
        new = [triple for triple in rooted if triple not in closed]
        self._given[function] += len(new)
        if self._given[function] > limit:
            return Failure(function, _too_much(limit), _NARROW)
        return new

    def _endless(self, producing: Set[int]) -> Iterator[Failure]:
        """Yield a failure for each function that keeps itself going; for all if none is seen to."""
        limit = self._limits.mapping_rounds
        what = f"it still gives new triples after `mapping_rounds` ({limit}) rounds"
        looping = {function for function in producing if self._feeds(function, function)}
        for function in sorted(looping or producing):
            yield Failure(function, what, _LOOP)

    def _feeds(self, function: int, other: int) -> bool:
        """Whether one function fed another, by way of any number of them."""
        agenda = [function]
        seen: set[int] = set()
        for current in agenda:
            agenda += self._fed[current] - seen
            seen |= self._fed[current]
        return other in seen


def _too_long(limit: int) -> str:
    return f"it gives a text of more than `mapping_characters` ({limit})"


def _too_much(limit: int) -> str:
    return f"it gives more than `mapping_triples` ({limit})"


def _so_far(rooted: Publication, closed: Derived) -> Publication:
    stated = frozenset(rooted.triples) - rooted.derived
    derived = frozenset(triple for triple in closed if triple not in stated)
    return rooted.with_triples(tuple(closed), derived)


def _is_new(closed: Derived, evaluator: Evaluator) -> Callable[[BlankNode], bool]:
    """Return a test for blank nodes that neither the publication nor the ontology has."""
    known = {term for triple in closed for term in triple if isinstance(term, BlankNode)}

    def is_new(node: BlankNode) -> bool:
        if node in known:
            return False
        return not (evaluator.meets((node, None, None)) or evaluator.meets((None, None, node)))

    return is_new

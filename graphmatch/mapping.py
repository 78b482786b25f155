"""Mapping functions: SPARQL CONSTRUCT queries that add derived triples to a publication.

They are S-ToPSS's third method to relate publications and subscriptions, after synonyms and
taxonomies. Such a function computes with a publication's values: for example, experience is the
current year minus the graduation year. Here a function is a CONSTRUCT query over the same data as a
subscription, and its results become part of the publication. Functions may feed each other, also
through rules. `MappingFunctions.run` repeats rounds until no triple is new.

A function runs only if the publication has a triple that its solutions can use, and again only
after a new triple that its patterns ask for. A publication without such a triple costs one look-up
per triple, regardless of the number of functions. A run costs as much as its query, and each round
loads the publication once.

In each round, all due functions see the same triples. Their results are added, the rules apply, and
the next round checks only the new triples for functions that are due. If the results of a function
depend only on triples that its patterns ask for, the outcome equals that of running all functions
in every round.

A template with blank nodes creates new nodes in each run. They are named by their neighbours, so
that a repeated derivation gives the same nodes (`named_by_content`).

Source: M. Petrovic, I. Burcea, H.-A. Jacobsen, "S-ToPSS: Semantic Toronto
Publish/Subscribe System" (VLDB 2003), section 2. Functions as queries, and functions that feed each
other through rules, are additions of this project. A. Hogan, "Canonical Forms for Isomorphic
and Equivalent RDF Graphs" (ACM Transactions on the Web 11(4), 2017), section 4.1, for its hashes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple, Protocol

from pyoxigraph import BlankNode, NamedNode

from graphmatch import _native
from graphmatch.subscription import Query, SubscriptionParser, rewritten
from semantic.branch import QueryForm
from semantic.clock import utc_now
from semantic.errors import (
    OnProblem,
    OntologyError,
    Place,
    Problem,
    Severity,
    SubscriptionError,
    warn_problem,
)
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.mapping import MappingFunction
from semantic.publication import Publication
from semantic.terms import Derived, Mention, Node, Term, Triple
from semantic.units.quantities import UnitError
from semantic.units.units import Units
from semantic.vocabulary import TYPE

_LOOP = (
    "The publication is matched without it. Change it so that it does not read its own results"
    ", or raise the limit."
)
_NARROW = "The publication is matched without it. Narrow its pattern, or raise the limit."


@dataclass(frozen=True, slots=True)
class AnalysedFunction:
    """A mapping function with its parsed query, the triples that it reads, and those it adds.

    Parameters
    ----------
    function
        The name and the text.
    query
        The parsed text.
    reads
        The triples that its solutions can use: a property, or ``rdf:type`` and a class; in the
        order of the query. ``None`` means any.
    adds
        The triples of its template, in the same form.
    """

    function: MappingFunction
    query: Query
    reads: tuple[Mention, ...]
    adds: tuple[Mention, ...]

    @classmethod
    def of(cls, function: MappingFunction, parser: SubscriptionParser) -> AnalysedFunction:
        """Parse a mapping function, and find the triples that it reads and adds.

        Raises
        ------
        OntologyError
            If its text is not a query, not a valid subscription, or not a CONSTRUCT; with line and
            column if known.

        Examples
        --------
        >>> text = "CONSTRUCT { ?x a <urn:Cheap> } { ?x <urn:price> ?p FILTER(?p < 100) }"
        >>> analysed = AnalysedFunction.of(MappingFunction("cheap", text), SubscriptionParser())
        >>> [property.value for property, _ in analysed.reads]
        ['urn:price']
        >>> [class_.value for _, class_ in analysed.adds]
        ['urn:Cheap']
        """
        place = function.place
        try:
            read = parser.parse(function.name, function.text)
        except SubscriptionError as error:
            what, where, remedy = error.problem.what, error.problem.where, error.problem.remedy
            placed = Place(place.source, where.line, where.column)
            raise OntologyError(Problem(what, placed, remedy)) from error
        if read.form is not QueryForm.CONSTRUCT:
            what = f"a mapping function is a CONSTRUCT query, not {read.form.value}"
            remedy = "Write CONSTRUCT { what it adds } WHERE { what it reads }."
            raise OntologyError(Problem(what, place, remedy))
        reads = dict.fromkeys(_mention(p.predicate, p.object) for p in read.supports)
        adds = dict.fromkeys(_mention(p, o) for _, p, o in read.query.template())
        return cls(function, read.query, tuple(reads), tuple(sorted(adds, key=str)))


def _mention(property_: Node, object_: Node) -> Mention:
    """Return a pattern's property, and its class if it has one; ``None`` means any."""
    if not isinstance(property_, NamedNode):
        return None, None
    if property_ == TYPE and isinstance(object_, NamedNode):
        return property_, object_
    return property_, None


@dataclass(frozen=True, slots=True)
class MappingResult:
    """The results of the mapping functions for a publication.

    Parameters
    ----------
    closed
        The closure of the publication under rules and functions. Triples from functions have no
        origin.
    mapped
        The triples from functions, each with the name of the first function that returned it.
    runs
        The number of function runs, including those that failed in the end.
    """

    closed: Derived
    mapped: Mapping[Triple, str] = field(default_factory=dict)
    runs: int = 0


class MappingFunctions:
    """Applies the mapping functions of an ontology to publications (`run`).

    Parameters
    ----------
    functions
        The functions in file order. If two return the same triple, the first is named.
    root
        Returns the root term of a term.
    limits
        ``mapping_rounds`` and ``mapping_triples`` apply to each publication.
    units
        Converts the quantities in queries to base units, like those of publications.

    Raises
    ------
    OntologyError
        If a function is invalid (see `AnalysedFunction.of`), or a query has a unit that is unknown
        or wrong for its attribute.

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> from graphmatch.enrichment import Enricher
    >>> from semantic.ontology.ontology import Ontology
    >>> text = '''CONSTRUCT { ?x <urn:experience> ?years }
    ... { ?x <urn:graduated> ?year BIND(YEAR(NOW()) - ?year AS ?years) }'''
    >>> function = MappingFunction("experience", text)
    >>> x = NamedNode("urn:x")
    >>> rooted = Publication.of("p", [(x, NamedNode("urn:graduated"), Literal(2003))])
    >>> enricher, now = Enricher(Ontology()), datetime(2026, 5, 1)
    >>> mapped = MappingFunctions([function], enricher.root).run(rooted, enricher, now)
    >>> [(triple[2].value, name) for triple, name in mapped.mapped.items()]
    [('23', 'experience')]
    """

    def __init__(
        self,
        functions: Iterable[MappingFunction] = (),
        root: Callable[[Term], Term] = lambda term: term,
        limits: Limits = DEFAULT_LIMITS,
        units: Units | None = None,
    ) -> None:
        parser = SubscriptionParser(limits=limits)
        self._functions = tuple(AnalysedFunction.of(function, parser) for function in functions)
        self._root = root
        self._limits = limits
        self._queries = [_in_base_units(function, root, units) for function in self._functions]

        def rooted(term: Term | None) -> Term | None:
            return None if term is None else root(term)

        self._reads = Triggers(
            [{(rooted(p), rooted(o)) for p, o in f.reads} for f in self._functions]
        )
        self._depends = Triggers([set(query.demanded()) for query in self._queries])

    @property
    def always(self) -> bool:
        """Whether some function may run for every publication, regardless of its triples."""
        return self._reads.always

    def reading(self) -> Iterator[Term]:
        """Yield the properties of triples that can make a function run."""
        return self._reads.properties()

    def demanded(self) -> Iterator[Term]:
        """Yield the properties that the functions ask for, those in named units included."""
        return self._depends.properties()

    def __len__(self) -> int:
        return len(self._functions)

    def __iter__(self) -> Iterator[AnalysedFunction]:
        """Yield the functions in order."""
        return iter(self._functions)

    def run(
        self,
        rooted: Publication,
        evaluator: Evaluator,
        now: datetime | None = None,
        on_problem: OnProblem = warn_problem,
    ) -> MappingResult:
        """Run the functions for a publication; return its closure under rules and functions.

        Parameters
        ----------
        rooted
            The publication with root terms.
        evaluator
            Applies the rules and evaluates the functions, with the same ontology.
        now
            The value of ``NOW()``; the system time by default.
        on_problem
            Called for each function that fails: it cannot be evaluated, returns too much, or does
            not terminate. The results are then those of the other functions; all triples of a
            failed function are dropped.
        """
        closed = evaluator.follow(rooted.triples)
        if not self._reads.any_of(closed):
            return MappingResult(closed)
        dropped: set[int] = set()
        runs = 0
        while True:
            attempt = _Attempt(
                self._queries,
                self._reads,
                self._depends,
                self._root,
                self._limits,
                rooted,
                evaluator,
                now or utc_now(),
                dropped,
            )
            result = attempt.go(closed)
            runs += attempt.runs
            if not isinstance(result, list):
                names = {t: self._functions[n].function.name for t, n in attempt.mapped.items()}
                return MappingResult(result, names, runs)
            for failure in result:
                dropped.add(failure.function)
                function = self._functions[failure.function].function
                where = Place(function.place.source, item=rooted.id)
                what = f"the mapping function `{function.name}` is left out: {failure.what}"
                on_problem(Problem(what, where, failure.remedy, Severity.WARNING))


def _in_base_units(
    analysed: AnalysedFunction, root: Callable[[Term], Term], units: Units | None
) -> Query:
    try:
        return rewritten(analysed.query, root, units)
    except UnitError as error:
        place = analysed.function.place
        raise OntologyError(Problem(error.what, place, error.remedy)) from error


# -- rounds --------------------------------------------------------------------------------


class Evaluator(Protocol):
    """The methods of `graphmatch.enrichment.Enricher` that apply rules and evaluate queries."""

    def follow(self, triples: Iterable[Triple]) -> Derived:
        """Return triples with root terms, and all triples derived from them by rules."""

    def evaluation(self, publication: Publication, now: datetime) -> _native.Evaluation:
        """Return an evaluation of queries over a publication; `now` is the value of ``NOW()``."""

    def has_term(self, term: Term) -> bool:
        """Return whether the ontology contains a term."""


class _Failure(NamedTuple):
    """A failed function (its position in the list of functions), the reason, and the remedy."""

    function: int
    what: str
    remedy: str


class Triggers:
    """Look-up of the functions that a triple affects.

    `mentions` has the patterns of each function. A function is its position in it.

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
        """Whether every triple affects some function."""
        return bool(self._always)

    def properties(self) -> Iterator[Term]:
        """Yield the properties of triples that may affect a function."""
        return (property_ for property_ in self._properties if property_ is not None)

    def any_of(self, triples: Iterable[Triple]) -> bool:
        """Whether any of the triples may affect any function."""
        return bool(self._always) or not self._properties.isdisjoint(t[1] for t in triples)

    def of(self, triple: Triple) -> set[int]:
        """Return the positions of the functions that a triple affects."""
        _, property_, object_ = triple
        if property_ not in self._properties:
            return self._always
        functions = self._functions
        return self._always.union(
            functions.get((property_, None), ()), functions.get((property_, object_), ())
        )


@dataclass(slots=True)
class _Attempt:
    """One run of all rounds for a publication, without the functions in `dropped`.

    Parameters
    ----------
    reads, mentions
        Look-ups of the functions that can use a triple, and of those that depend on it.
    rooted
        The publication with root terms.
    dropped
        The functions that do not run, because they failed before.
    mapped
        The triples from functions, each with the first function that returned it.
    """

    queries: Sequence[Query]
    reads: Triggers
    mentions: Triggers
    root: Callable[[Term], Term]
    limits: Limits
    rooted: Publication
    evaluator: Evaluator
    now: datetime
    dropped: Set[int]
    mapped: dict[Triple, int] = field(default_factory=dict)
    runs: int = 0
    _given: Counter[int] = field(default_factory=Counter)
    _pending: set[int] = field(default_factory=set)
    _awake: set[int] = field(default_factory=set)

    def go(self, closed: Derived) -> Derived | list[_Failure]:
        """Run functions in rounds until no triple is new, from the closure under rules alone.

        Return the closure under rules and functions, or the failures of the first round that has
        some. `mapped` and `runs` record the triples and the number of runs.
        """
        fresh: Iterable[Triple] = closed
        rounds = 0
        while due := self._due(fresh):
            new: dict[Triple, int] = {}
            failures: list[_Failure] = []
            asked = self.evaluator.evaluation(_so_far(self.rooted, closed), self.now)
            for function in due:
                answer = self._answer(function, closed, asked)
                if isinstance(answer, _Failure):
                    failures.append(answer)
                    continue
                for triple in answer:
                    new.setdefault(triple, function)
            if failures:
                return failures
            if not new:
                break
            if rounds == self.limits.mapping_rounds:
                what = f"it still gives new triples after `mapping_rounds` ({rounds}) rounds"
                return [_Failure(function, what, _LOOP) for function in sorted({*new.values()})]
            rounds += 1
            self.mapped |= new
            before = closed
            closed = self.evaluator.follow((*self.rooted.triples, *self.mapped))
            fresh = [triple for triple in closed if triple not in before]
        return closed

    def _due(self, fresh: Iterable[Triple]) -> list[int]:
        """Record the functions that `fresh` triples affect; return those that must run now."""
        for triple in fresh:
            concerned = self.mentions.of(triple)
            if not concerned:
                continue
            self._pending |= concerned
            self._awake |= self.reads.of(triple)
        due = (self._pending & self._awake) - self.dropped
        self._pending -= due
        return sorted(due)

    def _answer(
        self, function: int, closed: Derived, asked: _native.Evaluation
    ) -> list[Triple] | _Failure:
        """Run a function; return the triples of its result that `closed` lacks, or its failure."""
        self.runs += 1
        limit = self.limits.mapping_triples
        most = limit + len(closed)
        too_many = _Failure(function, f"it adds more than `mapping_triples` ({limit})", _NARROW)
        try:
            found = asked.answer(self.queries[function], resting=True, most=most + 1)
        except _native.EvaluationFailedError as error:
            remedy = "The publication is matched without it. Correct the query."
            return _Failure(function, f"it cannot be evaluated: {error}", remedy)
        given: Sequence[Triple] = () if found is None else found[1] or ()
        longest = max((len(str(triple[2])) for triple in given), default=0)
        if longest > (characters := self.limits.mapping_characters):
            what = f"it adds a string of more than `mapping_characters` ({characters})"
            return _Failure(function, what, _NARROW)
        if len(given) > most:
            return too_many
        if any(isinstance(term, BlankNode) for triple in given for term in triple):
            given = named_by_content(given, _is_new(closed, self.evaluator))
        rooted = dict.fromkeys((self.root(s), self.root(p), self.root(o)) for s, p, o in given)
        new = [triple for triple in rooted if triple not in closed]
        self._given[function] += len(new)
        if self._given[function] > limit:
            return too_many
        return new


def _so_far(rooted: Publication, closed: Derived) -> Publication:
    stated = frozenset(rooted.triples) - rooted.derived
    derived = frozenset(triple for triple in closed if triple not in stated)
    return rooted.with_triples(tuple(closed), derived)


def _is_new(closed: Derived, evaluator: Evaluator) -> Callable[[BlankNode], bool]:
    """Return a test for blank nodes that are new to the publication and the ontology."""
    known = {term for triple in closed for term in triple if isinstance(term, BlankNode)}

    def is_new(node: BlankNode) -> bool:
        return not (node in known or evaluator.has_term(node))

    return is_new


# -- new blank nodes -----------------------------------------------------------------------


def named_by_content(
    triples: Sequence[Triple], is_new: Callable[[BlankNode], bool]
) -> Sequence[Triple]:
    """Return triples in which the name of each new blank node is a digest of its triples.

    Each digest includes those of new neighbours. The digests are refined as many times as there are
    new nodes (colour refinement). If two nodes stay indistinguishable, their group keeps its names.
    Costs O(nodes · triples).

    Parameters
    ----------
    is_new
        Whether a blank node can occur only in these triples.

    Examples
    --------
    >>> from pyoxigraph import Literal, NamedNode
    >>> x, p = NamedNode("urn:x"), NamedNode("urn:p")
    >>> one = [(x, p, BlankNode("a")), (BlankNode("a"), p, Literal("1"))]
    >>> two = [(x, p, BlankNode("b")), (BlankNode("b"), p, Literal("1"))]
    >>> named_by_content(one, lambda _: True) == named_by_content(two, lambda _: True)
    True
    """
    found = {term for triple in triples for term in triple if isinstance(term, BlankNode)}
    new = {node for node in found if is_new(node)}
    if not new:
        return triples
    about: defaultdict[BlankNode, list[Triple]] = defaultdict(list)
    for triple in triples:
        for term in {term for term in triple if isinstance(term, BlankNode)} & new:
            about[term].append(triple)
    names: dict[Term, Term] = {}
    for part in _parts(about):
        names |= _names({node: about[node] for node in part})
    return tuple(
        dict.fromkeys((names.get(s, s), names.get(p, p), names.get(o, o)) for s, p, o in triples)
    )


def _parts(about: Mapping[BlankNode, Iterable[Triple]]) -> list[list[BlankNode]]:
    """Return the nodes in groups that triples connect, directly or through other nodes."""
    parts: list[list[BlankNode]] = []
    seen: set[BlankNode] = set()
    for start in about:
        if start in seen:
            continue
        seen.add(start)
        part = [start]
        for node in part:
            for triple in about[node]:
                for term in triple:
                    if isinstance(term, BlankNode) and term in about and term not in seen:
                        seen.add(term)
                        part.append(term)
        parts.append(part)
    return parts


def _names(about: Mapping[BlankNode, Iterable[Triple]]) -> dict[Term, Term]:
    """Return new names for the nodes of one group; empty if two would have the same name."""
    colours: dict[Term, str] = dict.fromkeys(about, "")
    for _ in about:
        colours = {node: _colour(node, triples, colours) for node, triples in about.items()}
    if len(set(colours.values())) != len(colours):
        return {}
    whole = "".join(sorted(colours.values()))  # Similar nodes in different groups stay distinct.
    return {node: BlankNode(f"gm{_digest(colour + whole)}") for node, colour in colours.items()}


def _colour(node: BlankNode, triples: Iterable[Triple], colours: Mapping[Term, str]) -> str:
    def shown(term: Term) -> str:
        if term == node:
            return "self"
        return f"new {colours[term]}" if term in colours else str(term)

    return _digest("\n".join(sorted(" ".join(map(shown, triple)) for triple in triples)))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()

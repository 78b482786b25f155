"""Mapping functions: SPARQL CONSTRUCT queries that add to a publication what follows from it.

S-ToPSS's third way to bring publication and subscription together, after synonyms and
taxonomies: a function over a publication's values, such as experience, which is
today less the graduation year. Here a function is a CONSTRUCT query. It is asked of what a
subscription is asked of, and what it gives is the publication's. Functions may feed
each other, and rules in between; `MappingFunctions.run` goes round until nothing is new.

A function is run only where the publication has a triple that its solutions can rest
on, and again only after a triple has come that its patterns ask for. A publication
without such a triple costs one look-up a triple, however many functions there are; a
run costs what the query costs, and each round loads the publication once.

Source: M. Petrovic, I. Burcea, H.-A. Jacobsen, "S-ToPSS: Semantic Toronto
Publish/Subscribe System" (VLDB 2003), section 2. That a function is a query, and that
functions feed each other by way of rules, is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pyoxigraph import NamedNode

from graphmatch.mapping.rounds import (
    Asked,
    Attempt,
    Enriching,
    Evaluator,
    Failure,
    Follow,
    Triggers,
)
from graphmatch.subscription import Query, Subscription, SubscriptionParser, rewritten
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
from semantic.ontology.entailment import Derived
from semantic.pattern import Form
from semantic.publication import Publication
from semantic.terms import Mention, Node, Term, Triple
from semantic.units.quantities import UnitError
from semantic.units.units import Units
from semantic.vocabulary import TYPE


@dataclass(frozen=True, slots=True)
class Analysed:
    """A mapping function that was analysed.

    Parameters
    ----------
    function
        Its name and text.
    query
        What the text says.
    reads
        What its solutions can rest on: a property, or ``rdf:type`` and a class; in the order of
        the query. ``None`` stands for any.
    adds
        What its template has, told in the same way.
    """

    function: MappingFunction
    query: Query
    reads: tuple[Mention, ...]
    adds: tuple[Mention, ...]

    @classmethod
    def of(cls, function: MappingFunction, parser: SubscriptionParser) -> Analysed:
        """Analyse a mapping function.

        Raises
        ------
        OntologyError
            When its text is no query, none that could be a subscription, or no CONSTRUCT; with
            line and column where they are known.

        Examples
        --------
        >>> text = "CONSTRUCT { ?x a <urn:Cheap> } { ?x <urn:price> ?p FILTER(?p < 100) }"
        >>> analysed = Analysed.of(MappingFunction("cheap", text), SubscriptionParser())
        >>> [property.value for property, _ in analysed.reads]
        ['urn:price']
        >>> [class_.value for _, class_ in analysed.adds]
        ['urn:Cheap']
        """
        place = function.place
        try:
            read = parser.parse(function.name, function.text)
        except SubscriptionError as error:
            told = error.problem
            where = Place(place.source, told.where.line, told.where.column)
            raise OntologyError(Problem(told.what, where, told.remedy)) from error
        if read.form is not Form.CONSTRUCT:
            what = f"a mapping function is a CONSTRUCT query, not {read.form.value}"
            remedy = "Write CONSTRUCT { what it adds } WHERE { what it reads }."
            raise OntologyError(Problem(what, place, remedy))
        adds = dict.fromkeys(_mention(p, o) for _, p, o in read.query.template())
        return cls(function, read.query, _reads(read), tuple(sorted(adds, key=str)))


def _reads(read: Subscription) -> tuple[Mention, ...]:
    return tuple(dict.fromkeys(_mention(p.predicate, p.object) for p in read.supports))


def _mention(property_: Node, object_: Node) -> Mention:
    """Return a pattern's property, and its class where it is about one."""
    if not isinstance(property_, NamedNode):
        return None, None
    if property_ == TYPE and isinstance(object_, NamedNode):
        return property_, object_
    return property_, None


@dataclass(frozen=True, slots=True)
class Mapped:
    """What mapping functions made of a publication.

    Parameters
    ----------
    closed
        The publication and all that follows by rules and functions. What functions gave has
        no triple that it was derived from.
    mapped
        What functions gave, each triple with the name of the first function that gave it.
    runs
        How many times a function was run, those included that failed in the end.
    """

    closed: Derived
    mapped: Mapping[Triple, str] = field(default_factory=dict)
    runs: int = 0


class MappingFunctions:
    """The mapping functions of an ontology.

    Parameters
    ----------
    functions
        In the order of their files: of two that give the same triple the first is named.
    root
        Gives the term that stands for a term and its synonyms.
    limits
        ``mapping_rounds`` and ``mapping_triples`` hold for one publication.
    units
        Brings the quantities in queries to base units, as those of publications are.

    Raises
    ------
    OntologyError
        When a function is none (see `Analysed.of`); when a query has a unit that is unknown, or
        that its attribute cannot have.

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> from graphmatch.knowledge import Knowledge
    >>> from semantic.ontology.ontology import Ontology
    >>> text = '''CONSTRUCT { ?x <urn:experience> ?years }
    ... { ?x <urn:graduated> ?year BIND(YEAR(NOW()) - ?year AS ?years) }'''
    >>> function = MappingFunction("experience", text)
    >>> ontology = Ontology()
    >>> x = NamedNode("urn:x")
    >>> rooted = Publication.of("p", [(x, NamedNode("urn:graduated"), Literal(2003))])
    >>> mapped = MappingFunctions([function], ontology.root).run(
    ...     rooted,
    ...     ontology.inference.follow(rooted.triples),
    ...     ontology.inference.follow,
    ...     Knowledge(ontology),
    ...     datetime(2026, 5, 1),
    ... )
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
        self._functions = tuple(Analysed.of(function, parser) for function in functions)
        self._root = root
        self._units = units
        self._limits = limits
        self._asked = tuple(self._ask(function) for function in self._functions)
        self._reads = Triggers([asked.reads for asked in self._asked])
        self._depends = Triggers([asked.mentions for asked in self._asked])

    def _ask(self, analysed: Analysed) -> Asked:
        try:
            query = rewritten(analysed.query, self._root, self._units)
        except UnitError as error:
            place = analysed.function.place
            raise OntologyError(Problem(error.what, place, error.remedy)) from error
        root = self._root
        reads = frozenset(
            (None if p is None else root(p), None if o is None else root(o))
            for p, o in analysed.reads
        )
        return Asked(query, reads, frozenset(query.mentions()))

    @property
    def always(self) -> bool:
        """Whether some function may be run for any publication whatever."""
        return self._reads.always

    def reading(self) -> Iterator[Term]:
        """Yield the properties that a publication has for which a function may be run."""
        return self._reads.properties()

    def __len__(self) -> int:
        return len(self._functions)

    def __iter__(self) -> Iterator[Analysed]:
        """Yield the functions, in their order."""
        return iter(self._functions)

    def run(
        self,
        rooted: Publication,
        closed: Derived,
        follow: Follow,
        evaluator: Evaluator,
        now: datetime | None = None,
        on_problem: OnProblem = warn_problem,
    ) -> Mapped:
        """Return the closure of a publication under rules and functions.

        Parameters
        ----------
        rooted
            The publication, roots put in.
        closed
            Its triples and what follows from them by rules.
        follow
            Applies the rules to triples.
        evaluator
            Evaluates the functions; over the same ontology.
        now
            What ``NOW()`` gives; the machine's time by default.
        on_problem
            Called with each function that fails: it cannot be evaluated, it gives too much, or
            it goes on without end. What is returned is then what the others give: nothing of a
            function that fails stays.
        """
        if not self._reads.any_of(closed):
            return Mapped(closed)
        enriching = Enriching(rooted, closed, follow, evaluator, now or utc_now())
        dropped: set[int] = set()
        runs = 0
        while True:
            attempt = Attempt(self._asked, self._reads, self._depends, self._root, self._limits)
            result = attempt.go(enriching, dropped)
            runs += attempt.runs
            if not isinstance(result, list):
                names = {t: self._functions[n].function.name for t, n in attempt.mapped.items()}
                return Mapped(result, names, runs)
            for failure in result:
                dropped.add(failure.function)
                on_problem(self._problem(failure, rooted))

    def _problem(self, failure: Failure, publication: Publication) -> Problem:
        function = self._functions[failure.function].function
        where = Place(function.place.source, item=publication.id)
        what = f"the mapping function `{function.name}` is left out: {failure.what}"
        return Problem(what, where, failure.remedy, Severity.WARNING)

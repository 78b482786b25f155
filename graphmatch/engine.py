"""The engine: it matches publications against subscriptions over an ontology.

The pipeline of a publication is `Engine.match`:

    read → enrich (concepts, root terms, units, rules, mapping functions) → index → solutions
         → evaluate the residual → report

The compiled core (`graphmatch._native`) does all of it except two steps. Python converts units and
runs mapping functions, for publications with a term that needs them (`graphmatch.knowledge`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, TypeAlias, TypeVar

from pyoxigraph import RdfFormat

from graphmatch import _native
from graphmatch.knowledge import (
    ITEM,
    PREPARED,
    Change,
    Enriched,
    Entailment,
    Knowledge,
    Known,
    ordered,
)
from graphmatch.matcher import (
    Call,
    Capabilities,
    DuplicateError,
    Matcher,
    MatchReport,
    UnknownError,
)
from graphmatch.operators.evaluator import Calls, CallSession, OperatorEvaluator
from graphmatch.operators.operator import Operator
from graphmatch.report import CoreMatches, EventReports, read_again, report_of
from graphmatch.subscription import (
    Query,
    Subscription,
    SubscriptionParser,
    not_unicode,
    refusal,
)
from semantic.annotation.annotate import Annotator, Label
from semantic.annotation.words import WORDS
from semantic.clock import Clock, moment, utc_now
from semantic.errors import (
    GraphMatchError,
    InputError,
    OnProblem,
    Place,
    Problem,
    Severity,
    SubscriptionError,
    UnknownNameError,
    shown,
    warn_problem,
)
from semantic.feeds import FeedFormat
from semantic.files import (
    PIECE,
    Pieces,
    Readable,
    documents,
    may_wait,
    missing,
    pieces,
    plain,
    unreadable,
)
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.reading import (
    Cut,
    Fault,
    check_base,
    id_of,
    problem_of,
    publication_of,
    publications_of,
    recognise,
)
from semantic.syntax import BLANK, HEAD_BYTES, format_of_media_type
from semantic.terms import Triple
from semantic.vocabulary import PREFIXES

if TYPE_CHECKING:
    import numpy as np
    import rdflib
    from numpy.typing import NDArray

    from graphmatch.explain.evidence import Evidence
    from graphmatch.explain.explanation import Explanation
    from graphmatch.explain.index_plan import IndexPlan
    from graphmatch.explain.provenance import Provenance
    from graphmatch.lint import Warned
    from graphmatch.prepared import PreparedQuery
    from graphmatch.saving import Options
    from semantic.arrow import ArrowBatch, ArrowTable
    from semantic.attributes.bulk import Rows
    from semantic.attributes.events import Event

Document: TypeAlias = "bytes | str | Path | Readable | rdflib.Graph"
"""Sources that `Engine.filter` reads."""

_Taken = TypeVar("_Taken")
_READ = (
    "Make one by Publication.of(id, triples) or Publication.from_rdflib(graph); "
    "filter(source) and read_publications(source) read documents and datasets."
)
_TURN = 32
"""Maximum number of publications that are read before they are matched."""
_AT_ONCE = 8192
"""Maximum number of subscriptions added between two publications."""


class Engine(Matcher):
    """Matcher of publications and standing SPARQL subscriptions over an ontology.

    Parameters
    ----------
    ontology
        The ontology; an empty one by default.
    entailment
        ``"rdfs"``, or ``"none"`` to match publications as stated (docs/reference/semantics.md).
    annotator
        Finds labels in feed items; by default an annotator over `Ontology.labels`.
    clock
        Returns the value of ``NOW()``, once per publication.
    on_problem
        Called for unusable parts of a publication (an unknown unit, for example), and for failed
        mapping functions.
    limits
        Resource limits per document, subscription and evaluation.
    operators
        Functions that subscriptions may call (docs/guides/operators.md).

    Notes
    -----
    An engine is thread-safe: publications are matched concurrently, and changes wait until no
    match is running.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic import Ontology
    >>> from semantic.vocabulary import SUBCLASS, TYPE
    >>> laptop, computer = NamedNode("http://e/Laptop"), NamedNode("http://e/Computer")
    >>> engine = Engine(Ontology([(laptop, SUBCLASS, computer)]))
    >>> engine.subscribe("alice", "SELECT ?x { ?x a <http://e/Computer> }")
    >>> publication = Publication.of("p", [(NamedNode("http://e/1"), TYPE, laptop)])
    >>> for match in engine.match(publication):
    ...     print(match.subscription, match.solutions[0]["x"])
    alice <http://e/1>
    """

    capabilities: ClassVar = Capabilities(full_sparql=True, entailment=True)

    def __init__(
        self,
        ontology: Ontology | None = None,
        *,
        entailment: Entailment | str = Entailment.RDFS,
        annotator: Annotator | None = None,
        clock: Clock = utc_now,
        on_problem: OnProblem = warn_problem,
        limits: Limits = DEFAULT_LIMITS,
        operators: Iterable[Operator] = (),
    ) -> None:
        if not isinstance(ontology, Ontology | None):
            what = f"the ontology is {shown(ontology)}"
            raise TypeError(f"{what}. Load it from its files: Engine(Ontology.load('news.ttl')).")
        calls = OperatorEvaluator(operators, on_problem)
        core = _native.Core(list(PREFIXES.items()), limits, calls.rows)
        self._begin(core, Entailment(entailment), clock, on_problem, limits, calls)
        self._adopt(self._know(ontology or Ontology(), annotator))

    def _begin(
        self,
        core: _native.Core,
        entailment: Entailment,
        clock: Clock,
        on_problem: OnProblem,
        limits: Limits,
        operators: OperatorEvaluator,
    ) -> None:
        self._core = core
        self._operators = operators
        operators.attach(core, limits)
        self._entailment = entailment
        self._limits = limits
        self._clock = clock
        self._on_problem = on_problem
        self._parser = SubscriptionParser(limits=limits, operators=operators.rows)
        self._changing = RLock()
        self._labels: tuple[list[Label], Annotator] | None = None
        self._known: Knowledge | None = None
        self._saved: tuple[Options, bytes] | None = None
        """Saved options and ontology, valid until the ontology changes."""

    def _know(self, ontology: Ontology, annotator: Annotator | None) -> Knowledge:
        known = self._made(ontology, annotator)
        return Knowledge(lambda: known, self._entailment, core=self._core)

    def _made(self, ontology: Ontology, annotator: Annotator | None) -> Known:
        is_own = annotator is not None
        return ontology, annotator or self._annotator_for(ontology.labels()), is_own

    def _annotator_for(self, labels: list[Label]) -> Annotator:
        """Return an annotator for labels; reuse the current one if they have not changed."""
        if self._labels is None or self._labels[0] != labels:
            self._labels = labels, Annotator(labels)
        return self._labels[1]

    def _adopt(self, knowledge: Knowledge) -> tuple[int, int, list[str], list[str]]:
        """Pass an ontology to the core.

        Returns
        -------
        triples, names
            The numbers of changed triples and names.
        concerned, waiting
            The subscriptions that were reindexed, and those that need units or classes resolved
            first.
        """
        change = self._core.set_ontology(knowledge, knowledge.stated(self._known))
        self._known, self._saved = knowledge, None
        return change

    @property
    def _knowledge(self) -> Knowledge:
        assert self._known is not None
        return self._known

    @property
    def ontology(self) -> Ontology:
        """The engine's ontology."""
        return self._knowledge.ontology

    @property
    def entailment(self) -> Entailment:
        """Whether the ontology's rules apply."""
        return self._entailment

    @property
    def limits(self) -> Limits:
        """Resource limits per document, subscription and evaluation."""
        return self._limits

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The functions that subscriptions may call."""
        return self._operators.all

    @property
    def parser(self) -> SubscriptionParser:
        """The parser for the engine's queries."""
        return self._parser

    @property
    def annotator(self) -> Annotator | None:
        """The annotator passed to the engine, or ``None``."""
        return self._knowledge.own_annotator

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """The subscriptions, in the order in which they were added."""
        with self._changing:
            return tuple(map(self.subscription, self._core.ids()))

    def names(self, numbers: NDArray[np.uint32]) -> list[str | None]:
        """Return the ids of subscriptions by their numbers in reports; ``None`` if unknown.

        A number is reused only after its subscription was removed.
        """
        return self._core.names(numbers)

    def subscription(self, id: str) -> Subscription:
        """Return a subscription as it was submitted.

        Raises
        ------
        UnknownError
            If the id is unknown.
        """
        found = _asked(self._core.subscription, id)
        if found is None:
            raise UnknownError(id)
        text, comment = found
        return self._parser.parse(id, text, comment)

    def __len__(self) -> int:
        return len(self._core)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and bool(_asked(self._core.__contains__, id))

    def _note_words(self) -> None:
        """Enable ``gm:words`` of feed items once a subscription uses them.

        Also update the indexes of operators to the calls of all subscriptions.
        """
        self._operators.follow(self._core)
        knowledge = self._knowledge
        if not knowledge.words and self._core.has_term(str(WORDS)):
            begins = not knowledge.reads_items
            knowledge.words = True
            if begins:
                self._adopt(knowledge)

    # -- subscriptions ----------------------------------------------------------------------

    def subscribe(self, subscription: Subscription | str, query: str | None = None) -> None:
        """Add a subscription: an id and SPARQL text, or a parsed `Subscription`.

        Raises
        ------
        SubscriptionError
            If the text is not a valid subscription; with line and column. Also if one of its units
            is unknown or incompatible with the attribute.
        DuplicateError
            If the id is taken.
        """
        with self._changing:
            self._take(*_row(subscription, query))
            self._note_words()
        self._operators.report_problems()

    def replace(self, subscription: Subscription | str, query: str | None = None) -> None:
        """Replace the subscription with the same id, and keep its place in the order.

        Raises
        ------
        UnknownError
            If the id is unknown.
        SubscriptionError
            As for `subscribe`; the old subscription then stays.
        """
        id, text, comment = _row(subscription, query)
        with self._changing:
            found = self._take(id, text, comment, replaces=True)
            self._note_words()
        self._operators.report_problems()
        if not found:
            raise UnknownError(id)

    def _take(self, id: str, text: str, comment: str, *, replaces: bool = False) -> bool:
        """Add a subscription to the core, and resolve its units and classes if it has any."""
        try:
            try:
                return self._core.subscribe(id, text, comment, None, replaces)
            except _native.NeedsPythonError:
                return self._core.subscribe(id, text, comment, self._rewritten(id, text), replaces)
        except (_native.DuplicateIdError, _native.InvalidSubscriptionError) as error:
            raise _error_of(error, id, text) from None
        except UnicodeEncodeError as error:
            raise not_unicode(id, error) from None

    def _rewritten(self, id: str, text: str) -> list[str]:
        return self._knowledge.rewritten_constants(self._parser, id, text)

    def unsubscribe(self, id: str) -> None:
        """Remove a subscription.

        Raises
        ------
        UnknownError
            If the id is unknown.
        """
        with self._changing:
            if not _asked(self._core.unsubscribe, id):
                raise UnknownError(id)
            self._operators.follow(self._core)
        self._operators.report_problems()

    # -- bulk loading -----------------------------------------------------------------------

    def subscribe_many(
        self, rows: Iterable[Subscription | tuple[str, str | Query]]
    ) -> tuple[GraphMatchError, ...]:
        """Add many subscriptions, much faster than one by one.

        Parameters
        ----------
        rows
            Ids with SPARQL texts or queries, or parsed subscriptions. Publications are matched
            between batches.

        Returns
        -------
        refused
            The errors of invalid subscriptions, as `subscribe` would raise them, in order. All
            others were added.

        Examples
        --------
        >>> rows = [("a", "ASK { ?s a <urn:C> }"), ("b", "ASK {"), ("c", "ASK { ?s a <urn:D> }")]
        >>> engine = Engine()
        >>> refused = engine.subscribe_many(rows)
        >>> len(engine), [str(error)[:15] for error in refused]
        (2, ['b:1:6: not SPAR'])
        """
        refused: list[GraphMatchError] = []
        rest = iter(rows)
        while some := [
            _row(row) if isinstance(row, Subscription | str) else _row(*row)
            for row in islice(rest, _AT_ONCE)
        ]:
            with self._changing:
                refused += self._take_in(some)
            self._operators.report_problems()
        return tuple(refused)

    def _take_in(self, rows: Sequence[tuple[str, str, str]]) -> Iterator[GraphMatchError]:
        """Add some subscriptions; yield the errors of invalid ones."""
        begin = 0
        while begin < len(rows):
            some = rows[begin:]
            one_by_one = 1  # The core stops at one with units or class names.
            try:
                taken, errors = self._core.subscribe_many(*zip(*some, strict=True))
            except UnicodeEncodeError:  # The core has added none of them.
                taken, errors, one_by_one = 0, [], len(some)
            for place, error in errors:
                yield _error_of(error, *some[place][:2])
            for row in some[taken : taken + one_by_one]:
                try:
                    self._take(*row)
                except GraphMatchError as refused:
                    yield refused
            begin += taken + one_by_one
        self._note_words()

    def subscribe_table(
        self, table: ArrowTable | ArrowBatch, id: str = "id", query: str = "query"
    ) -> tuple[GraphMatchError, ...]:
        """Add the subscriptions in an Arrow table, one per row.

        If the table has a column of SPARQL texts, these are the subscriptions. Otherwise, each
        column name is an attribute, or an attribute, a space and an operator: ``brand``,
        ``price <=``, ``target isa``. Null adds no constraint.

        Parameters
        ----------
        table
            A ``pyarrow.Table`` or ``RecordBatch``.
        id, query
            The columns of ids and of SPARQL texts.

        Returns
        -------
        refused
            The errors of invalid rows, in order; all others were added.

        Raises
        ------
        InputError
            If the column of ids is missing, or a column name is invalid.
        """
        from semantic.arrow import texts_of_table
        from semantic.attributes.bulk import Rows, rows_of_table

        if query in table.schema.names:
            return self.subscribe_many(texts_of_table(table, id, query))
        refused: list[tuple[int, GraphMatchError]] = []
        for found in rows_of_table(table, id):
            if isinstance(found[0], Rows):
                rows, before = found
                wrong = self._take_in_rows(rows)
                refused += ((before + int(rows.chosen[n]), error) for n, error in wrong)
            else:
                refused.append(found)
        return tuple(error for _, error in sorted(refused, key=lambda one: one[0]))

    def prepare(self, query: str, parameters: Iterable[str]) -> PreparedQuery:
        """Prepare a query with parameters, to add subscriptions as columns of terms.

        Parameters
        ----------
        query
            A SPARQL query.
        parameters
            Variables of the query, without the question mark. Each stands for an IRI or a literal
            in triple patterns and expressions, but not in the SELECT clause of a query with
            GROUP BY. It is not projected.

        Raises
        ------
        SubscriptionError
            If the query is not a valid subscription, or a parameter is used where a constant is not
            allowed.

        Examples
        --------
        Needs ``pyarrow``::

            prepared = engine.prepare(
                "SELECT ?item { ?item a ?class ; <urn:price> ?price FILTER(?price <= ?most) }",
                ["class", "most"],
            )
            classes = pyarrow.array(["<urn:Laptop>", "<urn:Book>"])
            refused = prepared.subscribe(["alice", "bob"], [classes, pyarrow.array([400, 15])])
        """
        from graphmatch.prepared import PreparedQuery
        from semantic.arrow import Texts

        names = tuple(name.removeprefix("?") for name in parameters)
        none = Texts.of([])  # Without rows, the core only checks the query.
        try:
            self._core.subscribe_batch(
                query, names, (none.data, none.offsets), [], none.offsets[:0]
            )
        except _native.InvalidSubscriptionError as error:
            raise _error_of(error, "prepared", query) from None
        return PreparedQuery(query, names, self._take_in_rows)

    def _take_in_rows(self, rows: Rows) -> list[tuple[int, GraphMatchError]]:
        """Add rows of terms; return the indices and errors of invalid rows."""
        refused: list[tuple[int, GraphMatchError]] = []
        with self._changing:
            for name in rows.names:
                with suppress(UnknownNameError):  # Each row with this name gets an error below.
                    self._core.resolve(str(name), str(self._knowledge.root(name)))
            ids = rows.ids.data, rows.ids.offsets
            try:
                errors = self._core.subscribe_batch(
                    rows.query, rows.parameters, ids, rows.columns, rows.chosen
                )
            except _native.InvalidSubscriptionError as every:  # The shape exceeds a limit.
                errors = [(place, every) for place in range(len(rows.chosen))]
            for place, error in errors:
                id = rows.ids.get(int(rows.chosen[place]))
                if not isinstance(error, _native.NeedsPythonError):
                    refused.append((place, _error_of(error, id)))
                    continue
                try:
                    self._take(id, str(error), "")
                except GraphMatchError as own:
                    refused.append((place, own))
            self._note_words()
        self._operators.report_problems()
        return refused

    def lint(self, *ids: str) -> Iterator[Warned]:
        """Yield probable mistakes in subscriptions, such as a class that doesn't exist.

        Cost: 10 ms for each query that differs in more than its constants; see `graphmatch.lint`.

        Parameters
        ----------
        ids
            The subscriptions to check, all by default; duplicates are found among these.

        Raises
        ------
        UnknownError
            If an id is unknown.

        Examples
        --------
        >>> engine = Engine()
        >>> engine.subscribe("alice", "SELECT ?titel { ?item rss:title ?title }")
        >>> [warned.code for warned in engine.lint()]
        ['unbound-variable', 'matches-everything']
        """
        from graphmatch.lint import Linter

        linter = Linter(self.ontology)
        for id in ids or self._core.ids():
            yield from linter.lint(self.subscription(id))

    # -- ontology ---------------------------------------------------------------------------

    def replace_ontology(self, ontology: Ontology, annotator: Annotator | None = None) -> Change:
        """Replace the ontology.

        The engine prepares the new ontology while it still matches by the old one, and switches
        between two publications. It reindexes only the subscriptions that the difference affects.

        Parameters
        ----------
        annotator
            An annotator for the new ontology; by default the one passed to the engine, if any.
        """
        problems: list[Problem] = []
        with self._changing:
            knowledge = self._know(ontology, annotator or self.annotator)
            triples, names, concerned, waiting = self._adopt(knowledge)
            for id in waiting:
                text, comment = self._core.subscription(id) or ("", "")
                try:
                    self._core.subscribe(id, text, comment, self._rewritten(id, text), True)
                except SubscriptionError as error:
                    what = f"{error.problem.what}; it matches nothing now"
                    problems.append(replace(error.problem, what=what))
            self._operators.follow(self._core)
        self._operators.report_problems()
        for problem in problems:  # Only now, because the callback may use the engine.
            self._on_problem(problem)
        return Change(triples, names, len(concerned))

    def update_ontology(
        self, added: Iterable[Triple] = (), removed: Iterable[Triple] = ()
    ) -> Change:
        """Change the ontology by some triples; see `Ontology.update`."""
        with self._changing:
            return self.replace_ontology(self.ontology.update(added, removed))

    # -- pipeline ---------------------------------------------------------------------------

    def match(self, publication: Publication | Event) -> MatchReport:
        """Return the subscriptions that a publication matches, with solutions.

        The values of an `Event` are not converted to terms, except in events with dates, quantities
        or similar values.

        Raises
        ------
        InputError
            If an event has a name or a value that cannot be written as RDF.

        Examples
        --------
        >>> from semantic.attributes.events import Event
        >>> engine = Engine()
        >>> engine.subscribe("alice", "ASK { ?e attribute:price.value ?p FILTER(?p < 400) }")
        >>> list(engine.match(Event("e1", {"price": {"value": 399}})).subscriptions)
        ['alice']
        """
        if not isinstance(publication, Publication) and not hasattr(publication, "attributes"):
            what = f"match takes a Publication or an Event, not {shown(publication)}"
            raise TypeError(f"{what}. {_READ}")
        now = self._clock()
        time = moment(now)
        id = plain(publication.id)
        if not isinstance(publication, Publication):
            known = self._core.match_event(id, publication.attributes, time)
            if isinstance(known, _native.Report):
                return self._reported(known, None, now, publication.id)
            publication = publication.publication()
        found = self._core.match_triples(id, publication.rows, time)
        return self._reported(found, publication, now, publication.source.source)

    def _reported(
        self,
        found: _native.Report | _native.EnrichmentRequest | _native.CallRequest,
        publication: Publication | None,
        now: datetime,
        source: str,
    ) -> MatchReport:
        """Return the report of a publication, after Python's steps if it needs any."""
        enriched: Enriched | None = None
        steps = 0
        asked: CallSession | None = None
        while not isinstance(found, _native.Report):
            if isinstance(found, _native.CallRequest):
                asked = asked or self._operators.begin(publication, source)
                self._operators.make(found, asked)
                found = found.rematch(asked.native, moment(now))
                continue
            if publication is None:
                publication = publication_of(found.id, found.triples(), source)
            knowledge: Knowledge = found.knowledge
            steps |= found.steps
            if found.steps & ITEM:  # From now on, the core finds the labels.
                self._core.set_annotator(knowledge.annotator.native, found.version)
            triples, prepared = publication.rows, None
            if steps != ITEM:
                enriched = knowledge.prepare(publication, steps, now)
                triples, stated, shown = ordered(enriched.publication)
                prepared = stated, shown, PREPARED | steps
            calls = None if asked is None else asked.native
            id, time = plain(publication.id), moment(now)
            found = self._core.match_triples(id, triples, time, prepared, found, calls)
        unknown = self._operators.unknown(found, asked)
        origin: Callable[[], Publication | None]
        if publication is None:
            id, origin = id_of(found.publication, source), partial(read_again, found, source)
        else:
            id, origin = publication.id, lambda: publication
        made = () if asked is None else Calls(asked.made)
        kept = 0 if asked is None else asked.recalled
        report = report_of(id, found, self._on_problem, enriched, origin, made, kept, unknown)
        for problem in report.problems:
            self._on_problem(problem)
        return report

    def filter(
        self,
        source: Document,
        format: str | None = None,
        cut: Cut | str = Cut.AUTO,
        base: str | None = None,
        name: str | None = None,
    ) -> Iterator[MatchReport]:
        r"""Match the publications of documents as they are read.

        Triples become Python objects only in feeds, for cuts into items, subjects and components,
        and if units or mapping functions apply. Publications of a file or of bytes are matched in
        batches, to reduce waiting between threads. The next reports may therefore lack
        subscriptions that were added after the last one.

        Parameters
        ----------
        source
            A document as bytes or as an open binary file. Also the name of a file or a folder (all
            files in it), ``"-"`` for standard input, an `rdflib.Graph` or an `rdflib.Dataset`.
        format
            Media type or extension of the RDF syntax, if neither name nor content shows it.
        cut
            How to split a document into publications; see `semantic.reading`.
        base
            Base IRI; without one, relative IRIs are errors.
        name
            Name of bytes or of an open file in messages, and id of a publication if the document
            names none. The default is ``<memory>``, or the name of the file.

        Returns
        -------
        reports
            One report per publication, made on demand; `MatchReport.read` returns the publication
            if something matches it.

        Raises
        ------
        InputError
            Before reading, if the format or the cut is unknown, the base is not an absolute IRI, or
            the file does not exist.

        Examples
        --------
        >>> engine = Engine()
        >>> engine.subscribe("alice", "SELECT ?x { ?x <urn:p> <urn:b> }")
        >>> line = b"<urn:a> <urn:p> <urn:b> <urn:g%d> .\n"
        >>> for report in engine.filter(line % 1 + line % 2):
        ...     print(report.publication, list(report.subscriptions))
        urn:g1 ['alice']
        urn:g2 ['alice']
        """
        reading = _Reading(
            Cut(cut),
            None if format is None else format_of_media_type(format),
            base,
            self._on_problem,
        )
        if base is not None:
            check_base(base)
        if isinstance(source, bytes):
            return self._filter_bytes(source, name or "<memory>", reading)
        if isinstance(source, str | Path):
            if str(source) != "-" and (problem := missing(source)) is not None:
                raise InputError(problem)
            opened = documents(source, self._on_problem)
            return (r for own, one in opened for r in self._filter_stream(one, own, reading))
        if isinstance(source, Readable):
            own = name or str(getattr(source, "name", "<stream>"))
            return self._filter_stream(source, own, reading)
        return map(self.match, tuple(Publication.of_rdflib(source)))

    def _filter_bytes(self, data: bytes, name: str, reading: _Reading) -> Iterator[MatchReport]:
        """Match a document in memory: in one call if it is one publication."""
        now = self._clock()
        cut, base = reading.cut.value, reading.base
        found = None
        if data[:HEAD_BYTES].strip(BLANK):
            found = self._core.match_bytes(
                data, plain(name), moment(now), reading.extension, cut, base
            )
        if found is not None:
            outcome, faults = found
            if faults:
                reading.tell(faults, name)
            if outcome is not None:
                yield self._reported(outcome, None, now, name)
            return
        yield from self._filter_pieces(iter([data]), name, reading, waits=False)

    def _filter_stream(
        self, stream: Readable, name: str, reading: _Reading
    ) -> Iterator[MatchReport]:
        waits = may_wait(stream)
        enough = PIECE if not waits else HEAD_BYTES if reading.syntax is None else 1
        rest = pieces(stream)
        try:
            head = next(rest, b"")
            while (is_more := len(head) < enough) and (piece := next(rest, b"")):
                head += piece
        except OSError as error:
            reading.on_problem(unreadable(name, error))
            return
        if is_more:
            yield from self._filter_bytes(head, name, reading)
        else:
            yield from self._filter_pieces(chain([head], rest), name, reading, waits=waits)

    def _filter_pieces(
        self, data: Iterator[bytes], name: str, reading: _Reading, *, waits: bool
    ) -> Iterator[MatchReport]:
        """Match the publications of a document in batches as it arrives."""
        cut, base = reading.cut, reading.base
        try:
            syntax, data = recognise(data, name, reading.syntax, cut, self._limits)
        except InputError as error:
            reading.on_problem(error.problem)
            return
        except OSError as error:
            reading.on_problem(unreadable(name, error))
            return
        if isinstance(syntax, FeedFormat) or cut.needs_objects:
            read = publications_of(data, syntax, name, cut, base, reading.on_problem, self._limits)
            # Reading and matching share the processor's caches badly, so they take turns.
            while some := tuple(islice(read, _TURN)):
                yield from map(self.match, some)
            return
        whole = Pieces(data, name)
        document = self._core.document(
            whole, plain(name), syntax.file_extension, cut.value, waits, base
        )
        goes_on = True
        while goes_on:
            now = self._clock()
            outcomes, before, faults, goes_on = document.next(moment(now))
            for place, outcome in enumerate(outcomes):
                if place == before:
                    reading.tell(faults, name)
                yield self._reported(outcome, None, now, name)
            if before == len(outcomes):
                reading.tell(faults, name)

    def match_table(self, table: ArrowTable | ArrowBatch) -> Iterator[MatchReport]:
        """Match the publications of an Arrow table, lazily, in the order of their first rows.

        Invalid rows are reported (`on_problem`) and skipped. Rows do not become Python objects.

        Parameters
        ----------
        table
            A ``pyarrow.Table`` or ``RecordBatch`` with the columns ``publication``, ``subject``,
            ``predicate``, ``object``. Terms are N-Triples, as texts or dictionary-encoded.

        Raises
        ------
        InputError
            If a column is missing.
        """
        from semantic.tables import TripleTable

        rows = TripleTable(table)
        for id, lines, numbers in rows.publications(self._on_problem):

            def tell(problem: Problem, numbers: NDArray[np.int64] = numbers) -> None:
                self._on_problem(rows.fault(numbers, problem))

            reading = _Reading(Cut.DOCUMENT, RdfFormat.N_TRIPLES, None, tell)
            yield from self._filter_bytes(lines, id, reading)

    def match_events(self, table: ArrowTable | ArrowBatch, id: str = "id") -> EventReports:
        """Match the events of an Arrow table, with one event per row and one attribute per column.

        Parameters
        ----------
        table
            A ``pyarrow.Table`` or ``RecordBatch``. Structs are paths, lists are several values, and
            nulls are ignored.
        id
            The column of event ids; without it, row numbers are the ids.

        Returns
        -------
        reports
            One report per row, with the numbers of all matching subscriptions as one array. All are
            kept in memory, so match a large table in parts.

        Raises
        ------
        InputError
            If a name or a value cannot be written as RDF, or an event has no attributes.

        Examples
        --------
        Needs ``pyarrow``::

            reports = engine.match_events(pyarrow.table({"price.value": [399, 450]}))
            reports.numbers, reports.offsets, reports[0].subscriptions
        """
        from semantic.arrow import batches
        from semantic.attributes.events import EventColumns

        parts, before = [], 0
        for batch in batches(table):
            events = EventColumns(batch, id, before)
            time = moment(self._clock())
            ids = events.ids.data, events.ids.offsets
            found = self._core.match_events(ids, events.columns() or [], time)
            others = {row: self.match(events.event(row)) for row in found.pending()}
            parts.append((events.ids, found, others))
            before += batch.num_rows
        return EventReports(parts, self._on_problem)

    def enrich(self, publication: Publication) -> Publication:
        """Return the publication with all derived triples: concepts, roots, units, rules.

        Matching itself derives only the triples that subscriptions ask for.
        """
        with self._changing:
            enriched = self._knowledge.enrich(publication, self._clock())
        for problem in enriched.problems:
            self._on_problem(problem)
        return enriched.publication

    def calls(self, id: str) -> tuple[str, ...]:
        """Return the operators that a subscription calls, with their costs, as lines.

        Raises
        ------
        UnknownError
            If the id is unknown.
        """
        return tuple(self._operators.describe(self.subscription(id)))

    # -- explanations -----------------------------------------------------------------------

    def index_plan(self, id: str) -> IndexPlan:
        """Return the index plan of a subscription, with its residual.

        Raises
        ------
        UnknownError
            If the id is unknown.
        """
        from graphmatch.explain.index_plan import IndexPlan

        plan = _asked(self._core.index_plan, id)
        if plan is None:
            raise UnknownError(id)
        return IndexPlan.of(id, plan)

    def explain(self, id: str, publication: Publication, language: str = "en") -> Explanation:
        """Explain why a subscription matches a publication, or which condition fails first.

        Parameters
        ----------
        language
            The reader's language, for the labels of terms.

        Raises
        ------
        UnknownError
            If the id of the subscription is unknown.
        """
        from graphmatch.explain.explanation import explain

        with self._changing:
            plan = self.index_plan(id)
            report = self.match(publication)
            matches = report.matches
            assert isinstance(matches, CoreMatches)
            if why := dict(matches.failed).get(id):
                raise GraphMatchError(_unexplained(id, publication.id, why))
            places = [n for n, one in enumerate(matches.subscriptions) if one == id]
            match = next((matches[n] for n in places), None)
            query, found = plan.subscription.query, matches if places else None
            asking = self._asking(publication, language, [query], report.calls, found)
            calls = self._operators.calls_of(plan.subscription, report.calls)
            try:
                return replace(explain(plan, match, *asking), calls=calls)
            except _native.EvaluationFailedError as error:
                raise GraphMatchError(_unexplained(id, publication.id, str(error))) from error

    def evidence(
        self,
        report: MatchReport,
        subscriptions: Collection[str] | None = None,
        language: str = "en",
    ) -> Mapping[str, tuple[Evidence, ...]]:
        """Return, by subscription, the triples that a match uses, and why they hold.

        The reasons reflect the time of the match, despite later changes. A large publication
        (`Limits.reason_triples`) gets none.

        Parameters
        ----------
        report
            A report of this engine.
        subscriptions
            The subscriptions whose matches get reasons; all by default.
        language
            The reader's language, for the labels of terms.
        """
        from graphmatch.explain.evidence import evidence

        most, matches = self._limits.reason_triples, getattr(report, "matches", None)
        if not isinstance(matches, CoreMatches):
            what = f"evidence takes a report of an Engine, not {shown(report)}"
            raise TypeError(f"{what}. Write engine.evidence(engine.match(publication)).")
        ids = matches.subscriptions
        wanted = {subscriptions} if isinstance(subscriptions, str) else subscriptions
        places = [n for n, id in enumerate(ids) if wanted is None or id in wanted]
        if not places:
            return {}
        if report.counters.triples > most:
            what = f"no reasons: the publication has more than {most:,} triples"
            remedy = "Raise the limit `reason_triples`, or explain one subscription."
            self._on_problem(Problem(what, Place(report.publication), remedy, Severity.WARNING))
            return {ids[place]: () for place in places}
        queries = [matches.found.query(place) for place in places]
        publication = report.read() if self.operators else None
        asking = self._asking(publication, language, queries, report.calls, matches)
        found: dict[str, tuple[Evidence, ...]] = {}
        for place, query in zip(places, queries, strict=True):
            one = Subscription.of(ids[place], query)
            try:
                match = next(matches.made(place, place + 1, 1))
                found[one.id] = tuple(evidence(one, match, *asking))
            except _native.EvaluationFailedError as error:
                found[one.id] = ()
                self._on_problem(_unexplained(one.id, report.publication, str(error)))
        return found

    def _asking(
        self,
        publication: Publication | None,
        language: str,
        queries: Iterable[Query],
        calls: Iterable[Call],
        matches: CoreMatches | None,
    ) -> tuple[_native.Evaluation, Provenance]:
        """Prepare queries over a publication as it was matched.

        Without matches, it is enriched with all derived triples.
        """
        from graphmatch.explain.provenance import Provenance

        if matches is not None:
            knowledge, enriched = matches.enriched()
            evaluation = matches.found.evaluation
        else:
            assert publication is not None
            knowledge, now = self._knowledge, self._clock()
            enriched = knowledge.enrich(publication, now)
            evaluation = partial(knowledge.evaluation, enriched.publication, now)
        asked = self._operators.begin(publication, enriched.publication.source.source)
        asked.recall(calls)
        found = evaluation(asked.native)
        while any(self._operators.miss(asked, found, query) for query in queries):
            found = evaluation(asked.native)
        return found, Provenance(knowledge, enriched, language)

    # -- copies -----------------------------------------------------------------------------

    def sibling(self, *, clock: Clock = utc_now, on_problem: OnProblem = warn_problem) -> Engine:
        """Return an engine with the same ontology and no subscriptions.

        Ontology, annotator, operators and limits are shared, so both engines treat a subscription
        alike. Cost: passing the ontology to the core, 0.1 s for that of DBpedia.

        Parameters
        ----------
        clock, on_problem
            As for a new engine.

        Examples
        --------
        >>> engine = Engine()
        >>> engine.subscribe("alice", "ASK { ?x a <urn:Laptop> }")
        >>> sibling = engine.sibling()
        >>> len(sibling), sibling.ontology is engine.ontology
        (0, True)
        """
        with self._changing:
            knowledge, labels = self._knowledge, self._labels
            own = knowledge.own_annotator is not None
            known = knowledge.ontology, knowledge.annotator, own
        calls = OperatorEvaluator(self.operators, on_problem)
        core = _native.Core(list(PREFIXES.items()), self._limits, calls.rows)
        engine = Engine.__new__(Engine)
        engine._begin(core, self._entailment, clock, on_problem, self._limits, calls)
        engine._labels = labels
        engine._adopt(Knowledge(lambda: known, self._entailment, core=core))
        return engine

    def copy(self, *, clock: Clock = utc_now, on_problem: OnProblem = warn_problem) -> Engine:
        """Return an independent copy of this engine, made through a snapshot.

        Parameters
        ----------
        clock, on_problem
            As for a new engine.

        Raises
        ------
        SavedError
            If there is no space for the snapshot.

        Examples
        --------
        >>> engine = Engine()
        >>> engine.subscribe("alice", "ASK { ?x a <urn:Laptop> }")
        >>> copy = engine.copy()
        >>> engine.unsubscribe("alice")
        >>> "alice" in copy
        True
        """
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder, self._changing:
            self.save(path := Path(folder, "engine"))
            engine = Engine.open(
                path,
                clock=clock,
                on_problem=on_problem,
                limits=self._limits,
                operators=self.operators,
            )
            own = self.annotator is not None
            known = self.ontology, self._knowledge.annotator, own
            engine._labels = self._labels
        engine._known = Knowledge(lambda: known, self._entailment, core=engine._core)
        engine._core.attach_enricher(engine._known)
        return engine

    # -- snapshots --------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Save a snapshot for `open`: the engine with ontology and options.

        An existing snapshot is replaced atomically, so a reader opens either the old or the new
        one. Meanwhile publications are matched, and changes wait.

        Raises
        ------
        SavedError
            If the path exists and is not a snapshot, or the file cannot be written.
        """
        from graphmatch.saving import Options, save, written

        with self._changing:
            if self._saved is None:
                synonyms = self.ontology.roots.options
                options = Options(self._entailment.value, synonyms, self._limits)
                self._saved = options, written(self.ontology, self.annotator)
            options, known = self._saved
            operators = {one.iri: (one.version, one.index is not None) for one in self.operators}
            measured = self._operators.statistics.written()
            options = replace(options, operators=operators, measured=measured)
            save(self._core, Path(path), options, known)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        clock: Clock = utc_now,
        on_problem: OnProblem = warn_problem,
        limits: Limits | None = None,
        operators: Iterable[Operator] = (),
    ) -> Self:
        """Open a saved engine.

        The file is not needed afterwards, and nothing in it is executed. Open only files that you
        trust: a checksum detects damage, but not deliberate changes.

        Parameters
        ----------
        clock, on_problem
            As for a new engine: they are not in the file.
        limits
            As for a new engine; by default those of the saved engine.
        operators
            As for a new engine. All operators of the saved engine are required; the file has their
            statistics.

        Raises
        ------
        SavedError
            If the file is not a snapshot, is from another version or is damaged, or an operator of
            the saved engine is missing.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> engine = Engine()
        >>> engine.subscribe("alice", "ASK { ?x a <urn:Laptop> }")
        >>> with TemporaryDirectory() as folder:
        ...     engine.save(f"{folder}/saved")
        ...     again = Engine.open(f"{folder}/saved")
        >>> "alice" in again
        True
        """
        from graphmatch.saving import opened, read

        path = Path(path)
        calls = OperatorEvaluator(operators, on_problem)
        core, options, known = opened(path, limits, calls.rows)
        entailment = Entailment(options.entailment)
        engine = cls.__new__(cls)
        engine._begin(core, entailment, clock, on_problem, options.limits, calls)
        versions = {iri: version for iri, (version, *_) in options.operators.items()}
        same = [one.iri for one in engine.operators if versions.get(one.iri) == one.version]
        calls.learn(path, options.measured, same)

        def make() -> Known:
            return engine._made(*read(path, known, options.synonyms))

        engine._known = Knowledge(make, engine.entailment, core=core)
        engine._saved = options, known
        core.attach_enricher(engine._known)
        return engine


class _Reading(NamedTuple):
    """Options for reading documents.

    Parameters
    ----------
    cut, syntax, base
        As for `Engine.filter`.
    on_problem
        Called for each problem of a document.
    """

    cut: Cut
    syntax: RdfFormat | None
    base: str | None
    on_problem: OnProblem

    @property
    def extension(self) -> str | None:
        """The syntax, as a file extension."""
        return None if self.syntax is None else self.syntax.file_extension

    def tell(self, faults: Iterable[Fault], name: str) -> None:
        """Report the faults of a document."""
        for fault in faults:
            self.on_problem(problem_of(fault, name))


def _unexplained(id: str, publication: str, why: str) -> Problem:
    """Return the problem of a subscription whose evaluation failed for an explanation."""
    remedy = "Simplify the query or the publication, or raise the limit."
    what = f"{id}: cannot be explained: {why}"
    return Problem(what, Place(publication), remedy, Severity.WARNING)


def _asked(ask: Callable[[str], _Taken], id: str) -> _Taken | None:
    """Ask the core about an id; return ``None`` if it is not Unicode, and so unknown."""
    try:
        return ask(id)
    except UnicodeEncodeError:
        return None


def _row(subscription: object, query: object = None) -> tuple[str, str, str]:
    """Return the id, the text and the comment of a subscription."""
    if isinstance(subscription, Subscription):
        return subscription.id, subscription.query.text, subscription.comment
    if not isinstance(subscription, str) or not isinstance(query, str | Query):
        what = f"a subscription is an id and a query, not {shown(subscription)} and {shown(query)}"
        raise TypeError(f"{what}. Write subscribe('alice', 'SELECT …').")
    return subscription, query if isinstance(query, str) else query.text, ""


def _error_of(error: Exception, id: str, text: str = "") -> GraphMatchError:
    """Convert a core error about a subscription."""
    if isinstance(error, _native.DuplicateIdError):
        return DuplicateError(id)
    assert isinstance(error, _native.InvalidSubscriptionError)
    return refusal(id, error, text)

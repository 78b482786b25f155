"""The engine: it matches publications against subscriptions over an ontology.

The pipeline of a publication is `Engine.match`:

    read → enrich (concepts, root terms, units, rules, mapping functions) → index → solutions
         → evaluate the residual → report

The compiled core (`graphmatch._native`) does most of it. Python reads feeds, makes the calls of
operators (`graphmatch.operators`), and, for publications with a term that needs them, converts
units and runs mapping functions (`graphmatch.enrichment`).

`Engine` has the public methods. `graphmatch.registration` adds subscriptions,
`graphmatch.documents` matches documents and tables, `graphmatch.explain` gives reasons, and
`graphmatch.snapshot` writes snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from pyoxigraph import RdfFormat

from graphmatch import _native, documents, registration
from graphmatch.enrichment import (
    ITEM,
    PREPARED,
    EnrichedPublication,
    Enricher,
    Entailment,
    OntologyAndAnnotator,
    OntologyUpdate,
    ordered,
)
from graphmatch.matcher import Capabilities, Matcher, UnknownSubscriptionError
from graphmatch.operators.evaluator import Calls, CallSession, OperatorEvaluator
from graphmatch.operators.operator import Operator
from graphmatch.report import (
    CoreMatches,
    EventReports,
    MatchReport,
    MatchReports,
    contradictory,
    read_again,
    report_of,
)
from graphmatch.subscription import Query, Subscription, SubscriptionParser
from semantic.annotation.annotate import Annotator
from semantic.clock import Clock, moment, utc_now
from semantic.errors import (
    GraphMatchError,
    OnProblem,
    Place,
    Problem,
    Severity,
    plural,
    shown,
    warn_problem,
)
from semantic.files import plain
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.ontology import Ontology
from semantic.progress import OnProgress, Progress, ignore
from semantic.publication import Publication
from semantic.reading import SplitBy, check_base, id_of, publication_of
from semantic.syntax_detection import format_of_media_type
from semantic.terms import Triple
from semantic.vocabulary import PREFIXES, TYPE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graphmatch.explain.evidence import Evidence
    from graphmatch.explain.explanation import Explanation
    from graphmatch.explain.index_plan import IndexPlan
    from graphmatch.lint import LintWarning
    from graphmatch.prepared import PreparedQuery
    from graphmatch.snapshot import SavedEngine, SnapshotOptions
    from semantic.arrow import ArrowStream
    from semantic.attributes.bulk import SubscriptionBatch, TableRow
    from semantic.attributes.events import Event

_Taken = TypeVar("_Taken")
_READ = (
    "Make one by Publication.of(id, triples) or Publication.from_rdflib(graph); "
    "filter(source) and read_publications(source) read documents and datasets."
)
_AT_ONCE = 8192
"""Maximum number of subscriptions added between two publications."""


class Engine(Matcher):
    """Matcher of publications and standing SPARQL subscriptions over an ontology.

    Parameters
    ----------
    ontology
        The ontology; an empty one by default.
    entailment
        ``"rdfs"`` to match also triples that follow by RDFS and the ontology, ``"owl-rl"`` to apply
        OWL 2 RL, too, ``"none"`` to match only stated triples (docs/reference/semantics.md).
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

    Attributes
    ----------
    entailment, limits
        As passed to the engine.
    parser
        The parser for the engine's queries.

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
        _known: OntologyAndAnnotator | None = None,
        _saved: SavedEngine | None = None,
    ) -> None:
        if not isinstance(ontology, Ontology | None):
            what = f"the ontology is {shown(ontology)}"
            raise TypeError(f"{what}. Load it from its files: Engine(Ontology.load('news.ttl')).")
        if _saved is not None:
            entailment, limits = _saved.options.entailment, _saved.options.limits
        self._operators = OperatorEvaluator(operators, on_problem)
        self.entailment = Entailment(entailment)
        self.limits, self._clock, self._on_problem = limits, clock, on_problem
        rows = self._operators.rows
        self.parser = SubscriptionParser(limits=limits, operators=rows)
        self._changing = RLock()
        self._saved: tuple[SnapshotOptions, bytes] | None = None
        """Saved options and ontology, valid until the ontology changes."""
        if _saved is None:
            self._core = _native.Core(list(PREFIXES.items()), limits, rows)
            known = _known or OntologyAndAnnotator.of(ontology or Ontology(), annotator)
            self._enricher = Enricher(known, self.entailment, core=self._core)
            self._core.set_ontology(self._enricher, self._enricher.stated(None))
            self._report_ontology()
        else:
            self._core, self._saved = _saved.core, (_saved.options, _saved.ontology)
            _saved.restore_statistics(self._operators)
            self._enricher = Enricher(_known or _saved.known, self.entailment, core=self._core)
            self._core.attach_enricher(self._enricher)
        self._operators.attach(self._core, limits)

    @property
    def ontology(self) -> Ontology:
        """The engine's ontology."""
        return self._enricher.ontology

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The functions that subscriptions may call."""
        return self._operators.all

    @property
    def annotator(self) -> Annotator | None:
        """The annotator passed to the engine, or ``None``."""
        return self._enricher.own_annotator

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """The subscriptions, in the order in which they were added."""
        with self._changing:
            return tuple(map(self.subscription, self._core.ids()))

    def ids_of(self, numbers: NDArray[np.uint32]) -> list[str | None]:
        """Return the ids of subscriptions by their numbers in reports; ``None`` if unknown.

        A number is reused only after its subscription was removed.
        """
        return self._core.ids_of(numbers)

    def subscription(self, id: str) -> Subscription:
        """Return a subscription as it was submitted.

        Raises
        ------
        UnknownSubscriptionError
            If the id is unknown.
        """
        found = _asked(self._core.subscription, id)
        if found is None:
            raise UnknownSubscriptionError(id)
        text, comment = found
        return self.parser.parse(id, text, comment)

    def __len__(self) -> int:
        return len(self._core)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and bool(_asked(self._core.__contains__, id))

    def _repr_html_(self) -> str:
        import numpy as np

        from semantic import html

        with self._changing:
            count, ontology = len(self), self.ontology.counts
            few = np.arange(_AT_ONCE, dtype=np.uint32)  # All ids would take 0.3 s for a million.
            ids = [*filter(None, self._core.ids_of(few))][: html.FIRST]
            if len(ids) < min(count, html.FIRST):
                ids = self._core.ids()[: html.FIRST]
            found = ((id, self._core.subscription(id)) for id in ids)
            rows = [(id, *reversed(texts)) for id, texts in found if texts is not None]
        facts = [plural(count, "subscription"), f"entailment {self.entailment}"]
        facts += [plural(len(self.operators), "operator")] if self.operators else []
        headings = ("subscription", "comment", "query")
        about = html.outline([f"Ontology: {ontology}"])
        return html.block("Engine", facts, *about, html.table(headings, rows, count))

    def _follow_subscriptions(self) -> None:
        """Adapt operators and enrichment to the subscriptions, after some were added.

        The indexes of operators get the constants of their calls. Feed items get ``gm:words``, and
        quantities a unit, as soon as a subscription uses them.
        """
        self._operators.follow(self._core)
        if self._enricher.adapt():
            *_, waiting = self._adopt(self._enricher)
            registration.add_again(self._core, self._rewritten, waiting)

    # -- subscriptions ----------------------------------------------------------------------

    def subscribe(self, subscription: Subscription | str, query: str | None = None) -> None:
        """Add a subscription: an id and SPARQL text, or a parsed `Subscription`.

        Raises
        ------
        SubscriptionError
            If the text is not a valid subscription; with line and column. Also if one of its units
            is unknown or incompatible with the attribute.
        DuplicateSubscriptionError
            If the id is taken.
        """
        with self._changing:
            self._add(*registration.row_of(subscription, query))
            self._follow_subscriptions()
        self._operators.report_problems()

    def replace(self, subscription: Subscription | str, query: str | None = None) -> None:
        """Replace the subscription with the same id, and keep its place in the order.

        Raises
        ------
        UnknownSubscriptionError
            If the id is unknown.
        SubscriptionError
            As for `subscribe`; the old subscription then stays.
        """
        id, text, comment = registration.row_of(subscription, query)
        with self._changing:
            found = self._add(id, text, comment, replaces=True)
            self._follow_subscriptions()
        self._operators.report_problems()
        if not found:
            raise UnknownSubscriptionError(id)

    def _add(self, id: str, text: str, comment: str, *, replaces: bool = False) -> bool:
        return registration.add(self._core, self._rewritten, id, text, comment, replaces=replaces)

    def _rewritten(self, id: str, text: str) -> list[str]:
        return self._enricher.rewritten_constants(self.parser, id, text)

    def unsubscribe(self, id: str) -> None:
        """Remove a subscription.

        Raises
        ------
        UnknownSubscriptionError
            If the id is unknown.
        """
        with self._changing:
            if not _asked(self._core.unsubscribe, id):
                raise UnknownSubscriptionError(id)
            self._operators.follow(self._core)
        self._operators.report_problems()

    # -- bulk loading -----------------------------------------------------------------------

    def subscribe_many(
        self,
        rows: Iterable[Subscription | tuple[str, str | Query]],
        on_progress: OnProgress = ignore,
    ) -> tuple[GraphMatchError, ...]:
        """Add many subscriptions, much faster than one by one.

        Parameters
        ----------
        rows
            Ids with SPARQL texts or queries, or parsed subscriptions. Publications are matched
            between batches.
        on_progress
            Called after each batch with a `Progress`; the total is known if `rows` has a length.

        Returns
        -------
        refused
            The errors of invalid subscriptions, as `subscribe` would raise them, in order. All
            others were added.
        """
        given = (
            registration.row_of(*row)
            if isinstance(row, tuple | list) and len(row) == 2
            else registration.row_of(row)
            for row in rows
        )
        total = len(rows) if isinstance(rows, Sized) else None
        return self._subscribe_rows(_in_parts(given), total, on_progress)

    def _subscribe_rows(
        self,
        parts: Iterable[tuple[int, Sequence[TableRow]]],
        total: int | None,
        on_progress: OnProgress,
    ) -> tuple[GraphMatchError, ...]:
        """Add parts of all subscriptions, each with its number of rows.

        Return their errors and those among the rows, in order.
        """
        refused: list[GraphMatchError] = []
        done = 0
        for count, rows in parts:
            with self._changing:
                refused += registration.add_many(self._core, self._rewritten, rows)
                self._follow_subscriptions()
            self._operators.report_problems()
            done += count
            on_progress(Progress("subscriptions", done, total))
        return tuple(refused)

    def subscribe_table(
        self,
        table: ArrowStream,
        id: str = "id",
        query: str = "query",
        on_progress: OnProgress = ignore,
    ) -> tuple[GraphMatchError, ...]:
        """Add the subscriptions in an Arrow table, one per row.

        If the table has a column of SPARQL texts, these are the subscriptions. Otherwise, each
        column name is an attribute, or an attribute, a space and an operator: ``brand``,
        ``price <=``, ``target isa``. Null adds no constraint.

        Parameters
        ----------
        table
            A table of pyarrow, pandas or polars: any object with ``__arrow_c_stream__``.
        id, query
            The columns of ids and of SPARQL texts.
        on_progress
            Called after each batch with a `Progress`.

        Returns
        -------
        refused
            The errors of invalid rows, in order; all others were added.

        Raises
        ------
        InputError
            If the column of ids is missing, or a column name is invalid. Then no row was added.
        """
        from semantic.arrow import texts_of_table, to_table
        from semantic.attributes.bulk import rows_of_table

        table = to_table(table)
        parts: Iterable[tuple[int, Sequence[TableRow]]] = (
            _in_parts((*row, "") for row in texts_of_table(table, id, query))
            if query in table.column_names
            else rows_of_table(table, id, _AT_ONCE)
        )
        return self._subscribe_rows(parts, table.num_rows, on_progress)

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
        """
        from graphmatch.prepared import prepared

        return prepared(self._core, query, parameters, self._add_batch)

    def _add_batch(self, rows: SubscriptionBatch) -> list[tuple[int, GraphMatchError]]:
        """Add a batch; return the places in `rows.chosen` and the errors of invalid rows."""
        with self._changing:
            refused = list(registration.add_batch(self._core, self._rewritten, rows))
            self._follow_subscriptions()
        self._operators.report_problems()
        return refused

    def lint(self, *ids: str) -> Iterator[LintWarning]:
        """Yield probable mistakes in subscriptions, such as a class that doesn't exist.

        Cost: about 0.5 ms for each query; see `graphmatch.lint`.

        Parameters
        ----------
        ids
            The subscriptions to check, all by default; duplicates are found among these.

        Raises
        ------
        UnknownSubscriptionError
            If an id is unknown.
        """
        from graphmatch.lint import Linter

        linter = Linter(self.ontology)
        for id in ids or self._core.ids():
            yield from linter.lint(self.subscription(id))

    # -- ontology ---------------------------------------------------------------------------

    def replace_ontology(
        self, ontology: Ontology, annotator: Annotator | None = None
    ) -> OntologyUpdate:
        """Replace the ontology.

        The engine prepares the new ontology while it still matches by the old one, and switches
        between two publications. It reindexes only the subscriptions that the difference affects.

        Parameters
        ----------
        annotator
            An annotator for the new ontology; by default the one passed to the engine, if any.
        """
        with self._changing:
            before = self._enricher
            known = OntologyAndAnnotator.of(
                ontology, annotator or before.own_annotator, before.annotator
            )
            enricher = Enricher(known, self.entailment, core=self._core)
            triples, names, reindexed, waiting = self._adopt(enricher)
            problems = registration.add_again(self._core, self._rewritten, waiting)
            self._operators.follow(self._core)
        self._operators.report_problems()
        for problem in problems:  # Only now, because the callback may use the engine.
            self._on_problem(problem)
        return OntologyUpdate(triples, names, len(reindexed))

    def _adopt(self, enricher: Enricher) -> tuple[int, int, list[str], list[str]]:
        """Switch to another enricher: pass its ontology to the core, and drop the saved ontology.

        Returns
        -------
        triples, names
            The numbers of changed triples and names.
        reindexed, waiting
            The subscriptions that were reindexed, and those that need units or classes resolved
            first.
        """
        change = self._core.set_ontology(enricher, enricher.stated(self._enricher))
        self._enricher, self._saved = enricher, None
        self._report_ontology()
        return change

    def _report_ontology(self) -> None:
        contradictions, is_truncated = self._core.contradictions()
        types, prefixes = self.ontology.of(TYPE), self.ontology.prefixes
        for found in contradictions:
            self._on_problem(contradictory(Place("ontology"), found, types, prefixes))
        if is_truncated:
            what = "it is incomplete: its rules derive too many triples, or take too long"
            remedy = "Use a smaller ontology, or the entailment `rdfs`."
            self._on_problem(Problem(what, Place("ontology"), remedy, Severity.WARNING))

    def update_ontology(
        self, added: Iterable[Triple] = (), removed: Iterable[Triple] = ()
    ) -> OntologyUpdate:
        """Replace the ontology by one with triples added and removed; see `Ontology.update`."""
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
        """Return the report of a publication; first run the steps in Python that the core requests.

        `found` is the core's report or its first request. `publication` is ``None`` if only the
        core has its triples. `source` is its document. Problems are passed to `on_problem`.
        """
        enriched: EnrichedPublication | None = None
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
            enricher: Enricher = found.enricher
            steps |= found.steps
            if found.steps & ITEM:  # From now on, the core finds labels and words.
                self._core.set_annotator(enricher.annotator.native, found.version)
            triples, prepared = publication.rows, None
            if steps != ITEM:
                enriched = enricher.prepare(publication, steps, now)
                triples, stated, shown = ordered(enriched.publication)
                prepared = stated, shown, PREPARED | steps
            calls = None if asked is None else asked.native
            id, time = plain(publication.id), moment(now)
            found = self._core.match_triples(id, triples, time, prepared, found, calls)
        undecided = self._operators.undecided(found, asked)
        origin: Callable[[], Publication | None]
        if publication is None:
            id, origin = id_of(found.publication, source), partial(read_again, found, source)
        else:
            id, origin = publication.id, lambda: publication
        made = () if asked is None else Calls(asked.made)
        recalled = 0 if asked is None else asked.recalled
        outcome = made, recalled, undecided, self.ontology.prefixes
        report = report_of(id, found, self._core, self._on_problem, enriched, origin, *outcome)
        for problem in report.problems:
            self._on_problem(problem)
        return report

    def filter(
        self,
        source: documents.Document,
        format: str | None = None,
        split_by: SplitBy | str = SplitBy.AUTO,
        base: str | None = None,
        name: str | None = None,
    ) -> MatchReports:
        r"""Match the publications of documents as they are read.

        The items of a feed are matched one by one, as are the parts of a document that is split by
        items, subjects or components. Other publications are matched in batches, to reduce waiting
        between threads. The next reports may therefore lack subscriptions that were added after
        the last one. Their triples become Python objects only if units, mapping functions or
        operators need them.

        Parameters
        ----------
        source
            A document as bytes or as an open binary file. Also the name of a file or a folder (all
            files in it), ``"-"`` for standard input, an `rdflib.Graph` or an `rdflib.Dataset`.
        format
            Media type or extension of the RDF syntax, if neither name nor content shows it.
        split_by
            How to split a document into publications; see `semantic.reading`.
        base
            Base IRI; without one, relative IRIs are errors.
        name
            Name of the document in messages. A document that names no graph also gets it as its
            publication's id. The default is the file's name, or ``<memory>`` for bytes.

        Returns
        -------
        reports
            An iterator with one report per publication, made on demand; `MatchReport.read` returns
            the publication if something matches it.

        Raises
        ------
        InputError
            Before reading, if `format` or `split_by` is unknown, the base is not an absolute IRI,
            or the file does not exist.

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
        syntax = None if format is None else format_of_media_type(format)
        via = self._pipeline(SplitBy(split_by), syntax, base)
        if base is not None:
            check_base(base)
        if isinstance(source, bytes):
            return MatchReports(documents.match_bytes(source, name or "<memory>", via))
        return MatchReports(documents.match_source(source, name, via))

    def _pipeline(
        self,
        split_by: SplitBy = SplitBy.DOCUMENT,
        syntax: RdfFormat | None = None,
        base: str | None = None,
    ) -> documents.Pipeline:
        """Return the parts of this engine that match a document, with the options of its reader."""
        parts = self._core, self._clock, self.limits, self._on_problem, self.match, self._reported
        return documents.Pipeline._make((*parts, split_by, syntax, base))

    def match_table(self, table: ArrowStream) -> MatchReports:
        """Match the publications of an Arrow table, lazily, in the order of their first rows.

        Invalid rows are reported (`on_problem`) and skipped. Rows do not become Python objects.

        Parameters
        ----------
        table
            A table of pyarrow, pandas or polars with the columns ``publication``, ``subject``,
            ``predicate``, ``object``. Terms are N-Triples, as texts or dictionary-encoded.

        Raises
        ------
        InputError
            If a column is missing.
        """
        return MatchReports(documents.match_table(table, self._pipeline()))

    def match_events(self, table: ArrowStream, id: str = "id") -> EventReports:
        """Match the events of an Arrow table, with one event per row and one attribute per column.

        Parameters
        ----------
        table
            A table of pyarrow, pandas or polars. Structs are paths, lists are several values, and
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
        """
        return documents.match_events(table, id, self._pipeline())

    def enrich(self, publication: Publication) -> Publication:
        """Return the publication with all derived triples: concepts, roots, units, rules.

        Matching itself derives only the triples that subscriptions ask for.
        """
        with self._changing:
            enriched = self._enricher.enrich(publication, self._clock())
        for problem in enriched.problems:
            self._on_problem(problem)
        return enriched.publication

    def operator_calls(self, id: str) -> tuple[str, ...]:
        """Return a line for each operator that a subscription calls, with its cost.

        Raises
        ------
        UnknownSubscriptionError
            If the id is unknown.
        """
        return tuple(self._operators.describe(self.subscription(id)))

    # -- explanations -----------------------------------------------------------------------

    def index_plan(self, id: str) -> IndexPlan:
        """Return the index plan of a subscription, with its residual.

        Raises
        ------
        UnknownSubscriptionError
            If the id is unknown.
        """
        from graphmatch.explain.index_plan import IndexPlan

        plan = _asked(self._core.index_plan, id)
        if plan is None:
            raise UnknownSubscriptionError(id)
        return IndexPlan.of(id, plan)

    def explain(self, id: str, publication: Publication, language: str = "en") -> Explanation:
        """Explain why a subscription matches a publication, or which condition fails first.

        Parameters
        ----------
        language
            The reader's language, for the labels of terms.

        Raises
        ------
        UnknownSubscriptionError
            If the id of the subscription is unknown.
        GraphMatchError
            If the query cannot be evaluated, for example because of a limit.
        """
        from graphmatch.explain.reasons import explained

        with self._changing:
            plan = self.index_plan(id)
            report = self.match(publication)
            parts = self._enricher, self._operators, self._clock()
            return explained(plan, report, publication, *parts, language)

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

        Raises
        ------
        GraphMatchError
            If another engine made the report, or too many subscriptions changed since.
        """
        from graphmatch.explain.reasons import evidence_of

        matches = getattr(report, "matches", None)
        if not isinstance(matches, CoreMatches):
            what = f"evidence takes a report of an Engine, not {shown(report)}"
            raise TypeError(f"{what}. Write engine.evidence(engine.match(publication)).")
        chosen = [subscriptions] if isinstance(subscriptions, str) else subscriptions
        parts = self._core, self._operators, self.limits, self._on_problem
        return evidence_of(report, matches, chosen, *parts, language)

    # -- copies -----------------------------------------------------------------------------

    def empty_copy(self, *, clock: Clock = utc_now, on_problem: OnProblem = warn_problem) -> Engine:
        """Return an engine with the same ontology and no subscriptions.

        Ontology, annotator, operators and limits are shared, so both engines treat a subscription
        alike. Cost: passing the ontology to the core, 0.1 s for that of DBpedia. The parameters are
        those of a new engine.
        """
        return Engine(
            entailment=self.entailment,
            clock=clock,
            on_problem=on_problem,
            limits=self.limits,
            operators=self.operators,
            _known=self._enricher.known,
        )

    def copy(self, *, clock: Clock = utc_now, on_problem: OnProblem = warn_problem) -> Engine:
        """Return an independent copy of this engine, made through a snapshot.

        The parameters are those of a new engine. Errors are those of `save`.
        """
        from tempfile import TemporaryDirectory

        from graphmatch.snapshot import opened

        with TemporaryDirectory() as folder, self._changing:
            self.save(path := Path(folder, "engine"))
            saved = opened(path, self.limits, self.operators)
            known = self._enricher.known
        return Engine(
            clock=clock, on_problem=on_problem, operators=self.operators, _known=known, _saved=saved
        )

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
        from graphmatch.snapshot import SnapshotOptions, save, written

        with self._changing:
            if self._saved is None:
                synonyms = self.ontology.roots.options
                options = SnapshotOptions(self.entailment.value, synonyms, self.limits)
                self._saved = options, written(self.ontology, self.annotator)
            save(self._core, Path(path), *self._saved, self._operators)

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
            By default, those of the saved engine.
        operators
            All operators of the saved engine, and perhaps more.

        Raises
        ------
        SavedError
            If the file is not a snapshot, is from another version or is damaged, or an operator of
            the saved engine is missing.
        """
        from graphmatch.snapshot import opened

        operators = tuple(operators)
        saved = opened(Path(path), limits, operators)
        return cls(clock=clock, on_problem=on_problem, operators=operators, _saved=saved)


def _in_parts(rows: Iterable[registration.Row]) -> Iterator[tuple[int, list[registration.Row]]]:
    """Yield the rows in parts that are added at once, and the number of rows of each part."""
    rest = iter(rows)
    while some := list(islice(rest, _AT_ONCE)):
        yield len(some), some


def _asked(ask: Callable[[str], _Taken], id: str) -> _Taken | None:
    """Return ``ask(id)``, or ``None`` if the id is not valid Unicode, and therefore unknown."""
    try:
        return ask(id)
    except UnicodeEncodeError:
        return None

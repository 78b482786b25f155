"""The engine: subscriptions and an ontology in, publications through, matches out.

A publication's way is `Engine.match`:

    read → enrich (concepts, synonyms, units, mapping functions, is-a) → index → solutions
         → what the index can't decide → matches

The subscriptions are in `Standing`, the ontology is in `Knowledge`; the engine keeps
them together while both change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from threading import RLock
from time import sleep
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from graphmatch.explain import Evidence, Explanation, evidence, explain
from graphmatch.filing import Filed
from graphmatch.intake import Intake, parts, regrouped
from graphmatch.knowledge import Change, Entailment, Knowledge
from graphmatch.matcher import Capabilities, DuplicateError, Match, Matcher, MatchReport
from graphmatch.provenance import Provenance
from graphmatch.saving import opened, save
from graphmatch.standing import Standing
from graphmatch.turn import Turn
from semantic.annotation.annotate import Annotator, Label
from semantic.attributes.arrow import ArrowBatch, ArrowTable, texts_of_table
from semantic.attributes.bulk import grouped_attribute_rows
from semantic.attributes.subscription import AttributeParser
from semantic.attributes.tables import grouped_attribute_table
from semantic.errors import GraphMatchError, OnProblem, Problem, warn_problem
from semantic.evaluation import Evaluation
from semantic.mentions import Mentions
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.sparql.clock import Clock, utc_now
from semantic.sparql.columns import Grouped
from semantic.sparql.parse import SubscriptionParser
from semantic.sparql.query import Query
from semantic.subscription import Subscription
from semantic.tables import publications_of_table
from semantic.terms import Triple

_FEW, _SHARE = 100, 20
"""A change that concerns at most so many subscriptions, or one of so many, is made in place."""

_AT_ONCE = 8192
"""So many subscriptions are taken in between two publications."""

_AT_A_BREATH, _BREATH_SECONDS = 512, 0.0001
"""While many are filed anew, after so many others may go on for so long: a thread that comes back
from the evaluator would otherwise wait for the interpreter's lock each time."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One publication, ready for questions: why, and why not."""

    standing: Standing
    evaluation: Evaluation
    provenance: Provenance
    now: datetime


class Engine(Matcher):
    """Matches publications against standing SPARQL subscriptions over an ontology.

    Parameters
    ----------
    ontology
        What is known; an empty one by default.
    entailment
        ``"rdfs"``, or ``"none"`` to take publications as they are
        (docs/reference/semantics.md).
    annotator
        Finds the ontology's labels in feed items; one over `Ontology.labels` by default.
    clock
        Says what ``NOW()`` is, once a publication.
    on_problem
        Called with what of a publication cannot be used (an unknown unit, say), and with
        mapping functions that fail.

    It may be used from several threads: publications are matched at the same time, and
    changes are made while none is.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
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
    ) -> None:
        self._entailment = Entailment(entailment)
        self._own_annotator = annotator
        self._clock = clock
        self._on_problem = on_problem
        self.parser = SubscriptionParser()
        self._attributes = AttributeParser(self.parser)
        self._changing = RLock()
        self._turn = Turn()
        self._labels: tuple[list[Label], Annotator] | None = None
        self._standing = Standing(self._know(ontology or Ontology(), annotator))

    def _know(self, ontology: Ontology, annotator: Annotator | None) -> Knowledge:
        annotator = annotator or self._annotator_for(ontology.labels())
        return Knowledge(ontology, self._entailment, annotator)

    @property
    def ontology(self) -> Ontology:
        """What the engine knows."""
        return self._standing.knowledge.ontology

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """The subscriptions, in the order of subscribing."""
        with self._changing:
            return tuple(self._standing)

    def __len__(self) -> int:
        with self._turn.shared():
            return len(self._standing)

    def __contains__(self, id: object) -> bool:
        with self._turn.shared():
            return id in self._standing

    # -- change -----------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription | str, query: str | None = None) -> None:
        """Take a subscription in: an id and SPARQL text, or a parsed `Subscription`.

        Raises
        ------
        SubscriptionError
            When the text cannot be a subscription; with its line and column. When a unit in it
            is unknown, or incompatible with its attribute's.
        DuplicateError
            When the id is taken.
        """
        with self._changing:
            if isinstance(subscription, str):
                subscription = self.parser.parse(subscription, query or "")
            if subscription.id in self._standing:
                raise DuplicateError(subscription.id)
            with self._turn.alone():
                self._standing.add(subscription)

    def subscribe_many(
        self, rows: Iterable[Subscription | tuple[str, str | Query]]
    ) -> tuple[GraphMatchError, ...]:
        """Take many subscriptions in: a tenth of the work of taking them in one by one.

        Parameters
        ----------
        rows
            Ids with SPARQL texts or queries, or parsed subscriptions. Publications are matched in
            between.

        Returns
        -------
        refused
            Why some were not taken in, in their order: the errors that `subscribe` would raise. The
            others were.

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
        while some := list(islice(rest, _AT_ONCE)):
            comments = {
                n: one.comment
                for n, one in enumerate(some)
                if isinstance(one, Subscription) and one.comment
            }
            with self._changing:
                grouped = self.parser.group(
                    (one.id, one.query) if isinstance(one, Subscription) else one for one in some
                )
                refused += self._take_in(grouped, comments)
        return tuple(refused)

    def subscribe_table(
        self, table: ArrowTable | ArrowBatch, id: str = "id", query: str = "query"
    ) -> tuple[GraphMatchError, ...]:
        """Take many subscriptions in that are rows of an Arrow table.

        A table with a column of SPARQL texts has these as its subscriptions. The columns of any
        other are attributes, or an attribute, a space and an operator: ``brand``, ``price <=``,
        ``target isa``; a row constrains those in which it has a value.

        Parameters
        ----------
        table
            A ``pyarrow.Table`` or ``RecordBatch``.
        id, query
            The columns of ids and of SPARQL texts.

        Returns
        -------
        refused
            Why some were not taken in, in their order; the others were.

        Raises
        ------
        InputError
            When there is no column of ids, or a column's name is no constraint.
        """
        if query in table.schema.names:
            return self.subscribe_many(texts_of_table(table, id, query))
        with self._changing:
            grouped = grouped_attribute_table(table, parser=self._attributes, id=id)
            return tuple(self._take_in(grouped))

    def subscribe_lines(self, path: str | Path) -> tuple[GraphMatchError, ...]:
        """Take many attribute subscriptions in: ``{"id": …, "where": {…}}``, one a line.

        Lines that are no subscription are reported (`on_problem`), and the rest goes on.

        Returns
        -------
        refused
            Why some of the others were not taken in, in their order.

        Raises
        ------
        OSError
            When the file cannot be read.
        """
        refused: list[GraphMatchError] = []
        with self._changing:
            for grouped in grouped_attribute_rows(
                path, parser=self._attributes, on_problem=self._on_problem
            ):
                refused += self._take_in(grouped)
        return tuple(refused)

    def _take_in(
        self, grouped: Grouped, comments: Mapping[int, str] = MappingProxyType({})
    ) -> list[GraphMatchError]:
        """Take subscriptions in, some at a time; return why some were refused."""
        refused: list[GraphMatchError] = []
        for begin, some in parts(grouped, _AT_ONCE):
            own = {row - begin: said for row, said in comments.items()} if comments else comments
            with self._turn.alone():
                standing = self._standing
                serials = standing.store.next_serial + np.arange(_AT_ONCE)
                intake = Intake(standing, standing.add, own)
                refused += (error for _, error in intake.take_in(some, serials))
        return refused

    def replace(self, subscription: Subscription | str, query: str | None = None) -> None:
        """Put a subscription in the place of the one that has its id: also in the order.

        Raises
        ------
        UnknownError
            When there is none with this id.
        SubscriptionError
            As `subscribe`; then the one that is there stays.
        """
        with self._changing:
            if isinstance(subscription, str):
                subscription = self.parser.parse(subscription, query or "")
            with self._turn.alone():
                self._standing.replace(subscription)

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription.

        Raises
        ------
        UnknownError
            When there is none with this id.
        """
        with self._changing, self._turn.alone():
            self._standing.remove(id)

    def replace_ontology(self, ontology: Ontology, annotator: Annotator | None = None) -> Change:
        """Go on with another ontology.

        Everything is made ready while publications are still matched by the old one; the step
        from the old to the new is taken between two publications. Of the subscriptions those
        are filed anew that the difference concerns.

        Parameters
        ----------
        annotator
            One for the new ontology; by default the one that the engine was given, if any.
        """
        with self._changing:
            old = self._standing
            knowledge = self._know(ontology, annotator or self._own_annotator)
            self._own_annotator = annotator or self._own_annotator
            knowledge.ask(old.mentions)
            knowledge.ask(Mentions(knowledge.mentions))
            difference = old.knowledge.difference(knowledge)
            concerned = old.concerned(difference)
            change = Change(len(difference.triples), len(difference.names), len(concerned))
            if len(concerned) <= max(_FEW, len(old) // _SHARE):
                problems: list[Problem] = []
                with self._turn.alone():
                    old.adopt(knowledge, concerned, problems.append)
                for problem in problems:  # not before: whoever is told may ask the engine
                    self._on_problem(problem)
                return change
            standing = self._filed_anew(old, knowledge)
            with self._turn.alone():
                self._standing = standing
            return change

    def _filed_anew(self, old: Standing, knowledge: Knowledge) -> Standing:
        """Return subscriptions as they are filed under other knowledge."""
        standing = Standing(knowledge)
        again = partial(standing.add_again, on_problem=self._on_problem)
        for some in old.chunks(_AT_A_BREATH):
            intake = Intake(standing, again, old.store.comments(some))
            intake.take_in(regrouped(old.store, some), old.store.serials(some))
            sleep(_BREATH_SECONDS)
        return standing

    def update_ontology(
        self, added: Iterable[Triple] = (), removed: Iterable[Triple] = ()
    ) -> Change:
        """Go on with the ontology amended by some triples; see `Ontology.update`."""
        with self._changing:
            return self.replace_ontology(self.ontology.update(added, removed))

    def _annotator_for(self, labels: list[Label]) -> Annotator:
        """Return an annotator for labels: the one at hand, if these have not changed."""
        if self._labels is None or self._labels[0] != labels:
            self._labels = labels, Annotator(labels)
        return self._labels[1]

    # -- saving -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Save all subscriptions to a folder, as they are filed; `open` takes them from there.

        The ontology is not saved. A folder that was saved to before is replaced.

        Raises
        ------
        SavedError
            When something else is there, or the folder cannot be written.
        """
        with self._changing:
            save(self._standing, Path(path))

    def open(self, path: str | Path) -> None:
        """Take in what was saved, where there are no subscriptions yet.

        It takes a moment if the ontology is the one that they were saved under; if not, they are
        filed anew.

        Raises
        ------
        SavedError
            When nothing was saved there, or it is damaged.
        ValueError
            When there are subscriptions already.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> engine, other = Engine(), Engine()
        >>> engine.subscribe("alice", "ASK { ?x a <urn:Laptop> }")
        >>> with TemporaryDirectory() as folder:
        ...     engine.save(f"{folder}/saved")
        ...     other.open(f"{folder}/saved")
        >>> "alice" in other
        True
        """
        with self._changing:
            if len(self):
                raise ValueError("there are subscriptions already: open them with a new engine")
            standing = Standing(self._standing.knowledge)
            if not opened(Path(path), standing, self.parser):
                standing = self._filed_anew(standing, self._standing.knowledge)
            with self._turn.alone():
                self._standing = standing

    # -- a publication's way ----------------------------------------------------------------

    def match(self, publication: Publication) -> MatchReport:
        """Say which subscriptions a publication matches, and with which solutions."""
        now = self._clock()
        with self._turn.shared():
            report = self._standing.match(publication, now)
        for problem in report.problems:  # not before, likewise
            self._on_problem(problem)
        return report

    def match_table(self, table: ArrowTable | ArrowBatch) -> Iterator[MatchReport]:
        """Match the publications of an Arrow table, lazily, in the order of their first rows.

        Rows that are no triple are reported (`on_problem`), and the rest goes on.

        Parameters
        ----------
        table
            A ``pyarrow.Table`` or ``RecordBatch`` with the columns ``publication``, ``subject``,
            ``predicate``, ``object``: terms as N-Triples has them, as texts or dictionary-encoded.

        Raises
        ------
        InputError
            When a column is missing.
        """
        return self.match_many(publications_of_table(table, on_problem=self._on_problem))

    def enrich(self, publication: Publication) -> Publication:
        """Return the publication with all that follows: concepts, roots, units, rules.

        Matching itself derives only what some subscription asks for.
        """
        now = self._clock()
        with self._turn.shared():
            enriched = self._standing.knowledge.enrich(publication, None, now)
        for problem in enriched.problems:
            self._on_problem(problem)
        return enriched.publication

    # -- why --------------------------------------------------------------------------------

    def filing(self, id: str) -> Filed:
        """Return how a subscription is filed: what is indexed and what is evaluated.

        Raises
        ------
        UnknownError
            When there is none with this id.
        """
        with self._turn.shared():
            return self._standing[id]

    def explain(self, id: str, publication: Publication) -> Explanation:
        """Say why a subscription matches a publication, or what fails first.

        Raises
        ------
        UnknownError
            When there is no subscription with this id.
        """
        with self._asking(publication) as asked:
            filed = asked.standing[id]
            report = asked.standing.match(publication, asked.now)
            match = next((m for m in report if m.subscription == id), None)
            provenance = asked.provenance
            return explain(filed, match, provenance.publication, asked.evaluation, provenance)

    def evidence(
        self, publication: Publication, matches: Iterable[Match]
    ) -> Mapping[str, tuple[Evidence, ...]]:
        """Return, by subscription, the triples that a match rests on, and why they hold."""
        several = tuple(matches)  # not in our turn: making them may take one
        with self._asking(publication) as asked:
            return {
                m.subscription: tuple(
                    evidence(asked.standing[m.subscription], m, asked.evaluation, asked.provenance)
                )
                for m in several
                if m.subscription in asked.standing  # it may have gone since
            }

    @contextmanager
    def _asking(self, publication: Publication) -> Iterator[_Asked]:
        """Prepare questions about one publication, with everything that follows from it."""
        now = self._clock()
        with self._turn.shared():
            standing = self._standing
            knowledge = standing.knowledge
            enriched = knowledge.enrich(publication, None, now)
            rdfs = self._entailment is Entailment.RDFS
            provenance = Provenance(knowledge.ontology if rdfs else Ontology(), enriched)
            with knowledge.evaluator.publication(enriched.publication, now) as evaluation:
                yield _Asked(standing, evaluation, provenance, now)

"""The engine: subscriptions and an ontology in, publications through, matches out.

A publication's way is `Engine.match`:

    read → enrich (concepts, synonyms, units, mapping functions, is-a) → index → solutions
         → what the index can't decide → matches

Subscriptions and ontology change while it runs: that is the business of `Keeper`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from graphmatch.bulk_constants import Constants
from graphmatch.explain import Evidence, Explanation, evidence, explain
from graphmatch.explaining.placement import placements
from graphmatch.filing import Filed
from graphmatch.intake import Intake, parts
from graphmatch.keeping import Keeper
from graphmatch.knowledge import Entailment
from graphmatch.matcher import Capabilities, Match, Matcher, MatchReport
from graphmatch.provenance import Provenance
from graphmatch.standing import Standing
from semantic.attributes.arrow import ArrowBatch, ArrowTable, texts_of_table
from semantic.attributes.bulk import grouped_attribute_rows
from semantic.attributes.tables import grouped_attribute_table
from semantic.attributes.uncollected import uncollected
from semantic.errors import GraphMatchError
from semantic.evaluation import Evaluation
from semantic.publication import Publication
from semantic.sparql.columns import Grouped
from semantic.sparql.query import Query
from semantic.subscription import Subscription
from semantic.tables import publications_of_table

_AT_ONCE = 8192
"""So many subscriptions are taken in between two publications."""
_READ = 8 * _AT_ONCE
"""So many are read before: what they have in common is looked at once."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One publication, ready for questions: why, and why not."""

    standing: Standing
    evaluation: Evaluation
    provenance: Provenance
    now: datetime


class Engine(Keeper, Matcher):
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

    # -- very many subscriptions ------------------------------------------------------------

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
        while some := list(islice(rest, _READ)):
            comments = {
                n: one.comment
                for n, one in enumerate(some)
                if isinstance(one, Subscription) and one.comment
            }
            with self._changing, uncollected():
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
        with self._changing, uncollected():
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
        standing, refused = self._standing, list[GraphMatchError]()
        constants = Constants(grouped.terms, standing.knowledge)
        intake = Intake(standing, constants, standing.add)
        ready = False
        while not ready:
            with self._turn.alone():
                ready = intake.prepare()
        for begin, some in parts(grouped, _AT_ONCE):
            rows = range(_AT_ONCE) if comments else ()
            own = {row: comments[begin + row] for row in rows if begin + row in comments}
            with self._turn.alone():
                serials = standing.store.next_serial + np.arange(_AT_ONCE)
                refused += (error for _, error in intake.take_in(some, serials, own))
        with self._turn.alone():
            intake.finish()
        return refused

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
            standing = asked.standing
            filed = standing[id]
            number = standing.store.number(id)
            placed = placements(filed, number, standing.index, standing.store)
            report = standing.match(publication, asked.now)
            match = next((m for m in report if m.subscription == id), None)
            return explain(filed, placed, match, asked.evaluation, asked.provenance)

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
            provenance = Provenance(knowledge.ontology, enriched, entailment=rdfs)
            with knowledge.evaluator.publication(enriched.publication, now) as evaluation:
                yield _Asked(standing, evaluation, provenance, now)

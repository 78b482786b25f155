"""The standing subscriptions of an engine: filed, indexed, and found again by what they say.

Subscriptions are numbers in columns (`graphmatch.index.store`); a `Subscription` is made of them
again when somebody asks for it.

A change of the ontology concerns a subscription when a term that it says has another
root, or when a triple that meets one of its patterns comes or goes: those decide how
it is filed. Both are looked up in the columns, so that a change costs what it concerns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import product

import numpy as np
from pyoxigraph import Literal

from graphmatch.answers import Answers, Decided
from graphmatch.decisions import Decisions
from graphmatch.filing import Filed, file, suspended
from graphmatch.index.found import Found
from graphmatch.index.index import Index
from graphmatch.index.plans import compiled
from graphmatch.index.records import Flag
from graphmatch.index.runs import Ids
from graphmatch.index.store import SubscriptionStore
from graphmatch.knowledge import Difference, Knowledge
from graphmatch.matcher import Counters, MatchReport, UnknownError
from semantic.enrichment import Enriched
from semantic.errors import OnProblem, Problem, SubscriptionError
from semantic.evaluation import Answer
from semantic.mentions import Mentions
from semantic.publication import Publication
from semantic.sparql.query import Mention
from semantic.subscription import Subscription
from semantic.terms import Term, Triple

_EXACT, _UNINDEXED = np.uint16(Flag.EXACT), Flag.UNINDEXED
_ANY = -1
"""A variable of a pattern that is looked up."""


class Standing:
    """Subscriptions filed under one state of knowledge.

    Parameters
    ----------
    knowledge
        What is known.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.mentions = Mentions(knowledge.mentions)
        knowledge.ask(self.mentions)
        self._relevance = knowledge.relevance(self.mentions)
        self.index = Index()
        self.store = SubscriptionStore(self.index.terms)

    def __len__(self) -> int:
        return len(self.store)

    def __contains__(self, id: object) -> bool:
        return id in self.store

    def __iter__(self) -> Iterator[Subscription]:
        """Yield the subscriptions in the order of subscribing."""
        return map(self._subscription, self.store.in_order(self.store.numbers()).tolist())

    def chunks(self, size: int) -> Iterator[Ids]:
        """Yield the numbers of all in the order of subscribing, so many at a time."""
        numbers = self.store.in_order(self.store.numbers())
        return (numbers[begin : begin + size] for begin in range(0, len(numbers), size))

    def __getitem__(self, id: str) -> Filed:
        """Return how a subscription is filed.

        Raises
        ------
        UnknownError
            When there is none with this id.
        """
        subscription = self._subscription(self._number(id))
        try:
            return self._file(subscription)
        except SubscriptionError as error:
            return suspended(subscription, error.problem.what)

    def _number(self, id: str) -> int:
        number = self.store.number(id)
        if number < 0:
            raise UnknownError(id)
        return number

    def _subscription(self, number: int) -> Subscription:
        store = self.store
        return Subscription.of(store.name(number), store.query(number), store.comment(number))

    # -- coming and going -------------------------------------------------------------------

    def add(self, subscription: Subscription, serial: int | None = None) -> None:
        """File a subscription.

        Parameters
        ----------
        serial
            Its place in the order of subscribing; the last one by default.

        Raises
        ------
        SubscriptionError
            When a unit in it is unknown, or incompatible with its attribute's.
        """
        filed = self._file(subscription)
        self.mentions.add(filed.query.mentions())
        if self.knowledge.ask(self.mentions):
            filed = self._file(subscription)
        self._keep(filed, _flags(filed), serial)

    def add_again(self, subscription: Subscription, serial: int, on_problem: OnProblem) -> None:
        """File a subscription anew that was filed under another state of knowledge.

        One that cannot be filed under this one (its unit does not go with its attribute's, say)
        is reported, kept, and matches nothing until the ontology changes again.
        """
        try:
            self.add(subscription, serial)
        except SubscriptionError as error:
            told = error.problem
            on_problem(Problem(f"{told.what}; it matches nothing now", told.where, told.remedy))
            self._keep(suspended(subscription, told.what), Flag.SUSPENDED, serial)

    def _keep(self, filed: Filed, flags: int, serial: int | None) -> None:
        said, put = filed.subscription.query, filed.query
        terms, index = self.index.terms, self.index
        constants = terms.take(said.constants)
        filed_with = terms.take(put.constants) if put.constants != said.constants else None
        rows: dict[int, None] = {}
        for entry in filed.entries:
            row = index.add(compiled(entry), any_will_do=filed.any_will_do)
            if row in rows:  # two of its entries are the same one
                index.remove(row)
            rows[row] = None
        self.store.add(
            filed.subscription.id,
            said.skeleton,
            constants,
            list(rows),
            flags,
            filed=filed_with,
            comment=filed.subscription.comment,
            serial=serial,
        )

    def _file(self, subscription: Subscription) -> Filed:
        knowledge = self.knowledge
        return file(subscription, knowledge.root, knowledge.evaluator, knowledge.units)

    def remove(self, id: str) -> None:
        """Take a subscription out.

        Raises
        ------
        UnknownError
            When there is none with this id.
        """
        self._drop(np.array([self._number(id)], np.int32))

    def replace(self, subscription: Subscription) -> None:
        """Put a subscription in the place of the one that has its id.

        Raises
        ------
        UnknownError
            When there is none with this id.
        SubscriptionError
            When it cannot be filed; then the one that is there stays.
        """
        number = self._number(subscription.id)
        self._file(subscription)
        serial = int(self.store.serials(np.array([number]))[0])
        self._drop(np.array([number], np.int32))
        self.add(subscription, serial)

    def _drop(self, numbers: Ids) -> None:
        store = self.store
        suspended = store.flags(numbers) & Flag.SUSPENDED != 0
        for number in numbers[~suspended].tolist():
            self.mentions.remove(store.query(number, filed=True).mentions())
        held = store.remove(numbers)
        for row in held.rows.tolist():
            self.index.remove(row)
        self.index.terms.release(held.terms)

    # -- saving -----------------------------------------------------------------------------

    def asked(self) -> Iterator[tuple[Mention, int]]:
        """Yield what subscriptions mention, and how many of them do."""
        own = self.knowledge.mentions
        counts = ((mention, times - (mention in own)) for mention, times in self.mentions.counted())
        return ((mention, times) for mention, times in counts if times)

    def restore(
        self, index: Index, store: SubscriptionStore, asked: Iterable[tuple[Mention, int]]
    ) -> None:
        """Put what was saved where nothing is yet: subscriptions, and what they mention."""
        self.index, self.store = index, store
        self.mentions.add_counted(asked)
        self.knowledge.ask(self.mentions)

    # -- change of knowledge ----------------------------------------------------------------

    def concerned(self, difference: Difference) -> Ids:
        """Return the numbers of the subscriptions that may have to be filed otherwise."""
        store = self.store
        if difference.everything:
            return store.in_order(store.numbers())
        said = self._said(difference.names)
        patterns = list(self._patterns(difference.triples))
        asked = store.asking(np.array(patterns, np.int32).reshape(-1, 3))
        found = (store.flagged(Flag.SUSPENDED), store.saying(said), asked)
        return store.in_order(np.unique(np.concatenate(found)))

    def _said(self, names: frozenset[Term]) -> Ids:
        """Return the terms that somebody says which are looked up by one of some names."""
        known = self.index.terms.ids
        found = [id for name in names if (id := known.get(name)) is not None]
        if any(isinstance(name, Literal) for name in names):
            key = self.knowledge.ontology.roots.key
            literals = ((term, id) for term, id in known.items() if isinstance(term, Literal))
            found += [id for term, id in literals if key(term) in names]
        return np.array(found, np.int32)

    def _patterns(self, triples: Iterable[Triple]) -> Iterator[tuple[int, ...]]:
        """Yield the patterns that triples meet, as far as their terms are mentioned."""
        known = self.index.terms.ids
        for triple in triples:
            places = ((_ANY, id) if (id := known.get(t)) is not None else (_ANY,) for t in triple)
            yield from product(*places)

    def adopt(self, knowledge: Knowledge, concerned: Ids, on_problem: OnProblem) -> None:
        """Go over to another state of knowledge in place; file those that it concerns anew."""
        serials = self.store.serials(concerned).tolist()
        subscriptions = list(map(self._subscription, concerned.tolist()))
        self._drop(concerned)
        self.mentions.remove(self.knowledge.mentions)
        self.mentions.add(knowledge.mentions)
        knowledge.ask(self.mentions)
        self.knowledge = knowledge
        self._relevance = knowledge.relevance(self.mentions)
        for subscription, serial in zip(subscriptions, serials, strict=True):
            self.add_again(subscription, serial, on_problem)

    # -- matching ---------------------------------------------------------------------------

    def enrich(self, publication: Publication, now: datetime) -> Enriched:
        """Return a publication as the subscriptions see it, without what none asks for."""
        return self.knowledge.enrich(publication, self._relevance, now)

    def match(self, publication: Publication, now: datetime) -> MatchReport:
        """Say which subscriptions a publication matches, and with which solutions."""
        enriched = self.enrich(publication, now)
        seen = enriched.publication
        found, did = self.index.match(seen.numbered(), seen.attributes)
        numbers, places = self.store.owners(found.rows)
        exact = self.store.flags(numbers) & _EXACT != 0
        unindexed = self.store.flagged(_UNINDEXED)
        candidates, answers = unindexed, list[Answer]()
        if len(unindexed) or len(found.uncertain) or not exact.all():
            uncertain, _ = self.store.owners(found.uncertain)
            candidates = np.unique(np.concatenate((numbers[~exact], uncertain, unindexed)))
            numbers, places = numbers[exact], places[exact]
        decided, verified = self._decided(enriched.publication, found, places)
        if decided:
            matched = np.array([bool(decided.get(place, True)) for place in places.tolist()])
            numbers, places = numbers[matched], places[matched]
        if len(candidates):
            answered, answers = self._evaluated(enriched.publication, candidates, now)
            numbers = np.concatenate((numbers, answered))
            places = np.concatenate((places, -1 - np.arange(len(answers), dtype=np.int32)))
        counters = Counters(
            probes=did.probes,
            gates=did.gates,
            candidates=did.candidates + len(unindexed),
            joins=did.joined,
            verified=verified,
            mapped=enriched.runs,
            evaluated=len(candidates),
            matched=len(numbers),
        )
        order = np.argsort(self.store.serials(numbers))
        numbers = numbers[order]
        matches = Answers(
            publication.id,
            self.store.written(numbers),
            places[order],
            self.store.skeletons(numbers),
            self.store.all_skeletons(),
            found,
            decided,
            answers,
        )
        return MatchReport(publication.id, matches, counters, enriched.problems)

    def _decided(self, enriched: Publication, found: Found, places: Ids) -> tuple[Decided, int]:
        """Decide the filters of what was found that the index could not.

        Parameters
        ----------
        places
            Of the rows whose solutions are answers.

        Returns
        -------
        decided
            By place of a row that had undecided solutions: all its solutions.
        verified
            How many solutions were undecided.
        """
        if not found.undecided.any():
            return {}, 0
        decide = Decisions(self.knowledge.ontology, enriched)
        open_ = places[found.undecided[places] > 0]
        decided = {n: self.index.decided(found[n], decide) for n in np.unique(open_).tolist()}
        return decided, int(found.undecided[list(decided)].sum())

    def _evaluated(
        self, enriched: Publication, candidates: Ids, now: datetime
    ) -> tuple[Ids, list[Answer]]:
        """Evaluate what the index cannot decide as SPARQL; return what has an answer, and it."""
        numbers: list[int] = []
        answers: list[Answer] = []
        store = self.store
        resting = store.flags(candidates) & Flag.RESTING != 0
        with self.knowledge.evaluator.publication(enriched, now) as evaluation:
            for number, rests in zip(candidates.tolist(), resting.tolist(), strict=True):
                answer = evaluation.answer(store.query(number, filed=True), resting=rests)
                if answer is not None:
                    numbers.append(number)
                    answers.append(answer)
        return np.array(numbers, np.int32), answers


def _flags(filed: Filed) -> int:
    """Return what is known of how a subscription is filed."""
    flags = Flag.EXACT if filed.exact else Flag(0)
    if filed.unindexed:
        flags |= Flag.UNINDEXED
    if filed.resting:
        flags |= Flag.RESTING
    return flags

"""The standing subscriptions of an engine: filed, indexed, and found again by what they say.

A change of the ontology concerns a subscription when a term that it says has another
root, or when a triple that meets one of its patterns comes or goes: those decide how
it is filed. Both are looked up here, so that a change costs what it concerns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from itertools import product
from typing import TypeAlias, TypeVar

from pyoxigraph import Variable

from graphmatch.filing import Filed, file, suspended
from graphmatch.index.index import Index, RowMatch
from graphmatch.index.plans import Compiled, compiled
from graphmatch.knowledge import Difference, Knowledge
from graphmatch.matcher import Counters, Match, MatchReport, UnknownError
from semantic.decision import holds
from semantic.enrichment import Enriched
from semantic.errors import OnProblem, Problem, SubscriptionError
from semantic.evaluation import taxonomy_test
from semantic.mentions import Mentions
from semantic.ontology.ontology import Ontology
from semantic.ontology.walks import Links
from semantic.pattern import Filter, Form, TaxonomyTest
from semantic.publication import Publication
from semantic.subscription import Subscription
from semantic.terms import Node, Solution, Term

_Key = TypeVar("_Key")
Key: TypeAlias = tuple[Term | None, Term | None, Term | None]
"""A triple pattern by its constants; ``None`` for a variable."""


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
        self._index = Index()
        self._held: dict[str, tuple[int, ...]] = {}
        self._owners: defaultdict[int, dict[str, Compiled]] = defaultdict(dict)
        self._filed: dict[str, Filed] = {}
        self._unindexed: dict[str, None] = {}
        self._suspended: dict[str, None] = {}
        self._by_name: defaultdict[Term, dict[str, None]] = defaultdict(dict)
        self._by_pattern: defaultdict[Key, dict[str, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._filed)

    def __contains__(self, id: object) -> bool:
        return id in self._filed

    def __iter__(self) -> Iterator[Filed]:
        """Yield what is filed, in the order of subscribing."""
        return iter(sorted(self._filed.values(), key=lambda filed: filed.serial))

    def __getitem__(self, id: str) -> Filed:
        """Return how a subscription is filed.

        Raises
        ------
        UnknownError
            When there is none with this id.
        """
        if id not in self._filed:
            raise UnknownError(id)
        return self._filed[id]

    # -- coming and going -------------------------------------------------------------------

    def add(self, subscription: Subscription, serial: int) -> None:
        """File a subscription.

        Raises
        ------
        SubscriptionError
            When a unit in it is unknown, or incompatible with its attribute's.
        """
        filed = self._file(subscription, serial)
        self.mentions.add(filed.query.mentions())
        if self.knowledge.ask(self.mentions):
            filed = self._file(subscription, serial)
        self._keep(filed)

    def add_again(self, filed: Filed, on_problem: OnProblem) -> None:
        """File a subscription anew that was filed under another state of knowledge.

        One that cannot be filed under this one (its unit does not go with its attribute's, say)
        is reported, kept, and matches nothing until the ontology changes again.
        """
        try:
            self.add(filed.subscription, filed.serial)
        except SubscriptionError as error:
            told = error.problem
            on_problem(Problem(f"{told.what}; it matches nothing now", told.where, told.remedy))
            self._suspended[filed.subscription.id] = None
            self._keep(suspended(filed, told.what))

    def _keep(self, filed: Filed) -> None:
        subscription = filed.subscription
        self._filed[subscription.id] = filed
        for name in self._names(subscription):
            self._by_name[name][subscription.id] = None
        for key in _keys(filed):
            self._by_pattern[key][subscription.id] = None
        self._held[subscription.id] = tuple(self._rows(filed))
        if filed.unindexed:
            self._unindexed[subscription.id] = None

    def _file(self, subscription: Subscription, serial: int) -> Filed:
        knowledge = self.knowledge
        return file(subscription, serial, knowledge.root, knowledge.evaluator, knowledge.units)

    def remove(self, id: str) -> Filed:
        """Take a subscription out."""
        filed = self[id]
        del self._filed[id]
        self._unindexed.pop(id, None)
        if id in self._suspended:
            del self._suspended[id]
        else:
            self.mentions.remove(filed.query.mentions())
        for name in self._names(filed.subscription):
            _drop(self._by_name, name, id)
        for key in _keys(filed):
            _drop(self._by_pattern, key, id)
        for row in self._held.pop(id):
            self._owners[row].pop(id, None)  # two of its entries may be the same row
            if not self._owners[row]:
                del self._owners[row]
            self._index.remove(row)
        return filed

    def _rows(self, filed: Filed) -> Iterator[int]:
        """Give the index what it is to find, and yield the rows of that."""
        for entry in filed.entries:
            branch = compiled(entry)
            row = self._index.add(branch, any_will_do=filed.any_will_do)
            self._owners[row][filed.subscription.id] = branch
            yield row

    def _names(self, subscription: Subscription) -> frozenset[Term]:
        """Return what the terms that a subscription says are looked up by."""
        return frozenset(map(self.knowledge.ontology.roots.key, subscription.query.constants))

    # -- change of knowledge ----------------------------------------------------------------

    def concerned(self, difference: Difference) -> tuple[str, ...]:
        """Return the ids of the subscriptions that may have to be filed otherwise."""
        if difference.everything:
            return tuple(self._filed)
        found = dict(self._suspended)
        for name in difference.names:
            found.update(self._by_name.get(name, {}))
        for triple in difference.triples:
            for s, p, o in product(*((term, None) for term in triple)):
                found.update(self._by_pattern.get((s, p, o), {}))
        return tuple(found)

    def adopt(self, knowledge: Knowledge, concerned: Iterable[str], on_problem: OnProblem) -> None:
        """Go over to another state of knowledge in place; file those that it concerns anew."""
        removed = [self.remove(id) for id in concerned]
        self.mentions.remove(self.knowledge.mentions)
        self.mentions.add(knowledge.mentions)
        knowledge.ask(self.mentions)
        self.knowledge = knowledge
        self._relevance = knowledge.relevance(self.mentions)
        for filed in removed:
            self.add_again(filed, on_problem)

    # -- matching ---------------------------------------------------------------------------

    def enrich(self, publication: Publication, now: datetime) -> Enriched:
        """Return a publication as the subscriptions see it, without what none asks for."""
        return self.knowledge.enrich(publication, self._relevance, now)

    def match(self, publication: Publication, now: datetime) -> MatchReport:
        """Say which subscriptions a publication matches, and with which solutions."""
        enriched = self.enrich(publication, now)
        found, did = self._index.match(enriched.publication.triples)
        answers, verified = self._answers(enriched.publication, found)
        candidates = dict.fromkeys(self._unindexed)
        candidates.update((id, None) for m in found for id in self._owners[m.row])
        evaluated = [id for id in candidates if not self._filed[id].exact]
        answers |= self._evaluated(enriched.publication, evaluated, now)
        matches = tuple(answers[id] for id in sorted(answers, key=lambda id: self[id].serial))
        counters = Counters(
            probes=did.probes,
            gates=did.gates,
            candidates=did.candidates + len(self._unindexed),
            joins=did.joined,
            verified=verified,
            mapped=enriched.runs,
            evaluated=len(evaluated),
            matched=len(matches),
        )
        return MatchReport(publication.id, matches, counters, enriched.problems)

    def _answers(
        self, enriched: Publication, found: Iterable[RowMatch]
    ) -> tuple[dict[str, Match], int]:
        """Turn what the index finds into answers, where the index decides.

        Returns
        -------
        answers
            Subscription id to match.
        verified
            How many solutions had a filter that the index could not decide.
        """
        decide = _Decisions(self.knowledge.ontology, enriched)
        answers: dict[str, Match] = {}
        verified = 0
        for match in found:
            owners = self._owners[match.row].items()
            exact = [(self._filed[id], branch) for id, branch in owners if self._filed[id].exact]
            if not exact:
                continue
            verified += len(match.undecided)
            solutions = self._index.decided(match, decide)
            if solutions:
                for filed, branch in exact:
                    id = filed.subscription.id
                    projected = tuple(_projected(filed.subscription, branch.names, solutions))
                    answers[id] = Match(id, enriched.id, projected)
        return answers, verified

    def _evaluated(
        self, enriched: Publication, candidates: Iterable[str], now: datetime
    ) -> dict[str, Match]:
        """Evaluate what the index cannot decide as SPARQL."""
        answers = {}
        with self.knowledge.evaluator.publication(enriched, now) as evaluation:
            for id in candidates:
                filed = self._filed[id]
                answer = evaluation.answer(filed.query, resting=filed.resting)
                if answer is not None:
                    answers[id] = Match.of(id, enriched.id, answer)
        return answers


class _Decisions:
    """Whether filters are true of a publication's terms; each is decided once."""

    def __init__(self, ontology: Ontology, enriched: Publication) -> None:
        self._ontology = ontology
        self._enriched = enriched
        self._known: dict[tuple[Filter, Term], bool] = {}

    def __call__(self, filter_: Filter, term: Term) -> bool:
        known = self._known.get((filter_, term))
        if known is None:
            known = self._known[filter_, term] = holds(filter_, term, self._is_a)
        return known

    @cached_property
    def _links(self) -> Links:
        return self._ontology.links(self._enriched)

    def _is_a(self, test: TaxonomyTest, term: Term) -> bool:
        return taxonomy_test(self._ontology, test.operator, term, test.concept, self._links)


def _projected(
    subscription: Subscription, names: Sequence[str], solutions: Iterable[Sequence[Term]]
) -> Iterator[Solution]:
    """Yield solutions as a query's form says."""
    places = [(v.value, names.index(v.value)) for v in subscription.projection if v.value in names]
    once = subscription.distinct or subscription.form is Form.ASK
    seen = set()
    for solution in solutions:
        projected = tuple(solution[place] for _, place in places)
        if not (once and projected in seen):
            seen.add(projected)
            yield dict(zip((name for name, _ in places), projected, strict=True))


def _keys(filed: Filed) -> frozenset[Key]:
    return frozenset(
        (_constant(s), _constant(p), _constant(o))
        for branch in filed.branches
        for s, p, o in branch.patterns
    )


def _constant(node: Node) -> Term | None:
    return None if isinstance(node, Variable) else node


def _drop(table: dict[_Key, dict[str, None]], key: _Key, id: str) -> None:
    del table[key][id]
    if not table[key]:
        del table[key]

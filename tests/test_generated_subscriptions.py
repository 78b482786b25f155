"""Generated subscriptions over a real ontology and real feeds, compared with pyoxigraph.

The reference shares no evaluation with the engine: one store holds the ontology's closure and an
enriched publication, and runs each query as written, with roots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest
from pyoxigraph import Literal, Quad, QueryBoolean, QuerySolutions, Store

from graphmatch import Engine
from graphmatch.enrichment import Enricher
from semantic import Publication
from semantic.limits import DEFAULT_LIMITS
from semantic.terms import Term, Triple
from semantic.vocabulary import BROADER, GM, PREFIXES, SUBCLASS, SUBPROPERTY, TYPE, XSD
from tests.feed_subscriptions import FeedSubscriptions, one_of_each, rooted
from tests.oracle import Answer
from tests.test_real_feeds import engine as with_dbpedia
from tests.test_real_feeds import everything

pytestmark = pytest.mark.data


@cache
def subscriptions(number: int) -> tuple[str, ...]:
    known = with_dbpedia()
    items = [known.enrich(publication) for publication in one_of_each(everything()[0], 5)]
    return tuple(FeedSubscriptions(known.ontology, items, seed=1).texts(number))


class SecondOpinion:
    """An evaluator of queries on enriched publications and the ontology's closure."""

    def __init__(self) -> None:
        ontology = with_dbpedia().ontology
        self._background = Enricher(ontology).closure
        self._root = ontology.root
        self._up = self._links(ontology.stated)
        self._own: dict[Term, set[Term]] = {}
        self._store = Store()
        self._store.bulk_extend(_quads(self._background))
        self._prefixes = " ".join(f"PREFIX {name}: <{iri}>" for name, iri in PREFIXES.items())
        self._functions = {
            GM["descendantOf"]: lambda x, c: _literal(self._is_below(x, c)),
            GM["ancestorOf"]: lambda x, c: _literal(self._is_below(c, x)),
            GM["childOf"]: lambda x, c: _literal(x != c and c in self._above(x)),
        }

    def _links(self, triples: Iterable[Triple]) -> dict[Term, set[Term]]:
        """Return the stated upward is-a links between roots."""
        found: dict[Term, set[Term]] = {}
        for s, p, o in triples:
            if p in (SUBCLASS, SUBPROPERTY, BROADER, TYPE):
                found.setdefault(self._root(s), set()).add(self._root(o))
        return found

    def _above(self, term: Term) -> set[Term]:
        return self._up.get(term, set()) | self._own.get(term, set())

    def _is_below(self, low: Term, high: Term) -> bool:
        seen, agenda = {low}, [low]
        for term in agenda:
            new = self._above(term) - seen
            seen |= new
            agenda += new
        return high in seen

    def answers(self, texts: Sequence[str], enriched: Publication) -> Iterator[Answer]:
        """Yield the answer of each query."""
        quads = list(_quads(t for t in enriched.triples if t not in self._background))
        self._own = self._links(t for t in enriched.triples if t not in enriched.derived)
        self._store.extend(quads)
        for text in texts:
            found = self._store.query(
                f"{self._prefixes} {rooted(text, self._root)}", custom_functions=self._functions
            )
            if isinstance(found, QueryBoolean):
                yield Counter([frozenset()] if found else [])
                continue
            assert isinstance(found, QuerySolutions)
            names = [variable.value for variable in found.variables]
            yield Counter(
                frozenset((name, row[name]) for name in names if row[name] is not None)
                for row in found
            )
        for quad in quads:
            self._store.remove(quad)


def _quads(triples: Iterable[Triple]) -> Iterator[Quad]:
    return (Quad(s, p, o) for s, p, o in triples if not isinstance(s, Literal))


def _literal(truth: bool) -> Literal:
    return Literal("true" if truth else "false", datatype=XSD["boolean"])


@cache
def as_stored(term: Term) -> Term:
    """Return a term as the store returns it, because the store keeps only a number's value."""
    store = Store()
    store.add(Quad(GM["x"], GM["x"], term))
    return next(iter(store)).object


def agree(number: int, publications: Sequence[Publication]) -> None:
    """Compare all answers; at least a third of the subscriptions match something."""
    texts, known = subscriptions(number), with_dbpedia()
    # Some queries take seconds, and on a busy machine many do.
    patient = replace(DEFAULT_LIMITS, publication_seconds=600)
    engine, other = Engine(known.ontology, limits=patient), SecondOpinion()
    for id, text in enumerate(texts):
        engine.subscribe(str(id), text)
    matching: set[int] = set()
    evaluated = exact = 0
    for publication in publications:
        report = engine.match(publication)
        found = {
            int(match.subscription): Counter(
                frozenset((name, as_stored(term)) for name, term in solution.items())
                for solution in match.solutions
            )
            for match in report
        }
        expected = other.answers(texts, engine.enrich(publication))
        for id, answer in enumerate(expected):
            assert found.get(id, Counter()) == answer, (texts[id], publication.id)
            if answer:
                matching.add(id)
        evaluated += report.counters.evaluated
        exact += len(report)
    assert len(matching) >= number / 3
    assert 0 < evaluated < number * len(publications) / 2


def test_that_subscriptions_are_of_all_kinds() -> None:
    texts = subscriptions(1000)
    assert len(set(texts)) > 900
    assert subscriptions(100) == texts[:100]
    kinds = "descendantOf childOf ancestorOf CONTAINS REGEX STRSTARTS LANG LANGMATCHES UNION"
    kinds += " OPTIONAL MINUS BOUND IN subClassOf>* subClassOf>+ dc:date enc:length rdfs:domain"
    for kind in (*kinds.split(), "NOT EXISTS", "DISTINCT", "ASK", " || ", "^dcterms:isPartOf"):
        assert sum(kind in text for text in texts) >= 10, kind


def test_that_the_engine_agrees_on_some_feeds() -> None:
    agree(100, one_of_each(everything()[0], 1)[::5])


@pytest.mark.long
def test_that_the_engine_agrees_on_all_feeds() -> None:
    agree(1000, everything()[0])

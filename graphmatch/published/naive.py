"""The naive matcher: every subscription is evaluated as SPARQL on every publication.

It is the obvious implementation and the baseline for the others. It materializes the publication
together with the ontology (all derived triples are added). Then pyoxigraph evaluates each whole
query, with the condition that a solution uses a triple of the publication (`Query.texts`). There is
no index and no candidate. In G-ToPSS's evaluation (section 5, figure 9h) "naive" likewise checks
all subscriptions one after the other.

pyoxigraph's store keeps the values of numbers and dates, not their spelling: ``01`` is returned,
and compared, as ``1``. A query that names an attribute and also has a variable property is
rejected, because one store cannot hide the attribute from the variable alone.

Cost: O(subscriptions) queries per publication.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import ClassVar

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    Store,
)

from graphmatch.enrichment import Enricher, Entailment, OntologyAndAnnotator
from graphmatch.matcher import Capabilities, UnsupportedError
from graphmatch.published.attribute_matcher import PublishedMatcher
from graphmatch.report import Counters, Match, MatchReport
from graphmatch.subscription import Subscription
from semantic.annotation.annotate import Annotator
from semantic.annotation.words import WORDS
from semantic.attributes.names import is_derived
from semantic.branch import COMPARE, TaxonomyOperator
from semantic.clock import utc_now
from semantic.filter_evaluation import taxonomy_test
from semantic.ontology.ontology import Links, Ontology
from semantic.publication import Publication
from semantic.terms import Solution, Term, Triple
from semantic.values import ComparisonOperator, Number, Quantity, compare, value_of
from semantic.vocabulary import GM


class Naive(PublishedMatcher):
    """The matcher that evaluates every subscription on every publication.

    `entailment` applies the ontology's rules (docs/reference/semantics.md). `annotator` finds
    labels in text; by default labels are not searched for.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> naive = Naive(Ontology())
    >>> naive.subscribe(SubscriptionParser().parse("s", "SELECT ?x { ?x <urn:p> <urn:o> }"))
    >>> triple = (NamedNode("urn:s"), NamedNode("urn:p"), NamedNode("urn:o"))
    >>> [m.solutions[0]["x"].value for m in naive.match(Publication.of("p", [triple]))]
    ['urn:s']
    """

    capabilities: ClassVar = Capabilities(full_sparql=True, entailment=True)

    def __init__(
        self, ontology: Ontology, *, entailment: bool = True, annotator: Annotator | None = None
    ) -> None:
        super().__init__(ontology)
        rules = Entailment.RDFS if entailment else Entailment.NONE
        known = OntologyAndAnnotator(ontology, annotator or Annotator([]))
        self._enricher = Enricher(known, rules)
        self._background = self._enricher.closure
        self._store = Store()
        self._store.bulk_extend(_quads(self._background, DefaultGraph()))

    def clear(self) -> None:
        """Do nothing: there is no index."""

    def read(self, subscription: Subscription) -> Subscription:
        enricher = self._enricher
        read = subscription.rewritten(enricher.root, enricher.units)
        asked = [property_ for property_, _ in read.query.demanded()]
        if None in asked and any(p == WORDS or (p is not None and is_derived(p)) for p in asked):
            why = "an attribute that is found, and any property beside it"
            raise UnsupportedError(subscription.id, why)
        return read

    def match(self, publication: Publication) -> MatchReport:
        now, enricher = utc_now(), self._enricher
        asked = {id: s.query.demanded() for id, (_, s) in self.stored.items()}
        mentions = [mention for several in asked.values() for mention in several]
        enriched = enricher.enrich(publication, now, mentions)
        whole, links = enriched.publication, enricher.ontology.links(enriched.stated)
        functions: dict[NamedNode, Callable[..., Term | None]] = {COMPARE: _compared}
        for operator in TaxonomyOperator:
            functions[GM[operator.value]] = partial(_is_a, enricher.ontology, operator, links)
        ask = partial(self._store.query, custom_functions=functions)
        graph = whole.graph_name()
        found: dict[str, Match] = {}
        # A variable property is never bound to an attribute that was found in text.
        for open_, triples in ((True, whole.visible_to_all), (False, whole.triples)):
            with self._loaded(triples, graph):
                for id in (id for id in asked if ((None, None) in asked[id]) is open_):
                    *conditions, query = self.stored[id][1].query.texts(graph.value)
                    if all(ask(condition) for condition in conditions):
                        found |= _match(id, publication.id, ask(query))
        matches = tuple(found[id] for id in self.stored if id in found)
        evaluated = len(self.stored)
        counters = Counters(candidates=evaluated, evaluated=evaluated, matched=len(matches))
        return MatchReport(publication.id, matches, counters, enriched.problems)

    @contextmanager
    def _loaded(self, triples: Sequence[Triple], graph: NamedNode) -> Iterator[None]:
        """Keep a publication's triples in the store while the context lasts.

        All are in the named graph `graph`, and those that the ontology lacks also in the default
        graph, together with the ontology.
        """
        own = [triple for triple in triples if triple not in self._background]
        self._store.extend(_quads(own, DefaultGraph()))
        self._store.extend(_quads(triples, graph))
        try:
            yield
        finally:
            self._store.remove_graph(graph)
            for quad in _quads(own, DefaultGraph()):
                self._store.remove(quad)


def _match(
    id: str, publication: str, answer: QueryBoolean | QuerySolutions | QueryTriples
) -> dict[str, Match]:
    """Return the match of a subscription by its id; `answer` is the result of its query.

    Return an empty mapping if there is no solution; CONSTRUCT and DESCRIBE always match.
    """
    if isinstance(answer, QueryBoolean):
        solutions: tuple[Solution, ...] = ({},) if answer else ()
    elif isinstance(answer, QuerySolutions):
        names = [variable.value for variable in answer.variables]
        solutions = tuple({n: row[n] for n in names if row[n] is not None} for row in answer)
    else:
        graph = tuple((t.subject, t.predicate, t.object) for t in answer)
        return {id: Match(id, publication, (), graph)}
    return {id: Match(id, publication, solutions)} if solutions else {}


def _quads(triples: Iterable[Triple], graph: NamedNode | DefaultGraph) -> Iterator[Quad]:
    """Yield triples as quads of `graph`; skip those whose subject or predicate RDF forbids."""
    for subject, predicate, object_ in triples:
        if isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode):
            yield Quad(subject, predicate, object_, graph)


def _is_a(
    ontology: Ontology, operator: TaxonomyOperator, links: Links, *arguments: Term
) -> Term | None:
    if len(arguments) != 2:
        return None
    return Literal(taxonomy_test(ontology, operator, *arguments, links))


def _compared(left: Term, operator: Term, right: Term) -> Term | None:
    """Return whether ``left operator right`` is true, as a literal; ``None`` is a SPARQL error.

    Quantities are in base units already. Two quantities of one dimension are compared, or two plain
    numbers if the attribute has a base unit.
    """
    if not (isinstance(left, Literal) and isinstance(right, Literal)):
        return None
    match value_of(left), value_of(right):
        case Quantity() as one, Quantity() as other if one.unit == other.unit:
            pass
        case Number(), Number():
            pass
        case _:
            return None
    assert isinstance(operator, Literal)
    if operator.value == "!=":
        return Literal(not compare(left, ComparisonOperator.EQ, right))
    return Literal(compare(left, ComparisonOperator(operator.value), right))

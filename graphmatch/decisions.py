"""What the index leaves open of a publication's solutions: filters, decided once a term."""

from __future__ import annotations

from functools import cached_property

from semantic.decision import holds
from semantic.evaluation import taxonomy_test
from semantic.ontology.ontology import Ontology
from semantic.ontology.walks import Links
from semantic.pattern import Filter, TaxonomyOperator, TaxonomyTest
from semantic.publication import Publication
from semantic.terms import Term


class Decisions:
    """Whether filters are true of a publication's terms; each is decided once.

    Parameters
    ----------
    enriched
        The publication, with what follows from it.
    """

    def __init__(self, ontology: Ontology, enriched: Publication) -> None:
        self._ontology = ontology
        self._enriched = enriched
        self._known: dict[tuple[Filter, Term], bool] = {}
        self._above: dict[Term, frozenset[Term]] = {}

    def __call__(self, filter_: Filter, term: Term) -> bool:
        """Whether a filter is true of a term."""
        known = self._known.get((filter_, term))
        if known is None:
            known = self._known[filter_, term] = holds(filter_, term, self._is_a)
        return known

    @cached_property
    def _links(self) -> Links:
        return self._ontology.links(self._enriched)

    def _is_a(self, test: TaxonomyTest, term: Term) -> bool:
        match test.operator:
            case TaxonomyOperator.DESCENDANT:
                return self._ontology.root(test.concept) in self._up(term)
            case TaxonomyOperator.ANCESTOR:
                return self._ontology.root(term) in self._up(test.concept)
        return taxonomy_test(self._ontology, test.operator, term, test.concept, self._links)

    def _up(self, term: Term) -> frozenset[Term]:
        """Return a term, as its root, and all above it: many filters ask about few terms."""
        found = self._above.get(term)
        if found is None:
            above = self._ontology.ancestors(term, self._links)
            found = self._above[term] = frozenset((self._ontology.root(term), *above))
        return found

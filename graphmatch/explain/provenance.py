"""The provenance of a publication's triples: stated, found in its text, or derived, and how.

A derived triple leads back, step by step, to a triple that is stated, found in a text, or the
result of a mapping function. The core returns the rule of each step. This module writes the step
with the terms on its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from pyoxigraph import BlankNode, Literal

from graphmatch.enrichment import CONSTRUCTS, EnrichedPublication, Enricher, Found
from semantic.annotation.annotate import LabelForm
from semantic.attributes.names import isa_name_of
from semantic.branch import TaxonomyOperator, TaxonomyTest
from semantic.filter_evaluation import taxonomy_test
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import is_text
from semantic.terms import Term, Triple
from semantic.units.quantities import read_in_unit
from semantic.vocabulary import SAME_AS, TYPE


class Provenance:
    """Gives the reasons why the triples of one publication hold.

    Parameters
    ----------
    enricher
        The ontology of the match.
    enriched
        The publication as it was matched.
    language
        The reader's language, for the labels of terms.
    """

    def __init__(
        self, enricher: Enricher, enriched: EnrichedPublication, language: str = "en"
    ) -> None:
        self._enricher = enricher
        self.ontology = ontology = enricher.ontology
        self.publication = enriched.publication
        self.links = ontology.links(enriched.stated)
        """The is-a links stated in the publication."""
        self.prefixes = ontology.prefixes
        self.language = language
        self._origins = enriched.origins
        self._mapped = enriched.mapped
        self._known = ontology if enricher.has_rules else Ontology()
        root = self._known.root
        self._rooted = {
            (root(s), root(p), root(o)): (s, p, o) for s, p, o in enriched.stated.triples
        }
        self._found: dict[Triple, Found] = {}
        for (s, p, o), found in enriched.found.items():
            self._found.setdefault((root(s), root(p), root(o)), found)

    @cached_property
    def _measured(self) -> Mapping[Triple, Triple]:
        """Triples with quantities in base units, mapped to the original triples."""
        units = self._enricher.units or self._known.units
        return units.normal_triples(self._rooted, lambda *_: None) or {}

    def holds(self, triple: Triple) -> bool:
        """Return whether the enriched publication has a triple, stated or derived."""
        return triple in self._origins

    def sources(self, triple: Triple) -> Iterator[Triple]:
        """Yield the triples from which a triple was derived, the last step first."""
        while (origin := self._origins.get(triple)) is not None:
            triple = origin[1]
            yield triple

    def classes_called(self, text: Literal) -> tuple[Term, ...]:
        """Return the classes and concepts that a string names; none for other literals."""
        return self._enricher.concepts.called(text.value) if is_text(text) else ()

    def is_true(self, test: TaxonomyTest, value: Term) -> bool:
        """Return whether a taxonomy test is true for a term."""
        return taxonomy_test(self.ontology, test.operator, value, test.concept, self.links)

    def taxonomy_reason(self, test: TaxonomyTest, value: Term) -> str:
        """Return the is-a path that makes a taxonomy test true; empty if both terms are one."""
        if test.operator is TaxonomyOperator.ANCESTOR:
            return self._path(test.concept, value)
        return self._path(value, test.concept)

    def reasons(self, triple: Triple, words: Sequence[str] = ()) -> list[str]:
        """Return the steps that lead to a triple, the last step first.

        `words` are the words that a subscription finds in a triple with ``gm:words``.

        The list is empty if the publication states the triple in the same terms. Root terms and
        base units are steps, too. A triple from the ontology alone has the reason "in the
        ontology".
        """
        if triple not in self._origins:
            return ["in the ontology"]
        steps, derived = list[str](), triple
        while (origin := self._origins[triple]) is not None:
            steps += self._steps(*origin, triple)
            triple = origin[1]
        is_stated = triple in self._rooted or triple in self._found or triple in self._mapped
        if not is_stated and (measured := self._measured.get(triple)) is not None:
            _, unit = read_in_unit(triple[1]) or (None, None)
            if triple[2] not in (measured[2], unit):
                where = "base units" if unit is None else self.write(unit)
                steps.append(f"{self.write(measured[2])} is {self.write(triple[2])} in {where}")
            triple = measured
        if (function := self._mapped.get(triple)) is not None:
            steps.append(f"the mapping function {function} adds it")
        elif (found := self._found.get(triple)) is not None:
            steps.append(self._naming(*found, triple[2], words))
        elif (stated := self._rooted.get(triple, triple)) != triple:
            changed = zip(stated, triple, strict=True)
            steps += [
                f"{self.write(a)} is a synonym of {self.write(b)}" for a, b in changed if a != b
            ]
        return steps or [self._derived_from(triple)] * (triple != derived)

    def _naming(
        self,
        property_: Term,
        named: tuple[str, int] | None,
        text: str,
        concept: Term,
        words: Sequence[str],
    ) -> str:
        """Describe which property's text names a concept, or has the words of a subscription.

        `text` is the part that names it, and `named` the label with its form (``None``: words).
        """
        where, name = self.write(property_), self.write(concept)
        if named is None and words:
            verb = "is" if len(words) == 1 else "are"
            return f"{' and '.join(f'“{word}”' for word in words)} {verb} in {where}"
        if named is None:
            return f"these are the words of {where}"
        label, form = f"“{named[0]}”", named[1]
        if form == LabelForm.SAME:
            return f"{label} in {where} names {name}"
        if form == LabelForm.INFLECTED:
            return f"“{text}” in {where} names {name}, as a form of {label}"
        return f"“{text}” in {where} contains {label}, which names {name}"

    def _steps(self, rule: str, parent: Triple, triple: Triple) -> Iterator[str]:
        """Yield the reasons why a rule derived `triple` from `parent`, the last step first."""
        if isa_name_of(triple[1]) is None:
            if step := self._step(rule, parent, triple):
                yield step
            for same in ((one, SAME_AS, other) for one, other in zip(parent, triple, strict=True)):
                if rule == "same" and same != parent and (origin := self._origins.get(same)):
                    yield self._step(*origin, same)
            return
        value, class_ = parent[2], triple[2]
        if not isinstance(value, Literal):
            yield from self._belongs(value, class_)
            return
        for named in self.classes_called(value):
            path = self._path(named, class_)
            if path or self.ontology.root(named) == class_:
                yield from (path,) if path else ()
                yield f"{self.write(value)} names {self.write(named)}"
                return

    def _belongs(self, value: Term, class_: Term) -> Iterator[str]:
        """Yield why a resource, or a class, belongs to a class."""
        if path := self._path(value, class_):
            yield path
            return
        for triple in self._origins:
            if triple[:2] == (value, TYPE) and class_ == self.ontology.root(triple[2]):
                yield from self.reasons(triple)
                return

    def _step(self, rule: str, parent: Triple, triple: Triple) -> str:
        """Describe how a rule derives `triple` from `parent`; empty for a class without a name."""
        is_inverse = rule in ("inverse", "narrower") and parent[::2] == triple[2::-2]
        if rule == "rdfs2" and triple[0] == parent[0]:
            return f"{self.write(triple[2])} is the domain of {self.write(parent[1])}"
        if rule == "rdfs3" and triple[0] == parent[2]:
            return f"{self.write(triple[2])} is the range of {self.write(parent[1])}"
        if is_inverse:
            return f"{self.write(parent[1])} is the inverse of {self.write(triple[1])}"
        place = 1 if rule == "rdfs7" else 2
        path = self._path(parent[place], triple[place])
        construct = CONSTRUCTS.get(rule, "")
        if path or (isinstance(parent[2], BlankNode) and not construct):
            return path
        text = self._derived_from(parent)
        return text if construct in text else f"{text}, by {construct}"

    def _derived_from(self, triple: Triple) -> str:
        terms = ("[]" if isinstance(term, BlankNode) else self.write(term) for term in triple)
        return f"it is derived from {' '.join(terms)}"

    def _path(self, low: Term, high: Term) -> str:
        """Return the path of named terms up from one to another as text; empty if there is none."""
        path = self.ontology.path(low, high, self.links)
        named = [self.write(term) for term in path if not isinstance(term, BlankNode)]
        return " ⊑ ".join(named) if len(named) > 1 else ""

    def write(self, term: Term) -> str:
        """Return the name of a term in the reader's language."""
        return self.ontology.shown_names.shown(term, self.language)

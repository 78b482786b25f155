"""What follows from an ontology, alone and together with a publication.

Two ways to the same end: the compiled rules (`entailment`), and the general ones (`rules`) for a
publication that states schema of its own. Around all of them goes the rule *name*, by which a text
stands for a term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from semantic.ontology import rules
from semantic.ontology.entailment import Derived, Schema, close, states_schema
from semantic.ontology.names import Names
from semantic.ontology.rules import Lookup
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term, Triple


class Inference:
    """Applies the rules of docs/reference/semantics.md, section 2.

    Parameters
    ----------
    triples
        The ontology's, roots put in.
    schema
        Its compiled rules.
    names
        The texts that stand for terms.
    """

    def __init__(self, triples: Sequence[Triple], schema: Schema, names: Names) -> None:
        self._triples = triples
        self._schema = schema
        self.names = names
        """The texts that stand for terms."""

    @cached_property
    def closure(self) -> frozenset[Triple]:
        """Everything that follows from the ontology alone: C(O).

        A high taxonomy of n classes has many more than n pairs.
        """
        schema = self._schema
        return self._lighter.union(*map(schema.hierarchy, schema.hierarchies))

    @cached_property
    def _lighter(self) -> frozenset[Triple]:
        """C(O), where nothing else follows from them without the pairs that hierarchies make."""
        schema = self._schema
        if schema.has_rules_on_hierarchies:
            return frozenset(self._with_names(self._triples, schema.close))

        def lighter(triples: Sequence[Triple]) -> Derived:
            return close(triples, schema.lighter_consequences)

        return frozenset(self._with_names(self._triples, lighter))

    @cached_property
    def _lookup(self) -> rules.Lookup:
        return _with_hierarchies(rules.all_of(self._lighter), self._schema.hierarchies)

    def follow(self, triples: Sequence[Triple]) -> Derived:
        """Return a publication's triples, roots put in, and all that follows from them.

        Parameters
        ----------
        triples
            Distinct ones; they come first in what is returned.
        """

        def closing(triples: Sequence[Triple]) -> Derived:
            closed = self._schema.close(triples)
            return rules.extend(triples, self._lookup) if states_schema(closed) else closed

        return self._with_names(triples, closing)

    def _with_names(
        self, triples: Sequence[Triple], close: Callable[[Sequence[Triple]], Derived]
    ) -> Derived:
        """Close triples under the rules and the names that synonyms give for terms."""
        closed = close(triples)
        found: Derived = {}
        while True:
            standing = self.names.standing_for(closed).items()
            if not (new := {triple: by for triple, by in standing if triple not in closed}):
                return closed
            found |= new
            closed = close((*triples, *found)) | found


def _with_hierarchies(lookup: Lookup, hierarchies: Mapping[Term, Taxonomy]) -> Lookup:
    """Return a look-up that also finds the pairs of hierarchies, which are not kept as triples.

    Parameters
    ----------
    lookup
        Over the other triples.
    hierarchies
        Properties that say what is above, with all that they say.
    """

    def found(s: Term | None, p: Term | None, o: Term | None) -> Iterator[Triple]:
        known = dict.fromkeys(lookup(s, p, o))
        yield from known
        for property_ in hierarchies if p is None else {p: None}.keys() & hierarchies.keys():
            for triple in _pairs(hierarchies[property_], s, property_, o):
                if triple not in known:
                    yield triple

    return found


def _pairs(taxonomy: Taxonomy, s: Term | None, p: Term, o: Term | None) -> Iterator[Triple]:
    if s is not None:
        yield from ((s, p, above) for above in taxonomy.ancestors(s) if o in (None, above))
    elif o is not None:
        yield from ((below, p, o) for below in taxonomy.descendants(o))
    else:
        for term in taxonomy:
            yield from _pairs(taxonomy, term, p, None)

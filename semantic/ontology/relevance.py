"""Entailment restricted to what subscriptions mention.

The rules are those of `semantic.ontology.entailment`; of their conclusions those are
left out that no subscription could meet and from which nothing follows that one
could. A high taxonomy then costs as many triples as there are ancestors that some
subscription mentions, not as many as there are ancestors.

Every answer is the same as with all conclusions: a conclusion may be left out only
if neither it nor anything that follows from it is mentioned. What is kept beyond
that does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.mentions import Mentions
from semantic.ontology.entailment import SCHEMA, Derived, Schema, close, is_reserved
from semantic.terms import Term, Triple
from semantic.vocabulary import BROADER, BROADER_TRANSITIVE, TYPE


class Relevance:
    """The rules of a schema, less what nobody asks for.

    Parameters
    ----------
    schema
        The compiled rules.
    mentions
        What is asked for; it may change between publications.
    """

    def __init__(self, schema: Schema, mentions: Mentions) -> None:
        self._schema = schema
        self._mentions = mentions
        rules = (schema.domains, schema.ranges, schema.inverses)
        self._typing = any(TYPE in rule for rule in rules) or bool(schema.properties.parents(TYPE))
        """Whether the ontology has rules about ``rdf:type`` itself."""
        self._forget()

    def _forget(self) -> None:
        self._above: dict[Term, tuple[NamedNode, ...]] = {}
        self._types: dict[Term, tuple[Term, ...]] = {}
        self._domains: dict[Term, tuple[Term, ...]] = {}
        self._ranges: dict[Term, tuple[Term, ...]] = {}
        self._inverses: dict[Term, tuple[NamedNode, ...]] = {}
        self._open: dict[Term, bool] = {}
        self._topics: dict[Term, tuple[Term, ...]] = {}
        self._silent: dict[Term, bool] = {}
        self._version = self._mentions.version  # at last: other threads go by it

    @property
    def version(self) -> int:
        """Another number when something else is asked for."""
        return self._mentions.version

    def _refresh(self) -> None:
        if self._version != self._mentions.version:
            self._forget()

    def leads(self, property_: Term) -> bool:
        """Whether anything that is asked for may follow from a triple because of its property."""
        self._refresh()
        if self._mentions.anything or property_ in SCHEMA:
            return self._schema.leads(property_)
        found = self._superproperties(property_) or self._domain(property_)
        return bool(found or self._range(property_) or self._inverse(property_))

    def stands_for_more(self, term: Term) -> bool:
        """Whether a term also stands for broader ones, as an object."""
        return self._schema.stands_for_more(term)

    def is_subclass(self, term: Term) -> bool:
        """Whether instances of a term are instances of others that are asked for."""
        self._refresh()
        if self._mentions.anything:
            return self._schema.is_subclass(term)
        return bool(self._ancestors(term))

    def close(self, triples: Iterable[Triple], agenda: Iterable[Triple] | None = None) -> Derived:
        """Return the triples and what follows from them that anybody asks for.

        Parameters
        ----------
        agenda
            Those from which anything may follow; they are found by default.
        """
        self._refresh()
        if self._mentions.anything:
            return self._schema.close(triples, agenda)
        closed: Derived = dict.fromkeys(triples)
        if agenda is None:
            concepts = self._schema.concepts
            agenda = [t for t in closed if not self._is_silent(t[1]) or t[2] in concepts]
        return close(closed, self.consequences, agenda)

    def _is_silent(self, property_: Term) -> bool:
        """Whether nothing follows from a triple with this property, unless of its object."""
        found = self._silent.get(property_)
        if found is None:
            found = self._silent[property_] = not (
                property_ in (TYPE, BROADER)
                or property_ in self._schema.hierarchies
                or self._superproperties(property_)
                or self._domain(property_)
                or self._range(property_)
                or self._inverse(property_)
            )
        return found

    def consequences(self, triple: Triple) -> Iterator[Triple]:
        """Yield what follows from one triple, as `Schema.consequences` does, and is asked for."""
        subject, predicate, object_ = triple
        for above in self._superproperties(predicate):
            yield subject, above, object_
        for class_ in self._domain(predicate):
            yield subject, TYPE, class_
        if isinstance(object_, NamedNode | BlankNode):
            for class_ in self._range(predicate):
                yield object_, TYPE, class_
            for inverse in self._inverse(predicate):
                yield object_, inverse, subject
        for term in self._hierarchy(predicate, object_):
            yield subject, predicate, term
        if predicate == BROADER and not isinstance(object_, Literal):
            yield subject, BROADER_TRANSITIVE, object_

    # -- hierarchies ------------------------------------------------------------------------

    def _hierarchy(self, predicate: Term, object_: Term) -> tuple[Term, ...]:
        """Return the terms above an object that stand in its place."""
        if predicate == TYPE:
            return self._ancestors(object_)
        if (taxonomy := self._schema.hierarchies.get(predicate)) is not None:
            return taxonomy.ancestors(object_)
        if is_reserved(predicate):
            return ()
        if self._takes_any_object(predicate):
            return self._schema.concepts.ancestors(object_)
        return self._mentioned_topics(object_)

    def _ancestors(self, class_: Term) -> tuple[Term, ...]:
        found = self._types.get(class_)
        if found is None:
            above = self._schema.classes.ancestors(class_)
            found = self._types[class_] = tuple(c for c in above if self._is_type(c))
        return found

    def _is_type(self, class_: Term) -> bool:
        """Whether instances of a class are asked for, or anything follows from being one."""
        return self._typing or self._mentions.asks_for_object(TYPE, class_)

    def _mentioned_topics(self, concept: Term) -> tuple[Term, ...]:
        found = self._topics.get(concept)
        if found is None:
            above = self._schema.concepts.ancestors(concept)
            has = self._mentions.has_object
            found = self._topics[concept] = tuple(term for term in above if has(term))
        return found

    def _takes_any_object(self, property_: Term) -> bool:
        """Whether any object after a property matters, whatever it is."""
        found = self._open.get(property_)
        if found is None:
            found = self._open[property_] = TYPE in self._schema.properties.ancestors(
                property_
            ) or any(
                self._mentions.asks_for_any_object(p) or self._range(p) or self._inverse(p)
                for p in (property_, *self._superproperties(property_))
            )
        return found

    # -- properties -------------------------------------------------------------------------

    def _superproperties(self, property_: Term) -> tuple[NamedNode, ...]:
        found = self._above.get(property_)
        if found is None:
            above = self._schema.properties.ancestors(property_)
            found = self._above[property_] = tuple(
                p for p in above if isinstance(p, NamedNode) and self._matters(p)
            )
        return found

    def _matters(self, property_: Term) -> bool:
        """Whether a triple with this property is asked for, or leads to one that is."""
        return self._is_asked(property_) or bool(self._inverse(property_))

    def _is_asked(self, property_: Term) -> bool:
        """Whether a triple with this property is asked for, or gives a type that is."""
        if property_ in SCHEMA or self._mentions.asks_for(property_):
            return True
        return bool(self._domain(property_) or self._range(property_))

    def _domain(self, property_: Term) -> tuple[Term, ...]:
        found = self._domains.get(property_)
        if found is None:
            found = self._types_of(self._schema.domains.get(property_, ()))
            self._domains[property_] = found
        return found

    def _range(self, property_: Term) -> tuple[Term, ...]:
        found = self._ranges.get(property_)
        if found is None:
            found = self._types_of(self._schema.ranges.get(property_, ()))
            self._ranges[property_] = found
        return found

    def _types_of(self, classes: Iterable[Term]) -> tuple[Term, ...]:
        """Return the classes and those above them that are asked for."""
        found: dict[Term, None] = {}
        for class_ in classes:
            if self._is_type(class_):
                found[class_] = None
            found.update(dict.fromkeys(self._ancestors(class_)))
        return tuple(found)

    def _inverse(self, property_: Term) -> tuple[NamedNode, ...]:
        """Return a property's inverses from which anything follows that is asked for."""
        found = self._inverses.get(property_)
        if found is None:
            inverses = self._schema.inverses.get(property_, ())
            found = self._inverses[property_] = tuple(
                p for p in inverses if isinstance(p, NamedNode) and self._leads_anywhere(p)
            )
        return found

    def _leads_anywhere(self, property_: Term) -> bool:
        """Whether this property, or one that superproperties and inverses lead to, is asked for."""
        seen = {property_: None}
        agenda = [property_]
        for current in agenda:
            if self._is_asked(current):
                return True
            above = self._schema.properties.ancestors(current)
            for following in (*above, *self._schema.inverses.get(current, ())):
                if following not in seen:
                    seen[following] = None
                    agenda.append(following)
        return False

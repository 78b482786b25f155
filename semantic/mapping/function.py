"""One mapping function: a CONSTRUCT query with a name, what it reads and what it adds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from pyoxigraph import NamedNode

from semantic.errors import OntologyError, Place, Problem, SubscriptionError
from semantic.limits import Limits
from semantic.pattern import Form, TriplePattern
from semantic.sparql.parse import SubscriptionParser
from semantic.sparql.query import Mention, Query
from semantic.sparql.slots import to_node
from semantic.subscription import Subscription
from semantic.terms import Node
from semantic.vocabulary import TYPE


@dataclass(frozen=True, slots=True)
class MappingFunction:
    """A CONSTRUCT query with a name.

    Parameters
    ----------
    name
        What problems and explanations call it.
    query
        The whole query, as it was written.
    reads
        What its solutions can rest on: a property, or ``rdf:type`` and a class; in
        the order of the query. ``None`` stands for any.
    adds
        What its template has, told in the same way.
    comment
        The ``#`` lines at the head of its text.
    place
        Where it was read.
    """

    name: str
    query: Query
    reads: tuple[Mention, ...]
    adds: tuple[Mention, ...]
    comment: str
    place: Place

    @classmethod
    def parse(
        cls, name: str, text: str, parser: SubscriptionParser, place: Place | None = None
    ) -> MappingFunction:
        """Return the function that a query says.

        Raises
        ------
        OntologyError
            When the text is no query, none that could be a subscription, or no CONSTRUCT; with
            line and column where they are known.

        Examples
        --------
        >>> text = "CONSTRUCT { ?x a <urn:Cheap> } { ?x <urn:price> ?p FILTER(?p < 100) }"
        >>> function = MappingFunction.parse("cheap", text, SubscriptionParser())
        >>> [property.value for property, _ in function.reads]
        ['urn:price']
        >>> [class_.value for _, class_ in function.adds]
        ['urn:Cheap']
        """
        place = place or Place(name)
        lines = takewhile(lambda line: line.startswith("#"), text.splitlines())
        comment = " ".join(line.lstrip("#").strip() for line in lines)
        try:
            read = parser.parse(name, text, comment)
        except SubscriptionError as error:
            told = error.problem
            where = Place(place.source, told.where.line, told.where.column)
            raise OntologyError(Problem(told.what, where, told.remedy)) from error
        if read.form is not Form.CONSTRUCT:
            what = f"a mapping function is a CONSTRUCT query, not {read.form.value}"
            remedy = "Write CONSTRUCT { what it adds } WHERE { what it reads }."
            raise OntologyError(Problem(what, place, remedy))
        return cls(name, read.query, _reads(read), _adds(read.query), comment, place)


def mapping_functions(
    files: Iterable[tuple[Path, str]], limits: Limits
) -> tuple[MappingFunction, ...]:
    """Return the mapping functions of files, each named as its file.

    Raises
    ------
    OntologyError
        When one of them is none; see `MappingFunction.parse`.
    """
    parser = SubscriptionParser(limits=limits)
    return tuple(
        MappingFunction.parse(path.stem, text, parser, Place(str(path))) for path, text in files
    )


def _reads(read: Subscription) -> tuple[Mention, ...]:
    if read.supports is None:
        return tuple(sorted(set(read.query.mentions()), key=str))
    return tuple(dict.fromkeys(map(_mention, read.supports)))


def _adds(query: Query) -> tuple[Mention, ...]:
    from rdflib.plugins.sparql.algebra import translateQuery
    from rdflib.plugins.sparql.parser import parseQuery

    template = translateQuery(parseQuery(query.text())).algebra.template
    triples = ([to_node(term) for term in triple] for triple in template)
    mentions = {_mention(TriplePattern(*triple)): None for triple in triples}
    return tuple(sorted(mentions, key=str))


def _mention(pattern: TriplePattern) -> Mention:
    """Return the property of a pattern, and its class where it is about one."""
    property_, object_ = _constant(pattern.predicate), _constant(pattern.object)
    return property_, object_ if property_ == TYPE else None


def _constant(node: Node) -> Node | None:
    return node if isinstance(node, NamedNode) else None

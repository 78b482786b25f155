"""SPARQL evaluation of one query on one publication, by pyoxigraph.

The data set is as docs/reference/semantics.md says: the default graph is the
ontology's closure together with the publication, the one named graph is the
publication. The ontology is loaded once (`semantic.stores`); each publication is loaded
when it is first asked about, and dropped with its `Evaluation`.

Attributes that somebody asks for (`Publication.attributes`) are triples for patterns that name
them, and for no others. So they are there for queries whose patterns all name their properties;
those that ask for any property do not see them, or see the ones that they name, hidden
(`semantic.sparql.apart`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
)

from semantic.attributes.names import is_derived
from semantic.ontology.ontology import Ontology
from semantic.ontology.walks import Links
from semantic.pattern import TaxonomyOperator
from semantic.publication import Publication
from semantic.sparql.apart import apart, hidden, is_hidden
from semantic.sparql.clock import NOW, now_literal, utc_now
from semantic.sparql.exact import FUNCTIONS, is_protected, protect, unprotect
from semantic.sparql.query import Query, Resting
from semantic.stores import BACKGROUND, Kept, Stores
from semantic.terms import Node, Solution, Term, Triple
from semantic.vocabulary import GM, XSD

_REST = BlankNode("rest")
_TRUE = Literal("true", datatype=XSD["boolean"])
_FALSE = Literal("false", datatype=XSD["boolean"])


def taxonomy_test(
    ontology: Ontology, operator: TaxonomyOperator, term: Term, other: Term, links: Links
) -> bool:
    """Whether one of the taxonomy operators holds between two terms.

    Parameters
    ----------
    links
        The is-a links that the publication states itself.
    """
    match operator:
        case TaxonomyOperator.DESCENDANT:
            return ontology.is_a(term, other, links)
        case TaxonomyOperator.ANCESTOR:
            return ontology.is_a(other, term, links)
        case TaxonomyOperator.CHILD:
            return ontology.is_child(term, other, links)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gives.

    Parameters
    ----------
    solutions
        One mapping a solution of SELECT; one empty mapping for ASK.
    graph
        What CONSTRUCT or DESCRIBE gives; ``None`` for the other forms.
    """

    solutions: tuple[Solution, ...]
    graph: tuple[Triple, ...] | None = None


class Evaluator:
    """Evaluates queries over an ontology and a publication.

    Publications may be evaluated from several threads at once, one a thread.

    Parameters
    ----------
    ontology
        For the taxonomy operators.
    background
        The triples that every publication is seen together with.
    """

    def __init__(self, ontology: Ontology, background: Iterable[Triple]) -> None:
        self._ontology = ontology
        self._background = frozenset(background)
        self._exact = any(is_protected(protect(t[2])) for t in self._background)
        self._stores = Stores(self._background)
        self._terms: tuple[frozenset[Term], ...] | None = None

    def extend(self, triples: frozenset[Triple]) -> None:
        """Take more background triples in, while no publication is evaluated."""
        self._background |= triples
        self._exact = self._exact or any(is_protected(protect(t[2])) for t in triples)
        self._stores.extend(triples)
        self._terms = None

    def meets(self, pattern: Iterable[Term | None]) -> bool:
        """Whether a background triple has the given terms; ``None`` stands for any."""
        subject, predicate, object_ = pattern
        if not isinstance(subject, NamedNode | BlankNode | None):
            return False
        if not isinstance(predicate, NamedNode | None):
            return False
        return self._stores.meets(subject, predicate, object_)

    @property
    def terms(self) -> tuple[frozenset[Term], ...]:
        """The subjects, properties and objects of background triples."""
        if self._terms is None:
            places = zip(*self._background, strict=True) if self._background else ((), (), ())
            self._terms = tuple(map(frozenset, places))
        return self._terms

    @contextmanager
    def publication(
        self, publication: Publication, now: datetime | None = None
    ) -> Iterator[Evaluation]:
        """Load a publication for the time of a ``with`` block.

        Parameters
        ----------
        now
            What ``NOW()`` gives; the machine's time by default.
        """
        evaluation = Evaluation(
            self._stores, publication, self._background, self._ontology, now, exact=self._exact
        )
        try:
            yield evaluation
        finally:
            evaluation.close()


class Evaluation:
    """One publication, ready for queries; loaded at the first."""

    def __init__(
        self,
        stores: Stores,
        publication: Publication,
        background: frozenset[Triple],
        ontology: Ontology,
        now: datetime | None,
        *,
        exact: bool,
    ) -> None:
        self._now = now_literal(now or utc_now())
        self._stores = stores
        self._entered = ExitStack()
        self._kept: Kept | None = None
        self._exact = exact
        self._publication = publication
        self._background = background
        self._ontology = ontology
        self._graph = publication.graph_name()
        self._attributes = publication.triples[len(publication.seen_by_any) :]
        self._shown: tuple[Triple, ...] = ()

    def _load(self) -> Kept:
        """Return a store with the publication, and apart from it what the background has not.

        The default graph is the background and this rest: the evaluator puts the graphs of a
        default graph side by side, and a triple in both would count twice.
        """
        if self._kept is not None:
            return self._kept
        self._kept = kept = self._entered.enter_context(self._stores.one())
        triples = self._publication.seen_by_any
        self._exact = self._exact or any(is_protected(protect(t[2])) for t in triples)
        kept.load(triples, self._graph)
        rest = [t for t in triples if t not in self._background]
        self._split = len(rest) != len(triples)
        if self._split:
            kept.load(rest, _REST)
        return kept

    def _asked(self, query: Query) -> Query:
        """Show a query the attributes that it may see; return how it is to be asked."""
        if not self._publication.attributes:
            return query
        mentioned = [property_ for property_, _ in query.mentions()]
        named = frozenset(p for p in mentioned if p is not None and is_derived(p))
        if None in mentioned:
            self._show_hidden(named)
            return apart(query) if named else query
        if named:
            self._show(self._attributes)
        return query

    def _show_hidden(self, properties: frozenset[Node]) -> None:
        """Show some attributes to those who name them only; show no others."""
        self._show(tuple((s, hidden(p), o) for s, p, o in self._attributes if p in properties))

    def _show(self, attributes: tuple[Triple, ...]) -> None:
        """Have these attributes in the store, and no others."""
        kept = self._load()
        if attributes == self._shown:
            return
        for graph in (self._graph, _REST) if self._split else (self._graph,):
            kept.unload(self._shown, graph)
            kept.load((t for t in attributes if graph == self._graph or self._is_own(t)), graph)
        self._shown = attributes

    def _is_own(self, triple: Triple) -> bool:
        return triple not in self._background

    def close(self) -> None:
        """Drop the publication from its store, which others may have then."""
        self._entered.close()

    def answer(self, query: Query, *, resting: bool) -> Answer | None:
        """Return the answer to a query, or ``None`` where it has none.

        Parameters
        ----------
        query
            With roots put in.
        resting
            Whether solutions that rest on the ontology alone have to be kept out.
        """
        self._load()
        query = self._asked(query)
        whole = query.skeleton.resting is not Resting.SOLUTIONS
        if resting and whole and not self._ask(query):
            return None
        answer = self._query(self._text(query, resting=resting and not whole))
        solutions: tuple[Solution, ...] = ()
        graph: tuple[Triple, ...] | None = None
        if isinstance(answer, QueryBoolean):
            solutions = ({},) if answer else ()
            matched = bool(answer)
        elif isinstance(answer, QuerySolutions):
            solutions = tuple(_solutions(answer))
            matched = bool(solutions)
        else:
            graph = tuple(
                (t.subject, t.predicate, unprotect(t.object))
                for t in answer
                if not is_hidden(t.predicate)  # DESCRIBE tells them
            )
            matched = bool(graph) or self._ask(query)
        if not matched:
            return None
        return Answer(solutions, graph)

    def construct(self, query: Query) -> Iterator[Triple]:
        """Yield what a CONSTRUCT query gives that rests on the publication, as it is found."""
        self._load()
        whole = query.skeleton.resting is not Resting.SOLUTIONS
        if whole and not self._ask(query):
            return
        answer = self._query(self._text(query, resting=not whole))
        assert isinstance(answer, QueryTriples)
        yield from ((t.subject, t.predicate, unprotect(t.object)) for t in answer)

    def rows(self, query: Query) -> Iterator[Solution]:
        """Yield all that the pattern of a query binds, projected or not."""
        self._load()
        answer = self._query(self._text(self._asked(query), form="SELECT *"))
        assert isinstance(answer, QuerySolutions)
        return _solutions(answer)

    def solutions(
        self, where: str, attributes: frozenset[Node] = frozenset()
    ) -> Iterator[Solution]:
        """Yield the solutions of a group pattern.

        Parameters
        ----------
        attributes
            Those that it names, and that it asks for as `semantic.sparql.apart` does.
        """
        self._show_hidden(attributes)
        answer = self._query(f"SELECT * {where}")
        assert isinstance(answer, QuerySolutions)
        return _solutions(answer)

    def _ask(self, query: Query) -> bool:
        return bool(self._query(self._text(query, resting=True, form="ASK")))

    def _text(self, query: Query, *, resting: bool = False, form: str | None = None) -> str:
        exact = self._exact or query.has_protected()
        return query.text(exact=exact, resting=resting, form=form)

    def _query(self, text: str) -> QueryBoolean | QuerySolutions | QueryTriples:
        return self._load().store.query(
            text,
            default_graph=[BACKGROUND, _REST if self._split else self._graph],
            named_graphs=[self._graph],
            custom_functions=self._functions,
        )

    @cached_property
    def _functions(self) -> dict[NamedNode, Callable[..., Term | None]]:
        links = self._ontology.links(self._publication)
        return {
            GM[operator.value]: _function(self._ontology, operator, links)
            for operator in TaxonomyOperator
        } | {NOW: lambda: self._now, **FUNCTIONS}


def _function(
    ontology: Ontology, operator: TaxonomyOperator, links: Links
) -> Callable[..., Term | None]:
    def function(*arguments: Term) -> Term | None:
        if len(arguments) != 2:
            return None
        term, other = map(unprotect, arguments)
        return _TRUE if taxonomy_test(ontology, operator, term, other, links) else _FALSE

    return function


def _solutions(answer: QuerySolutions) -> Iterator[Solution]:
    names = [variable.value for variable in answer.variables]
    for row in answer:
        yield {name: unprotect(row[name]) for name in names if row[name] is not None}

"""SPARQL text to a subscription, with each skeleton parsed once.

rdflib's parser takes milliseconds a query; lexing takes a hundred microseconds. So a
query is cut into its skeleton (constants replaced by slots) and its constants; the
skeleton is analysed once and remembered by the `SubscriptionParser`, and the next
query of the same skeleton only has its constants filled in. A query that is written as
one before is not lexed either (`semantic.sparql.bulk`), and one of triple patterns and
common filters only is not parsed by rdflib at all (`semantic.sparql.basic`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from pyoxigraph import Literal, NamedNode, Store
from pyparsing import ParseBaseException
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.sparql import SPARQLError

from semantic.errors import Place, Problem, SubscriptionError
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.pattern import TaxonomyOperator
from semantic.sparql.algebra import may_be_empty
from semantic.sparql.basic import skeleton_of
from semantic.sparql.bulk import Reading, Ways
from semantic.sparql.clock import NOW, now_literal, utc_now, with_clock
from semantic.sparql.columns import Grouped, grouped
from semantic.sparql.exact import FUNCTIONS, value_text
from semantic.sparql.lexer import Kind, Lexer, LexicalError, Token
from semantic.sparql.paths import with_inverses_named
from semantic.sparql.pieces import cut_constants, split, with_calls_closed
from semantic.sparql.quantities import misplaced, with_comparisons
from semantic.sparql.query import Query, Skeleton
from semantic.sparql.refusals import (
    beyond,
    place_of,
    refusal,
    refuse_large,
    refuse_outside,
    unreadable,
)
from semantic.sparql.skeleton import of_algebra
from semantic.subscription import Subscription
from semantic.terms import Term
from semantic.vocabulary import GM, PREFIXES, XSD

_FUNCTIONS: dict[NamedNode, Callable[..., Term | None]] = FUNCTIONS | {
    GM[operator.value]: lambda *_: Literal("true", datatype=XSD["boolean"])
    for operator in TaxonomyOperator
}
_FUNCTIONS[NOW] = lambda: now_literal(utc_now())


class SubscriptionParser:
    """Parses subscriptions, and remembers the skeletons it has seen.

    Parameters
    ----------
    prefixes
        Those that hold without being declared.
    limits
        Bounds on a subscription.

    Examples
    --------
    >>> parser = SubscriptionParser()
    >>> query = "SELECT ?item { ?item dcterms:subject <http://e/Climate> } ORDER BY ?item"
    >>> subscription = parser.parse("alice/climate", query)
    >>> print(subscription.branches[0].patterns[0])
    ?item dcterms:subject <http://e/Climate>
    >>> subscription.remainder
    ('ORDER BY',)
    """

    def __init__(
        self, prefixes: Mapping[str, str] = PREFIXES, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self._prefixes = prefixes
        self._limits = limits
        self._skeletons: dict[str, Skeleton] = {}
        self._empty = Store()
        self._ways = Ways(prefixes, limits, self.read)

    @property
    def skeletons(self) -> int:
        """How many different skeletons were parsed."""
        return len(self._skeletons)

    @property
    def lexed(self) -> int:
        """How many texts were lexed: not written as others before, or not surely so."""
        return self._ways.lexed

    def parse(self, id: str, text: str, comment: str = "") -> Subscription:
        """Return the subscription that a query says.

        Raises
        ------
        SubscriptionError
            When the query is not SPARQL, or cannot be a subscription; with line and column.
        """
        return Subscription.of(id, self._ways.query(id, text), comment)

    def queries(self, rows: Iterable[tuple[str, str]]) -> Iterator[Query | SubscriptionError]:
        """Yield the query of each id and text, or why it cannot be a subscription, in order.

        It costs a quarter of `parse`, which also fills in the patterns of a `Subscription`.

        Parameters
        ----------
        rows
            Ids and SPARQL texts.

        Examples
        --------
        >>> rows = [("a", "ASK { ?s a <urn:C> }"), ("b", "ASK { ?s a <urn:D> }"), ("c", "ASK {")]
        >>> [str(read)[:26] for read in SubscriptionParser().queries(rows)][2]
        'c:1:6: not SPARQL: it ends'
        """
        for id, text in rows:
            try:
                yield self._ways.query(id, text)
            except SubscriptionError as error:
                yield error

    def group(self, rows: Iterable[tuple[str, str | Query]]) -> Grouped:
        """Return the queries of ids and texts by skeleton, their constants as integers.

        Parameters
        ----------
        rows
            Ids and SPARQL texts, or queries that were read already. An id that comes twice is in
            the result twice.

        Examples
        --------
        >>> rows = [("a", "ASK { ?s a <urn:C> }"), ("b", "ASK { ?s a <urn:D> }"), ("c", "ASK {")]
        >>> grouped = SubscriptionParser().group(rows)
        >>> (group,) = grouped.groups
        >>> group.ids, group.constants.tolist(), grouped.terms[1], grouped.refused[0][0]
        (['a', 'b'], [[0], [1]], <NamedNode value=urn:D>, 2)
        """
        return grouped(rows, self._ways)

    def read(self, id: str, text: str) -> Reading:
        """Return what a query says, by lexing it: slower than `parse`, and what that is held to.

        Raises
        ------
        SubscriptionError
            As `parse`.
        """
        if len(text) > self._limits.document_bytes:
            raise refusal(
                Place(id), "longer than `document_bytes`", "Shorten it, or raise the limit."
            )
        try:
            lexer = Lexer(text, self._prefixes)
            tokens = with_clock(list(lexer.tokens()))
        except LexicalError as error:
            raise self._syntax_error(id, text, error) from error
        refuse_outside(id, text, tokens)
        refuse_large(id, text, tokens, self._limits)
        pieces, constants, offsets = cut_constants(tokens)
        base = _base(lexer, tokens)
        key = " ".join([base, *pieces])
        skeleton = self._skeletons.get(key)
        if skeleton is None:
            self._validate(id, text)
            skeleton = skeleton_of(pieces)
            if skeleton is None:
                skeleton = self._general(id, text, pieces, offsets, base)
                for exact in (False, True):
                    written = Query(skeleton, constants).text(resting=True, exact=exact)
                    self._validate(id, written)
            skeleton = self._skeletons[key] = replace(skeleton, source=(base, *pieces))
        return Reading(Query(skeleton, constants), pieces, offsets)

    def skeleton(self, source: Sequence[str]) -> Skeleton:
        """Return the skeleton that was made of a source: `Skeleton.source` of one that was saved.

        Raises
        ------
        SubscriptionError
            When no skeleton can be made of it.

        Examples
        --------
        >>> skeleton = SubscriptionParser().parse("s", "ASK { ?s a <urn:C> }").query.skeleton
        >>> SubscriptionParser().skeleton(skeleton.source).branches == skeleton.branches
        True
        """
        base, *pieces = source
        key = " ".join(source)
        skeleton = self._skeletons.get(key)
        if skeleton is None:
            skeleton = skeleton_of(pieces)
            if skeleton is None:
                offsets = list(accumulate((len(piece) + 1 for piece in pieces), initial=0))
                skeleton = self._general("saved", " ".join(pieces), pieces, offsets[:-1], base)
            skeleton = self._skeletons[key] = replace(skeleton, source=tuple(source))
        return skeleton

    def _general(
        self, id: str, text: str, pieces: Sequence[str], offsets: Sequence[int], base: str
    ) -> Skeleton:
        """Return the skeleton of a query, parsed by rdflib."""
        if (piece := misplaced(pieces)) is not None:
            raise refusal(
                place_of(id, text, offsets[piece]),
                "a quantity can only be compared with a variable",
                'Write it as in ?size >= "40 GB"^^cdt:ucum.',
            )
        read = with_inverses_named(pieces)
        try:
            return self._analyse(id, pieces, " ".join(read), base)
        except ParseBaseException as error:
            place = place_of(id, text, offsets[_piece_at(read, error.loc)])
            raise beyond(place, "something here, or soon after it, is") from error

    def _syntax_error(self, id: str, text: str, error: LexicalError) -> SubscriptionError:
        remedy = "Correct the query there."
        if "prefix" in error.message:
            remedy = "Declare it: PREFIX name: <namespace>."
        return SubscriptionError(Problem(error.message, place_of(id, text, error.offset), remedy))

    def _validate(self, id: str, text: str) -> None:
        """Let pyoxigraph, which will evaluate the query, say whether it can."""
        try:
            self._empty.query(
                with_calls_closed(text),
                prefixes=dict(self._prefixes),
                custom_functions=_FUNCTIONS,
            )
        except SyntaxError as error:
            raise unreadable(id, text, str(error)) from error
        except (RuntimeError, ValueError) as error:
            raise refusal(
                Place(id), str(error), "Use SPARQL 1.1's functions or those of gm:."
            ) from error

    def _analyse(self, id: str, pieces: Sequence[str], read: str, base: str) -> Skeleton:
        try:
            query = translateQuery(parseQuery(read)).algebra
        except SPARQLError as error:
            what = f"a construct that is not analysed: {str(error).splitlines()[0]}"
            raise refusal(Place(id), what, "Write it in SPARQL 1.1.") from error
        except RecursionError as error:
            raise refusal(Place(id), "nested too deeply", "Nest fewer brackets.") from error
        written = with_comparisons(pieces)
        valued, values = value_text(written)
        plain, exact = split(written, base), split(valued, base)
        if plain is None or exact is None:
            remedy = "Say which triples it waits for: WHERE { … }."
            raise refusal(Place(id), "it has no WHERE", remedy)
        if query.p is None or may_be_empty(query.p):
            raise refusal(
                Place(id),
                "its pattern can be met by nothing at all, so it would match every publication",
                "Add a triple pattern that is not optional.",
            )
        return of_algebra(query, pieces, plain, exact, values, self._limits)


def _piece_at(pieces: Sequence[str], offset: int) -> int:
    """Return the piece that an offset into the pieces, joined by spaces, points at."""
    ends = accumulate(len(piece) + 1 for piece in pieces)
    return next((index for index, end in enumerate(ends) if offset < end), len(pieces) - 1)


def _base(lexer: Lexer, tokens: Iterable[Token]) -> str:
    """Return a BASE declaration where the query makes IRIs of relative ones."""
    words = {token.text.upper() for token in tokens if token.kind is Kind.WORD}
    return f"BASE <{lexer.base}> " if lexer.base and words & {"IRI", "URI"} else ""

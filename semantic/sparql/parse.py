"""SPARQL text to a subscription, with each skeleton parsed once.

rdflib's parser takes milliseconds a query; lexing takes tens of microseconds. So a
query is cut into its skeleton (constants replaced by slots) and its constants; the
skeleton is analysed once and remembered by the `SubscriptionParser`, and the next
query of the same skeleton only has its constants filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, takewhile

from pyoxigraph import Literal, NamedNode, Store, Variable
from pyparsing import ParseBaseException
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import SPARQLError

from semantic.errors import Place, Problem, SubscriptionError
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.pattern import Form, TaxonomyOperator
from semantic.sparql import resting
from semantic.sparql.algebra import (
    Analysis,
    may_be_empty,
    operators,
    rewritable_literals,
    without_blanks,
)
from semantic.sparql.clock import NOW, now_literal, utc_now, with_clock
from semantic.sparql.exact import FUNCTIONS, value_text
from semantic.sparql.lexer import Kind, Lexer, LexicalError, Token
from semantic.sparql.mentions import mentions
from semantic.sparql.paths import with_inverses_named
from semantic.sparql.pieces import cut_constants, split, with_calls_closed
from semantic.sparql.quantities import misplaced, with_comparisons
from semantic.sparql.query import Query, QueryText, Resting, Skeleton
from semantic.sparql.refusals import (
    beyond,
    place_of,
    refusal,
    refuse_large,
    refuse_outside,
    unreadable,
)
from semantic.sparql.slots import SlottedText
from semantic.sparql.uses import uses_of
from semantic.subscription import Subscription
from semantic.terms import Term
from semantic.vocabulary import GM, PREFIXES, XSD

_FORMS = {"SelectQuery": Form.SELECT, "AskQuery": Form.ASK} | {
    "ConstructQuery": Form.CONSTRUCT,
    "DescribeQuery": Form.DESCRIBE,
}
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
    >>> query = "SELECT ?item { ?item dcterms:subject <http://e/Climate> FILTER(?item != 5) }"
    >>> subscription = parser.parse("alice/climate", query)
    >>> print(subscription.branches[0].patterns[0])
    ?item dcterms:subject <http://e/Climate>
    >>> subscription.remainder
    ('FILTER !=',)
    """

    def __init__(
        self, prefixes: Mapping[str, str] = PREFIXES, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self._prefixes = prefixes
        self._limits = limits
        self._skeletons: dict[str, Skeleton] = {}
        self._empty = Store()

    @property
    def skeletons(self) -> int:
        """How many different skeletons were parsed."""
        return len(self._skeletons)

    def parse(self, id: str, text: str, comment: str = "") -> Subscription:
        """Return the subscription that a query says.

        Raises
        ------
        SubscriptionError
            When the query is not SPARQL, or cannot be a subscription; with line and column.
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
            if (piece := misplaced(pieces)) is not None:
                raise refusal(
                    place_of(id, text, offsets[piece]),
                    "a quantity can only be compared with a variable",
                    'Write it as in ?size >= "40 GB"^^cdt:ucum.',
                )
            read = with_inverses_named(pieces)
            try:
                skeleton = self._analyse(id, pieces, " ".join(read), base)
            except ParseBaseException as error:
                place = place_of(id, text, offsets[_piece_at(read, error.loc)])
                raise beyond(place, "something here, or soon after it, is") from error
            self._skeletons[key] = skeleton
            for exact in (False, True):
                text = Query(skeleton, constants).text(resting=True, exact=exact)
                self._validate(id, text)
        return Subscription.of(id, Query(skeleton, constants), comment)

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
        return _skeleton(query, pieces, plain, exact, values, self._limits)


def _skeleton(
    query: CompValue,
    pieces: Sequence[str],
    plain: QueryText,
    exact: QueryText,
    values: frozenset[int],
    limits: Limits,
) -> Skeleton:
    analysis = Analysis(limits, _unused_prefix(pieces))
    branches = [without_blanks(b, analysis.fresh) for b in analysis.branches(query.p)]
    form = _FORMS[query.name]
    if form in (Form.CONSTRUCT, Form.DESCRIBE):
        analysis.leave_open(form.value)
    if analysis.subquery:
        mode = Resting.BOTH if analysis.aggregates else Resting.WHOLE
        condition = resting.whole_condition(analysis.groups, analysis.fresh)
    else:
        mode = Resting.PATTERN if analysis.aggregates else Resting.SOLUTIONS
        condition = resting.condition(analysis.groups, analysis.fresh)
    return Skeleton(
        form,
        _projection(query, pieces) if form is Form.SELECT else (),
        _is_distinct(query),
        tuple(branches),
        analysis.supports(),
        tuple(analysis.remainder),
        plain,
        exact,
        values,
        SlottedText(condition),
        mode,
        rewritable_literals(query),
        mentions(query),
        uses_of(query, pieces),
    )


def _projection(query: CompValue, pieces: Sequence[str]) -> tuple[Variable, ...]:
    """Return the projected variables in the order in which the query names them."""
    names = [str(variable) for variable in query.PV]
    order = {piece[1:]: -i for i, piece in reversed(list(enumerate(pieces))) if piece[0] == "?"}
    if "*" in pieces[1:3]:
        names.sort(key=lambda name: -order.get(name, 0))
    return tuple(Variable(name) for name in names)


def _is_distinct(query: CompValue) -> bool:
    modifiers = takewhile(lambda o: o.name in ("Slice", "Distinct"), operators(query.p))
    return any(operator.name == "Distinct" for operator in modifiers)


def _unused_prefix(pieces: Sequence[str]) -> str:
    prefix = "gm_"
    while any(piece.startswith("?" + prefix) for piece in pieces):
        prefix += "_"
    return prefix


def _piece_at(pieces: Sequence[str], offset: int) -> int:
    """Return the piece that an offset into the pieces, joined by spaces, points at."""
    ends = accumulate(len(piece) + 1 for piece in pieces)
    return next((index for index, end in enumerate(ends) if offset < end), len(pieces) - 1)


def _base(lexer: Lexer, tokens: Iterable[Token]) -> str:
    """Return a BASE declaration where the query makes IRIs of relative ones."""
    words = {token.text.upper() for token in tokens if token.kind is Kind.WORD}
    return f"BASE <{lexer.base}> " if lexer.base and words & {"IRI", "URI"} else ""

"""SPARQL text to a subscription, with each skeleton parsed once.

rdflib's parser takes milliseconds a query; lexing takes tens of microseconds. So a
query is cut into its skeleton (constants replaced by slots) and its constants; the
skeleton is analysed once and remembered by the `SubscriptionParser`, and the next
query of the same skeleton only has its constants filled in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pyoxigraph import Literal, NamedNode, Store, Variable
from pyparsing import ParseBaseException
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import SPARQLError

from semantic.errors import Place, Problem, SubscriptionError
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.sparql import resting
from semantic.sparql.algebra import (
    Analysis,
    may_be_empty,
    operators,
    rewritable_literals,
    without_blanks,
)
from semantic.sparql.exact import FUNCTIONS, Context, contexts, value_text
from semantic.sparql.filters import settled
from semantic.sparql.lexer import Kind, LexicalError, Token, tokenize
from semantic.sparql.query import Query, QueryText, Resting, Skeleton
from semantic.sparql.slots import SlottedText, fill, slot
from semantic.subscription import (
    Branch,
    Comparison,
    Filter,
    Form,
    Subscription,
    TaxonomyOperator,
    TaxonomyTest,
    TriplePattern,
)
from semantic.terms import Term
from semantic.vocabulary import GM, PREFIXES, XSD

_FORMS = {"SelectQuery": Form.SELECT, "AskQuery": Form.ASK} | {
    "ConstructQuery": Form.CONSTRUCT,
    "DescribeQuery": Form.DESCRIBE,
}
_UPDATES = frozenset(
    ["INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH"]
)
_FUNCTIONS: dict[NamedNode, Callable[..., Term | None]] = FUNCTIONS | {
    GM[operator.value]: lambda *_: Literal("true", datatype=XSD["boolean"])
    for operator in TaxonomyOperator
}
_SIGNS = ("+", "-")


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
            raise _refusal(id, "longer than `document_bytes`", "Shorten it, or raise the limit.")
        try:
            tokens = tokenize(text, self._prefixes)
        except LexicalError as error:
            raise self._syntax_error(id, text, error) from error
        _refuse_outside(id, tokens)
        pieces, constants = _cut_constants(tokens)
        key = " ".join(piece for piece in pieces)
        skeleton = self._skeletons.get(key)
        if skeleton is None:
            self._validate(id, text)
            skeleton = self._analyse(id, pieces)
            self._skeletons[key] = skeleton
            for exact in (False, True):
                text = Query(skeleton, constants).text(resting=True, exact=exact)
                self._validate(id, text)
        return _filled(id, Query(skeleton, constants), comment)

    def _syntax_error(self, id: str, text: str, error: LexicalError) -> SubscriptionError:
        line = text.count("\n", 0, error.offset) + 1
        column = error.offset - text.rfind("\n", 0, error.offset)
        remedy = "Correct the query there."
        if "prefix" in error.message:
            remedy = "Declare it: PREFIX name: <namespace>."
        return SubscriptionError(Problem(error.message, Place(id, line, column), remedy))

    def _validate(self, id: str, text: str) -> None:
        """Let pyoxigraph, which will evaluate the query, say whether it can."""
        try:
            self._empty.query(text, prefixes=dict(self._prefixes), custom_functions=_FUNCTIONS)
        except SyntaxError as error:
            raise _unreadable(id, str(error)) from error
        except (RuntimeError, ValueError) as error:
            raise _refusal(id, str(error), "Use SPARQL 1.1's functions or those of gm:.") from error

    def _analyse(self, id: str, pieces: Sequence[str]) -> Skeleton:
        text = " ".join(pieces)
        try:
            query = translateQuery(parseQuery(text)).algebra
        except (ParseBaseException, SPARQLError) as error:
            what = f"a construct that is not analysed: {str(error).splitlines()[0]}"
            raise _refusal(id, what, "Write it in SPARQL 1.1.") from error
        plain = _split(id, pieces)
        valued, values = value_text(pieces)
        exact = _split(id, valued)
        if query.p is None or may_be_empty(query.p):
            raise _refusal(
                id,
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
        mode = Resting.WHOLE
        condition = resting.whole_condition(analysis.groups, analysis.fresh)
    else:
        mode = Resting.PATTERN if analysis.aggregates else Resting.SOLUTIONS
        condition = resting.condition(analysis.groups, analysis.fresh)
    return Skeleton(
        form,
        _projection(query, pieces) if form is Form.SELECT else (),
        any(operator.name == "Distinct" for operator in operators(query.p)),
        tuple(branches),
        analysis.supports(),
        tuple(analysis.remainder),
        plain,
        exact,
        values,
        SlottedText(condition),
        mode,
        rewritable_literals(query),
    )


def _projection(query: CompValue, pieces: Sequence[str]) -> tuple[Variable, ...]:
    """Return the projected variables in the order in which the query names them."""
    names = [str(variable) for variable in query.PV]
    order = {piece[1:]: -i for i, piece in reversed(list(enumerate(pieces))) if piece[0] == "?"}
    if "*" in pieces[: pieces.index("{")]:
        names.sort(key=lambda name: -order.get(name, 0))
    return tuple(Variable(name) for name in names)


def _unused_prefix(pieces: Sequence[str]) -> str:
    prefix = "gm_"
    while any(piece.startswith("?" + prefix) for piece in pieces):
        prefix += "_"
    return prefix


def _refuse_outside(id: str, tokens: Sequence[Token]) -> None:
    """Refuse what a subscription may not do: update, or reach out."""
    words = [token.text.upper() for token in tokens if token.kind is Kind.WORD]
    if not tokens:
        raise _refusal(id, "the query is empty", "Write a SPARQL query.")
    if words and words[0] in _UPDATES and tokens[0].kind is Kind.WORD:
        raise _refusal(id, f"{words[0]} is an update, not a query", "Write a query.")
    for word in ("SERVICE", "FROM"):
        if word in words:
            what = f"{word}: a subscription does not reach out"
            raise _refusal(id, what, "Leave it out; the publication is the data.")


def _refusal(id: str, what: str, remedy: str) -> SubscriptionError:
    return SubscriptionError(Problem(what, Place(id), remedy))


_POSITION = re.compile(r"^error at (\d+):(\d+): (.*)$", re.DOTALL)


def _unreadable(id: str, message: str) -> SubscriptionError:
    found = _POSITION.match(message)
    if found is None:
        return _refusal(id, f"not SPARQL: {message}", "Correct the query.")
    expected = re.sub(r"\s+", " ", found[3])
    if len(expected) > 120:
        expected = expected[:120].rsplit(" ", 1)[0] + " …"
    place = Place(id, int(found[1]), int(found[2]))
    return SubscriptionError(Problem(f"not SPARQL: {expected}", place, "Correct the query there."))


def _cut_constants(tokens: Sequence[Token]) -> tuple[list[str], tuple[Term, ...]]:
    """Return the query's pieces with slots for its constants, and these."""
    pieces: list[str] = []
    constants: list[Term] = []
    places = contexts([token.text for token in tokens])
    for index, token in enumerate(tokens):
        term = token.term
        before = tokens[index - 1].text if index else ""
        if isinstance(term, Literal) and token.glued and before in _SIGNS and _is_number(token):
            sign = pieces.pop()
            if places[index][0] is not Context.PATTERN and _after_operand(tokens, index - 1):
                pieces.append(sign + token.text)
                continue
            term = Literal(sign + term.value, datatype=term.datatype)
        if _is_path_modifier(tokens, index):
            pieces[-1] += token.text  # rdflib's grammar allows no space before one
            continue
        if term is None or _must_stay(tokens, index):
            pieces.append(token.text)
            continue
        pieces.append(str(slot(len(constants), term)))
        constants.append(term)
    return pieces, tuple(constants)


def _is_number(token: Token) -> bool:
    return token.text[0].isdigit() or token.text[0] == "."


def _after_operand(tokens: Sequence[Token], sign: int) -> bool:
    """Whether a sign follows something that it could be added to."""
    if sign == 0:
        return False
    before = tokens[sign - 1]
    return before.kind is Kind.VARIABLE or before.text == ")" or isinstance(before.term, Literal)


def _is_path_modifier(tokens: Sequence[Token], index: int) -> bool:
    """Whether a ``*``, ``+`` or ``?`` may belong to the path before it."""
    if tokens[index].text not in ("*", "+", "?") or index == 0:
        return False
    before = tokens[index - 1]
    after = tokens[index + 1] if index + 1 < len(tokens) else before
    signs = after.glued and _is_number(after)
    return not signs and (isinstance(before.term, NamedNode) or before.text in (")", "a"))


def _must_stay(tokens: Sequence[Token], index: int) -> bool:
    """Whether the grammar or the analysis needs to see this constant itself."""
    if isinstance(tokens[index].term, NamedNode):
        return index + 1 < len(tokens) and tokens[index + 1].text == "("
    before = [token.text.upper() for token in tokens[max(0, index - 2) : index]]
    return before[-1:] in (["LIMIT"], ["OFFSET"]) or before == ["SEPARATOR", "="]


def _split(id: str, pieces: Sequence[str]) -> QueryText:
    """Return the text before the WHERE group, its inside, and the text after it."""
    groups = list(_top_groups(pieces))
    short = pieces[0].upper() == "CONSTRUCT" and pieces[1] != "{"
    which = 1 if pieces[0].upper() == "CONSTRUCT" and not short else 0
    if len(groups) <= which:
        raise _refusal(id, "it has no WHERE", "Say which triples it waits for: WHERE { … }.")
    start, end = groups[which]
    inside = " ".join(pieces[start + 1 : end])
    head = [piece for piece in pieces[:start] if piece.upper() != "WHERE"]
    if short:
        head.append(f"{{ {inside} }}")
    tail = " ".join(pieces[end + 1 :])
    return QueryText(SlottedText(" ".join(head)), SlottedText(inside), SlottedText(tail))


def _top_groups(pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and last positions of the outermost groups in braces."""
    braces = brackets = start = 0
    for index, piece in enumerate(pieces):
        brackets += (piece == "(") - (piece == ")")
        if piece == "{":
            if braces == 0 and brackets == 0:
                start = index
            braces += 1
        elif piece == "}":
            braces -= 1
            if braces == 0 and brackets == 0:
                yield start, index


def _filled(id: str, query: Query, comment: str) -> Subscription:
    """Put a query's constants into its skeleton."""
    skeleton, constants = query.skeleton, query.constants
    remainder = dict.fromkeys(skeleton.remainder)
    branches = []
    for branch in skeleton.branches:
        patterns = _filled_patterns(branch.patterns, constants)
        filters = []
        for filter_ in branch.filters:
            filled = _filled_filter(filter_, constants)
            if settled(filled):
                filters.append(filled)
            elif isinstance(filled, Comparison):
                remainder[f"FILTER {filled.operator.value}"] = None
        branches.append(Branch(patterns, tuple(filters)))
    return Subscription(
        id,
        query,
        skeleton.form,
        skeleton.projection,
        skeleton.distinct,
        tuple(branches),
        skeleton.supports and _filled_patterns(skeleton.supports, constants),
        tuple(remainder),
        comment,
    )


def _filled_patterns(
    patterns: Iterable[TriplePattern], constants: Sequence[Term]
) -> tuple[TriplePattern, ...]:
    return tuple(
        TriplePattern(
            fill(p.subject, constants), fill(p.predicate, constants), fill(p.object, constants)
        )
        for p in patterns
    )


def _filled_filter(filter_: Filter, constants: Sequence[Term]) -> Filter:
    if isinstance(filter_, TaxonomyTest):
        concept = fill(filter_.concept, constants)
        assert not isinstance(concept, Variable)
        return replace(filter_, concept=concept)
    constant = fill(filter_.constant, constants)
    assert isinstance(constant, NamedNode | Literal)
    return replace(filter_, constant=constant)

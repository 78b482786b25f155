"""Decide whether a term passes a filter.

The result equals that of pyoxigraph's evaluator. If Python could give another result, the evaluator
is called, which is slow, but rare. Examples are datatypes that SPARQL does not define with ``!=``,
and non-ASCII letters with ``LCASE``.

Source: SPARQL 1.1 sections 17.3 (operators) and 17.4 (functions); RFC 4647 section
3.3.1 for ``LANGMATCHES``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions

from semantic.branch import (
    AnyOf,
    Comparison,
    Filter,
    Folding,
    TaxonomyOperator,
    TaxonomyTest,
    TermPart,
    TextOperator,
    TextTest,
    Unequal,
)
from semantic.ontology.ontology import Links, Ontology
from semantic.terms import Term
from semantic.values import (
    ComparisonOperator,
    Quantity,
    asked,
    compare,
    decidable,
    evaluator,
    is_comparable,
    value_of,
)
from semantic.vocabulary import RDF, XSD

IsA: TypeAlias = Callable[[TaxonomyTest, Term], bool]
"""Function that returns whether a taxonomy operator is true for a term."""

_STRING, _TAGGED = XSD["string"], RDF["langString"]


def holds(filter_: Filter, term: Term, isa: IsA | None = None) -> bool:
    """Return whether a filter is true if its variable is bound to `term`.

    `isa` decides taxonomy operators. If the filter has one and `isa` is ``None``, raise
    `ValueError`.

    Examples
    --------
    >>> from pyoxigraph import Variable
    >>> test = TextTest(Variable("t"), TextOperator.STARTS, Literal("http:"), TermPart.STR)
    >>> holds(test, NamedNode("http://e/a")), holds(test, Literal("https:"))
    (True, False)
    """
    match filter_:
        case Comparison(_, operator, constant):
            if decidable(operator, constant):
                return compare(term, operator, constant)
            return isinstance(term, Literal | NamedNode) and asked(term, operator.value, constant)
        case Unequal(_, constant):
            return _differs(term, constant)
        case TextTest():
            return text_holds(filter_, term)
        case TaxonomyTest():
            if isa is None:
                raise ValueError("a taxonomy operator needs a taxonomy")
            return isa(filter_, term)
        case AnyOf(_, tests):
            return any(holds(test, term, isa) for test in tests)


def taxonomy_test(
    ontology: Ontology, operator: TaxonomyOperator, term: Term, other: Term, links: Links
) -> bool:
    """Return whether `term` is a descendant, ancestor or child of `other`, as `operator` requires.

    `links` are the is-a links that the publication itself states.
    """
    match operator:
        case TaxonomyOperator.DESCENDANT:
            return ontology.is_a(term, other, links)
        case TaxonomyOperator.ANCESTOR:
            return ontology.is_a(other, term, links)
        case TaxonomyOperator.CHILD:
            return ontology.is_child(term, other, links)


def text_of(term: Term, view: TermPart) -> tuple[str, str | None] | None:
    """Return the text of the part `view` of a term, and its language tag (``None`` if it has none).

    Return ``None`` if the term has no such text, so that a test of it is an error in SPARQL.
    """
    if isinstance(term, NamedNode):
        return (term.value, None) if view is TermPart.STR else None
    if not isinstance(term, Literal):
        return None
    if view is TermPart.STR:
        return term.value, None
    if view is TermPart.LANG:
        return (term.language or "", None) if term.datatype == _TAGGED else ("", None)
    return (term.value, term.language) if term.datatype in (_STRING, _TAGGED) else None


def text_holds(test: TextTest, term: Term) -> bool:
    """Return whether a text filter is true for a term; it is false if SPARQL gives an error."""
    found = text_of(term, test.view)
    if found is None:
        return False
    text, language = found
    text = folded(text, test.folding)
    argument, wanted = test.argument.value, test.argument.language
    match test.operator:
        case TextOperator.EQUALS:
            return (text, language) == (argument, wanted)
        case TextOperator.MATCHES:  # ``LANGMATCHES`` takes strings without language tags only.
            return language is wanted is None and language_matches(text, argument)
    if wanted not in (None, language):  # SPARQL 17.4.3.1.2: incompatible arguments.
        return False
    match test.operator:
        case TextOperator.CONTAINS:
            return argument in text
        case TextOperator.STARTS:
            return text.startswith(argument)
        case TextOperator.ENDS:
            return text.endswith(argument)


def language_matches(tag: str, range_: str) -> bool:
    """Return whether a language tag is in a basic language range (RFC 4647), regardless of case."""
    if range_ == "*":
        return tag != ""
    tag, range_ = _ascii_lower(tag), _ascii_lower(range_)
    return tag == range_ or tag.startswith(range_ + "-")


def _differs(term: Term, constant: NamedNode | Literal) -> bool:
    """Return whether ``term != constant`` is true; call the evaluator if this could be an error."""
    if isinstance(term, NamedNode | BlankNode) or isinstance(constant, NamedNode):
        return term != constant
    if not isinstance(term, Literal):
        return False
    if constant.datatype == _TAGGED or term.datatype == _TAGGED:
        return term != constant
    value = value_of(term)
    if value is None or isinstance(value, Quantity) or not is_comparable(constant):
        return asked(term, "!=", constant)
    return not compare(term, ComparisonOperator.EQ, constant)


def folded(text: str, folding: Folding) -> str:
    """Convert the case of a text exactly as pyoxigraph's evaluator does.

    Python and the evaluator may have different versions of Unicode. So for ``LCASE`` and ``UCASE``,
    the evaluator converts non-ASCII texts. This takes 50 µs plus 50 ns per character, and recent
    results are cached.
    """
    if folding is Folding.NONE:
        return text
    if folding is Folding.CASELESS:
        # Only the long s and the Kelvin sign are non-ASCII case variants of ASCII letters.
        return _ascii_lower(text.translate({0x17F: "s", 0x212A: "k"}))
    if text.isascii():
        return text.lower() if folding is Folding.LOWER else text.upper()
    return _evaluated(folding.value, text)


def _ascii_lower(text: str) -> str:
    """Convert the ASCII letters of a text to lower case."""
    return text.lower() if text.isascii() else text.encode().lower().decode()


@lru_cache(maxsize=4096)
def _evaluated(function: str, text: str) -> str:
    """Call a SPARQL function on a text in pyoxigraph's evaluator."""
    answer = evaluator().query(f"SELECT ({function}({Literal(text)}) AS ?text) {{}}")
    assert isinstance(answer, QuerySolutions)
    result = next(iter(answer))["text"]
    assert isinstance(result, Literal)
    return result.value

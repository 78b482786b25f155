# ruff: noqa: RUF001
"""The function `holds`, compared with the SPARQL evaluator on whole publications.

The tests write each filter as a subscription, evaluate it on a publication with every term,
and compare the result with `holds` for each term. The two share no code: the evaluator gets
the text of the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from graphmatch import Engine, Subscription, SubscriptionParser
from graphmatch.enrichment import Enricher
from semantic import Ontology, Publication
from semantic.branch import TaxonomyTest, Unequal
from semantic.clock import utc_now
from semantic.filter_evaluation import holds, language_matches
from semantic.terms import Term
from semantic.units.quantities import is_quantity
from semantic.vocabulary import XSD

P = NamedNode("urn:p")
PARSER = SubscriptionParser()
KNOWLEDGE = Enricher(Ontology())

TEXTS = (
    *("", "a", "A", "sea", "Sea", "SEA", "by the sea", "the seas", "c++", "de", "de-CH", "*", "x-"),
    *("Straße", "STRASSE", "Straẞe", "ΣΟΦΟΣ", "σοφος", "σοφοσ", "ΣΑΣ ΣΑΣ", "İstanbul", "istanbul"),
    *("ı", "I", "i̇", "ﬁsh", "FISH", "K", "k", "ſea", "é", "é", "É", "Ǆ", "ǅ", "ŉ", "ʼN", "ᾳ", "ΑΙ"),
    *(
        "𐐀",
        "𐐨",
        "ƛ",
        "Ƛ",
        "ɤ",
        "Ɤ",
        "Ᲊ",
        "ჰ",
        "Ჰ",
        "日本",
        "😀 sea",
        "a\nsea",
        '"',
        "\\",
        "\t",
        "\0",
    ),
    *("1", "01", "true", "http://e/Sea", "2024-01-01"),
)
TERMS: tuple[Term, ...] = (
    *map(Literal, TEXTS),
    *(Literal("sea", language=tag) for tag in ("en", "EN", "de", "de-CH", "de-1996", "den")),
    *(Literal(text, language="de") for text in ("Straße", "SEA", "", "a")),
    *(
        Literal(text, datatype=XSD[kind])
        for kind, texts in {
            "integer": ("1", "01", "5", "five"),
            "decimal": ("1.0", "5.50"),
            "double": ("1e0", "NaN", "INF"),
            "float": ("1", "NaN"),
            "boolean": ("true", "1", "maybe"),
            "dateTime": ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00", "2024"),
            "date": ("2024-01-01", "2024-01-01Z"),
            "duration": ("P1D", "P12M"),
            "yearMonthDuration": ("P1Y", "P12M"),
            "time": ("10:00:00",),
            "gYear": ("2024",),
            "byte": ("1", "300"),
            "anyURI": ("http://e/Sea",),
        }.items()
        for text in texts
    ),
    Literal("99999999999999999999", datatype=XSD["integer"]),
    *(Literal(text, datatype=NamedNode("urn:t")) for text in ("sea", "1")),
    Literal("40 GB", datatype=NamedNode("https://w3id.org/cdt/ucum")),
    NamedNode("http://e/Sea"),
    NamedNode("urn:sea"),
    BlankNode("sea"),
)
CONSTANTS = tuple(term for term in TERMS if isinstance(term, NamedNode | Literal))
LITERALS = tuple(term for term in CONSTANTS if isinstance(term, Literal))


def answers(subscription: Subscription, terms: Sequence[Term]) -> list[bool]:
    """Evaluate a subscription on each term; each has its own subject."""
    found = []
    for start in range(0, len(terms), 200):
        some = terms[start : start + 200]
        triples = [(NamedNode(f"urn:{n}"), P, term) for n, term in enumerate(some)]
        publication = Publication.of("urn:publication", triples)
        answer = KNOWLEDGE.evaluation(publication, utc_now()).answer(subscription.query, False)
        met = {row["s"] for row in answer[0]} if answer is not None else set()
        found += [NamedNode(f"urn:{n}") in met for n in range(len(some))]
    return found


def checked(expression: str, terms: Sequence[Term] = TERMS) -> Subscription:
    """Compare `holds` with the evaluator; return the subscription."""
    text = f"SELECT ?s {{ ?s <urn:p> ?t FILTER({expression}) }}"
    subscription = PARSER.parse("s", text)
    (branch,) = subscription.branches
    ours = [all(holds(f, term) for f in branch.filters) for term in terms]
    for term, decided, expected in zip(terms, ours, answers(subscription, terms), strict=True):
        if subscription.exact:
            assert decided is expected, (text, term)
        else:
            assert decided or not expected, (text, term)
    return subscription


LOOKED_AT = (
    *("?t", "STR(?t)", "LCASE(?t)", "UCASE(?t)", "LCASE(STR(?t))", "UCASE(STR(?t))"),
    *("LANG(?t)", "UCASE(LANG(?t))"),
)
FUNCTIONS = ("CONTAINS", "STRSTARTS", "STRENDS", "LANGMATCHES")


@pytest.mark.parametrize(("function", "text"), list(product(FUNCTIONS, LOOKED_AT)))
def test_functions(function: str, text: str) -> None:
    for constant in ('"sea"', '"SEA"', '""', '"sea"@en', '"s"@DE', '"de"', '"DE"', '"*"', '"σ"'):
        assert checked(f"{function}({text}, {constant})").exact


@pytest.mark.parametrize("text", LOOKED_AT)
def test_equality_of_text(text: str) -> None:
    constants = [str(literal) for literal in LITERALS if literal.datatype in (XSD["string"], None)]
    for constant in (*constants, '"sea"@en', '"straße"@DE'):
        assert checked(f"{text} = {constant}").exact
        assert checked(f"{constant} = {text}").exact


def test_that_the_case_of_the_constant_is_changed() -> None:
    for word in ("Straße", "ΣΟΦΟΣ", "İstanbul", "Ɤ"):
        found = checked(
            f'CONTAINS(LCASE(?t), LCASE("{word}")) && STRENDS(UCASE(?t), UCASE("{word}"))'
        )
        assert found.exact
        assert any(answers(found, TERMS))


FOREIGN = frozenset(
    {
        '"five"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"99999999999999999999"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"maybe"^^<http://www.w3.org/2001/XMLSchema#boolean>',
        '"2024"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
        '"http://e/Sea"^^<http://www.w3.org/2001/XMLSchema#anyURI>',
        '"sea"^^<urn:t>',
        '"1"^^<urn:t>',
    }
)
"""Ill-typed constants: whether another term is unequal or an error depends on its kind."""
EVALUATED = frozenset({XSD["duration"], XSD["yearMonthDuration"], XSD["gYear"]})
"""Datatypes that only the evaluator compares: no branch contains their filters."""


def matched(subscription: Subscription) -> list[bool]:
    """Match a subscription with one publication per term."""
    engine = Engine()
    engine.subscribe(subscription.id, subscription.query.text)
    triples = [(NamedNode(f"urn:{n}"), P, term) for n, term in enumerate(TERMS)]
    publications = (Publication.of("urn:publication", [triple]) for triple in triples)
    return [bool(engine.match(publication).subscriptions) for publication in publications]


@pytest.mark.parametrize("constant", CONSTANTS, ids=str)
def test_inequality(constant: NamedNode | Literal) -> None:
    subscription = checked(f"?t != {constant}")
    assert checked(f"!(?t = {constant})").exact is subscription.exact
    if isinstance(constant, Literal) and is_quantity(constant):
        assert not subscription.exact  # A quantity can become a plain number in base units.
    elif isinstance(constant, Literal) and constant.datatype in EVALUATED:
        assert subscription.remainder == ("FILTER !=",)
        unequal = Unequal(Variable("t"), constant)
        assert [holds(unequal, term) for term in TERMS] == answers(subscription, TERMS)
        assert matched(subscription) == answers(subscription, TERMS)
    else:
        assert subscription.exact is (str(constant) not in FOREIGN)


@pytest.mark.parametrize("constant", CONSTANTS, ids=str)
def test_equality(constant: Term) -> None:
    checked(f"?t = {constant}")
    checked(f"!(?t != {constant})")


@pytest.mark.parametrize(
    ("expression", "exact"),
    [
        ('?t IN ("sea", 1, <http://e/Sea>, "sea"@en)', True),
        ('?t IN ("sea")', True),
        ("?t IN ()", False),
        ('?t NOT IN ("sea", 1, <urn:sea>)', True),
        ('?t IN ("sea", "P1D"^^xsd:duration)', False),
        ('?t = "sea" || ?t = 1', True),
        ('?t = "sea" || ?t > 1 || CONTAINS(STR(?t), "a")', True),
        ('CONTAINS(?t, "sea") || (STRSTARTS(?t, "S") && STRENDS(?t, "a"))', False),
        ('(?t = 1 || ?t = 5) || ?t IN ("a", "A")', True),
        ('LANG(?t) = "de" || LANGMATCHES(LANG(?t), "EN")', True),
        ('?t != "sea" || ?t != "Sea"', True),
        ('REGEX(?t, "sea") || ?t = 1', False),
        ('REGEX(STR(?t), "(sea|stra[sß]e)$", "i")', False),
        ('REGEX(LCASE(?t), "sea|fish")', False),
        ('REGEX(?t, "ea", "i") && ?t != "SEA"', False),
        ("REGEX(?t, 'k', 'i') || ?t = 5", False),
        ("CONTAINS(?t, 5)", False),
        ("CONTAINS(STR(?t), STR(?s))", False),
        ("LCASE(?t) = 5", False),
    ],
)
def test_alternatives(expression: str, exact: bool) -> None:
    subscription = checked(expression)
    assert subscription.exact is exact
    assert matched(subscription) == answers(subscription, TERMS)


letters = st.text(
    st.sampled_from("aAsSkKiIﬁßẞſKİıi̇\u0345\u0301ΣσςάΆ日Ɤ.-ʼ 😀")
    | st.characters(exclude_categories=["Cs"]),
    max_size=6,
)
texts = letters.filter(lambda text: "\r" not in text)
tags = st.sampled_from((None, "de", "DE", "de-ch", "en"))
literals = st.builds(
    lambda text, tag: Literal(text, language=tag) if tag else Literal(text), texts, tags
)


@given(
    st.lists(literals, min_size=1, max_size=20, unique=True),
    literals,
    st.sampled_from(FUNCTIONS),
    st.sampled_from(LOOKED_AT),
)
def test_generated_functions(
    terms: list[Literal], constant: Literal, function: str, text: str
) -> None:
    assert checked(f"{function}({text}, {constant})", terms).exact
    assert checked(f"{text} = {constant}", terms).exact


@given(
    st.text(st.sampled_from("deDEx-*1ß"), max_size=5),
    st.text(st.sampled_from("deDEx-*1ß"), max_size=4),
)
def test_language_ranges(tag: str, range_: str) -> None:
    (answer,) = answers(
        PARSER.parse("s", f'SELECT ?s {{ ?s <urn:p> ?t FILTER(LANGMATCHES(?t, "{range_}")) }}'),
        [Literal(tag)],
    )
    assert language_matches(tag, range_) is answer


def test_that_some_filters_need_more() -> None:
    (branch,) = PARSER.parse("s", "ASK { ?x <urn:p> 1 FILTER(gm:childOf(?x, <urn:c>)) }").branches
    (test,) = branch.filters
    assert isinstance(test, TaxonomyTest)
    assert holds(test, P, lambda test, term: term == P)
    with pytest.raises(ValueError, match="taxonomy"):
        holds(test, P)

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from semantic.errors import Place, SubscriptionError
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.sparql.bulk import Reading, Ways
from semantic.sparql.clock import with_clock
from semantic.sparql.lexer import Lexer, LexicalError
from semantic.sparql.parse import SubscriptionParser
from semantic.sparql.pieces import cut_constants
from semantic.sparql.query import Query
from semantic.sparql.refusals import refusal, refuse_large, refuse_outside
from semantic.vocabulary import PREFIXES, XSD
from tests.semantic.sparql.writings import soups, writings

ROOT = Path(__file__).parents[3] / "data" / "subscriptions"
TIGHT = Limits(nesting=3, subscription_operators=12)


class Lexed:
    """The slow way up to the skeleton's key, which stands for the skeleton."""

    def __init__(self, limits: Limits = TIGHT) -> None:
        self.limits = limits
        self.keys: dict[str, Any] = {}

    def read(self, id: str, text: str) -> Reading:
        lexer = Lexer(text, PREFIXES)
        try:
            tokens = with_clock(list(lexer.tokens()))
        except LexicalError as error:
            raise refusal(Place(id), f"{error} at {error.offset}", "") from error
        refuse_outside(id, text, tokens)
        refuse_large(id, text, tokens, self.limits)
        pieces, constants, offsets = cut_constants(tokens)
        key = " ".join([str(lexer.base), *pieces])
        return Reading(Query(self.keys.setdefault(key, [key]), constants), pieces, offsets)


def outcome(read: Any, text: str) -> object:
    try:
        query = read("id", text)
    except SubscriptionError as error:
        return str(error)
    query = query.query if isinstance(query, Reading) else query
    return id(query.skeleton), query.constants


def agree(texts: list[str]) -> int:
    """Hold the fast way to the slow one; return how many texts were read fast."""
    slow = Lexed()
    ways = Ways(PREFIXES, TIGHT, slow.read)
    for text in texts:
        assert outcome(ways.query, text) == outcome(slow.read, text), text
    return len(texts) - ways.lexed


@settings(max_examples=600)
@given(writings())
def test_that_a_text_is_read_as_the_lexer_reads_it(texts: list[str]) -> None:
    agree(texts)
    agree([*texts, *reversed(texts)])


@settings(max_examples=600)
@given(soups)
def test_that_no_text_is_cut_otherwise(texts: list[str]) -> None:
    agree([*texts, *texts])


@settings(max_examples=600)
@given(
    st.text("?$x<>=&|'\"\\u \n#{}()[].,;:@^-+*/!_%5e\ud800é\0", max_size=30),
    st.text("e:<>'\"5.-x ", max_size=6),
)
def test_that_no_constant_joins_what_is_around_it(rest: str, other: str) -> None:
    texts = [f"ASK {{ ?s {c}{rest}" for c in ("<urn:a>", "e:a", "'a'", "5", other)]
    texts += [f"ASK {{ {rest}{c} 5" for c in ("<urn:a>", "e:a", "'a'", "5", other)]
    agree([*texts, *texts])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ASK { ?s <urn:a> <urn:b> }", "ASK { ?s <urn:c> <urn:d> }"),
        ("ASK { ?s <urn:a> <urn:b> }", "ASK { ?s skos:broader dcterms:a }"),
        ("ASK {?s <urn:a> <urn:b>.}", "ASK {?s <urn:c> dcterms:d.}"),
        ("ASK { ?s a <urn:b>;<urn:c> 'a' }", "ASK { ?s a <urn:b>;<urn:c> 5.5 }"),
        ("ASK { ?s a 'a'@en, \"b\" }", 'ASK { ?s a """b""", \'\'\'it\'s\'\'\' }'),
        (r"ASK { ?s a '\'' }", r'ASK { ?s a "\u0041\n" }'),
        ("ASK { ?s a '1'^^xsd:int }", "ASK { ?s a '2'^^<urn:t> }"),
        ("ASK { ?s a 1, -2 }", "ASK { ?s a 3, -4.0 }"),
        ("ASK { ?s a ?v FILTER(?v > -1 && 2 < ?v) }",
         "ASK { ?s a ?v FILTER(?v > -2e3 && .4 < ?v) }"),
        ("ASK { ?s a ?v FILTER(?v=1||?v!=2) }", "ASK { ?s a ?v FILTER(?v=3||?v!='4') }"),
        ("ASK { ?s <urn:a>/<urn:b>* 'a' }", "ASK { ?s <urn:c>/skos:a* 'b' }"),
        ("ASK { ?s a ?v FILTER(gm:childOf(?v, skos:a)) }",
         "ASK { ?s a ?v FILTER(gm:childOf(?v, <urn:b>)) }"),
        ("ASK { ?s a ?v, true FILTER(?v IN (1, 'a')) }",
         "ASK { ?s a ?v, true FILTER(?v IN (2, 'b')) }"),
        ("SELECT * { ?s a <urn:a> } LIMIT 5", "SELECT * { ?s a <urn:b> } LIMIT 5"),
        ("# it's\n # <\nASK { ?s a 5 }", "# it's\n # <\nASK { ?s a 6 }"),
        ("PREFIX e: <urn:e:> ASK { ?s e:a 5 }", "PREFIX e: <urn:e:> ASK { ?s e:b 6 }"),
        ("PREFIX e: <urn:e:> PREFIX f: <urn:f:> ASK { ?s e:a f:a }",
         "prefix f:<urn:f:>\nPREFIX e:<urn:e:>ASK { ?s f:a e:b }"),
    ],
)  # fmt: skip
def test_what_is_read_fast(first: str, second: str) -> None:
    assert agree([first, second]) == (0 if "prefix" in second else 1)
    assert agree([first, second, first, second]) >= 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ASK { ?s a 5 }", "ASK { ?s a <urn:a> }"),  # kinds
        ("ASK { ?s a 5 }", "ASK { ?s a '5 By'^^cdt:ucum }"),
        ("ASK { ?s a 5 }", "ASK { ?s a -5 }"),
        ("ASK { ?s a 5 }", "ASK { ?s a true }"),
        ("ASK { ?s a 5 }", "ASK { ?s  a 6 }"),  # white space
        ("ASK { ?s a 5 } # c", "ASK { ?s a 6 } # c"),
        ("SELECT * { ?s a 5 } LIMIT 5", "SELECT * { ?s a 5 } LIMIT 6"),
        ("PREFIX e: <urn:e:> ASK { ?s e:a 5 }", "PREFIX e: <urn:f:> ASK { ?s e:a 5 }"),
        ("BASE <urn:e:> ASK { ?s a <a> }", "BASE <urn:e:> ASK { ?s a <b> }"),
        ("ASK { ?s a <urn:a> }", r"ASK { ?s a <urn:\u0061> }"),
        ("ASK { ?s a ?v FILTER(?v<5) }", "ASK { ?s a ?v FILTER(?v<6) }"),
        ("ASK { ?s a ?v FILTER(?v -5 > 0) }", "ASK { ?s a ?v FILTER(?v -6 > 0) }"),
        ("ASK { ?s a ?v FILTER(<urn:f>(5)) }", "ASK { ?s a ?v FILTER(<urn:f>(6)) }"),
    ],
)
def test_what_is_read_slowly(first: str, second: str) -> None:
    assert agree([first, second]) == 0


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.rq")), ids=lambda path: str(path.name))
def test_that_samples_are_read_alike(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    other = text.replace("5", "7").replace("news:", "dcterms:")
    agree([text, other, text, other])


def test_that_there_are_samples() -> None:
    assert len(list(ROOT.rglob("*.rq"))) > 50


def test_that_memory_is_bounded() -> None:
    limits = Limits(constants_remembered=50, writings_remembered=20)
    slow = Lexed(limits)
    ways = Ways(PREFIXES, limits, slow.read)
    for n in range(500):
        texts = f"ASK {{ ?s a {n} }}", f"PREFIX p{n % 30}: <urn:{n}:> ASK {{ ?s{n} a p{n % 30}:x }}"
        for text in texts:
            assert outcome(ways.query, text) == outcome(slow.read, text)
        environments = set(filter(None, ways._environments.values()))
        assert sum(len(e.terms) for e in environments) <= 50
        assert len(ways._environments) + sum(len(e.rests) for e in environments) <= 21
    assert ways.lexed < 600


# --------------------------------------------------------------------------------------
# With whole skeletons


def shown(read: Any) -> object:
    if isinstance(read, SubscriptionError):
        return str(read)
    query = read.query if isinstance(read, Reading) else read
    return query.text(), query.constants


def slowly(parser: SubscriptionParser, text: str) -> Reading | SubscriptionError:
    try:
        return parser.read("id", text)
    except SubscriptionError as error:
        return error


@settings(max_examples=60)
@given(writings())
def test_that_queries_and_groups_are_what_one_by_one_is(texts: list[str]) -> None:
    rows = [("id", text) for text in [*texts, *texts]]
    reference = SubscriptionParser()
    expected = [slowly(reference, text) for _, text in rows]
    parser = SubscriptionParser()
    found = list(parser.queries(rows))
    assert list(map(shown, found)) == list(map(shown, expected))
    for (_, text), query in zip(rows, found, strict=True):
        if isinstance(query, Query):
            assert query.skeleton is parser.read("id", text).query.skeleton
    grouped = SubscriptionParser().group(rows)
    columns: dict[int, object] = {row: str(error) for row, error in grouped.refused}
    for group in grouped.groups:
        for row, numbers in zip(group.rows, group.constants.tolist(), strict=True):
            columns[row] = shown(Query(group.skeleton, tuple(grouped.terms[n] for n in numbers)))
    assert [columns[row] for row in range(len(rows))] == list(map(shown, expected))


def test_columns() -> None:
    rows = [
        ("a", "ASK { ?s a <urn:C> ; <urn:p> 5 }"),
        ("b", "ASK { ?s a <urn:D> }"),
        ("c", "ASK {"),
        ("d", "ASK { ?s a <urn:E> ; <urn:p> -7 }"),
        ("e", "ASK { ?s a <urn:C> }"),
        ("f", "ASK { ?s ?p ?o }"),
        ("g", "ASK { ?s ?p ?o }"),
    ]
    parser = SubscriptionParser()
    grouped = parser.group(rows)
    assert [(group.ids, group.rows) for group in grouped.groups] == [
        (["a", "d"], [0, 3]),
        (["b", "e"], [1, 4]),
        (["f", "g"], [5, 6]),
    ]
    first, second, third = (group.constants for group in grouped.groups)
    term = grouped.terms.__getitem__
    assert [list(map(term, row)) for row in first.tolist()] == [
        [NamedNode("urn:C"), NamedNode("urn:p"), Literal("5", datatype=XSD["integer"])],
        [NamedNode("urn:E"), NamedNode("urn:p"), Literal("-7", datatype=XSD["integer"])],
    ]
    assert term(second[1, 0]) == NamedNode("urn:C")
    assert third.shape == (2, 0)
    assert [row for row, _ in grouped.refused] == [2]
    assert len(parser.group(rows).groups) == 3
    assert DEFAULT_LIMITS.constants_remembered >= 1_000_000


def test_that_parse_takes_the_fast_way() -> None:
    parser = SubscriptionParser()
    for n in range(20):
        subscription = parser.parse(str(n), f"ASK {{ ?s <urn:p> <urn:{n}> , {n} }}", "why")
        objects = {pattern.object for pattern in subscription.branches[0].patterns}
        assert objects == {NamedNode(f"urn:{n}"), Literal(n)}
        assert (subscription.id, subscription.comment) == (str(n), "why")
    assert (parser.lexed, parser.skeletons) == (1, 1)

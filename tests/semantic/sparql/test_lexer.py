from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, QuerySolutions, Store

from semantic.sparql.lexer import Kind, LexicalError, tokenize
from semantic.vocabulary import XSD


def texts(query: str) -> list[str]:
    return [token.text for token in tokenize(f"PREFIX e: <urn:e:> {query}")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?x<5&&?y>3", ["?x", "<", "5", "&&", "?y", ">", "3"]),
        ("?x<=5&&?y>=3", ["?x", "<=", "5", "&&", "?y", ">=", "3"]),
        ("IF(?x<5,1,2)>3", ["IF", "(", "?x", "<", "5", ",", "1", ",", "2", ")", ">", "3"]),
        ("e:a<5&&?y>3", ["<urn:e:a>", "<", "5", "&&", "?y", ">", "3"]),
        ("?x < ?y", ["?x", "<", "?y"]),
        ("(?x)<(?y)", ["(", "?x", ")", "<", "(", "?y", ")"]),
        ("?s<urn:p>?o", ["?s", "<urn:p>", "?o"]),
        ("?x<urn:a&&b>?y", ["?x", "<urn:a&&b>", "?y"]),  # an IRI, as the longest match is
        ("-5 ?x -5 ?x-5 ?x - 5", ["-", "5", "?x", "-", "5", "?x", "-", "5", "?x", "-", "5"]),
        ("$x ?x", ["?x", "?x"]),
        ("?größe ?x·y e:größe", ["?größe", "?x·y", "<urn:e:größe>"]),
        ("5 5. .5 5.5 5e3 5.e3 .5E-3", ["5", "5", ".", ".5", "5.5", "5e3", "5.e3", ".5E-3"]),
        ("e:a. e:a.b e: e:5 e:a:b",
         ["<urn:e:a>", ".", "<urn:e:a.b>", "<urn:e:>", "<urn:e:5>", "<urn:e:a:b>"]),
        (r"e:a\,b e:a%20b e:\-a", ["<urn:e:a,b>", "<urn:e:a%20b>", "<urn:e:-a>"]),
        ("_:b. _:b.c [] [ ]", ["_:b", ".", "_:b.c", "[", "]", "[", "]"]),
        ("?s e:p+ ?o", ["?s", "<urn:e:p>", "+", "?o"]),
        ("?s (e:p|^e:q)* ?o", ["?s", "(", "<urn:e:p>", "|", "^", "<urn:e:q>", ")", "*", "?o"]),
        ("{ # a } comment\n ?s a ?c # and another", ["{", "?s", "a", "?c"]),
        ("<urn:a#b>#c", ["<urn:a#b>"]),
        (r"<urn:\u0061\U0001F600>", ["<urn:a\U0001f600>"]),
        ("TRUE false", [str(Literal(text, datatype=XSD["boolean"])) for text in ("true", "false")]),
    ],
)  # fmt: skip
def test_tokens(query: str, expected: list[str]) -> None:
    assert texts(query) == expected


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("'a \"quoted\" text'", 'a "quoted" text'),
        ("\"a 'quoted' text\"", "a 'quoted' text"),
        ('"""a "long" ""text"""', 'a "long" ""text'),
        ("'''it''s\n{ # long }'''", "it''s\n{ # long }"),
        ("''", ""),
        ('""""""', ""),
        (r'"\t\n\"\\\u00e9\U0001F600"', '\t\n"\\é\U0001f600'),
        (r"'\\'", "\\"),
    ],
)
def test_strings(query: str, value: str) -> None:
    (token,) = tokenize(query)
    assert token.term == Literal(value)
    answer = Store().query(f"SELECT ({query} AS ?x) {{}}")
    assert isinstance(answer, QuerySolutions)
    assert [row["x"] for row in answer] == [token.term]


@pytest.mark.parametrize(
    ("query", "term"),
    [
        ('"a"@en-GB', Literal("a", language="en-GB")),
        ('"a" @en', Literal("a", language="en")),
        ('"1"^^xsd:int', Literal("1", datatype=XSD["int"])),
        ('"1" ^^ # a comment\n <urn:t>', Literal("1", datatype=NamedNode("urn:t"))),
    ],
)
def test_literals(query: str, term: Literal) -> None:
    assert [token.term for token in tokenize(query)] == [term]


def test_prologue() -> None:
    query = """
      base <http://e/a/b> PREFIX : <c#> prefix p.q: <../x/> PREFIX p.q: <y/>
      BASE <d> # from here on
      ASK { <> :a p.q:z <#f> <?q> </r> <//h/s> <urn:t> }
    """
    assert [token.text for token in tokenize(query) if token.kind is Kind.TERM] == [
        "<http://e/a/d>",
        "<http://e/a/c#a>",
        "<http://e/a/y/z>",
        "<http://e/a/d#f>",
        "<http://e/a/d?q>",
        "<http://e/r>",
        "<http://h/s>",
        "<urn:t>",
    ]


@pytest.mark.parametrize("base", ["http://e/a/b?q#f", "app://a/b/c", "file:///a/b", "urn:b:c"])
@pytest.mark.parametrize(
    "iri", ["", "x", "../x", "./x/", "/x", "//h", "?q", "#", "#f", "urn:x", "http://e/a/../b"]
)
def test_that_iris_are_resolved_as_the_evaluator_does(base: str, iri: str) -> None:
    query = f"BASE <{base}> SELECT (<{iri}> AS ?x) {{}}"
    answer = Store().query(query)
    assert isinstance(answer, QuerySolutions)
    (expected,) = [row["x"] for row in answer]
    assert expected in [token.term for token in tokenize(query)]


def test_that_prefixes_hold_without_being_declared_and_can_be_redefined() -> None:
    assert [t.text for t in tokenize("skos:a")] == ["<http://www.w3.org/2004/02/skos/core#a>"]
    assert [t.text for t in tokenize("PREFIX skos: <urn:> skos:a")] == ["<urn:a>"]


@pytest.mark.parametrize(
    ("query", "offset", "what"),
    [
        ("ASK { ?s un:known 1 }", 9, "prefix un: is not declared"),
        ("ASK { ?s ?p <rel> }", 12, "not an absolute IRI"),
        ("ASK { ?s ?p 'a'^^5 }", 12, "datatype"),
        ('ASK { ?s ?p "\\q" }', 12, "stands for no character"),
        ('ASK { ?s ?p "\\U00110000" }', 12, "stands for no character"),
        ('ASK { ?s ?p "\\uD800" }', 12, "surrogate"),
        ('ASK { ?s ?p "\ud800" }', 12, "surrogate"),
        ("ASK { ?s ?p <urn:\\uD800> }", 12, "not an absolute IRI"),
        ('ASK { ?s ?p "a"@en--ltr }', 12, "language"),
        ("PREFIX e <urn:>", 0, "not followed by"),
    ],
)
def test_errors(query: str, offset: int, what: str) -> None:
    with pytest.raises(LexicalError, match=what) as caught:
        tokenize(query)
    assert caught.value.offset == offset


@given(st.text("?$x<>=&|'\"\\u0041 \n#{}()[].,;:@^-+*/!_%5e\ud800é", max_size=30))
def test_that_any_text_is_read_or_refused(text: str) -> None:
    try:
        tokens = tokenize(text)
    except LexicalError as problem:
        offsets = [problem.offset]
    else:
        offsets = [token.offset for token in tokens]
    assert all(0 <= offset < len(text) and text[offset] not in " \n" for offset in offsets)

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from semantic.sparql.cuts import constant, cut, prologue, separate, sign_of
from semantic.sparql.lexer import Lexer, LexicalError, tokenize
from semantic.sparql.pieces import cut_constants
from semantic.vocabulary import PREFIXES, XSD
from tests.semantic.sparql.writings import IRIS, LITERALS, ODD

PREFIXED = {**PREFIXES, "e": "urn:e:", "": "urn:d#"}
NUMBERS = ("5", "7.5", "5e3", ".5")


def tokens_of(parts: list[str], constants: tuple[str, ...]) -> list[object] | None:
    """Return a text's tokens, of each constant only where it stands and that it is one."""
    text, places = parts[0], {}
    for number, (written, rest) in enumerate(zip(constants, parts[1:], strict=True)):
        places[len(text)] = number
        text += written + rest
    try:
        tokens = list(Lexer(text, PREFIXED).tokens())
    except LexicalError:
        return None
    return [places.get(token.offset, (token.kind, token.text, token.glued)) for token in tokens]


begins = st.sampled_from([*" ,;(){}[]/|=!&>.*+?^<-@:e5\"'#_", ". ", "\n", " ^^", " @en"])
ends = st.sampled_from([*" ,;(){}[]/|=!&>.*+?^<-@:e5\"'#_", "< ", "<", " -", "(+", "\n", "^^"])
inner = st.text("<>=?xe:'\"@^#.-+*/|(){},; 5\\_", max_size=3)
rests = st.tuples(begins, inner, ends).map("".join)


@settings(max_examples=500, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.lists(rests, min_size=2, max_size=3).filter(lambda r: separate([" ASK {", *r])), st.data()
)
def test_that_rests_keep_any_constants_apart(between: list[str], data: st.DataObject) -> None:
    parts = ["ASK { ", *between]
    kinds = [NUMBERS if sign_of(rest) else (*IRIS, *LITERALS) for rest in parts[:-1]]
    choice = st.tuples(*map(st.sampled_from, kinds))
    one, other = tokens_of(parts, data.draw(choice)), tokens_of(parts, data.draw(choice))
    assert one == other
    if one is not None:
        assert [n for n in one if isinstance(n, int)] == list(range(len(kinds)))


@settings(max_examples=400)
@given(st.sampled_from([*IRIS, *LITERALS, *ODD]), st.sampled_from(["", "-", "+"]))
def test_that_a_constant_is_what_the_lexer_makes_of_it(text: str, sign: str) -> None:
    found = constant(sign + text, PREFIXED)
    if found is not None:
        pieces, constants, _ = cut_constants(tokenize(f"ASK {{ ?s ?p {sign}{text}, }}", PREFIXED))
        assert (len(pieces), constants) == (7, (found,))


@pytest.mark.parametrize("text", [*IRIS, *LITERALS, *NUMBERS, "-5", "+5e3"])
def test_what_is_surely_a_constant(text: str) -> None:
    _, constants, _ = cut_constants(tokenize(f"ASK {{ ?s ?p {text} }}", PREFIXED))
    assert constants == (constant(text, PREFIXED),)


@pytest.mark.parametrize(
    "text",
    ["<a>", "<5&&?y>", "un:known", "5 ", " 5", "5 6", "5#", "a", "?x", "true", "-'a'", "-e:a",
     "--5", "<urn:a> ", r"<urn:\u0061>", "'40 GB'^^cdt:ucum", "'a' @en ", "", "(", "'\ud800'",
     "<urn:\ud800>"],
)  # fmt: skip
def test_what_is_not_surely_a_constant(text: str) -> None:
    assert constant(text, PREFIXED) is None or text == "true"


def test_cuts() -> None:
    text = (
        "PREFIX e: <urn:e:> "
        "SELECT ?x { ?x e:p '''it's''' ; a e:C. FILTER(e:f(?x, 5) > -7) } LIMIT 5"
    )
    declared = prologue(text)
    assert declared == "PREFIX e: <urn:e:> "
    parts = cut(text[len(declared) :])
    assert parts[1::2] == ["e:p", "'''it's'''", "e:C", "5", "7"]
    assert "".join(parts) == text[len(declared) :]
    assert separate(parts[::2])
    assert sign_of(parts[-3]) == "-"
    assert constant("-7", {}) == Literal("-7", datatype=XSD["integer"])
    assert constant("e:p", PREFIXED) == NamedNode("urn:e:p")

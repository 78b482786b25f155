# ruff: noqa: RUF001
"""What every match contains, against the evaluator's matches."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyoxigraph import Literal, Store

from semantic.text.regex import required_parts

STORE = Store()


def matches(text: str, pattern: str, flags: str) -> bool:
    arguments = ", ".join(str(Literal(one)) for one in (text, pattern, flags))
    return bool(STORE.query(f"ASK {{ FILTER(REGEX({arguments})) }}"))


@pytest.mark.parametrize(
    ("pattern", "flags", "parts"),
    [
        ("climate", "", ("climate",)),
        ("Climate", "i", ("climate",)),
        ("^climate change$", "", ("climate change",)),
        ("a|climate", "", None),
        ("lake|climate|lake", "", ("lake", "climate")),
        ("(^| )(two|three|[0-9]+)( |$)", "i", None),
        ("(^| )(two|three)s?( |$)", "i", ("two", "three")),
        ("(?:sea|lake) level", "", (" level",)),
        ("colou?r", "", ("colo",)),
        ("colo(u)?r(s+)", "", ("colo",)),
        ("seas*", "", ("sea",)),
        ("seas+ide", "", ("seas",)),
        ("seas{0}ide", "", ("sea",)),
        ("seas{2,3}?ide", "", ("seas",)),
        ("(sea){2}", "", ("sea",)),
        ("(sea)*", "", None),
        (r"c\+\+", "", ("c++",)),
        (r"\bsea\b", "", ("sea",)),
        (r"\d\d:\d\d", "", None),
        ("Straße", "", ("Straße",)),
        ("Straße", "i", ("stra",)),
        ("日本", "", ("日本",)),
        ("日", "", ("日",)),
        ("x", "", None),
        ("s[^e]a[]]b", "", None),
        ("sea[a-z]side", "", ("side",)),
        (r"sea[\]x]side", "", ("side",)),
        ("", "", None),
        ("sea", "s", None),
        ("s e a", "x", None),
        ("sea.", "q", None),
        ("(?i)sea", "", None),
        ("(?P<name>sea)", "", None),
        ("(?x: s e a )", "", None),
        (r"\x41sea", "", None),
        (r"\<sea\>", "", None),
        (r"\p{Greek}sea", "", None),
        ("sea[[:alpha:]]", "", None),
        ("sea**", "", None),
        ("sea{2", "", None),
        ("(sea", "", None),
        ("sea)", "", None),
        ("sea\\", "", None),
        ("|".join(f"word{n}" for n in range(40)), "", None),
    ],
)
def test_parts(pattern: str, flags: str, parts: tuple[str, ...] | None) -> None:
    assert required_parts(pattern, flags) == parts


LETTERS = "abkKsSſKßé"
texts = st.text(st.sampled_from(LETTERS + "ẞ(+"), max_size=8)


def quantified(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = st.sampled_from(("", "", "", "*", "+", "?", "{0,2}", "{1}", "{2,}", "+?", "*?"))
    return st.builds("{}{}".format, inner, signs)


atoms = st.sampled_from((*LETTERS, *LETTERS, ".", "[ab]", "[^s]", r"\+", r"\(", r"\w", "^", "$"))
patterns = st.recursive(
    st.lists(quantified(atoms), max_size=4).map("".join),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("|".join),
        quantified(st.builds("({})".format, inner)),
        quantified(st.builds("(?:{})".format, inner)),
        st.lists(inner, max_size=3).map("".join),
    ),
    max_leaves=8,
)


@given(
    patterns | st.text(st.sampled_from("abs|()[]{}1,^$.*+?\\-&~#ẞK"), max_size=8),
    st.lists(texts, min_size=1, max_size=12),
    st.sampled_from(("", "i")),
)
def test_that_every_match_has_one_of_the_parts(pattern: str, asked: list[str], flags: str) -> None:
    parts = required_parts(pattern, flags)
    event(f"known: {parts is not None}")
    if parts is None:
        return
    for text in [*asked, *("".join(pair) for pair in pairwise(asked))]:
        folded = text.casefold() if flags else text
        if not any(part in folded for part in parts):
            assert not matches(text, pattern, flags), (pattern, text)


def test_that_all_letters_that_fold_to_one_are_found() -> None:
    """The evaluator's ``i`` is simple case folding: no other characters are ASCII letters by it."""
    everything = "".join(chr(code) for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000)
    alike = STORE.query(
        f'SELECT (REPLACE({Literal(everything)}, "[^a-z]", "", "i") AS ?alike) {{}}'
    )
    (row,) = list(alike)  # type: ignore[arg-type]
    found = row["alike"].value
    assert found
    assert found.casefold().isascii()

# ruff: noqa: RUF001
"""The case of text, against the evaluator's, character by character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, QuerySolutions, Store

from semantic.text import folding
from semantic.text.folding import ascii_lower, folded
from semantic.text.tests import Folding

STORE = Store()
CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def evaluated(text: str, case: Folding) -> str:
    answer = STORE.query(f"SELECT ({case.value}({Literal(text)}) AS ?x) {{}}")
    assert isinstance(answer, QuerySolutions)
    value = next(iter(answer))["x"]
    assert isinstance(value, Literal)
    return value.value


@pytest.mark.parametrize("case", [Folding.LOWER, Folding.UPPER])
def test_characters_that_are_sure(case: Folding, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's answer is the evaluator's, whatever stands beside the character."""
    sure = [c for c in CHARACTERS if not folding._UNSURE.match(c)]
    assert len(sure) > 40_000
    monkeypatch.setattr(folding, "_evaluated", None)
    for start in range(0, len(sure), 2000):
        text = "\n".join(f"a{c}A{c}" for c in sure[start : start + 2000])
        assert folded(text, case) == evaluated(text, case)


@pytest.mark.parametrize("case", [Folding.LOWER, Folding.UPPER])
@given(
    text=st.text(
        st.sampled_from("aAΣσςİı ß.'\u00adƛɤ\u0345\u10d3\u1c93")
        | st.characters(exclude_categories=["Cs"])
    )
)
def test_any_text(case: Folding, text: str) -> None:
    assert folded(text, case) == evaluated(text, case)


def test_ascii() -> None:
    for text in ("DE", "Ä-B", "İK", ""):
        assert ascii_lower(text) == "".join(c.lower() if c.isascii() else c for c in text)

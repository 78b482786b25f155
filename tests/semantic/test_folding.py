# ruff: noqa: RUF001
"""Case folding, compared with the evaluator's results on any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, QuerySolutions, Store

from semantic.branch import Folding
from semantic.filter_evaluation import folded

STORE = Store()


def evaluated(text: str, case: Folding) -> str:
    answer = STORE.query(f"SELECT ({case.value}({Literal(text)}) AS ?x) {{}}")
    assert isinstance(answer, QuerySolutions)
    value = next(iter(answer))["x"]
    assert isinstance(value, Literal)
    return value.value


@pytest.mark.parametrize("case", [Folding.LOWER, Folding.UPPER])
@given(
    text=st.text(
        st.sampled_from("aAΣσςİı ß.'\u00adƛɤ\u0345\u10d3\u1c93")
        | st.characters(exclude_categories=["Cs"])
    )
)
def test_any_text(case: Folding, text: str) -> None:
    assert folded(text, case) == evaluated(text, case)

"""What the quick way of making a skeleton is held to: the general way, through rdflib."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from semantic.errors import SubscriptionError
from semantic.sparql import parse
from semantic.sparql.basic import skeleton_of
from semantic.sparql.lexer import LexicalError, tokenize
from semantic.sparql.parse import SubscriptionParser
from semantic.sparql.pieces import cut_constants
from semantic.sparql.slots import SlottedText


def pieces_of(text: str) -> list[str]:
    return cut_constants(tokenize(text))[0]


def plain(value: Any) -> Any:
    """Return a skeleton as what can be compared: slotted texts are equal by what is in them."""
    if isinstance(value, SlottedText):
        return value._pieces, value._numbers
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def _read(text: str) -> Any:
    try:
        return plain(SubscriptionParser().read("id", text).query.skeleton)[1]
    except SubscriptionError as error:
        return {"error": str(error)}


def taken_quickly(text: str) -> bool:
    """Whether the quick way takes a query; if so it has to come to what the general way does."""
    try:
        if skeleton_of(pieces_of(text)) is None:
            return False
    except LexicalError:
        return False
    found = _read(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parse, "skeleton_of", lambda _: None)
        expected = _read(text)
    assert found.keys() == expected.keys(), expected
    for name, value in found.items():
        assert value == expected[name], name
    return True

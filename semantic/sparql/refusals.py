"""Why a text is no subscription, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from semantic.errors import Place, Problem, SubscriptionError
from semantic.limits import Limits
from semantic.sparql.lexer import Kind, Token

_UPDATES = frozenset(
    ["INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH"]
)
_OPENING, _CLOSING = frozenset("({["), frozenset(")}]")
_OPERATORS = frozenset({*"/|^!*+-?=<>", "||", "&&", "!=", "<=", ">="})
_POSITION = re.compile(r"^error at (\d+):(\d+): (.*)$", re.DOTALL)


def refusal(place: Place, what: str, remedy: str) -> SubscriptionError:
    """Return the error for what cannot be a subscription."""
    return SubscriptionError(Problem(what, place, remedy))


def refuse_outside(id: str, text: str, tokens: Sequence[Token]) -> None:
    """Refuse what a subscription may not do: update, reach out, or go beyond SPARQL 1.1."""
    if not tokens:
        raise refusal(Place(id), "the query is empty", "Write a SPARQL query.")
    first = tokens[0].text.upper()
    if first in _UPDATES:
        place = place_of(id, text, tokens[0].offset)
        raise refusal(place, f"{first} is an update, not a query", "Write a query.")
    for before, token in pairwise([Token(Kind.OTHER, ""), *tokens]):
        word = token.text.upper() if token.kind is Kind.WORD else ""
        if word in ("SERVICE", "FROM"):
            what = f"{word}: a subscription does not reach out"
            remedy = "Leave it out; the publication is the data."
            raise refusal(place_of(id, text, token.offset), what, remedy)
        if word == "LATERAL":
            raise beyond(place_of(id, text, token.offset), "LATERAL is")
        if token.glued and before.text + token.text in ("<<", "{|"):
            raise beyond(place_of(id, text, before.offset), "a triple as a term is")


def refuse_large(id: str, text: str, tokens: Sequence[Token], limits: Limits) -> None:
    """Refuse what would overflow the stack of the evaluator's parser, which ends the process."""
    depth = count = 0
    for token in tokens:
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        count += token.kind is Kind.WORD or (token.kind is Kind.OTHER and token.text in _OPERATORS)
        for many, limit in ((depth, "nesting"), (count, "subscription_operators")):
            if many > getattr(limits, limit):
                what = f"more than `{limit}` ({getattr(limits, limit)})"
                remedy = "Split it into several subscriptions, or raise the limit."
                raise SubscriptionError(Problem(what, place_of(id, text, token.offset), remedy))


def beyond(place: Place, what: str) -> SubscriptionError:
    """Return the error for what SPARQL 1.1 does not have."""
    return SubscriptionError(Problem(f"{what} not SPARQL 1.1", place, "Write it in SPARQL 1.1."))


def place_of(id: str, text: str, offset: int) -> Place:
    """Return the line and column of an offset into a text."""
    return Place(id, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def unreadable(id: str, text: str, message: str) -> SubscriptionError:
    """Say where a query stops being SPARQL, and what stands there.

    What pyoxigraph would have expected instead is a list that helps nobody; what it says of a
    query that is SPARQL and makes no sense (a variable bound twice, say) is kept.
    """
    found = _POSITION.match(message)
    if found is None:
        return refusal(Place(id), f"not SPARQL: {message}", "Correct the query.")
    line, column, reason = int(found[1]), int(found[2]), found[3]
    place = Place(id, line, column)
    if reason.startswith("expected"):
        rest = "\n".join(text.split("\n")[line - 1 :])[column - 1 :].split()
        reason = f"“{rest[0][:40]}” is out of place" if rest else "it ends too early"
    reason = re.sub(r"\s+", " ", reason)
    return refusal(place, f"not SPARQL: {reason}", "Correct the query there, or just before.")

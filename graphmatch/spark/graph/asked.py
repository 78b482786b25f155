"""What is asked of one big graph: subscriptions as branches of patterns, or why not.

A big graph cannot be given to an evaluator, so only what joins decide can be answered: basic graph
patterns with filters of one variable each, UNION and paths of fixed length. A subscription with
anything else is refused, with the reason, and the rest goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from graphmatch.engine import Engine
from graphmatch.knowledge import Knowledge
from graphmatch.matcher import DuplicateError
from graphmatch.subscription import Subscription, SubscriptionParser
from semantic.attributes.names import isa_name_of, name_of
from semantic.errors import GraphMatchError, Place, Problem, SubscriptionError
from semantic.mentions import Mentions
from semantic.pattern import Branch, Form

JOINED = frozenset({"UNION", "path |"})
"""What branches side by side are, solution for solution."""

_VARIABLE = re.compile(r"[?$](\w+)")
_REMEDY = "Match publications cut from the graph instead, or ask for its necessary patterns."


@dataclass(frozen=True, slots=True)
class Question:
    """A subscription as joins answer it.

    Parameters
    ----------
    id
        The subscription's.
    branches
        Roots put in, in base units; the solutions of all of them, one after the other, are the
        answer.
    names
        The variables that solutions bind; none for ASK.
    is_distinct
        Whether equal solutions count once; so they do for ASK.
    hidden
        Variables that the query's text has not: its blank nodes, and the ends of its paths' steps.
    """

    id: str
    branches: tuple[Branch, ...]
    names: tuple[str, ...]
    is_distinct: bool
    hidden: frozenset[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions to one graph, and what cannot be one.

    Parameters
    ----------
    questions
        In the order of subscribing.
    refused
        Why others are none, in their order.
    mentions
        What they ask for, for entailment to leave out the rest.
    """

    questions: tuple[Question, ...]
    refused: tuple[GraphMatchError, ...]
    mentions: Mentions


def asked_of(
    subscriptions: Engine | Iterable[Subscription | tuple[str, str]], knowledge: Knowledge
) -> Asked:
    """Return subscriptions as questions to one big graph.

    Parameters
    ----------
    subscriptions
        Those of an engine; or parsed ones, or ids with SPARQL texts.
    knowledge
        The ontology whose roots and base units are put in.
    """
    parser = SubscriptionParser()
    questions: dict[str, Question] = {}
    refused: list[GraphMatchError] = []
    mentions = Mentions()
    for one in subscriptions.subscriptions if isinstance(subscriptions, Engine) else subscriptions:
        try:
            subscription = one if isinstance(one, Subscription) else parser.parse(*one)
            if subscription.id in questions:
                raise DuplicateError(subscription.id)
            rewritten = subscription.rewritten(knowledge.root, knowledge.units)
            questions[subscription.id] = _question(rewritten)
        except GraphMatchError as error:
            refused.append(error)
        else:
            mentions.add(rewritten.query.mentions())
    return Asked(tuple(questions.values()), tuple(refused), mentions)


def _question(subscription: Subscription) -> Question:
    open_ = [reason for reason in subscription.remainder if reason not in JOINED]
    if open_:
        raise refusal(subscription.id, f"joins cannot decide {', '.join(open_)} over a big graph")
    patterns = [pattern for branch in subscription.branches for pattern in branch.patterns]
    for pattern in patterns:
        if name_of(pattern.predicate) or isa_name_of(pattern.predicate):
            raise refusal(
                subscription.id, "attributes are found in publications, not in big graphs"
            )
    said = frozenset(_VARIABLE.findall(subscription.query.text))
    used = frozenset().union(*(branch.variables for branch in subscription.branches))
    return Question(
        subscription.id,
        subscription.branches,
        tuple(variable.value for variable in subscription.projection),
        subscription.distinct or subscription.form is Form.ASK,
        frozenset(variable.value for variable in used) - said,
    )


def refusal(id: str, why: str) -> SubscriptionError:
    """Return the error of a subscription that cannot be asked of a big graph."""
    return SubscriptionError(Problem(why, Place(id), _REMEDY))

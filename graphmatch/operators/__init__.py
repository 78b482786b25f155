"""Operators: Python functions that subscriptions call, for what takes milliseconds or seconds.

`operator` makes a function one; `Within`, `Near`, `Shacl`, `Reasoner` and `Similar` are there.
``Engine(operators=[…])`` takes them. See docs/guides/operators.md.
"""

from graphmatch.operators.operator import (
    Index,
    MissingOperatorError,
    Operator,
    load_operators,
    operator,
)

__all__ = ["Index", "MissingOperatorError", "Operator", "load_operators", "operator"]

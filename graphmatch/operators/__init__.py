"""Operators: slow tests as Python functions that subscriptions call.

`operator` turns a function into an operator. `Within`, `Near`, `Shacl`, `Reasoner` and `Similar`
are included. Pass them as ``Engine(operators=[…])``. See docs/guides/operators.md.
"""

from graphmatch.operators.operator import (
    MissingOperatorError,
    Operator,
    OperatorIndex,
    load_operators,
    operator,
)

__all__ = ["MissingOperatorError", "Operator", "OperatorIndex", "load_operators", "operator"]

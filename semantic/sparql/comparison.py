"""The function that comparisons with quantities are written as.

Its answer is `semantic.values.compare`'s, so that index and evaluator agree. By the
time it is asked, quantities are in base units: two quantities of one dimension, or
two plain numbers where the attribute has a base unit, are compared; anything else is
an error, as between foreign datatypes in SPARQL.
"""

from __future__ import annotations

from pyoxigraph import Literal

from semantic.terms import Term
from semantic.values import Number, Operator, Quantity, compare, value_of
from semantic.vocabulary import XSD

_OPERATORS = {operator.value: operator for operator in Operator}


def compare_quantities(left: Term, operator: Term, right: Term) -> Literal | None:
    """Compare as SPARQL's operators would if they knew quantities; ``None`` is an error.

    Examples
    --------
    >>> from semantic.units.vocabulary import UCUM
    >>> one, two = (Literal(f"{n} By", datatype=UCUM) for n in (1, 2))
    >>> compare_quantities(one, Literal("<="), two).value
    'true'
    >>> compare_quantities(one, Literal("!="), Literal("1 m", datatype=UCUM)) is None
    True
    """
    if not all(isinstance(term, Literal) for term in (left, operator, right)):
        return None
    assert isinstance(left, Literal)
    assert isinstance(operator, Literal)
    assert isinstance(right, Literal)
    negated = operator.value == "!="
    sign = Operator.EQ if negated else _OPERATORS.get(operator.value)
    if sign is None or not _comparable(left, right):
        return None
    holds = compare(left, sign, right) is not negated
    return Literal("true" if holds else "false", datatype=XSD["boolean"])


def _comparable(left: Literal, right: Literal) -> bool:
    one, other = value_of(left), value_of(right)
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return one.unit == other.unit
    return isinstance(one, Number) and isinstance(other, Number)

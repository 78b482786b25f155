"""What the columns of a table of attribute subscriptions constrain, by their names.

``price.value <=`` is an attribute, a space and an operator; ``brand`` alone is equality;
``title ignore case contains`` takes upper and lower case for the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from semantic.attributes.constraints import IGNORE, OPERATORS
from semantic.attributes.names import AttributeNameError, attribute
from semantic.attributes.subscription import NAMING
from semantic.errors import InputError, Place, Problem


@dataclass(frozen=True, slots=True)
class Heading:
    """What a column constrains.

    Parameters
    ----------
    attribute
        By name.
    operator
        ``None`` where the column has the name of the attribute alone.
    ignore_case
        Whether upper and lower case are the same.
    """

    attribute: str
    operator: str | None
    ignore_case: bool

    def constraint(self, value: object) -> object:
        """Return what JSON would have after the attribute.

        Examples
        --------
        >>> heading("price <=").constraint(5)
        {'<=': 5}
        """
        if self.operator is None:
            return value
        made = {self.operator: value}
        return {**made, IGNORE: True} if self.ignore_case else made


def headings(names: Sequence[str]) -> list[Heading]:
    """Return what some columns constrain.

    Raises
    ------
    InputError
        When a name has no operator that is known, or no attribute, or two say the same.
    """
    found: dict[tuple[str, str], str] = {}
    made: list[Heading] = []
    for name in names:
        one = heading(name)
        same = found.setdefault((one.attribute, one.operator or "="), name)
        if len(found) == len(made):
            what = f"the columns {same!r} and {name!r} say the same"
            remedy = "Leave one of them out, or join them with 'in'."
            raise InputError(Problem(what, Place(f"column {name!r}"), remedy))
        made.append(one)
    return made


def heading(name: str) -> Heading:
    """Return what one column constrains.

    Raises
    ------
    InputError
        As `headings`.

    Examples
    --------
    >>> heading("weight (kg) >=")
    Heading(attribute='weight (kg)', operator='>=', ignore_case=False)
    """
    before, space, last = name.rpartition(" ")
    if space and last not in OPERATORS:
        what = f"there is no operator {last!r}"
        remedy = f"Use one of {', '.join(OPERATORS)}; behind a name with spaces, too: '{name} ='."
        raise InputError(Problem(what, Place(f"column {name!r}"), remedy))
    named = before if space else name
    called = named.removesuffix(f" {IGNORE}").strip()
    try:
        attribute(called)
    except AttributeNameError as error:
        raise InputError(Problem(str(error), Place(f"column {name!r}"), NAMING)) from error
    return Heading(called, last if space else None, named.endswith(f" {IGNORE}"))

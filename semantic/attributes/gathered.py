"""Queries as they come, in parts or one by one, gathered by template.

Cost: what is copied, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from semantic.attributes.query import AttributeQuery, Template
from semantic.errors import SubscriptionError
from semantic.terms import Term

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_BLOCK = 4096
"""So many rows stay in a processor's cache while their columns are written."""


@dataclass(frozen=True, slots=True)
class Group:
    """The queries of one template.

    Parameters
    ----------
    template
        What they have in common.
    ids
        Their ids, n of them.
    rows
        Where each was among the rows that were read, from 0, ascending.
    constants
        A row a query, a column a constant: what `Grouped.terms` has at these places.
    """

    template: Template
    ids: Sequence[str]
    rows: Sequence[int]
    constants: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Queries by template, and what was refused.

    Parameters
    ----------
    groups
        In the order of their first queries.
    terms
        The different constants. One that is written in several ways is there several times.
    refused
        The places of the rows that cannot be subscriptions, ascending, and why they cannot.
    """

    groups: Sequence[Group]
    terms: Sequence[Term]
    refused: Sequence[tuple[int, SubscriptionError]]


class _Part:
    """Queries of one template: their ids, rows, and constants row by row."""

    def __init__(self, ids: list[str], rows: list[int], constants: NDArray[np.int32]) -> None:
        self.ids = ids
        self.rows = rows
        self.constants = constants


class Gathered:
    """Groups as they grow.

    Examples
    --------
    >>> from semantic.attributes.subscription import AttributeParser
    >>> parser, gathered = AttributeParser(), Gathered()
    >>> for row, brand in enumerate(["Acme", "Apex", "Acme"]):
    ...     gathered.add_query(row, f"s{row}", parser.query("", {"brand": brand}))
    >>> (group,) = gathered.result().groups
    >>> group.ids, group.constants.tolist()
    (['s0', 's1', 's2'], [[0, 1], [0, 2], [0, 1]])
    """

    def __init__(self) -> None:
        self.terms: list[Term] = []
        """The constants; who adds parts adds theirs here."""
        self.refused: list[tuple[int, SubscriptionError]] = []
        self._places: dict[Term, int] = {}
        self._parts: dict[int, tuple[Template, list[_Part]]] = {}
        self._single: dict[int, tuple[Template, list[str], list[int], list[int]]] = {}

    def place(self, term: Term) -> int:
        """Return the place of a term among the constants."""
        found = self._places.get(term)
        if found is None:
            found = self._places[term] = len(self.terms)
            self.terms.append(term)
        return found

    def add(
        self, template: Template, ids: list[str], rows: list[int], constants: NDArray[np.int32]
    ) -> None:
        """Add queries of one template.

        Parameters
        ----------
        template
            What they have in common.
        ids, rows
            Of each.
        constants
            A row a query: places among `terms`.
        """
        if ids:
            _, parts = self._parts.setdefault(id(template), (template, []))
            parts.append(_Part(ids, rows, constants))

    def add_query(self, row: int, name: str, query: AttributeQuery) -> None:
        """Add one query."""
        template = query.template
        single = self._single.get(id(template))
        if single is None:
            single = self._single[id(template)] = template, [], [], []
        single[1].append(name)
        single[2].append(row)
        single[3].extend(map(self.place, query.constants))

    def result(self) -> Grouped:
        """Return the groups, in the order of their first queries."""
        import numpy as np

        for template, ids, rows, places in self._single.values():
            shape = len(ids), len(places) // len(ids)
            self.add(template, ids, rows, np.array(places, dtype=np.int32).reshape(shape))
        self._single = {}
        groups = [_group(template, parts) for template, parts in self._parts.values()]
        groups.sort(key=lambda group: group.rows[0])
        self.refused.sort(key=lambda refused: refused[0])
        return Grouped(groups, self.terms, self.refused)


def matrix(rows: int, columns: Sequence[int | NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return columns, each a number a row or one for all, beside each other.

    Examples
    --------
    >>> import numpy as np
    >>> matrix(2, [np.array([3, 4], np.int32), 5]).tolist()
    [[3, 5], [4, 5]]
    """
    import numpy as np

    made = np.empty((rows, len(columns)), np.int32)
    for begin in range(0, rows, _BLOCK):
        block = slice(begin, begin + _BLOCK)
        for number, column in enumerate(columns):
            made[block, number] = column if isinstance(column, int) else column[block]
    return made


def _group(template: Template, parts: Sequence[_Part]) -> Group:
    """Return the queries of one template, in the order of their rows."""
    import numpy as np

    if len(parts) == 1:
        return Group(template, parts[0].ids, parts[0].rows, parts[0].constants)
    ids = [name for part in parts for name in part.ids]
    rows = [row for part in parts for row in part.rows]
    constants = np.concatenate([part.constants for part in parts])
    order = np.argsort(np.array(rows), kind="stable")
    places = order.tolist()
    ids, rows = [ids[place] for place in places], [rows[place] for place in places]
    return Group(template, ids, rows, constants[order])

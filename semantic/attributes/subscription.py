"""Attribute subscriptions: from constraints to SPARQL.

Oracle, index, evaluation and explanation know nothing of attributes: an event is a publication
with one subject, an attribute is a property, and a conjunction of constraints is a query
(`semantic.attributes.constraints`). Very many are taken in by `semantic.attributes.bulk`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from semantic.attributes.constraints import Written, taken_apart
from semantic.attributes.lines import RowReader, fault, opened
from semantic.attributes.names import NAMING, AttributeNameError
from semantic.attributes.values import TermError
from semantic.errors import (
    GraphMatchError,
    InputError,
    OnProblem,
    Place,
    Problem,
    SubscriptionError,
    warn_problem,
)

REMEDY = 'Write {"id": "…", "where": {"attribute": constraint}} on one line.'
_FIELDS = frozenset({"id", "where", "comment"})
_Read = TypeVar("_Read")


def attribute_query(id: str, where: object) -> str:
    """Return the SPARQL that a conjunction of constraints is.

    Parameters
    ----------
    id
        Of the subscription, for messages.
    where
        Attribute to constraint (docs/reference/attributes.md).

    Raises
    ------
    SubscriptionError
        When an attribute or a constraint means nothing.

    Examples
    --------
    >>> print(attribute_query("alice", {"brand": "Acme"}))
    SELECT ?event WHERE { ?event <urn:graphmatch:attribute:brand> "Acme" . }
    """
    try:
        return Written(*taken_apart(where)).text
    except TermError as error:
        raise SubscriptionError(Problem(error.what, Place(id), error.remedy)) from error
    except AttributeNameError as error:
        raise SubscriptionError(Problem(str(error), Place(id), NAMING)) from error


def read_attribute_queries(
    path: str | Path, *, on_problem: OnProblem = warn_problem
) -> Iterator[tuple[str, str]]:
    """Yield the ids and the SPARQL of the attribute subscriptions of a file of JSON Lines.

    Parameters
    ----------
    path
        The file.
    on_problem
        Called with each line that is no subscription; the rest goes on.

    Raises
    ------
    OSError
        When the file cannot be read.
    """
    reader = RowReader(str(path), REMEDY, on_problem)
    read = attribute_rows(path, reader, lambda id, where, _comment: attribute_query(id, where))
    yield from ((id, query) for _, id, query in read)


def attribute_rows(
    path: str | Path, reader: RowReader, read: Callable[[str, Any, str], _Read]
) -> Iterator[tuple[int, str, _Read]]:
    """Yield the lines of a file that are subscriptions: number, id, what they are read as.

    Parameters
    ----------
    read
        Makes something of an id, constraints and a comment, or raises `GraphMatchError`.

    Raises
    ------
    OSError
        When the file cannot be read.
    """
    taken: dict[str, int] = {}
    for number, row in reader.rows(opened(path)):
        try:
            id, where, comment = of_row(row, reader, number)
            found = read(id, where, comment)
        except GraphMatchError as error:
            reader.refused(number, row.get("id"), error)
            continue
        known = taken.setdefault(id, number)
        if known == number:
            yield number, id, found
        else:
            first = f"{reader.source}:{known}"
            what = f"the id {id!r} has a subscription already, at {first}"
            remedy = "Choose another id; the first one holds."
            reader.on_problem(Problem(what, reader.place(number, id), remedy))


def of_row(row: dict[str, Any], reader: RowReader, number: int) -> tuple[str, Any, str]:
    """Return the id, the constraints and the comment that one line says.

    Raises
    ------
    InputError
        When a field is missing, or none that is known.
    """
    id, comment = row.get("id"), row.get("comment", "")
    if not isinstance(id, str) or not id.strip() or not isinstance(comment, str):
        wrong = "comment" if isinstance(id, str) and id.strip() else "id"
        raise InputError(fault(row, wrong, reader.place(number), REMEDY))
    if unknown := row.keys() - _FIELDS:
        what = f"there is no field {min(unknown)!r}"
        remedy = "A subscription has the fields id, where and comment."
        raise InputError(Problem(what, reader.place(number), remedy))
    return id, row.get("where", {}), comment

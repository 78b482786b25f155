"""Attribute subscriptions from JSON Lines: ``{"id": "alice", "where": {"price": {"<=": 400}}}``.

Cost: six microseconds a line with three attributes, for `read_attribute_queries`; the template of
a shape is shared, so a line costs its JSON and a tuple of constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from semantic.attributes.query import AttributeQuery
from semantic.attributes.rows import RowReader, fault, opened
from semantic.attributes.subscription import AttributeParser
from semantic.errors import GraphMatchError, InputError, OnProblem, Problem, warn_problem

REMEDY = 'Write {"id": "…", "where": {"attribute": constraint}} on one line.'
_FIELDS = frozenset({"id", "where", "comment"})


def read_attribute_queries(
    path: str | Path,
    *,
    parser: AttributeParser | None = None,
    on_problem: OnProblem = warn_problem,
) -> Iterator[tuple[str, AttributeQuery]]:
    """Yield the ids and queries of the attribute subscriptions of a file of JSON Lines.

    Parameters
    ----------
    path
        The file.
    parser
        Remembers the shapes it has seen; a new one by default.
    on_problem
        Called with each line that is no subscription; the rest goes on.

    Raises
    ------
    OSError
        When the file cannot be read.
    """
    parser = parser or AttributeParser()
    reader = RowReader(str(path), parser.decoder, REMEDY, on_problem)
    taken: dict[str, int] = {}
    for number, row in reader.rows(opened(path)):
        try:
            id, query, _ = of_row(row, reader, number, parser)
        except GraphMatchError as error:
            reader.refused(number, row.get("id"), error)
            continue
        if is_new(id, number, taken, reader):
            yield id, query


def is_new(id: str, number: int, taken: dict[str, int], reader: RowReader) -> bool:
    """Whether the id of a line is there for the first time; a second time is reported."""
    known = taken.setdefault(id, number)
    if known == number:
        return True
    first = f"{reader.source}:{known}"
    what = f"the id {id!r} has a subscription already, at {first}"
    remedy = "Choose another id; the first one holds."
    reader.on_problem(Problem(what, reader.place(number, id), remedy))
    return False


def of_row(
    row: dict[str, Any], reader: RowReader, number: int, parser: AttributeParser
) -> tuple[str, AttributeQuery, str]:
    """Return the id, the query and the comment that one line says.

    Raises
    ------
    InputError
        When a field is missing, or none that is known.
    SubscriptionError
        When an attribute or a constraint means nothing.
    """
    id, comment = row.get("id"), row.get("comment", "")
    if not isinstance(id, str) or not id.strip() or not isinstance(comment, str):
        wrong = "comment" if isinstance(id, str) and id.strip() else "id"
        raise InputError(fault(row, wrong, reader.place(number), REMEDY))
    if unknown := row.keys() - _FIELDS:
        what = f"there is no field {min(unknown)!r}"
        remedy = "A subscription has the fields id, where and comment."
        raise InputError(Problem(what, reader.place(number), remedy))
    return id, parser.query(id, row.get("where", {})), comment

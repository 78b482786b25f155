"""Adding subscriptions to the core: one, many, or as columns of terms.

The core adds subscriptions itself, except those with units or names of classes. It returns these
with `NeedsPythonError`, and Python replaces their constants first (`Rewrite`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from graphmatch import _native
from graphmatch.matcher import DuplicateSubscriptionError
from graphmatch.subscription import Query, Subscription, not_unicode, refusal
from semantic.errors import GraphMatchError, Problem, SubscriptionError, shown

if TYPE_CHECKING:
    from semantic.attributes.bulk import SubscriptionBatch

Row: TypeAlias = tuple[str, str, str]
"""The id, the text and the comment of a subscription."""
Rewrite: TypeAlias = Callable[[str, str], list[str]]
"""Returns the constants of a subscription, by id and text, as root terms and in base units."""


def row_of(subscription: object, query: object = None) -> Row:
    """Return the id, the text and the comment of a `Subscription`, or of an id and a query.

    Raise `TypeError` for other arguments.
    """
    if isinstance(subscription, Subscription):
        return subscription.id, subscription.query.text, subscription.comment
    if not isinstance(subscription, str) or not isinstance(query, str | Query):
        what = f"a subscription is an id and a query, not {shown(subscription)} and {shown(query)}"
        raise TypeError(f"{what}. Write subscribe('alice', 'SELECT …').")
    return subscription, query if isinstance(query, str) else query.text, ""


def add(
    core: _native.Core,
    rewrite: Rewrite,
    id: str,
    text: str,
    comment: str = "",
    *,
    replaces: bool = False,
) -> bool:
    """Add a subscription, or replace it if `replaces`; return false if there is none to replace.

    Raise the error that `Engine.subscribe` describes. `rewrite` is called if the query has units
    or names of classes.
    """
    try:
        try:
            return core.subscribe(id, text, comment, None, replaces)
        except _native.NeedsPythonError:
            return core.subscribe(id, text, comment, rewrite(id, text), replaces)
    except (_native.DuplicateIdError, _native.InvalidSubscriptionError) as error:
        raise error_of(error, id, text) from None
    except UnicodeEncodeError as error:
        raise not_unicode(id, error) from None


def add_again(core: _native.Core, rewrite: Rewrite, ids: Iterable[str]) -> list[Problem]:
    """Index subscriptions again, with their constants replaced for a new ontology.

    Return a problem for each one whose units or classes are now invalid; it matches nothing.
    """
    problems: list[Problem] = []
    for id in ids:
        text, comment = core.subscription(id) or ("", "")
        try:
            core.subscribe(id, text, comment, rewrite(id, text), True)
        except SubscriptionError as error:
            what = f"{error.problem.what}; it matches nothing now"
            problems.append(replace(error.problem, what=what))
    return problems


def add_many(
    core: _native.Core, rewrite: Rewrite, rows: Iterable[Row | SubscriptionBatch | GraphMatchError]
) -> Iterator[GraphMatchError]:
    """Add subscriptions while the caller reads the errors of invalid ones.

    Errors among `rows` are yielded, too, in the order of rows.
    """
    texts: list[Row] = []
    for row in rows:
        if isinstance(row, tuple):
            texts.append(row)
            continue
        yield from _add_rows(core, rewrite, texts)
        texts.clear()
        if isinstance(row, GraphMatchError):
            yield row
        else:
            yield from (error for _, error in add_batch(core, rewrite, row))
    yield from _add_rows(core, rewrite, texts)


def _add_rows(
    core: _native.Core, rewrite: Rewrite, rows: Sequence[Row]
) -> Iterator[GraphMatchError]:
    begin, size = 0, len(rows)
    while begin < len(rows):
        some = rows[begin : begin + size]
        one_by_one = 1  # The core stops at one with units or class names.
        try:
            taken, errors = core.subscribe_many(*zip(*some, strict=True))
        except UnicodeEncodeError:  # The core has added none of them.
            taken, errors, one_by_one = 0, [], len(some)
        for place, error in errors:
            yield error_of(error, *some[place][:2])
        left = some[taken : taken + one_by_one]
        for row in left:
            try:
                add(core, rewrite, *row)
            except GraphMatchError as refused:
                yield refused
        begin += taken + len(left)
        # The core parses all that it gets before it stops, so pass it few if it stops often.
        size = 1 if left else 4 * size


def add_batch(
    core: _native.Core, rewrite: Rewrite, rows: SubscriptionBatch
) -> Iterator[tuple[int, GraphMatchError]]:
    """Add a batch of subscriptions while the caller reads the errors of invalid ones.

    Yield the place of each invalid one in `rows.chosen`, and its error.
    """
    ids = rows.ids.data, rows.ids.offsets
    try:
        errors = core.subscribe_batch(rows.query, rows.parameters, ids, rows.columns, rows.chosen)
    except _native.InvalidSubscriptionError as every:  # The shape exceeds a limit.
        errors = [(place, every) for place in range(len(rows.chosen))]
    for place, error in errors:
        id = rows.ids.get(int(rows.chosen[place]))
        if not isinstance(error, _native.NeedsPythonError):
            yield place, error_of(error, id)
            continue
        try:
            add(core, rewrite, id, str(error))
        except GraphMatchError as refused:
            yield place, refused


def error_of(error: Exception, id: str, text: str = "") -> GraphMatchError:
    """Convert an error of the core about the subscription `id` to the error to raise."""
    if isinstance(error, _native.DuplicateIdError):
        return DuplicateSubscriptionError(id)
    assert isinstance(error, _native.InvalidSubscriptionError)
    return refusal(id, error, text)

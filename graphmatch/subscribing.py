"""Subscriptions of files and folders: one ``.rq`` each, or JSON Lines for many.

A line of JSON Lines is ``{"id": …, "query": …, "comment": …}``, or has ``where`` for
``query``: attribute constraints (`semantic.attributes`); the comment may be left out. The id of
an ``.rq`` file is its name without the ending; its comment is the block of ``#`` lines at its
head. One bad subscription is reported and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphmatch.engine import Engine
from graphmatch.subscription import Subscription, SubscriptionParser
from semantic.attributes.lines import RowReader, opened
from semantic.attributes.subscription import attribute_query, of_row
from semantic.errors import InputError, OnProblem, Place, Problem, SubscriptionError, warn_problem
from semantic.files import files_in, unreadable
from semantic.syntax import HEAD_BYTES, is_html

_REMEDY = 'Write {"id": "…", "query": "…"} on one line.'


def subscribe_files(engine: Engine, paths: Iterable[Path], on_problem: OnProblem) -> None:
    """Take in the subscriptions of files and folders; refused ones are reported.

    Parameters
    ----------
    on_problem
        Called with each that is none, whose id is taken, or whose class or unit is unknown.

    Examples
    --------
    >>> engine = Engine()
    >>> subscribe_files(engine, [Path("data/subscriptions/feeds-audio.rq")], print)
    >>> [subscription.id for subscription in engine.subscriptions]
    ['feeds-audio']
    """
    places: dict[str, Place] = {}

    def noted() -> Iterator[Subscription]:
        found = placed_subscriptions(*paths, on_problem=on_problem)
        for place, subscription in found:
            places[subscription.id] = place
            yield subscription

    for error in engine.subscribe_many(noted()):
        id = error.problem.where.source
        on_problem(replace(error.problem, where=replace(places[id], item=id)))


def read_subscriptions(
    *paths: str | Path,
    parser: SubscriptionParser | None = None,
    on_problem: OnProblem = warn_problem,
) -> Iterator[Subscription]:
    """Yield the subscriptions of files and folders, in order of name.

    Parameters
    ----------
    paths
        ``.rq`` and ``.jsonl`` files, or folders of them.
    parser
        Analyses the queries; a new one by default.
    on_problem
        Called with each subscription that cannot be accepted.
    """
    for _, subscription in placed_subscriptions(*paths, parser=parser, on_problem=on_problem):
        yield subscription


def placed_subscriptions(
    *paths: str | Path,
    parser: SubscriptionParser | None = None,
    on_problem: OnProblem = warn_problem,
) -> Iterator[tuple[Place, Subscription]]:
    """Yield the subscriptions as `read_subscriptions` does, each with its place."""
    parser = parser or SubscriptionParser()
    taken: dict[str, Place] = {}
    for path in _files(paths, on_problem):
        try:
            for place, subscription in _of_file(path, parser, on_problem):
                if subscription.id in taken:
                    on_problem(_duplicate(subscription.id, place, taken[subscription.id]))
                else:
                    taken[subscription.id] = place
                    yield place, subscription
        except OSError as error:
            on_problem(unreadable(str(path), error))


def _files(paths: Iterable[str | Path], on_problem: OnProblem) -> Iterator[Path]:
    for path in paths:
        yield from files_in(path, on_problem, (".rq", ".jsonl"))


def _duplicate(id: str, place: Place, first: Place) -> Problem:
    what = f"the id {id!r} has a subscription already, at {replace(first, item=None)}"
    return Problem(what, place, "Choose another id; the first one holds.")


def _of_file(
    path: Path, parser: SubscriptionParser, on_problem: OnProblem
) -> Iterator[tuple[Place, Subscription]]:
    lines = path.suffix.lower() == ".jsonl"
    try:
        if lines:
            yield from _bulk(path, parser, on_problem)
        else:
            yield from _single(path, parser)
    except (InputError, SubscriptionError) as error:
        on_problem(error.problem)


def _single(path: Path, parser: SubscriptionParser) -> Iterator[tuple[Place, Subscription]]:
    place = Place(str(path))
    data = path.read_bytes()
    if is_html(data[:HEAD_BYTES]):
        remedy = "Give the address of the query itself."
        raise InputError(Problem("an HTML page, not a query", place, remedy))
    text = _decoded(data, place)
    try:
        yield place, parser.parse(path.stem, text, _head_comment(text))
    except SubscriptionError as error:
        raise SubscriptionError(_placed(error.problem, path)) from error


def _decoded(data: bytes, place: Place) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + (place.line or 1)
        column = len(before[before.rfind(b"\n") + 1 :].decode()) + 1
        where = replace(place, line=line, column=column)
        raise InputError(Problem("not UTF-8", where, "Save the file as UTF-8.")) from error


def _placed(problem: Problem, path: Path) -> Problem:
    """Return a problem with the file's name for the subscription's id."""
    where = Place(str(path), problem.where.line, problem.where.column)
    return Problem(problem.what, where, problem.remedy)


def _head_comment(text: str) -> str:
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return " ".join(lines)


def _bulk(
    path: Path, parser: SubscriptionParser, on_problem: OnProblem
) -> Iterator[tuple[Place, Subscription]]:
    reader = RowReader(str(path), _REMEDY, on_problem)
    for number, row in reader.rows(opened(path)):
        place = reader.place(number)
        try:
            if "where" in row and "query" not in row:
                subscription = _of_constraints(row, reader, number, parser)
            else:
                subscription = _of_query(row, place, parser)
        except (InputError, SubscriptionError) as error:
            on_problem(error.problem)
        else:
            yield replace(place, item=subscription.id), subscription


def _of_constraints(
    row: dict[str, Any],
    reader: RowReader,
    number: int,
    parser: SubscriptionParser,
) -> Subscription:
    try:
        id, where, comment = of_row(row, reader, number)
        return parser.parse(id, attribute_query(id, where), comment)
    except SubscriptionError as error:
        place = reader.place(number, row["id"])
        raise SubscriptionError(replace(error.problem, where=place)) from error


def _of_query(row: dict[str, Any], place: Place, parser: SubscriptionParser) -> Subscription:
    id, query = _field(row, "id", place), _field(row, "query", place)
    comment = _field({"comment": "", **row}, "comment", place)
    try:
        return parser.parse(id, query, comment)
    except SubscriptionError as error:
        inside = f" at {error.problem.where.line}:{error.problem.where.column}"
        inside = inside if error.problem.where.line is not None else ""
        where = Place(place.source, place.line, item=f"{id}{inside}")
        problem = Problem(error.problem.what, where, error.problem.remedy)
        raise SubscriptionError(problem) from error


def _field(row: dict[str, object], name: str, place: Place) -> str:
    value = row.get(name)
    if name not in row:
        raise InputError(Problem(f"the field `{name}` is missing", place, _REMEDY))
    if not isinstance(value, str) or not (value.strip() or name == "comment"):
        raise InputError(Problem(f"the field `{name}` is not a text", place, _REMEDY))
    return value

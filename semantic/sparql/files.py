"""Subscriptions from files: one ``.rq`` each, or JSON Lines for many.

A line of JSON Lines is ``{"id": …, "query": …, "comment": …}``; the comment may be
left out. The id of an ``.rq`` file is its name without the ending; its comment is the
block of ``#`` lines at its head. One bad subscription is reported and the rest goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from semantic.errors import InputError, OnProblem, Place, Problem, SubscriptionError, warn_problem
from semantic.sparql.parse import SubscriptionParser
from semantic.subscription import Subscription


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
        Remembers the skeletons it has parsed; a new one by default.
    on_problem
        Called with each subscription that cannot be accepted.
    """
    parser = parser or SubscriptionParser()
    for path in _files(paths, on_problem):
        try:
            lines = path.suffix.lower() == ".jsonl"
            yield from _bulk(path, parser, on_problem) if lines else _single(path, parser)
        except (InputError, SubscriptionError) as error:
            on_problem(error.problem)
        except OSError as error:
            what = f"cannot be read: {error.strerror or error}"
            on_problem(Problem(what, Place(str(path)), "Check the name and permissions."))
        except UnicodeDecodeError as error:
            what = f"not UTF-8 at byte {error.start}"
            on_problem(Problem(what, Place(str(path)), "Save the file as UTF-8."))


def _files(paths: Iterable[str | Path], on_problem: OnProblem) -> Iterator[Path]:
    for path in map(Path, paths):
        if not path.is_dir():
            yield path
            continue
        files = sorted(f for f in path.rglob("*") if f.suffix.lower() in (".rq", ".jsonl"))
        if not files:
            what, remedy = "the folder has no .rq or .jsonl files", "Give one with subscriptions."
            on_problem(Problem(what, Place(str(path)), remedy))
        yield from files


def _single(path: Path, parser: SubscriptionParser) -> Iterator[Subscription]:
    text = path.read_text(encoding="utf-8-sig")
    try:
        yield parser.parse(path.stem, text, _head_comment(text))
    except SubscriptionError as error:
        raise SubscriptionError(_placed(error.problem, path)) from error


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


def _bulk(path: Path, parser: SubscriptionParser, on_problem: OnProblem) -> Iterator[Subscription]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield _of_line(line, Place(str(path), line=number), parser)
            except (InputError, SubscriptionError) as error:
                on_problem(error.problem)


def _of_line(line: str, place: Place, parser: SubscriptionParser) -> Subscription:
    remedy = 'Write {"id": "…", "query": "…"} on one line.'
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(Problem(f"not JSON: {error}", place, remedy)) from error
    if not isinstance(row, dict):
        raise InputError(Problem("not a JSON object", place, remedy))
    fields = [row.get(name, "") for name in ("id", "query", "comment")]
    if not all(isinstance(field, str) for field in fields) or not fields[0] or not fields[1]:
        raise InputError(Problem("`id` and `query` must be texts", place, remedy))
    id, query, comment = fields
    try:
        return parser.parse(id, query, comment)
    except SubscriptionError as error:
        inside = f" at {error.problem.where.line}:{error.problem.where.column}"
        inside = inside if error.problem.where.line is not None else ""
        where = Place(place.source, place.line, item=f"{id}{inside}")
        problem = Problem(error.problem.what, where, error.problem.remedy)
        raise SubscriptionError(problem) from error

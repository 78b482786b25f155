"""Subscriptions in files and folders: one per ``.rq`` file, or many in JSON Lines or TOML.

A line of JSON Lines is ``{"id": …, "query": …, "comment": …}``. Instead of ``query`` it may have
``where``, attribute constraints (`semantic.attributes`), or ``topics`` and ``words``
(`graphmatch.topics`). The comment is optional. A ``[[subscription]]`` of a TOML file has the same
keys; such files are read if named, but not in folders. The id of an ``.rq`` file is its name
without the extension, and its comment is the block of ``#`` lines at the top. An invalid
subscription is reported, and reading continues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from graphmatch.engine import Engine
from graphmatch.subscription import Subscription, SubscriptionParser
from graphmatch.topics import TEXT_KEYS, Topics, known_concepts
from semantic.attributes.concepts import Concepts
from semantic.attributes.constraints import attribute_query
from semantic.attributes.values import LineReader
from semantic.errors import InputError, OnProblem, Place, Problem, SubscriptionError, warn_problem
from semantic.files import decoded, files_in, plain, unreadable
from semantic.limits import DEFAULT_LIMITS, too_long
from semantic.ontology.ontology import Ontology
from semantic.progress import OnProgress, ignore
from semantic.syntax_detection import HEAD_BYTES, is_html
from semantic.terms import SURROGATE, SURROGATE_REMEDY

_REMEDY = 'Write {"id": "…", "query": "…"} on one line.'
_TOML_REMEDY = "Write id and query, where, topics or words below [[subscription]]."
_KEY_PARTS = 100
_TABLE = re.compile(r"[ \t]*\[\[[ \t]*subscription[ \t]*\]\]")


def subscribe_files(
    engine: Engine, paths: Iterable[Path], on_problem: OnProblem, on_progress: OnProgress = ignore
) -> None:
    """Add the subscriptions of files and folders; report invalid ones.

    Parameters
    ----------
    on_problem
        Called for each subscription that is invalid, has a duplicate id, or has an unknown topic,
        class or unit.
    on_progress
        As for `Engine.subscribe_many`.

    Examples
    --------
    >>> engine = Engine()
    >>> subscribe_files(engine, [Path("data/subscriptions/feeds-audio.rq")], print)
    >>> [subscription.id for subscription in engine.subscriptions]
    ['feeds-audio']
    """
    places: dict[str, Place] = {}

    def noted() -> Iterator[Subscription]:
        reader = _Reader(engine.parser, on_problem, lambda: engine.ontology)
        for place, subscription in reader.of_files(paths):
            places[subscription.id] = place
            yield subscription

    for error in engine.subscribe_many(noted(), on_progress):
        id = error.problem.where.source
        on_problem(replace(error.problem, where=replace(places[id], item=id)))


def subscribe_topics(
    engine: Engine, topics: Topics, id: str | None = None, keys: Sequence[str] = TEXT_KEYS
) -> None:
    """Add a subscription by topics and words.

    Parameters
    ----------
    id
        The id; by default a name made of the topics and words.
    keys
        As for `Topics.query`.

    Raises
    ------
    SubscriptionError
        If the engine's ontology has no such topic, or there is no topic and no word.
    DuplicateSubscriptionError
        If the id is taken.

    Examples
    --------
    >>> engine = Engine()
    >>> subscribe_topics(engine, Topics(topics=("Food",), words=("soup",)))
    >>> [subscription.id for subscription in engine.subscriptions]
    ['Food and soup']
    """
    query = topics.query(known_concepts(engine.ontology), keys)
    engine.subscribe(engine.parser.parse(id or topics.name, query))


def read_subscriptions(
    *paths: str | Path,
    parser: SubscriptionParser | None = None,
    ontology: Ontology | None = None,
    on_problem: OnProblem = warn_problem,
) -> Iterator[Subscription]:
    """Yield the subscriptions of files and folders, in order of name.

    Parameters
    ----------
    paths
        ``.rq`` and ``.jsonl`` files, or folders of them; ``.toml`` files.
    parser
        Parses the queries; a new one by default.
    ontology
        The ontology for topics; without it, they are categories.
    on_problem
        Called for each subscription that cannot be accepted.
    """
    known = ontology or Ontology()
    reader = _Reader(parser or SubscriptionParser(), on_problem, lambda: known)
    for _, subscription in reader.of_files(map(Path, paths)):
        yield subscription


def read_tables(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Parse a TOML file; return its content and its lines.

    Raises
    ------
    InputError
        If it is not TOML.
    OSError
        If it cannot be read.
    """
    text = decoded(_read(path), str(path))
    if len(text) > DEFAULT_LIMITS.text_characters:
        raise InputError(too_long("a file", Place(str(path)), DEFAULT_LIMITS))
    try:
        table = _loaded(text)
    except (ValueError, RecursionError) as error:
        found = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        line, column = (int(found[1]), int(found[2])) if found else (None, None)
        reason = str(error)[: found.start()] if found else str(error)
        what, remedy = f"not TOML: {reason}", "Correct it there."
        raise InputError(Problem(what, Place(str(path), line, column), remedy)) from error
    return table, text.split("\n")


def _loaded(text: str) -> dict[str, Any]:
    """Parse TOML; raise `ValueError` if it is invalid or a key has more than `_KEY_PARTS` parts.

    A key with very many parts would take memory quadratic in their number.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if line.partition("=")[0].count(".") > _KEY_PARTS and not line.startswith("#"):
            what = f"a key of more than {_KEY_PARTS} parts (at line {number}, column 1)"
            raise ValueError(what)
    import tomllib

    return tomllib.loads(text)


@dataclass
class _Reader:
    """Reads subscriptions from files, and passes invalid ones to `on_problem`.

    `ontology` returns the ontology; it is called when a subscription first names a topic.
    """

    parser: SubscriptionParser
    on_problem: OnProblem
    ontology: Callable[[], Ontology]

    @cached_property
    def concepts(self) -> Concepts | None:
        """The ontology's terms by name, made on first use; ``None`` for an empty ontology."""
        return known_concepts(self.ontology())

    def of_files(self, paths: Iterable[Path]) -> Iterator[tuple[Place, Subscription]]:
        """Yield the subscriptions of files and folders with their places; skip duplicate ids."""
        taken: dict[str, Place] = {}
        files = (f for path in paths for f in files_in(path, self.on_problem, (".rq", ".jsonl")))
        for path in files:
            try:
                for place, subscription in self._of_file(path):
                    if subscription.id in taken:
                        first = replace(taken[subscription.id], item=None)
                        what = f"a subscription with the id {subscription.id!r} already exists"
                        remedy = "Choose another id; the first one holds."
                        self.on_problem(Problem(f"{what}, at {first}", place, remedy))
                    else:
                        taken[subscription.id] = place
                        yield place, subscription
            except OSError as error:
                self.on_problem(unreadable(str(path), error))

    def _of_file(self, path: Path) -> Iterator[tuple[Place, Subscription]]:
        try:
            match path.suffix.lower():
                case ".jsonl":
                    lines = LineReader(str(path), _REMEDY, self.on_problem)
                    yield from self._of_rows(lines.file(), lines)
                case ".toml":
                    yield from self._of_rows(
                        _tables(path), LineReader(str(path), _TOML_REMEDY, self.on_problem)
                    )
                case _:
                    yield _single(path, self.parser)
        except (InputError, SubscriptionError) as error:
            self.on_problem(error.problem)

    def _of_rows(
        self, rows: Iterable[tuple[int, dict[str, Any]]], reader: LineReader
    ) -> Iterator[tuple[Place, Subscription]]:
        for number, row in rows:
            place = reader.place(number)
            try:
                subscription = self._of_row(row, reader, number)
            except (InputError, SubscriptionError) as error:
                self.on_problem(error.problem)
            else:
                yield replace(place, item=subscription.id), subscription

    def _of_row(self, row: dict[str, Any], reader: LineReader, number: int) -> Subscription:
        place, remedy = reader.place(number), reader.remedy
        is_query = "query" in row or row.keys().isdisjoint(("where", *TEXT_KEYS))
        has_where = "where" in row and not is_query
        id = _field(row, "id", place, remedy)
        comment = _field({"comment": "", **row}, "comment", place, remedy)
        form = "where" if has_where else "query"
        unknown = row.keys() - {"id", form, "comment"}
        if is_query:  # Other fields of queries may be the user's own.
            unknown &= {"where", "match", *TEXT_KEYS}
        if (is_query or has_where) and unknown:
            what = f"there is no field {min(unknown)!r}"
            remedy = f"A subscription has the fields id, {form} and comment."
            raise InputError(Problem(what, replace(place, item=id), remedy))
        try:
            if is_query:
                query = _field(row, "query", place, remedy)
            elif has_where:
                query = attribute_query(id, row["where"])
            else:
                query = Topics.of_row(row, replace(place, item=id)).query(self.concepts)
            return self.parser.parse(id, query, comment)
        except SubscriptionError as error:
            at = error.problem.where
            inside = f" at {at.line}:{at.column}" if is_query and at.line is not None else ""
            here = replace(place, item=f"{id}{inside}")
            raise SubscriptionError(replace(error.problem, where=here)) from error


def _tables(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the ``[[subscription]]`` tables of a TOML file, each with its line number.

    Raise `InputError` if there is none.
    """
    table, text = read_tables(path)
    found = table.get("subscription", [])
    is_listed = isinstance(found, list) and all(isinstance(row, dict) for row in found)
    if not (is_listed and found):
        what = "the file has no [[subscription]]"
        if not is_listed:
            what = "`subscription` is not an array of tables"
        raise InputError(Problem(what, Place(str(path)), _TOML_REMEDY))
    lines = [n for n, line in enumerate(text, 1) if _TABLE.match(line)]
    yield from zip(lines if len(lines) == len(found) else [1] * len(found), found, strict=True)


def _single(path: Path, parser: SubscriptionParser) -> tuple[Place, Subscription]:
    place = Place(str(path))
    data = _read(path)
    if is_html(data[:HEAD_BYTES]):
        remedy = "Give the address of the query itself."
        raise InputError(Problem("an HTML page, not a query", place, remedy))
    text = decoded(data, str(path))
    try:
        return place, parser.parse(plain(path.stem), text, _head_comment(text))
    except SubscriptionError as error:
        where = replace(error.problem.where, source=str(path), item=None)
        raise SubscriptionError(replace(error.problem, where=where)) from error


def _read(path: Path) -> bytes:
    """Return the bytes of a file; raise `InputError` if it is too long (an endless device)."""
    most = 4 * DEFAULT_LIMITS.text_characters  # The maximum in UTF-8 bytes.
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(too_long("a file", Place(str(path)), DEFAULT_LIMITS))
    return data


def _head_comment(text: str) -> str:
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return " ".join(lines)


def _field(row: dict[str, object], name: str, place: Place, remedy: str) -> str:
    value = row.get(name)
    if name not in row:
        raise InputError(Problem(f"the field `{name}` is missing", place, remedy))
    if not isinstance(value, str) or not (value.strip() or name == "comment"):
        raise InputError(Problem(f"the field `{name}` is not a string", place, remedy))
    if SURROGATE.search(value):
        what = f"the field `{name}` has a lone surrogate"
        raise InputError(Problem(what, place, SURROGATE_REMEDY))
    return value
